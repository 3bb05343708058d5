//! Errors as sentences.

use wasm_bindgen::JsError;

/// Of the library, for the page.
pub fn told(error: proxlift::Error) -> JsError {
    said(error.to_string())
}

/// Of anything that speaks for itself.
pub fn said(reason: impl ToString) -> JsError {
    JsError::new(&reason.to_string())
}
