//! The general lifted network: gradients, laws, limits, and the paper's denoiser as one of its cases; in double precision.

use proxlift::engine::Reference;
use proxlift::field::Field;
use proxlift::laws::{gradient_mismatch, max_relative_difference, random_field};
use proxlift::lifting::{
    Affine, Convolutional, Dense, DualStep, Lifted, Loss, Network, Penalty, Rows, Rule, Synthesis, one_hot,
    sweep,
};
use proxlift::network::{self, Activation};
use proxlift::operator::Filters;
use proxlift::prox::{BoxClip, GroupL2, Identity, L2Ball, PiecewiseLinear, Relu, SoftThreshold};
use proxlift::training;

const MU: f64 = 0.3;
const SAMPLES: usize = 3;
const SIDES: (usize, usize) = (6, 5);

fn scaled(len: usize, scale: f64, seed: u64) -> Vec<f64> {
    random_field::<f64>(len, seed).iter().map(|w| scale * w).collect()
}

fn filters(features: usize, channels: usize, size: usize, seed: u64) -> Filters<f64> {
    let taps = channels * size * size;
    Filters::new(features, channels, size, scaled(features * taps, 1.0 / (taps as f64).sqrt(), seed)).unwrap()
}

fn dense(inputs: usize, outputs: usize, seed: u64) -> Dense<f64> {
    let weights = scaled(inputs * outputs, 1.0 / (inputs as f64).sqrt(), seed);
    Dense::new(inputs, weights, scaled(outputs, 0.1, seed + 50)).unwrap()
}

fn convolution(
    features: usize,
    channels: usize,
    size: (usize, usize),
    stride: usize,
    padding: usize,
) -> Convolutional<f64> {
    let seed = (features + 7 * channels + stride) as u64;
    let bias = scaled(features, 0.1, seed + 50);
    Convolutional::strided(filters(features, channels, 3, seed), bias, size, stride, padding).unwrap()
}

fn pieces(features: usize) -> Activation<f64> {
    let knots = (0..features).flat_map(|j| [0.1 + 0.02 * j as f64, 0.5]).collect();
    let slopes = (0..features).flat_map(|_| [1.0, 0.6, 0.2]).collect();
    PiecewiseLinear::new(2, knots, slopes).unwrap().into()
}

/// Dense, convolutional and proximal networks, with every activation, for every loss.
fn networks() -> Vec<Network<f64>> {
    let soft = || SoftThreshold::new(vec![0.2]).unwrap();
    let clip = || BoxClip::symmetric(vec![0.4]).unwrap();
    let mut all = Vec::new();
    for loss in [Loss::Squared, Loss::Logistic, Loss::Softmax] {
        all.push(
            Network::new(loss)
                .layer(dense(7, 6, 1), Relu)
                .layer(dense(6, 8, 2), soft())
                .layer(dense(8, 6, 3), clip())
                .layer(dense(6, 4, 4), Identity)
                .layer(dense(4, 6, 5), L2Ball::new(6, 2, vec![0.4]).unwrap())
                .layer(dense(6, 6, 6), GroupL2::new(6, 3, vec![0.3]).unwrap())
                .layer(dense(6, 5, 7), pieces(5))
                .output(dense(5, 3, 8))
                .unwrap(),
        );
        let first = convolution(4, 2, SIDES, 1, 1);
        let second = convolution(3, 4, SIDES, 2, 1);
        let third = convolution(2, 3, second.output_size(), 1, 0);
        let numbers = third.outputs();
        let network = Network::new(loss).layer(first, pieces(4)).layer(second, Relu).layer(third, soft());
        all.push(network.output(dense(numbers, 3, 9)).unwrap());
    }
    all.push(denoiser(5, 3, 1).0);
    all
}

/// The paper's network of depth `K`, as a chain and as itself.
fn denoiser(depth: usize, features: usize, channels: usize) -> (Network<f64>, network::Network<f64>) {
    let theta: Vec<_> = (0..=depth).map(|k| filters(features, channels, 3, 100 + k as u64)).collect();
    let tau: Vec<f64> = (1..depth).map(|k| 0.2 + 0.05 * k as f64).collect();
    let clip = || Activation::clip((0..features).map(|j| 0.2 + 0.1 * j as f64).collect());
    let itself = network::Network::with_activations(theta, tau, vec![clip(); depth - 1]).unwrap();
    (Network::from_denoiser(&itself, SIDES.0, SIDES.1).unwrap(), itself)
}

fn samples(network: &Network<f64>) -> (Rows<f64>, Rows<f64>) {
    let layers = network.layers();
    let (inputs, outputs) = (layers[0].inputs(), layers[layers.len() - 1].outputs());
    let z = Rows::new(inputs, random_field(SAMPLES * inputs, 70)).unwrap();
    let x = match network.loss {
        Loss::Squared => Rows::new(outputs, random_field(SAMPLES * outputs, 71)).unwrap(),
        Loss::Logistic => {
            Rows::new(outputs, (0..SAMPLES * outputs).map(|i| (i % 4) as f64 / 3.0).collect()).unwrap()
        }
        Loss::Softmax => one_hot(&(0..SAMPLES).map(|i| i % outputs).collect::<Vec<_>>(), outputs).unwrap(),
    };
    (z, x)
}

/// Points well inside the domains.
fn inside(network: &Network<f64>, z: &Rows<f64>) -> Vec<Rows<f64>> {
    let pass = network.forward(z);
    let points = pass.v[..pass.u.len()].iter().enumerate().map(|(k, v)| {
        let random = Rows::new(v.width(), random_field(v.data().len(), 80 + k as u64)).unwrap();
        let mut u = network.activate(k, &random);
        let positive = matches!(network.activations()[k], Activation::Relu(_));
        u.data_mut().iter_mut().for_each(|u| *u = 0.8 * *u + if positive { 0.01 } else { 0.0 });
        u
    });
    points.collect()
}

/// `f = E - sum psi(u)`, or `E` itself with the quadratic penalty.
fn smooth(network: &Network<f64>, penalty: Penalty, z: &Rows<f64>, x: &Rows<f64>, u: &[Rows<f64>]) -> f64 {
    let lifted = Lifted::with_u(network, z, x, u.to_vec()).unwrap().with_penalty(penalty);
    if penalty == Penalty::Quadratic {
        return lifted.energy(network, MU).iter().sum();
    }
    let psi = |(k, u): (usize, &Rows<f64>)| {
        u.rows().map(|row| network.activations()[k].prox().value(row)).sum::<f64>()
    };
    lifted.energy(network, MU).iter().sum::<f64>() - u.iter().enumerate().map(psi).sum::<f64>()
}

#[test]
fn gradients_of_the_energy_are_those_of_finite_differences() {
    for penalty in [Penalty::Bregman, Penalty::Quadratic] {
        networks().into_iter().for_each(|network| check_gradients(network, penalty));
    }
}

fn check_gradients(mut network: Network<f64>, penalty: Penalty) {
    // Of the slope of an activation, finite differences see a kink in a few of many numbers.
    let tolerance = if penalty == Penalty::Bregman { 1e-7 } else { 1e-5 };
    let (z, x) = samples(&network);
    let u = inside(&network, &z);
    let lifted = Lifted::with_u(&network, &z, &x, u.clone()).unwrap().with_penalty(penalty);
    assert!((0..lifted.depth()).all(|k| lifted.block(&network, k, MU).iter().all(|b| *b > -1e-12)));
    let by_u: Vec<_> = (0..u.len()).map(|k| lifted.u_gradient(&network, k, MU)).collect();
    let by_theta: Vec<_> = (0..=u.len()).map(|k| lifted.theta_gradient(&network, k, MU)).collect();
    for (k, gradient) in by_u.iter().enumerate() {
        let along = |values: &[f64]| {
            let mut moved = u.clone();
            moved[k].data_mut().copy_from_slice(values);
            smooth(&network, penalty, &z, &x, &moved)
        };
        let mismatch = gradient_mismatch(along, gradient.data(), u[k].data(), k as u64);
        assert!(mismatch < tolerance, "{penalty}, u_{k}: {mismatch:e}");
    }
    for (k, blocks) in by_theta.iter().enumerate() {
        for (i, gradient) in blocks.iter().enumerate() {
            let at = network.layer_blocks(k)[i].to_vec();
            let network = std::cell::RefCell::new(&mut network);
            let along = |values: &[f64]| {
                let mut network = network.borrow_mut();
                network.layer_blocks_mut(k)[i].copy_from_slice(values);
                // Where an activation learns, so does psi.
                if i < network.layers()[k].parameters().len() {
                    return smooth(&network, penalty, &z, &x, &u);
                }
                let lifted = Lifted::with_u(&network, &z, &x, u.clone()).unwrap().with_penalty(penalty);
                lifted.energy(&network, MU).iter().sum()
            };
            let mismatch = gradient_mismatch(along, gradient, &at, k as u64);
            assert!(mismatch < tolerance, "{penalty}, layer {k}, block {i}: {mismatch:e}");
            network.borrow_mut().layer_blocks_mut(k)[i].copy_from_slice(&at);
        }
    }
}

#[test]
fn the_penalty_of_bregman_is_the_larger_one_and_both_are_one_for_the_identity() {
    for network in networks() {
        let (z, x) = samples(&network);
        let lifted = Lifted::with_u(&network, &z, &x, inside(&network, &z)).unwrap();
        let bregman = (0..lifted.depth()).map(|k| lifted.block(&network, k, MU)).collect::<Vec<_>>();
        let lifted = lifted.with_penalty(Penalty::Quadratic);
        for (k, bregman) in bregman.iter().enumerate() {
            let identity = matches!(network.activations()[k], Activation::Identity(_));
            for (b, q) in bregman.iter().zip(lifted.block(&network, k, MU)) {
                assert!(*b >= q - 1e-12 && (!identity || (b - q).abs() < 1e-12), "layer {k}: {b} and {q}");
            }
        }
    }
}

/// At the forward pass, `df/du_k = A_{k+1}* d_{k+1}`; after a unit step down it, `d_k = s'(v_k) A_{k+1}* d_{k+1}`.
#[test]
fn a_sweep_of_unit_steps_with_the_quadratic_penalty_is_back_propagation_for_every_mu() {
    for network in networks() {
        let (z, x) = samples(&network);
        let (_, plain) = sweep(&network, Rule::Backprop, &z, &x).unwrap();
        let mut lifted = Lifted::new(&network, &z, &x).unwrap().with_penalty(Penalty::Quadratic);
        for k in (0..=lifted.depth()).rev() {
            let gradient = lifted.theta_gradient(&network, k, MU);
            for (ours, theirs) in gradient.iter().zip(&plain[k]) {
                let ours: Vec<f64> = ours.iter().map(|g| g / MU).collect();
                assert!(max_relative_difference(&ours, theirs) < 1e-10, "layer {k}");
            }
            if k > 0 {
                let down = lifted.u_gradient(&network, k - 1, MU);
                lifted.pass.u[k - 1].zip(&down, |u, g| u - g);
            }
        }
    }
}

#[test]
fn back_propagation_is_the_gradient_of_the_loss() {
    for mut network in networks() {
        let (z, x) = samples(&network);
        let (losses, gradients) = sweep(&network, Rule::Backprop, &z, &x).unwrap();
        let lifted = Lifted::new(&network, &z, &x).unwrap();
        let energy = lifted.energy(&network, MU);
        assert!(energy[..energy.len() - 1].iter().all(|penalty| penalty.abs() < 1e-13), "{energy:?}");
        assert!((energy.iter().sum::<f64>() - MU * losses.iter().sum::<f64>()).abs() < 1e-12);
        for (k, blocks) in gradients.iter().enumerate() {
            for (i, gradient) in blocks.iter().enumerate() {
                let at = network.layer_blocks(k)[i].to_vec();
                let shared = std::cell::RefCell::new(&mut network);
                let along = |values: &[f64]| {
                    let mut network = shared.borrow_mut();
                    network.layer_blocks_mut(k)[i].copy_from_slice(values);
                    let output = network.forward(&z);
                    output.output().rows().zip(x.rows()).map(|(o, x)| network.loss.value(o, x)).sum::<f64>()
                };
                let mismatch = gradient_mismatch(along, gradient, &at, k as u64);
                assert!(mismatch < 1e-6, "layer {k}, block {i}: {mismatch:e}");
                shared.borrow_mut().layer_blocks_mut(k)[i].copy_from_slice(&at);
            }
        }
    }
}

#[test]
fn lifted_gradients_tend_to_those_of_back_propagation() {
    let network =
        Network::new(Loss::Squared).layer(dense(7, 6, 1), pieces(6)).layer(dense(6, 6, 2), pieces(6));
    let network = network.output(dense(6, 3, 3)).unwrap();
    let (z, x) = samples(&network);
    let flat = |rule| -> Vec<f64> { sweep(&network, rule, &z, &x).unwrap().1.concat().concat() };
    let plain = flat(Rule::Backprop);
    for rule in [|mu| Rule::Lifted { mu }, |mu| Rule::Centred { mu }] {
        let far = max_relative_difference(&flat(rule(1.0)), &plain);
        let near = max_relative_difference(&flat(rule(1e-6)), &plain);
        assert!(near < 1e-6 && far > 100.0 * near, "{far:e} and {near:e}");
    }
}

#[test]
fn the_denoiser_of_the_paper_is_a_case_of_it() {
    for (depth, features, channels) in [(2, 3, 1), (5, 4, 3)] {
        let (chain, itself) = denoiser(depth, features, channels);
        let (z, x) = samples(&chain);
        let grid = itself.architecture().grid(SIDES.0, SIDES.1).unwrap();
        let field =
            |rows: &Rows<f64>| Field::from_planar(SAMPLES, rows.width() / 30, grid, rows.data()).unwrap();
        let machine = (&Reference as &dyn proxlift::engine::Engine<f64>, &itself);
        let mut theirs = training::Lifted::new(&itself, field(&z), field(&x)).unwrap();
        theirs.anchor(machine);
        let u: Vec<Rows<f64>> = inside(&chain, &z);
        for (k, u) in u.iter().enumerate() {
            theirs.u[k + 1].copy_from(&field(u));
        }
        theirs.refresh(machine);
        let ours = Lifted::with_u(&chain, &z, &x, u).unwrap();
        let blocks = theirs.energy(machine, MU).blocks();
        assert!(max_relative_difference(&ours.energy(&chain, MU), &blocks) < 1e-12);
        let mut gradients = itself.theta.clone();
        theirs.theta_gradients(machine, MU, &mut gradients);
        let mine: Vec<Vec<f64>> = (0..depth).flat_map(|k| ours.theta_gradient(&chain, k, MU)).collect();
        for (k, (gradient, mine)) in gradients.iter().zip(&mine).enumerate() {
            assert!(max_relative_difference(mine, gradient.weights()) < 1e-11, "theta_{k}");
        }
        let mut by_u: Vec<Field<f64>> = theirs.u.iter().map(Field::zeros_like).collect();
        theirs.u_gradients(machine, MU, &mut by_u);
        for k in 0..depth - 1 {
            let mine = ours.u_gradient(&chain, k, MU);
            assert!(max_relative_difference(mine.data(), &by_u[k + 1].to_planar()) < 1e-11, "u_{}", k + 1);
        }
    }
}

#[test]
fn every_map_has_its_adjoint() {
    let maps: Vec<Box<dyn Affine<f64>>> = vec![
        Box::new(dense(7, 5, 1)),
        Box::new(convolution(3, 2, SIDES, 1, 1)),
        Box::new(convolution(3, 2, (7, 9), 2, 0)),
        Box::new(convolution(2, 1, (4, 4), 3, 2)),
        Box::new(DualStep::new(filters(3, 2, 3, 5), 0.3, SIDES).unwrap()),
        Box::new(DualStep::first(filters(3, 2, 3, 4), filters(3, 2, 3, 5), 0.3, SIDES).unwrap()),
        Box::new(Synthesis::new(filters(3, 2, 3, 5), SIDES).unwrap()),
    ];
    for map in maps {
        let rows = |width: usize, seed| Rows::new(width, random_field(SAMPLES * width, seed)).unwrap();
        let width = map.skips().unwrap_or(map.inputs());
        let zero = (Rows::zeros(SAMPLES, map.inputs()), Rows::zeros(SAMPLES, width));
        let (u, z, d) = (rows(map.inputs(), 1), rows(width, 2), rows(map.outputs(), 3));
        let apply = |u: &Rows<f64>, z: &Rows<f64>| {
            let mut v = Rows::zeros(SAMPLES, map.outputs());
            map.apply(u, z, &mut v);
            v
        };
        let dot = |a: &Rows<f64>, b: &Rows<f64>| proxlift::real::dot(a.data(), b.data());
        // <d, F(u, z) - F(0, 0)> = <A* d, u> + <C* d, z>
        let mut change = apply(&u, &z);
        change.zip(&apply(&zero.0, &zero.1), |a, b| a - b);
        let (mut back, mut to_z) = (zero.0.clone(), zero.1.clone());
        map.adjoint(&d, &mut back);
        map.add_adjoint_skip(&d, &mut to_z);
        let other = dot(&back, &u) + if map.skips().is_some() { dot(&to_z, &z) } else { 0.0 };
        assert!(
            (dot(&d, &change) - other).abs() < 1e-12 * dot(&d, &d).sqrt() * dot(&u, &u).sqrt(),
            "{}",
            map.describe()
        );
    }
}

#[test]
fn losses_are_bregman_distances() {
    for loss in [Loss::Squared, Loss::Logistic, Loss::Softmax] {
        let output = Rows::new(4, random_field::<f64>(8, 1)).unwrap();
        let x = match loss {
            Loss::Softmax => Rows::new(4, vec![0.1, 0.2, 0.3, 0.4, 0.0, 0.0, 1.0, 0.0]).unwrap(),
            _ => Rows::new(4, vec![0.1, 0.9, 0.5, 0.4, 0.0, 0.3, 1.0, 0.2]).unwrap(),
        };
        let mut gradient = output.zeros_like();
        loss.gradient(&output, &x, &mut gradient);
        let value = |o: &[f64]| o.chunks(4).zip(x.rows()).map(|(o, x)| loss.value(o, x)).sum::<f64>();
        assert!(gradient_mismatch(value, gradient.data(), output.data(), 3) < 1e-8);
        // The least is where x = grad h(o).
        let mut there = output.zeros_like();
        loss.gradient(&output, &output.zeros_like(), &mut there);
        let best = output.rows().zip(there.rows()).map(|(o, x)| loss.value(o, x)).sum::<f64>();
        for seed in 0..5 {
            let other = Rows::new(4, random_field::<f64>(8, 10 + seed)).unwrap();
            assert!(other.rows().zip(there.rows()).map(|(o, x)| loss.value(o, x)).sum::<f64>() >= best);
        }
    }
}

#[test]
fn what_does_not_chain_is_refused() {
    let said = |result: proxlift::Result<Network<f64>>| result.err().unwrap().to_string();
    let start = || Network::<f64>::new(Loss::Softmax).layer(dense(7, 6, 1), Relu);
    assert!(said(start().output(dense(5, 3, 2))).contains("layer 0 gives 6 numbers, but layer 1 takes 5"));
    assert!(said(Network::new(Loss::Squared).output(dense(5, 3, 2))).contains("needs a layer"));
    let planes = Network::new(Loss::Squared).layer(dense(7, 6, 1), L2Ball::new(4, 2, vec![1.0]).unwrap());
    assert!(said(planes.output(dense(6, 3, 2))).contains("4 planes"));
    let skips = start().layer(DualStep::new(filters(3, 2, 3, 5), 0.3, (1, 2)).unwrap(), Relu);
    assert!(
        said(skips.output(dense(6, 3, 2))).contains("sees an input of 4 numbers, but the network takes 7")
    );
    assert!(
        one_hot::<f64>(&[0, 3], 3)
            .unwrap_err()
            .to_string()
            .contains("sample 1 is 3, but there are 3 classes")
    );
    assert!(Dense::new(3, vec![0.0; 5], vec![0.0; 2]).is_err());
    assert!(Convolutional::strided(filters(1, 1, 3, 0), vec![0.0], (2, 2), 1, 0).is_err());
    assert!(Convolutional::strided(filters(1, 1, 3, 0), vec![0.0], (4, 4), 0, 0).is_err());
    let network = start().output(dense(6, 3, 2)).unwrap();
    let (z, x) = samples(&network);
    let bad = Rows::new(3, vec![0.5; 9]).unwrap();
    assert!(sweep(&network, Rule::Backprop, &z, &bad).unwrap_err().to_string().contains("no probability"));
    let said = |z: &Rows<f64>, x: &Rows<f64>| Lifted::new(&network, z, x).err().unwrap().to_string();
    assert!(said(&x, &x).contains("samples have 3 and 3 numbers, but the network takes 7 and gives 3"));
    assert!(said(&z, &Rows::new(3, x.data()[3..].to_vec()).unwrap()).contains("3 samples have 2 targets"));
    assert!(said(&Rows::zeros(0, 7), &Rows::zeros(0, 3)).contains("a batch holds no sample"));
    for bad in [f64::NAN, f64::INFINITY] {
        let (mut z, mut x) = (z.clone(), x.clone());
        z.data_mut()[4] = bad;
        assert!(said(&z, &x).contains("a sample holds a number that is not finite"));
        x.data_mut()[1] = bad;
        z.data_mut()[4] = 0.0;
        assert!(said(&z, &x).contains("no probability"));
    }
    let said = |u: Vec<Rows<f64>>| Lifted::with_u(&network, &z, &x, u).err().unwrap().to_string();
    assert!(said(Vec::new()).contains("u is given for 0 layers, but 1 have an activation"));
    assert!(said(vec![Rows::zeros(3, 5)]).contains("u of layer 0 has 3 samples of 5 numbers"));
}

#[test]
fn what_has_no_potential_is_refused() {
    // Not monotone, and expansive.
    let knots = || vec![0.5];
    assert!(PiecewiseLinear::<f64>::new(1, knots(), vec![1.0, -0.2]).is_err());
    let steep = PiecewiseLinear::new(1, knots(), vec![1.0, 1.3]).unwrap();
    let network = Network::<f64>::new(Loss::Squared).layer(dense(2, 1, 1), steep);
    let said = network.output(dense(1, 1, 2)).err().unwrap().to_string();
    assert!(said.contains("layer 0 has a slope of 1.3, but what is steeper than 1 is no prox"), "{said}");
    assert!(one_hot::<f64>(&[], 0).unwrap_err().to_string().contains("no classes"));
}
