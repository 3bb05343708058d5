//! Runs that were stopped, at leisure or by force, end in the same bits as those that were not.
#![allow(missing_docs)]

mod common;

use common::Desk;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TINY: &[&str] = &[
    "train",
    "-q",
    "--depth=3",
    "--features=4",
    "--count=16",
    "--patch=12",
    "--batch=5",
    "--threads=1",
    "--test=test",
];

/// A folder with a small test set, which is quickly scored.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.grey("test/a.png");
    desk
}

/// Every kind of trainer, with all the state that there is.
const KINDS: &[&[&str]] = &[
    &[],
    &["--metric", "gauss-newton"],
    &[
        "--metric",
        "kronecker",
        "--unrolling",
        "strongly-convex",
        "--knots",
        "2",
        "--border",
        "3",
        "--step-scale",
        "4",
    ],
    &["--preset", "paper"],
    &["--preset", "paper", "--batch-end", "2"],
    &["--preset", "backtracking", "--batch-end=8"],
    &["--preset", "adam", "--metric", "kronecker"],
    &["--metric", "gauss-newton", "--rate", "backtracking", "--u", "persistent"],
    &["--metric", "diagonal", "--rate", "backtracking", "--u-step", "backtracked"],
    &["--theta-steps", "global", "--u-step", "minimiser"],
    &["--u", "persistent", "--inner", "2"],
    &["--u", "persistent", "--order", "simultaneous"],
    &["--teacher", "small", "--taught", "0.5", "--metric", "kronecker"],
    &["--trainer", "sgd"],
    &["--trainer", "momentum"],
    &["--trainer", "adam"],
];

/// The history without its times.
fn history(run: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(run.join("history.jsonl")).unwrap();
    let line = |line: &str| {
        let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
        entry.as_object_mut().unwrap().remove("seconds");
        entry
    };
    text.lines().map(line).collect()
}

fn assert_same(desk: &Desk, a: &str, b: &str) {
    let (a, b) = (desk.path(a), desk.path(b));
    for name in ["last.safetensors", "model.safetensors", "before-after.png", "training.svg"] {
        let read = |run: &Path| std::fs::read(run.join(name)).unwrap();
        assert!(read(&a) == read(&b), "{name} of {} and {}", a.display(), b.display());
    }
    assert_eq!(history(&a), history(&b));
}

#[test]
fn every_trainer_goes_on_to_the_same_bits() {
    let desk = desk();
    for (i, kind) in KINDS.iter().enumerate() {
        let (whole, parts) = (format!("whole-{i}"), format!("parts-{i}"));
        desk.succeeds_alone(&[TINY, kind, &["--epochs=3", "--out", &whole]].concat());
        desk.succeeds(&[TINY, kind, &["--epochs=3", "--stop-after=1", "--out", &parts]].concat());
        assert!(!desk.path(&parts).join("result.json").exists());
        desk.succeeds(&["train", "-q", "--resume", &parts, "--stop-after=2"]);
        let last = ["train", "-q", "--resume", &parts, "--threads=2"];
        if i % 2 == 0 {
            desk.succeeds(&last)
        } else {
            desk.succeeds_alone(&last)
        };
        assert_same(&desk, &whole, &parts);
    }
}

#[test]
fn a_grid_goes_on_to_the_same_bits_and_repeats_no_rate() {
    let desk = desk();
    let grid = ["--trainer", "sgd", "--rate-grid", "1e-6,1e-3,1e9", "--epochs=3"];
    for (i, more) in [&[][..], &["--grid-epochs=2"][..]].into_iter().enumerate() {
        let (whole, parts) = (format!("whole-{i}"), format!("parts-{i}"));
        let (out, _) = desk.succeeds(&[TINY, &grid, more, &["--out", &whole]].concat());
        assert!(out.contains("1e-3") && out.contains("diverged") && out.contains("chosen"), "{out}");
        let text = std::fs::read_to_string(desk.path(&whole).join("grid.json")).unwrap();
        let kept: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(kept["winner"].as_f64(), Some(1e-3), "{text}");
        assert!(kept["trials"][0]["loss"].as_f64() > kept["trials"][1]["loss"].as_f64(), "{text}");
        assert!(kept["trials"][2]["loss"].is_null(), "{text}");

        desk.succeeds(&[TINY, &grid, more, &["--stop-after=1", "--out", &parts]].concat());
        assert!(!desk.path(&parts).join("grid.json").exists(), "stopped in the first rate");
        desk.succeeds(&["train", "-q", "--resume", &parts, "--stop-after=1"]);
        // With their times, which a second training would change.
        let lines = || std::fs::read_to_string(desk.path(&parts).join("grid/1e-6/history.jsonl")).unwrap();
        let first = lines();
        desk.succeeds(&["train", "-q", "--resume", &parts]);
        assert!(lines().starts_with(&first) && first.lines().count() == 2, "not trained again");
        assert_same(&desk, &whole, &parts);
        assert_eq!(history(&desk.path(&parts)).len(), 3);
    }
}

/// Starts a run of many short epochs and waits until it has a checkpoint and more epochs than that.
fn started(desk: &Desk, out: &str) -> Child {
    let command = desk.command(&[TINY, &["--epochs=100", "--out", out]].concat());
    let mut child = Command::new(command.get_program())
        .args(command.get_args())
        .current_dir(desk.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let epochs = || {
        let text = std::fs::read_to_string(desk.path(out).join("history.jsonl"));
        text.map_or(0, |text| text.lines().count())
    };
    while !(epochs() > 3 && desk.path(out).join("checkpoint/latest.safetensors").exists()) {
        assert!(child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn a_run_that_was_killed_goes_on_to_the_same_bits() {
    let desk = desk();
    let mut child = started(&desk, "killed");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!desk.path("killed/result.json").exists());
    desk.succeeds(&["train", "-q", "--resume", "killed"]);
    desk.succeeds(&[TINY, &["--epochs=100", "--out", "whole"]].concat());
    assert_same(&desk, "whole", "killed");
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_a_checkpoint_of_the_last_epoch() {
    let desk = desk();
    let child = started(&desk, "stopped");
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let epochs = history(&desk.path("stopped")).len();
    let (_, err) = desk.succeeds(&["train", "--resume", "stopped"]);
    assert!(err.contains(&format!("stopped after epoch {epochs}\n")), "{err}");
}

#[test]
fn a_run_that_only_lacks_its_report_gets_it() {
    let desk = desk();
    desk.succeeds(&[TINY, &["--epochs=2", "--out", "a"]].concat());
    std::fs::remove_file(desk.path("a/result.json")).unwrap();
    desk.succeeds(&["train", "--resume", "a"]);
    assert!(desk.path("a/result.json").exists());
}

#[test]
fn runs_of_version_0_1_are_resumed() {
    let desk = desk();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/version-0.1");
    for name in ["adam", "accelerated"] {
        for file in [
            "config.toml",
            "history.jsonl",
            "best.safetensors",
            "last.safetensors",
            "checkpoint/latest.safetensors",
        ] {
            let to = desk.path(name).join(file);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            std::fs::copy(kept.join(name).join(file), to).unwrap();
        }
        let (_, err) = desk.succeeds(&["train", "--resume", name]);
        assert!(err.contains("proxlift 0.1") && err.contains("after epoch 1"), "{err}");
        assert_eq!(history(&desk.path(name)).len(), 3);
        assert!(desk.path(name).join("model.safetensors").is_file());
        assert!(!desk.path(name).join("best.safetensors").exists());
    }
}
