//! The lifted Bregman energy of any feed-forward network with proximal activations (Section 3.2).
//!
//! ```text
//! v_0 = F_0(z),   v_k = F_k(u_{k-1}),   output F_K(u_{K-1}),   u_k ~ s_k(v_k) = prox_{psi_k}(v_k)
//! E(theta, u | z, x) = mu l(F_K(u_{K-1}), x) + sum_{k=0}^{K-1} B_{psi_k}(u_k, v_k)        (pb:min-loss-Breg-gen)
//! ```
//!
//! `f = E - sum_k psi_k(u_k)` is smooth; with `d_k = s_k(v_k) - u_k` for `k < K` and `d_K = mu (F_K(u_{K-1}) - x)`,
//! the error of every affine map, its gradients are those of one affine layer, repeated:
//!
//! ```text
//! df/du_k = (u_k - v_k) + F_{k+1}* d_{k+1},      df/dF_k = d_k (x) input of F_k
//! ```

use crate::operator::{Convolution, Filters, LinearOperator};
use crate::real::{dot, norm_squared};
use crate::{Real, Result, prox::Prox};

/// An affine map `F(u) = A u + b` with its parameters.
pub trait Affine<T: Real> {
    /// Numbers in.
    fn input_len(&self) -> usize;
    /// Numbers out.
    fn output_len(&self) -> usize;
    /// `(weights, biases)`.
    fn parameters(&self) -> (&[T], &[T]);
    /// `v = A u + b`.
    fn apply(&self, u: &[T], v: &mut [T]);
    /// `out = A* d`.
    fn adjoint(&self, d: &[T], out: &mut [T]);
    /// Adds the gradient of `<d, F(u)>` with respect to the parameters.
    fn add_gradient(&self, u: &[T], d: &[T], gradient: &mut AffineGradient<T>);
}

/// The gradient with respect to one affine map.
#[derive(Clone, Debug, PartialEq)]
pub struct AffineGradient<T> {
    /// With respect to the weights.
    pub weights: Vec<T>,
    /// With respect to the biases.
    pub bias: Vec<T>,
}

/// A full matrix, row by row, and a bias.
#[derive(Clone, Debug)]
pub struct Dense<T> {
    inputs: usize,
    weights: Vec<T>,
    bias: Vec<T>,
}

impl<T: Real> Dense<T> {
    /// The map with `bias.len()` outputs and `inputs` inputs.
    pub fn new(inputs: usize, weights: Vec<T>, bias: Vec<T>) -> Result<Self> {
        refuse!(inputs == 0 || bias.is_empty() || weights.len() != inputs * bias.len() =>
            "{} weights given for a dense layer of {inputs} inputs and {} outputs",
            weights.len(), bias.len());
        Ok(Self { inputs, weights, bias })
    }
}

impl<T: Real> Affine<T> for Dense<T> {
    fn input_len(&self) -> usize {
        self.inputs
    }

    fn output_len(&self) -> usize {
        self.bias.len()
    }

    fn parameters(&self) -> (&[T], &[T]) {
        (&self.weights, &self.bias)
    }

    fn apply(&self, u: &[T], v: &mut [T]) {
        for ((v, row), &b) in v.iter_mut().zip(self.weights.chunks_exact(self.inputs)).zip(&self.bias) {
            *v = b + T::of(dot(row, u));
        }
    }

    fn adjoint(&self, d: &[T], out: &mut [T]) {
        out.fill(T::zero());
        for (row, &d) in self.weights.chunks_exact(self.inputs).zip(d) {
            out.iter_mut().zip(row).for_each(|(out, &w)| *out += w * d);
        }
    }

    fn add_gradient(&self, u: &[T], d: &[T], gradient: &mut AffineGradient<T>) {
        for (row, &d) in gradient.weights.chunks_exact_mut(self.inputs).zip(d) {
            row.iter_mut().zip(u).for_each(|(g, &u)| *g += d * u);
        }
        gradient.bias.iter_mut().zip(d).for_each(|(g, &d)| *g += d);
    }
}

/// A convolution on images of one size, and a bias per feature.
#[derive(Clone, Debug)]
pub struct Convolutional<T> {
    filters: Filters<T>,
    bias: Vec<T>,
    height: usize,
    width: usize,
}

impl<T: Real> Convolutional<T> {
    /// The map on images of `height x width` pixels.
    pub fn new(filters: Filters<T>, bias: Vec<T>, height: usize, width: usize) -> Result<Self> {
        Convolution::new(&filters, height, width)?;
        refuse!(bias.len() != filters.features() =>
            "{} biases given for {} features", bias.len(), filters.features());
        Ok(Self { filters, bias, height, width })
    }

    fn operator(&self) -> Convolution<'_, T> {
        Convolution::new(&self.filters, self.height, self.width).expect("checked by new")
    }
}

impl<T: Real> Affine<T> for Convolutional<T> {
    fn input_len(&self) -> usize {
        self.operator().domain_len()
    }

    fn output_len(&self) -> usize {
        self.operator().range_len()
    }

    fn parameters(&self) -> (&[T], &[T]) {
        (self.filters.weights(), &self.bias)
    }

    fn apply(&self, u: &[T], v: &mut [T]) {
        self.operator().apply(u, v);
        for (plane, &b) in v.chunks_exact_mut(self.height * self.width).zip(&self.bias) {
            plane.iter_mut().for_each(|v| *v += b);
        }
    }

    fn adjoint(&self, d: &[T], out: &mut [T]) {
        self.operator().adjoint(d, out);
    }

    fn add_gradient(&self, u: &[T], d: &[T], gradient: &mut AffineGradient<T>) {
        self.operator().add_weight_gradient(u, d, &mut gradient.weights);
        for (g, plane) in gradient.bias.iter_mut().zip(d.chunks_exact(self.height * self.width)) {
            *g += plane.iter().copied().sum::<T>();
        }
    }
}

/// A feed-forward network: `F_0, s_0, F_1, s_1, ..., F_K`.
pub struct FeedForward<T> {
    layers: Vec<Box<dyn Affine<T>>>,
    activations: Vec<Box<dyn Prox<T>>>,
}

/// What [`FeedForward::lifted`] computes at one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct LiftedPoint<T> {
    /// `mu l(F_K(u_{K-1}), x)`.
    pub data: T,
    /// `B(u_k, v_k)` for `k = 0..K-1`.
    pub penalties: Vec<T>,
    /// `df/dF_k` for `k = 0..=K`.
    pub theta: Vec<AffineGradient<T>>,
    /// `df/du_k` for `k = 0..K-1`.
    pub u: Vec<Vec<T>>,
}

impl<T: Real> LiftedPoint<T> {
    /// `E`.
    pub fn energy(&self) -> T {
        self.data + self.penalties.iter().copied().sum()
    }
}

impl<T: Real> FeedForward<T> {
    /// A network from its affine maps and the activations between them.
    /// Fails when there is not one map more than activations, or the sizes do not chain.
    pub fn new(layers: Vec<Box<dyn Affine<T>>>, activations: Vec<Box<dyn Prox<T>>>) -> Result<Self> {
        refuse!(layers.len() != activations.len() + 1 || activations.is_empty() =>
            "{} affine maps and {} activations given; there must be one map more, and an activation",
            layers.len(), activations.len());
        for (k, pair) in layers.windows(2).enumerate() {
            let (given, taken) = (pair[0].output_len(), pair[1].input_len());
            refuse!(given != taken => "layer {k} gives {given} numbers, but layer {} takes {taken}", k + 1);
        }
        Ok(Self { layers, activations })
    }

    fn zero_gradients(&self) -> Vec<AffineGradient<T>> {
        let zero = |layer: &dyn Affine<T>| {
            let (weights, bias) = layer.parameters();
            AffineGradient { weights: vec![T::zero(); weights.len()], bias: vec![T::zero(); bias.len()] }
        };
        self.layers.iter().map(|layer| zero(layer.as_ref())).collect()
    }

    /// `F_k(input)`.
    fn affine(&self, k: usize, input: &[T]) -> Vec<T> {
        let mut v = vec![T::zero(); self.layers[k].output_len()];
        self.layers[k].apply(input, &mut v);
        v
    }

    /// `F_k* d`.
    fn adjoint(&self, k: usize, d: &[T]) -> Vec<T> {
        let mut back = vec![T::zero(); self.layers[k].input_len()];
        self.layers[k].adjoint(d, &mut back);
        back
    }

    /// The feed-forward pass: `v_0..v_K` (the last is the output) and `u_0..u_{K-1}`.
    pub fn forward(&self, z: &[T]) -> (Vec<Vec<T>>, Vec<Vec<T>>) {
        let (mut v, mut u) = (vec![self.affine(0, z)], Vec::new());
        for (k, activation) in self.activations.iter().enumerate() {
            let mut activated = v[k].clone();
            activation.prox_in_place(T::one(), &mut activated);
            v.push(self.affine(k + 1, &activated));
            u.push(activated);
        }
        (v, u)
    }

    /// The energy and all partial gradients of `f` at `u_0..u_{K-1}`.
    pub fn lifted(&self, mu: T, z: &[T], x: &[T], u: &[Vec<T>]) -> LiftedPoint<T> {
        let last = self.activations.len();
        let input = |k: usize| if k == 0 { z } else { u[k - 1].as_slice() };
        let mut theta = self.zero_gradients();
        let output = self.affine(last, input(last));
        let mut d: Vec<T> = output.iter().zip(x).map(|(&o, &x)| mu * (o - x)).collect();
        let data = T::of(0.5) / mu * T::of(norm_squared(&d));
        let (mut penalties, mut gradients) = (vec![T::zero(); last], vec![Vec::new(); last]);
        for k in (0..last).rev() {
            self.layers[k + 1].add_gradient(input(k + 1), &d, &mut theta[k + 1]);
            let back = self.adjoint(k + 1, &d);
            let v = self.affine(k, input(k));
            gradients[k] = u[k].iter().zip(&v).zip(&back).map(|((&u, &v), &b)| (u - v) + b).collect();
            d = vec![T::zero(); v.len()];
            penalties[k] = self.activations[k].bregman(T::one(), &u[k], &v, &mut d);
            self.activations[k].bregman_gradient(T::one(), &u[k], &v, &mut d);
        }
        self.layers[0].add_gradient(z, &d, &mut theta[0]);
        LiftedPoint { data, penalties, theta, u: gradients }
    }

    /// The plain loss `l(G(z), x)` and its gradients by back-propagation.
    pub fn backprop(&self, z: &[T], x: &[T]) -> (T, Vec<AffineGradient<T>>) {
        let (v, u) = self.forward(z);
        let last = self.activations.len();
        let mut theta = self.zero_gradients();
        let mut d: Vec<T> = v[last].iter().zip(x).map(|(&o, &x)| o - x).collect();
        let loss = T::of(0.5) * T::of(norm_squared(&d));
        for k in (0..last).rev() {
            self.layers[k + 1].add_gradient(&u[k], &d, &mut theta[k + 1]);
            let back = self.adjoint(k + 1, &d);
            d = vec![T::zero(); back.len()];
            self.activations[k].pullback(T::one(), &v[k], &back, &mut d);
        }
        self.layers[0].add_gradient(z, &d, &mut theta[0]);
        (loss, theta)
    }
}
