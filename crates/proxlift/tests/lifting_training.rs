//! Training of general networks: what cannot rise does not, and all rules learn.

use proxlift::Real;
use proxlift::laws::random_field;
use proxlift::lifting::{
    Batch, ClosedForm, Convolutional, Dense, GradientDescent, LbFb, LbFbOptions, Loss, Network, Penalty,
    Rows, Rule, Splitting, Trainer, one_hot, sweep, sweep_recomputing,
};
use proxlift::network::{self, Activation, Architecture};
use proxlift::operator::Filters;
use proxlift::prox::{BoxClip, PiecewiseLinear, Relu, SoftThreshold};
use proxlift::training::{Auxiliary, BlockOrder, Descent, Metric, Rate, Schedule};

const SAMPLES: usize = 24;

fn dense<T: Real>(inputs: usize, outputs: usize, seed: u64) -> Dense<T> {
    let scale = (2.0 / inputs as f64).sqrt();
    let weights = random_field::<f64>(inputs * outputs, seed).iter().map(|w| T::of(scale * w)).collect();
    Dense::new(inputs, weights, vec![T::of(0.01); outputs]).unwrap()
}

/// Two spirals of points, three classes by their angle: nothing that a line tells apart.
fn points<T: Real>() -> (Rows<T>, Vec<usize>) {
    let mut data = Vec::new();
    let mut labels = Vec::new();
    for i in 0..SAMPLES {
        let (class, r) = (i % 3, 0.2 + 0.8 * (i / 3) as f64 / (SAMPLES / 3) as f64);
        let angle = 4.0 * r + 2.1 * class as f64;
        data.extend([T::of(2.0 * r * angle.cos()), T::of(2.0 * r * angle.sin())]);
        labels.push(class);
    }
    (Rows::new(2, data).unwrap(), labels)
}

fn classifier<T: Real>(loss: Loss, activation: fn() -> Activation<T>) -> Network<T> {
    let network =
        Network::new(loss).layer(dense(2, 16, 1), activation()).layer(dense(16, 12, 2), activation());
    network.output(dense(12, 3, 3)).unwrap()
}

fn activations<T: Real>() -> [fn() -> Activation<T>; 3] {
    [
        || Relu.into(),
        || SoftThreshold::new(vec![T::of(0.1)]).unwrap().into(),
        || BoxClip::symmetric(vec![T::of(1.0)]).unwrap().into(),
    ]
}

#[test]
fn the_energy_never_rises_in_whole_runs_with_persistent_u() {
    let (z, labels) = points::<f64>();
    let x = one_hot(&labels, 3).unwrap();
    let all: Vec<usize> = (0..SAMPLES).collect();
    for loss in [Loss::Squared, Loss::Logistic, Loss::Softmax] {
        for activation in activations() {
            for (order, penalty, metric) in [
                (BlockOrder::Sweep, Penalty::Bregman, Metric::Euclidean),
                (BlockOrder::Simultaneous, Penalty::Bregman, Metric::Euclidean),
                (BlockOrder::Sweep, Penalty::Quadratic, Metric::Euclidean),
                (BlockOrder::Sweep, Penalty::Bregman, Metric::Diagonal),
                (BlockOrder::Simultaneous, Penalty::Bregman, Metric::Diagonal),
            ] {
                let mut network = classifier(loss, activation);
                let auxiliary = Auxiliary::Persistent;
                let options = LbFbOptions { auxiliary, order, penalty, metric, ..LbFbOptions::default() };
                let mut trainer = LbFb::new(&network, options, SAMPLES).unwrap();
                let mut energies = Vec::new();
                for _ in 0..40 {
                    energies.extend(
                        trainer
                            .step(&mut network, Batch { z: &z, x: &x, indices: &all }, 0.0)
                            .unwrap()
                            .energy,
                    );
                }
                let rise = energies.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
                assert!(rise <= 1e-6 * energies[0], "{loss}, {order}: E rises by {rise:e}");
                assert!(energies[energies.len() - 1] < 0.95 * energies[0], "{loss}, {order}: {energies:?}");
            }
        }
    }
}

#[test]
fn anchored_sweeps_lower_the_loss_of_the_network() {
    let (z, labels) = points::<f64>();
    let x = one_hot(&labels, 3).unwrap();
    let all: Vec<usize> = (0..SAMPLES).collect();
    for activation in activations() {
        let mut network = classifier(Loss::Softmax, activation);
        let mut trainer =
            LbFb::new(&network, LbFbOptions { mu: 0.1, ..LbFbOptions::default() }, SAMPLES).unwrap();
        let losses: Vec<f64> = (0..150)
            .map(|_| trainer.step(&mut network, Batch { z: &z, x: &x, indices: &all }, 0.0).unwrap().loss)
            .collect();
        assert!(losses[149] < 0.7 * losses[0], "{} to {}", losses[0], losses[149]);
    }
}

#[test]
fn every_rule_learns_in_every_metric() {
    let (z, labels) = points::<f32>();
    let x = one_hot(&labels, 3).unwrap();
    for rule in [Rule::Backprop, Rule::Lifted { mu: 0.1 }, Rule::Centred { mu: 0.1 }] {
        for (metric, rate) in [(Metric::Euclidean, 0.05), (Metric::Diagonal, 0.01), (Metric::Kronecker, 0.01)]
        {
            let mut network = classifier(Loss::Softmax, activations()[0]);
            let rate = Rate { start: rate, schedule: Schedule::Constant };
            let descent = Descent { metric, momentum: 0.9, beta2: 0.99, rate };
            let mut trainer = GradientDescent::new(&network, rule, descent).unwrap();
            let mut last = f64::INFINITY;
            for _ in 0..400 {
                last = trainer.step(&mut network, Batch { z: &z, x: &x, indices: &[] }, 0.0).unwrap().loss;
            }
            let output = network.forward(&z);
            let right = output.output().rows().zip(&labels).filter(|(row, label)| {
                row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(i, _)| i) == Some(**label)
            });
            let right = right.count();
            assert!(right >= SAMPLES - 1, "{rule:?}, {metric}: {right} of {SAMPLES}, loss {last}");
        }
    }
}

#[test]
fn convolutions_learn_too() {
    let side = (8, 8);
    let filters = |features: usize, channels: usize, seed| {
        let weights =
            random_field::<f64>(features * channels * 9, seed).iter().map(|w| (0.3 * w) as f32).collect();
        Filters::new(features, channels, 3, weights).unwrap()
    };
    let first = Convolutional::strided(filters(4, 1, 1), vec![0.0; 4], side, 2, 1).unwrap();
    let second = Convolutional::new(filters(3, 4, 2), vec![0.0; 3], 4, 4).unwrap();
    let mut network =
        Network::new(Loss::Softmax).layer(first, Relu).layer(second, Relu).output(dense(48, 2, 3)).unwrap();
    // Rows against columns.
    let image = |i: usize| {
        let line = move |p: usize| if i.is_multiple_of(2) { p / 8 } else { p % 8 };
        (0..64).map(move |p| if line(p) % 4 == i / 2 % 4 { 1.0 } else { 0.0 })
    };
    let z = Rows::new(64, (0..8).flat_map(image).collect()).unwrap();
    let x = one_hot(&[0, 1, 0, 1, 0, 1, 0, 1], 2).unwrap();
    let rate = Rate { start: 0.01, schedule: Schedule::Constant };
    let descent = Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.99, rate };
    let mut trainer = GradientDescent::new(&network, Rule::Lifted { mu: 0.1 }, descent).unwrap();
    let losses: Vec<f64> = (0..200)
        .map(|_| trainer.step(&mut network, Batch { z: &z, x: &x, indices: &[] }, 0.0).unwrap().loss)
        .collect();
    assert!(losses[199] < 0.05 * losses[0], "{} to {}", losses[0], losses[199]);
}

#[test]
fn activations_learn_and_stay_proxes() {
    fn learns<T: Real>() -> Network<T> {
        let curve = || {
            let each =
                |values: &[f64]| values.iter().cycle().take(8 * values.len()).map(|&v| T::of(v)).collect();
            PiecewiseLinear::new(2, each(&[0.2, 0.9]), each(&[0.9, 0.5, 0.2])).unwrap()
        };
        let network =
            Network::new(Loss::Softmax).layer(dense(2, 8, 1), curve()).layer(dense(8, 8, 2), curve());
        network.output(dense(8, 3, 3)).unwrap()
    }
    let moved = |before: &[&[f64]], after: &[&[f64]]| {
        before.iter().zip(after).filter(|(a, b)| a != b).count() == before.len()
    };
    let (z, labels) = points::<f64>();
    let (x, all) = (one_hot(&labels, 3).unwrap(), (0..SAMPLES).collect::<Vec<_>>());
    let start = learns::<f64>();
    // Weights and biases of three layers, knots and slopes of two.
    assert_eq!((start.blocks().len(), start.parameters()), (10, 16 + 64 + 24 + 19 + 2 * 8 * 5));
    let recomputed = sweep_recomputing(&start, Rule::Lifted { mu: 0.1 }, &z, &x, 1).unwrap();
    assert!(sweep(&start, Rule::Lifted { mu: 0.1 }, &z, &x).unwrap() == recomputed);
    let batch = Batch { z: &z, x: &x, indices: &all };
    for order in [BlockOrder::Sweep, BlockOrder::Simultaneous] {
        let mut network = learns::<f64>();
        let options = LbFbOptions { auxiliary: Auxiliary::Persistent, order, ..LbFbOptions::default() };
        let mut trainer = LbFb::new(&network, options, SAMPLES).unwrap();
        let energies: Vec<f64> =
            (0..60).flat_map(|_| trainer.step(&mut network, batch, 0.0).unwrap().energy).collect();
        let rise = energies.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(rise <= 1e-6 * energies[0], "{order}: E rises by {rise:e}");
        assert!(energies[energies.len() - 1] < 0.8 * energies[0], "{order}: {energies:?}");
        assert!(moved(&start.blocks(), &network.blocks()));
        let proxes = network.activations().iter().all(|s| s.prox().validate().is_ok() && s.steepest() <= 1.0);
        assert!(proxes, "{:?}", network.activations());
    }

    let (z, x) = (points::<f32>().0, one_hot(&labels, 3).unwrap());
    let descent = |metric| {
        let rate = Rate { start: 0.01, schedule: Schedule::Constant };
        Descent { metric, momentum: 0.9, beta2: 0.99, rate }
    };
    for rule in [Rule::Backprop, Rule::Lifted { mu: 0.1 }, Rule::Centred { mu: 0.1 }] {
        for metric in [Metric::Diagonal, Metric::Kronecker] {
            let mut network = learns::<f32>();
            let mut trainer = GradientDescent::new(&network, rule, descent(metric)).unwrap();
            let losses: Vec<f64> = (0..300)
                .map(|_| trainer.step(&mut network, Batch { z: &z, x: &x, indices: &[] }, 0.0).unwrap().loss)
                .collect();
            assert!(losses[299] < 0.1 * losses[0], "{rule:?}, {metric}: {} to {}", losses[0], losses[299]);
            assert!(moved(&start.blocks(), &network.cast::<f64>().unwrap().blocks()));
            assert!(network.activations().iter().all(|s| s.prox().validate().is_ok() && s.steepest() <= 1.0));
        }
    }
}

#[test]
fn wrong_options_are_refused() {
    let network = classifier::<f32>(Loss::Squared, activations()[0]);
    let options = |mu, inner, order| LbFbOptions { mu, inner, order, ..LbFbOptions::default() };
    let said = |options| LbFb::new(&network, options, 4).err().unwrap().to_string();
    assert!(said(options(-1.0, 1, BlockOrder::Sweep)).contains("mu is -1"));
    assert!(said(options(1.0, 0, BlockOrder::Sweep)).contains("at least one iteration"));
    assert!(said(options(1.0, 1, BlockOrder::Simultaneous)).contains("1 of 3 layers"));
    let descent = |metric, rate| Descent {
        metric,
        momentum: 0.9,
        beta2: 0.99,
        rate: Rate { start: rate, schedule: Schedule::Constant },
    };
    let said = |rule, descent| GradientDescent::new(&network, rule, descent).err().unwrap().to_string();
    assert!(said(Rule::Backprop, descent(Metric::GaussNewton, 0.1)).contains("Gauss-Newton"));
    assert!(said(Rule::Backprop, descent(Metric::Diagonal, 0.0)).contains("above zero"));
    assert!(said(Rule::Lifted { mu: f32::NAN }, descent(Metric::Diagonal, 0.1)).contains("mu"));
}

#[test]
fn the_diagonal_metric_learns_from_inputs_of_different_scales() {
    let (mut z, labels) = points::<f64>();
    z.data_mut().chunks_exact_mut(2).for_each(|point| point[0] *= 100.0);
    let x = one_hot(&labels, 3).unwrap();
    let all: Vec<usize> = (0..SAMPLES).collect();
    let loss_after = |metric| {
        let mut network = classifier(Loss::Softmax, activations()[0]);
        let mut trainer = LbFb::new(&network, LbFbOptions { metric, ..LbFbOptions::default() }, SAMPLES)?;
        let batch = Batch { z: &z, x: &x, indices: &all };
        let losses = (0..200).map(|_| Ok(trainer.step(&mut network, batch, 0.0)?.loss));
        Ok(losses.collect::<proxlift::Result<Vec<f64>>>()?[199])
    };
    let (euclidean, diagonal) =
        (loss_after(Metric::Euclidean).unwrap(), loss_after(Metric::Diagonal).unwrap());
    assert!(diagonal < 0.8 * euclidean, "{diagonal} and {euclidean}");
    let refused: proxlift::Result<f64> = loss_after(Metric::Kronecker);
    assert!(refused.unwrap_err().to_string().contains("choose the Euclidean or the diagonal one"));
}

#[test]
fn samples_outside_the_set_are_refused_where_something_is_kept_of_each() {
    let (z, x) = (Rows::new(2, vec![0.1_f32; 4]).unwrap(), Rows::new(3, vec![0.0; 6]).unwrap());
    let said = |auxiliary, indices: &[usize]| {
        let mut network = classifier::<f32>(Loss::Squared, activations()[0]);
        let batch = Batch { z: &z, x: &x, indices };
        let options = LbFbOptions { auxiliary, ..LbFbOptions::default() };
        let before = network.blocks().concat();
        let lbfb = LbFb::new(&network, options, 4).unwrap().step(&mut network, batch, 0.0);
        lbfb.err().map(|error| {
            assert_eq!(before, network.blocks().concat());
            let split = Splitting { auxiliary, ..Splitting::default() };
            let other = ClosedForm::new(&network, split, 4).unwrap().step(&mut network, batch, 0.0);
            assert_eq!(error.to_string(), other.unwrap_err().to_string());
            error.to_string()
        })
    };
    let outside = said(Auxiliary::Persistent, &[3, 4]).unwrap();
    assert!(outside.contains("a batch holds sample 4, but the trainer was made for a set of 4"));
    assert!(said(Auxiliary::Persistent, &[1]).unwrap().contains("1 indices are given for 2 samples"));
    assert!(said(Auxiliary::Persistent, &[1, 3]).is_none() && said(Auxiliary::Anchored, &[]).is_none());
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let z = Rows::new(130, random_field::<f64>(70 * 130, 5).iter().map(|v| *v as f32).collect()).unwrap();
    let x = Rows::new(90, random_field::<f64>(70 * 90, 6).iter().map(|v| *v as f32).collect()).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let network = Network::new(Loss::Squared).layer(dense(130, 110, 1), Relu);
            let mut network = network.output(dense(110, 90, 2)).unwrap();
            let rate = Rate { start: 0.01, schedule: Schedule::Constant };
            let descent = Descent { metric: Metric::Kronecker, momentum: 0.9, beta2: 0.99, rate };
            let mut trainer = GradientDescent::new(&network, Rule::Lifted { mu: 0.1 }, descent).unwrap();
            for _ in 0..25 {
                trainer.step(&mut network, Batch { z: &z, x: &x, indices: &[] }, 0.0).unwrap();
            }
            network.blocks().concat()
        })
    };
    let one = run(1);
    assert!(one.iter().all(|w| w.is_finite()));
    assert!(run(2) == one && run(3) == one);
}

/// All layers at once, on any number of threads: the layers of the denoiser, a dense chain, and activations that learn.
#[test]
fn layers_in_parallel_give_the_same_bits_and_never_raise_the_energy() {
    let sizes = Architecture { depth: 9, features: 4, kernel: 3, channels: 1 };
    let denoiser = network::Network::<f32>::glorot(sizes, 0.1, 1).unwrap();
    let random = |len: usize, seed| random_field::<f64>(len, seed).iter().map(|v| *v as f32).collect();
    let (z, x) = (Rows::new(80, random(160, 1)).unwrap(), Rows::new(80, random(160, 2)).unwrap());
    let chain = || Network::from_denoiser(&denoiser, 10, 8).unwrap();
    let deep = || {
        let layers =
            (0..7).fold(Network::new(Loss::Squared), |network, k| network.layer(dense(80, 80, k), Relu));
        layers.output(dense(80, 80, 9)).unwrap()
    };
    let learned = || {
        let pieces = || PiecewiseLinear::new(2, [0.2, 0.6].repeat(80), [1.0, 0.7, 0.2].repeat(80)).unwrap();
        let layers =
            (0..4).fold(Network::new(Loss::Squared), |network, k| network.layer(dense(80, 80, k), pieces()));
        layers.output(dense(80, 80, 9)).unwrap()
    };
    for network in [&chain as &(dyn Fn() -> Network<f32> + Sync), &deep, &learned] {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut network = network();
                let (auxiliary, order) = (Auxiliary::Persistent, BlockOrder::Simultaneous);
                let metric = Metric::Diagonal;
                let options = LbFbOptions { auxiliary, order, metric, inner: 3, ..LbFbOptions::default() };
                let mut trainer = LbFb::new(&network, options, 2).unwrap();
                let mut energies = Vec::new();
                for _ in 0..5 {
                    let batch = Batch { z: &z, x: &x, indices: &[0, 1] };
                    energies.extend(trainer.step(&mut network, batch, 0.0).unwrap().energy);
                }
                (network.blocks().concat(), energies)
            })
        };
        let (one, energies) = run(1);
        let rise = energies.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(rise <= 1e-6 * energies[0] && energies[energies.len() - 1] < energies[0], "{energies:?}");
        assert!(run(2).0 == one && run(3).0 == one);
    }
}
