//! A teacher: while it has the training, batches are what it makes of the noisy patches, and then the clean patches.

use super::*;
use proxlift::engine::Engine;
use proxlift::field::phases::{apart, together};
use proxlift::image::symmetry::Symmetry;
use proxlift::training::{Report, Taught};
use proxlift::{Error, Result};
use std::sync::{Arc, Mutex};

/// A trainer that keeps the targets it was given.
struct Probe(Arc<Mutex<Vec<f32>>>);

impl Trainer for Probe {
    fn describe(&self) -> String {
        "a probe".into()
    }

    fn step(&mut self, _: &dyn Engine<f32>, _: &mut Network<f32>, batch: &Batch, _: f64) -> Result<Report> {
        *self.0.lock().unwrap() = batch.x.to_planar();
        Ok(Report::default())
    }

    fn save(&self, _: &mut Snapshot) {}

    fn restore(&mut self, _: &Snapshot) -> Result<()> {
        Ok(())
    }
}

fn taught(
    student: &Network<f32>,
    teacher: &Network<f32>,
    share: f64,
) -> Result<(Taught, Arc<Mutex<Vec<f32>>>)> {
    let seen = Arc::default();
    let trainer = Box::new(Probe(Arc::clone(&seen)));
    Ok((Taught::new(trainer, student, teacher.clone(), share)?, seen))
}

#[test]
fn lessons_are_what_the_teacher_makes_in_every_orientation_until_its_share_is_done() {
    let (engine, teacher, plain) = (Cpu::new(), network(), batch());
    let phased = Architecture { depth: 3, features: 5, kernel: 3, channels: 4 };
    let phased = Network::<f32>::glorot(phased, 0.1, 7).unwrap();
    for (student, stride) in [(network(), 1), (phased, 2)] {
        // The batch as the student sees it, in phases where its convolutions have stride 2.
        let grid = student.architecture().grid(SIZE / stride, SIZE / stride).unwrap();
        let planes = |field: &Field<f32>| {
            let planar = field.to_planar();
            let planar = apart(&planar, (SIZE, SIZE), stride);
            Field::from_planar(SAMPLES, student.architecture().channels, grid, &planar).unwrap()
        };
        let seen_batch = Batch { z: planes(&plain.z), x: planes(&plain.x), indices: plain.indices.clone() };
        let (mut trainer, seen) = taught(&student, &teacher, 0.5).unwrap();
        let mut step = |progress| {
            trainer.step(&engine, &mut student.clone(), &seen_batch, progress).unwrap();
            let size = (SIZE / stride, SIZE / stride);
            together(seen.lock().unwrap().clone(), size, stride).to_vec()
        };
        for i in 0..10 {
            let mut expected = plain.z.zeros_like();
            engine.denoise(&teacher.turned(Symmetry::nth(i)), &plain.z, &mut expected);
            assert!(step(0.04 * i as f64) == expected.to_planar(), "lesson {i} with stride {stride}");
        }
        assert!(step(0.5) == plain.x.to_planar() && step(0.9) == plain.x.to_planar());
    }
}

#[test]
fn a_training_is_not_resumed_with_another_teacher() {
    let (teacher, student) = (network(), network());
    let mut state = Snapshot::default();
    taught(&student, &teacher, 0.5).unwrap().0.save(&mut state);
    taught(&student, &teacher, 0.5).unwrap().0.restore(&state).unwrap();
    let mut other = teacher.clone();
    other.theta[2].weights_mut()[3] += 1e-3;
    let error = taught(&student, &other, 0.5).unwrap().0.restore(&state).unwrap_err();
    assert!(error.to_string().contains("teacher"), "{error}");
}

#[test]
fn teachers_that_cannot_teach_are_refused() {
    let (teacher, student) = (network(), network());
    let colour = Architecture { channels: 3, ..student.architecture() };
    let colour = Network::<f32>::glorot(colour, 0.1, 1).unwrap();
    let words = |result: Result<(Taught, _)>| match result {
        Err(Error::Invalid(words)) => words,
        _ => panic!("not refused"),
    };
    assert!(words(taught(&student, &colour, 0.5)).contains("channels"));
    for share in [0.0, -0.1, 1.1, f64::NAN] {
        assert!(words(taught(&student, &teacher, share)).contains("share"), "{share}");
    }
}
