//! The engines through the public laws: adjoints, gradients, the order of samples, the number of threads; and what
//! they refuse.

use proxlift::engine::{Cpu, Engine, Gradients, Reference, ReverseRule};
use proxlift::field::Field;
use proxlift::laws::{
    Convolved, adjoint_mismatch, correlation_mismatch, max_relative_difference, random_field,
    same_bits_for_threads,
};
use proxlift::model::{Model, Provenance};
use proxlift::network::{Architecture, Network};
use proxlift::operator::{Convolution, Filters, FiniteDifferences, LinearOperator};
use proxlift::training::Lifted;
use proxlift::{Real, Result};

const SIZES: [(usize, usize); 8] = [(1, 1), (1, 5), (7, 1), (2, 2), (5, 7), (3, 16), (16, 15), (9, 33)];

/// Every size with every kernel and 1 or 3 channels, and all feature counts from 1 to 17 among them.
fn for_each_shape<T: Real>(mut f: impl FnMut(&Filters<T>, usize, usize, usize)) {
    let mut case = 0;
    for (height, width) in SIZES {
        for size in [1, 3, 5, 7] {
            for channels in [1, 3] {
                for features in [1 + case % 17, 1 + (case + 9) % 17] {
                    let weights = random_field(features * channels * size * size, case as u64);
                    let filters = Filters::new(features, channels, size, weights).unwrap();
                    f(&filters, 1 + case % 3, height, width);
                    case += 1;
                }
            }
        }
    }
}

fn laws_hold<T: Real>(engine: &dyn Engine<T>, tolerance: f64) {
    let mut counts = [false; 18];
    for_each_shape::<T>(|theta, samples, height, width| {
        counts[theta.features()] = true;
        let grid = proxlift::field::Grid::new(height, width, theta.radius()).unwrap();
        let op = Convolved { engine, theta, samples, grid };
        let case = || {
            let (j, c, k) = (theta.features(), theta.channels(), theta.size());
            format!("{}: {samples} x {height} x {width}, J = {j}, C = {c}, k = {k}", engine.name())
        };
        let adjoint = adjoint_mismatch(&op, 3);
        assert!(adjoint < tolerance, "{}: the adjoint is off by {adjoint:e}", case());
        let gradient = correlation_mismatch(&op, T::of(-0.7), 5);
        assert!(gradient < tolerance, "{}: the weight gradient is off by {gradient:e}", case());

        // The same map as the operator, sample by sample.
        let plain = Convolution::new(theta, height, width).unwrap();
        let x = random_field::<T>(op.domain_len(), 9);
        let (mut batch, mut single) = (vec![T::nan(); op.range_len()], vec![T::nan(); op.range_len()]);
        op.apply(&x, &mut batch);
        for (x, y) in x.chunks(plain.domain_len()).zip(single.chunks_mut(plain.range_len())) {
            plain.apply(x, y);
        }
        assert!(max_relative_difference(&batch, &single) < 10.0 * tolerance, "{}", case());
    });
    assert!(counts[1..].iter().all(|tried| *tried));
}

#[test]
fn the_reference_keeps_the_laws() {
    laws_hold::<f64>(&Reference, 1e-14);
    laws_hold::<f32>(&Reference, 1e-6);
}

#[test]
fn the_fast_engine_keeps_the_laws() {
    laws_hold::<f32>(&Cpu::new(), 1e-6);
    laws_hold::<f32>(&Cpu::baseline(), 1e-6);
}

/// An engine that is wrong in one place.
struct Broken(Fault);

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Border,
    Gap,
    Forgotten,
    Correlation,
}

impl Engine<f64> for Broken {
    fn name(&self) -> String {
        "broken".into()
    }
    fn analyse(&self, theta: &Filters<f64>, z: &Field<f64>, u: &mut Field<f64>) {
        let last = u.at(0, 0, 0, 0);
        Reference.analyse(theta, z, u);
        match self.0 {
            Fault::Border => u.data_mut()[0] += 0.1 * z.at(0, 0, 0, 0),
            Fault::Gap => {
                let width = u.grid().width();
                u.data_mut()[width] = 1e-3;
            }
            Fault::Forgotten => u.data_mut()[0] = last,
            Fault::Correlation => {}
        }
    }
    fn adjoint(&self, theta: &Filters<f64>, u: &Field<f64>, x: &mut Field<f64>) {
        Reference.adjoint(theta, u, x);
    }
    fn correlate(&self, scale: f64, x: &Field<f64>, d: &Field<f64>, gradient: &mut Filters<f64>) {
        if self.0 == Fault::Correlation {
            gradient.weights_mut().fill(0.0); // instead of adding
        }
        Reference.correlate(scale, x, d, gradient);
    }
}

#[test]
fn the_laws_see_a_broken_engine() {
    let theta = Filters::new(2, 1, 3, random_field(18, 1)).unwrap();
    let grid = proxlift::field::Grid::new(4, 5, 1).unwrap();
    for fault in [Fault::Border, Fault::Gap, Fault::Forgotten, Fault::Correlation] {
        let op = Convolved { engine: &Broken(fault), theta: &theta, samples: 2, grid };
        let mismatch = adjoint_mismatch(&op, 3).max(correlation_mismatch(&op, 0.5, 5));
        assert!(mismatch > 1e-4, "{}", fault as usize);
    }
}

const SHAPE: Architecture = Architecture { depth: 4, features: 7, kernel: 3, channels: 3 };

fn network(architecture: Architecture) -> Network<f32> {
    let count = architecture.layer_parameters();
    let theta = (0..=architecture.depth).map(|k| {
        let weights = random_field::<f32>(count, 50 + k as u64).iter().map(|w| 0.2 * w).collect();
        Filters::new(architecture.features, architecture.channels, architecture.kernel, weights).unwrap()
    });
    let lambda = (0..architecture.features).map(|j| 0.1 + 0.05 * j as f32).collect();
    Network::new(theta.collect(), vec![0.4; architecture.depth - 1], lambda).unwrap()
}

fn random_batch(architecture: Architecture, samples: usize, planes: usize, seed: u64) -> Field<f32> {
    let grid = architecture.grid(19, 22).unwrap();
    Field::from_planar(samples, planes, grid, &random_field(samples * planes * grid.pixels(), seed)).unwrap()
}

/// The batch with its samples in the order `order`.
fn permuted(field: &Field<f32>, order: &[usize]) -> Field<f32> {
    let mut result = Field::zeros(order.len(), field.channels(), field.grid());
    let len = field.sample_len();
    for (to, &from) in result.data_mut().chunks_exact_mut(len).zip(order) {
        to.copy_from_slice(field.sample(from));
    }
    result
}

#[test]
fn the_order_and_the_company_of_samples_change_no_bit() {
    let net = network(SHAPE);
    let all = [0, 1, 2, 3, 4];
    let z = random_batch(SHAPE, 5, 3, 1);
    let (x, u) = (random_batch(SHAPE, 5, 3, 2), random_batch(SHAPE, 5, 7, 3));
    let engines: [&dyn Engine<f32>; 3] = [&Cpu::new(), &Cpu::baseline(), &Reference];
    for engine in engines {
        // Per sample: the output, v and the pull-back of a layer, the penalty and the loss.
        let run = |order: &[usize]| {
            let (z, x, u) = (permuted(&z, order), permuted(&x, order), permuted(&u, order));
            let (mut output, mut r) = (z.clone(), z.clone());
            let (mut v, mut back) = (u.clone(), u.clone());
            engine.denoise(&net, &z, &mut output);
            engine.layer(net.layer(1), &u, &z, &mut r, &mut v);
            engine.pullback(net.layer(2), &u, &mut r, &mut back);
            let mut penalty = vec![0.0; order.len()];
            engine.bregman(net.layer(1), &u, &v, &mut penalty);
            let mut gradients = Gradients::zeros(&net, order.len());
            engine.training_pass(&net, ReverseRule::Lifted { mu: 0.2 }, &z, &x, &mut gradients).unwrap();
            let sample = |s: usize| {
                let numbers = [&output, &v, &back].into_iter().flat_map(|field| field.sample(s));
                let mut bits: Vec<u64> = numbers.map(|x| u64::from(x.to_bits())).collect();
                bits.extend([penalty[s].to_bits(), gradients.loss[s].to_bits()]);
                bits
            };
            (0..order.len()).map(sample).collect::<Vec<_>>()
        };
        let straight = run(&all);
        for order in [&[4, 2, 0, 1, 3][..], &[1, 0], &[3], &[2, 2, 2]] {
            for (got, &s) in run(order).iter().zip(order) {
                assert!(*got == straight[s], "{}: sample {s} in {order:?}", engine.name());
            }
        }
        assert_ne!(straight[0], straight[1]);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let net = network(SHAPE);
    let (z, x) = (random_batch(SHAPE, 7, 3, 1), random_batch(SHAPE, 7, 3, 2));
    let (u, d) = (random_batch(SHAPE, 7, 7, 3), random_batch(SHAPE, 7, 7, 4));
    let narrow = Architecture { channels: 1, ..SHAPE };
    let (small, grid) = (network(narrow), narrow.grid(131, 17).unwrap());
    let large = Field::from_planar(1, 1, grid, &random_field(grid.pixels(), 8)).unwrap();
    for engine in [Cpu::new(), Cpu::baseline()] {
        let check = |what: &str, f: &(dyn Fn() -> Vec<f32> + Sync)| {
            assert_eq!(same_bits_for_threads(f, &[1, 2, 3, 5]), 0, "{what}");
        };
        check("denoise a batch", &|| {
            let mut output = z.clone();
            engine.denoise(&net, &z, &mut output);
            output.data().to_vec()
        });
        check("denoise a large image", &|| {
            let mut output = large.clone();
            engine.denoise(&small, &large, &mut output);
            output.data().to_vec()
        });
        for rule in [ReverseRule::Backprop, ReverseRule::Lifted { mu: 0.1 }] {
            check("training pass", &|| {
                let mut gradients = Gradients::zeros(&net, 7);
                engine.training_pass(&net, rule, &z, &x, &mut gradients).unwrap();
                let weights = gradients.theta.iter().flat_map(|theta| theta.weights().to_vec());
                weights.chain(gradients.loss.iter().flat_map(|loss| halves(*loss))).collect()
            });
        }
        check("layer", &|| {
            let (mut r, mut v) = (z.clone(), u.clone());
            engine.layer(net.layer(1), &u, &z, &mut r, &mut v);
            [r.data(), v.data()].concat()
        });
        check("activate", &|| {
            let mut s = u.clone();
            engine.activate(net.layer(1), &u, &mut s);
            s.data().to_vec()
        });
        check("pull-back", &|| {
            let (mut a, mut back) = (z.clone(), d.clone());
            engine.pullback(net.layer(1), &d, &mut a, &mut back);
            [a.data(), back.data()].concat()
        });
        check("correlate", &|| {
            let mut gradient = net.theta[1].clone();
            engine.correlate(0.3, &z, &d, &mut gradient);
            gradient.weights().to_vec()
        });
        check("bregman", &|| {
            let mut penalty = vec![0.0; 7];
            engine.bregman(net.layer(1), &u, &d, &mut penalty);
            penalty.into_iter().flat_map(halves).collect()
        });
    }
}

/// The bits of a double as two floats, for a law that compares floats.
fn halves(x: f64) -> [f32; 2] {
    let bits = x.to_bits();
    [f32::from_bits((bits >> 32) as u32), f32::from_bits(bits as u32)]
}

/// The sentence of an error: one line, neither shorter nor longer than a sentence, with what was wrong in it.
#[track_caller]
fn explains<V>(result: Result<V>, needed: &[&str]) {
    let Err(error) = result else { panic!("accepted, but {needed:?} was expected") };
    let sentence = error.to_string();
    assert!(!sentence.contains('\n') && (15..200).contains(&sentence.len()), "{sentence}");
    for part in needed {
        assert!(sentence.contains(part), "'{sentence}' does not say '{part}'");
    }
}

#[test]
fn sizes_that_make_no_network_get_a_sentence() {
    for depth in [0, 1] {
        let architecture = Architecture { depth, ..SHAPE };
        explains(architecture.validate(), &[&format!("K is {depth}"), "2"]);
        explains(Network::<f32>::glorot(architecture, 0.1, 1), &["K is"]);
        let theta = vec![Filters::<f32>::zeros(2, 1, 3).unwrap(); depth + 1];
        explains(Network::new(theta, vec![], vec![0.1; 2]), &[&format!("K is {depth}"), "at least 2"]);
    }
    explains(Network::<f32>::new(vec![], vec![], vec![]), &["K is 0"]);
    for kernel in [0, 2, 4] {
        let architecture = Architecture { kernel, ..SHAPE };
        explains(Network::<f32>::glorot(architecture, 0.1, 1), &[&format!("size is {kernel}"), "odd"]);
        explains(Filters::<f32>::zeros(1, 1, kernel), &[&format!("size is {kernel}"), "odd"]);
    }
    for channels in [0, 2, 5, 8, 16] {
        let architecture = Architecture { channels, ..SHAPE };
        explains(Network::<f32>::glorot(architecture, 0.1, 1), &[&format!("{channels} channels"), "1", "3"]);
    }
    explains(Network::<f32>::glorot(Architecture { features: 0, ..SHAPE }, 0.1, 1), &["0 features"]);
    for (height, width) in [(0, 4), (4, 0), (0, 0)] {
        explains(SHAPE.grid(height, width), &[&format!("{width}x{height}"), "pixel"]);
        explains(Convolution::new(&Filters::<f32>::zeros(1, 1, 3).unwrap(), height, width), &["pixels"]);
        explains(FiniteDifferences::new(1, height, width), &["pixels"]);
    }
}

#[test]
fn numbers_out_of_range_get_a_sentence() {
    let good = network(SHAPE);
    for lambda in [-0.1, f64::NAN, f64::INFINITY] {
        explains(Network::<f32>::glorot(SHAPE, lambda, 1), &[&format!("lambda is {lambda}"), "0 or more"]);
        let mut bad = good.clone();
        bad.activation[1].piecewise_mut().unwrap().parts_mut()[0][3] = lambda as f32;
        explains(Network::with_activations(bad.theta, bad.tau, bad.activation), &["lambda"]);
    }
    for tau in [0.0, -1.0, f32::NAN] {
        let mut bad = good.clone();
        bad.tau[1] = tau;
        explains(Network::with_activations(bad.theta, bad.tau, bad.activation), &["tau", "positive"]);
    }
    for sigma in [-0.1, f64::NAN, f64::INFINITY] {
        let model =
            Model { network: good.clone(), sigma, noise: Default::default(), provenance: Provenance::new() };
        explains(model.to_bytes(), &[&format!("sigma is {sigma}"), "0 or more"]);
        let folder = tempfile::tempdir().unwrap();
        explains(model.save(folder.path().join("model.safetensors")), &["sigma"]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a file was left behind");
    }
}

#[test]
fn batches_that_do_not_fit_get_a_sentence() {
    let net = network(SHAPE);
    let good = random_batch(SHAPE, 2, 3, 1);
    let grey = random_batch(SHAPE, 2, 1, 1);
    let wide = Field::zeros(2, 3, Architecture { kernel: 5, ..SHAPE }.grid(19, 22).unwrap());
    let single = random_batch(SHAPE, 1, 3, 1);
    let larger = Field::zeros(2, 3, SHAPE.grid(19, 23).unwrap());
    let engines: [&dyn Engine<f32>; 2] = [&Cpu::new(), &Reference];
    for engine in engines {
        let pass = |z: &Field<f32>, x: &Field<f32>, samples: usize| {
            let mut gradients = Gradients::zeros(&net, samples);
            engine.training_pass(&net, ReverseRule::Backprop, z, x, &mut gradients)
        };
        assert!(pass(&good, &good, 2).is_ok());
        explains(pass(&grey, &good, 2), &["1 channels", "3"]);
        explains(pass(&good, &grey, 2), &["1 channels", "3"]);
        explains(pass(&wide, &wide, 2), &["kernel size"]);
        explains(pass(&good, &single, 2), &["2 images", "1 of"]);
        explains(pass(&good, &larger, 2), &["22x19", "23x19"]);
        explains(pass(&good, &good, 1), &["batch of 1", "2 samples"]);
        explains(pass(&good, &good, 3), &["batch of 3", "2 samples"]);
        let mut foreign = Gradients::zeros(&network(Architecture { depth: 5, ..SHAPE }), 2);
        let refused = engine.training_pass(&net, ReverseRule::Backprop, &good, &good, &mut foreign);
        explains(refused, &["another shape"]);
        // Where there is no Result, the same sentences come from assertions.
        for (z, output) in [(&grey, &grey), (&good, &single), (&wide, &wide)] {
            let denoise = || engine.denoise(&net, z, &mut output.clone());
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(denoise)).is_err());
        }
    }
    explains(Lifted::new(&net, good.clone(), single), &["2 images", "1 of"]);
    explains(Lifted::new(&net, grey.clone(), good.clone()), &["1 channels", "3"]);
    explains(Lifted::new(&net, good.clone(), grey), &["1 channels", "3"]);
    explains(Lifted::new(&net, wide.clone(), wide), &["kernel size"]);
}
