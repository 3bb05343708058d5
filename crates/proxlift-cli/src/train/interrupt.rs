//! Ctrl-C: once to stop after the epoch, twice to stop at once.

use crate::output;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// What a shell expects of a program that was interrupted.
pub const EXIT_CODE: i32 = 130;

/// Listens from now on; also to the signals that systems send before they shut down.
pub fn listen() {
    let heard = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE);
        }
        output::note("stopping after this epoch; once more to stop at once, back to the last checkpoint");
    });
    if let Err(error) = heard {
        output::warn(format_args!(
            "Ctrl-C will stop the training at once, back to the last checkpoint: {error}"
        ));
    }
}

/// Whether to stop after this epoch.
pub fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
