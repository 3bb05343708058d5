//! Tells the program which commit it is built from, for the reports it writes.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string())
}

fn main() {
    // A commit and a change of the sources both change what is built.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=../proxlift/src");
    if let Some(commit) = git(&["describe", "--always", "--dirty=, changed", "--abbrev=12", "--exclude=*"]) {
        println!("cargo:rustc-env=PROXLIFT_COMMIT={commit}");
    }
}
