//! Pictures, models and the program itself, for all tests.
#![allow(dead_code, missing_docs)]

use assert_cmd::Command;
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::image::noise::add_gaussian;
use proxlift::image::{Channels, Image};
use proxlift::model::{Model, Provenance};
use proxlift::network::{Architecture, Network};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An animation of one frame of one pixel.
pub const ANIMATED_WEBP: &[u8] =
    b"RIFFR\0\0\0WEBPVP8X\x0a\0\0\0\x12\0\0\0\0\0\0\0\0\0ANIM\x06\0\0\0\xff\xff\xff\xff\0\0\
    ANMF&\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0d\0\0\0VP8L\x0d\0\0\0/\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0";

/// A folder of its own for each test.
pub struct Desk(TempDir);

impl Desk {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A noisy picture of 40 x 32 pixels in a file.
    pub fn picture(&self, name: &str, channels: Channels, depth: Depth, alpha: bool) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let clean = clean(channels);
        let noisy = add_gaussian(&clean, 0.1, 1, 0).unwrap();
        let alpha = alpha.then(|| (0..clean.pixels()).map(|i| (i % 256) as f32 / 255.0).collect());
        io::write(&path, &Picture { alpha, ..Picture::new(noisy, depth) }).unwrap();
        path
    }

    /// An 8-bit grey picture.
    pub fn grey(&self, name: &str) -> PathBuf {
        self.picture(name, Channels::Grey, Depth::Eight, false)
    }

    /// An untrained model whose output differs from its input.
    pub fn model(&self, name: &str, channels: usize) -> PathBuf {
        let path = self.path(name);
        let architecture = Architecture { depth: 4, features: 6, kernel: 3, channels };
        let network = Network::glorot(architecture, 0.1, 1).unwrap();
        let provenance = Provenance::from([("trainer".to_string(), "none at all".to_string())]);
        Model { network, sigma: 0.1, noise: Default::default(), provenance }.save(&path).unwrap();
        path
    }

    pub fn text(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "just text").unwrap();
        path
    }

    /// Every file, with its bytes.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, found);
                } else {
                    found.push((path.clone(), std::fs::read(&path).unwrap()));
                }
            }
        }
        let mut found = Vec::new();
        walk(self.0.path(), &mut found);
        found.sort();
        found
    }

    /// Runs the program; it must succeed. What it says on stdout and stderr.
    pub fn succeeds(&self, arguments: &[&str]) -> (String, String) {
        Self::success(self.command(arguments), arguments)
    }

    /// The same by one process, whoever trains else.
    pub fn succeeds_alone(&self, arguments: &[&str]) -> (String, String) {
        Self::success(self.program(arguments), arguments)
    }

    fn success(mut command: Command, arguments: &[&str]) -> (String, String) {
        let output = command.output().unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{arguments:?} failed: {err}");
        (out, err)
    }

    /// Runs the program; it must exit with 2, say one line that holds all `words`, and change no file.
    pub fn refuses(&self, arguments: &[&str], words: &[&str]) {
        let before = self.contents();
        let output = self.command(arguments).output().unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.starts_with("error: ") && err.lines().count() == 1, "{arguments:?}: {err}");
        let mut parts: Vec<&str> = err.trim().split(": ").collect();
        parts.dedup();
        assert_eq!(parts.join(": "), err.trim(), "said twice");
        for word in words {
            assert!(err.contains(word), "{arguments:?} should say {word}: {err}");
        }
        assert_eq!(out, "", "{arguments:?}");
        assert!(before == self.contents(), "{arguments:?} changed files");
    }

    /// The program, in this folder. With `PROXLIFT_TRAIN` in the environment, such as `mpirun -n 2 proxlift-mpi`, that trains.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let other = std::env::var("PROXLIFT_TRAIN").ok().filter(|_| arguments.contains(&"train"));
        let Some(other) = other else { return self.program(arguments) };
        let mut words = other.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words).current_dir(self.0.path()).args(arguments);
        command
    }

    fn program(&self, arguments: &[&str]) -> Command {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("proxlift");
        command.current_dir(self.0.path()).args(arguments);
        command
    }
}

pub fn clean(channels: Channels) -> Image {
    dead_leaves(3, 0, 32, 40, channels).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
