//! A picture of any size through a network, in place: never more of it in floats than a part that fits the memory.
//!
//! The result has the same bits as the whole picture at once, rounded to the picture's depth, since a part sees all
//! that its pixels depend on.

use crate::engine::cpu::parts::{Cut, Parts};
use crate::engine::{Cpu, Field};
use crate::image::io::Raster;
use crate::image::{Channels, Image};
use crate::network::Network;
use crate::{Error, Result};
use std::ops::Range;

/// Denoises `raster` in the given `parts`, calling `done` after each.
///
/// Takes the memory of a part, and of two copies of a row of parts in the depth of the picture. A network for
/// gray pictures takes the channels of a colour picture one by one. Alpha stays.
///
/// # Errors
/// When the network was made for colour and the picture is gray.
///
/// # Panics
/// When the parts are those of another size.
pub fn denoise(
    engine: &Cpu,
    network: &Network<f32>,
    raster: &mut Raster,
    parts: &Parts,
    mut done: impl FnMut(),
) -> Result<()> {
    let architecture = network.architecture();
    let channels = raster.kind().count();
    check_channels(network, raster.kind())?;
    // The rows above are needed as they were by the parts below them, which see no further than one row of parts.
    let mut above: Option<(usize, Raster)> = None;
    for rows in parts.rows() {
        let mut result = raster.rows(rows.wanted.clone());
        for columns in parts.columns() {
            let noisy = raster.crop(rows.around.clone(), columns.around.clone());
            let grid = architecture.grid(noisy.height(), noisy.width())?;
            let samples = channels / architecture.channels;
            let z = Field::from_planar(samples, architecture.channels, grid, noisy.data())?;
            let mut output = Field::zeros(samples, architecture.channels, grid);
            let wanted = (inside(rows), inside(columns));
            engine.denoise_part(network, &z, wanted.clone(), &mut output);
            let mut data = Vec::with_capacity(channels * rows.wanted.len() * columns.wanted.len());
            for plane in output.data().chunks_exact(grid.len()) {
                for y in wanted.0.clone() {
                    data.extend_from_slice(&plane[y * grid.stride()..][wanted.1.clone()]);
                }
            }
            let part = Image::new(channels, rows.wanted.len(), columns.wanted.len(), data)?;
            result.put((0, columns.wanted.start), &part);
            done();
        }
        if let Some((y, result)) = above.replace((rows.wanted.start, result)) {
            raster.put_rows(y, &result);
        }
    }
    if let Some((y, result)) = above {
        raster.put_rows(y, &result);
    }
    Ok(())
}

/// What is wanted of a part, counted from where it begins to see.
fn inside(cut: &Cut) -> Range<usize> {
    cut.wanted.start - cut.around.start..cut.wanted.end - cut.around.start
}

/// Checks that a network can denoise pictures of such `channels`.
///
/// # Errors
/// When it was made for colour and they are gray.
pub fn check_channels(network: &Network<f32>, channels: Channels) -> Result<()> {
    if channels.count() >= network.architecture().channels {
        return Ok(());
    }
    Err(Error::invalid(
        "the picture is gray, but the model was trained on colour: use a gray model or convert the picture to RGB",
    ))
}
