//! The unrolled network of Section 2.3: dual forward-backward with its own operator in every layer.
//!
//! ```text
//! u_0 = L_0 z
//! v_k = u_{k-1} - tau_k L_k (L_k* u_{k-1} - z)      k = 1..K-1     (eq:def-E-lay)
//! u_k = prox_{tau_k g*}(v_k) = s_k(v_k)
//! x^  = z - L_K* u_{K-1}
//! ```
//!
//! In the paper `s_k` is the clip at `lambda`; [`Activation`] has the family, and [`Unrolling`] the other algorithms that
//! a network can be unrolled from.

mod activation;
mod architecture;
mod cosine;
mod gram;
mod init;
mod tensors;
mod unrolling;

pub use activation::Activation;
pub use architecture::Architecture;
pub use init::Norms;
pub(crate) use tensors::Shaped;
pub use unrolling::{AVERAGED_STEP, LayerMemory, Memory, Primal, STEP, Unrolling, averaged_slope};

use crate::image::symmetry::Symmetry;
use crate::{Real, Result, field::Field, operator::Filters, prox::PiecewiseLinear};

/// The widest border that a picture gets: what is computed there is thrown away.
const MOST_BORDER: usize = 128;

/// The network's parameters: everything that `x^ = G(z)` depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Network<T> {
    /// `theta_0..theta_K`.
    pub theta: Vec<Filters<T>>,
    /// The synthesis of layers `1..K-1`, what they have instead of `L_k*` where it is learned by itself; none in the paper,
    /// whose layers have the adjoint of `theta_k`.
    pub synthesis: Vec<Filters<T>>,
    /// `tau_1..tau_{K-1}`; stored, so that inference depends on no random number.
    pub tau: Vec<T>,
    /// The activations of layers `1..K-1`.
    pub activation: Vec<Activation<T>>,
    /// What the layers are unrolled from.
    pub unrolling: Unrolling,
    /// Whether the estimate of the image stays in `[0, 1]` in every layer.
    pub bounded: bool,
    /// Pixels that the network is given around the image, so that it need not learn what zeros beyond its edge look like:
    /// mirrored ones around a picture, those of the photograph around a training patch,
    /// where their error does not count. None in the paper.
    pub border: usize,
    /// How many times the steps `tau_k` are as long as the algorithm's convergence allows; 1 in the paper. A trained network
    /// stops after `K` layers and need not converge, and long steps take it further ([`Norms`]).
    pub step_scale: T,
}

/// One inner layer, as an engine sees it.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a, T> {
    /// `theta_k`.
    pub theta: &'a Filters<T>,
    /// The filters of its synthesis: `theta_k` again, unless it has its own.
    pub synthesis: &'a Filters<T>,
    /// `tau_k`.
    pub tau: T,
    /// `s_k`.
    pub activation: &'a Activation<T>,
}

impl<T: Real> Network<T> {
    /// The paper's network from its parts: the clip at `lambda_j` in every layer.
    pub fn new(theta: Vec<Filters<T>>, tau: Vec<T>, lambda: Vec<T>) -> Result<Self> {
        let activation = vec![Activation::clip(lambda); tau.len()];
        Self::with_activations(theta, tau, activation)
    }

    /// A network from its parts, with an activation for each layer.
    pub fn with_activations(
        theta: Vec<Filters<T>>,
        tau: Vec<T>,
        activation: Vec<Activation<T>>,
    ) -> Result<Self> {
        let network = Self {
            theta,
            synthesis: Vec::new(),
            tau,
            activation,
            unrolling: Unrolling::default(),
            bounded: false,
            border: 0,
            step_scale: T::one(),
        };
        network.validate()?;
        Ok(network)
    }

    /// Checks that the parts fit together and hold finite numbers only.
    pub fn validate(&self) -> Result<()> {
        let depth = self.theta.len().saturating_sub(1);
        refuse!(depth < 2 => "the depth K is {depth}, but it must be at least 2");
        let architecture = self.architecture();
        architecture.validate()?;
        let shape = |theta: &Filters<T>| (theta.features(), theta.channels(), theta.size());
        for (k, theta) in self.theta.iter().enumerate() {
            refuse!(shape(theta) != shape(&self.theta[0]) => "theta_{k} has another shape than theta_0");
        }
        refuse!(![0, depth - 1].contains(&self.synthesis.len()) =>
            "{} synthesis operators given, but {} layers", self.synthesis.len(), depth - 1);
        for (k, synthesis) in self.synthesis.iter().enumerate() {
            refuse!(shape(synthesis) != shape(&self.theta[0]) =>
                "the synthesis of layer {} has another shape than theta_0", k + 1);
        }
        refuse!(self.tau.len() != depth - 1 =>
            "{} steps tau given, but {} layers", self.tau.len(), depth - 1);
        refuse!(self.activation.len() != self.tau.len() =>
            "{} activations given, but {} layers", self.activation.len(), self.tau.len());
        self.activation.iter().try_for_each(|activation| activation.validate(architecture.features))?;
        refuse!(self.redescends() && !self.has_limit() =>
            "a slope of an activation is negative, which only networks whose layers are all the same may have");
        let mut pieces = self.activation.iter().filter_map(|s| Some(s.piecewise()?.pieces()));
        let first = pieces.next();
        refuse!(!pieces.all(|pieces| Some(pieces) == first) =>
            "the activations of two layers differ in their number of knots");
        refuse!(self.filters().flat_map(|theta| theta.weights()).any(|w| !w.is_finite()) =>
            "a weight is not a finite number");
        refuse!(self.border > MOST_BORDER =>
            "the border is {} pixels wide, but it must be at most {MOST_BORDER}", self.border);
        refuse!(!self.border.is_multiple_of(architecture.stride()) =>
            "the border is {} pixels wide, but with stride 2 it must be even", self.border);
        refuse!(self.border > architecture.receptive_radius() =>
            "the border is {} pixels wide, but the network sees no further than {}",
            self.border, architecture.receptive_radius());
        refuse!(!(self.step_scale.is_finite() && self.step_scale > T::zero()) =>
            "the step scale is not a positive number");
        refuse!(self.tau.iter().any(|t| !(t.is_finite() && *t > T::zero())) =>
            "a step tau is not a positive number");
        Ok(())
    }

    /// The network's sizes.
    pub fn architecture(&self) -> Architecture {
        let first = &self.theta[0];
        Architecture {
            depth: self.theta.len() - 1,
            features: first.features(),
            kernel: first.size(),
            channels: first.channels(),
        }
    }

    /// The border in numbers of the planes that the layers see.
    pub fn plane_border(&self) -> usize {
        self.border / self.architecture().stride()
    }

    /// The inner layer `k = 1..K-1`.
    pub fn layer(&self, k: usize) -> Layer<'_, T> {
        let (theta, synthesis) = (&self.theta[k], self.synthesis(k));
        Layer { theta, synthesis, tau: self.tau[k - 1], activation: &self.activation[k - 1] }
    }

    /// The filters of the synthesis of layer `k = 1..K`: `theta_k`, unless it has its own.
    pub fn synthesis(&self, k: usize) -> &Filters<T> {
        self.synthesis.get(k - 1).unwrap_or(&self.theta[k])
    }

    /// The filters of all operators: `theta_0..theta_K`, then those of every synthesis of its own.
    pub fn filters(&self) -> impl Iterator<Item = &Filters<T>> {
        self.theta.iter().chain(&self.synthesis)
    }

    /// The same, to be changed.
    pub fn filters_mut(&mut self) -> impl Iterator<Item = &mut Filters<T>> {
        self.theta.iter_mut().chain(&mut self.synthesis)
    }

    /// The network whose inner layers have a synthesis of their own, which starts as the adjoint: the same numbers come out.
    #[must_use]
    pub fn with_own_synthesis(mut self) -> Self {
        if self.synthesis.is_empty() {
            self.synthesis = self.theta[1..self.theta.len() - 1].to_vec();
        }
        self
    }

    /// The network with kernels of `size` taps a side, zero around the ones it had: the same numbers come out.
    /// Fails when that is smaller than they are, or even.
    pub fn widened(&self, size: usize) -> Result<Self> {
        let widened = |filters: &[Filters<T>]| -> Result<Vec<_>> {
            filters.iter().map(|theta| theta.widened(size)).collect()
        };
        Ok(Self { theta: widened(&self.theta)?, synthesis: widened(&self.synthesis)?, ..self.clone() })
    }

    /// Whether all layers are the same.
    pub fn is_tied(&self) -> bool {
        let first = &self.activation[0];
        self.has_one_operator() && self.activation.iter().all(|activation| activation == first)
    }

    /// Whether all layers have the same operator, and its adjoint as synthesis.
    pub fn has_one_operator(&self) -> bool {
        self.synthesis.is_empty() && self.theta.iter().all(|theta| *theta == self.theta[0])
    }

    /// Whether an activation falls somewhere: then the network is only defined at its fixed point.
    pub fn redescends(&self) -> bool {
        self.activation.iter().any(|activation| activation.flattest() < T::zero())
    }

    /// Whether its layers have a limit: all are the same, and those of dual forward-backward, plain or inertial.
    fn has_limit(&self) -> bool {
        matches!(self.unrolling, Unrolling::DualForwardBackward | Unrolling::Inertial)
            && !self.bounded
            && self.is_tied()
    }

    /// The numbers that training moves: the weights of all filters, and the knots and slopes of learned activations.
    pub fn parameters(&self) -> usize {
        self.parameters_of(usize::MAX, usize::MAX)
    }

    /// Those that are not there twice: of one operator, and of one activation, where all are the same.
    pub fn distinct_parameters(&self) -> usize {
        let once = |alike: bool| if alike { 1 } else { usize::MAX };
        self.parameters_of(once(self.has_one_operator()), once(self.is_tied()))
    }

    fn parameters_of(&self, operators: usize, activations: usize) -> usize {
        let learned = self.learned().take(activations).map(|s| s.knots().len() + s.slopes().len());
        let filters = self.filters().take(operators).map(|theta| theta.weights().len());
        filters.sum::<usize>() + learned.sum::<usize>()
    }

    /// What layer `k = 1..K` remembers; `K` is that of the output, which sees `u_{K-1}` and `r_K` as they are.
    pub fn layer_memory(&self, k: usize) -> LayerMemory<T> {
        let momentum = self.unrolling.layer_memory(k);
        if k + 1 < self.theta.len() {
            return momentum;
        }
        LayerMemory { inertia: T::zero(), extrapolation: T::zero(), ..momentum }
    }

    /// The image part of layer `k = 1..K`.
    pub fn primal(&self, k: usize) -> Primal<T> {
        Primal { memory: self.layer_memory(k), bounded: self.bounded }
    }

    /// Whether this is plain dual forward-backward, whose layers see only the one before them and have the adjoint as synthesis.
    pub fn is_plain(&self) -> bool {
        self.unrolling == Unrolling::DualForwardBackward && !self.bounded && self.synthesis.is_empty()
    }

    /// Whether training moves the activations, which it does if it can move those of all layers.
    pub fn learns_activations(&self) -> bool {
        self.activation.iter().all(Activation::learns)
    }

    /// Knots of piecewise-linear activations, `M`; none where the first layer has another prox.
    pub fn pieces(&self) -> usize {
        self.activation[0].piecewise().map_or(0, PiecewiseLinear::pieces)
    }

    /// The activations that training moves; none if there are others among them.
    pub fn learned(&self) -> impl Iterator<Item = &PiecewiseLinear<T>> {
        let learned = self.learns_activations().then_some(&self.activation);
        learned.into_iter().flatten().filter_map(Activation::piecewise)
    }

    /// The same, to be moved.
    pub fn learned_mut(&mut self) -> impl Iterator<Item = &mut PiecewiseLinear<T>> {
        let learned = self.learns_activations().then_some(&mut self.activation);
        learned.into_iter().flatten().filter_map(Activation::piecewise_mut)
    }

    /// All numbers that training moves, block by block: the filters of each layer, then knots and slopes of each.
    pub fn trained_mut(&mut self) -> Vec<&mut [T]> {
        let learns = self.learns_activations();
        let learned = self.activation.iter_mut().filter(|_| learns).filter_map(Activation::piecewise_mut);
        let filters = self.theta.iter_mut().chain(&mut self.synthesis).map(Filters::weights_mut);
        filters.chain(learned.flat_map(PiecewiseLinear::parts_mut)).collect()
    }

    /// The operator of the output, `theta_K`.
    pub fn last(&self) -> &Filters<T> {
        &self.theta[self.theta.len() - 1]
    }

    /// Checks that a batch of images fits the network.
    pub fn check_batch(&self, images: &Field<T>) -> Result<()> {
        let architecture = self.architecture();
        refuse!(images.channels() != architecture.channels =>
            "the images have {} channels, but the network was made for {}",
            images.channels(), architecture.channels);
        refuse!(images.grid().gap() != architecture.kernel / 2 =>
            "the batch was laid out for another kernel size");
        Ok(())
    }

    /// Checks that a batch fits the network, and `other`, its clean images or its output, fits the batch.
    pub fn check_pair(&self, images: &Field<T>, other: &Field<T>) -> Result<()> {
        self.check_batch(images)?;
        self.check_batch(other)?;
        let shape = |f: &Field<T>| (f.samples(), f.grid().width(), f.grid().height());
        let ((n, w, h), (other_n, other_w, other_h)) = (shape(images), shape(other));
        refuse!((n, w, h) != (other_n, other_w, other_h) =>
            "{n} images of {w}x{h} pixels are paired with {other_n} of {other_w}x{other_h}");
        Ok(())
    }

    /// Multiplies all knots by `factor`: with `G` before, the network is then `z -> factor G(z / factor)`, the same at a
    /// contrast, and a noise level, so many times higher.
    pub fn scale_thresholds(&mut self, factor: T) {
        self.activation.iter_mut().for_each(|activation| activation.scale(factor));
    }

    /// The network that makes of a turned picture what this one makes of the picture itself, turned.
    #[must_use]
    pub fn turned(&self, symmetry: Symmetry) -> Self {
        let turned = |filters: &[Filters<T>]| filters.iter().map(|theta| theta.turned(symmetry)).collect();
        Self { theta: turned(&self.theta), synthesis: turned(&self.synthesis), ..self.clone() }
    }

    /// The same network in another precision.
    pub fn cast<U: Real>(&self) -> Network<U> {
        Network {
            theta: self.theta.iter().map(Filters::cast).collect(),
            synthesis: self.synthesis.iter().map(Filters::cast).collect(),
            tau: self.tau.iter().map(|t| U::of(t.to_double())).collect(),
            activation: self.activation.iter().map(Activation::cast).collect(),
            unrolling: self.unrolling,
            bounded: self.bounded,
            border: self.border,
            step_scale: U::of(self.step_scale.to_double()),
        }
    }
}

impl<T: Real> std::fmt::Display for Network<T> {
    /// Its sizes, and what it is unrolled from.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sizes = self.architecture();
        let (k, channels) = (sizes.kernel, if sizes.colours() == 1 { "grey" } else { "RGB" });
        write!(f, "K={}, J={}, {k}x{k} kernels, ", sizes.depth, sizes.features)?;
        if sizes.stride() > 1 {
            write!(f, "stride {}, ", sizes.stride())?;
        }
        f.write_str(channels)?;
        write!(f, ", unrolled from {}", self.unrolling)?;
        if !self.synthesis.is_empty() {
            write!(f, ", synthesis of their own")?;
        }
        if self.learns_activations() {
            write!(f, ", activations of {} knots", self.pieces())?;
        }
        if self.bounded {
            write!(f, ", bounded")?;
        }
        if self.step_scale != T::one() {
            write!(f, ", steps {} times as long", self.step_scale)?;
        }
        if self.border > 0 {
            write!(f, ", a border of {}", self.border)?;
        }
        Ok(())
    }
}
