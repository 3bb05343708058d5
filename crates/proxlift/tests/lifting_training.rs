//! Training of general networks: what cannot rise does not, and all rules learn.

use proxlift::Real;
use proxlift::laws::random_field;
use proxlift::lifting::{
    Batch, Convolutional, Dense, GradientDescent, LbFb, LbFbOptions, Loss, Network, Penalty, Rows, Rule,
    Trainer, one_hot,
};
use proxlift::network::Activation;
use proxlift::operator::Filters;
use proxlift::prox::{BoxClip, Relu, SoftThreshold};
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
            for (order, penalty) in [
                (BlockOrder::Sweep, Penalty::Bregman),
                (BlockOrder::Simultaneous, Penalty::Bregman),
                (BlockOrder::Sweep, Penalty::Quadratic),
            ] {
                let mut network = classifier(loss, activation);
                let auxiliary = Auxiliary::Persistent;
                let options = LbFbOptions { auxiliary, order, penalty, ..LbFbOptions::default() };
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
