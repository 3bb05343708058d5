//! The fast engine: fused SIMD kernels, chosen at run time, on all cores.
//!
//! A sample goes through all layers while its features sit in the cache; samples, or bands of rows of a large image,
//! go in parallel. Sums over samples are taken in the order of the samples, so no number depends on the threads.

mod activation;
mod activation_sums;
#[cfg(target_arch = "x86_64")]
mod amx;
#[cfg(not(target_arch = "x86_64"))]
#[path = "amx/none.rs"]
mod amx;
mod blocks;
mod bregman;
mod combine;
mod correlate;
pub(crate) mod dense;
mod epilogue;
mod image_step;
mod inertia;
mod inference;
mod learned;
mod level;
mod pairs;
mod panels;
pub mod peak;
mod planes;
mod product;
mod sample;
mod scratch;
mod stencil;
mod unit;
mod vectors;

use super::tiles::{Cut, TILE_BYTES, Tiles};
use super::{Engine, Gradients, ReverseRule, assert_fits, pass};
use crate::field::{Field, LANES};
use crate::network::{Architecture, Layer, Network};
use crate::{Result, operator::Filters, prox::PiecewiseLinear, team::Ranks};
use bregman::clip_bregman;
use epilogue::Assign;
use fearless_simd::Level;
use image_step::ImageStep;
use inertia::Replace;
use inference::Inference;
use learned::InPlace;
pub use level::choose as choose_simd;
pub(crate) use level::in_vectors;
use rayon::prelude::*;
use scratch::{Batch, Shelf};
use std::ops::Range;
use std::sync::Arc;
use stencil::Features;

/// The engine for work, in `f32`.
pub struct Cpu {
    level: Level,
    /// What trains, if not the vector units.
    unit: Option<unit::Unit>,
    shelf: Shelf,
    tile_bytes: usize,
    ranks: Option<Arc<Ranks>>,
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}

impl Cpu {
    /// An engine for the best instruction set of this machine, unless another one was [chosen](super::choose_simd).
    pub fn new() -> Self {
        Self {
            level: level::chosen(),
            unit: level::unit(),
            shelf: Shelf::default(),
            tile_bytes: TILE_BYTES,
            ranks: None,
        }
    }

    /// An engine for the least instruction set this build supports: the portable twin of the fast paths.
    pub fn baseline() -> Self {
        Self { level: Level::baseline(), unit: None, ..Self::new() }
    }

    /// An engine that trains on the matrix unit (AMX), if this machine has one: in bfloat16, several times as fast.
    pub fn on_matrix_unit() -> Option<Self> {
        let unit = unit::Unit::new()?;
        Some(Self { level: level::best(), unit: Some(unit), ..Self::new() })
    }

    /// The same as one of a team, for training: see [`Engine::ranks`].
    #[must_use]
    pub fn among(self, ranks: Arc<Ranks>) -> Self {
        Self { ranks: Some(ranks), ..self }
    }

    /// The same, taking about so many bytes for a large image at once, 256 MiB unless this is called. Less memory means
    /// smaller tiles and more work at their edges.
    #[must_use]
    pub fn tile_bytes(self, bytes: usize) -> Self {
        Self { tile_bytes: bytes, ..self }
    }
}

/// What only training needs is left out of the library where it is downloaded with a page.
#[inline(always)]
fn trains() {
    if cfg!(target_family = "wasm") {
        panic!("networks are not trained in a browser");
    }
}

impl Engine<f32> for Cpu {
    fn name(&self) -> String {
        let level = if self.unit.is_some() { "AMX".into() } else { format!("{:?}", self.level) };
        let level = level.split('(').next().unwrap_or("scalar");
        format!("cpu ({level}, {} threads)", rayon::current_num_threads())
    }

    fn ranks(&self) -> &Ranks {
        self.ranks.as_deref().unwrap_or(Ranks::alone())
    }

    fn analyse(&self, theta: &Filters<f32>, z: &Field<f32>, u: &mut Field<f32>) {
        assert_fits(theta, &[z], &[u]);
        let stencil = self.stencil(theta, z.grid());
        self.packed((theta, 1.0), theta, |packed| {
            u.data_mut().par_chunks_mut(stencil.features()).enumerate().for_each(|(s, u)| {
                self.shelf.with_scratch(&stencil, false, |scratch| {
                    stencil.pad(z.sample(s), &mut scratch.z);
                    let range = 0..stencil.grid.len();
                    stencil.convolve(self.level, packed, &scratch.z, range, &mut Assign(u));
                });
            });
        });
    }

    fn adjoint(&self, theta: &Filters<f32>, u: &Field<f32>, x: &mut Field<f32>) {
        self.gather(theta, u, None, x);
    }

    fn residual(&self, theta: &Filters<f32>, u: &Field<f32>, z: &Field<f32>, r: &mut Field<f32>) {
        self.gather(theta, u, Some(z), r);
    }

    fn layer(
        &self,
        layer: Layer<'_, f32>,
        u: &Field<f32>,
        z: &Field<f32>,
        r: &mut Field<f32>,
        v: &mut Field<f32>,
    ) {
        self.affine((layer.theta, layer.synthesis, layer.tau), u, Some(z), r, v);
    }

    fn activate(&self, layer: Layer<'_, f32>, v: &Field<f32>, u: &mut Field<f32>) {
        match layer.activation.piecewise() {
            Some(functions) => planes::activate(functions, v, u),
            None => layer.activation.apply(v, u),
        }
    }

    fn iterate(
        &self,
        layer: Layer<'_, f32>,
        z: &Field<f32>,
        betas: &[f32],
        u: &mut Field<f32>,
        y: &mut Field<f32>,
    ) {
        if layer.activation.piecewise().is_none() {
            return pass::iterate(self, layer, z, betas, (u, y));
        }
        self.in_place(layer, z, u, y, |stencil, packed, activation, scratch, z, (u, y)| {
            for &alpha in betas {
                let inertia = Some(Replace { alpha, u: &mut *u });
                let epilogue = &mut InPlace { u: &mut *y, activation, inertia };
                let (step, window, r) = (&mut ImageStep::Nothing, &mut scratch.window, &mut scratch.r[0]);
                stencil.layer(self.level, packed, Some(z), step, window, r, epilogue);
            }
        });
    }

    fn advance(
        &self,
        layer: Layer<'_, f32>,
        r: &Field<f32>,
        alpha: f32,
        u: &mut Field<f32>,
        y: &mut Field<f32>,
    ) {
        if layer.activation.piecewise().is_none() {
            return pass::advance(self, layer, r, alpha, (u, y));
        }
        self.in_place(layer, r, u, y, |stencil, packed, activation, scratch, r, (u, y)| {
            stencil.pad(r, &mut scratch.z);
            let epilogue = &mut InPlace { u: y, activation, inertia: Some(Replace { alpha, u }) };
            stencil.convolve(self.level, packed, &scratch.z, 0..stencil.grid.len(), epilogue);
        });
    }

    fn slope(&self, layer: Layer<'_, f32>, v: &Field<f32>, g: &Field<f32>, out: &mut Field<f32>) {
        trains();
        match layer.activation.piecewise() {
            Some(functions) => planes::slope(functions, v, g, out),
            None => layer.activation.slope(v, g, out),
        }
    }

    fn pullback(&self, layer: Layer<'_, f32>, d: &Field<f32>, a: &mut Field<f32>, back: &mut Field<f32>) {
        trains();
        self.affine((layer.synthesis, layer.theta, layer.tau), d, None, a, back);
    }

    fn correlate(&self, scale: f32, x: &Field<f32>, d: &Field<f32>, gradient: &mut Filters<f32>) {
        trains();
        assert_fits(gradient, &[x], &[d]);
        let stencil = self.stencil(gradient, x.grid());
        let weights = gradient.weights().len();
        self.shelf.with_batch(|batch| {
            batch.gradients.clear();
            batch.gradients.resize(weights * x.samples(), 0.0);
            batch.gradients.par_chunks_mut(weights).enumerate().for_each(|(s, gradient)| {
                self.shelf.with_scratch(&stencil, false, |scratch| {
                    stencil.pad(x.sample(s), &mut scratch.z);
                    stencil.correlate(
                        (None, self.level),
                        scale,
                        Features::Whole(d.sample(s)),
                        &scratch.z,
                        gradient,
                    );
                });
            });
            self.ranks().add_samples(&batch.gradients, gradient.weights_mut());
        });
    }

    fn bregman(&self, layer: Layer<'_, f32>, u: &Field<f32>, v: &Field<f32>, penalty: &mut [f64]) {
        trains();
        assert_fits(layer.theta, &[], &[u, v]);
        let Some(clip) = layer.activation.piecewise().filter(|functions| functions.is_clip()) else {
            return layer.activation.bregman(u, v, penalty);
        };
        penalty.par_iter_mut().enumerate().for_each(|(s, penalty)| {
            let (u, v) = (u.sample(s), v.sample(s));
            *penalty = clip_bregman(self.level, clip.knots(), u, v);
        });
    }

    fn denoise(&self, network: &Network<f32>, z: &Field<f32>, output: &mut Field<f32>) {
        if !is_fused(network) {
            return pass::denoise(self, network, z, output);
        }
        self.infer(network, z, output, |inference, output| {
            let strips = rayon::current_num_threads().div_ceil(z.samples().max(1));
            // Samples that run at the same time share the memory as they share the threads.
            let bytes = self.tile_bytes / rayon::current_num_threads().max(strips) * strips;
            let tiles = Tiles::new(network.architecture(), z.grid().height(), z.grid().width(), bytes);
            output.data_mut().par_chunks_mut(z.sample_len()).enumerate().for_each(|(s, output)| {
                for tile in tiles.iter() {
                    inference.tile(z.sample(s), z.grid(), tile, strips, output);
                }
            });
        });
    }

    fn tiles(&self, architecture: Architecture, height: usize, width: usize) -> Tiles {
        Tiles::new(architecture, height, width, self.tile_bytes)
    }

    fn denoise_tile(
        &self,
        network: &Network<f32>,
        z: &Field<f32>,
        (rows, columns): (Range<usize>, Range<usize>),
        output: &mut Field<f32>,
    ) {
        if !is_fused(network) {
            return pass::denoise(self, network, z, output);
        }
        let grid = z.grid();
        assert!(rows.end <= grid.height() && columns.end <= grid.width(), "the tile is not in the image");
        let rows = Cut { wanted: rows, around: 0..grid.height() };
        let columns = Cut { wanted: columns, around: 0..grid.width() };
        self.infer(network, z, output, |inference, output| {
            let strips = rayon::current_num_threads();
            // One after the other, each on all threads: the features of one only are in memory.
            for (s, output) in output.data_mut().chunks_exact_mut(z.sample_len()).enumerate() {
                inference.tile(z.sample(s), grid, (&rows, &columns), strips, output);
            }
        });
    }

    fn training_pass(
        &self,
        network: &Network<f32>,
        rule: ReverseRule<f32>,
        z: &Field<f32>,
        x: &Field<f32>,
        gradients: &mut Gradients<f32>,
    ) -> Result<()> {
        trains();
        if !is_fused(network) {
            return pass::train(self, network, rule, z, x, gradients);
        }
        network.check_pair(z, x)?;
        gradients.check(network, z.samples())?;
        let architecture = network.architecture();
        let stencil = self.shelf.stencil(architecture, z.grid());
        let per_layer = architecture.layer_parameters();
        let filters = network.filters().count() * per_layer;
        let pieces = network.activation[0].piecewise().map_or(0, PiecewiseLinear::pieces);
        let numbers = architecture.features * (1 + 2 * pieces);
        let weights = filters + gradients.activation.len() * numbers;
        self.shelf.with_batch(|batch| {
            batch.pack(self.unit, network, rule.loss_weight());
            let Batch { packed, activation, gradients: slots, sum, .. } = batch;
            slots.resize(weights * z.samples(), 0.0);
            let (packed, sums) = ((&packed[..], &activation[..]), (weights - filters).min(numbers) * LANES);
            let (units, of) = ((self.unit, self.level), gradients.of);
            let slots_and_losses = slots.par_chunks_mut(weights).zip(&mut gradients.loss);
            slots_and_losses.enumerate().for_each(|(s, (gradient, loss))| {
                self.shelf.with_scratch(&stencil, true, |scratch| {
                    scratch.sums.resize(sums, 0.0);
                    let images = (z.sample(s), x.sample(s));
                    *loss = sample::train(
                        units,
                        &stencil,
                        network,
                        packed,
                        (rule, of),
                        images,
                        scratch,
                        gradient,
                    );
                });
            });
            sum.clear();
            sum.resize(weights, 0.0);
            self.ranks().add_samples(slots, sum);
            let (of_filters, of_activations) = sum.split_at(filters);
            let all = gradients.theta.iter_mut().chain(&mut gradients.synthesis);
            all.zip(of_filters.chunks_exact(per_layer))
                .for_each(|(theta, sum)| theta.weights_mut().copy_from_slice(sum));
            for (gradient, sum) in gradients.activation.iter_mut().zip(of_activations.chunks_exact(numbers)) {
                activation_sums::unpack_gradient(sum, gradient);
            }
        });
        Ok(())
    }
}

/// Whether the fused passes have the activations of all layers.
fn is_fused(network: &Network<f32>) -> bool {
    network.activation.iter().all(|activation| activation.piecewise().is_some())
}

impl Cpu {
    /// Packs the network for images and hands it to `f`.
    fn infer(
        &self,
        network: &Network<f32>,
        z: &Field<f32>,
        output: &mut Field<f32>,
        f: impl FnOnce(&Inference<'_>, &mut Field<f32>),
    ) {
        network.check_pair(z, output).unwrap_or_else(|e| panic!("{e}"));
        self.shelf.with_batch(|batch| {
            batch.pack_pairs(network);
            f(&Inference { level: self.level, shelf: &self.shelf, network, batch }, output);
        });
    }
}
