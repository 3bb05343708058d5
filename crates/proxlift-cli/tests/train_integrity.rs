//! A run in its folder: one process, its own pictures, checkpoints that are whole.
#![cfg(unix)]
#![allow(missing_docs)]

mod common;

use common::Desk;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SMALL: [&str; 12] =
    ["--depth", "3", "--features", "3", "--patch", "16", "--count", "8", "--knots", "0", "--out", "run"];

/// Four pictures to train on, and a run on them that was stopped after its second epoch of four.
fn begun() -> Desk {
    let desk = Desk::new();
    (0..4).for_each(|i| drop(desk.grey(&format!("data/{i}.png"))));
    let arguments = [&["train", "--data", "data", "--epochs", "4", "--stop-after", "2"], &SMALL[..]].concat();
    desk.succeeds(&arguments);
    desk
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        match entry.path().is_dir() {
            true => copy_all(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap()),
        }
    }
}

/// Point 4.
#[test]
fn a_run_is_not_resumed_on_other_pictures() {
    let desk = begun();
    let away = desk.path("away.png");
    std::fs::rename(desk.path("data/1.png"), &away).unwrap();
    desk.refuses(&["train", "--resume", "run"], &["1 missing (1.png)", "--accept-changed-data"]);
    std::fs::copy(desk.path("data/2.png"), desk.path("data/1.png")).unwrap();
    std::fs::copy(&away, desk.path("data/9.png")).unwrap();
    std::fs::write(desk.path("data/1.png"), [std::fs::read(&away).unwrap(), vec![0]].concat()).unwrap();
    desk.refuses(&["train", "--resume", "run"], &["1 new (9.png)", "1 changed (1.png)"]);
    desk.succeeds(&["train", "--resume", "run", "--accept-changed-data"]);
}

/// Point 5.
#[test]
fn a_damaged_checkpoint_is_named_and_the_one_before_it_offered() {
    let desk = begun();
    copy_all(&desk.path("run"), &desk.path("copy"));
    desk.succeeds(&["train", "--resume", "copy", "-q"]);
    let latest = desk.path("run/checkpoint/latest.safetensors");
    let whole = std::fs::read(&latest).unwrap();
    let mut damaged = whole.clone();
    let at = damaged.len() - 7;
    damaged[at] ^= 4;
    std::fs::write(&latest, damaged).unwrap();
    desk.refuses(
        &["train", "--resume", "run"],
        &["latest.safetensors", "checksum", "of epoch 1", "--previous"],
    );
    desk.succeeds(&["train", "--resume", "run", "--previous", "-q"]);
    for name in ["last.safetensors", "model.safetensors"] {
        let read = |folder: &str| std::fs::read(desk.path(folder).join(name)).unwrap();
        assert!(read("run") == read("copy"), "{name}");
    }
    assert_eq!(std::fs::read_to_string(desk.path("run/history.jsonl")).unwrap().lines().count(), 4);
}

/// Run files: a history that was changed is told.
#[test]
fn a_history_that_was_changed_is_told() {
    let desk = begun();
    let path = desk.path("run/history.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"epoch\":1", "\"epoch\":7", 1)).unwrap();
    desk.refuses(&["train", "--resume", "run"], &["history.jsonl", "not as the run left it"]);
}

fn spawned(desk: &Desk, arguments: &[&str]) -> Child {
    let program = assert_cmd::cargo::cargo_bin!("proxlift");
    let mut command = Command::new(program);
    command.current_dir(desk.path("")).args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Point 3.
#[test]
fn of_processes_that_race_for_a_folder_one_wins() {
    let desk = Desk::new();
    let more = ["--epochs", "60"];
    let arguments = [&["train", "-q"], &SMALL[..], &more].concat();
    let race = |arguments: &[&str]| {
        let children: Vec<Child> = (0..4).map(|_| spawned(&desk, arguments)).collect();
        let ended = children.into_iter().map(|child| child.wait_with_output().unwrap());
        let (won, lost): (Vec<_>, Vec<_>) = ended.partition(|output| output.status.success());
        for lost in &lost {
            let said = String::from_utf8_lossy(&lost.stderr);
            assert_eq!(lost.status.code(), Some(2), "{said}");
            assert!(said.contains("process ") || said.contains("not empty"), "{said}");
        }
        won.len()
    };
    assert_eq!(race(&arguments), 1);
    std::fs::remove_dir_all(desk.path("run")).unwrap();
    let arguments = [&arguments[..], &["--stop-after", "2"]].concat();
    desk.succeeds(&arguments);
    assert_eq!(race(&["train", "-q", "--resume", "run"]), 1);
    assert_eq!(std::fs::read_to_string(desk.path("run/history.jsonl")).unwrap().lines().count(), 60);
}

/// The same for reproductions, which all sessions would otherwise write into.
#[test]
fn of_processes_that_race_for_a_reproduction_one_wins() {
    let desk = Desk::new();
    let arguments = ["reproduce", "-q", "--tiny", "--only", "figure1", "--out", "r"];
    let children: Vec<Child> = (0..4).map(|_| spawned(&desk, &arguments)).collect();
    let ended = children.into_iter().map(|child| child.wait_with_output().unwrap());
    let (won, lost): (Vec<_>, Vec<_>) = ended.partition(|output| output.status.success());
    for lost in &lost {
        let said = String::from_utf8_lossy(&lost.stderr);
        assert_eq!(lost.status.code(), Some(2), "{said}");
        assert!(said.contains("process ") && said.contains("working in this folder"), "{said}");
    }
    assert_eq!(won.len(), 1);
    // It can be gone on with afterwards, and what a process that was killed left at once does not keep the next out.
    desk.succeeds(&arguments);
    std::fs::remove_dir_all(desk.path("r")).unwrap();
    std::fs::create_dir(desk.path("r")).unwrap();
    for name in ["r/.lock", "r/.proxlift-1-0.partial"] {
        std::fs::write(desk.path(name), "").unwrap();
    }
    desk.succeeds(&arguments);
}

/// What a reproduction goes on from is not taken when a bit of it has changed.
#[test]
fn a_damaged_outcome_is_trained_again() {
    let desk = Desk::new();
    let arguments = ["reproduce", "-q", "--tiny", "--only", "figure1", "--out", "r"];
    desk.succeeds(&arguments);
    let kept = || desk.contents().into_iter().find(|(path, _)| path.ends_with("history.json")).unwrap();
    let (path, whole) = kept();
    let text = String::from_utf8(whole).unwrap();
    let at = text.find("\"loss\": ").unwrap() + 8;
    let digit = if &text[at + 3..at + 4] == "1" { "2" } else { "1" };
    std::fs::write(&path, [&text[..at + 3], digit, &text[at + 4..]].concat()).unwrap();
    desk.succeeds(&arguments);
    let again = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
    let losses = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains("\"loss\"")).map(Into::into).collect()
    };
    assert_eq!(losses(&again), losses(&text));
}
