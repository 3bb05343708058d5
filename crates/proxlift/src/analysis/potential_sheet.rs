//! A picture of the potentials of a network at its fixed point: for each feature its filter, and below it `g_j`.

use crate::fixed_point::{FixedPoint, Potential};
use crate::{Result, image::Image, network::Network};

/// The side of a plot, the gap between two, and features in a row.
const SIDE: usize = 112;
const GAP: usize = 8;
const COLUMNS: usize = 12;
/// Brightness of the paper, the frame, the axis and the curve.
const PAPER: f32 = 1.0;
const SHEET: f32 = 0.12;
const AXIS: f32 = 0.8;
const CURVE: f32 = 0.05;
/// Points that a curve is drawn through, for each pixel.
const FINE: usize = 64;

/// Draws the filter of each feature, as [`filter_sheet`](super::filter_sheet) does, and below it its potential `g_j(w)`: `w` from
/// minus to plus eight times the level that noise of the network's training, `sigma`, has in the feature, on one scale of values
/// for all. Features are in the order of their potentials at the right end, the largest first.
/// Fails for networks that have no fixed point of this kind.
pub fn potential_sheet(network: &Network<f32>, sigma: f64) -> Result<Image> {
    const REACH: f64 = 8.0;
    let limit = FixedPoint::of(network)?;
    let Some(s) = limit.activation.piecewise() else {
        return Err(invalid!("potentials are drawn of learned activations and of clips"));
    };
    let (theta, channels) = (&limit.theta, network.architecture().colours());
    refuse!(theta.phases() > 1 => "potentials are not drawn of networks with a stride");
    let taps = theta.weights().len() / theta.features();
    let sigma = if sigma > 0.0 { sigma } else { 0.1 };
    // The noise in a feature: sigma times the norm of its filter.
    let noise = |j: usize| {
        let filter = &theta.weights()[j * taps..][..taps];
        sigma * filter.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>().sqrt()
    };
    let mut drawn: Vec<_> = (0..theta.features())
        .map(|j| {
            let (potential, reach) = (Potential::new(s, limit.tau, j), REACH * noise(j));
            let most = potential.g.at(reach);
            (j, potential, reach, if most.is_finite() { most } else { 0.0 })
        })
        .collect();
    drawn.sort_by(|a, b| b.3.total_cmp(&a.3));
    let most = drawn.first().map_or(1.0, |first| first.3).max(f64::MIN_POSITIVE);
    let largest = theta.weights().iter().fold(f32::MIN_POSITIVE, |most, w| most.max(w.abs()));

    let size = theta.size();
    let zoom = (SIDE / size).max(1);
    let (columns, tile) = (COLUMNS.min(drawn.len()), (zoom * size, SIDE));
    let pitch = (tile.0 + tile.1 + 2 * GAP, tile.1.max(tile.0) + GAP);
    let (height, width) = (drawn.len().div_ceil(columns) * pitch.0 + GAP, columns * pitch.1 + GAP);
    let mut sheet = Image::new(channels, height, width, vec![SHEET; channels * height * width])?;
    let data = sheet.data_mut();
    for (i, (j, potential, reach, _)) in drawn.iter().enumerate() {
        let (top, left) = (GAP + i / columns * pitch.0, GAP + i % columns * pitch.1);
        for c in 0..channels {
            let plane = &mut data[c * height * width..][..height * width];
            let filter = &theta.weights()[(j * channels + c) * size * size..][..size * size];
            for y in 0..zoom * size {
                for x in 0..zoom * size {
                    let w = filter[y / zoom * size + x / zoom];
                    plane[(top + y) * width + left + x] = 0.5 + 0.5 * w / largest;
                }
            }
            let below = top + tile.0 + GAP / 2;
            for y in 0..SIDE {
                for x in 0..SIDE {
                    let axis = x == SIDE / 2 || y == SIDE - 4;
                    plane[(below + y) * width + left + x] = if axis { AXIS } else { PAPER };
                }
            }
            for step in 0..SIDE * FINE {
                let x = step as f64 / FINE as f64;
                let value = potential.g.at(reach * (2.0 * x / SIDE as f64 - 1.0)) / most;
                let y = (SIDE - 4) as f64 - value * (SIDE - 8) as f64;
                if y.is_finite() && (0.0..(SIDE - 1) as f64).contains(&y) {
                    let at = |row: usize| (below + row) * width + left + x as usize;
                    let (row, part) = (y as usize, (y % 1.0) as f32);
                    plane[at(row)] = plane[at(row)].min(PAPER + (CURVE - PAPER) * (1.0 - part));
                    plane[at(row + 1)] = plane[at(row + 1)].min(PAPER + (CURVE - PAPER) * part);
                }
            }
        }
    }
    Ok(sheet)
}
