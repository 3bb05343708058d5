//! The network, the energies and every gradient against an independent implementation in PyTorch, double precision.
//!
//! `reference/golden.py` made the files.

use proxlift::engine::{Cpu, Engine, Gradients, Reference, ReverseRule};
use proxlift::field::Field;
use proxlift::lifting::{self, Convolutional, Dense, Loss, Rows, Rule, sweep};
use proxlift::network::{Activation, Architecture, Network};
use proxlift::operator::{Convolution, Filters, NormParams, PowerState, spectral_norm};
use proxlift::prox::{BoxClip, PiecewiseLinear, Relu, SoftThreshold};
use proxlift::training::Lifted;
use proxlift::{Real, laws};
use safetensors::SafeTensors;
use serde_json::Value;

struct Golden {
    name: String,
    bytes: Vec<u8>,
    config: Value,
}

impl Golden {
    fn read(name: &str) -> Self {
        let path = format!("{}/tests/data/golden_{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let config = serde_json::from_str(&header.metadata().as_ref().unwrap()["config"]).unwrap();
        Self { name: name.into(), bytes, config }
    }

    fn count(&self, name: &str) -> usize {
        self.config[name].as_u64().unwrap_or_else(|| panic!("no {name}")) as usize
    }

    fn shape(&self, name: &str) -> Vec<usize> {
        SafeTensors::deserialize(&self.bytes).unwrap().tensor(name).unwrap().shape().to_vec()
    }

    fn tensor<T: Real>(&self, name: &str) -> Vec<T> {
        let file = SafeTensors::deserialize(&self.bytes).unwrap();
        let view = file.tensor(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let values = view.data().as_chunks::<8>().0;
        values.iter().map(|bytes| T::of(f64::from_le_bytes(*bytes))).collect()
    }

    #[track_caller]
    fn check<T: Real>(&self, name: &str, ours: &[T], tolerance: f64) {
        let golden = self.tensor::<f64>(name);
        let ours: Vec<f64> = ours.iter().map(|x| x.to_double()).collect();
        let mismatch = laws::max_relative_difference(&ours, &golden);
        assert!(mismatch <= tolerance, "{} {name}: off by {mismatch:e}", self.name);
    }
}

/// The paper's network.
const PAPER: [&str; 4] = ["grey_k4", "colour_k3", "smallest_k2", "wide_k5"];

/// Networks of the shipped kind and their relatives: momentum, learned activations, bounds, borders, long steps.
const FAMILY: [&str; 7] = [
    "accelerated",
    "accelerated_bounded",
    "chambolle_pock",
    "chambolle_pock_bounded",
    "inertial",
    "inertial_bounded",
    "forward_backward_learned",
];

fn unrolled<T: Real>(golden: &Golden) -> (Network<T>, Field<T>, Field<T>) {
    let architecture = Architecture {
        depth: golden.count("depth"),
        features: golden.count("features"),
        kernel: golden.count("kernel"),
        channels: golden.count("channels"),
    };
    let Architecture { depth, features, kernel, channels } = architecture;
    let filters = |k| Filters::new(features, channels, kernel, golden.tensor(&format!("theta_{k}"))).unwrap();
    let (theta, tau) = ((0..=depth).map(filters).collect(), golden.tensor("tau"));
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
        ..network
    };
    network.validate().unwrap();
    let grid = architecture.grid(golden.count("height"), golden.count("width")).unwrap();
    let image =
        |name: &str| Field::from_planar(golden.count("batch"), channels, grid, &golden.tensor(name)).unwrap();
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
    let mut theta = network.theta.clone();
    lifted.theta_gradients((engine, &network), T::of(mu), &mut theta);
    for (k, theta) in theta.iter().enumerate() {
        golden.check(&format!("grad_theta_{k}"), theta.weights(), tolerance);
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
        golden.check("network_output", &output.to_planar(), tolerance);
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

fn feedforward(golden: &Golden) -> lifting::Network<f64> {
    let activations = golden.config["activations"].as_array().unwrap();
    let activation = |k: usize| -> Activation<f64> {
        let a = &activations[k];
        match a["name"].as_str().unwrap() {
            "relu" => Relu.into(),
            "soft_threshold" => SoftThreshold::new(vec![a["threshold"].as_f64().unwrap()]).unwrap().into(),
            "clip" => BoxClip::symmetric(vec![a["bound"].as_f64().unwrap()]).unwrap().into(),
            other => panic!("{other}"),
        }
    };
    let parts = |k: usize| {
        let name = format!("weight_{k}");
        (golden.shape(&name), golden.tensor(&name), golden.tensor(&format!("bias_{k}")))
    };
    let (mut network, last) = (lifting::Network::new(Loss::Squared), activations.len());
    let is_dense = golden.shape("weight_0").len() == 2;
    let dense = |k: usize| {
        let (shape, weights, bias) = parts(k);
        Dense::new(shape[1], weights, bias).unwrap()
    };
    let convolution = |k: usize| {
        let (shape, weights, bias) = parts(k);
        let filters = Filters::new(shape[0], shape[1], shape[2], weights).unwrap();
        Convolutional::new(filters, bias, golden.shape("z")[2], golden.shape("z")[3]).unwrap()
    };
    for k in 0..last {
        network = match is_dense {
            true => network.layer(dense(k), activation(k)),
            false => network.layer(convolution(k), activation(k)),
        };
    }
    if is_dense { network.output(dense(last)) } else { network.output(convolution(last)) }.unwrap()
}

#[test]
fn the_general_feed_forward_energy() {
    for name in ["feedforward_dense", "feedforward_conv"] {
        let golden = Golden::read(name);
        let network = feedforward(&golden);
        let (batch, last) = (golden.count("batch"), network.activations().len());
        let rows = |name: &str| {
            let all = golden.tensor::<f64>(name);
            Rows::new(all.len() / batch, all).unwrap()
        };
        let (z, x) = (rows("z"), rows("x"));
        golden.check("network_output", network.forward(&z).output().data(), 1e-12);
        let u = (0..last).map(|k| rows(&format!("u_{k}"))).collect();
        let lifted = lifting::Lifted::with_u(&network, &z, &x, u).unwrap();
        let mut energy = lifted.block(&network, last, 1.0);
        for k in 0..last {
            let penalty = lifted.block(&network, k, 1.0);
            golden.check(&format!("penalty_{k}"), &penalty, 1e-12);
            golden.check(&format!("grad_u_{k}"), lifted.u_gradient(&network, k, 1.0).data(), 1e-12);
            energy.iter_mut().zip(&penalty).for_each(|(sum, penalty)| *sum += penalty);
        }
        golden.check("energy", &energy, 1e-12);
        let (loss, backprop) = sweep(&network, Rule::Backprop, &z, &x).unwrap();
        golden.check("loss", &loss, 1e-12);
        for (k, plain) in backprop.iter().enumerate() {
            let gradient = lifted.theta_gradient(&network, k, 1.0);
            for (i, part) in ["weight", "bias"].into_iter().enumerate() {
                golden.check(&format!("grad_{part}_{k}"), &gradient[i], 1e-12);
                golden.check(&format!("backprop_{part}_{k}"), &plain[i], 1e-12);
            }
        }
    }
}
