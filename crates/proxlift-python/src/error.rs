//! The library's errors as Python's.

use proxlift::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};

/// `ValueError` for what was given, `OSError` for what the system refuses.
pub fn to_python(error: Error) -> PyErr {
    match error {
        Error::Invalid(_) | Error::File { .. } => PyValueError::new_err(error.to_string()),
        Error::Diverged { .. } => PyRuntimeError::new_err(error.to_string()),
        Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        Error::Io { path, source } => {
            let code = source.raw_os_error();
            match code {
                // Python makes FileNotFoundError, PermissionError, .. of the number.
                Some(code) => {
                    let said = source.to_string();
                    let said = said.split(" (os error").next().unwrap_or_default().to_string();
                    PyOSError::new_err((code, said, path))
                }
                None => PyOSError::new_err(format!("{}: {source}", path.display())),
            }
        }
    }
}
