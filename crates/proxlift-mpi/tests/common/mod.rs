//! Jobs of several processes on this machine. To be run by `.ci/mpi`: they need `mpirun`.

use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::Channels;
use proxlift::image::io::{self, Depth, Picture};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_proxlift-mpi");
pub const TINY: &[&str] =
    &["-q", "train", "--depth=3", "--features=4", "--count=20", "--patch=12", "--threads=1"];

/// A job that is to fail takes so long at most, one that has work to do so long, however loaded the machine is.
pub const SECONDS: u64 = 45;
const WORK_SECONDS: u64 = 240;

/// `mpirun` in a folder.
pub fn mpirun(folder: &Path) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["-q", "--oversubscribe"]).current_dir(folder);
    // Containers run everything as root.
    command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// So many processes with the same flags.
#[allow(dead_code)]
pub fn many(folder: &Path, processes: usize, flags: &[&str]) -> Command {
    let mut command = mpirun(folder);
    command.args(["-n", &processes.to_string(), PROGRAM]).args(flags);
    command
}

/// What a job said, which succeeded.
#[allow(dead_code)]
pub fn succeeds(mut command: Command) -> (String, String) {
    let (output, said) = ended_within(command.spawn().unwrap(), WORK_SECONDS);
    assert!(output.status.success(), "{said}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), said)
}

/// What a job came to, which must not hang.
#[allow(dead_code)]
pub fn ended(child: Child) -> (Output, String) {
    ended_within(child, SECONDS)
}

fn ended_within(mut child: Child, seconds: u64) -> (Output, String) {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > Duration::from_secs(seconds) {
            child.kill().unwrap();
            panic!("the job hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

/// Pictures that take as many bytes whatever is on them.
pub fn paint(folder: &Path, seed: u64, count: usize, side: usize) {
    fs::create_dir(folder).unwrap();
    for i in 0..count {
        let image = dead_leaves(seed, i as u64, side, side, Channels::Grey).unwrap();
        io::write(folder.join(format!("{i:02}.pgm")), &Picture::new(image, Depth::Eight)).unwrap();
    }
}
