//! The network, the energies and every gradient against an independent implementation in PyTorch, double precision.
//!
//! `reference/golden.py` made the files.

use proxlift::Real;
use proxlift::engine::{Cpu, Engine, Gradients, Reference, ReverseRule};
use proxlift::field::Field;
use proxlift::network::{Architecture, Network};
use proxlift::operator::{Convolution, Filters, NormParams, PowerState, spectral_norm};
use proxlift::prox::PiecewiseLinear;
use proxlift::training::Lifted;

#[allow(dead_code)]
#[path = "support/golden.rs"]
mod file;
use file::Golden;

/// The paper's network, also with stride 2.
const PAPER: [&str; 5] = ["grey_k4", "colour_k3", "smallest_k2", "wide_k5", "stride_colour"];

/// Networks of the shipped kind and their relatives: momentum, learned activations, bounds, borders, long steps, stride 2, a
/// synthesis of their own.
const FAMILY: [&str; 11] = [
    "accelerated",
    "accelerated_bounded",
    "chambolle_pock",
    "chambolle_pock_bounded",
    "inertial",
    "inertial_bounded",
    "forward_backward_learned",
    "stride_grey",
    "synthesis",
    "synthesis_colour",
    "averaged",
];

fn unrolled<T: Real>(golden: &Golden) -> (Network<T>, Field<T>, Field<T>) {
    let stride = golden.config["stride"].as_u64().unwrap_or(1) as usize;
    let architecture = Architecture {
        depth: golden.count("depth"),
        features: golden.count("features"),
        kernel: golden.count("kernel"),
        channels: golden.count("channels") * stride.pow(2),
    };
    let Architecture { depth, features, kernel, channels } = architecture;
    let filters = |name: &str, k: usize| {
        Filters::new(features, channels, kernel, golden.tensor(&format!("{name}_{k}"))).unwrap()
    };
    let (theta, tau) = ((0..=depth).map(|k| filters("theta", k)).collect(), golden.tensor("tau"));
    let own = golden.config["own_synthesis"].as_bool().unwrap_or(false);
    let network = match golden.count("knots") {
        0 => Network::new(theta, tau, golden.tensor("lambda")).unwrap(),
        knots => {
            let tensor = |name: &str, k: usize| golden.tensor(&format!("{name}_{k}"));
            let learned = |k| PiecewiseLinear::new(knots, tensor("knots", k), tensor("slopes", k)).unwrap();
            Network::with_activations(theta, tau, (1..depth).map(|k| learned(k).into()).collect()).unwrap()
        }
    };
    let network = Network {
        unrolling: serde_json::from_value(golden.config["unrolling"].clone()).unwrap(),
        bounded: golden.config["bounded"].as_bool().unwrap(),
        border: golden.count("border"),
        step_scale: T::of(golden.config["step_scale"].as_f64().unwrap()),
        synthesis: (1..depth).filter(|_| own).map(|k| filters("synthesis", k)).collect(),
        ..network
    };
    network.validate().unwrap();
    let size = (golden.count("height"), golden.count("width"));
    let image = |name: &str| architecture.batch(&golden.tensor(name), size).unwrap();
    (network, image("z"), image("x"))
}

/// The gradients of a training pass, of the filters and of what training moves in the activations.
fn check_pass<T: Real>(
    golden: &Golden,
    engine: &dyn Engine<T>,
    (rule, name): (ReverseRule<T>, &str),
    tolerance: f64,
) {
    let (network, z, x) = unrolled::<T>(golden);
    let mut gradients = Gradients::zeros(&network, z.samples()).with_activations(&network);
    engine.training_pass(&network, rule, &z, &x, &mut gradients).unwrap();
    golden.check("loss", &gradients.loss, tolerance);
    for (k, theta) in gradients.theta.iter().enumerate() {
        golden.check(&format!("{name}_theta_{k}"), theta.weights(), tolerance);
    }
    for (k, synthesis) in gradients.synthesis.iter().enumerate() {
        golden.check(&format!("{name}_synthesis_{}", k + 1), synthesis.weights(), tolerance);
    }
    if golden.count("knots") > 0 {
        assert_eq!(gradients.activation.len() + 2, gradients.theta.len());
        for (k, activation) in gradients.activation.iter().enumerate() {
            golden.check(&format!("{name}_knots_{}", k + 1), &activation.knots, tolerance);
            golden.check(&format!("{name}_slopes_{}", k + 1), &activation.slopes, tolerance);
        }
    }
}

/// `E` at the stored `u`, its blocks and all its gradients.
fn check_energy<T: Real>(golden: &Golden, engine: &dyn Engine<T>, tolerance: f64) {
    let (network, z, x) = unrolled::<T>(golden);
    let mu = golden.config["mu"].as_f64().unwrap();
    let mut lifted = Lifted::new(&network, z, x).unwrap();
    for k in 1..lifted.u.len() {
        lifted.u[k].load(&golden.tensor(&format!("u_{k}"))).unwrap();
    }
    lifted.refresh((engine, &network));
    let energy = lifted.energy((engine, &network), mu);
    golden.check("data_term", &energy.data, tolerance);
    let total: Vec<f64> = (0..energy.data.len()).map(|s| energy.sample(s)).collect();
    golden.check("energy", &total, tolerance);
    let mut gradients: Vec<_> = network.filters().cloned().collect();
    lifted.theta_gradients((engine, &network), T::of(mu), &mut gradients);
    let (theta, synthesis) = gradients.split_at(network.theta.len());
    for (k, theta) in theta.iter().enumerate() {
        golden.check(&format!("grad_theta_{k}"), theta.weights(), tolerance);
    }
    for (k, synthesis) in (1..).zip(synthesis) {
        golden.check(&format!("grad_synthesis_{k}"), synthesis.weights(), tolerance);
    }
    let mut u = lifted.u.clone();
    lifted.u_gradients((engine, &network), T::of(mu), &mut u);
    for (k, gradient) in u.iter().enumerate().skip(1) {
        golden.check(&format!("penalty_{k}"), &energy.penalties[k - 1], tolerance);
        golden.check(&format!("grad_u_{k}"), &gradient.to_planar(), tolerance);
        if golden.count("knots") > 0 {
            let activation = lifted.activation_gradient(&network, k);
            golden.check(&format!("grad_knots_{k}"), &activation.knots, tolerance);
            golden.check(&format!("grad_slopes_{k}"), &activation.slopes, tolerance);
        }
    }
}

fn check_unrolled<T: Real>(engine: &dyn Engine<T>, tolerance: f64) {
    for name in PAPER.into_iter().chain(FAMILY) {
        let golden = Golden::read(name);
        let (network, z, _) = unrolled::<T>(&golden);
        let mut output = z.clone();
        engine.denoise(&network, &z, &mut output);
        golden.check("network_output", &network.architecture().images(&output), tolerance);
        let mu = T::of(golden.config["mu"].as_f64().unwrap());
        check_pass(&golden, engine, (ReverseRule::Backprop, "backprop"), tolerance);
        check_pass(&golden, engine, (ReverseRule::Lifted { mu }, "anchored"), tolerance);
        check_energy(&golden, engine, tolerance);
    }
}

#[test]
fn the_reference_engine_in_double_precision() {
    check_unrolled::<f64>(&Reference, 1e-12);
}

#[test]
fn the_reference_engine_in_single_precision() {
    check_unrolled::<f32>(&Reference, 1e-5);
}

#[test]
fn the_cpu_engine() {
    check_unrolled::<f32>(&Cpu::new(), 1e-5);
    check_unrolled::<f32>(&Cpu::baseline(), 1e-5);
}

#[test]
fn norms_by_power_iteration() {
    for name in PAPER.into_iter().chain(FAMILY) {
        let golden = Golden::read(name);
        let (network, z, _) = unrolled::<f64>(&golden);
        let norms = network.theta.iter().map(|theta| {
            let op = Convolution::new(theta, z.grid().height(), z.grid().width()).unwrap();
            let params = NormParams { tolerance: 1e-9, max_iterations: 20_000, min_iterations: 1 };
            spectral_norm(&op, &mut PowerState::new(&op, 1), &params).norm
        });
        golden.check("network_norms", &norms.collect::<Vec<_>>(), 1e-8);
    }
}

/// Whatever the start of its power iteration, the program finds the steps that the dense matrices give.
#[test]
fn steps_by_power_iteration() {
    for name in FAMILY {
        let golden = Golden::read(name);
        let (network, ..) = unrolled::<f64>(&golden);
        let (unrolling, step_scale) = (network.unrolling, network.step_scale);
        for seed in 0..3 {
            golden.check("tau", &network.clone().unrolled(unrolling, step_scale, seed).tau, 1e-3);
        }
    }
}
