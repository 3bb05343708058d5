//! One layer of a whole batch, for passes that go block by block.

use super::epilogue::WriteTo;
use super::image_step::ImageStep;
use super::stencil::{Packed, Stencil};
use super::{Cpu, activation::PackedActivation, assert_fits, scratch::Scratch};
use crate::field::{Field, Grid};
use crate::network::{Architecture, Layer};
use crate::operator::Filters;
use rayon::prelude::*;
use std::sync::Arc;

impl Cpu {
    pub(super) fn stencil(&self, theta: &Filters<f32>, grid: Grid) -> Arc<Stencil> {
        let architecture = Architecture {
            depth: 2,
            features: theta.features(),
            kernel: theta.size(),
            channels: theta.channels(),
        };
        self.shelf.stencil(architecture, grid)
    }

    /// Packs the filters of one block and hands them to `f`.
    pub(super) fn packed<R>(
        &self,
        (theta, scale): (&Filters<f32>, f32),
        adjoint: &Filters<f32>,
        f: impl FnOnce(&Packed) -> R,
    ) -> R {
        self.shelf.with_batch(|batch| {
            batch.packed.resize_with(batch.packed.len().max(1), Packed::default);
            batch.packed[0].pack(None, theta, scale, adjoint);
            f(&batch.packed[0])
        })
    }

    /// `r = L* u - z`, or `L* u` without a `z`.
    pub(super) fn gather(
        &self,
        theta: &Filters<f32>,
        u: &Field<f32>,
        z: Option<&Field<f32>>,
        r: &mut Field<f32>,
    ) {
        assert_fits(theta, &[z.unwrap_or(r), r], &[u]);
        let stencil = self.stencil(theta, u.grid());
        let image = r.sample_len();
        self.packed((theta, 1.0), theta, |packed| {
            r.data_mut().par_chunks_mut(image).enumerate().for_each(|(s, r)| {
                self.shelf.with_scratch(&stencil, false, |scratch| {
                    let input = (u.sample(s), z.map(|z| z.sample(s)));
                    let (window, padded) = (&mut scratch.window, &mut scratch.r[0]);
                    stencil.residual(self.level, packed, input, &mut ImageStep::Nothing, window, padded);
                    stencil.unpad(padded, r);
                });
            });
        });
    }

    /// Hands the features of each sample to `f`, `u` and `y`, with its image and all that a layer needs.
    /// Panics unless the activation is piecewise linear, as those of networks that are run in place are.
    pub(super) fn in_place(
        &self,
        layer: Layer<'_, f32>,
        image: &Field<f32>,
        u: &mut Field<f32>,
        y: &mut Field<f32>,
        f: impl Fn(&Stencil, &Packed, &PackedActivation, &mut Scratch, &[f32], (&mut [f32], &mut [f32])) + Sync,
    ) {
        assert_fits(layer.theta, &[image], &[u, y]);
        let stencil = self.stencil(layer.theta, u.grid());
        let functions = layer.activation.piecewise().expect("a piecewise-linear activation");
        let (features, mut activation) = (u.sample_len(), PackedActivation::default());
        activation.pack(functions);
        self.packed((layer.theta, -layer.tau), layer.synthesis, |packed| {
            let samples = u.data_mut().par_chunks_mut(features).zip(y.data_mut().par_chunks_mut(features));
            samples.enumerate().for_each(|(s, (u, y))| {
                self.shelf.with_scratch(&stencil, false, |scratch| {
                    f(&stencil, packed, &activation, scratch, image.sample(s), (u, y));
                });
                stencil.clear_gaps(&(0..stencil.grid.len()), u);
            });
        });
    }

    /// `r = M* u - z` (no `z` for the pull-back) and `v = u - tau L r`.
    pub(super) fn affine(
        &self,
        (theta, synthesis, tau): (&Filters<f32>, &Filters<f32>, f32),
        u: &Field<f32>,
        z: Option<&Field<f32>>,
        r: &mut Field<f32>,
        v: &mut Field<f32>,
    ) {
        assert_fits(theta, &[z.unwrap_or(r), r], &[u, v]);
        let stencil = self.stencil(theta, u.grid());
        let (image, features) = (r.sample_len(), u.sample_len());
        self.packed((theta, -tau), synthesis, |packed| {
            let samples = r.data_mut().par_chunks_mut(image).zip(v.data_mut().par_chunks_mut(features));
            samples.enumerate().for_each(|(s, (r, v))| {
                self.shelf.with_scratch(&stencil, false, |scratch| {
                    let (window, padded) = (&mut scratch.window, &mut scratch.r[0]);
                    let z = z.map(|z| z.sample(s));
                    let (step, epilogue) = (&mut ImageStep::Nothing, &mut WriteTo { u: u.sample(s), v });
                    stencil.layer(self.level, packed, z, step, window, padded, epilogue);
                    stencil.unpad(padded, r);
                });
            });
        });
    }
}
