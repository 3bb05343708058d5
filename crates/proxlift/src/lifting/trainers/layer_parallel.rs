//! All layers at once, on all threads, of one process or of many: the simultaneous order of LB-FB.
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
//! depend on the threads, which own contiguous ranges of layers, nor on the processes, which [exchange](LayerShare::trade) `u`
//! and `v` at the borders of theirs.
//!
//! All `u` in one round would be possible with steps half as long, for a Hessian that is block tri-diagonal; two colours need
//! no such bound.

use crate::Real;
use crate::lifting::blocks::ThetaSearch;
use crate::lifting::share::LayerShare;
use crate::lifting::{Lifted, Network};
use crate::training::backtracking::Backtracking;
use rayon::prelude::*;
use std::ops::Range;

/// One iteration; returns how many steps were refused.
pub(super) fn iterate<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &mut Network<T>,
    mu: f64,
    (beta, gamma): (&mut [ThetaSearch<T>], &mut [Backtracking]),
    share: &LayerShare,
) -> usize {
    let (own, samples) = (share.own(), lifted.z.samples());
    let mut refused = parameters(lifted, network, mu, beta, own.clone());
    share.trade(&mut lifted.pass, network, samples, (Some(0), None));
    refused += auxiliary(lifted, network, mu, gamma, own.clone(), 0);
    share.trade(&mut lifted.pass, network, samples, (Some(1), Some(0)));
    refused += auxiliary(lifted, network, mu, gamma, own, 1);
    share.trade(&mut lifted.pass, network, samples, (None, Some(1)));
    refused
}

/// One step of all `theta_k` of these layers.
fn parameters<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &mut Network<T>,
    mu: f64,
    beta: &mut [ThetaSearch<T>],
    own: Range<usize>,
) -> usize {
    // Taken out, so that each thread may change its own.
    let mut v = std::mem::take(&mut lifted.pass.v);
    let (fixed, parts) = (&*lifted, network.parts_mut().drain(own.clone()).collect::<Vec<_>>());
    let parts = parts.into_par_iter().zip(&mut v[own.clone()]).zip(&mut beta[own]);
    let refused = parts.map(|((mut part, v), beta)| part.step(fixed, v, mu, beta).refused).sum();
    lifted.pass.v = v;
    refused
}

/// One step of every other `u_k`, of those that these layers start from.
fn auxiliary<T: Real>(
    lifted: &mut Lifted<'_, T>,
    network: &Network<T>,
    mu: f64,
    gamma: &mut [Backtracking],
    own: Range<usize>,
    parity: usize,
) -> usize {
    let pass = &mut lifted.pass;
    let ours = gamma.iter_mut().enumerate().skip(parity).step_by(2).filter(|(k, _)| own.contains(&(k + 1)));
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
