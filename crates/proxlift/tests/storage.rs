//! Files on the disk: modes kept, pipes refused, what dead processes left swept, one process a folder.
#![cfg(unix)]
#![allow(missing_docs)]

use proxlift::storage::{self, Lock, write_atomically};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

fn write(path: &Path, text: &str) {
    write_atomically(path, |file| file.write_all(text.as_bytes()).map_err(proxlift::Error::io(path)))
        .unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o7777
}

#[test]
fn a_file_that_is_replaced_hands_on_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("private");
    for private in [0o600, 0o640, 0o444] {
        write(&path, "before");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(private)).unwrap();
        write(&path, "after");
        assert_eq!(mode(&path), private);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
    }
}

/// Only root may give files away, so only root can test it.
#[test]
fn a_file_that_is_replaced_hands_on_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foreign");
    write(&path, "before");
    if std::os::unix::fs::chown(&path, Some(1234), Some(4321)).is_err() {
        return;
    }
    write(&path, "after");
    let now = path.metadata().unwrap();
    assert_eq!((now.uid(), now.gid()), (1234, 4321));
}

#[test]
fn only_regular_files_are_read_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.png");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let models = proxlift::model::Model::load(&pipe).unwrap_err().to_string();
    let pictures = proxlift::image::io::read(&pipe).unwrap_err().to_string();
    let checkpoints = proxlift::training::Checkpoint::load(&pipe).unwrap_err().to_string();
    for refused in [models, pictures, checkpoints, storage::read_text("/dev/zero").unwrap_err().to_string()] {
        assert!(refused.contains("pipe or a device"), "{refused}");
    }
    assert!(write_atomically(&pipe, |_| Ok(())).unwrap_err().to_string().contains("cannot be replaced"));
    assert!(storage::read(folder.path(), 10, "a model").unwrap_err().to_string().contains("folder"));
}

#[test]
fn partial_files_of_dead_processes_are_swept_and_those_of_living_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let dead = folder.path().join(".proxlift-1-0.partial");
    let living = folder.path().join(".proxlift-2-0.partial");
    let other = folder.path().join("someone.partial");
    [&dead, &living, &other].into_iter().for_each(|path| std::fs::write(path, "half").unwrap());
    let held = std::fs::File::open(&living).unwrap();
    held.lock().unwrap();
    write(&folder.path().join("result"), "whole");
    assert!(!dead.exists() && living.exists() && other.exists());
}

#[test]
fn one_process_has_a_folder_and_the_other_is_told_which() {
    let folder = tempfile::tempdir().unwrap();
    let first = Lock::take(folder.path()).unwrap();
    let refused = Lock::take(folder.path()).unwrap_err().to_string();
    assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
    drop(first);
    let again = Lock::take(folder.path()).unwrap();
    assert!(Lock::is_all_in(folder.path()).unwrap());
    drop(again);
}

/// A process that is being started has copies of all open files until it becomes another program.
#[cfg(unix)]
#[test]
fn a_folder_is_free_at_once_although_processes_are_started() {
    let folder = tempfile::tempdir().unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                std::process::Command::new("true").status().unwrap();
            }
        });
        let taken = (0..2000).try_for_each(|_| Lock::take(folder.path()).map(drop));
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        taken.unwrap();
    });
}

/// A folder from a stranger may hold links: what they lead to is not written to.
#[cfg(unix)]
#[test]
fn links_in_a_folder_are_not_written_to() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "mine").unwrap();
    let run = folder.path().join("run");
    std::fs::create_dir(&run).unwrap();
    for name in [".lock", "history.jsonl"] {
        std::os::unix::fs::symlink(&precious, run.join(name)).unwrap();
    }
    let refused = Lock::take(&run).unwrap_err().to_string();
    assert!(refused.contains("link"), "{refused}");
    assert!(storage::append(&run.join("history.jsonl"), b"more").is_err());
    write(&run.join("history.jsonl"), "new");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "mine");
}

#[test]
fn memory_that_there_is_not_is_refused_in_a_sentence() {
    assert!(proxlift::memory::available().is_none_or(|bytes| bytes > 1 << 20));
    let refused = proxlift::memory::check("this work", u64::MAX / 2);
    if proxlift::memory::available().is_some() {
        assert!(refused.unwrap_err().to_string().contains("this work needs about"));
    }
}
