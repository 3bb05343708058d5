//! The general feed-forward energy.

use super::*;

/// The weights and biases of every affine map.
type Parameters = Vec<(Vec<f64>, Vec<f64>)>;

/// One feed-forward network, made again from changed parameters for every finite difference.
struct Recipe {
    /// `(outputs, inputs, None)` of a dense map, `(features, channels, Some(kernel))` of a convolution on 4 x 5 pixels.
    maps: Vec<(usize, usize, Option<usize>)>,
    activations: fn() -> Vec<Box<dyn Prox<f64>>>,
}

const PIXELS: (usize, usize) = (4, 5);

impl Recipe {
    fn dense() -> Self {
        let maps = [(6, 7), (8, 6), (5, 8), (4, 5), (6, 4), (3, 6)].map(|(o, i)| (o, i, None)).to_vec();
        let activations = || -> Vec<Box<dyn Prox<f64>>> {
            vec![
                Box::new(Relu),
                Box::new(SoftThreshold::new(vec![0.3]).unwrap()),
                Box::new(BoxClip::symmetric(vec![0.5]).unwrap()),
                Box::new(Identity),
                Box::new(L2Ball::new(6, 2, vec![0.4]).unwrap()),
            ]
        };
        Self { maps, activations }
    }

    fn convolutional() -> Self {
        let maps = vec![
            (4, 2, Some(3)),
            (3, 4, Some(5)),
            (4, 3, Some(3)),
            (2, 4, Some(1)),
            (5, 40, None),
            (3, 5, None),
        ];
        let activations = || -> Vec<Box<dyn Prox<f64>>> {
            vec![
                Box::new(L2Ball::new(4, 2, vec![0.5, 0.9]).unwrap()),
                Box::new(SoftThreshold::new(vec![0.1, 0.2, 0.4]).unwrap()),
                Box::new(BoxClip::interval(vec![-0.2], vec![0.6]).unwrap()),
                Box::new(Relu),
                Box::new(Identity),
            ]
        };
        Self { maps, activations }
    }

    fn parameters(&self) -> Parameters {
        let random = |len: usize, inputs: usize, seed: usize| {
            let scale = 1.0 / (inputs as f64).sqrt();
            random_field::<f64>(len, seed as u64).iter().map(|w| scale * w).collect::<Vec<_>>()
        };
        let maps = self.maps.iter().enumerate().map(|(k, &(outputs, inputs, kernel))| {
            let taps = inputs * kernel.unwrap_or(1).pow(2);
            (random(outputs * taps, taps, 2 * k), random(outputs, 100, 2 * k + 1))
        });
        maps.collect()
    }

    fn build(&self, parameters: &Parameters) -> FeedForward<f64> {
        let layers = self.maps.iter().zip(parameters).map(
            |(&(outputs, inputs, kernel), (weights, bias))| -> Box<dyn Affine<f64>> {
                match kernel {
                    None => Box::new(Dense::new(inputs, weights.clone(), bias.clone()).unwrap()),
                    Some(size) => {
                        let filters = Filters::new(outputs, inputs, size, weights.clone()).unwrap();
                        Box::new(Convolutional::new(filters, bias.clone(), PIXELS.0, PIXELS.1).unwrap())
                    }
                }
            },
        );
        FeedForward::new(layers.collect(), (self.activations)()).unwrap()
    }

    fn input_len(&self) -> usize {
        let (_, inputs, kernel) = self.maps[0];
        if kernel.is_some() { inputs * PIXELS.0 * PIXELS.1 } else { inputs }
    }

    /// `(z, x)`.
    fn sample(&self) -> (Vec<f64>, Vec<f64>) {
        (random_field(self.input_len(), 70), random_field(3, 71))
    }

    /// Random points well inside the domains: `0.8 prox(...)`, and away from zero for relu.
    fn inside(&self, v: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let activations = (self.activations)();
        let points = activations.iter().zip(v).enumerate().map(|(k, (activation, v))| {
            let mut u = random_field::<f64>(v.len(), 80 + k as u64);
            activation.prox_in_place(1.0, &mut u);
            let inside: Vec<f64> = u.iter().map(|u| 0.8 * u + 0.01).collect();
            assert!(activation.value(&inside).is_finite());
            inside
        });
        points.collect()
    }
}

fn with_parameters(parameters: &Parameters, k: usize, bias: bool, values: &[f64]) -> Parameters {
    let mut moved = parameters.clone();
    let part = if bias { &mut moved[k].1 } else { &mut moved[k].0 };
    part.copy_from_slice(values);
    moved
}

#[test]
fn the_feed_forward_energy_has_the_gradients_of_finite_differences() {
    for recipe in [Recipe::dense(), Recipe::convolutional()] {
        let parameters = recipe.parameters();
        let (z, x) = recipe.sample();
        let net = recipe.build(&parameters);
        let u = recipe.inside(&net.forward(&z).0);
        let activations = (recipe.activations)();
        // f = E - sum_k psi_k(u_k).
        let f = |net: &FeedForward<f64>, u: &[Vec<f64>]| {
            let psi: f64 = activations.iter().zip(u).map(|(psi, u)| psi.value(u)).sum();
            net.lifted(MU, &z, &x, u).energy() - psi
        };
        let point = net.lifted(MU, &z, &x, &u);
        assert!(point.penalties.iter().all(|penalty| *penalty > 1e-3));
        for (k, (gradient, (weights, bias))) in point.theta.iter().zip(&parameters).enumerate() {
            for (gradient, values, is_bias) in
                [(&gradient.weights, weights, false), (&gradient.bias, bias, true)]
            {
                let along =
                    |values: &[f64]| f(&recipe.build(&with_parameters(&parameters, k, is_bias, values)), &u);
                let mismatch = gradient_mismatch(along, gradient, values, k as u64);
                assert!(mismatch < 1e-7, "map {k}, bias: {is_bias}: {mismatch:e}");
            }
        }
        for k in 0..u.len() {
            let along = |values: &[f64]| {
                let mut moved = u.clone();
                moved[k].copy_from_slice(values);
                f(&net, &moved)
            };
            let mismatch = gradient_mismatch(along, &point.u[k], &u[k], k as u64);
            assert!(mismatch < 1e-7, "u_{k}: {mismatch:e}");
        }
    }
}

#[test]
fn feed_forward_back_propagation_is_the_gradient_of_the_plain_loss() {
    for recipe in [Recipe::dense(), Recipe::convolutional()] {
        let parameters = recipe.parameters();
        let (z, x) = recipe.sample();
        let (loss, gradients) = recipe.build(&parameters).backprop(&z, &x);
        let plain = |net: &FeedForward<f64>| 0.5 * squared_distance(net.forward(&z).0.last().unwrap(), &x);
        assert!((loss - plain(&recipe.build(&parameters))).abs() < 1e-14 * loss);
        for (k, (gradient, (weights, bias))) in gradients.iter().zip(&parameters).enumerate() {
            for (gradient, values, is_bias) in
                [(&gradient.weights, weights, false), (&gradient.bias, bias, true)]
            {
                assert!(gradient.iter().any(|g| *g != 0.0), "map {k} gets no gradient");
                let along =
                    |values: &[f64]| plain(&recipe.build(&with_parameters(&parameters, k, is_bias, values)));
                let mismatch = gradient_mismatch(along, gradient, values, k as u64);
                assert!(mismatch < 1e-7, "map {k}, bias: {is_bias}: {mismatch:e}");
            }
        }
    }
}

#[test]
fn at_the_feed_forward_pass_the_energy_is_the_loss() {
    for recipe in [Recipe::dense(), Recipe::convolutional()] {
        let (z, x) = recipe.sample();
        let net = recipe.build(&recipe.parameters());
        let (_, u) = net.forward(&z);
        let point = net.lifted(MU, &z, &x, &u);
        assert!(point.penalties.iter().all(|penalty| penalty.abs() < 1e-15), "{:?}", point.penalties);
        let loss = MU * net.backprop(&z, &x).0;
        assert!((point.energy() - loss).abs() < 1e-14 * loss);
    }
}
