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

use super::block::{step, z_search};
use super::{Inversion, InversionRecord, Inverted};
use crate::lifting::{Pass, Rows};
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
        let (mut u, mut next) = (self.pass.u[k].taken(), self.pass.v[k + 1].taken());
        let between = self.problem.between(&self.pass, &self.z, k);
        let prox = between.s.prox();
        let energy = |u: &Rows<T>, next: &Rows<T>| -> Vec<f64> {
            let own = between.penalty.values(between.s, u, between.v).into_iter();
            own.zip(between.after.values(next)).map(|(own, after)| own + after).collect()
        };
        let (gradient, before) = (between.gradient(&u, &next), energy(&u, &next));
        let found = step(
            &mut u,
            &gradient,
            &before,
            &mut self.gamma[k],
            |_, gamma, u| prox.prox_in_place(gamma, u),
            |_, u| prox.value(u).to_double(),
            |u| {
                between.layer.apply(u, between.z, &mut next);
                energy(u, &next)
            },
        );
        (self.pass.u[k], self.pass.v[k + 1]) = (u, next);
        self.maps += 1 + found.attempts;
    }

    fn z(&mut self) {
        let Self { problem, z, pass, gamma_z, maps, .. } = self;
        let seeing: Vec<usize> = (0..pass.v.len()).filter(|&k| problem.sees_z(k)).collect();
        let gradient = problem.gather((0..pass.v.len()).map(|k| problem.error(pass, k)));
        let total = |pass: &Pass<T>, z: &Rows<T>| {
            let mut sums = problem.priors(z);
            for &k in &seeing {
                sums.iter_mut().zip(problem.block(pass, k)).for_each(|(sum, block)| *sum += block);
            }
            sums
        };
        let energy = total(pass, z);
        let found = problem.z_step(z, &gradient, &energy, gamma_z, |z| {
            for &k in &seeing {
                pass.v[k] = problem.network.affine(k, pass.input(k, z), z);
            }
            total(pass, z)
        });
        *maps += seeing.len() * (1 + found.attempts);
    }
}
