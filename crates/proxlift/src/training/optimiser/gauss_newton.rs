//! The Gauss-Newton metric of a parameter block (Chouzenoux, Pesquet and Repetti 2016 allow any): `A` is a damped moving
//! average of `J^T D J`, a full matrix, or its diagonal alone.
//!
//! The block of layer `k` is `B(u_k, v_k(theta_k))`, whose Hessian in `v_k` is `D = s'(v_k)`, zero where the activation
//! saturates. With `v_j(p) = u_j(p) - tau sum_{c,t} w[j,c,t] r_c(p+t)` and `r = L* u - z`, a row of `J` is
//!
//! ```text
//! dv_j(p)/dw[j',c,t'] = -tau [ delta_{jj'} r_c(p+t') + sum_t w[j,c,t] u_{j'}(p+t-t') ].
//! ```
//!
//! The output block has rows `-u_{j'}(p-t')`, and its weight `mu` is left out: at the forward pass, the gradients of all
//! blocks are proportional to `mu`, and so one rate suits all layers only if their matrices are either all so or none.
//! For `theta_0`, whose block passes through layer 1, the rows are those of `L_0 z` alone.

use crate::matrix::{Matrix, multiply};
use crate::network::{Architecture, Network};
use crate::random::{Purpose, below, stream};
use crate::training::{Lifted, Machine, Snapshot};
use crate::{Result, field::Field};
use rand_chacha::rand_core::Rng;
use rayon::prelude::*;

pub(crate) const OBSERVE_EVERY: u64 = 10;

/// Refuses networks whose blocks have other Jacobians than those written here.
pub(crate) fn check(network: &Network<f32>) -> Result<()> {
    let clips = network.activation.iter().all(|s| s.piecewise().is_some());
    refuse!(!(network.is_plain() && clips) || network.learns_activations() =>
        "the Gauss-Newton metric is for dual forward-backward with fixed thresholds: choose the diagonal or the \
         Kronecker metric");
    Ok(())
}

/// What is kept of the moving average when the metric is observed once more.
const KEEP: f32 = 0.9;
/// Damping, as a share of the mean of the diagonal.
const DAMPING: f32 = 0.02;
/// Pixels of each sample that an observation draws.
const PIXELS: usize = 16;
/// Samples of the batch that an observation looks at.
const SAMPLES: usize = 32;

/// The damped Gauss-Newton matrices of all layers, whole or only their diagonals.
#[derive(Clone, Debug)]
pub(crate) struct GaussNewton {
    /// `A_k`, symmetric, row by row; or its diagonal.
    matrices: Vec<Vec<f32>>,
    /// Lower Cholesky factors of the damped `A_k`; or the damped diagonal.
    factors: Vec<Vec<f32>>,
    observations: f64,
    seed: u64,
}

impl GaussNewton {
    /// Whole matrices, or diagonals.
    pub(crate) fn new(network: &Network<f32>, whole: bool, seed: u64) -> Self {
        let size = network.theta[0].weights().len();
        let zero = vec![vec![0.0; if whole { size * size } else { size }]; network.theta.len()];
        Self { matrices: zero.clone(), factors: zero, observations: 0.0, seed }
    }

    /// Averages in the matrices at what `lifted` holds.
    pub(crate) fn observe(&mut self, (engine, network): Machine<'_, f32>, lifted: &Lifted<f32>) {
        let (seed, draw) = (self.seed, self.observations as u64);
        let keep = if self.observations == 0.0 { 0.0 } else { KEEP };
        let size = network.theta[0].weights().len();
        let ranks = engine.ranks();
        let places = ranks.places(lifted.z.samples());
        let samples = ranks.samples(lifted.z.samples()).min(SAMPLES);
        let layers = (0..self.matrices.len()).into_par_iter();
        let rows =
            layers.map(|k| rows(network, lifted, k, &places, stream(seed, Purpose::Metric, draw, k as u64)));
        let rows: Vec<_> =
            rows.collect::<Vec<_>>().into_iter().map(|rows| ranks.rows_of_samples(rows)).collect();
        let scale = (1.0 - keep) * lifted.z.grid().pixels() as f32 / (PIXELS * samples) as f32;
        let layers = self.matrices.par_iter_mut().zip(&mut self.factors).zip(&rows);
        layers.for_each(|((matrix, factor), rows)| {
            matrix.iter_mut().for_each(|a| *a *= keep);
            if matrix.len() == size {
                for row in rows.chunks_exact(size) {
                    matrix.iter_mut().zip(row).for_each(|(a, r)| *a += scale * r * r);
                }
                let damping = damping(matrix.iter().sum(), size);
                factor.iter_mut().zip(&*matrix).for_each(|(f, a)| *f = a + damping);
            } else {
                let rows = Matrix::new(rows, rows.len() / size, size);
                multiply((scale, 1.0), rows.transposed(), rows, matrix);
                cholesky(matrix, size, factor);
            }
        });
        self.observations += 1.0;
    }

    /// `g <- A_k^{-1} g`.
    pub(crate) fn solve(&self, k: usize, g: &mut [f32]) {
        let (l, n) = (&self.factors[k], g.len());
        if l.len() == n {
            return g.iter_mut().zip(l).for_each(|(g, a)| *g /= a);
        }
        for i in 0..n {
            let sum: f32 = (0..i).map(|j| l[i * n + j] * g[j]).sum();
            g[i] = (g[i] - sum) / l[i * n + i];
        }
        for i in (0..n).rev() {
            g[i] /= l[i * n + i];
            for j in 0..i {
                g[j] -= l[i * n + j] * g[i];
            }
        }
    }

    pub(crate) fn save(&self, state: &mut Snapshot) {
        for (k, (matrix, factor)) in self.matrices.iter().zip(&self.factors).enumerate() {
            state.put(format!("metric_{k}"), matrix);
            state.put(format!("factor_{k}"), factor);
        }
        state.put_scalar("observations", self.observations);
    }

    pub(crate) fn restore(&mut self, state: &Snapshot) -> Result<()> {
        for (k, (matrix, factor)) in self.matrices.iter_mut().zip(&mut self.factors).enumerate() {
            state.get(&format!("metric_{k}"), matrix)?;
            state.get(&format!("factor_{k}"), factor)?;
        }
        self.observations = state.scalar("observations")?;
        Ok(())
    }
}

/// Rows of `D^{1/2} J` of block `k` at random pixels, of each sample; `places` are those of the samples in their batch.
fn rows(
    network: &Network<f32>,
    lifted: &Lifted<f32>,
    k: usize,
    places: &[usize],
    mut rng: impl Rng,
) -> Vec<Vec<f32>> {
    let Architecture { depth, features, kernel, channels } = network.architecture();
    let (taps, radius) = (kernel * kernel, (kernel / 2) as isize);
    let size = features * channels * taps;
    let grid = lifted.z.grid();
    let offset = |t: usize| ((t / kernel) as isize - radius, (t % kernel) as isize - radius);
    let mut draw = || (below(&mut rng, grid.height()) as isize, below(&mut rng, grid.width()) as isize);
    let (mut all, mut drawn) = (Vec::new(), 0);
    for (s, &place) in places.iter().enumerate() {
        let mut rows = Vec::new();
        if place < SAMPLES {
            // Every sample has the pixels that it would have if all were here.
            for _ in drawn..PIXELS * place {
                draw();
            }
            drawn = PIXELS * (place + 1);
        }
        for _ in 0..if place < SAMPLES { PIXELS } else { 0 } {
            let (y, x) = draw();
            let patch = |field: &Field<f32>, channel: usize, t: usize, sign: isize| {
                let (ty, tx) = offset(t);
                field.at(s, channel, y + sign * ty, x + sign * tx)
            };
            if k == depth {
                for c in 0..channels {
                    let start = rows.len();
                    rows.resize(start + size, 0.0);
                    for (j, t) in (0..features).flat_map(|j| (0..taps).map(move |t| (j, t))) {
                        rows[start + (j * channels + c) * taps + t] = patch(&lifted.u[depth - 1], j, t, -1);
                    }
                }
                continue;
            }
            let layer = network.layer(k.max(1));
            let clip = layer.activation.piecewise().expect("a clip, as was checked");
            let active = |j: usize| clip.slope(j, lifted.v[k.max(1)].at(s, j, y, x)) > 0.0;
            for j in (0..features).filter(|&j| active(j)) {
                let start = rows.len();
                rows.resize(start + size, 0.0);
                let row = &mut rows[start..];
                let (image, scale) = if k == 0 { (&lifted.z, 1.0) } else { (&lifted.r[k], layer.tau) };
                for (c, t) in (0..channels).flat_map(|c| (0..taps).map(move |t| (c, t))) {
                    row[(j * channels + c) * taps + t] = scale * patch(image, c, t, 1);
                }
                if k == 0 {
                    continue;
                }
                let weights = layer.theta.weights();
                for (i, c) in (0..features).flat_map(|i| (0..channels).map(move |c| (i, c))) {
                    for t in 0..taps {
                        let (ty, tx) = offset(t);
                        let sum: f32 = (0..taps)
                            .map(|q| {
                                let (qy, qx) = offset(q);
                                let u = lifted.u[k - 1].at(s, i, y + qy - ty, x + qx - tx);
                                weights[(j * channels + c) * taps + q] * u
                            })
                            .sum();
                        row[(i * channels + c) * taps + t] += scale * sum;
                    }
                }
            }
        }
        all.push(rows);
    }
    all
}

/// What is added to the diagonal of a matrix of `n` rows.
fn damping(trace: f32, n: usize) -> f32 {
    (DAMPING * trace / n as f32).max(1e-12)
}

/// The lower factor of the damped matrix, `A + damping I = L L^T`.
fn cholesky(matrix: &[f32], n: usize, factor: &mut [f32]) {
    let trace: f32 = (0..n).map(|i| matrix[i * n + i]).sum();
    let damping = damping(trace, n);
    for i in 0..n {
        for j in 0..=i {
            let (a, b) = (&factor[i * n..i * n + j], &factor[j * n..j * n + j]);
            let sum: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            let entry = matrix[i * n + j] - sum;
            factor[i * n + j] =
                if i == j { (entry + damping).max(0.5 * damping).sqrt() } else { entry / factor[j * n + j] };
        }
    }
}
