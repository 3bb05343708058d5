//! The program itself, with every call to the disk failing in turn: a training run resumes to the same bits, and a picture
//! is as it was or done. A crash comes at every call, the other faults at every fifth, unless `PROXLIFT_ALL_FAULTS` is set:
//! then all of them come at every call, which takes minutes.
#![cfg(unix)]
#![allow(missing_docs)]

mod common;

use common::Desk;
use std::path::Path;

const FAULTS: [&str; 6] = ["full", "short", "unsynced", "unnamed", "denied", "crash"];

/// The faults at a call.
fn faults(at: usize) -> impl Iterator<Item = &'static str> {
    let all = std::env::var_os("PROXLIFT_ALL_FAULTS").is_some();
    let wanted = move |&(i, fault): &(usize, &str)| all || fault == "crash" || (at + i).is_multiple_of(5);
    FAULTS.into_iter().enumerate().filter(wanted).map(|(_, fault)| fault)
}

fn run(desk: &Desk, arguments: &[&str], fault: &str, at: usize) -> bool {
    let output =
        desk.command(arguments).env("PROXLIFT_TEST_FAULT", format!("{fault} {at}")).output().unwrap();
    output.status.success()
}

fn partials(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".partial")).count()
}

#[test]
fn a_training_run_survives_a_fault_at_every_call() {
    // Few pixels, so that hundreds of runs take seconds.
    let desk = || {
        let desk = Desk::new();
        (0..3).for_each(|i| drop(desk.grey(&format!("data/{i}.png"))));
        desk
    };
    let whole = desk();
    let train = [
        "train",
        "-q",
        "--depth",
        "2",
        "--features",
        "2",
        "--kernel",
        "3",
        "--patch",
        "12",
        "--count",
        "2",
        "--epochs",
        "2",
        "--out",
        "run",
        "--data",
        "data",
        "--test",
        "data",
    ];
    whole.succeeds(&train);
    let bits = |desk: &Desk| {
        ["last.safetensors", "model.safetensors"]
            .map(|name| std::fs::read(desk.path("run").join(name)).unwrap())
    };
    let (mut injected, mut at) = (0, 0);
    // Beyond the last call, nothing goes wrong: that is where it ends.
    loop {
        let mut reached = false;
        for fault in faults(at) {
            let desk = desk();
            let done = run(&desk, &train, fault, at);
            reached |= !done;
            injected += 1;
            if !done {
                // Resumed where there is a checkpoint, else started again.
                let resumed = desk.path("run/checkpoint/latest.safetensors").is_file()
                    && !desk.path("run/result.json").is_file();
                if resumed {
                    desk.succeeds(&["train", "-q", "--resume", "run"]);
                } else if !desk.path("run/result.json").is_file() {
                    let _ = std::fs::remove_dir_all(desk.path("run"));
                    desk.succeeds(&train);
                }
            }
            assert!(bits(&desk) == bits(&whole), "{fault} at {at}");
            let history = std::fs::read_to_string(desk.path("run/history.jsonl")).unwrap();
            assert_eq!(history.lines().count(), 2, "{fault} at {at}");
            assert_eq!(
                partials(&desk.path("run")) + partials(&desk.path("run/checkpoint")),
                0,
                "{fault} at {at}"
            );
        }
        at += 1;
        if !reached {
            break;
        }
    }
    println!("{injected} faults in a training run, at {at} calls");
    assert!(injected > 60, "{injected}");
}

#[test]
fn a_picture_survives_a_fault_at_every_call() {
    let whole = Desk::new();
    let denoise =
        ["denoise", "-q", "a.png", "--model", "small", "--sigma", "0.1", "--overwrite", "-o", "a.png"];
    let before = std::fs::read(whole.grey("a.png")).unwrap();
    whole.succeeds(&denoise);
    let after = std::fs::read(whole.path("a.png")).unwrap();
    let mut injected = 0;
    for at in 0.. {
        let mut reached = false;
        for fault in faults(at) {
            let desk = Desk::new();
            desk.grey("a.png");
            let done = run(&desk, &denoise, fault, at);
            reached |= !done;
            injected += 1;
            let now = std::fs::read(desk.path("a.png")).unwrap();
            assert!(now == after || !done && now == before, "{fault} at {at}");
            if now == before {
                desk.succeeds(&denoise);
                assert!(std::fs::read(desk.path("a.png")).unwrap() == after, "{fault} at {at}");
                assert_eq!(partials(&desk.path("")), 0, "{fault} at {at}");
            }
        }
        if !reached {
            println!("{injected} faults in a denoising, at {at} calls");
            break;
        }
    }
}
