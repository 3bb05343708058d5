//! What goes wrong on one of several machines: the whole job ends within seconds, with one sentence, and can be gone on with.
#![allow(missing_docs)]

mod common;

use common::{PROGRAM, SECONDS, TINY, ended, mpirun, paint};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The first process runs one program, the second another one.
fn two(folder: &Path, first: &[&str], second: &[&str]) -> Command {
    let mut command = mpirun(folder);
    command.args(["-n", "1"]).args(first).args([":", "-n", "1"]).args(second);
    command
}

fn assert_one_sentence(said: &str, words: &str) {
    assert!(
        said.starts_with("error: ") && said.trim().lines().count() == 1 && said.contains(words),
        "{said}"
    );
}

/// The job is refused with one sentence, and leaves nothing.
fn refuses(folder: &Path, first: &[&str], second: &[&str], words: &str) {
    let (output, said) = ended(two(folder, first, second).spawn().unwrap());
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_one_sentence(&said, words);
    assert!(!folder.join("run").exists());
}

fn with<'a>(program: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[program], TINY, more].concat()
}

/// The same by a shell that has something to do first.
fn by_shell(before: &str, flags: &[&str]) -> [String; 3] {
    ["sh".into(), "-c".into(), format!("{before}; exec {}", flags.join(" "))]
}

#[test]
fn programs_that_differ_are_told() {
    let desk = tempfile::tempdir().unwrap();
    let other = desk.path().join("other");
    let mut bytes = fs::read(PROGRAM).unwrap();
    bytes.push(0);
    fs::copy(PROGRAM, &other).unwrap();
    fs::write(&other, bytes).unwrap();
    let more = ["--out=run", "--epochs=1"];
    refuses(desk.path(), &with(PROGRAM, &more), &with(other.to_str().unwrap(), &more), "another program");
}

#[test]
fn settings_and_pictures_that_differ_are_told() {
    let desk = tempfile::tempdir().unwrap();
    for (name, seed, count) in [("three", 1, 3), ("two", 1, 2), ("others", 2, 3)] {
        paint(&desk.path().join(name), seed, count, 24);
    }
    for (one, other, words) in [
        ("--data=three", "--data=two", "process 1 sees 2 files"),
        ("--data=three", "--data=others", "00.pgm: two processes read different contents"),
        ("--seed=1", "--seed=2", "process 1 has other settings"),
        ("--epochs=1", "--rate=many", "--rate"),
    ] {
        let flags = |own| with(PROGRAM, &["--out=run", own]);
        refuses(desk.path(), &flags(one), &flags(other), words);
    }
}

#[test]
fn a_full_disk_ends_all_and_the_run_goes_on_from_its_checkpoint() {
    let desk = tempfile::tempdir().unwrap();
    let flags = with(PROGRAM, &["--out=run", "--epochs=6"]);
    // Only the first process writes to the folder of the run.
    let mut command = two(desk.path(), &flags, &flags);
    let (output, said) = ended(command.env("PROXLIFT_TEST_FAULT", "full 30").spawn().unwrap());
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_one_sentence(&said, "run/");
    goes_on(desk.path(), "--epochs=6");
}

/// A limit to the size of files is a disk that is full for one process and not for the other.
#[test]
fn a_disk_that_is_full_for_one_process_ends_all() {
    let desk = tempfile::tempdir().unwrap();
    let flags = with(PROGRAM, &["--out=run", "--epochs=4000"]);
    let (child, pid) = begun(desk.path(), &flags, 0, "run/checkpoint/latest.safetensors");
    assert!(Command::new("prlimit").args(["--fsize=1024", "--pid", &pid]).status().unwrap().success());
    let (output, said) = ended(child);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_one_sentence(&said, "run/");
    assert!(said.contains("File too large"), "{said}");

    // The second process writes where its pictures do not fit into memory: 39 MB of them to 20.
    paint(&desk.path().join("pictures"), 1, 24, 900);
    let flags = with(PROGRAM, &["--out=other", "--epochs=1", "--data=pictures", "--memory=60M"]);
    let limited = by_shell("ulimit -f 40960", &flags);
    let (output, said) =
        ended(two(desk.path(), &flags, &limited.each_ref().map(String::as_str)).spawn().unwrap());
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_one_sentence(
        &said,
        "the pictures do not fit into memory, and there is no temporary file for them",
    );
    assert!(!desk.path().join("other").exists());
}

#[test]
fn a_lost_process_ends_the_others_and_the_run_goes_on() {
    for lost in [0, 1] {
        let desk = tempfile::tempdir().unwrap();
        let flags = with(PROGRAM, &["--out=run", "--epochs=400"]);
        lose(desk.path(), &flags, lost, "run/checkpoint/latest.safetensors");
        goes_on(desk.path(), "--epochs=400");
    }
}

#[test]
fn a_process_lost_in_a_sweep_ends_it_and_the_same_command_goes_on() {
    let desk = tempfile::tempdir().unwrap();
    let grid = "[fixed]\ndepth = 3\nfeatures = 4\npatch = 12\ncount = 20\nepochs = 300\n[grid]\nseed = [1, 2, 3, 4]\n";
    fs::write(desk.path().join("grid.toml"), grid).unwrap();
    let flags = [PROGRAM, "-q", "sweep", "grid.toml", "--threads=1", "--out=sweep"];
    lose(desk.path(), &flags, 1, "sweep/seed-2/checkpoint/latest.safetensors");
    let output = two(desk.path(), &flags, &flags).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = fs::read_to_string(desk.path().join("sweep/sweep.csv")).unwrap();
    assert_eq!(table.lines().count(), 5, "{table}");
}

/// Two processes that have come so far that the file is there, and the id of one of them.
fn begun(folder: &Path, flags: &[&str], which: usize, file: &str) -> (Child, String) {
    let shell = by_shell("echo $$ > pid", flags);
    let shell: Vec<&str> = shell.iter().map(String::as_str).collect();
    let (first, second) = if which == 0 { (&shell[..], flags) } else { (flags, &shell[..]) };
    let child = two(folder, first, second).spawn().unwrap();
    let start = Instant::now();
    let has_begun = || fs::metadata(folder.join(file)).is_ok();
    while !has_begun() && start.elapsed() < Duration::from_secs(SECONDS) {
        std::thread::sleep(Duration::from_millis(5));
    }
    (child, fs::read_to_string(folder.join("pid")).unwrap().trim().to_string())
}

/// Kills one of two processes when the file is there: the job ends with one sentence.
fn lose(folder: &Path, flags: &[&str], lost: usize, file: &str) {
    let (child, pid) = begun(folder, flags, lost, file);
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    let (output, said) = ended(child);
    assert!(!output.status.success());
    assert_one_sentence(&said, "a process was lost");
}

/// One process goes on with the run, and has in the end what a run without a fault has.
fn goes_on(folder: &Path, epochs: &str) {
    let run = |flags: &[&str]| {
        let output = Command::new(PROGRAM).args(flags).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["-q", "train", "--threads=1", "--resume=run"]);
    run(&[TINY, &["--out=whole", epochs]].concat());
    let last = |run: &str| fs::read(folder.join(run).join("last.safetensors")).unwrap();
    assert!(last("run") == last("whole"));
}
