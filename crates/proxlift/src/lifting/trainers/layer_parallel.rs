//! All layers at once, on all threads: the simultaneous order of LB-FB.
//!
//! Each block `P_k(u_k, F_k(u_{k-1}))` of the energy sees the parameters of one layer and the auxiliary variables on its two
//! sides (`P_K` is the loss), so that an iteration falls into three rounds of independent steps:
//!
//! | round | its blocks | the terms of `E` that a block enters |
//! |---|---|---|
//! | parameters | `theta_0, .., theta_K` | `P_k` |
//! | even `u` | `u_0, u_2, ..` | `P_k` and `P_{k+1}` |
//! | odd `u` | `u_1, u_3, ..` | `P_k` and `P_{k+1}` |
//!
//! No term is entered by two blocks of a round. With everything else held, `E` is then a sum of functions of one block each, and
//! as every block lowers its own by backtracking, in whatever order or at the same time, `E` cannot rise. A block reads only
//! what no other block of its round writes: `u_k` owns `u_k` and `v_{k+1}`, and reads `v_k` and `u_{k+1}`. So its bits do not
//! depend on the threads, which own contiguous ranges of layers.
//!
//! All `u` in one round would be possible with steps half as long, for a Hessian that is block tri-diagonal; two colours need
//! no such bound.

use crate::Real;
use crate::lifting::blocks::ThetaSearch;
use crate::lifting::{Lifted, Network};
use crate::training::backtracking::Backtracking;
use rayon::prelude::*;

/// One iteration; returns how many steps were refused.
pub(super) fn iterate<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &mut Network<T>,
    mu: f64,
    (beta, gamma): (&mut [ThetaSearch<T>], &mut [Backtracking]),
) -> usize {
    let refused = parameters(lifted, network, mu, beta);
    refused + [0, 1].map(|parity| auxiliary(lifted, network, mu, gamma, parity)).iter().sum::<usize>()
}

/// One step of all `theta_k`.
fn parameters<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &mut Network<T>,
    mu: f64,
    beta: &mut [ThetaSearch<T>],
) -> usize {
    // Taken out, so that each thread may change its own.
    let mut v = std::mem::take(&mut lifted.pass.v);
    let (fixed, parts) = (&*lifted, network.parts_mut().into_par_iter().zip(&mut v).zip(beta));
    let refused = parts.map(|((mut part, v), beta)| part.step(fixed, v, mu, beta).refused).sum();
    lifted.pass.v = v;
    refused
}

/// One step of every other `u_k`.
fn auxiliary<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &Network<T>,
    mu: f64,
    gamma: &mut [Backtracking],
    parity: usize,
) -> usize {
    let pass = &mut lifted.pass;
    let ours = gamma.iter_mut().enumerate().skip(parity).step_by(2);
    let mut blocks: Vec<_> =
        ours.map(|(k, gamma)| (k, pass.u[k].taken(), pass.v[k + 1].taken(), gamma)).collect();
    let fixed = &*lifted;
    let steps = blocks.par_iter_mut().map(|(k, u, next, gamma)| {
        let found = fixed.between(network, *k, mu).step(u, next, gamma);
        found.refused
    });
    let refused = steps.sum();
    for (k, u, next, _) in blocks {
        (lifted.pass.u[k], lifted.pass.v[k + 1]) = (u, next);
    }
    refused
}
