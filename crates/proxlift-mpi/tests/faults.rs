//! What goes wrong on one of several machines: the whole job ends within seconds, with one sentence, and can be gone on with.
//! To be run by `.ci/mpi`: it needs `mpirun`.
#![allow(missing_docs)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_proxlift-mpi");
const TINY: &[&str] =
    &["-q", "train", "--depth=3", "--features=4", "--count=20", "--patch=12", "--threads=1"];

/// However loaded the machine is.
const SECONDS: u64 = 30;

/// The first process runs one program, the second another one.
fn two(folder: &Path, first: &[&str], second: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["-q", "--oversubscribe", "-n", "1"]).args(first).args([":", "-n", "1"]).args(second);
    command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(mut child: Child) -> (Output, String) {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(SECONDS) {
            child.kill().unwrap();
            panic!("the job hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn assert_one_sentence(said: &str, words: &str) {
    assert!(
        said.starts_with("error: ") && said.trim().lines().count() == 1 && said.contains(words),
        "{said}"
    );
}

fn with<'a>(program: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[program], TINY, more].concat()
}

#[test]
fn programs_that_differ_are_told() {
    let desk = tempfile::tempdir().unwrap();
    let other = desk.path().join("other");
    let mut bytes = fs::read(PROGRAM).unwrap();
    bytes.push(0);
    fs::copy(PROGRAM, &other).unwrap();
    fs::write(&other, bytes).unwrap();
    let (first, second) = (
        with(PROGRAM, &["--out=run", "--epochs=1"]),
        with(other.to_str().unwrap(), &["--out=run", "--epochs=1"]),
    );
    let (output, said) = ended(two(desk.path(), &first, &second).spawn().unwrap());
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_one_sentence(&said, "another program");
    assert!(!desk.path().join("run").exists());
}

#[test]
fn settings_and_pictures_that_differ_are_told() {
    let desk = tempfile::tempdir().unwrap();
    for (folder, files) in [("a", 3), ("b", 2)] {
        fs::create_dir(desk.path().join(folder)).unwrap();
        for i in 0..files {
            let image =
                proxlift::dataset::synthetic::dead_leaves(1, i, 24, 24, proxlift::image::Channels::Grey);
            let picture =
                proxlift::image::io::Picture::new(image.unwrap(), proxlift::image::io::Depth::Eight);
            proxlift::image::io::write(desk.path().join(format!("{folder}/{i}.png")), &picture).unwrap();
        }
    }
    for (one, other, words) in [
        ("--data=a", "--data=b", "process 1 sees 2 files"),
        ("--seed=1", "--seed=2", "process 1 has other settings"),
    ] {
        let (first, second) = (
            with(PROGRAM, &["--out=run", "--epochs=1", one]),
            with(PROGRAM, &["--out=run", "--epochs=1", other]),
        );
        let (output, said) = ended(two(desk.path(), &first, &second).spawn().unwrap());
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_one_sentence(&said, words);
        assert!(!desk.path().join("run").exists());
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

#[test]
fn a_lost_process_ends_the_others_and_the_run_goes_on() {
    let desk = tempfile::tempdir().unwrap();
    let flags = with(PROGRAM, &["--out=run", "--epochs=400"]);
    let second = format!("echo $$ > pid; exec {}", flags.join(" "));
    let child = two(desk.path(), &flags, &["sh", "-c", &second]).spawn().unwrap();
    let start = Instant::now();
    let has_begun = || fs::metadata(desk.path().join("run/checkpoint/latest.safetensors")).is_ok();
    while !has_begun() && start.elapsed() < Duration::from_secs(SECONDS) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let lost = fs::read_to_string(desk.path().join("pid")).unwrap();
    assert!(Command::new("kill").args(["-9", lost.trim()]).status().unwrap().success());
    let (output, said) = ended(child);
    assert!(!output.status.success());
    assert_one_sentence(&said, "a process was lost");
    goes_on(desk.path(), "--epochs=400");
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
