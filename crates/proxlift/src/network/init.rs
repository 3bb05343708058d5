//! Glorot initialisation, and the steps `tau_k`: `1.8 / ||L_k||^2` in the paper, in general [`Unrolling::step`] times
//! [`Network::step_scale`] over `||L_k||^2`.

use super::{Architecture, Network, Unrolling, gram::Gram};
use crate::operator::{Filters, NormParams, PowerState, spectral_norm};
use crate::random::{seeded, unit};
use crate::team::Ranks;
use crate::{Real, Result, prox::PiecewiseLinear};
use rayon::prelude::*;
use std::ops::Range;

/// Power iteration for norms of which nothing is known.
const CONVERGED: NormParams = NormParams { tolerance: 1e-3, max_iterations: 1000, min_iterations: 1 };

/// Power iteration for norms that moved a little: twice as a rule, more where a step was long.
const FOLLOWED: NormParams = NormParams { tolerance: 3e-3, max_iterations: 200, min_iterations: 2 };

/// The norms of a network's inner operators, each power iteration warm from the last.
///
/// `||L||^2` is taken as the norm of the autocorrelation `L* L` on the plane, cut to a square of pixels: it is at least
/// that of `L` with zeros around the square, and for larger images grows by a percent or less (with stride 2, by three), so that
/// `tau_k ||L_k||^2` stays below 2.
#[derive(Clone, Debug)]
pub struct Norms<T> {
    pub(crate) states: Vec<PowerState<T>>,
    pub(crate) converged: bool,
    /// The layers whose iterations are gone on with here; in a team, every member has its own.
    pub(crate) own: Range<usize>,
}

impl<T: Real> Norms<T> {
    /// Cold starts for the inner layers of `network`, all from `seed`.
    pub fn new(network: &Network<T>, seed: u64) -> Self {
        let states = (1..)
            .zip(operators(&network.theta, &network.synthesis))
            .map(|(k, filters)| PowerState::new(&Gram::new(filters), seed.wrapping_add(k)));
        let states: Vec<_> = states.collect();
        Self { own: 0..states.len(), states, converged: false }
    }

    /// Converges the norms, from whatever they start, and sets `tau_k` of every inner layer by them; a layer whose
    /// filters are zero keeps its step.
    pub fn converge(&mut self, network: &mut Network<T>) {
        self.update(network, &CONVERGED, Ranks::alone());
        self.converged = true;
    }

    /// Before the first batch of a training, converges the norms, unless they are.
    pub fn start(&mut self, network: &mut Network<T>) {
        if !self.converged {
            self.converge(network);
        }
    }

    /// The same for norms that were converged before the filters moved a little.
    pub fn follow(&mut self, network: &mut Network<T>) {
        self.update(network, &FOLLOWED, Ranks::alone());
    }

    /// The same in a team: every member follows the norms of its own layers.
    pub fn follow_among(&mut self, network: &mut Network<T>, ranks: &Ranks) {
        self.update(network, &FOLLOWED, ranks);
    }

    fn update(&mut self, network: &mut Network<T>, params: &NormParams, ranks: &Ranks) {
        let (unrolling, step_scale) = (network.unrolling, network.step_scale);
        let operators: Vec<_> = operators(&network.theta, &network.synthesis).collect();
        // Layers are independent, so that no bit depends on the threads.
        self.own = ranks.part(self.states.len(), ranks.rank());
        let squared = self.states[self.own.clone()].par_iter_mut().zip(&operators[self.own.clone()]);
        let squared = squared
            .map(|(state, filters)| spectral_norm(&Gram::new(filters), state, params).norm.to_double());
        let squared = ranks.of_parts(squared.collect(), self.states.len());
        let squared: Vec<T> = squared.into_iter().map(T::of).collect();
        let (of_analysis, of_synthesis) = squared.split_at(network.tau.len());
        for (i, tau) in network.tau.iter_mut().enumerate() {
            // `||L|| ||M||`, which is `||L||^2` where the synthesis is the adjoint.
            let squared = of_synthesis.get(i).map_or(of_analysis[i], |m| (of_analysis[i] * *m).sqrt());
            if squared > T::zero() {
                *tau = step_scale * T::of(unrolling.step(i + 1)) / squared;
            }
        }
    }
}

/// The operators that steps depend on: the analyses of all inner layers, then every synthesis of its own.
fn operators<'a, T>(
    theta: &'a [Filters<T>],
    synthesis: &'a [Filters<T>],
) -> impl Iterator<Item = &'a Filters<T>> {
    theta[1..theta.len() - 1].iter().chain(synthesis)
}

impl<T: Real> Network<T> {
    /// The network with every filter projected onto zero mean, and the steps that follow.
    pub fn centered(mut self, seed: u64) -> Self {
        self.filters_mut().for_each(Filters::center);
        Norms::new(&self, seed).converge(&mut self);
        self
    }

    /// The network unrolled from another algorithm, with steps so many times as long as it allows.
    pub fn unrolled(mut self, unrolling: Unrolling, step_scale: T, seed: u64) -> Self {
        (self.unrolling, self.step_scale) = (unrolling, step_scale);
        Norms::new(&self, seed).converge(&mut self);
        self
    }

    /// The network with the clip of every layer written with `knots` knots, which training then moves.
    pub fn with_knots(mut self, knots: usize) -> Self {
        let features = self.architecture().features;
        for activation in &mut self.activation {
            let lambda = activation.piecewise().map_or(T::one(), |clip| clip.knots()[0]);
            *activation = PiecewiseLinear::clip_with_knots(features, knots, lambda).into();
        }
        self
    }

    /// Weights drawn uniformly from `+-sqrt(6 / (fan_in + fan_out))` (Glorot and Bengio 2010), one threshold for all
    /// features, and the steps that follow.
    pub fn glorot(architecture: Architecture, lambda: f64, seed: u64) -> Result<Self> {
        architecture.validate()?;
        crate::error::check_not_negative("lambda", lambda)?;
        let Architecture { depth, features, kernel, channels } = architecture;
        let bound = (6.0 / ((channels + features) * kernel * kernel) as f64).sqrt();
        let theta = (0..=depth).map(|k| {
            let mut generator = seeded(seed);
            generator.set_stream(k as u64);
            let weights = (0..architecture.layer_parameters()).map(|_| {
                let uniform = f64::from(unit(&mut generator));
                T::of(bound * (2.0 * uniform - 1.0))
            });
            Filters::new(features, channels, kernel, weights.collect())
        });
        let theta = theta.collect::<Result<Vec<_>>>()?;
        let mut network = Self::new(theta, vec![T::one(); depth - 1], vec![T::of(lambda); features])?;
        Norms::new(&network, seed).converge(&mut network);
        network.validate()?;
        Ok(network)
    }
}
