//! Proximal gradient descent through the network, the plain way to invert it:
//!
//! ```text
//! z <- prox_{gamma alpha R}(z - gamma grad (mu l(G(.), y))(z))
//! ```
//!
//! with the gradient by tangents, `d_k = s_k'(v_k) A_{k+1}* d_{k+1}`, and steps by backtracking, a step for each sample.

use super::block::z_search;
use super::{Inversion, Inverted};
use crate::lifting::{Pass, Rows};
use crate::{Real, Result};

impl<T: Real> Inversion<'_, T> {
    /// Lowers `J` from `start`. Fails when the start does not fit.
    pub fn descent(&self, start: &Rows<T>) -> Result<Inverted<T>> {
        let mut z = self.start(start)?;
        let mut pass = self.network.forward(&z);
        let depth = self.network.depth();
        let skips = (0..=depth).filter(|&k| self.sees_z(k)).count();
        let (mut search, mut maps) = (z_search::<T>(), depth + 1);
        let values = |z: &Rows<T>, pass: &Pass<T>| -> Vec<f64> {
            let misfits = self.misfits(pass.output());
            self.priors(z).into_iter().zip(misfits).map(|(prior, m)| prior + self.options.mu * m).collect()
        };
        let mut energy = values(&z, &pass);
        let mut history = vec![self.record(1.0, energy.iter().sum(), &z, pass.output())];
        loop {
            if let Some(stop) = self.stopped(&history) {
                return Ok(Inverted { z, history, stop });
            }
            let gradient = self.tangents(&pass);
            maps += depth + skips;
            let mut reached = Vec::new();
            let found = self.z_step(&mut z, &gradient, &energy, &mut search, |z| {
                pass = self.network.forward(z);
                reached = values(z, &pass);
                reached.clone()
            });
            maps += (depth + 1) * found.attempts;
            energy = reached;
            let passes = maps as f64 * self.share();
            history.push(self.record(passes, energy.iter().sum(), &z, pass.output()));
        }
    }

    /// The gradient of `mu l(G(z), y)`, summed over the batch.
    pub fn gradient(&self, z: &Rows<T>) -> Rows<T> {
        self.tangents(&self.network.forward(z))
    }

    fn tangents(&self, pass: &Pass<T>) -> Rows<T> {
        let mut errors = vec![self.data_term(self.options.mu).error(pass.output())];
        for k in (0..pass.u.len()).rev() {
            let mut back = pass.u[k].zeros_like();
            self.network.layers()[k + 1].adjoint(&errors[errors.len() - 1], &mut back);
            errors.push(self.network.slope(k, &pass.v[k], &back));
        }
        self.gather(errors.into_iter().rev())
    }
}
