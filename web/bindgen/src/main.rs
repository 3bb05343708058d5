//! `proxlift-bindgen MODULE.wasm FOLDER`: the module as browsers need it, and the script that calls it.
//!
//! It is what the program `wasm-bindgen` does, without its test runner and web server, which take minutes to compile; and its
//! version is held to the module's by `Cargo.lock`.

use anyhow::{Context, Result};
use std::env::args_os;
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let mut paths = args_os().skip(1);
    let mut path = || paths.next().context("usage: proxlift-bindgen MODULE.wasm FOLDER");
    let (module, folder) = (path()?, path()?);
    Bindgen::new().input_path(module).web(true)?.typescript(true).remove_name_section(true).generate(folder)
}
