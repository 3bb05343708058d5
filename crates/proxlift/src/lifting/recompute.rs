//! The reverse sweep in less memory: features are computed again when they are needed.
//!
//! A. Griewank, A. Walther, "Algorithm 799: revolve", 2000; T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with
//! sublinear memory cost", 2016.

use super::rules::{Gradients, Rule, by_rule, through};
use super::{Network, Pass, Rows};
use crate::{Real, Result};

/// The same bits as [`sweep`](super::sweep), with `u` of every `every`-th layer kept from the forward pass: the others are
/// computed a second time, from the last that was kept, when the reverse sweep comes to them.
///
/// A chain of `K` layers then holds `K / every + 2 every` batches of features instead of `2 K`, least for
/// `every = sqrt(K / 2)`, and takes one more forward pass. It serves tangents and secants alike: both need `v` and `u` of one
/// layer at a time. Fails when the samples do not fit the network, or `every` is 0.
pub fn sweep_recomputing<T: Real>(
    network: &Network<T>,
    rule: Rule<T>,
    z: &Rows<T>,
    x: &Rows<T>,
    every: usize,
) -> Result<(Vec<f64>, Gradients<T>)> {
    network.check(z, x)?;
    refuse!(every == 0 => "the features of every 0th layer are to be kept: give 1 or more");
    let (depth, mu) = (network.depth(), rule.loss_weight());
    // u_{k-1} where a segment begins at layer k; that of the first is z.
    let (mut kept, mut u): (Vec<Rows<T>>, Option<Rows<T>>) = (Vec::new(), None);
    for k in 0..depth {
        if k > 0 && k.is_multiple_of(every) {
            kept.extend(u.clone());
        }
        let v = network.affine(k, u.as_ref().unwrap_or(z), z);
        u = Some(network.activate(k, &v));
    }
    let last = u.as_ref().unwrap_or(z);
    let output = network.affine(depth, last, z);
    let losses = network.loss.values(&output, x);
    let mut d = network.loss.error(&output, x, mu);
    let mut gradients = vec![network.layers()[depth].gradient(last, z, &d)];
    let mut back = last.zeros_like();
    network.layers()[depth].adjoint(&d, &mut back);
    drop(u);
    for first in (0..depth).step_by(every).rev() {
        let start = if first == 0 { None } else { kept.pop() };
        let pass = segment(network, first..(first + every).min(depth), start.as_ref().unwrap_or(z), z);
        for k in (first..first + pass.u.len()).rev() {
            let (s, v, u) = (&network.activations()[k], &pass.v[k - first], &pass.u[k - first]);
            let mut learned = by_rule(s, rule, v, &back);
            d = through(s, rule, (v, u), back);
            let input = if k > first { &pass.u[k - first - 1] } else { start.as_ref().unwrap_or(z) };
            let mut blocks = network.layers()[k].gradient(input, z, &d);
            blocks.append(&mut learned);
            gradients.push(blocks);
            back = Rows::zeros(z.samples(), network.layers()[k].inputs());
            if k > 0 {
                network.layers()[k].adjoint(&d, &mut back);
            }
        }
    }
    gradients.reverse();
    let scale = mu.recip();
    gradients.iter_mut().flatten().flatten().for_each(|g| *g *= scale);
    Ok((losses, gradients))
}

/// `v` and `u` of some layers, from the `u` before them.
fn segment<T: Real>(
    network: &Network<T>,
    layers: std::ops::Range<usize>,
    start: &Rows<T>,
    z: &Rows<T>,
) -> Pass<T> {
    let (mut v, mut u): (Vec<Rows<T>>, Vec<Rows<T>>) = (Vec::new(), Vec::new());
    for k in layers {
        let map = network.affine(k, u.last().unwrap_or(start), z);
        u.push(network.activate(k, &map));
        v.push(map);
    }
    Pass { v, u }
}
