//! To come.
use super::common::{Next, Source, Target};
use super::{Allowance, Decoded, Raster};
pub(super) struct Cube<'a>(Box<dyn Source + 'a>);
impl<'a> Cube<'a> {
    pub(super) fn open(source: Box<dyn Source + 'a>, _: Allowance) -> Decoded<Self> {
        Ok(Self(source))
    }
    pub(super) fn count(&self) -> usize {
        1
    }
    pub(super) fn page(&mut self, _: usize) -> Decoded<Raster> {
        let _ = &self.0;
        Err("to come".into())
    }
}
pub(super) fn encode(_: usize, _: &mut Next<'_>, _: &mut dyn Target) -> Decoded<()> {
    Err("to come".into())
}
