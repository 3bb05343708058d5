//! The recursion of an unrolled network as nodes, in terms of `x_k = -r_k`, the estimate of the image in layer `k`:
//!
//! ```text
//! y_{k-1} = u_{k-1} + alpha_k (u_{k-1} - u_{k-2})
//! x_k     = bound((1 - beta_k)(z - L_k* y_{k-1}) + beta_k x_{k-1})
//! v_k     = y_{k-1} + L_k (tau_k (1 + gamma_k) x_k - tau_k gamma_k x_{k-1})
//! u_k     = s_k(v_k)
//! ```

use super::activation::activate;
use super::graph::{Attribute, Graph};
use crate::{network::Network, operator::Filters};

/// Appends the layers; the name of `x_K`. Where there is a value `white`, the estimates stay between 0 and it.
pub fn unroll(graph: &mut Graph, network: &Network<f32>, z: &str, white: Option<&str>) -> String {
    let mut layers = Layers { graph, network, z, white };
    let depth = network.architecture().depth;
    let mut u = layers.convolve("Conv", 0, z, "u_0");
    let (mut u_before, mut x_before) = (String::new(), String::new());
    for k in 1..depth {
        let y = layers.inertia(k, &u, &u_before);
        let x = layers.estimate(k, &y, &x_before);
        layers.step(k, &y, &x, &x_before);
        u_before = u;
        u = activate(layers.graph, &network.activation[k - 1], network.architecture().features, k);
        x_before = x;
    }
    layers.estimate(depth, &u, &x_before)
}

struct Layers<'a> {
    graph: &'a mut Graph,
    network: &'a Network<f32>,
    z: &'a str,
    white: Option<&'a str>,
}

impl Layers<'_> {
    /// `L_k`, or its synthesis, the transposed convolution, with zeros beyond the edge.
    fn convolve(&mut self, operator: &str, k: usize, from: &str, out: &str) -> String {
        let adjoint = operator == "ConvTranspose" && k <= self.network.synthesis.len();
        let (name, theta) = match adjoint {
            true => ("synthesis", self.network.synthesis(k)),
            false => ("theta", &self.network.theta[k]),
        };
        let (size, radius) = (theta.size(), theta.radius());
        let shape = [theta.features(), theta.channels(), size, size];
        let weights = self.graph.floats(&format!("{name}_{k}"), &shape, &phases_first(theta));
        let attributes = [Attribute::Ints("kernel_shape", &[size; 2]), Attribute::Ints("pads", &[radius; 4])];
        self.graph.node_with(operator, &[from, &weights], out, &attributes)
    }

    /// `a A + b B`; without nodes for factors of 1 and terms of 0. A number is called like its term.
    fn combine(&mut self, (a, first): (f32, &str), (b, second): (f32, &str), out: &str) -> String {
        let (now, before) = (format!("{out}_now"), format!("{out}_before"));
        let mut term = |factor: f32, value: &str, name: &str| {
            if factor == 1.0 {
                return value.to_string();
            }
            let factor = self.graph.number(&format!("factor_{name}"), factor);
            self.graph.node("Mul", &[value, &factor], name)
        };
        if b == 0.0 {
            return term(a, first, out);
        }
        let (first, second) = (term(a, first, &now), term(b, second, &before));
        self.graph.node("Add", &[&first, &second], out)
    }

    /// `y_{k-1}`.
    fn inertia(&mut self, k: usize, u: &str, before: &str) -> String {
        let alpha = self.network.layer_memory(k).inertia;
        self.combine((1.0 + alpha, u), (-alpha, before), &format!("y_{}", k - 1))
    }

    /// `x_k`.
    fn estimate(&mut self, k: usize, y: &str, before: &str) -> String {
        let adjoint = self.convolve("ConvTranspose", k, y, &format!("adjoint_{k}"));
        let beta = self.network.layer_memory(k).memory;
        let plain = self.graph.node("Sub", &[self.z, &adjoint], &format!("plain_{k}"));
        let x = self.combine((1.0 - beta, &plain), (beta, before), &format!("blend_{k}"));
        let Some(white) = self.white else { return x };
        let above = self.graph.node("Relu", &[&x], &format!("above_{k}"));
        self.graph.node("Min", &[&above, white], &format!("x_{k}"))
    }

    /// `v_k`.
    fn step(&mut self, k: usize, y: &str, x: &str, before: &str) {
        let (tau, gamma) = (self.network.tau[k - 1], self.network.layer_memory(k).extrapolation);
        let seen = self.combine((tau * (1.0 + gamma), x), (-tau * gamma, before), &format!("seen_{k}"));
        let step = self.convolve("Conv", k, &seen, &format!("step_{k}"));
        self.graph.node("Add", &[y, &step], &format!("v_{k}"));
    }
}

/// The weights, with the channels in the order in which ONNX takes images apart: phase by phase, each with all colours.
fn phases_first(theta: &Filters<f32>) -> Vec<f32> {
    let (phases, taps) = (theta.phases(), theta.size() * theta.size());
    let colours = theta.channels() / phases;
    let kernel = |feature: usize, channel: usize| {
        let (phase, colour) = (channel / colours, channel % colours);
        &theta.weights()[(feature * theta.channels() + colour * phases + phase) * taps..][..taps]
    };
    let kernels = (0..theta.features()).flat_map(|j| (0..theta.channels()).map(move |c| (j, c)));
    kernels.flat_map(|(j, c)| kernel(j, c)).copied().collect()
}
