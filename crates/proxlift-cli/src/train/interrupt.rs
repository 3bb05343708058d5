//! Ctrl-C: once to stop after the epoch, twice to stop at once.

use crate::{neighbours, output};
use proxlift::storage;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// When it was asked first.
static ASKED: OnceLock<Instant> = OnceLock::new();

/// Some programs send a signal to a process and to its group: that is one request, not two.
const ECHO: Duration = Duration::from_millis(300);

/// What a shell expects of a program that was interrupted.
pub const EXIT_CODE: i32 = 130;

/// Listens from now on; also to the signals that systems send before they shut down.
pub fn listen() {
    let heard = ctrlc::set_handler(|| match ASKED.get() {
        Some(first) if first.elapsed() > ECHO => leave(),
        Some(_) => {}
        None => {
            ASKED.get_or_init(Instant::now);
            output::note("stopping after this epoch; once more to stop at once, back to the last checkpoint");
        }
    });
    if let Err(error) = heard {
        output::warn(format_args!(
            "Ctrl-C will stop the training at once, back to the last checkpoint: {error}"
        ));
    }
}

/// Ends the program at the first signal, with nothing half-written left behind: for commands that have nothing to go on
/// from.
pub fn leave_at_once() {
    // Without a handler, partial files are left, which the next run in their folder removes.
    let _ = ctrlc::set_handler(|| leave());
}

/// Ends one of several processes at the first signal. They get one when another process was lost, or by whoever ends them;
/// `go_on` says what to do then.
pub fn leave_as_a_team(go_on: &'static str) {
    let _ = ctrlc::set_handler(move || {
        if neighbours::is_speaker() {
            output::speak();
        }
        output::complain(
            "error",
            &format!(
                "a process was lost, or the job was ended from outside: {go_on}, nothing is lost but the work since the last \
                 checkpoint"
            ),
        );
        // Still there while the others ask.
        std::thread::sleep(ECHO);
        leave()
    });
}

fn leave() -> ! {
    storage::remove_partials();
    std::process::exit(EXIT_CODE)
}

pub fn asked() -> bool {
    ASKED.get().is_some()
}
