//! Activations that are piecewise linear, number by number, as their pieces: what can be minimised over in closed form.

use crate::Real;
use crate::network::Activation;

/// `s(t) = slope t + offset` from `start` to the start of the next piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Piece {
    start: f64,
    slope: f64,
    offset: f64,
}

/// The pieces of every feature, from left to right, one for all where all are the same; none if there are no such pieces.
pub(super) fn pieces<T: Real>(activation: &Activation<T>) -> Option<Vec<Vec<Piece>>> {
    let all = |pieces: &[[f64; 3]]| -> Vec<Piece> {
        pieces.iter().map(|&[start, slope, offset]| Piece { start, slope, offset }).collect()
    };
    const LEFT: f64 = f64::NEG_INFINITY;
    Some(match activation {
        Activation::Identity(_) => vec![all(&[[LEFT, 1.0, 0.0]])],
        Activation::Relu(_) => vec![all(&[[LEFT, 0.0, 0.0], [0.0, 1.0, 0.0]])],
        Activation::BoxClip(boxes) => {
            let bounds = boxes.bounds().map(|(lo, hi)| (lo.to_double(), hi.to_double()));
            bounds.map(|(lo, hi)| all(&[[LEFT, 0.0, lo], [lo, 1.0, 0.0], [hi, 0.0, hi]])).collect()
        }
        Activation::SoftThreshold(soft) => {
            let thresholds = soft.thresholds().iter().map(|t| t.to_double());
            thresholds.map(|t| all(&[[LEFT, 1.0, t], [-t, 0.0, 0.0], [t, 1.0, -t]])).collect()
        }
        Activation::PiecewiseLinear(functions) => (0..functions.features())
            .map(|j| {
                let m = functions.pieces();
                let knots = functions.knots()[j * m..][..m].iter().map(|l| l.to_double());
                let slopes = functions.slopes()[j * (m + 1)..][..=m].iter().map(|p| p.to_double());
                let (mut right, mut value, mut last) = (Vec::new(), 0.0, 0.0);
                for (start, (slope, end)) in
                    [0.0].into_iter().chain(knots.clone()).zip(slopes.zip(knots.chain([0.0])))
                {
                    value += if right.is_empty() { 0.0 } else { last };
                    right.push(Piece { start, slope, offset: value - slope * start });
                    last = slope * (end - start);
                }
                // Odd: a piece on the left starts where its mirror image ends.
                let ends = right[1..].iter().map(|piece| -piece.start).chain([LEFT]);
                let left = right.iter().zip(ends).map(|(p, start)| Piece {
                    start,
                    slope: p.slope,
                    offset: -p.offset,
                });
                let mut both: Vec<Piece> = left.collect();
                both.reverse();
                both.extend(right);
                both
            })
            .collect(),
        _ => return None,
    })
}

/// `argmin_t  rho/2 (t - a)^2 + gamma/2 (s(t) - c)^2`: the best of the pieces.
pub(super) fn nearest(pieces: &[Piece], (rho, a): (f64, f64), (gamma, c): (f64, f64)) -> f64 {
    let mut best = (f64::INFINITY, a);
    for (i, piece) in pieces.iter().enumerate() {
        let end = pieces.get(i + 1).map_or(f64::INFINITY, |next| next.start);
        let Piece { start, slope, offset } = *piece;
        let free = (rho * a + gamma * slope * (c - offset)) / (rho + gamma * slope * slope);
        let t = free.max(start).min(end);
        let value = 0.5 * rho * (t - a).powi(2) + 0.5 * gamma * (slope * t + offset - c).powi(2);
        if value < best.0 {
            best = (value, t);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prox::{BoxClip, Identity, PiecewiseLinear, Relu, SoftThreshold};

    #[test]
    fn pieces_are_the_activation_and_the_nearest_point_beats_a_grid() {
        let learned = PiecewiseLinear::new(2, vec![0.3, 0.8], vec![0.9, 0.2, 0.6]).unwrap();
        let all: [Activation<f64>; 5] = [
            Identity.into(),
            Relu.into(),
            BoxClip::interval(vec![-0.2], vec![0.7]).unwrap().into(),
            SoftThreshold::new(vec![0.4]).unwrap().into(),
            learned.into(),
        ];
        for activation in all {
            let pieces = &pieces(&activation).unwrap()[0];
            let grid = || (-400..=400).map(|i| 0.005 * f64::from(i) + 1e-9);
            let s = |t: f64| {
                let mut u = [t];
                activation.prox().prox_in_place(1.0, &mut u);
                u[0]
            };
            for t in grid() {
                let piece = pieces.iter().rev().find(|piece| piece.start <= t).unwrap();
                assert!((piece.slope * t + piece.offset - s(t)).abs() < 1e-12, "{activation:?} at {t}");
            }
            for (rho, a, gamma, c) in [(1.0, 0.5, 1.0, -0.3), (0.2, -0.9, 3.0, 0.6), (4.0, 0.1, 0.5, 0.0)] {
                let value = |t: f64| 0.5 * rho * (t - a).powi(2) + 0.5 * gamma * (s(t) - c).powi(2);
                let found = value(nearest(pieces, (rho, a), (gamma, c)));
                assert!(grid().all(|t| found <= value(t) + 1e-12), "{activation:?}");
            }
        }
    }
}
