//! To come.
use super::common::Source;
use super::{Allowance, Decoded, Raster};
use std::io::Write;
pub(super) fn decode(_: &mut dyn Source, _: Allowance) -> Decoded<Raster> {
    Err("to come".into())
}
pub(super) fn encode(_: &Raster, _: &mut dyn Write) -> Decoded<()> {
    Err("to come".into())
}
