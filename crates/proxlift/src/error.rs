//! What can go wrong, each in one sentence that says what to do.

use std::path::{Path, PathBuf};

/// The result of every fallible function of the library.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the library refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An argument is outside what the mathematics allows (even kernel, sigma < 0, K < 2, ...).
    #[error("{0}")]
    Invalid(String),
    /// Whoever watched the work ended it.
    #[error("the work was cancelled")]
    Cancelled,
    /// A training left the finite numbers, or all sense.
    #[error("the training diverged in epoch {epoch}: choose a smaller rate")]
    Diverged {
        /// Where it did.
        epoch: usize,
    },
    /// A file or folder could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is not what it should be: not an image, not a model, truncated, too large.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        reason: String,
    },
}

impl Error {
    /// An [`Error::Invalid`] from anything that prints.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid(reason.into())
    }

    /// An [`Error::File`] about `path`.
    pub fn file(path: impl AsRef<Path>, reason: impl Into<String>) -> Self {
        Self::File { path: path.as_ref().to_path_buf(), reason: reason.into() }
    }

    /// Turns an I/O error into one that names `path`; made for `map_err`.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { path, source }
    }
}

/// An [`Error::Invalid`] from a format and its arguments.
macro_rules! invalid {
    ($($reason:tt)+) => {
        $crate::Error::Invalid(format!($($reason)+))
    };
}

/// Returns with a sentence, if something is wrong.
macro_rules! refuse {
    ($wrong:expr => $($reason:tt)+) => {
        if $wrong {
            return Err(invalid!($($reason)+));
        }
    };
}

/// Refuses a number that is negative, NaN or infinite; `what` it is stands first in the sentence.
pub fn check_not_negative(what: &str, value: f64) -> Result<()> {
    let fine = value.is_finite() && value >= 0.0;
    refuse!(!fine => "{what} is {value}, but it must be a finite number, 0 or more");
    Ok(())
}
