//! The layers of the paper's denoiser: they see the noisy image beside the layer before.

use super::Affine;
use super::kind::{Kind, Shape};
use crate::lifting::Rows;
use crate::operator::{Convolution, Filters, LinearOperator};
use crate::{Real, Result};
use rayon::prelude::*;

/// `F(u, z) = u - tau L (L* u - z)`, a dual step; or, as the first layer, the same at `u = L_0 z`.
#[derive(Clone, Debug, PartialEq)]
pub struct DualStep<T> {
    filters: Filters<T>,
    tau: T,
    /// `theta_0`, in the first layer.
    first: Option<Filters<T>>,
    size: (usize, usize),
}

/// `F(u, z) = z - L* u`: the estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthesis<T> {
    filters: Filters<T>,
    size: (usize, usize),
}

impl<T: Real> DualStep<T> {
    /// The step on images of `height x width` pixels.
    pub fn new(filters: Filters<T>, tau: T, size: (usize, usize)) -> Result<Self> {
        Convolution::new(&filters, size.0, size.1)?;
        Ok(Self { filters, tau, first: None, size })
    }

    /// The first step, which starts from the image.
    pub fn first(first: Filters<T>, filters: Filters<T>, tau: T, size: (usize, usize)) -> Result<Self> {
        let shape = |f: &Filters<T>| (f.features(), f.channels(), f.size());
        refuse!(shape(&first) != shape(&filters) => "theta_1 has another shape than theta_0");
        Ok(Self { first: Some(first), ..Self::new(filters, tau, size)? })
    }

    fn pixels(&self) -> usize {
        self.size.0 * self.size.1
    }

    /// `y - tau L (L* y - z)`; without `z`, its linear part.
    fn step(&self, y: &[T], z: Option<&[T]>, v: &mut [T]) {
        let op = operator(&self.filters, self.size);
        let mut r = vec![T::zero(); op.domain_len()];
        op.adjoint(y, &mut r);
        if let Some(z) = z {
            r.iter_mut().zip(z).for_each(|(r, &z)| *r -= z);
        }
        op.apply(&r, v);
        v.iter_mut().zip(y).for_each(|(v, &y)| *v = y - self.tau * *v);
    }

    /// `L_0 z` in the first layer.
    fn start(&self, z: &[T]) -> Option<Vec<T>> {
        let first = self.first.as_ref()?;
        let op = operator(first, self.size);
        let mut u = vec![T::zero(); op.range_len()];
        op.apply(z, &mut u);
        Some(u)
    }
}

fn operator<T: Real>(filters: &Filters<T>, (height, width): (usize, usize)) -> Convolution<'_, T> {
    Convolution::new(filters, height, width).expect("checked by new")
}

fn summed<T: Real>(parts: Vec<Vec<Vec<T>>>, like: &[&[T]]) -> Vec<Vec<T>> {
    let mut sums: Vec<Vec<T>> = like.iter().map(|block| vec![T::zero(); block.len()]).collect();
    for part in &parts {
        for (sum, part) in sums.iter_mut().zip(part) {
            sum.iter_mut().zip(part).for_each(|(sum, &g)| *sum += g);
        }
    }
    sums
}

impl<T: Real> Affine<T> for DualStep<T> {
    fn describe(&self) -> String {
        let (j, k) = (self.filters.features(), self.filters.size());
        format!("dual step, {j} features, {k}x{k}")
    }

    fn kind(&self) -> Option<Kind> {
        let (filters, tau) = (Shape::of(&self.filters), self.tau.to_double());
        Some(Kind::DualStep { filters, size: self.size, tau, first: self.first.is_some() })
    }

    fn inputs(&self) -> usize {
        if self.first.is_some() { self.filters.channels() * self.pixels() } else { self.outputs() }
    }

    fn outputs(&self) -> usize {
        self.filters.features() * self.pixels()
    }

    fn skips(&self) -> Option<usize> {
        Some(self.filters.channels() * self.pixels())
    }

    fn rows(&self) -> usize {
        self.filters.features()
    }

    fn parameters(&self) -> Vec<&[T]> {
        self.first.iter().chain([&self.filters]).map(Filters::weights).collect()
    }

    fn parameters_mut(&mut self) -> Vec<&mut [T]> {
        self.first.iter_mut().chain([&mut self.filters]).map(Filters::weights_mut).collect()
    }

    fn apply(&self, u: &Rows<T>, z: &Rows<T>, v: &mut Rows<T>) {
        v.par_rows_mut().zip(u.par_rows()).zip(z.par_rows()).for_each(|((v, u), z)| match self.start(z) {
            Some(start) => self.step(&start, Some(z), v),
            None => self.step(u, Some(z), v),
        });
    }

    fn adjoint(&self, d: &Rows<T>, back: &mut Rows<T>) {
        back.par_rows_mut().zip(d.par_rows()).for_each(|(back, d)| match &self.first {
            None => self.step(d, None, back),
            // What it starts from is the image alone, which `add_adjoint_skip` gives its part.
            Some(_) => back.fill(T::zero()),
        });
    }

    fn add_adjoint_skip(&self, d: &Rows<T>, to_z: &mut Rows<T>) {
        to_z.par_rows_mut().zip(d.par_rows()).for_each(|(to_z, d)| {
            let op = operator(&self.filters, self.size);
            let mut part = vec![T::zero(); to_z.len()];
            op.adjoint(d, &mut part);
            to_z.iter_mut().zip(&part).for_each(|(to, &p)| *to += self.tau * p);
            if let Some(first) = &self.first {
                let mut back = vec![T::zero(); d.len()];
                self.step(d, None, &mut back);
                operator(first, self.size).adjoint(&back, &mut part);
                to_z.iter_mut().zip(&part).for_each(|(to, &p)| *to += p);
            }
        });
    }

    fn gradient(&self, u: &Rows<T>, z: &Rows<T>, d: &Rows<T>) -> Vec<Vec<T>> {
        let parts = u.par_rows().zip(z.par_rows()).zip(d.par_rows()).map(|((u, z), d)| {
            let (start, op) = (self.start(z), operator(&self.filters, self.size));
            let y = start.as_deref().unwrap_or(u);
            let (mut r, mut a) = (vec![T::zero(); z.len()], vec![T::zero(); z.len()]);
            op.adjoint(y, &mut r);
            r.iter_mut().zip(z).for_each(|(r, &z)| *r -= z);
            op.adjoint(d, &mut a);
            // -tau [ corr(r, d) + corr(L* d, y) ]
            let mut gradient = vec![T::zero(); self.filters.weights().len()];
            op.add_weight_gradient(&r, d, &mut gradient);
            op.add_weight_gradient(&a, y, &mut gradient);
            gradient.iter_mut().for_each(|g| *g *= -self.tau);
            let Some(first) = &self.first else { return vec![gradient] };
            let (mut back, mut of_first) = (vec![T::zero(); d.len()], vec![T::zero(); first.weights().len()]);
            self.step(d, None, &mut back);
            operator(first, self.size).add_weight_gradient(z, &back, &mut of_first);
            vec![of_first, gradient]
        });
        summed(parts.collect(), &self.parameters())
    }
}

impl<T: Real> Synthesis<T> {
    /// The estimate on images of `height x width` pixels.
    pub fn new(filters: Filters<T>, size: (usize, usize)) -> Result<Self> {
        Convolution::new(&filters, size.0, size.1)?;
        Ok(Self { filters, size })
    }
}

impl<T: Real> Affine<T> for Synthesis<T> {
    fn describe(&self) -> String {
        format!("estimate from {} features", self.filters.features())
    }

    fn kind(&self) -> Option<Kind> {
        Some(Kind::Synthesis { filters: Shape::of(&self.filters), size: self.size })
    }

    fn inputs(&self) -> usize {
        self.filters.features() * self.size.0 * self.size.1
    }

    fn outputs(&self) -> usize {
        self.filters.channels() * self.size.0 * self.size.1
    }

    fn skips(&self) -> Option<usize> {
        Some(self.outputs())
    }

    fn rows(&self) -> usize {
        self.filters.features()
    }

    fn parameters(&self) -> Vec<&[T]> {
        vec![self.filters.weights()]
    }

    fn parameters_mut(&mut self) -> Vec<&mut [T]> {
        vec![self.filters.weights_mut()]
    }

    fn apply(&self, u: &Rows<T>, z: &Rows<T>, v: &mut Rows<T>) {
        v.par_rows_mut().zip(u.par_rows()).zip(z.par_rows()).for_each(|((v, u), z)| {
            operator(&self.filters, self.size).adjoint(u, v);
            v.iter_mut().zip(z).for_each(|(v, &z)| *v = z - *v);
        });
    }

    fn adjoint(&self, d: &Rows<T>, back: &mut Rows<T>) {
        back.par_rows_mut().zip(d.par_rows()).for_each(|(back, d)| {
            operator(&self.filters, self.size).apply(d, back);
            back.iter_mut().for_each(|b| *b = -*b);
        });
    }

    fn add_adjoint_skip(&self, d: &Rows<T>, to_z: &mut Rows<T>) {
        to_z.zip(d, |to, d| to + d);
    }

    fn gradient(&self, u: &Rows<T>, _: &Rows<T>, d: &Rows<T>) -> Vec<Vec<T>> {
        let parts = u.par_rows().zip(d.par_rows()).map(|(u, d)| {
            let mut gradient = vec![T::zero(); self.filters.weights().len()];
            operator(&self.filters, self.size).add_weight_gradient(d, u, &mut gradient);
            gradient.iter_mut().for_each(|g| *g = -*g);
            vec![gradient]
        });
        summed(parts.collect(), &self.parameters())
    }
}
