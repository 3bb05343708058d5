//! A picture of all filters of a network: one row a layer, one tile a filter.

use proxlift::image::Image;
use proxlift::network::Network;
use proxlift::{Error, Result};

/// The side of a weight on the sheet, in pixels, unless the sheet would become too large.
const WEIGHT: usize = 10;
/// The width of a frame around each filter, and of the gap between two frames.
const FRAME: usize = 1;
const GAP: usize = 8;
/// Their brightness: apart from the grey of a zero weight, and from what most weights have.
const FRAME_VALUE: f32 = 0.75;
const GAP_VALUE: f32 = 0.12;
/// The most pixels of a sheet.
const MOST: usize = 1 << 26;

/// Draws the filters `theta_0` (top) to `theta_K`. Middle grey is zero; black and white are minus and plus the largest
/// weight of the row. The filters of a colour network are shown in colour, each channel on the same scale.
///
/// # Errors
/// When the sheet would be too large to look at.
pub fn draw(network: &Network<f32>) -> Result<Image> {
    let sizes = network.architecture();
    let (rows, columns, channels) = (sizes.depth + 1, sizes.features, sizes.channels);
    let pitch = |zoom: usize| zoom * sizes.kernel + 2 * FRAME + GAP;
    let area = |zoom: usize| (rows * pitch(zoom) + GAP) * (columns * pitch(zoom) + GAP);
    let Some(zoom) = (1..=WEIGHT).rev().find(|&zoom| area(zoom) <= MOST) else {
        return Err(Error::invalid(format!(
            "the picture of {rows} x {columns} filters would have {} pixels, too many to look at",
            area(1)
        )));
    };
    let (pitch, tile) = (pitch(zoom), zoom * sizes.kernel);
    let (height, width) = (rows * pitch + GAP, columns * pitch + GAP);
    let mut sheet = Image::new(channels, height, width, vec![GAP_VALUE; channels * height * width])?;
    let data = sheet.data_mut();
    for (k, theta) in network.theta.iter().enumerate() {
        let largest = theta.weights().iter().fold(f32::MIN_POSITIVE, |most, w| most.max(w.abs()));
        for (number, kernel) in theta.weights().chunks_exact(sizes.kernel * sizes.kernel).enumerate() {
            let (feature, channel) = (number / channels, number % channels);
            let (top, left) = (GAP + k * pitch, GAP + feature * pitch);
            for y in 0..tile + 2 * FRAME {
                let line = (channel * height + top + y) * width + left;
                for (x, pixel) in data[line..line + tile + 2 * FRAME].iter_mut().enumerate() {
                    let inside = |at: usize| at.checked_sub(FRAME).filter(|at| *at < tile);
                    *pixel = match (inside(y), inside(x)) {
                        (Some(y), Some(x)) => {
                            0.5 + 0.5 * kernel[y / zoom * sizes.kernel + x / zoom] / largest
                        }
                        _ => FRAME_VALUE,
                    };
                }
            }
        }
    }
    Ok(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxlift::network::Architecture;

    #[test]
    fn every_weight_is_seen_at_its_place() {
        let architecture = Architecture { depth: 3, features: 4, kernel: 5, channels: 3 };
        let network = Network::<f32>::glorot(architecture, 0.1, 1).unwrap();
        let sheet = draw(&network).unwrap();
        // 5x5 kernels are enlarged 10 times; with frame and gap, filters are 60 pixels apart.
        assert_eq!(sheet.shape(), (3, 4 * 60 + 8, 4 * 60 + 8));
        let weights = network.theta[2].weights();
        let largest = weights.iter().fold(0.0f32, |most, w| most.max(w.abs()));
        // Feature 1, channel 2, tap (3, 4), the middle of its block.
        let expected = 0.5 + 0.5 * weights[((3 + 2) * 5 + 3) * 5 + 4] / largest;
        let (y, x) = (9 + 2 * 60 + 3 * 10 + 5, 9 + 60 + 4 * 10 + 5);
        assert_eq!(sheet.plane(2)[y * sheet.width() + x], expected);
        let pixel = |y: usize, x: usize| sheet.plane(0)[y * sheet.width() + x];
        assert_eq!(
            (pixel(0, 0), pixel(8, 8), pixel(8 + 51, 8), pixel(8 + 52, 8)),
            (GAP_VALUE, FRAME_VALUE, FRAME_VALUE, GAP_VALUE)
        );
    }
}
