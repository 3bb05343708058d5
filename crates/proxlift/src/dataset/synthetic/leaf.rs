//! One leaf: its place and outline.

use super::arithmetic::{exp2, log_uniform, range};
use super::direction;
use crate::random::unit;
use rand::Rng;
use std::ops::Range;

/// The range of radii in one image, in painted pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Radii {
    smallest: f32,
    /// The largest radius is this many doublings of the smallest.
    octaves: f32,
}

impl Radii {
    /// From crowded to spacious scenes; the largest leaves always outgrow a patch.
    pub(super) fn draw(rng: &mut impl Rng) -> Self {
        let spacious = 3.5 * unit(rng);
        Self { smallest: 2.0 * exp2(spacious), octaves: 7.0 - spacious }
    }

    /// Density `r^-3` for leaves scattered over the plane, seen through a frame: a leaf of radius `r` meets the frame
    /// in proportion to `(h + 2r)(w + 2r)`, so the radius is a mixture of `r^-3`, `r^-2` and `r^-1`.
    fn one(&self, rng: &mut impl Rng, h: f32, w: f32) -> f32 {
        let (low, high) = (1.0 / self.smallest, 1.0 / (self.smallest * exp2(self.octaves)));
        let squares = low * low - high * high;
        let (cubic, square) = (0.5 * h * w * squares, 2.0 * (h + w) * (low - high));
        let linear = 4.0 * self.octaves * std::f32::consts::LN_2;
        let pick = unit(rng) * (cubic + square + linear);
        if pick < cubic {
            1.0 / (low * low - unit(rng) * squares).sqrt()
        } else if pick < cubic + square {
            1.0 / (low - unit(rng) * (low - high))
        } else {
            log_uniform(rng, self.smallest, self.octaves)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outline {
    Ellipse,
    Rectangle,
}

/// An ellipse or rectangle with a soft rim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    outline: Outline,
    centre: (f32, f32),
    /// Unit vector of the first axis.
    axis: (f32, f32),
    half: (f32, f32),
    /// Width of the rim, in painted pixels.
    rim: f32,
    radius: f32,
}

impl Leaf {
    pub(super) fn draw(rng: &mut impl Rng, radii: &Radii, h: usize, w: usize) -> Self {
        let radius = radii.one(rng, h as f32, w as f32);
        let shape = unit(rng);
        let outline = if shape < 0.65 { Outline::Ellipse } else { Outline::Rectangle };
        // Round, oval, or long and thin: edges, blobs, lines.
        let stretch = match unit(rng) {
            s if s < 0.35 => 1.0,
            s if s < 0.8 => log_uniform(rng, 1.0, 0.8),
            _ => log_uniform(rng, 1.6, 1.0),
        };
        let reach = radius * stretch;
        let rim = if unit(rng) < 0.8 { 1.0 } else { log_uniform(rng, 1.0, 3.0).min(radius) };
        Self {
            outline,
            centre: (range(rng, -reach, w as f32 + reach), range(rng, -reach, h as f32 + reach)),
            axis: direction(rng),
            half: (reach, radius / stretch),
            rim: rim.max(1.0),
            radius,
        }
    }

    pub(super) fn radius(&self) -> f32 {
        self.radius
    }

    pub(super) fn local(&self, x: f32, y: f32) -> (f32, f32) {
        let (x, y) = (x - self.centre.0, y - self.centre.1);
        (x * self.axis.0 + y * self.axis.1, y * self.axis.0 - x * self.axis.1)
    }

    /// From 0 outside to 1 inside, linear across the rim.
    pub(super) fn opacity(&self, u: f32, v: f32) -> f32 {
        let (a, b) = self.half;
        let outside = match self.outline {
            Outline::Ellipse => (((u / a) * (u / a) + (v / b) * (v / b)).sqrt() - 1.0) * b,
            Outline::Rectangle => (u.abs() - a).max(v.abs() - b),
        };
        (0.5 - outside / self.rim).clamp(0.0, 1.0)
    }

    /// The rows and columns of the frame that the leaf can touch.
    pub(super) fn bounds(&self, h: usize, w: usize) -> (Range<usize>, Range<usize>) {
        let (a, b) = (self.half.0 + self.rim, self.half.1 + self.rim);
        let (c, s) = (self.axis.0.abs(), self.axis.1.abs());
        // An ellipse is scaled past its rim along both axes, so the bound of the rectangle holds it too.
        let (across, down) = (a * c + b * s, a * s + b * c);
        let span = |middle: f32, reach: f32, end: usize| {
            let low = (middle - reach).floor().clamp(0.0, end as f32) as usize;
            let high = (middle + reach).ceil().clamp(0.0, end as f32) as usize;
            low..high
        };
        (span(self.centre.1, down, h), span(self.centre.0, across, w))
    }
}
