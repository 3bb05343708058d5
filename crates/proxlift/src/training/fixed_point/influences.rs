//! Weakly convex functions as they are learned: by the slopes `g'` of their potentials at places that stay.
//!
//! ```text
//! g'(0+) = height,      g'(width x_m) = height shape_m,  m = 1..M-1,      straight between, constant beyond the last
//! ```
//!
//! The places `x_m` are the same for all features and lie closer to each other towards zero. The activation has a knot for each of them,
//! at `t = u + tau w` for the slope `u` of the potential at `w`, and one before them, up to which it is as steep as it may be: there `g'`
//! rises from 0 to its height.
//!
//! Knots and slopes of the activation itself cannot be learned well. Where a potential bends down the activation falls up to thirty times
//! as steeply, knots that have met move together for ever, and what a step of a slope does depends on all knots before it.

use super::coordinates::{Coordinates, LEAST, STEEPEST};
use crate::prox::{PiecewiseGradient, PiecewiseLinear};

/// The first and the last of the places.
const PLACES: (f32, f32) = (0.06, 2.2);

/// How much potentials may bend down, as a share of `1 / tau` of what bends one of them alone until the problem is not convex.
const LEAST_CURVATURE: f32 = 0.97;

/// What slopes do not fall below, as a share of the height: more than rounding takes away. So potentials have their minimum at zero,
/// without which denoising would be convex, but another problem need not be bounded below.
const LEAST_SHAPE: f32 = 0.01;

/// The slopes of the potentials of all features.
#[derive(Clone, Debug)]
pub(super) struct Influences {
    tau: f32,
    heights: Vec<f32>,
    widths: Vec<f32>,
    /// `[feature][m]`.
    shapes: Vec<f32>,
    places: Vec<f32>,
}

/// `x_m`, each so many times the one before.
fn places(number: usize) -> Vec<f32> {
    let last = (number - 1).max(1) as f32;
    (0..number).map(|m| PLACES.1 * (PLACES.0 / PLACES.1).powf((number - 1 - m) as f32 / last)).collect()
}

impl Influences {
    /// Those of `activation = prox_{tau g*}`, where slopes are at most [`STEEPEST`]: the widest place is where its last knot is.
    /// What comes from here comes back.
    pub fn of(activation: &PiecewiseLinear<f32>, tau: f32) -> Self {
        let (pieces, influence) = (activation.pieces(), activation.influence(tau));
        let places = places(pieces - 1);
        let (mut heights, mut widths, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
        for (j, ends) in influence.knots().chunks_exact(pieces).enumerate() {
            let width = (ends[pieces - 1] / PLACES.1).max(LEAST);
            // Where the steep piece ends, if that is before the first place; nothing is lost to rounding there.
            let slopes = &activation.slopes()[j * (pieces + 1)..][..pieces];
            let end = slopes.iter().take_while(|slope| **slope >= STEEPEST).count().saturating_sub(1);
            let height = if ends[end] <= width * PLACES.0 {
                activation.at(j, activation.knots()[j * pieces + end])
            } else {
                influence.at(j, width * PLACES.0)
            };
            let height = height.max(LEAST);
            heights.push(height);
            widths.push(width);
            shapes.extend(places.iter().map(|x| influence.at(j, width * x) / height));
        }
        Self { tau, heights, widths, shapes, places }
    }

    /// Where the slope of the potential has its corners, and what it is there, from the end of the steep piece on.
    fn corners(&self, j: usize) -> (Vec<f32>, Vec<f32>) {
        let (height, width, number) = (self.heights[j], self.widths[j], self.places.len());
        let w = self.places.iter().map(|x| width * x);
        let u = self.shapes[j * number..][..number].iter().map(|shape| height * shape);
        (std::iter::once(self.rise(j)).chain(w).collect(), std::iter::once(height).chain(u).collect())
    }

    /// How far the steep piece reaches.
    fn rise(&self, j: usize) -> f32 {
        self.heights[j] * (1.0 - STEEPEST) / (STEEPEST * self.tau)
    }

    /// Makes all potentials so many times wider: they bend by so many times less.
    pub fn widen(&mut self, factor: f32) {
        self.widths.iter_mut().for_each(|width| *width *= factor);
    }

    /// Keeps slopes positive, the steep piece before the first place, and potentials from bending down by too much.
    fn hold(&mut self) {
        self.shapes.iter_mut().for_each(|shape| *shape = shape.max(LEAST_SHAPE));
        let most = LEAST_CURVATURE * self.tau;
        for j in 0..self.heights.len() {
            let (rise, (_, u)) = (self.rise(j), self.corners(j));
            let fall = |m: usize| (u[m] - u[m + 1]).max(0.0) / most;
            let inner = (1..self.places.len()).map(|m| fall(m) / (self.places[m] - self.places[m - 1]));
            let first = (rise + fall(0).max(2.0 * rise)) / self.places[0];
            self.widths[j] = inner.fold(self.widths[j].max(first), f32::max);
        }
    }

    /// `prox_{tau g*}`.
    pub fn activation(&self) -> PiecewiseLinear<f32> {
        let (mut knots, mut slopes) = (Vec::new(), Vec::new());
        for j in 0..self.heights.len() {
            let (w, u) = self.corners(j);
            let t: Vec<f32> = w.iter().zip(&u).map(|(w, u)| u + self.tau * w).collect();
            slopes.push(STEEPEST);
            slopes.extend((1..t.len()).map(|m| ((u[m] - u[m - 1]) / (t[m] - t[m - 1])).min(STEEPEST)));
            slopes.push(0.0);
            knots.extend(t);
        }
        let mut activation = PiecewiseLinear::clip_with_knots(self.heights.len(), self.places.len() + 1, 1.0);
        let [all_knots, all_slopes] = activation.parts_mut();
        all_knots.copy_from_slice(&knots);
        all_slopes.copy_from_slice(&slopes);
        activation
    }
}

impl Coordinates for Influences {
    /// The logarithms of heights and widths, and shapes.
    fn parameters(&self) -> Vec<Vec<f32>> {
        let logarithms = |of: &[f32]| of.iter().map(|v| v.ln()).collect();
        vec![logarithms(&self.heights), logarithms(&self.widths), self.shapes.clone()]
    }

    fn gradients(&self, of: &PiecewiseGradient<f32>) -> Vec<Vec<f32>> {
        let number = self.places.len();
        let (mut heights, mut widths, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
        for j in 0..self.heights.len() {
            let (w, u) = self.corners(j);
            let t: Vec<f32> = w.iter().zip(&u).map(|(w, u)| u + self.tau * w).collect();
            let by_slope = &of.slopes[j * (number + 2)..][..number + 1];
            let mut by_t = of.knots[j * (number + 1)..][..=number].to_vec();
            let mut by_u = vec![0.0; number + 1];
            // The slope of piece m is (u_m - u_{m-1}) / (t_m - t_{m-1}).
            for m in 1..=number {
                let width = t[m] - t[m - 1];
                let (g, slope) = (by_slope[m] / width, (u[m] - u[m - 1]) / width);
                by_u[m] += g;
                by_u[m - 1] -= g;
                by_t[m] -= g * slope;
                by_t[m - 1] += g * slope;
            }
            // The first knot is height / STEEPEST; t_m = u_m + tau w_m.
            let (mut height, mut width) = (by_u[0] + by_t[0] / STEEPEST, 0.0);
            for m in 1..=number {
                let by_u = by_u[m] + by_t[m];
                height += by_u * self.shapes[j * number + m - 1];
                width += by_t[m] * self.tau * self.places[m - 1];
                shapes.push(by_u * self.heights[j]);
            }
            heights.push(height * self.heights[j]);
            widths.push(width * self.widths[j]);
        }
        vec![heights, widths, shapes]
    }

    fn activation(&self, parameters: &[Vec<f32>], c: f32, tau: f32) -> PiecewiseLinear<f32> {
        let numbers = |i: usize, factor: f32| -> Vec<f32> {
            parameters[i].iter().map(|log| (log.exp() * factor).max(LEAST)).collect()
        };
        let (heights, widths) = (numbers(0, c), numbers(1, 1.0 / c));
        let mut moved =
            Self { tau, heights, widths, shapes: parameters[2].clone(), places: self.places.clone() };
        moved.hold();
        Influences::activation(&moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laws::random_field;

    const TAU: f32 = 0.7;

    /// Three features with six knots.
    fn influences() -> Influences {
        let random: Vec<f32> = random_field(24, 1).into_iter().map(f32::abs).collect();
        let shapes = (0..15).map(|i| if i % 5 == 3 { LEAST_SHAPE } else { 1.5 * random[i] }).collect();
        let heights = random[15..18].iter().map(|v| 0.02 + 0.1 * v).collect();
        let mut all =
            Influences { tau: TAU, heights, widths: vec![1e-3, 0.5, 3.0], shapes, places: places(5) };
        all.hold();
        all
    }

    #[test]
    fn places_grow_by_equal_factors() {
        let x = places(7);
        assert!((x[0] - 0.06).abs() < 1e-6 && (x[6] - 2.2).abs() < 1e-6);
        assert!(x.windows(3).all(|x| (x[1] * x[1] / (x[0] * x[2]) - 1.0).abs() < 1e-5), "{x:?}");
        assert_eq!(places(1), [2.2]);
    }

    /// What comes back is what went in, also as the slope of the potential, which bends down by no more than it may.
    #[test]
    fn an_activation_has_the_influences_that_it_was_made_of() {
        let all = influences();
        let activation = all.activation();
        let back = Influences::of(&activation, TAU);
        for (one, other) in all.parameters().concat().iter().zip(back.parameters().concat()) {
            assert!((one - other).abs() < 1e-3, "{one} {other}");
        }
        let influence = activation.influence(TAU);
        for j in 0..3 {
            let (w, u) = all.corners(j);
            for (w, u) in w.iter().zip(&u) {
                assert!((influence.at(j, *w) - u).abs() < 1e-3 * all.heights[j], "{j} {w} {u}");
            }
        }
        assert!(activation.keeps_signs() && activation.steepest() <= STEEPEST);
        assert!(influence.flattest() < 0.0 && influence.flattest() > -LEAST_CURVATURE * TAU * 1.001);
    }

    #[test]
    fn wider_potentials_bend_by_less() {
        let all = influences();
        let mut wide = all.clone();
        wide.widen(4.0);
        let flattest = |of: &Influences| of.activation().influence(TAU).flattest();
        let share = flattest(&wide) / flattest(&all);
        // The steep piece before it stays as it is.
        assert!(share > 0.2 && share < 0.27, "{share}");
    }

    /// Of a function of all knots and slopes.
    #[test]
    fn gradients_are_those_of_differences() {
        let mut all = influences();
        all.widen(2.0);
        let activation = all.activation();
        let parts = [activation.knots().len(), activation.slopes().len()];
        let [by_knots, by_slopes] = [random_field::<f32>(parts[0], 2), random_field::<f32>(parts[1], 3)];
        let gradient = PiecewiseGradient { knots: by_knots.clone(), slopes: by_slopes.clone() };
        let value = |parameters: &[Vec<f32>]| -> f64 {
            let moved = Coordinates::activation(&all, parameters, 1.0, TAU);
            let along = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
            along(moved.knots(), &by_knots) + along(moved.slopes(), &by_slopes)
        };
        let (parameters, gradients) = (all.parameters(), all.gradients(&gradient));
        for block in 0..3 {
            for i in 0..parameters[block].len() {
                let at = |step: f32| {
                    let mut moved = parameters.clone();
                    moved[block][i] += step;
                    value(&moved)
                };
                // The least shapes are at an edge.
                let (below, step) =
                    if parameters[block][i] == LEAST_SHAPE { (0.0, 1e-3) } else { (1e-3, 1e-3) };
                let slope = (at(step) - at(-below)) / f64::from(step + below);
                let found = f64::from(gradients[block][i]);
                assert!((slope - found).abs() < 2e-2 * (1.0 + found.abs()), "{block} {i}: {slope} {found}");
            }
        }
    }

    /// `g(c .)`, and another step: the same slopes at other places.
    #[test]
    fn the_function_follows_filters_and_step() {
        let mut all = influences();
        all.widen(4.0);
        let (c, tau) = (1.3, 0.5);
        let before = all.activation().influence(TAU);
        let after = Coordinates::activation(&all, &all.parameters(), c, tau).influence(tau);
        for j in 0..3 {
            for x in [0.1, 0.5, 1.0, 1.8] {
                let w = all.widths[j] * x;
                let (one, other) = (c * before.at(j, c * w), after.at(j, w));
                assert!((one - other).abs() < 2e-2 * all.heights[j], "{j} {x}: {one} {other}");
            }
        }
    }
}
