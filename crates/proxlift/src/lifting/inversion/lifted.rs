//! Block-coordinate forward-backward on the lifted energy of an inversion.
//!
//! With `d_k = s_k(v_k) - u_k` and `d_K = mu (grad h(v_K) - y)`, one iteration is the reverse sweep
//!
//! ```text
//! u_k <- prox_{gamma psi_k}(u_k - gamma [(u_k - v_k) + A_{k+1}* d_{k+1}])          k = K-1, .., 0
//! z   <- prox_{gamma alpha R}(z - gamma [A_0* d_0 + sum_k C_k* d_k])
//! ```
//!
//! with steps by backtracking, a step for each sample. `F_k = A_k u_{k-1} + C_k z + b_k`; the layers of the denoiser all see `z`.

use super::block::{Block, z_search};
use super::{Inversion, InversionRecord, Inverted};
use crate::lifting::{Pass, Penalty, Rows};
use crate::training::backtracking::Backtracking;
use crate::{Real, Result};

/// The variables of a search.
struct Search<'p, 'a, T> {
    problem: &'p Inversion<'a, T>,
    z: Rows<T>,
    pass: Pass<T>,
    gamma: Vec<Backtracking>,
    gamma_z: Backtracking,
    maps: usize,
}

impl<T: Real> Inversion<'_, T> {
    /// Lowers `E` from `start`, where `u` is the forward pass. Fails when the start does not fit.
    pub fn lifted(&self, start: &Rows<T>) -> Result<Inverted<T>> {
        let z = self.start(start)?;
        let pass = self.network.forward(&z);
        // The curvature of q is 1: no longer step of a block of u keeps the majorant.
        let gamma = Backtracking { step: 0.5, longest: 1.0, ..z_search::<T>() };
        let (depth, maps) = (self.network.depth(), self.network.layers().len());
        let mut search =
            Search { problem: self, z, pass, gamma: vec![gamma; depth], gamma_z: z_search::<T>(), maps };
        let mut history = vec![search.record()];
        loop {
            if let Some(stop) = self.stopped(&history) {
                return Ok(Inverted { z: search.z, history, stop });
            }
            (0..depth).rev().for_each(|k| search.u(k));
            search.z();
            history.push(search.record());
        }
    }
}

impl<T: Real> Search<'_, '_, T> {
    /// The network's own output is looked at for the record only, and not counted.
    fn record(&self) -> InversionRecord {
        let problem = self.problem;
        let blocks = (0..self.pass.v.len()).map(|k| problem.block(&self.pass, k).iter().sum::<f64>());
        let energy = problem.priors(&self.z).iter().sum::<f64>() + blocks.sum::<f64>();
        let passes = self.maps as f64 * problem.share();
        problem.record(passes, energy, &self.z, problem.network.forward(&self.z).output())
    }

    fn u(&mut self, k: usize) {
        let Self { problem, z, pass, gamma, maps, .. } = self;
        let network = problem.network;
        let mut gradient = pass.u[k].zeros_like();
        network.layers()[k + 1].adjoint(&problem.error(pass, k + 1), &mut gradient);
        gradient.zip(&Penalty::Bregman.by_u(network, k, &pass.u[k], &pass.v[k]), |back, own| back + own);
        *maps += 1;
        let both = |pass: &Pass<T>| -> Vec<f64> {
            problem.block(pass, k).into_iter().zip(problem.block(pass, k + 1)).map(|(a, b)| a + b).collect()
        };
        let (before, energy) = (pass.u[k].clone(), both(pass));
        let prox = network.activations()[k].prox();
        let block = Block { before: &before, gradient: &gradient, energy: &energy };
        block.step(
            &mut gamma[k],
            |_, gamma, u| prox.prox_in_place(gamma, u),
            |_, u| prox.value(u).to_double(),
            |u| {
                pass.v[k + 1] = network.affine(k + 1, &u, z);
                pass.u[k] = u;
                *maps += 1;
                both(pass)
            },
        );
    }

    fn z(&mut self) {
        let Self { problem, z, pass, gamma_z, maps, .. } = self;
        let (network, seeing) = (problem.network, (0..pass.v.len()).filter(|&k| problem.sees_z(k)));
        let seeing: Vec<usize> = seeing.collect();
        let gradient = problem.gather((0..pass.v.len()).map(|k| problem.error(pass, k)));
        *maps += seeing.len();
        let total = |pass: &Pass<T>, z: &Rows<T>| {
            let mut sums = problem.priors(z);
            for &k in &seeing {
                sums.iter_mut().zip(problem.block(pass, k)).for_each(|(sum, block)| *sum += block);
            }
            sums
        };
        let (before, energy) = (z.clone(), total(pass, z));
        let alpha = T::of(problem.options.alpha);
        let block = Block { before: &before, gradient: &gradient, energy: &energy };
        block.step(
            gamma_z,
            |i, gamma, z| {
                if alpha > T::zero() {
                    problem.regulariser.backward(i, gamma * alpha, z);
                }
            },
            |i, z| problem.prior(i, z),
            |moved| {
                *z = moved;
                for &k in &seeing {
                    pass.v[k] = network.affine(k, pass.input(k, z), z);
                }
                *maps += seeing.len();
                total(pass, z)
            },
        );
    }
}
