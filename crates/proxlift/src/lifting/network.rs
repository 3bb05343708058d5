//! Any feed-forward network with proximal activations (Section 3.2), `G(z) = F_K(s_{K-1}(.. s_0(F_0(z)) ..))`.
//!
//! Lifted training needs the potentials of the activations: each is the prox of a convex function, so it is monotone and
//! nowhere steeper than 1 (Moreau, *Proximite et dualite dans un espace hilbertien*, 1965). Anything else is refused.

use super::learned::project;
use super::{Affine, Loss, Rows};
use crate::network::Activation;
use crate::prox::PiecewiseLinear;
use crate::real::any;
use crate::{Real, Result};
use rayon::prelude::*;

/// `F_0, s_0, F_1, s_1, .., F_K` and the loss of what comes out:
///
/// ```text
/// v_0 = F_0(z),   u_k = s_k(v_k) = prox_{psi_k}(v_k),   v_{k+1} = F_{k+1}(u_k, z),   output v_K
/// ```
///
/// ```
/// use proxlift::lifting::{Dense, Loss, Network, Rows};
/// use proxlift::prox::Relu;
/// let network = Network::<f64>::new(Loss::Squared)
///     .layer(Dense::new(2, vec![1.0, -1.0, 0.5, 0.5], vec![0.0, 0.1])?, Relu)
///     .output(Dense::new(2, vec![1.0, 1.0], vec![0.0])?)?;
/// let pass = network.forward(&Rows::new(2, vec![1.0, 2.0])?);
/// assert!((pass.output().row(0)[0] - 1.6).abs() < 1e-12);
/// # Ok::<(), proxlift::Error>(())
/// ```
pub struct Network<T> {
    layers: Vec<Box<dyn Affine<T>>>,
    activations: Vec<Activation<T>>,
    /// What is asked of the output.
    pub loss: Loss,
}

/// The variables of a batch: `v_0..v_K`, the last of which is the output, and `u_0..u_{K-1}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass<T> {
    /// What the affine maps give.
    pub v: Vec<Rows<T>>,
    /// What the activations make of it, or the auxiliary variables.
    pub u: Vec<Rows<T>>,
}

impl<T: Real> Pass<T> {
    /// `v_K`.
    pub fn output(&self) -> &Rows<T> {
        &self.v[self.v.len() - 1]
    }

    /// What layer `k` starts from.
    pub fn input<'a>(&'a self, k: usize, z: &'a Rows<T>) -> &'a Rows<T> {
        if k == 0 { z } else { &self.u[k - 1] }
    }
}

impl<T: Real> Network<T> {
    /// A network without layers yet.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(loss: Loss) -> Builder<T> {
        Builder { layers: Vec::new(), activations: Vec::new(), loss }
    }

    /// The network of these parts.
    /// Fails when there is no activation, sizes do not chain, or an activation is no prox or does not fit its map.
    pub(super) fn assemble(
        layers: Vec<Box<dyn Affine<T>>>,
        activations: Vec<Activation<T>>,
        loss: Loss,
    ) -> Result<Self> {
        refuse!(activations.is_empty() => "a network needs a layer with an activation before its output");
        refuse!(layers.len() != activations.len() + 1 =>
            "{} layers have {} activations between them", layers.len(), activations.len());
        for (k, pair) in layers.windows(2).enumerate() {
            let (given, taken) = (pair[0].outputs(), pair[1].inputs());
            refuse!(given != taken => "layer {k} gives {given} numbers, but layer {} takes {taken}", k + 1);
        }
        for (k, layer) in layers.iter().enumerate() {
            let (sees, z) = (layer.skips(), layers[0].inputs());
            refuse!(sees.is_some_and(|sees| sees != z) =>
                "layer {k} sees an input of {} numbers, but the network takes {z}", sees.unwrap_or(0));
        }
        for (k, (activation, layer)) in activations.iter().zip(&layers).enumerate() {
            activation.prox().validate()?;
            check_slope(activation, format_args!("the activation of layer {k}"))?;
            let planes = activation.prox().planes().unwrap_or(1);
            refuse!(!layer.outputs().is_multiple_of(planes) =>
                "layer {k} gives {} numbers, which are not {planes} planes for its activation", layer.outputs());
        }
        Ok(Network { layers, activations, loss })
    }

    /// The affine maps `F_0..F_K`.
    pub fn layers(&self) -> &[Box<dyn Affine<T>>] {
        &self.layers
    }

    /// The same, to be moved.
    pub fn layers_mut(&mut self) -> &mut [Box<dyn Affine<T>>] {
        &mut self.layers
    }

    /// Layer `k`, to be moved.
    pub(super) fn part_mut(&mut self, k: usize) -> Part<'_, T> {
        Part { k, layer: &mut self.layers[k], activation: self.activations.get_mut(k), loss: self.loss }
    }

    /// All layers, to be moved by several threads.
    pub(super) fn parts_mut(&mut self) -> Vec<Part<'_, T>> {
        let activations = self.activations.iter_mut().map(Some).chain([None]);
        let (parts, loss) = (self.layers.iter_mut().zip(activations).enumerate(), self.loss);
        parts.map(|(k, (layer, activation))| Part { k, layer, activation, loss }).collect()
    }

    /// What comes after the affine map `k = 0..=K`.
    pub(super) fn after(&self, k: usize) -> After<'_, T> {
        After::of(self.activations.get(k), self.loss)
    }

    /// `K`, the number of activations.
    pub fn depth(&self) -> usize {
        self.activations.len()
    }

    /// The activations `s_0..s_{K-1}`.
    pub fn activations(&self) -> &[Activation<T>] {
        &self.activations
    }

    /// Makes all learned activations proxes again.
    pub(super) fn project_activations(&mut self) {
        self.activations.iter_mut().for_each(project);
    }

    /// Numbers that training moves.
    pub fn parameters(&self) -> usize {
        self.blocks().into_iter().map(<[T]>::len).sum()
    }

    /// The blocks of parameters of layer `k`: weights, biases, then knots and slopes of the activation if that learns.
    pub fn layer_blocks(&self, k: usize) -> Vec<&[T]> {
        layer_blocks(&*self.layers[k], self.activations.get(k))
    }

    /// The same, to be moved.
    pub fn layer_blocks_mut(&mut self, k: usize) -> Vec<&mut [T]> {
        layer_blocks_mut(&mut *self.layers[k], self.activations.get_mut(k))
    }

    /// All blocks of parameters: the weights of all layers, then their biases, and what activations learn.
    pub fn blocks(&self) -> Vec<&[T]> {
        in_order((0..self.layers.len()).map(|k| self.layer_blocks(k)).collect())
    }

    /// The same, to be moved.
    pub fn blocks_mut(&mut self) -> Vec<&mut [T]> {
        let parts = self.parts_mut().into_iter();
        in_order(parts.map(|part| layer_blocks_mut(&mut **part.layer, part.activation)).collect())
    }

    /// Rows and columns of the weights of all layers, as matrices with a row for each output or feature.
    pub fn matrices(&self) -> Vec<[usize; 2]> {
        let layers = self.layers.iter();
        layers.map(|layer| [layer.rows(), layer.parameters()[0].len() / layer.rows()]).collect()
    }

    /// `v_k = F_k(input, z)`.
    pub fn affine(&self, k: usize, input: &Rows<T>, z: &Rows<T>) -> Rows<T> {
        let mut v = Rows::zeros(z.samples(), self.layers[k].outputs());
        self.layers[k].apply(input, z, &mut v);
        v
    }

    /// `s_k(v)`.
    pub fn activate(&self, k: usize, v: &Rows<T>) -> Rows<T> {
        activate(&self.activations[k], v)
    }

    /// `s_k'(v) g`.
    pub fn slope(&self, k: usize, v: &Rows<T>, g: &Rows<T>) -> Rows<T> {
        slope(&self.activations[k], v, g)
    }

    /// The feed-forward pass. Panics when the batch has another width than the network takes.
    pub fn forward(&self, z: &Rows<T>) -> Pass<T> {
        assert_eq!(z.width(), self.layers[0].inputs(), "the batch does not fit the network");
        let (mut v, mut u) = (vec![self.affine(0, z, z)], Vec::new());
        for k in 0..self.activations.len() {
            let activated = self.activate(k, &v[k]);
            v.push(self.affine(k + 1, &activated, z));
            u.push(activated);
        }
        Pass { v, u }
    }

    /// What the affine maps give for these `u`.
    pub(super) fn pass_at(&self, z: &Rows<T>, u: Vec<Rows<T>>) -> Pass<T> {
        let mut pass = Pass { v: Vec::new(), u };
        pass.v = (0..self.layers.len()).map(|k| self.affine(k, pass.input(k, z), z)).collect();
        pass
    }

    /// Refuses auxiliary variables that are not those of a batch.
    pub(super) fn check_u(&self, u: &[Rows<T>], samples: usize) -> Result<()> {
        refuse!(u.len() != self.depth() => "u is given for {} layers, but {} have an activation", u.len(), self.depth());
        for (k, (u, layer)) in u.iter().zip(&self.layers).enumerate() {
            refuse!((u.samples(), u.width()) != (samples, layer.outputs()) =>
                "u of layer {k} has {} samples of {} numbers, but the batch has {samples} and the layer gives {}",
                u.samples(), u.width(), layer.outputs());
        }
        Ok(())
    }

    /// Refuses samples that do not fit the network, or that it cannot learn from.
    pub fn check(&self, z: &Rows<T>, x: &Rows<T>) -> Result<()> {
        self.check_sizes(z, x)?;
        refuse!(any(z.data(), |v| !v.is_finite()) => "a sample holds a number that is not finite");
        self.loss.check(x)
    }

    /// The same, whatever the numbers are.
    pub(super) fn check_sizes(&self, z: &Rows<T>, x: &Rows<T>) -> Result<()> {
        let (inputs, outputs) = (self.layers[0].inputs(), self.layers[self.layers.len() - 1].outputs());
        refuse!(z.width() != inputs || x.width() != outputs =>
            "samples have {} and {} numbers, but the network takes {inputs} and gives {outputs}", z.width(), x.width());
        refuse!(z.samples() != x.samples() => "{} samples have {} targets", z.samples(), x.samples());
        refuse!(z.samples() == 0 => "a batch holds no sample, but a network learns from one or more");
        Ok(())
    }
}

/// What comes after an affine map: an activation, or the loss.
pub(super) enum After<'a, T> {
    Activation(&'a Activation<T>),
    Loss(Loss),
}

impl<'a, T> After<'a, T> {
    fn of(activation: Option<&'a Activation<T>>, loss: Loss) -> Self {
        activation.map_or(Self::Loss(loss), Self::Activation)
    }
}

/// Layer `k`: an affine map and what comes after it, to be moved.
pub(super) struct Part<'a, T> {
    pub k: usize,
    pub layer: &'a mut Box<dyn Affine<T>>,
    activation: Option<&'a mut Activation<T>>,
    loss: Loss,
}

impl<T: Real> Part<'_, T> {
    pub fn after(&self) -> After<'_, T> {
        After::of(self.activation.as_deref(), self.loss)
    }

    /// Its blocks of parameters, as [`Network::layer_blocks`] has them.
    pub fn blocks(&self) -> Vec<&[T]> {
        layer_blocks(&**self.layer, self.activation.as_deref())
    }

    /// The same, to be moved.
    pub fn blocks_mut(&mut self) -> Vec<&mut [T]> {
        layer_blocks_mut(&mut **self.layer, self.activation.as_deref_mut())
    }

    /// Makes a learned activation a prox again.
    pub fn project(&mut self) {
        self.activation.as_deref_mut().into_iter().for_each(project);
    }
}

/// Refuses what is steeper than a prox can be; what is not monotone, its own `validate` refuses.
pub(super) fn check_slope<T: Real>(s: &Activation<T>, what: impl std::fmt::Display) -> Result<()> {
    refuse!(s.steepest() > T::of(1.0 + 1e-6) =>
        "{what} has a slope of {}, but what is steeper than 1 is no prox: project it", s.steepest());
    Ok(())
}

/// `s(v)`.
pub(super) fn activate<T: Real>(s: &Activation<T>, v: &Rows<T>) -> Rows<T> {
    let mut u = v.clone();
    u.par_rows_mut().for_each(|row| s.prox().prox_in_place(T::one(), row));
    u
}

/// `s'(v) g`.
pub(super) fn slope<T: Real>(s: &Activation<T>, v: &Rows<T>, g: &Rows<T>) -> Rows<T> {
    let mut out = v.zeros_like();
    let rows = out.par_rows_mut().zip(v.par_rows()).zip(g.par_rows());
    rows.for_each(|((out, v), g)| s.prox().pullback(T::one(), v, g, out));
    out
}

fn layer_blocks<'a, T: Real>(
    layer: &'a dyn Affine<T>,
    activation: Option<&'a Activation<T>>,
) -> Vec<&'a [T]> {
    let learned = activation.filter(|activation| activation.learns());
    let parts =
        learned.and_then(Activation::piecewise).map(|functions| [functions.knots(), functions.slopes()]);
    layer.parameters().into_iter().chain(parts.into_iter().flatten()).collect()
}

fn layer_blocks_mut<'a, T: Real>(
    layer: &'a mut dyn Affine<T>,
    activation: Option<&'a mut Activation<T>>,
) -> Vec<&'a mut [T]> {
    let learned = activation.filter(|activation| activation.learns());
    let parts = learned.and_then(Activation::piecewise_mut).map(PiecewiseLinear::parts_mut);
    layer.parameters_mut().into_iter().chain(parts.into_iter().flatten()).collect()
}

/// The first blocks of all layers, then the second ones, and so on.
pub(super) fn in_order<B>(layers: Vec<Vec<B>>) -> Vec<B> {
    let most = layers.iter().map(Vec::len).max().unwrap_or(0);
    let mut layers: Vec<_> = layers.into_iter().map(Vec::into_iter).collect();
    (0..most).flat_map(|_| layers.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()).collect()
}

/// A [`Network`] that is being built.
pub struct Builder<T> {
    layers: Vec<Box<dyn Affine<T>>>,
    activations: Vec<Activation<T>>,
    loss: Loss,
}

impl<T: Real> Builder<T> {
    /// One more affine map and the activation after it.
    #[must_use]
    pub fn layer(mut self, map: impl Affine<T> + 'static, activation: impl Into<Activation<T>>) -> Self {
        self.layers.push(Box::new(map));
        self.activations.push(activation.into());
        self
    }

    /// The last affine map.
    /// Fails when there is no layer before it, sizes do not chain, or an activation does not fit its map.
    pub fn output(mut self, map: impl Affine<T> + 'static) -> Result<Network<T>> {
        self.layers.push(Box::new(map));
        Network::assemble(self.layers, self.activations, self.loss)
    }
}
