//! A picture of all filters of a network: one row a layer, one tile a filter.

use proxlift::image::Image;
use proxlift::network::Network;
use proxlift::{Error, Result};

/// The side that a tile should have on the sheet, in pixels.
const TILE: usize = 24;
/// The width of the lines between tiles.
const LINE: usize = 2;
/// Their brightness: apart from the grey of a zero weight, and from what most weights have.
const LINE_VALUE: f32 = 0.16;
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
    let zoom = (TILE / sizes.kernel).max(1);
    let pitch = zoom * sizes.kernel + LINE;
    let (height, width) = (rows * pitch + LINE, columns * pitch + LINE);
    if height * width > MOST {
        return Err(Error::invalid(format!(
            "the picture of {rows} x {columns} filters would have {width} x {height} pixels, too many to look at"
        )));
    }
    let mut sheet = Image::new(channels, height, width, vec![LINE_VALUE; channels * height * width])?;
    let data = sheet.data_mut();
    for (k, theta) in network.theta.iter().enumerate() {
        let largest = theta.weights().iter().fold(f32::MIN_POSITIVE, |most, w| most.max(w.abs()));
        for (tile, kernel) in theta.weights().chunks_exact(sizes.kernel * sizes.kernel).enumerate() {
            let (feature, channel) = (tile / channels, tile % channels);
            let (top, left) = (LINE + k * pitch, LINE + feature * pitch);
            for y in 0..pitch - LINE {
                let line = (channel * height + top + y) * width + left;
                for (x, pixel) in data[line..line + pitch - LINE].iter_mut().enumerate() {
                    let weight = kernel[y / zoom * sizes.kernel + x / zoom];
                    *pixel = 0.5 + 0.5 * weight / largest;
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
        // 5x5 kernels are enlarged 4 times; tiles are 22 pixels apart.
        assert_eq!(sheet.shape(), (3, 4 * 22 + 2, 4 * 22 + 2));
        let weights = network.theta[2].weights();
        let largest = weights.iter().fold(0.0f32, |most, w| most.max(w.abs()));
        // Feature 1, channel 2, tap (3, 4), the middle of its block.
        let expected = 0.5 + 0.5 * weights[((3 + 2) * 5 + 3) * 5 + 4] / largest;
        let (y, x) = (2 + 2 * 22 + 3 * 4 + 2, 2 + 22 + 4 * 4 + 2);
        assert_eq!(sheet.plane(2)[y * sheet.width() + x], expected);
        assert_eq!(sheet.plane(0)[0], LINE_VALUE);
    }
}
