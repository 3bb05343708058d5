//! A picture of all filters of a network: one row a layer, one tile a filter.

use crate::{Result, field::phases::together, image::Image, network::Network};

/// The side of a weight on the sheet, in pixels, unless the sheet would become too large.
const WEIGHT: usize = 10;
/// The width of a frame around each filter, and of the gap between two frames.
const FRAME: usize = 1;
const GAP: usize = 8;
/// Their brightness: apart from the grey of a zero weight, and from what most weights have.
const FRAME_VALUE: f32 = 0.75;
const GAP_VALUE: f32 = 0.12;
const MOST: usize = 1 << 26;

/// Draws the filters `theta_0` (top) to `theta_K`, and below them those of every synthesis of its own. Middle grey is zero; black and white are minus and plus the largest
/// weight of the row. The filters of a colour network are shown in colour, each channel on the same scale; those of stride 2
/// as they lie on the image.
pub fn filter_sheet(network: &Network<f32>) -> Result<Image> {
    let sizes = network.architecture();
    let (rows, columns, channels) = (network.filters().count(), sizes.features, sizes.colours());
    let side = sizes.stride() * sizes.kernel;
    let pitch = |zoom: usize| zoom * side + 2 * FRAME + GAP;
    let area = |zoom: usize| (rows * pitch(zoom) + GAP) * (columns * pitch(zoom) + GAP);
    let Some(zoom) = (1..=WEIGHT).rev().find(|&zoom| area(zoom) <= MOST) else {
        return Err(invalid!(
            "the picture of {rows} x {columns} filters would have {} pixels, too many to look at",
            area(1)
        ));
    };
    let (pitch, tile) = (pitch(zoom), zoom * side);
    let (height, width) = (rows * pitch + GAP, columns * pitch + GAP);
    let mut sheet = Image::new(channels, height, width, vec![GAP_VALUE; channels * height * width])?;
    let data = sheet.data_mut();
    for (k, theta) in network.filters().enumerate() {
        let largest = theta.weights().iter().fold(f32::MIN_POSITIVE, |most, w| most.max(w.abs()));
        let weights = together(theta.weights(), (sizes.kernel, sizes.kernel), sizes.stride());
        for (number, kernel) in weights.chunks_exact(side * side).enumerate() {
            let (feature, channel) = (number / channels, number % channels);
            let (top, left) = (GAP + k * pitch, GAP + feature * pitch);
            for y in 0..tile + 2 * FRAME {
                let line = (channel * height + top + y) * width + left;
                for (x, pixel) in data[line..line + tile + 2 * FRAME].iter_mut().enumerate() {
                    let inside = |at: usize| at.checked_sub(FRAME).filter(|at| *at < tile);
                    *pixel = match (inside(y), inside(x)) {
                        (Some(y), Some(x)) => 0.5 + 0.5 * kernel[y / zoom * side + x / zoom] / largest,
                        _ => FRAME_VALUE,
                    };
                }
            }
        }
    }
    Ok(sheet)
}
