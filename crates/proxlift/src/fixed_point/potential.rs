//! The potentials that a network has learned: `g(w) = sum_j g_j(w_j)`, and their conjugates.
//!
//! `s_j = prox_{tau g_j*}` says that `w = (t - s_j(t)) / tau` is the slope of `g_j*` at `u = s_j(t)`, and `u` that of `g_j` at `w`.
//! With `s_j` piecewise linear, both are piecewise quadratic, with corners where `t` is a knot. Between two of them
//!
//! ```text
//! g(w)  = g_m  + d (u_m + d k / 2),      d = w - w_m,      k = tau p / (1 - p)
//! g*(u) = g*_m + d (w_m + d / 2k),       d = u - u_m
//! ```
//!
//! for the slope `p` of `s_j` there. Sums over the pieces have no negative terms, so that nothing cancels.

use crate::Real;
use crate::engine::cpu::in_vectors;
use crate::prox::PiecewiseLinear;

/// Numbers that are summed side by side.
const LANES: usize = 8;

/// An even convex function of one variable by its pieces: quadratic, from a corner on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quadratics {
    pieces: Vec<Piece>,
    /// Where the function ends: beyond, it is infinite.
    end: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    from: f64,
    length: f64,
    /// The slope at its beginning, and half of how it grows.
    slope: f64,
    half: f64,
}

impl Quadratics {
    /// With corners at `at`, where the slopes are `slopes`, and `last` as the curvature after the last of them.
    fn new(corners: &[(f64, f64)], last: f64) -> Self {
        let mut pieces: Vec<Piece> = corners
            .windows(2)
            .filter(|pair| pair[1].0 > pair[0].0)
            .map(|pair| {
                let ((from, slope), (to, next)) = (pair[0], pair[1]);
                Piece { from, length: to - from, slope, half: 0.5 * (next - slope) / (to - from) }
            })
            .collect();
        let (from, slope) = corners[corners.len() - 1];
        if last.is_finite() {
            pieces.push(Piece { from, length: f64::INFINITY, slope, half: 0.5 * last });
        }
        Self { pieces, end: if last.is_finite() { f64::INFINITY } else { from * (1.0 + 1e-5) + 1e-12 } }
    }

    /// Its value.
    pub fn at(&self, t: f64) -> f64 {
        self.sum(&[t])
    }

    /// The sum of its values.
    pub fn sum<T: Real>(&self, of: &[T]) -> f64 {
        in_vectors(
            #[inline(always)]
            || self.sum_lanes(of),
        )
    }

    #[inline(always)]
    fn sum_lanes<T: Real>(&self, of: &[T]) -> f64 {
        let (chunks, rest) = of.as_chunks::<LANES>();
        let mut sums = [0.0; LANES];
        let mut largest = [0.0f64; LANES];
        for chunk in chunks {
            let t = chunk.map(|t| t.to_double().abs());
            for piece in &self.pieces {
                for (sum, t) in sums.iter_mut().zip(t) {
                    let d = (t - piece.from).max(0.0).min(piece.length);
                    *sum += d * (piece.slope + d * piece.half);
                }
            }
            largest.iter_mut().zip(t).for_each(|(most, t)| *most = if t > *most { t } else { *most });
        }
        let mut sum: f64 = sums.iter().sum();
        for t in rest.iter().map(|t| t.to_double().abs()) {
            for piece in &self.pieces {
                let d = (t - piece.from).max(0.0).min(piece.length);
                sum += d * (piece.slope + d * piece.half);
            }
            largest[0] = largest[0].max(t);
        }
        if largest.iter().any(|t| *t > self.end) { f64::INFINITY } else { sum }
    }
}

/// `g_j` and its conjugate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Potential {
    /// `g_j`.
    pub g: Quadratics,
    /// `g_j*`; of no use where `g_j` is not convex.
    pub conjugate: Quadratics,
}

impl Potential {
    /// That of feature `j`, from `s = prox_{tau g*}`.
    pub fn new<T: Real>(s: &PiecewiseLinear<T>, tau: T, j: usize) -> Self {
        let (tau, pieces) = (tau.to_double(), s.pieces());
        let slopes = &s.slopes()[j * (pieces + 1)..][..=pieces];
        let knots = &s.knots()[j * pieces..][..pieces];
        let (mut corners, mut t, mut u) = (vec![(0.0, 0.0)], 0.0, 0.0);
        for (p, l) in slopes.iter().zip(knots) {
            u += p.to_double() * (l.to_double() - t);
            t = l.to_double();
            corners.push(((t - u) / tau, u));
        }
        let p = slopes[pieces].to_double();
        let g = Quadratics::new(&corners, tau * p / (1.0 - p));
        if slopes.iter().any(|p| p.to_double() < 0.0) {
            return Self { g, conjugate: Quadratics::default() };
        }
        let exchanged: Vec<_> = corners.iter().map(|&(w, u)| (u, w)).collect();
        Self { g, conjugate: Quadratics::new(&exchanged, tau.recip() * (1.0 - p) / p) }
    }
}
