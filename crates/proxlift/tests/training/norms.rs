//! `tau_k ||L_k||^2` is what the algorithm asks for after every step of every trainer, however the training started.

use super::*;
use proxlift::engine::Engine;
use proxlift::image::Channels;
use proxlift::laws::max_relative_difference;
use proxlift::model::BuiltIn;
use proxlift::network::{STEP, Unrolling};
use proxlift::operator::{
    Convolution, Filters, LinearOperator, NormParams, PowerState, convolution_norm_bound, spectral_norm,
};

const SQUARE: usize = 32;

/// `L` from images on a square to all pixels that it reaches: nothing is cut off at the border.
struct OnSquare<'a> {
    whole: Convolution<'a, f64>,
    radius: usize,
    channels: usize,
}

impl<'a> OnSquare<'a> {
    fn new(theta: &'a Filters<f64>) -> Self {
        let side = SQUARE + 2 * theta.radius();
        let whole = Convolution::new(theta, side, side).unwrap();
        Self { whole, radius: theta.radius(), channels: theta.channels() }
    }

    /// Where each pixel of the square stands in the whole image.
    fn places(&self) -> impl Iterator<Item = usize> {
        let (radius, side) = (self.radius, SQUARE + 2 * self.radius);
        (0..self.channels * SQUARE * SQUARE).map(move |i| {
            let (c, y, x) = (i / (SQUARE * SQUARE), i / SQUARE % SQUARE, i % SQUARE);
            (c * side + y + radius) * side + x + radius
        })
    }
}

impl LinearOperator<f64> for OnSquare<'_> {
    fn domain_len(&self) -> usize {
        self.channels * SQUARE * SQUARE
    }

    fn range_len(&self) -> usize {
        self.whole.range_len()
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) {
        let mut image = vec![0.0; self.whole.domain_len()];
        self.places().zip(x).for_each(|(place, x)| image[place] = *x);
        self.whole.apply(&image, y);
    }

    fn adjoint(&self, y: &[f64], x: &mut [f64]) {
        let mut image = vec![0.0; self.whole.domain_len()];
        self.whole.adjoint(y, &mut image);
        self.places().zip(x).for_each(|(place, x)| *x = image[place]);
    }
}

/// The largest `|tau_k ||L_k|| ||M_k|| / target - 1|` of the inner layers, with norms from a start of their own.
fn off_target(network: &Network<f32>) -> f64 {
    let network = network.cast::<f64>();
    let off = (1..network.theta.len() - 1).map(|k| {
        let norm = |filters| {
            let op = OnSquare::new(filters);
            let params = NormParams { tolerance: 5e-4, max_iterations: 20_000, min_iterations: 30 };
            spectral_norm(&op, &mut PowerState::new(&op, 77 + k as u64), &params).norm
        };
        let target = network.step_scale * network.unrolling.step(k);
        (network.tau[k - 1] * norm(&network.theta[k]) * norm(network.synthesis(k)) / target - 1.0).abs()
    });
    off.fold(0.0, f64::max)
}

/// The largest `tau_k ||L_k||^2` on images of any size.
fn longest_step(network: &Network<f32>) -> f64 {
    let inner = &network.theta[1..network.theta.len() - 1];
    let steps = inner.iter().zip(&network.tau).map(|(theta, tau)| {
        let norm = convolution_norm_bound(theta, 128).unwrap().upper;
        f64::from(*tau) * norm * norm
    });
    steps.fold(0.0, f64::max)
}

#[track_caller]
fn assert_on_target(network: &Network<f32>, what: &str) {
    let off = off_target(network);
    // The errors of two norms add up, and those of many channels converge slowly.
    let most = if network.synthesis.is_empty() { 0.01 } else { 0.03 };
    assert!(off < most, "{what}: a step is {:.1} % off its target", 100.0 * off);
    if network.step_scale <= 1.0 && network.is_plain() {
        assert!(longest_step(network) < 2.0, "{what}: tau ||L||^2 = {}", longest_step(network));
    }
}

#[test]
fn of_every_trainer_from_the_first_batch_on() {
    let (engine, batch) = (Cpu::new(), batch());
    for mut trainer in every_trainer(&network()) {
        let mut network = network();
        for step in 1..=6 {
            trainer.step(&engine, &mut network, &batch, 0.0).unwrap();
            if [1, 2, 6].contains(&step) {
                assert_on_target(&network, &format!("{} after batch {step}", trainer.describe()));
            }
        }
    }
}

#[test]
fn of_a_network_that_comes_with_other_steps() {
    let (engine, batch) = (Cpu::new(), batch());
    // As a file might bring it: trained already, and with steps that are not those of its filters.
    let mut loaded = network();
    let mut adam = rated(Rule::Backprop, Metric::Diagonal, 1e-2, Schedule::Constant);
    (0..5).for_each(|_| drop(adam.step(&engine, &mut loaded, &batch, 0.0).unwrap()));
    loaded.tau.iter_mut().enumerate().for_each(|(k, tau)| *tau *= [0.3, 1.4, 1.0, 0.9][k]);
    assert!(off_target(&loaded) > 0.5);
    for mut trainer in every_trainer(&loaded) {
        let mut network = loaded.clone();
        let report = trainer.step(&engine, &mut network, &batch, 0.0).unwrap();
        assert_on_target(&network, &trainer.describe());
        // The batch itself was already seen with the right steps.
        let right = loaded.clone().unrolled(loaded.unrolling, loaded.step_scale, 9);
        let loss = |network: &Network<f32>| {
            let mut gradients = proxlift::engine::Gradients::zeros(network, SAMPLES);
            let rule = proxlift::engine::ReverseRule::Backprop;
            engine.training_pass(network, rule, &batch.z, &batch.x, &mut gradients).unwrap();
            gradients.loss.iter().sum::<f64>()
        };
        let (wrong, right) = (loss(&loaded), loss(&right));
        let near = |loss: f64| (report.loss - loss).abs();
        assert!(near(right) < 0.02 * near(wrong), "{}, {right}, {wrong}", report.loss);
    }
}

#[test]
fn of_a_training_that_is_resumed() {
    let (engine, batch) = (Cpu::new(), batch());
    let starts = every_trainer(&network()).into_iter().zip(every_trainer(&network()));
    for (mut trainer, mut resumed) in starts {
        let (mut network, mut state) = (network(), Snapshot::default());
        (0..3).for_each(|_| drop(trainer.step(&engine, &mut network, &batch, 0.0).unwrap()));
        trainer.save(&mut state);
        resumed.restore(&state).unwrap();
        resumed.step(&engine, &mut network, &batch, 0.0).unwrap();
        assert_on_target(&network, &trainer.describe());
    }
}

#[test]
fn of_every_unrolling_and_of_long_steps() {
    let (engine, batch) = (Cpu::new(), batch());
    use Unrolling::*;
    for unrolling in
        [DualForwardBackward, Inertial, ChambollePock, ChambollePockAccelerated, AveragedDualForwardBackward]
    {
        for (rule, metric) in
            [(Rule::Backprop, Metric::Diagonal), (Rule::Lifted(Mu::constant(0.1)), Metric::Kronecker)]
        {
            let mut network = network().with_knots(3).unrolled(unrolling, 6.0, 2);
            let rate = Rate { start: 2e-3, schedule: Schedule::Constant };
            let descent = Descent { metric, momentum: 0.9, beta2: 0.99, rate };
            let mut trainer = GradientDescent::new(&network, rule, descent, Constraint::FREE, 1).unwrap();
            for step in 1..=2 {
                trainer.step(&engine, &mut network, &batch, 0.0).unwrap();
                assert_on_target(
                    &network,
                    &format!("{unrolling}, {} after batch {step}", trainer.describe()),
                );
            }
        }
    }
}

/// Training that goes on from a shipped model starts where the model stands.
#[test]
fn a_shipped_model_is_as_good_after_a_batch_at_hardly_any_rate() {
    let engine = Cpu::new();
    let shipped = BuiltIn::Small.model(Channels::Grey).network.clone();
    let noisy = proxlift::dataset::synthetic::dead_leaves(1, 0, 40, 40, Channels::Grey).unwrap();
    let z = shipped.architecture().batch(noisy.data(), (40, 40)).unwrap();
    let denoised = |network: &Network<f32>| {
        let mut output = z.clone();
        engine.denoise(network, &z, &mut output);
        output.to_planar()
    };
    let rate = Rate { start: 1e-9, schedule: Schedule::Constant };
    let descent = Descent { metric: Metric::Kronecker, momentum: 0.9, beta2: 0.99, rate };
    let rule = Rule::Lifted(Mu::constant(0.1));
    let mut trainer = GradientDescent::new(&shipped, rule, descent, Constraint::ZERO_MEAN, 1).unwrap();
    let mut network = shipped.clone();
    let batch = Batch { z: z.clone(), x: z.clone(), indices: vec![0] };
    trainer.step(&engine, &mut network, &batch, 0.0).unwrap();
    assert_on_target(&network, "a shipped model");
    let off = max_relative_difference(&denoised(&network), &denoised(&shipped));
    assert!(off < 2e-3, "the picture changed by {off:.1e}");
}

#[test]
fn every_step_is_below_two_on_any_image_and_above_the_paper_s_on_small_ones() {
    for (kernel, channels) in [(3, 1), (5, 1), (3, 3)] {
        let architecture = Architecture { depth: 4, features: 6, kernel, channels };
        let network = Network::<f64>::glorot(architecture, 0.1, 3).unwrap();
        for k in 1..4 {
            let bound = convolution_norm_bound(&network.theta[k], 256).unwrap().upper;
            let tau = network.tau[k - 1];
            assert!(tau * bound * bound < 1.99, "kernel {kernel}: {}", tau * bound * bound);
            let op = Convolution::new(&network.theta[k], SQUARE, SQUARE).unwrap();
            let params = NormParams { tolerance: 1e-4, max_iterations: 300, ..NormParams::default() };
            let norm = spectral_norm(&op, &mut PowerState::new(&op, 1), &params).norm;
            let product = tau * norm * norm;
            assert!((1.6..STEP + 0.01).contains(&product), "kernel {kernel}: {product}");
        }
    }
}

#[test]
fn an_overstep_lengthens_every_step_by_as_much() {
    let architecture = Architecture { depth: 4, features: 3, kernel: 3, channels: 1 };
    let network = Network::<f64>::glorot(architecture, 0.1, 5).unwrap();
    for unrolling in [Unrolling::DualForwardBackward, Unrolling::ChambollePockAccelerated] {
        let [one, six] = [1.0, 6.0].map(|step_scale| network.clone().unrolled(unrolling, step_scale, 1));
        let ratios = six.tau.iter().zip(&one.tau).map(|(six, one)| six / one);
        assert!(ratios.into_iter().all(|ratio| (ratio - 6.0).abs() < 1e-12));
        assert_eq!(six.cast::<f32>().step_scale, 6.0);
    }
}
