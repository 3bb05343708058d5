//! Memory that is sized once and lent to the passes.

use super::stencil::{Packed, Stencil};
use super::unit::Unit;
use super::{activation::PackedActivation, pairs};
use crate::field::{Aligned, Grid};
use crate::network::{Architecture, Memory, Network};
use std::sync::{Arc, Mutex};

/// What one sample needs while it goes through a block, or in training through the network.
pub struct Scratch {
    pub window: Aligned<f32>,
    /// The noisy image, padded.
    pub z: Aligned<f32>,
    /// `L* d` or the output error, padded.
    pub a: Aligned<f32>,
    /// The residuals `r_1..r_{K-1}`, padded; one only for a block.
    pub r: Vec<Aligned<f32>>,
    /// `u_0..u_{K-1}`; one that all layers replace where halves are kept.
    pub u: Vec<Aligned<f32>>,
    /// `v_1..v_{K-1}`, at their index; none where halves are kept.
    pub v: Vec<Aligned<f32>>,
    /// `v` in half precision, likewise, where halves are kept.
    pub halves: Vec<Vec<u16>>,
    /// `u_0`, and `u` of the layer that the reverse sweep is at, in bfloat16, where halves are kept.
    pub activated: Vec<Vec<u16>>,
    /// What the reverse sweep carries.
    pub d: Aligned<f32>,
    /// Sums of the gradients of one layer's activations; sized by whoever learns them.
    pub sums: Vec<f32>,
    /// `y_0..y_{K-1}`, where layers remember features; see [`Scratch::remember`].
    pub y: Vec<Aligned<f32>>,
    /// `q_1..q_K`, at their index, where layers remember images or are bounded.
    pub q: Vec<Aligned<f32>>,
    /// What earlier features get by inertia, and earlier images by memory, in the reverse sweep.
    pub carried: (Aligned<f32>, Aligned<f32>),
}

impl Scratch {
    fn new(stencil: &Stencil, training: bool) -> Self {
        let layers = if training { stencil.architecture.depth } else { 0 };
        let (image, features) = (stencil.padded_image(), stencil.features());
        let trained = |len: usize| Aligned::zeros(if training { len } else { 0 });
        Self {
            window: Aligned::zeros(stencil.window()),
            z: Aligned::zeros(image),
            a: trained(image),
            r: (0..layers.max(1)).map(|_| Aligned::zeros(image)).collect(),
            u: Vec::new(),
            v: Vec::new(),
            halves: Vec::new(),
            activated: Vec::new(),
            d: trained(features),
            sums: Vec::new(),
            y: Vec::new(),
            q: Vec::new(),
            carried: (Aligned::zeros(0), Aligned::zeros(0)),
        }
    }

    /// Sizes what the layers of `network` remember in training, `halved` or whole; once sized, it stays.
    pub fn remember(&mut self, stencil: &Stencil, network: &Network<f32>, halved: bool) {
        let layers = stencil.architecture.depth;
        let Memory { features, images } = network.unrolling.memory();
        let zeros = |k: usize| Aligned::zeros(if k == 0 { 0 } else { stencil.features() });
        self.u.resize_with(self.u.len().max(if halved { 1 } else { layers }), || zeros(1));
        if halved {
            let zeros = |k: usize| crate::memory::zeros(if k == 0 { 0 } else { stencil.features() });
            self.halves.extend((self.halves.len()..layers).map(zeros));
            self.activated.resize_with(2, || zeros(1));
        } else {
            self.v.extend((self.v.len()..layers).map(zeros));
        }
        if features && self.y.is_empty() {
            self.y = (0..layers).map(|_| Aligned::zeros(stencil.features())).collect();
            self.carried.0 = Aligned::zeros(stencil.features());
        }
        if (images || network.bounded) && self.q.is_empty() {
            self.q = (0..=layers).map(|_| Aligned::zeros(stencil.image())).collect();
            self.carried.1 = Aligned::zeros(stencil.image());
        }
    }
}

/// What a strip of an image needs while it goes through the network.
pub struct StripMemory {
    pub work: pairs::stencil::Work,
    /// The noisy image, padded.
    pub z: Aligned<f32>,
    /// The residuals of the layers that go through the strip together, padded.
    pub r: Vec<Aligned<f32>>,
    /// The taps that each of them keeps.
    pub taps: Vec<Aligned<f32>>,
    /// The features; with inertia, `y`.
    pub u: Aligned<f32>,
    /// `u_{k-1}`, where layers remember features.
    pub before: Option<Aligned<f32>>,
    /// `q_k`, where layers remember images or are bounded.
    pub q: Option<Aligned<f32>>,
}

impl StripMemory {
    fn new(stencil: &pairs::stencil::Stencil, together: usize) -> Self {
        Self {
            work: stencil.work(),
            z: Aligned::zeros(stencil.padded_image()),
            r: (0..together).map(|_| Aligned::zeros(stencil.padded_image())).collect(),
            taps: (0..together).map(|_| Aligned::zeros(stencil.kept())).collect(),
            u: Aligned::zeros(stencil.features()),
            before: None,
            q: None,
        }
    }

    /// Sizes what the layers of `network` remember; once sized, it stays.
    pub fn remember(&mut self, stencil: &pairs::stencil::Stencil, network: &Network<f32>) {
        let Memory { features, images } = network.unrolling.memory();
        if features {
            self.before.get_or_insert_with(|| Aligned::zeros(stencil.features()));
        }
        if images || network.bounded {
            self.q.get_or_insert_with(|| Aligned::zeros(stencil.image()));
        }
    }
}

/// The filters of a network, packed, and the gradients of each sample of a batch.
#[derive(Default)]
pub struct Batch {
    /// `theta_0..theta_K`, the convolutions scaled by `1`, `-tau_k`, and minus the loss weight. For layers with a synthesis of
    /// their own follows what they are in reverse: analysis and synthesis exchanged.
    pub packed: Vec<Packed>,
    /// The same for images, which go through the network in pairs of rows.
    pub pairs: Vec<pairs::Packed>,
    /// The activations of layers `1..K-1`, at their index.
    pub activation: Vec<PackedActivation>,
    /// Gradients of each sample: `[k][j][c][t]` of the filters, then `[k][j][number]` of the activations.
    pub gradients: Vec<f32>,
    /// Their sum.
    pub sum: Vec<f32>,
}

impl Batch {
    pub fn pack(&mut self, unit: Option<Unit>, network: &Network<f32>, loss_weight: f32) {
        let depth = network.theta.len() - 1;
        self.packed.resize_with(depth + 1 + network.synthesis.len(), Packed::default);
        let (forward, reverse) = self.packed.split_at_mut(depth + 1);
        for (k, (packed, theta)) in forward.iter_mut().zip(&network.theta).enumerate() {
            let scale = if k == depth { -loss_weight } else { scale(network, k) };
            packed.pack(unit, theta, scale, network.synthesis(k.max(1)));
        }
        for (k, (packed, synthesis)) in reverse.iter_mut().zip(&network.synthesis).enumerate() {
            packed.pack(unit, synthesis, scale(network, k + 1), &network.theta[k + 1]);
        }
        self.pack_activations(network);
    }

    pub fn pack_pairs(&mut self, network: &Network<f32>) {
        self.pairs.resize_with(network.theta.len(), Default::default);
        for (k, (packed, theta)) in self.pairs.iter_mut().zip(&network.theta).enumerate() {
            packed.pack(theta, scale(network, k), network.synthesis(k.max(1)));
        }
        self.pack_activations(network);
    }

    fn pack_activations(&mut self, network: &Network<f32>) {
        self.activation.resize_with(network.theta.len() - 1, PackedActivation::default);
        for (packed, activation) in self.activation[1..].iter_mut().zip(&network.activation) {
            let functions = activation.piecewise();
            packed.pack(functions.expect("the fused passes are for piecewise-linear activations"));
        }
    }
}

/// What the convolution of layer `k` is scaled by; the last layer has none.
fn scale(network: &Network<f32>, k: usize) -> f32 {
    if k == 0 { 1.0 } else { network.tau.get(k - 1).map_or(0.0, |tau| -tau) }
}

/// What passes leave for later ones of the same shape, so that these allocate nothing.
type Kept<K, V> = Mutex<Vec<(K, V)>>;

const KEPT: usize = 8;

/// Takes what was kept for `key`, or `make`s it; to be given back by [`put`].
fn take<K: PartialEq, V>(kept: &Kept<K, V>, key: &K, make: impl FnOnce() -> V) -> V {
    let mut kept = lock(kept);
    let found = kept.iter().position(|(k, _)| k == key).map(|i| kept.swap_remove(i).1);
    if found.is_none() && kept.len() >= KEPT.max(2 * rayon::current_num_threads()) {
        kept.remove(0);
    }
    drop(kept);
    found.unwrap_or_else(make)
}

fn put<K, V>(kept: &Kept<K, V>, key: K, value: V) {
    lock(kept).push((key, value));
}

/// Runs `f` with what was kept for `key`.
fn lend<K: PartialEq, V, R>(
    kept: &Kept<K, V>,
    key: K,
    make: impl FnOnce() -> V,
    f: impl FnOnce(&mut V) -> R,
) -> R {
    let mut value = take(kept, &key, make);
    let result = f(&mut value);
    put(kept, key, value);
    result
}

/// What is kept for `key`, shared.
fn share<K: PartialEq, V>(kept: &Kept<K, Arc<V>>, key: K, make: impl FnOnce() -> V) -> Arc<V> {
    let mut kept = lock(kept);
    if let Some((_, value)) = kept.iter().find(|(k, _)| *k == key) {
        return value.clone();
    }
    if kept.len() == KEPT {
        kept.remove(0);
    }
    let value = Arc::new(make());
    kept.push((key, value.clone()));
    value
}

/// Stencils and memory between two calls.
#[derive(Default)]
pub struct Shelf {
    stencils: Kept<(Architecture, Grid), Arc<Stencil>>,
    pairs: Kept<(Architecture, Grid), Arc<pairs::stencil::Stencil>>,
    scratches: Kept<(Architecture, Grid, bool), Scratch>,
    strips: Kept<(Architecture, Grid), StripMemory>,
    batches: Kept<(), Batch>,
}

impl Shelf {
    pub fn stencil(&self, architecture: Architecture, grid: Grid) -> Arc<Stencil> {
        share(&self.stencils, (architecture, grid), || Stencil::new(architecture, grid))
    }

    pub fn pairs(&self, architecture: Architecture, grid: Grid) -> Arc<pairs::stencil::Stencil> {
        share(&self.pairs, (architecture, grid), || pairs::stencil::Stencil::new(architecture, grid))
    }

    /// Memory for a strip that so many layers go through `together`, to be given back by [`Shelf::put_strip`].
    pub fn take_strip(&self, stencil: &pairs::stencil::Stencil, together: usize) -> StripMemory {
        take(&self.strips, &(stencil.architecture, stencil.grid), || StripMemory::new(stencil, together))
    }

    pub fn put_strip(&self, stencil: &pairs::stencil::Stencil, memory: StripMemory) {
        put(&self.strips, (stencil.architecture, stencil.grid), memory);
    }

    /// Runs `f` with memory for `stencil`.
    pub fn with_scratch<R>(&self, stencil: &Stencil, training: bool, f: impl FnOnce(&mut Scratch) -> R) -> R {
        let key = (stencil.architecture, stencil.grid, training);
        lend(&self.scratches, key, || Scratch::new(stencil, training), f)
    }

    pub fn with_batch<R>(&self, f: impl FnOnce(&mut Batch) -> R) -> R {
        lend(&self.batches, (), Batch::default, f)
    }
}

/// Locks; a panic elsewhere leaves nothing half-written on a shelf.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
