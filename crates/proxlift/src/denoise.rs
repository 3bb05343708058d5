//! A picture of any size through a network, in place: never more of it in floats than a part that fits the memory.
//!
//! The result has the same bits as the whole picture at once, rounded to the picture's depth, since a part sees all
//! that its pixels depend on. Around the picture the network sees a mirrored [border](Network::border).

use crate::engine::cpu::tiles::{Cut, Tiles};
use crate::engine::{Cpu, Engine};
use crate::field::Field;
use crate::image::io::Raster;
use crate::image::{Channels, Image};
use crate::network::Network;
use crate::{Error, Result};
use std::ops::Range;

/// Denoises `raster` in the given `parts`, calling `done` after each.
///
/// Takes the memory of a part, and of two copies of a row of parts in the depth of the picture. A network for
/// grey pictures takes the channels of a colour picture one by one. Alpha stays.
///
/// # Errors
/// When the network was made for colour and the picture is grey.
///
/// # Panics
/// When the parts are those of another size.
pub fn denoise(
    engine: &Cpu,
    network: &Network<f32>,
    raster: &mut Raster,
    parts: &Tiles,
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
            // A part begins at an even row of the picture with its border.
            let odd = rows.around.start > 0 && !network.border.is_multiple_of(2);
            let around = rows.around.start + usize::from(odd)..rows.around.end;
            let rows = &Cut { around, ..rows.clone() };
            let noisy = raster.crop(rows.around.clone(), columns.around.clone());
            let size = (raster.height(), raster.width());
            let ((above, below), (left, right)) =
                (beyond(rows, size.0, network.border), beyond(columns, size.1, network.border));
            let noisy = noisy.mirrored((above, below), (left, right));
            let grid = architecture.grid(noisy.height(), noisy.width())?;
            let samples = channels / architecture.channels;
            let z = Field::from_planar(samples, architecture.channels, grid, noisy.data())?;
            let mut output = Field::zeros(samples, architecture.channels, grid);
            let wanted = (inside(rows, above), inside(columns, left));
            engine.denoise_tile(network, &z, wanted.clone(), &mut output);
            let data = output.crop(wanted.0, wanted.1);
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

/// Pixels that a part sees before and after those of the picture, which is `length` long.
fn beyond(cut: &Cut, length: usize, border: usize) -> (usize, usize) {
    (if cut.around.start == 0 { border } else { 0 }, if cut.around.end == length { border } else { 0 })
}

/// What is wanted of a part, counted from where it begins to see, `before` the picture.
fn inside(cut: &Cut, before: usize) -> Range<usize> {
    let start = before + cut.wanted.start - cut.around.start;
    start..start + cut.wanted.len()
}

/// Denoises a picture at once. A network for grey pictures takes the channels of a colour picture one by one.
///
/// # Errors
/// When the network was made for colour and the picture is grey.
pub fn denoise_image(engine: &dyn Engine<f32>, network: &Network<f32>, noisy: &Image) -> Result<Image> {
    check_channels(network, noisy.kind())?;
    let architecture = network.architecture();
    let (channels, height, width) = noisy.shape();
    let border = network.border;
    let seen = noisy.mirrored((border, border), (border, border));
    let grid = architecture.grid(seen.height(), seen.width())?;
    let samples = channels / architecture.channels;
    let z = Field::from_planar(samples, architecture.channels, grid, seen.data())?;
    drop(seen);
    let mut output = Field::zeros(samples, architecture.channels, grid);
    engine.denoise(network, &z, &mut output);
    Image::new(channels, height, width, output.crop(border..border + height, border..border + width))
}

/// Checks that a network can denoise pictures of such `channels`.
///
/// # Errors
/// When it was made for colour and they are grey.
pub fn check_channels(network: &Network<f32>, channels: Channels) -> Result<()> {
    if channels.count() >= network.architecture().channels {
        return Ok(());
    }
    Err(Error::invalid(
        "the picture is grey, but the model was trained on colour: use a grey model or convert the picture to RGB",
    ))
}
