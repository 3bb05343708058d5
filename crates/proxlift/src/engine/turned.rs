//! An engine that denoises in eight orientations and averages.
//!
//! A network sees a picture and its mirror image a little differently: what it leaves of the noise in the two is not quite the same,
//! and the mean of all eight orientations is nearer to the picture than any of them. Filters are turned instead of the picture,
//! which comes to the same, so that tiles and their bits stay what they are.

use super::{Engine, SharedEngine, Tiles};
use crate::field::Field;
use crate::image::symmetry::Symmetry;
use crate::network::{Architecture, Layer, Network};
use crate::operator::Filters;
use crate::team::Ranks;
use std::ops::Range;

/// The engine within, in eight orientations; a single layer is what it was.
pub struct Turned(pub SharedEngine);

impl Turned {
    /// The mean of what `denoise` makes of the network in every orientation.
    fn average(
        network: &Network<f32>,
        output: &mut Field<f32>,
        denoise: impl Fn(&Network<f32>, &mut Field<f32>),
    ) {
        let mut one = output.zeros_like();
        output.map(|_| 0.0);
        for symmetry in Symmetry::all() {
            denoise(&network.turned(symmetry), &mut one);
            output.zip(&one, |sum, one| sum + one);
        }
        output.map(|sum| 0.125 * sum);
    }
}

impl Engine<f32> for Turned {
    fn name(&self) -> String {
        format!("{} in eight orientations", self.0.name())
    }

    fn ranks(&self) -> &Ranks {
        self.0.ranks()
    }

    fn analyse(&self, theta: &Filters<f32>, z: &Field<f32>, u: &mut Field<f32>) {
        self.0.analyse(theta, z, u);
    }

    fn adjoint(&self, theta: &Filters<f32>, u: &Field<f32>, x: &mut Field<f32>) {
        self.0.adjoint(theta, u, x);
    }

    fn correlate(&self, scale: f32, x: &Field<f32>, d: &Field<f32>, gradient: &mut Filters<f32>) {
        self.0.correlate(scale, x, d, gradient);
    }

    fn iterate(
        &self,
        layer: Layer<'_, f32>,
        z: &Field<f32>,
        betas: &[f32],
        u: &mut Field<f32>,
        y: &mut Field<f32>,
    ) {
        self.0.iterate(layer, z, betas, u, y);
    }

    fn denoise(&self, network: &Network<f32>, z: &Field<f32>, output: &mut Field<f32>) {
        Self::average(network, output, |network, output| self.0.denoise(network, z, output));
    }

    fn tiles(&self, architecture: Architecture, height: usize, width: usize) -> Tiles {
        self.0.tiles(architecture, height, width)
    }

    fn denoise_tile(
        &self,
        network: &Network<f32>,
        z: &Field<f32>,
        wanted: (Range<usize>, Range<usize>),
        output: &mut Field<f32>,
    ) {
        Self::average(network, output, |network, output| {
            self.0.denoise_tile(network, z, wanted.clone(), output);
        });
    }
}
