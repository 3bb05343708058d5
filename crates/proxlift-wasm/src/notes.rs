//! The library's warnings, such as that only the first frame of an animation is read: kept for the page to show.

use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listener;

/// Takes the message out of an event.
struct Message<'a>(&'a mut String);

impl Visit for Message<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            *self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("proxlift")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut Message(&mut text));
        NOTES.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

pub fn listen() {
    let _ = tracing::subscriber::set_global_default(Listener);
}

/// What was said since the last call.
pub fn take() -> Vec<String> {
    std::mem::take(&mut NOTES.lock().unwrap_or_else(PoisonError::into_inner))
}
