//! Arithmetic that is not exact: features and errors of few bits, noise on what is computed from errors.
//!
//! ```text
//! v = F(Q u, Q z),      back = A* Q d + noise,      gradient = that of <Q d, F(Q u, Q z)> + noise
//! ```

use super::Affine;
use crate::lifting::Rows;
use crate::random::{Purpose, stream};
use crate::{Real, Result};
use rand_distr::{Distribution, StandardNormal};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

/// An affine map as a machine with few bits, or with noise, would compute it.
///
/// What enters a product (`u` on the way forward, `d` on the way back and in gradients) is rounded to `2^bits` levels from
/// minus to plus its largest magnitude in the batch. What comes out of the products with `d` gets white noise, `noise` times
/// its own root mean square. Parameters stay exact.
pub struct Imprecise<A> {
    map: A,
    bits: Option<u32>,
    noise: f64,
    seed: u64,
    /// Results with noise so far: each has a stream of its own.
    drawn: AtomicU64,
}

impl<A> Imprecise<A> {
    /// The map `A` with so many bits, if not all, and noise. Fails when a number is out of range.
    pub fn new(map: A, bits: Option<u32>, noise: f64, seed: u64) -> Result<Self> {
        refuse!(bits.is_some_and(|bits| !(2..=16).contains(&bits)) =>
            "features of {} bits are asked for, but 2 to 16 make sense", bits.unwrap_or(0));
        crate::error::check_not_negative("the noise on gradients", noise)?;
        Ok(Self { map, bits, noise, seed, drawn: AtomicU64::new(0) })
    }

    fn rounded<'a, T: Real>(&self, rows: &'a Rows<T>) -> Cow<'a, Rows<T>> {
        let Some(bits) = self.bits else { return Cow::Borrowed(rows) };
        let largest = |most: T, v: T| if v > most { v } else { most };
        // So many at once, so that it vectorises.
        let mut lanes = [T::zero(); 16];
        for values in rows.data().chunks(lanes.len()) {
            lanes.iter_mut().zip(values).for_each(|(most, v)| *most = largest(*most, v.abs()));
        }
        let most = lanes.into_iter().fold(T::zero(), largest);
        if most == T::zero() {
            return Cow::Borrowed(rows);
        }
        let levels = T::of(f64::from((1_u32 << (bits - 1)) - 1));
        let (there, back) = (levels / most, most / levels);
        // What is added to such a number leaves no digits behind the point: the sum is the nearest integer.
        let point = T::of(1.5) / T::epsilon();
        let mut rounded = rows.clone();
        rounded.data_mut().iter_mut().for_each(|v| *v = ((*v * there + point) - point) * back);
        Cow::Owned(rounded)
    }

    /// What the map sees of `z`, if anything.
    fn skipped<'a, T: Real>(&self, z: &'a Rows<T>) -> Cow<'a, Rows<T>>
    where
        A: Affine<T>,
    {
        if self.map.skips().is_some() { self.rounded(z) } else { Cow::Borrowed(z) }
    }

    fn add_noise<T: Real>(&self, values: &mut [T]) {
        if self.noise == 0.0 || values.is_empty() {
            return;
        }
        let mut rng = stream(self.seed, Purpose::Arithmetic, 0, self.drawn.fetch_add(1, Ordering::Relaxed));
        let squares: f64 = values.iter().map(|v| v.to_double().powi(2)).sum();
        let scale = self.noise * (squares / values.len() as f64).sqrt();
        for value in values {
            let draw: f64 = StandardNormal.sample(&mut rng);
            *value += T::of(scale * draw);
        }
    }
}

impl<T: Real, A: Affine<T>> Affine<T> for Imprecise<A> {
    fn describe(&self) -> String {
        let bits = self.bits.map_or(String::new(), |bits| format!(", {bits} bits"));
        let noise = if self.noise > 0.0 { format!(", noise {}", self.noise) } else { String::new() };
        format!("{}{bits}{noise}", self.map.describe())
    }

    fn inputs(&self) -> usize {
        self.map.inputs()
    }

    fn outputs(&self) -> usize {
        self.map.outputs()
    }

    fn skips(&self) -> Option<usize> {
        self.map.skips()
    }

    fn rows(&self) -> usize {
        self.map.rows()
    }

    fn parameters(&self) -> Vec<&[T]> {
        self.map.parameters()
    }

    fn parameters_mut(&mut self) -> Vec<&mut [T]> {
        self.map.parameters_mut()
    }

    fn apply(&self, u: &Rows<T>, z: &Rows<T>, v: &mut Rows<T>) {
        self.map.apply(&self.rounded(u), &self.skipped(z), v);
    }

    fn adjoint(&self, d: &Rows<T>, back: &mut Rows<T>) {
        self.map.adjoint(&self.rounded(d), back);
        self.add_noise(back.data_mut());
    }

    fn add_adjoint_skip(&self, d: &Rows<T>, to_z: &mut Rows<T>) {
        self.map.add_adjoint_skip(&self.rounded(d), to_z);
    }

    fn gradient(&self, u: &Rows<T>, z: &Rows<T>, d: &Rows<T>) -> Vec<Vec<T>> {
        let mut gradient = self.map.gradient(&self.rounded(u), &self.skipped(z), &self.rounded(d));
        gradient.iter_mut().for_each(|block| self.add_noise(block));
        gradient
    }
}
