//! General feed-forward networks, their energies and every gradient, and an iteration of the methods with closed forms, against an
//! independent implementation in PyTorch, double precision.
//!
//! `reference/golden.py` made the files.

use proxlift::lifting::{
    Admm, Batch, ClosedForm, Convolutional, Dense, Lifted, Loss, Multipliers, Network, Rows, Rule, Splitting,
    Trainer, sweep,
};
use proxlift::network::Activation;
use proxlift::operator::Filters;
use proxlift::prox::{BoxClip, PiecewiseLinear, Relu, Sigmoid, Simplex, SoftThreshold, Softmax};
use proxlift::training::Auxiliary;

#[path = "support/golden.rs"]
mod file;
use file::Golden;

fn activation(golden: &Golden, k: usize) -> Activation<f64> {
    let (a, features) = (&golden.config["activations"][k], golden.shape(&format!("bias_{k}"))[0]);
    let number = |name: &str| a[name].as_f64().unwrap();
    match a["name"].as_str().unwrap() {
        "relu" => Relu.into(),
        "soft_threshold" => SoftThreshold::new(vec![number("threshold")]).unwrap().into(),
        "clip" => BoxClip::symmetric(vec![number("bound")]).unwrap().into(),
        "softmax" => Softmax::new(features).unwrap().into(),
        "simplex" => Simplex::new(features).unwrap().into(),
        "sigmoid" => Sigmoid::default().into(),
        "learned" => {
            let tensor = |name: &str| golden.tensor(&format!("{name}_{k}"));
            PiecewiseLinear::new(number("knots") as usize, tensor("knots"), tensor("slopes")).unwrap().into()
        }
        other => panic!("{other}"),
    }
}

fn dense(golden: &Golden, k: usize) -> Dense<f64> {
    let weight = format!("weight_{k}");
    let bias = golden.tensor(&format!("bias_{k}"));
    Dense::new(golden.shape(&weight)[1], golden.tensor(&weight), bias).unwrap()
}

/// A convolution of images of this size; without strides in the file, one that keeps it.
fn convolution(golden: &Golden, k: usize, size: (usize, usize)) -> Convolutional<f64> {
    let name = format!("weight_{k}");
    let (shape, bias) = (golden.shape(&name), golden.tensor(&format!("bias_{k}")));
    let filters = Filters::new(shape[0], shape[1], shape[2], golden.tensor(&name)).unwrap();
    let number = |name: &str| golden.config[name][k].as_u64().map(|n| n as usize);
    let padding = number("paddings").unwrap_or(filters.radius());
    Convolutional::strided(filters, bias, size, number("strides").unwrap_or(1), padding).unwrap()
}

fn feedforward(golden: &Golden) -> Network<f64> {
    let loss = golden.config["loss"].as_str().map_or(Loss::Squared, |name| name.parse().unwrap());
    let (mut network, last) = (Network::new(loss), golden.config["activations"].as_array().unwrap().len());
    if golden.shape("weight_0").len() == 2 {
        for k in 0..last {
            network = network.layer(dense(golden, k), activation(golden, k));
        }
        return network.output(dense(golden, last)).unwrap();
    }
    let mut size = (golden.shape("z")[2], golden.shape("z")[3]);
    for k in 0..last {
        let layer = convolution(golden, k, size);
        size = layer.output_size();
        network = network.layer(layer, activation(golden, k));
    }
    network.output(convolution(golden, last, size)).unwrap()
}

fn rows(golden: &Golden, name: &str) -> Rows<f64> {
    let all = golden.tensor::<f64>(name);
    Rows::new(all.len() / golden.count("batch"), all).unwrap()
}

#[test]
fn the_general_feed_forward_energy() {
    for name in ["dense", "conv", "entropy", "strided"] {
        let golden = Golden::read(&format!("feedforward_{name}"));
        let network = feedforward(&golden);
        let last = network.activations().len();
        let (z, x) = (rows(&golden, "z"), rows(&golden, "x"));
        golden.check("network_output", network.forward(&z).output().data(), 1e-12);
        let u = (0..last).map(|k| rows(&golden, &format!("u_{k}"))).collect();
        let lifted = Lifted::with_u(&network, &z, &x, u).unwrap();
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
            assert_eq!((gradient.len(), plain.len()), (network.layer_blocks(k).len(), gradient.len()));
            for (i, part) in ["weight", "bias", "knots", "slopes"].into_iter().take(plain.len()).enumerate() {
                golden.check(&format!("grad_{part}_{k}"), &gradient[i], 1e-12);
                golden.check(&format!("backprop_{part}_{k}"), &plain[i], 1e-12);
            }
        }
    }
}

#[test]
fn closed_forms_and_admm() {
    let golden = Golden::read("closed_form");
    let network = || {
        let network =
            Network::new(Loss::Squared).layer(dense(&golden, 0), Relu).layer(dense(&golden, 1), Relu);
        network.output(dense(&golden, 2)).unwrap()
    };
    let number = |name: &str| golden.config[name].as_f64().unwrap();
    let options = Splitting {
        mu: number("mu"),
        rho: number("rho"),
        gamma: number("gamma"),
        proximal: number("proximal"),
        auxiliary: Auxiliary::Persistent,
        ..Splitting::default()
    };
    let (z, x, batch) = (rows(&golden, "z"), rows(&golden, "x"), golden.count("batch"));
    let indices: Vec<usize> = (0..batch).collect();
    let batch = Batch { z: &z, x: &x, indices: &indices };
    let check = |network: &Network<f64>, name: &str| {
        for k in 0..3 {
            let blocks = network.layer_blocks(k);
            let inputs = blocks[0].len() / blocks[1].len();
            let rows = blocks[0].chunks(inputs).zip(blocks[1]);
            let theta: Vec<f64> = rows.flat_map(|(row, b)| row.iter().chain([b]).copied()).collect();
            golden.check(&format!("{name}_theta_{k}"), &theta, 1e-11);
        }
    };
    let mut descended = network();
    let step = ClosedForm::new(&descended, options, indices.len()).unwrap().step(&mut descended, batch, 0.0);
    golden.check("closed_energy", &step.unwrap().energy, 1e-12);
    check(&descended, "closed");
    let mut network = network();
    let mut admm = Admm::new(&network, options, Multipliers::All, indices.len()).unwrap();
    for _ in 0..2 {
        admm.step(&mut network, batch, 0.0).unwrap();
    }
    check(&network, "admm");
}
