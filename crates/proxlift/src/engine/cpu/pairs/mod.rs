//! Two rows at once: Winograd's minimal filtering, down the columns.
//!
//! Two neighbouring outputs of a filter with three taps are six products, but four are enough: with
//! `d_0..d_3` the numbers that both outputs see,
//!
//! ```text
//! zero     = g_0 (d_0 - d_2)                    y_0 = zero + one + minus
//! one      = (g_0 + g_1 + g_2)/2 (d_1 + d_2)    y_1 = one - minus + infinity
//! minus    = (g_0 - g_1 + g_2)/2 (d_2 - d_1)
//! infinity = g_2 (d_3 - d_1)
//! ```
//!
//! and three for two taps. The rows of a kernel are taken three at a time, then the two or the one that are left; along
//! a row nothing changes, so a product is a whole filter row times an image row that was combined beforehand, once for
//! all features. The sums of the four [`Point`]s go over everything before they make outputs. That is 2/3 of the
//! multiply-adds for kernels of 3x3, 7/10 for 5x5, 5/7 for 7x7.
//!
//! The adjoint is the same read backwards: features at the points `u_0`, `u_0 + u_1`, `u_0 - u_1` and `u_1`, the
//! products, and their sums over the features go to the rows that each was combined from.
//!
//! A pair is an even row and the odd one below it. Even and odd rows lie in planes of their own, so that both of a pair
//! have the same number, and a tap along a row is an offset, as in [`Field`](crate::field::Field). What a pixel depends
//! on, and the order of its sums, is the same wherever it stands among rows of its kind.

mod adjoint;
mod convolve;
pub mod progress;
pub mod stencil;

use crate::{field::LANES, operator::Filters};

/// Rows of the blocks that a kernel holds in registers.
const WHOLE: usize = 3;
const SMALLER: usize = 2;
type Panels = super::panels::Panels<WHOLE, SMALLER>;

/// Numbers of each feature that lie together: so many of the first feature's even rows, of its odd ones, of the next
/// feature, and after all features the next numbers. A pass reads memory from one end to the other, and a register
/// block of either kernel is never cut.
pub const UNIT: usize = 48;

/// Where the numbers from `p` on of the first of `planes` planes lie, and how many there are in one piece.
#[inline(always)]
pub fn unit(planes: usize, p: usize) -> (usize, usize) {
    (p / UNIT * planes * UNIT + p % UNIT, UNIT - p % UNIT)
}

/// Numbers whose taps are in memory at once: a multiple of what the kernels take at a time.
pub const STRETCH: usize = 240;

/// Numbers before and after a stretch that taps along a row may reach.
pub const SIDE: usize = LANES;

/// The distance between two planes of a stretch.
pub const PLANE: usize = STRETCH + 2 * SIDE;

/// Where the two polynomials of a pair, one of features and one of taps, are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    One,
    Minus,
    Zero,
    Infinity,
}

pub const POINTS: [Point; 4] = [Point::One, Point::Minus, Point::Zero, Point::Infinity];

/// A product of some filter rows with some image rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    pub point: Point,
    /// The kernel's row that its block of rows begins with.
    first: usize,
    /// How much of each filter row of the block.
    filter: [f32; 3],
    /// The image rows and their signs.
    image: &'static [(usize, f32)],
}

impl Term {
    const fn new(point: Point, filter: [f32; 3], image: &'static [(usize, f32)]) -> Self {
        Self { point, first: 0, filter, image }
    }

    /// The image rows, counted from where the even output's kernel begins, and their signs.
    pub fn image_rows(&self) -> impl Iterator<Item = (usize, f32)> + use<> {
        let first = self.first;
        self.image.iter().map(move |(row, sign)| (first + row, *sign))
    }

    /// The combination of the filter rows, of which `tap` gives a number.
    fn weight(&self, kernel: usize, tap: impl Fn(usize) -> f32) -> f32 {
        let rows = self.filter.iter().zip(self.first..kernel);
        rows.filter(|(share, _)| **share != 0.0).map(|(share, row)| share * tap(row)).sum()
    }
}

/// The terms of blocks of one, two and three rows.
const BLOCKS: [&[Term]; 3] = [
    &[
        Term::new(Point::Zero, [1.0, 0.0, 0.0], &[(0, 1.0)]),
        Term::new(Point::Infinity, [1.0, 0.0, 0.0], &[(1, 1.0)]),
    ],
    &[
        Term::new(Point::One, [1.0, 1.0, 0.0], &[(1, 1.0)]),
        Term::new(Point::Zero, [1.0, 0.0, 0.0], &[(0, 1.0), (1, -1.0)]),
        Term::new(Point::Infinity, [0.0, 1.0, 0.0], &[(2, 1.0), (1, -1.0)]),
    ],
    &[
        Term::new(Point::One, [0.5, 0.5, 0.5], &[(1, 1.0), (2, 1.0)]),
        Term::new(Point::Minus, [0.5, -0.5, 0.5], &[(2, 1.0), (1, -1.0)]),
        Term::new(Point::Zero, [1.0, 0.0, 0.0], &[(0, 1.0), (2, -1.0)]),
        Term::new(Point::Infinity, [0.0, 0.0, 1.0], &[(3, 1.0), (1, -1.0)]),
    ],
];

/// The terms of a kernel with so many rows, by point.
pub fn terms(kernel: usize) -> Vec<Term> {
    let blocks = (0..kernel).step_by(3);
    let terms = blocks.flat_map(|first| {
        BLOCKS[(kernel - first).min(3) - 1].iter().map(move |term| Term { first, ..*term })
    });
    let mut terms: Vec<_> = terms.collect();
    terms.sort_by_key(|term| term.point);
    terms
}

/// A layer's filters, packed for the kernels: rows and columns in the order of [`terms`], then channels, then taps
/// along a row.
#[derive(Clone, Debug, Default)]
pub struct Packed {
    /// A row a feature.
    convolution: Panels,
    /// For each point, a row a tap of its terms.
    adjoint: [adjoint::Panels; POINTS.len()],
    /// The terms of kernels of this size.
    terms: (usize, Vec<Term>),
}

impl Packed {
    /// Packs `scale L` and the adjoint of `adjoint`.
    pub fn pack(&mut self, theta: &Filters<f32>, scale: f32, adjoint: &Filters<f32>) {
        let (kernel, channels) = (theta.size(), theta.channels());
        if self.terms.0 != kernel {
            self.terms = (kernel, terms(kernel));
        }
        let terms = &self.terms.1;
        let weight = |theta: &Filters<f32>, j: usize, t: usize| {
            let (term, c, tx) = (t / (channels * kernel), t / kernel % channels, t % kernel);
            let tap = |ty: usize| theta.weights()[((j * channels + c) * kernel + ty) * kernel + tx];
            terms[term].weight(kernel, tap)
        };
        let all = terms.len() * channels * kernel;
        self.convolution.pack(theta.features(), all, |j, t| scale * weight(theta, j, t));
        let mut first = 0;
        for (point, panels) in POINTS.iter().zip(&mut self.adjoint) {
            let rows = terms.iter().filter(|term| term.point == *point).count() * channels * kernel;
            panels.pack(rows, theta.features(), |t, j| weight(adjoint, j, first + t));
            first += rows;
        }
    }
}
