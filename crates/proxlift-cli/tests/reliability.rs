//! What the command line promises when files, flags or the machine are not as they should be.
#![cfg(unix)]
#![allow(missing_docs)]

mod common;

use common::Desk;
use proxlift::image::io::{self, Depth, Limits, Picture};
use proxlift::image::{Channels, Image};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

/// Point 1: strength 0 and sigma 0, through files of every depth.
#[test]
fn without_strength_or_noise_a_picture_comes_back() {
    let desk = Desk::new();
    for (name, channels, depth) in [
        ("a.png", Channels::Grey, Depth::Eight),
        ("b.png", Channels::Rgb, Depth::Sixteen),
        ("c.tif", Channels::Rgb, Depth::Float),
    ] {
        let path = desk.picture(name, channels, depth, false);
        let before = io::read_raster(&path, &Limits::default()).unwrap();
        for model in ["small", "best", "photo"] {
            for none in [["--strength", "0"], ["--sigma", "0"]] {
                let out = desk.path(&format!("out-{name}"));
                let arguments =
                    ["denoise", name, "--model", model, "--overwrite", "-o", out.to_str().unwrap()];
                desk.succeeds(&[&arguments[..], &none].concat());
                let mut after = io::read_raster(&out, &Limits::default()).unwrap();
                after.metadata = before.metadata.clone();
                assert!(after == before, "{name} {model}");
            }
        }
    }
}

/// Point 2: a model that gives no numbers leaves the picture alone, in every format.
#[test]
fn a_result_that_is_not_finite_is_an_error_before_anything_is_written() {
    let desk = Desk::new();
    let model = desk.model("m.safetensors", 1);
    let mut broken = proxlift::model::Model::load(&model).unwrap();
    broken.network.theta.iter_mut().for_each(|theta| theta.weights_mut().fill(3e38));
    broken.save(&model).unwrap();
    for name in ["a.png", "a.jpg", "a.tif", "a.webp", "a.pgm", "a.bmp", "a.fits"] {
        desk.grey(name);
        desk.refuses(
            &["denoise", name, "--model", "m.safetensors", "--overwrite", "-o", name],
            &[name, "not finite"],
        );
    }
}

/// Point 10.
#[test]
fn in_place_a_private_picture_stays_private() {
    let desk = Desk::new();
    let path = desk.grey("private.png");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    desk.succeeds(&["denoise", "private.png", "--overwrite", "-o", "private.png"]);
    assert_eq!(mode(&path), 0o600);
}

/// Point 12.
#[test]
fn in_place_no_frame_of_an_animation_is_lost() {
    let desk = Desk::new();
    let bytes = std::fs::read(desk.grey("moving.png")).unwrap();
    let data = [b"acTL".as_slice(), &2_u32.to_be_bytes(), &0_u32.to_be_bytes()].concat();
    let control = [&8_u32.to_be_bytes()[..], &data, &crc32fast::hash(&data).to_be_bytes()].concat();
    std::fs::write(desk.path("moving.png"), [&bytes[..33], &control, &bytes[33..]].concat()).unwrap();
    desk.refuses(
        &["denoise", "moving.png", "--overwrite", "-o", "moving.png"],
        &["moving.png", "animation", "only the first frame"],
    );
    desk.succeeds(&["denoise", "moving.png", "-o", "first.png"]);
}

/// Point 16: nothing waits for ever for a pipe.
#[test]
fn pipes_and_devices_are_refused_at_once() {
    let desk = Desk::new();
    desk.grey("a.png");
    for name in ["pipe.png", "pipe.toml", "pipe.safetensors"] {
        assert!(std::process::Command::new("mkfifo").arg(desk.path(name)).status().unwrap().success());
    }
    let refuses = |arguments: &[&str]| {
        let output = desk.command(arguments).timeout(Duration::from_secs(20)).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("pipe or a device") || said.contains("device or a pipe"), "{said}");
    };
    refuses(&["denoise", "pipe.png"]);
    refuses(&["denoise", "a.png", "--model", "pipe.safetensors"]);
    refuses(&["inspect", "pipe.safetensors"]);
    refuses(&["train", "--config", "pipe.toml"]);
    refuses(&["train", "--from", "pipe.safetensors"]);
    refuses(&["denoise", "a.png", "-o", "/dev/null"]);
}

/// Point 17: a signal leaves nothing half-written, and what `kill -9` leaves goes with the next run.
#[test]
fn partial_files_do_not_stay() {
    let desk = Desk::new();
    desk.grey("a.png");
    std::fs::write(desk.path(".proxlift-1-0.partial"), "half").unwrap();
    desk.succeeds(&["denoise", "a.png"]);
    assert!(!desk.path(".proxlift-1-0.partial").exists());
    let image =
        Image::new(1, 3000, 3000, (0..9_000_000).map(|i| (i % 251) as f32 / 250.0).collect()).unwrap();
    io::write(desk.path("large.png"), &Picture::new(image, Depth::Sixteen)).unwrap();
    let partials = || {
        let names = std::fs::read_dir(desk.path("")).unwrap().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".partial")).count()
    };
    let program = assert_cmd::cargo::cargo_bin!("proxlift");
    let arguments = ["denoise", "-q", "large.png", "--model", "small", "--sigma", "0.05", "--overwrite"];
    let mut child =
        std::process::Command::new(program).current_dir(desk.path("")).args(arguments).spawn().unwrap();
    let start = Instant::now();
    while partials() == 0 && child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    child.wait().unwrap();
    assert_eq!(partials(), 0);
}

/// Points 7 and 18: no number asks for memory or time without end.
#[test]
fn numbers_beyond_all_bounds_are_refused() {
    let desk = Desk::new();
    for count in ["9223372036854775807", "4294967296", "1000000000"] {
        desk.refuses(&["train", "--count", count], &["--count", "between 1 and"]);
    }
    desk.refuses(&["train", "--epochs", "99999999999"], &["--epochs"]);
    desk.refuses(&["train", "--features", "4000", "--batch", "100000000"], &["memory", "--batch"]);
    desk.refuses(&["train", "--seed", "9223372036854775808"], &["--seed", "9223372036854775807"]);
    desk.refuses(&["train", "--depth", "1000", "--kernel", "31"], &["pixels far"]);
    desk.refuses(&["train", "--memory", "1M"], &["needs about", "memory"]);
    desk.grey("a.png");
    desk.refuses(&["denoise", "a.png", "--memory", "much"], &["--memory", "500M"]);
    let output = desk.command(&["denoise", "a.png"]).env("RAYON_NUM_THREADS", "1000000000").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("RAYON_NUM_THREADS"));
    assert_eq!(output.status.code(), Some(2));
}

/// Point 19: the file is named.
#[test]
fn a_picture_of_huge_numbers_is_named() {
    let desk = Desk::new();
    let mut image = common::clean(Channels::Grey);
    image.data_mut().iter_mut().enumerate().for_each(|(i, v)| *v = if i % 2 == 0 { 1e38 } else { -1e38 });
    io::write(desk.path("huge.tif"), &Picture::new(image, Depth::Float)).unwrap();
    desk.refuses(&["denoise", "huge.tif"], &["huge.tif", "32 bits"]);
}

/// Point 20.
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let desk = Desk::new();
    let name = "a\u{1b}]0;owned\u{7}\u{202e}.png";
    std::fs::write(desk.path(name), "no picture").unwrap();
    let output = desk.command(&["denoise", name]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("\\u{1b}]0;owned\\u{7}\\u{202e}.png"), "{said}");
    let model = desk.model("m.safetensors", 1);
    let mut told = proxlift::model::Model::load(&model).unwrap();
    told.provenance.insert("trainer".into(), "\u{1b}[2J".into());
    told.save(&model).unwrap();
    let (out, err) = desk.succeeds(&["inspect", "m.safetensors"]);
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}') && out.contains("\\u{1b}[2J"), "{out}");
}

/// Point 21: the instruction set is a choice, and the same one gives the same bits.
#[test]
fn the_instruction_set_can_be_chosen() {
    let desk = Desk::new();
    desk.picture("a.tif", Channels::Grey, Depth::Float, false);
    let run = |out: &str, more: &[&str], variable: Option<&str>| {
        let arguments = [&["denoise", "a.tif", "--sigma", "0.1", "-o", out], more].concat();
        let mut command = desk.command(&arguments);
        if let Some(value) = variable {
            command.env("PROXLIFT_SIMD", value);
        }
        assert!(command.output().unwrap().status.success());
        io::read(desk.path(out)).unwrap().image
    };
    let best = run("best.tif", &[], None);
    if cfg!(target_arch = "x86_64") {
        let flag = run("flag.tif", &["--simd", "sse2"], None);
        let variable = run("variable.tif", &[], Some("sse2"));
        assert_eq!(flag, variable);
        let apart = flag.data().iter().zip(best.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-5, "{apart}");
    }
    desk.refuses(&["denoise", "a.tif", "--simd", "abacus"], &["abacus", "best"]);
}

/// Point 13: a folder is scored a few pictures at a time, and a bad file is told.
#[test]
fn bad_pictures_of_a_test_set_are_skipped_and_counted() {
    let desk = Desk::new();
    (0..5).for_each(|i| drop(desk.grey(&format!("set/{i}.png"))));
    desk.text("set/bad.png");
    let (out, err) = desk.succeeds(&["evaluate", "--data", "set", "--model", "small", "--json"]);
    assert!(out.contains("\"images\": 5") && out.contains("\"skipped\": 1"), "{out}");
    assert!(err.contains("bad.png"), "{err}");
}

/// Point 12, WebP: its frames, too.
#[test]
fn in_place_no_frame_of_a_webp_is_lost() {
    let desk = Desk::new();
    std::fs::write(desk.path("moving.webp"), common::ANIMATED_WEBP).unwrap();
    desk.refuses(
        &["denoise", "moving.webp", "--overwrite", "-o", "moving.webp"],
        &["moving.webp", "animation", "only the first frame"],
    );
    let (_, err) = desk.succeeds(&["denoise", "moving.webp", "--sigma", "0.1", "-o", "first.webp"]);
    assert!(err.contains("animation"), "{err}");
}
