//! The fused step of dense networks against its plain twin: the sweep that works for any network, and Adam as it is written.

use proxlift::laws::{random_field, same_bits_for_threads};
use proxlift::lifting::{Batch, Builder, Dense, GradientDescent, Loss, Network, Rows, Rule, Trainer, sweep};
use proxlift::network::Activation;
use proxlift::prox::{BoxClip, Relu, SoftThreshold};
use proxlift::training::{Descent, Metric, Rate, Schedule};

fn dense(inputs: usize, outputs: usize, seed: u64) -> Dense<f32> {
    let scale = (2.0 / inputs as f64).sqrt();
    let weights = random_field::<f64>(inputs * outputs, seed).iter().map(|w| (scale * w) as f32).collect();
    Dense::new(inputs, weights, vec![0.01; outputs]).unwrap()
}

fn network(widths: &[usize], loss: Loss, activation: impl Fn() -> Activation<f32>) -> Network<f32> {
    let layer = |k: usize| dense(widths[k], widths[k + 1], k as u64 + 1);
    let last = widths.len() - 2;
    let hidden = |network: Builder<f32>, k| network.layer(layer(k), activation());
    (0..last).fold(Network::new(loss), hidden).output(layer(last)).unwrap()
}

fn rows(samples: usize, width: usize, seed: u64) -> Rows<f32> {
    let numbers = random_field::<f64>(samples * width, seed);
    Rows::new(width, numbers.iter().map(|v| v.abs().min(1.0) as f32).collect()).unwrap()
}

fn descent(metric: Metric, momentum: f32) -> Descent {
    Descent { metric, momentum, beta2: 0.99, rate: Rate { start: 0.01, schedule: Schedule::Constant } }
}

const RULES: [Rule<f32>; 3] = [Rule::Backprop, Rule::Lifted { mu: 0.1 }, Rule::Centred { mu: 0.1 }];

/// What a block becomes in one step from zero means.
fn plain_step(metric: Metric, weights: &mut [f32], gradient: &[f32], samples: usize) {
    for (w, g) in weights.iter_mut().zip(gradient) {
        let g = f64::from(*g) / samples as f64;
        let step = if metric == Metric::Diagonal { g / (g.abs() + 1e-8) } else { g };
        *w = (f64::from(*w) - 0.01 * step) as f32;
    }
}

#[test]
fn a_step_is_a_sweep_and_a_step_of_the_optimiser() {
    let activations: [fn() -> Activation<f32>; 3] = [
        || Relu.into(),
        || BoxClip::symmetric(vec![0.5]).unwrap().into(),
        || SoftThreshold::new(vec![0.1]).unwrap().into(),
    ];
    for (widths, samples) in [(vec![37, 50, 19, 23], 7), (vec![64, 32, 48], 33), (vec![5, 3, 2], 1)] {
        for loss in [Loss::Squared, Loss::Logistic] {
            for (rule, activation) in RULES.into_iter().flat_map(|rule| activations.map(|a| (rule, a))) {
                for metric in [Metric::Euclidean, Metric::Diagonal] {
                    let mut network = network(&widths, loss, activation);
                    let (z, x) = (rows(samples, widths[0], 5), rows(samples, widths[widths.len() - 1], 6));
                    let (losses, gradients) = sweep(&network, rule, &z, &x).unwrap();
                    let mut expected: Vec<Vec<f32>> = network.blocks().iter().map(|b| b.to_vec()).collect();
                    let layers = gradients.len();
                    for (k, block) in expected.iter_mut().enumerate() {
                        plain_step(metric, block, &gradients[k % layers][k / layers], samples);
                    }
                    let mut trainer = GradientDescent::new(&network, rule, descent(metric, 0.0)).unwrap();
                    let step = trainer.step(&mut network, Batch { z: &z, x: &x, indices: &[] }, 0.0).unwrap();
                    let mean = losses.iter().sum::<f64>() / samples as f64;
                    assert!((step.loss - mean).abs() < 1e-5 * mean.abs(), "{} is not {mean}", step.loss);
                    for (k, (ours, expected)) in network.blocks().iter().zip(&expected).enumerate() {
                        // A gradient that is rounding alone may point anywhere, and Adam's first step has its sign.
                        let far = |(a, b): &(&f32, &f32)| (**a - **b).abs() > 2e-5 * b.abs().max(1.0);
                        let gradient = &gradients[k % layers][k / layers];
                        let far = ours
                            .iter()
                            .zip(expected)
                            .zip(gradient)
                            .filter(|(pair, g)| far(pair) && g.abs() > 1e-4);
                        assert_eq!(far.count(), 0, "{widths:?}, {loss}, {rule:?}, {metric}, block {k}");
                    }
                }
            }
        }
    }
}

#[test]
fn batches_of_different_sizes_share_the_memory() {
    let run = |sizes: &[usize]| {
        let mut network = network(&[20, 12, 20], Loss::Squared, || Relu.into());
        let mut trainer =
            GradientDescent::new(&network, Rule::Backprop, descent(Metric::Euclidean, 0.0)).unwrap();
        for &samples in sizes {
            let z = rows(samples, 20, 7);
            trainer.step(&mut network, Batch { z: &z, x: &z, indices: &[] }, 0.0).unwrap();
        }
        network.blocks().concat()
    };
    // A step of the Euclidean metric without momentum depends on its own batch only: of none it is no step.
    let first = run(&[9]);
    assert!(run(&[9, 4]) != first && run(&[9, 4, 30]).iter().all(|w| w.is_finite()));
    let z = rows(9, 19, 7);
    let mut network = network(&[20, 12, 20], Loss::Squared, || Relu.into());
    let mut trainer = GradientDescent::new(&network, Rule::Backprop, descent(Metric::Diagonal, 0.9)).unwrap();
    let said = trainer.step(&mut network, Batch { z: &z, x: &z, indices: &[] }, 0.0).err().unwrap();
    assert!(said.to_string().contains("19"), "{said}");
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let (z, x) = (rows(101, 70, 5), rows(101, 90, 6));
    let run = |threads: usize, rule| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut network = network(&[70, 110, 48, 90], Loss::Squared, || Relu.into());
            let mut trainer = GradientDescent::new(&network, rule, descent(Metric::Diagonal, 0.9)).unwrap();
            let batch = Batch { z: &z, x: &x, indices: &[] };
            let losses: Vec<f64> =
                (0..10).map(|_| trainer.step(&mut network, batch, 0.0).unwrap().loss).collect();
            assert!(losses[9] < 0.9 * losses[0], "{losses:?}");
            (losses, network.blocks().concat())
        })
    };
    for rule in RULES {
        let one = run(1, rule);
        assert!([2, 3, 5].into_iter().all(|threads| run(threads, rule) == one), "{rule:?}");
    }
}

#[test]
fn batches_are_gathered_by_any_number_of_threads() {
    let set = Rows::new(3, (0..30).map(|v| v as f32).collect()).unwrap();
    let gathered = || {
        let mut batch = Rows::zeros(4, 3);
        batch.gather(&set, &[7, 0, 7, 9]).unwrap();
        batch.data().to_vec()
    };
    assert_eq!(gathered(), [21.0, 22.0, 23.0, 0.0, 1.0, 2.0, 21.0, 22.0, 23.0, 27.0, 28.0, 29.0]);
    assert_eq!(same_bits_for_threads(gathered, &[1, 2, 3]), 0);
    let said = |indices: &[usize]| Rows::zeros(2, 3).gather(&set, indices).unwrap_err().to_string();
    assert!(said(&[0, 10]).contains("sample 10"));
    assert!(said(&[0]).contains("1 samples"));
}
