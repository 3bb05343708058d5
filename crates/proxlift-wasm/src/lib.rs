//! What the page in `web/` calls: thin conversions around the library, one instance in each worker.
//!
//! A [`Document`](document::Document) is a file with its result, in the depth of the file; [`Worker`](worker::Worker)
//! denoises its tiles elsewhere, and [`Layers`](layers::Layers) opens the network for the second tab.

mod cutting;
mod document;
mod error;
mod layers;
mod notes;
mod options;
mod sample;
mod view;
mod worker;

use wasm_bindgen::prelude::*;

/// The most memory that an instance may ask for: browsers end tabs that take much more.
const MOST_MEMORY: u64 = 2 << 30;

/// Called once by every worker.
#[wasm_bindgen(start)]
pub fn start() {
    proxlift::memory::limit_to(MOST_MEMORY);
    notes::listen();
}

/// Gives a worker a file of the library's models, which it needs before that is first used.
#[wasm_bindgen]
pub fn provide(file: &str, bytes: Vec<u8>) {
    proxlift::storage::provide(file, bytes);
}
