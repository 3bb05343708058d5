//! Memory that is sized once and lent to the passes.

use super::activation::PackedActivation;
use super::stencil::{Layout, Packed, Stencil};
use crate::engine::{Aligned, Grid};
use crate::network::{Architecture, Network};
use std::sync::{Arc, Mutex};

/// What one sample needs while it goes through the network.
pub(super) struct Scratch {
    key: (Architecture, Grid, Layout, bool),
    /// The planes of the taps.
    pub window: Aligned<f32>,
    /// A band of the noisy image; empty in training.
    pub image: Aligned<f32>,
    /// The noisy image, padded.
    pub z: Aligned<f32>,
    /// `L* d` or the output error, padded.
    pub a: Aligned<f32>,
    /// The residuals `r_1..r_{K-1}`, padded; one only in inference.
    pub r: Vec<Aligned<f32>>,
    /// `u_0..u_{K-1}`; one only in inference.
    pub u: Vec<Aligned<f32>>,
    /// `v_1..v_{K-1}`, at their index; none in inference.
    pub v: Vec<Aligned<f32>>,
    /// What the reverse sweep carries; empty in inference.
    pub d: Aligned<f32>,
    /// Sums of the gradients of one layer's activations; sized by whoever learns them.
    pub sums: Vec<f32>,
    /// `y_0..y_{K-1}`, or in inference `u_{k-1}`, where layers remember features; see [`Scratch::remember`].
    pub y: Vec<Aligned<f32>>,
    /// `q_1..q_K`, at their index, where layers remember images or are bounded; one only in inference.
    pub q: Vec<Aligned<f32>>,
    /// What earlier features get by inertia, and earlier images by memory, in the reverse sweep.
    pub carried: (Aligned<f32>, Aligned<f32>),
}

impl Scratch {
    fn new(stencil: &Stencil, training: bool) -> Self {
        let layers = if training { stencil.architecture.depth } else { 1 };
        let (image, features) = (stencil.padded_image(), stencil.features());
        let trained = |len: usize| Aligned::zeros(if training { len } else { 0 });
        Self {
            key: (stencil.architecture, stencil.grid, stencil.layout, training),
            window: Aligned::zeros(stencil.window()),
            image: Aligned::zeros(if training { 0 } else { stencil.image() }),
            z: Aligned::zeros(image),
            a: trained(image),
            r: (0..layers).map(|_| Aligned::zeros(image)).collect(),
            u: (0..layers).map(|_| Aligned::zeros(features)).collect(),
            v: (0..layers).map(|k| trained(if k == 0 { 0 } else { features })).collect(),
            d: trained(features),
            sums: Vec::new(),
            y: Vec::new(),
            q: Vec::new(),
            carried: (Aligned::zeros(0), Aligned::zeros(0)),
        }
    }
}

impl Scratch {
    /// Sizes what the layers of `network` remember; once sized, it stays.
    pub(super) fn remember(&mut self, stencil: &Stencil, network: &Network<f32>) {
        let training = !self.d.is_empty();
        let layers = if training { stencil.architecture.depth } else { 1 };
        let (features, images) = network.unrolling.remembers();
        if features && self.y.len() != layers {
            self.y = (0..layers).map(|_| Aligned::zeros(stencil.features())).collect();
        }
        let layers = if training { layers + 1 } else { 1 };
        if (images || network.bounded) && self.q.len() != layers {
            self.q = (0..layers).map(|_| Aligned::zeros(stencil.image())).collect();
        }
        if training && features && self.carried.0.is_empty() {
            self.carried.0 = Aligned::zeros(stencil.features());
        }
        if training && (images || network.bounded) && self.carried.1.is_empty() {
            self.carried.1 = Aligned::zeros(stencil.image());
        }
    }
}

/// The filters of a network, packed, and the gradients of each sample of a batch.
#[derive(Default)]
pub(super) struct Batch {
    /// `theta_0..theta_K`, the convolutions scaled by `1`, `-tau_k`, and minus the loss weight.
    pub packed: Vec<Packed>,
    /// The activations of layers `1..K-1`, at their index.
    pub activation: Vec<PackedActivation>,
    /// Gradients of each sample: `[k][j][c][t]` of the filters, then `[k][j][number]` of the activations.
    pub gradients: Vec<f32>,
}

impl Batch {
    pub(super) fn pack(&mut self, network: &Network<f32>, loss_weight: f32) {
        let depth = network.theta.len() - 1;
        self.packed.resize_with(depth + 1, Packed::default);
        for (k, (packed, theta)) in self.packed.iter_mut().zip(&network.theta).enumerate() {
            let scale = match k {
                0 => 1.0,
                k if k == depth => -loss_weight,
                k => -network.tau[k - 1],
            };
            packed.pack(theta, scale);
        }
        self.activation.resize_with(depth, PackedActivation::default);
        for (packed, activation) in self.activation[1..].iter_mut().zip(&network.activation) {
            packed.pack(activation);
        }
    }
}

/// Stencils and memory between two calls, so that a second call of the same shape allocates nothing.
#[derive(Default)]
pub(super) struct Shelf {
    stencils: Mutex<Vec<Arc<Stencil>>>,
    scratches: Mutex<Vec<Scratch>>,
    batches: Mutex<Vec<Batch>>,
}

/// Shapes that are kept at most.
const KEPT: usize = 8;

impl Shelf {
    pub(super) fn stencil(&self, architecture: Architecture, grid: Grid, layout: Layout) -> Arc<Stencil> {
        let mut stencils = lock(&self.stencils);
        let found =
            stencils.iter().find(|s| s.architecture == architecture && s.grid == grid && s.layout == layout);
        if let Some(stencil) = found {
            return stencil.clone();
        }
        if stencils.len() == KEPT {
            stencils.remove(0);
        }
        stencils.push(Arc::new(Stencil::new(architecture, grid, layout)));
        stencils[stencils.len() - 1].clone()
    }

    /// Memory for `stencil`, to be given back by [`Shelf::put`].
    pub(super) fn take(&self, stencil: &Stencil, training: bool) -> Scratch {
        let key = (stencil.architecture, stencil.grid, stencil.layout, training);
        let found = {
            let mut scratches = lock(&self.scratches);
            let found = scratches.iter().position(|s| s.key == key).map(|i| scratches.swap_remove(i));
            if found.is_none() && scratches.len() >= KEPT.max(2 * rayon::current_num_threads()) {
                scratches.remove(0);
            }
            found
        };
        found.unwrap_or_else(|| Scratch::new(stencil, training))
    }

    pub(super) fn put(&self, scratch: Scratch) {
        lock(&self.scratches).push(scratch);
    }

    /// Runs `f` with memory for `stencil`.
    pub(super) fn with_scratch<R>(
        &self,
        stencil: &Stencil,
        training: bool,
        f: impl FnOnce(&mut Scratch) -> R,
    ) -> R {
        let mut scratch = self.take(stencil, training);
        let result = f(&mut scratch);
        self.put(scratch);
        result
    }

    /// Runs `f` with memory for a batch.
    pub(super) fn with_batch<R>(&self, f: impl FnOnce(&mut Batch) -> R) -> R {
        let mut batch = lock(&self.batches).pop().unwrap_or_default();
        let result = f(&mut batch);
        lock(&self.batches).push(batch);
        result
    }
}

/// Locks; a panic elsewhere leaves nothing half-written on a shelf.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
