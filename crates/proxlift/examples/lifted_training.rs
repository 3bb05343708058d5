//! A classifier of drawn digits from a good start and from a bad one, by back-propagation and by lifting.
//!
//!     cargo run --release --example lifted_training
//!
//! The activations are clips, flat outside `[-1, 1]`. With weights three times too large, many features start where they are
//! flat: the tangent, `d = s'(v) back`, is zero there, and back-propagation passes nothing down. The secant of the centred rule,
//! `d = (s(v + back) - s(v - back)) / 2`, sees as far as `back` reaches, and that grows with `mu`. It is one run of one seed.

use proxlift::Result;
use proxlift::dataset::Labelled;
use proxlift::lifting::{Batch, Dense, GradientDescent, Loss, Network, Rows, Rule, Trainer, one_hot};
use proxlift::prox::BoxClip;
use proxlift::random::seeded;
use proxlift::training::{Descent, Metric, Rate, Schedule};

const HIDDEN: [usize; 3] = [64, 64, 64];
const BATCH: usize = 50;
const EPOCHS: usize = 10;

fn main() -> Result<()> {
    let (training, test) = (Labelled::drawn(2000, 1), Labelled::drawn(1000, 2));
    println!("| weights | rule | mean loss of the last epoch | wrong on the test set (%) |");
    println!("|---|---|---|---|");
    for (start, gain) in [("suitable", 1.0), ("3 times too large", 3.0)] {
        for (name, rule) in [
            ("back-propagation", Rule::Backprop),
            ("centred lifting, mu 1", Rule::Centred { mu: 1.0 }),
            ("centred lifting, mu 10", Rule::Centred { mu: 10.0 }),
        ] {
            let mut network = classifier(gain)?;
            let loss = train(&mut network, rule, &training)?;
            println!("| {start} | {name} | {loss:.3} | {:.1} |", wrong(&network, &test)?);
        }
    }
    Ok(())
}

fn classifier(gain: f64) -> Result<Network<f32>> {
    let (rng, mut inputs, mut network) = (&mut seeded(3), 28 * 28, Network::new(Loss::Softmax));
    for outputs in HIDDEN {
        network = network.layer(Dense::random(inputs, outputs, gain, rng)?, BoxClip::symmetric(vec![1.0])?);
        inputs = outputs;
    }
    network.output(Dense::random(inputs, Labelled::CLASSES, gain, rng)?)
}

fn pixels(set: &Labelled, samples: impl Iterator<Item = usize>) -> Result<Rows<f32>> {
    Rows::new(28 * 28, samples.flat_map(|i| set.picture(i)).copied().collect())
}

/// Trains, and returns the mean loss of the last epoch.
fn train(network: &mut Network<f32>, rule: Rule<f32>, set: &Labelled) -> Result<f64> {
    let rate = Rate { start: 1e-3, schedule: Schedule::Constant };
    let descent = Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.999, rate };
    let mut trainer = GradientDescent::new(network, rule, descent)?;
    let (batches, mut losses) = (set.len() / BATCH, Vec::new());
    for epoch in 0..EPOCHS {
        losses.clear();
        for b in 0..batches {
            // The digits stand in turns: with a stride that is prime to their number, every batch holds all of them.
            let indices: Vec<usize> =
                (0..BATCH).map(|i| (b * BATCH + i + 7 * epoch) * 1009 % set.len()).collect();
            let labels: Vec<usize> = indices.iter().map(|&i| set.labels()[i]).collect();
            let (z, x) = (pixels(set, indices.iter().copied())?, one_hot(&labels, Labelled::CLASSES)?);
            let batch = Batch { z: &z, x: &x, indices: &indices };
            losses.push(trainer.step(network, batch, epoch as f64 / EPOCHS as f64)?.loss);
        }
    }
    Ok(losses.iter().sum::<f64>() / batches as f64)
}

fn wrong(network: &Network<f32>, set: &Labelled) -> Result<f64> {
    let pass = network.forward(&pixels(set, 0..set.len())?);
    let class = |row: &[f32]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0);
    let wrong = pass.output().rows().zip(set.labels()).filter(|(row, label)| class(row) != **label).count();
    Ok(100.0 * wrong as f64 / set.len() as f64)
}
