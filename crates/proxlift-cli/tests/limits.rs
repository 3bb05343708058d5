//! Memory and time have bounds, whatever a file claims and however little there is.
#![cfg(unix)]
#![allow(missing_docs)]

mod common;

use common::Desk;
use proxlift::image::Image;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::model::Model;
use proxlift::network::{Activation, Architecture, Network};
use proxlift::operator::Filters;
use std::time::{Duration, Instant};

/// Point 20: the decoder of TIFF would print a line of its own.
#[test]
fn a_text_longer_than_its_tiff_is_told_in_one_line() {
    let desk = Desk::new();
    let mut bytes = std::fs::read(desk.grey("a.tif")).unwrap();
    assert_eq!(bytes[..4], *b"II*\0");
    // The first entry of the directory becomes a text of 2 GB.
    let at = u32::from_le_bytes(*bytes[4..].first_chunk().unwrap()) as usize + 2;
    bytes[at + 2..at + 8].copy_from_slice(&[2, 0, 0, 0, 0, 0x7f]);
    std::fs::write(desk.path("a.tif"), bytes).unwrap();
    desk.refuses(&["denoise", "a.tif"], &["a.tif", "claims", "bytes"]);
}

/// Point 7: whatever a model claims to be, `inspect` takes seconds, and says what it left out.
#[test]
fn inspecting_a_hostile_model_takes_seconds() {
    let desk = Desk::new();
    for (depth, features, kernel, channels) in [
        (1000, 1800, 3, 1),
        (1000, 600, 3, 3),
        (1000, 4, 3, 3),
        (1000, 100, 3, 1),
        (2, 4096, 31, 1),
        (60, 280, 31, 1),
        (68, 8, 31, 3),
        (1000, 4096, 1, 1),
        (300, 40, 3, 3),
        (30, 60, 7, 3),
    ] {
        let architecture = Architecture { depth, features, kernel, channels };
        let mut network =
            Network::<f32>::glorot(Architecture { depth: 2, features: 1, ..architecture }, 0.1, 1).unwrap();
        if architecture.validate().is_ok() {
            let zeros = Filters::zeros(features, channels, kernel).unwrap();
            network.theta = vec![zeros; depth + 1];
            network.theta[0].weights_mut()[0] = 1.0;
            network.tau = vec![0.1; depth - 1];
            network.activation = vec![Activation::clip(vec![0.1; features]); depth - 1];
        }
        let model = Model { network, sigma: 0.1, noise: Default::default(), provenance: Default::default() };
        model.save(desk.path("m.safetensors")).unwrap();
        let start = Instant::now();
        let (out, _) = desk.succeeds(&["inspect", "m.safetensors"]);
        let (seconds, large) = (start.elapsed().as_secs_f64(), architecture.parameters() > 1 << 23);
        println!("{depth} x {features} x {kernel} x {channels}: {seconds:.1} s");
        // On machines that are busy with other tests, too.
        assert!(seconds < 15.0, "{depth} layers of {features} {kernel} x {kernel} kernels: {seconds:.1} s");
        assert!(out.contains("left out") || !large, "{out}");
    }
}

/// The most memory that a process has had, in kB, asked while it runs.
fn peak(mut child: std::process::Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
        most = most.max(line.split_whitespace().next().unwrap().parse().unwrap());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    most
}

/// Point 13: however many pictures there are, their number takes no memory.
#[cfg(target_os = "linux")]
#[test]
fn the_memory_of_evaluate_and_compare_does_not_grow_with_the_pictures() {
    let desk = Desk::new();
    let image = Image::new(1, 600, 700, (0..420_000).map(|i| (i % 251) as f32 / 250.0).collect()).unwrap();
    io::write(desk.path("0.png"), &Picture::new(image, Depth::Eight)).unwrap();
    for (folder, count) in [("few", 10), ("many", 40)] {
        std::fs::create_dir(desk.path(folder)).unwrap();
        for i in 0..count {
            std::fs::copy(desk.path("0.png"), desk.path(folder).join(format!("{i}.png"))).unwrap();
        }
    }
    let program = assert_cmd::cargo::cargo_bin!("proxlift");
    let of = |words: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.current_dir(desk.path("")).args(words).stdout(std::process::Stdio::null());
        peak(command.stderr(std::process::Stdio::null()).spawn().unwrap())
    };
    let evaluate =
        |folder: &str| of(&["evaluate", "-q", "--model", "small", "--threads", "2", "--data", folder]);
    let (few, many) = (evaluate("few"), evaluate("many"));
    assert!(many < few + few / 5, "evaluate: {few} kB for 10 pictures, {many} kB for 40");
    // The page has the few worst and best pictures in it, whole.
    let compare = |folder: &str| {
        of(&[
            "compare",
            "-q",
            "--model",
            "small",
            "--threads",
            "2",
            "--data",
            folder,
            "--overwrite",
            "-o",
            "c.html",
        ])
    };
    let (few, many) = (compare("few"), compare("many"));
    assert!(many < few + few / 2, "compare: {few} kB for 10 pictures, {many} kB for 40");
}

/// Point 20: where the shell allows little memory, there is one sentence and exit code 2, never an abort.
#[cfg(target_os = "linux")]
#[test]
fn without_memory_there_is_a_sentence() {
    let desk = Desk::new();
    let image = Image::new(1, 900, 1000, (0..900_000).map(|i| (i % 251) as f32 / 250.0).collect()).unwrap();
    for name in ["a.png", "a.jpg", "a.webp", "a.tif"] {
        io::write(desk.path(name), &Picture::new(image.clone(), Depth::Eight)).unwrap();
    }
    let program = assert_cmd::cargo::cargo_bin!("proxlift").to_str().unwrap().to_string();
    let (mut done, mut refused) = (0, 0);
    for words in [
        "denoise -q a.png --model small --sigma 0.1 --overwrite -o out.png",
        "denoise -q a.jpg --overwrite -o out.jpg",
        "denoise -q a.webp --sigma 0.05 --threads 1 --overwrite -o out.webp",
        "denoise -q a.tif --method tv --sigma 0.1 --overwrite -o out.tif",
        "train -q --count 30 --epochs 1 --depth 4 --out run",
    ] {
        for megabytes in [24, 30, 40, 60, 100, 140, 150, 160, 200, 240, 300, 360, 500] {
            let _ = std::fs::remove_dir_all(desk.path("run"));
            let script = format!("ulimit -v {}; exec {program} {words}", 1000 * megabytes);
            let output = std::process::Command::new("sh")
                .args(["-c", &script])
                .current_dir(desk.path(""))
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(0) => done += 1,
                Some(2) => {
                    refused += 1;
                    // There may be a warning before it that Ctrl-C has no thread.
                    let last = said.lines().last().unwrap();
                    assert!(last.starts_with("error: ") && last.contains("memory"), "{words}: {said}");
                    assert!(said.lines().rev().skip(1).all(|line| line.starts_with("warning: ")), "{said}");
                }
                _ => panic!("{words} with {megabytes} MB: {}: {said}", output.status),
            }
        }
    }
    assert!(done > 5 && refused > 20, "{done} done, {refused} refused");
}
