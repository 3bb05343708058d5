//! Every constraint of a network relaxed by itself, so that every block has a closed form (after Taylor et al. 2016 and Zeng,
//! Lau, Lin and Yao 2019):
//!
//! ```text
//! A = mu l(v_K, x) + rho/2 sum_{k=0}^{K} ||v_k - F_k(u_{k-1}) + y_k||^2 + gamma/2 sum_{k<K} ||u_k - s_k(v_k) + w_k||^2
//! ```
//!
//! with multipliers `rho y` and `gamma w`, which are zero in the quadratic penalty method. Block by block,
//!
//! ```text
//! v_K     = prox_{mu/rho l}(F_K(u_{K-1}) - y_K)
//! u_k     = (gamma I + rho W^T W)^{-1} (gamma (s_k(v_k) - w_k) + rho W^T (v_{k+1} - b + y_{k+1})),     F_{k+1} = W . + b
//! v_k     = argmin_t rho/2 (t - F_k(u_{k-1}) + y_k)^2 + gamma/2 (s_k(t) - u_k - w_k)^2                 piece by piece
//! theta_k = argmin sum ||v_k + y_k - F_k(u_{k-1})||^2 + delta ||theta_k - before||^2
//! ```
//!
//! For mini-batches, the last is a fit to this batch and to a fading memory of the normal equations of those before.

use super::cholesky::{Cholesky, Normal};
use super::pieces::{Piece, nearest, pieces};
use crate::engine::cpu::dense::{self, vectorised};
use crate::lifting::{Kind, Loss, Network, Rows};
use crate::matrix::{Matrix, multiply};
use crate::prox::{Prox, Softmax, sigmoid::invert};
use crate::real::norm_squared;
use crate::training::Auxiliary;
use crate::{Real, Result, named::named};
use rayon::prelude::*;

named! {
    /// Which constraints have multipliers.
    pub enum Multipliers ("choice of multipliers") {
        /// That of the output, as in Taylor et al. 2016.
        Output = "output",
        /// All.
        All = "all",
    }
}

/// Numbers that are solved for together.
const LANES: usize = 16;

/// The settings that all methods with this splitting share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Splitting {
    /// The weight of the loss.
    pub mu: f64,
    /// The weight of `v_k = F_k(u_{k-1})`.
    pub rho: f64,
    /// The weight of `u_k = s_k(v_k)`.
    pub gamma: f64,
    /// What holds parameters to those before, `delta`.
    pub proximal: f64,
    /// What is kept of the normal equations of earlier batches, from 0 (none; for whole sets) to below 1.
    pub memory: f64,
    /// Where `u` and `v` start: at the forward pass, or where the last visit to the sample left them.
    pub auxiliary: Auxiliary,
    /// Iterations on a batch before the next.
    pub inner: usize,
}

impl Default for Splitting {
    fn default() -> Self {
        let auxiliary = Auxiliary::Anchored;
        Self { mu: 1.0, rho: 1.0, gamma: 1.0, proximal: 1.0, memory: 0.0, auxiliary, inner: 1 }
    }
}

impl Splitting {
    /// Refuses settings out of range, and networks whose blocks have no closed form.
    pub(super) fn check<T: Real>(&self, network: &Network<T>) -> Result<()> {
        for (name, value) in
            [("mu", self.mu), ("rho", self.rho), ("gamma", self.gamma), ("proximal", self.proximal)]
        {
            refuse!(!(value.is_finite() && value > 0.0) => "{name} is {value}, but it must be above zero");
        }
        refuse!(!(0.0..1.0).contains(&self.memory) => "memory is {}, but it must be from 0 to below 1", self.memory);
        refuse!(self.inner == 0 => "a batch needs at least one iteration");
        for (k, layer) in network.layers().iter().enumerate() {
            refuse!(!matches!(layer.kind(), Some(Kind::Dense { .. })) =>
                "closed forms are for dense layers, but layer {k} is a {}: choose another trainer", layer.describe());
        }
        for (k, activation) in network.activations().iter().enumerate() {
            refuse!(pieces(activation).is_none() =>
                "closed forms need piecewise-linear activations, but layer {k} has another: choose another trainer");
        }
        Ok(())
    }
}

/// The variables of a batch.
pub struct Split<'a, T> {
    z: &'a Rows<T>,
    x: &'a Rows<T>,
    pub(super) weights: Splitting,
    /// `u_0..u_{K-1}`.
    pub u: Vec<Rows<T>>,
    /// `v_0..v_K`.
    pub v: Vec<Rows<T>>,
    /// The multipliers of the affine maps, over `rho`.
    pub y: Vec<Rows<T>>,
    /// The multipliers of the activations, over `gamma`.
    pub w: Vec<Rows<T>>,
}

impl<'a, T: Real> Split<'a, T> {
    /// At the forward pass, with multipliers of zero. Fails when the samples do not fit the network, or closed forms do not.
    pub fn new(network: &Network<T>, z: &'a Rows<T>, x: &'a Rows<T>, weights: Splitting) -> Result<Self> {
        network.check(z, x)?;
        weights.check(network)?;
        let pass = network.forward(z);
        let zeros = |rows: &[Rows<T>]| rows.iter().map(Rows::zeros_like).collect();
        Ok(Self { z, x, weights, y: zeros(&pass.v), w: zeros(&pass.u), u: pass.u, v: pass.v })
    }

    /// `u_{k-1}`, or `z`.
    fn input(&self, k: usize) -> &Rows<T> {
        if k == 0 { self.z } else { &self.u[k - 1] }
    }

    /// `F_k(u_{k-1})`.
    fn affine(&self, network: &Network<T>, k: usize) -> Rows<T> {
        network.affine(k, self.input(k), self.z)
    }

    /// What is left of the constraint `v_k = F_k(u_{k-1})`.
    pub fn affine_residual(&self, network: &Network<T>, k: usize) -> Rows<T> {
        let mut residual = self.v[k].clone();
        residual.zip(&self.affine(network, k), |v, f| v - f);
        residual
    }

    /// What is left of the constraint `u_k = s_k(v_k)`.
    pub fn activation_residual(&self, network: &Network<T>, k: usize) -> Rows<T> {
        let mut residual = self.u[k].clone();
        residual.zip(&network.activate(k, &self.v[k]), |u, s| u - s);
        residual
    }

    /// `A`, summed over the batch.
    pub fn value(&self, network: &Network<T>) -> f64 {
        let Splitting { mu, rho, gamma, .. } = self.weights;
        let loss: f64 = network.loss.values(&self.v[self.u.len()], self.x).iter().sum();
        let square = |mut residual: Rows<T>, multiplier: &Rows<T>| {
            residual.zip(multiplier, |r, y| r + y);
            norm_squared(residual.data())
        };
        let affine: f64 =
            (0..self.v.len()).map(|k| square(self.affine_residual(network, k), &self.y[k])).sum();
        let activations = (0..self.u.len()).map(|k| square(self.activation_residual(network, k), &self.w[k]));
        mu * loss + 0.5 * rho * affine + 0.5 * gamma * activations.sum::<f64>()
    }

    /// `v_K`, or `v_k`.
    pub fn move_v(&mut self, network: &Network<T>, k: usize) {
        let Splitting { mu, rho, gamma, .. } = self.weights;
        let mut a = self.affine(network, k);
        a.zip(&self.y[k], |a, y| a - y);
        if k == self.u.len() {
            let rows = a.par_rows_mut().zip(self.x.par_rows());
            rows.for_each(|(a, x)| loss_prox(network.loss, mu / rho, a, x));
        } else {
            let pieces = pieces(&network.activations()[k]).unwrap_or_default();
            let mut c = self.u[k].clone();
            c.zip(&self.w[k], |u, w| u + w);
            let pixels = a.width() / pieces.len().max(1);
            a.par_rows_mut().zip(c.par_rows()).for_each(|(a, c)| {
                for (i, (a, c)) in a.iter_mut().zip(c).enumerate() {
                    let pieces: &[Piece] = &pieces[i / pixels];
                    *a = T::of(nearest(pieces, (rho, a.to_double()), (gamma, c.to_double())));
                }
            });
        }
        self.v[k] = a;
    }

    /// `u_k`, of which layer `k + 1` is made.
    pub fn move_u(&mut self, network: &Network<T>, k: usize) {
        let Splitting { rho, gamma, .. } = self.weights;
        let layer = &network.layers()[k + 1];
        let (n, m) = (layer.inputs(), layer.outputs());
        let (weights, bias) = (wide(layer.parameters()[0]), layer.parameters()[1]);
        let matrix = Matrix::new(&weights, m, n);
        let mut a = vec![0.0; n * n];
        multiply((rho, 0.0), matrix.transposed(), matrix, &mut a);
        a.iter_mut().step_by(n + 1).for_each(|a| *a += gamma);
        let mut t = self.v[k + 1].clone();
        t.zip(&self.y[k + 1], |v, y| v + y);
        t.data_mut().chunks_exact_mut(m).for_each(|row| row.iter_mut().zip(bias).for_each(|(t, &b)| *t -= b));
        let mut s = network.activate(k, &self.v[k]);
        s.zip(&self.w[k], |s, w| s - w);
        let (t, mut rows) = (wide(t.data()), wide(s.data()));
        multiply((rho, gamma), Matrix::new(&t, self.z.samples(), m), matrix, &mut rows);
        // gamma I is in it: it has a factor.
        if let Some(factor) = Cholesky::new(a, n) {
            factor.solve(&mut rows);
            self.u[k].data_mut().iter_mut().zip(rows).for_each(|(u, row)| *u = T::of(row));
        }
    }

    /// `theta_k`, from the normal equations that `sums` keeps.
    pub(super) fn move_theta(&self, network: &mut Network<T>, k: usize, sums: &mut Normal, keep: f64) {
        let mut t = self.v[k].clone();
        t.zip(&self.y[k], |v, y| v + y);
        sums.observe(keep, &wide(self.input(k).data()), &wide(t.data()));
        let layer = &mut network.layers_mut()[k];
        let n = layer.inputs();
        let mut blocks = layer.parameters_mut();
        let (weights, bias) = blocks.split_at_mut(1);
        let (weights, bias) = (&mut *weights[0], &mut *bias[0]);
        let rows = weights.chunks_exact(n).zip(&*bias);
        let before = rows.flat_map(|(row, b)| row.iter().chain([b]).map(|w| w.to_double()));
        let solved = sums.solve(self.weights.proximal, before.collect());
        for ((row, b), solved) in weights.chunks_exact_mut(n).zip(bias).zip(solved.chunks_exact(n + 1)) {
            row.iter_mut().chain([b]).zip(solved).for_each(|(w, &s)| *w = T::of(s));
        }
    }

    /// `v_K, theta_K, u_{K-1}, v_{K-1}, theta_{K-1}, .., v_0, theta_0`; `sums` keeps a share of what it holds.
    pub(super) fn sweep(&mut self, network: &mut Network<T>, sums: &mut [Normal], keep: f64) {
        for k in (0..self.v.len()).rev() {
            if k < self.u.len() {
                self.move_u(network, k);
            }
            self.move_v(network, k);
            self.move_theta(network, k, &mut sums[k], keep);
        }
    }

    /// `y_k += v_k - F_k(u_{k-1})` and `w_k += u_k - s_k(v_k)`: one step up the multipliers.
    pub(super) fn move_multipliers(&mut self, network: &Network<T>, all: bool) {
        let last = self.u.len();
        for k in 0..=last {
            if all || k == last {
                let residual = self.affine_residual(network, k);
                self.y[k].zip(&residual, |y, r| y + r);
            }
            if all && k < last {
                let residual = self.activation_residual(network, k);
                self.w[k].zip(&residual, |w, r| w + r);
            }
        }
    }

    /// All variables, to be kept.
    pub(super) fn variables(&self) -> Vec<&Rows<T>> {
        self.u.iter().chain(&self.v).chain(&self.y).chain(&self.w).collect()
    }

    /// The same, to be recalled.
    pub(super) fn variables_mut(&mut self) -> impl Iterator<Item = &mut Rows<T>> {
        self.u.iter_mut().chain(&mut self.v).chain(&mut self.y).chain(&mut self.w)
    }
}

fn wide<T: Real>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| v.to_double()).collect()
}

/// `v = argmin_v t l(v, x) + 1/2 ||v - a||^2`, where `a` is. With `y = a + t x`, that is `v + t grad h(v) = y`.
fn loss_prox<T: Real>(loss: Loss, t: f64, a: &mut [T], x: &[T]) {
    let mut y: Vec<f64> = a.iter().zip(x).map(|(a, x)| a.to_double() + t * x.to_double()).collect();
    match loss {
        Loss::Squared => y.iter_mut().for_each(|y| *y /= 1.0 + t),
        Loss::Logistic => vectorised(
            dense::level(),
            #[inline(always)]
            || {
                for y in y.chunks_mut(LANES) {
                    let all = std::array::from_fn::<_, LANES, _>(|i| y.get(i).copied().unwrap_or(0.0));
                    y.iter_mut().zip(invert(all, t, 1.0)).for_each(|(y, v)| *y = v);
                }
            },
        ),
        // By Moreau: v = y - t p with p = prox_{psi / (1 + t)}(y / (1 + t)) and psi the potential of softmax.
        Loss::Softmax => {
            let mut p: Vec<f64> = y.iter().map(|y| y / (1.0 + t)).collect();
            if let Ok(softmax) = Softmax::new(p.len()) {
                softmax.prox_in_place(1.0 / (1.0 + t), &mut p);
                y.iter_mut().zip(&p).for_each(|(y, p)| *y -= t * p);
            }
        }
    }
    a.iter_mut().zip(y).for_each(|(a, y)| *a = T::of(y));
}
