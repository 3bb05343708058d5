//! Everything that is printed: results on stdout; progress, notes, warnings and errors on stderr.
//!
//! Nothing here panics when the other end is closed, as `println!` would.

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};

static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether nothing at all is printed to stderr.
static MUTE: AtomicBool = AtomicBool::new(false);

/// The bar on the screen, which must step aside for a line of text.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

thread_local! {
    /// The file that this thread works on, to be named in warnings.
    static SUBJECT: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Sets up this module; to be called once, before any work.
pub fn start(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    // Only fails when a subscriber is already there.
    let _ = tracing::subscriber::set_global_default(Warnings);
}

/// The same for one of several processes, which is silent unless it is the first.
pub fn start_one_of(first: bool) {
    MUTE.store(!first, Ordering::Relaxed);
    start(!first);
}

pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Nothing more is told.
pub fn be_silent() {
    MUTE.store(true, Ordering::Relaxed);
}

/// A process that was silent has something to tell.
pub fn speak() {
    MUTE.store(false, Ordering::Relaxed);
}

pub fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).context("cannot write to standard output")
}

/// All of a stream.
pub fn copy(from: &mut impl std::io::Read) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    std::io::copy(from, &mut stdout).and_then(|_| stdout.flush()).context("cannot write to standard output")
}

/// Whether stdout was closed by its reader, who has seen enough (`| head`).
pub fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A line of results on stdout.
pub fn line(text: impl fmt::Display) -> anyhow::Result<()> {
    write(format!("{}\n", harmless(&text.to_string())).as_bytes())
}

/// One JSON value on stdout, indented.
pub fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string_pretty(value)?)
}

/// Something worth knowing, on stderr; not with `--quiet`.
pub fn note(text: impl fmt::Display) {
    if !QUIET.load(Ordering::Relaxed) {
        to_stderr(&text.to_string());
    }
}

pub fn warn(text: impl fmt::Display) {
    complain("warning", &text.to_string());
}

/// `kind: text` on one line of stderr, whatever line breaks a file's name or a library's message may hold.
pub fn complain(kind: &str, text: &str) {
    to_stderr(&format!("{kind}: {}", text.split(['\n', '\r']).collect::<Vec<_>>().join(" ")));
}

/// Text without characters that a terminal would obey, which names of files and the provenance of models may hold: they
/// are shown as `\u{1b}`. Lines and tabs stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || turns(c);
    if !text.contains(obeyed) {
        return text.into();
    }
    let shown = |c: char| if obeyed(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { c.to_string() };
    text.chars().map(shown).collect::<String>().into()
}

fn to_stderr(text: &str) {
    if MUTE.load(Ordering::Relaxed) {
        return;
    }
    let print = || {
        // Nobody is left to be told when stderr is closed.
        let _ = writeln!(std::io::stderr(), "{}", harmless(text));
    };
    match &*bar_slot() {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// Runs `f`; warnings of this thread meanwhile name `path`.
pub fn about<R>(path: &Path, f: impl FnOnce() -> R) -> R {
    let before = SUBJECT.replace(Some(path.to_path_buf()));
    let result = f();
    SUBJECT.set(before);
    result
}

fn bar_slot() -> std::sync::MutexGuard<'static, Option<ProgressBar>> {
    BAR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A progress bar over `steps` pieces of work, invisible with `--quiet` or without a terminal; it leaves with its last
/// owner's `drop`.
pub struct Progress(ProgressBar);

impl Progress {
    pub fn new(steps: usize, what: &str) -> Self {
        Self::styled(steps, what, "{prefix} {wide_bar} {pos}/{len}, {eta} left")
    }

    /// Shows a bar that tells in its own words how far it is, see [`Progress::show`]; `done` steps are done already.
    pub fn with_text(done: usize, steps: usize) -> Self {
        let progress = Self::styled(steps, "", "{wide_bar} {msg}, {eta} left");
        progress.0.set_position(done as u64);
        progress.0.reset_eta();
        progress.0.set_message("starting");
        progress
    }

    fn styled(steps: usize, what: &str, template: &str) -> Self {
        let shown = steps > 1 && !QUIET.load(Ordering::Relaxed) && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template(template);
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_prefix(what.to_string());
        if shown {
            *bar_slot() = Some(bar.clone());
        }
        Self(bar)
    }

    /// `done` pieces are done, in these words.
    pub fn show(&self, done: usize, text: String) {
        self.0.set_position(done as u64);
        self.0.set_message(text);
    }

    pub fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        bar_slot().take();
        self.0.finish_and_clear();
    }
}

/// Shows the library's warnings as `warning: ...` lines, and nothing else of what it traces.
struct Warnings;

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        match SUBJECT.with_borrow(Clone::clone) {
            Some(path) => warn(format_args!("{}: {}", path.display(), message.0)),
            None => warn(message.0),
        }
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
