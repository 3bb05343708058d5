//! What computes: a few primitives on batches, and the passes of a network over them.
//!
//! | engine | for | how |
//! |---|---|---|
//! | [`Reference`] | checking, `f32` and `f64` | its primitives are plain loops, one for each formula |
//! | [`Cpu`] | work, `f32` | both passes are fused SIMD kernels chosen at run time, samples and image strips in parallel |
//!
//! [`Turned`] is an engine that denoises in eight orientations and averages.
//!
//! An engine gives the convolution `L`, its adjoint `L*` and the weight gradient; a layer, its pull-back and the two
//! [passes](pass) of a whole network follow from them, and an engine that knows better overrides them. It knows nothing of
//! energies, optimisers or files. Results do not depend on the number of threads.

pub mod cpu;
mod loss;
pub mod pass;
mod reference;
mod tiles;
mod turned;

pub use cpu::Cpu;
pub use cpu::choose_simd;
pub use loss::SampleLoss;
pub use reference::Reference;
pub use tiles::{Cut, Tiles};
pub use turned::Turned;

use crate::network::{Architecture, Layer, Network};
use crate::{Real, Result, field::Field, operator::Filters, prox::PiecewiseGradient, team::Ranks};
use std::ops::Range;
use std::sync::Arc;

/// An engine that several users may share.
pub type SharedEngine = Arc<dyn Engine<f32>>;

/// The engine of everybody who does not ask for another: a new one is registered here.
pub fn standard() -> SharedEngine {
    Arc::new(Cpu::new())
}

/// How the error of layer `k` is carried to layer `k - 1` in the reverse pass: what becomes of
/// `back = dE/du` at the activation `u = s(v)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReverseRule<T> {
    /// Back-propagation: `d = s'(v) back`.
    Backprop,
    /// Lifted Bregman with `u` anchored at the forward pass: the exact minimiser of the linearised `u`-block is
    /// `u+ = s(v - back)`, and `d = s(v) - u+`. The loss has weight `mu`.
    Lifted {
        /// The weight of the loss in `E`.
        mu: T,
    },
    /// The same with the loss once for and once against it, halved: `d = (s(v + back) - s(v - back)) / 2`.
    Centred {
        /// The weight of the loss in `E`.
        mu: T,
    },
}

impl<T: Real> ReverseRule<T> {
    /// The weight of the loss: `mu`, or 1 for back-propagation.
    pub fn loss_weight(self) -> T {
        match self {
            Self::Backprop => T::one(),
            Self::Lifted { mu } | Self::Centred { mu } => mu,
        }
    }
}

/// The gradients of one batch, summed over its samples, and the samples' losses.
#[derive(Clone, Debug)]
pub struct Gradients<T> {
    /// `df/dtheta_k` for `k = 0..=K`.
    pub theta: Vec<Filters<T>>,
    /// By the synthesis of layers `1..K-1`, where they have their own.
    pub synthesis: Vec<Filters<T>>,
    /// By the knots and slopes of layers `1..K-1`; empty if they are not asked for.
    pub activation: Vec<PiecewiseGradient<T>>,
    /// `1/2 ||x^ - x||^2` of each sample at the forward pass; in a team, of this member's samples.
    pub loss: Vec<f64>,
    /// What they are the gradients of.
    pub of: SampleLoss,
}

impl<T: Real> Gradients<T> {
    /// Zero gradients for `network` and a batch of `samples`.
    pub fn zeros(network: &Network<T>, samples: usize) -> Self {
        let zeros = |filters: &[Filters<T>]| {
            let mut zeros = filters.to_vec();
            zeros.iter_mut().for_each(|filters| filters.weights_mut().fill(T::zero()));
            zeros
        };
        Self {
            theta: zeros(&network.theta),
            synthesis: zeros(&network.synthesis),
            activation: Vec::new(),
            loss: vec![0.0; samples],
            of: SampleLoss::Squared,
        }
    }

    /// The same, with room for the gradients of learned activations.
    #[must_use]
    pub fn with_activations(mut self, network: &Network<T>) -> Self {
        self.activation = network.learned().map(|s| s.zero_gradient()).collect();
        self
    }

    /// The gradients `kept` of an earlier batch if they fit this one, else new ones with all that `network` learns.
    pub fn reuse(kept: Option<Self>, network: &Network<T>, samples: usize) -> Self {
        let fits = kept.filter(|gradients| gradients.loss.len() == samples);
        fits.unwrap_or_else(|| Self::zeros(network, samples).with_activations(network))
    }

    /// Those of all filters, in the order of [`Network::filters`].
    pub fn filters(&self) -> impl Iterator<Item = &Filters<T>> {
        self.theta.iter().chain(&self.synthesis)
    }

    fn clear(&mut self) {
        let theta = self.theta.iter_mut().chain(&mut self.synthesis).map(Filters::weights_mut);
        let activation = self.activation.iter_mut().flat_map(|s| [&mut s.knots[..], &mut s.slopes]);
        theta.chain(activation).for_each(|values| values.fill(T::zero()));
    }

    /// Checks that these are gradients for `network` and a batch of `samples`.
    fn check(&self, network: &Network<T>, samples: usize) -> Result<()> {
        let made_for = self.loss.len();
        refuse!(made_for != samples =>
            "the gradients were made for a batch of {made_for}, but it has {samples} samples");
        let shape = |f: &Filters<T>| (f.features(), f.channels(), f.size());
        let same = self.filters().map(shape).eq(network.filters().map(shape));
        let knots = self.activation.iter().map(|s| s.knots.len());
        let fits = self.activation.is_empty() || knots.eq(network.learned().map(|s| s.knots().len()));
        refuse!(!(same && fits) => "the gradients were made for a network of another shape");
        Ok(())
    }
}

/// Asserts that images and features of a batch fit the filters and each other.
fn assert_fits<T: Real>(theta: &Filters<T>, images: &[&Field<T>], features: &[&Field<T>]) {
    let all = || images.iter().chain(features);
    assert!(images.iter().all(|i| i.channels() == theta.channels()), "the images do not fit the filters");
    assert!(features.iter().all(|f| f.channels() == theta.features()), "the features do not fit the filters");
    assert!(all().all(|f| f.grid().gap() == theta.radius()), "a batch was laid out for another kernel size");
    let same = |pair: (&&Field<T>, &&Field<T>)| {
        (pair.0.grid(), pair.0.samples()) == (pair.1.grid(), pair.1.samples())
    };
    assert!(all().zip(all().skip(1)).all(same), "the members of a batch differ in size or number");
}

/// The operations of a network on a batch. All buffers are lent; shapes are checked by assertion.
///
/// A new engine gives `name`, `analyse`, `adjoint` and `correlate`; [`laws`](crate::laws) and the tests of engines hold
/// whatever else it overrides to the passes that follow from these.
pub trait Engine<T: Real>: Send + Sync {
    /// Its name and the instruction set in use, for people.
    fn name(&self) -> String;

    /// Who works on a batch: this process alone, unless an engine is one of a team. Then batches are a member's own samples,
    /// and sums over samples are those of all members.
    fn ranks(&self) -> &Ranks {
        Ranks::alone()
    }

    /// `u = L z`: `u_0` from `theta_0`.
    fn analyse(&self, theta: &Filters<T>, z: &Field<T>, u: &mut Field<T>);

    /// `x = L* u`.
    fn adjoint(&self, theta: &Filters<T>, u: &Field<T>, x: &mut Field<T>);

    /// `gradient[j,c,t] += scale sum_p d_j(p) x_c(p + t)`, over all samples: `corr(x, d)`.
    fn correlate(&self, scale: T, x: &Field<T>, d: &Field<T>, gradient: &mut Filters<T>);

    /// `r = L* u - z`: with `theta_K`, `-x^`; with any other, the residual of layer `k`.
    fn residual(&self, theta: &Filters<T>, u: &Field<T>, z: &Field<T>, r: &mut Field<T>) {
        self.adjoint(theta, u, r);
        r.zip(z, |r, z| r - z);
    }

    /// The affine part `v = u - tau L (L* u - z)` with its residual `r = L* u - z`.
    fn layer(&self, layer: Layer<'_, T>, u: &Field<T>, z: &Field<T>, r: &mut Field<T>, v: &mut Field<T>) {
        self.residual(layer.synthesis, u, z, r);
        self.analyse(layer.theta, r, v);
        v.zip(u, |v, u| u - layer.tau * v);
    }

    /// `back = (I - tau L L*) d`, and `a = L* d` on the way.
    fn pullback(&self, layer: Layer<'_, T>, d: &Field<T>, a: &mut Field<T>, back: &mut Field<T>) {
        self.adjoint(layer.theta, d, a);
        self.analyse(layer.synthesis, a, back);
        back.zip(d, |back, d| d - layer.tau * back);
    }

    /// The activation `u = s(v)`.
    fn activate(&self, layer: Layer<'_, T>, v: &Field<T>, u: &mut Field<T>) {
        layer.activation.apply(v, u);
    }

    /// As many layers as there are momenta, in place and with inertia: `r = L* y - z`, then [`Engine::advance`].
    fn iterate(&self, layer: Layer<'_, T>, z: &Field<T>, betas: &[T], u: &mut Field<T>, y: &mut Field<T>) {
        pass::iterate(self, layer, z, betas, (u, y));
    }

    /// `u+ = s(y - tau L r)`, which takes the place of `u`, and `y+ = u+ + beta (u+ - u)`, which takes that of `y`.
    fn advance(&self, layer: Layer<'_, T>, r: &Field<T>, beta: T, u: &mut Field<T>, y: &mut Field<T>) {
        pass::advance(self, layer, r, beta, (u, y));
    }

    /// `out = s'(v) g`: the step of forward and of reverse derivatives through the activation.
    fn slope(&self, layer: Layer<'_, T>, v: &Field<T>, g: &Field<T>, out: &mut Field<T>) {
        layer.activation.slope(v, g, out);
    }

    /// `B(u, v)` of each sample for the layer's activation, in double precision.
    fn bregman(&self, layer: Layer<'_, T>, u: &Field<T>, v: &Field<T>, penalty: &mut [f64]) {
        assert_fits(layer.theta, &[], &[u, v]);
        layer.activation.bregman(u, v, penalty);
    }

    /// The whole network, `x^ = G(z)`.
    /// Panics when the batch does not fit the network ([`Network::check_batch`]) or the output does not fit the batch.
    fn denoise(&self, network: &Network<T>, z: &Field<T>, output: &mut Field<T>) {
        pass::denoise(self, network, z, output);
    }

    /// How an image of this size is best cut for [`Engine::denoise_tile`]; not at all unless an engine knows better.
    fn tiles(&self, _: Architecture, height: usize, width: usize) -> Tiles {
        Tiles::whole(height, width)
    }

    /// [`Engine::denoise`] for one tile of an image that need not be in memory: `z` holds what the tile sees, and only
    /// the `wanted` rows and columns of `output`, counted in `z`, have a meaning. They have the bits of the image
    /// denoised at once if the tile is one of [`Engine::tiles`]. Panics also when the wanted pixels are not in `z`.
    fn denoise_tile(
        &self,
        network: &Network<T>,
        z: &Field<T>,
        _wanted: (Range<usize>, Range<usize>),
        output: &mut Field<T>,
    ) {
        self.denoise(network, z, output);
    }

    /// Forward, reverse sweep and all weight gradients of a batch, from the network's own forward pass.
    /// Fails when the batch does not fit the network, or its clean images or the gradients do not fit the batch.
    fn training_pass(
        &self,
        network: &Network<T>,
        rule: ReverseRule<T>,
        z: &Field<T>,
        x: &Field<T>,
        gradients: &mut Gradients<T>,
    ) -> Result<()> {
        pass::train(self, network, rule, z, x, gradients)
    }
}
