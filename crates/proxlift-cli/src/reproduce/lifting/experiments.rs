//! What is trained: every experiment as a list of cases, each with the methods that are compared in it.

use super::denoising;
use super::digits::{Digits, Shape};
use super::job::{Job, Task};
use super::method::Method::{self, Backprop, Centred, CentredFalling, Falling, Lifted, StraightThrough};
use super::relatives::Relative;

/// How large they are.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Size {
    pub name: &'static str,
    pub seeds: u64,
    /// Digits to train on, epochs over them, and digits to test with.
    pub samples: usize,
    pub tests: usize,
    pub epochs: usize,
    /// Rates of Adam for general networks, and for the denoiser.
    pub rates: &'static [f64],
    pub denoiser_rates: &'static [f64],
    /// Depths of the denoiser, its patches and epochs.
    pub depths: &'static [usize],
    pub patches: usize,
    pub patch_epochs: usize,
    /// Hidden layers of the chains.
    pub chains: &'static [usize],
    /// Layers of the chains whose memory is measured.
    pub memory_depths: &'static [usize],
    /// Depths at which all layers move at once, rounds over the samples, and seconds of each timing.
    pub parallel_depths: &'static [usize],
    pub parallel_rounds: usize,
    pub timing_seconds: f64,
    /// Processor time of a training at infinite depth, its pictures, and those to test with.
    pub infinite_seconds: f64,
    pub infinite_samples: usize,
    pub infinite_tests: usize,
    /// Passes of an inversion through the denoiser and through the encoder, and of how many pictures.
    pub passes: (f64, f64),
    pub inverted: usize,
}

pub const FULL: Size = Size {
    name: "full",
    seeds: 3,
    samples: 2000,
    tests: 1000,
    epochs: 10,
    rates: &[1e-3, 3e-3, 1e-2, 3e-2, 1e-1],
    denoiser_rates: &[2e-3, 4e-3, 8e-3],
    depths: &[5, 15, 30, 60, 100],
    patches: 150,
    patch_epochs: 6,
    chains: &[4, 12, 24],
    memory_depths: &[10, 30, 100],
    parallel_depths: &[5, 10, 20, 40],
    parallel_rounds: 8,
    timing_seconds: 0.5,
    infinite_seconds: 6.0,
    infinite_samples: 400,
    infinite_tests: 60,
    passes: (400.0, 1000.0),
    inverted: 4,
};

pub const QUICK: Size = Size {
    name: "quick",
    seeds: 3,
    samples: 500,
    tests: 1000,
    epochs: 6,
    rates: &[3e-3, 1e-2],
    denoiser_rates: &[4e-3],
    depths: &[5, 30, 100],
    patches: 60,
    patch_epochs: 4,
    chains: &[4, 12],
    memory_depths: &[10, 30],
    parallel_depths: &[5, 20],
    parallel_rounds: 2,
    timing_seconds: 0.1,
    infinite_seconds: 1.0,
    infinite_samples: 400,
    infinite_tests: 20,
    passes: (150.0, 300.0),
    inverted: 2,
};

pub const TINY: Size = Size {
    name: "tiny",
    seeds: 2,
    samples: 60,
    tests: 100,
    epochs: 2,
    rates: &[3e-3],
    denoiser_rates: &[4e-3],
    depths: &[3],
    patches: 10,
    patch_epochs: 1,
    chains: &[2],
    memory_depths: &[3],
    parallel_depths: &[3],
    parallel_rounds: 1,
    timing_seconds: 0.01,
    infinite_seconds: 0.03,
    infinite_samples: 20,
    infinite_tests: 4,
    passes: (10.0, 20.0),
    inverted: 1,
};

impl Size {
    /// What a reader of a smaller report must know.
    pub fn caution(&self) -> Option<String> {
        (self.name != "full").then(|| {
            format!(
                "The {} version: fewer samples, epochs and rates. The shape of the report, not its figures.",
                self.name
            )
        })
    }

    /// A classifier with these hidden layers.
    fn classifier(&self, layers: usize, shape: Shape) -> Digits {
        Digits {
            hidden: vec![64; layers],
            autoencoder: false,
            shape,
            gain: 1.0,
            samples: self.samples,
            batch: 50,
            epochs: self.epochs,
            bits: None,
            noise: 0.0,
        }
    }
}

/// The rules that every experiment compares.
const RULES: [Method; 6] = [Backprop, Lifted(0.1), Lifted(1.0), Lifted(10.0), Centred(1.0), Centred(10.0)];

/// The same, and what people do elsewhere where tangents vanish.
const RULES_AND_STRAIGHT: [Method; 7] =
    [Backprop, StraightThrough, Lifted(0.1), Lifted(1.0), Lifted(10.0), Centred(1.0), Centred(10.0)];

const SHAPES: [Shape; 3] = [Shape::Relu, Shape::Clip, Shape::Soft];

struct List<'a> {
    size: &'a Size,
    jobs: Vec<Job>,
}

impl List<'_> {
    fn add(&mut self, experiment: &'static str, case: &str, methods: &[Method], task: &Task) {
        let denoises = matches!(task, Task::Denoising(_));
        let rates = if denoises { self.size.denoiser_rates } else { self.size.rates };
        for &method in methods {
            for &rate in rates {
                let jobs = (0..self.size.seeds)
                    .map(|seed| Job::new(experiment, case, (method, rate), seed, task.clone()));
                self.jobs.extend(jobs);
            }
        }
    }

    /// Relatives have a weight of the loss where the others have a rate.
    fn add_relatives(&mut self, experiment: &'static str, case: &str, task: &Digits) {
        for relative in Relative::ALL {
            for &mu in relative.weights() {
                let task = Digits { batch: relative.batch(task), ..task.clone() };
                let task = Task::Relative(task, relative);
                let jobs = (0..self.size.seeds)
                    .map(|seed| Job::new(experiment, case, (Lifted(mu), mu), seed, task.clone()));
                self.jobs.extend(jobs);
            }
        }
    }
}

/// All trainings.
pub fn jobs(size: &Size) -> Vec<Job> {
    let mut list = List { size, jobs: Vec::new() };
    depth(&mut list);
    few(&mut list);
    starts(&mut list);
    arithmetic(&mut list);
    weights(&mut list);
    digits(&mut list);
    list.jobs
}

/// a. Depth, where tangents vanish in saturated units.
fn depth(list: &mut List<'_>) {
    let size = list.size;
    for &depth in size.depths {
        let task = Task::Denoising(Box::new(denoising::settings(depth, size.patches, size.patch_epochs)));
        list.add("depth", &format!("denoiser, K = {depth}"), &RULES, &task);
    }
    for &layers in size.chains {
        let task = Task::Digits(size.classifier(layers, Shape::Clip));
        list.add("depth", &format!("chain of clips, {layers} layers"), &RULES_AND_STRAIGHT, &task);
    }
}

/// b. Few samples, few epochs.
fn few(list: &mut List<'_>) {
    let size = list.size;
    for shape in [Shape::Relu, Shape::Clip] {
        let classifier = size.classifier(4, shape);
        let few = Digits { samples: 100, epochs: 3, batch: 10, ..classifier.clone() };
        list.add("few", &format!("{}, 100 digits, 3 epochs", shape.label()), &RULES, &Task::Digits(few));
        let once = Digits { epochs: 1, batch: 20, ..classifier };
        list.add(
            "few",
            &format!("{}, {} digits once", shape.label(), once.samples),
            &RULES,
            &Task::Digits(once),
        );
    }
    let task = Task::Denoising(Box::new(denoising::settings(15, 20, 3)));
    list.add("few", "denoiser, K = 15, 20 patches, 3 epochs", &RULES, &task);
}

/// c. Starts that are too small or too large.
fn starts(list: &mut List<'_>) {
    for shape in SHAPES {
        for gain in [0.1, 1.0, 10.0] {
            let task = Digits { gain, ..list.size.classifier(4, shape) };
            let case = format!("{}, start x {gain}", shape.label());
            list.add("starts", &case, &RULES_AND_STRAIGHT, &Task::Digits(task));
        }
    }
}

/// d. Few bits, and noise on gradients.
fn arithmetic(list: &mut List<'_>) {
    for shape in [Shape::Relu, Shape::Clip] {
        let exact = list.size.classifier(4, shape);
        for (name, bits, noise) in [
            ("8 bits", Some(8), 0.0),
            ("4 bits", Some(4), 0.0),
            ("noise x 1", None, 1.0),
            ("noise x 3", None, 3.0),
        ] {
            let task = Digits { bits, noise, ..exact.clone() };
            list.add("arithmetic", &format!("{}, {name}", shape.label()), &RULES, &Task::Digits(task));
        }
    }
}

/// e. The weight of the loss: constant or falling, one-sided or centred.
fn weights(list: &mut List<'_>) {
    let methods = [
        Backprop,
        Lifted(0.1),
        Lifted(1.0),
        Lifted(10.0),
        Falling(10.0, 0.1),
        Centred(0.1),
        Centred(1.0),
        Centred(10.0),
        CentredFalling(10.0, 0.1),
    ];
    for (shape, gain) in [(Shape::Relu, 1.0), (Shape::Clip, 3.0), (Shape::Soft, 1.0)] {
        let task = Digits { gain, ..list.size.classifier(4, shape) };
        list.add("weights", &format!("{}, start x {gain}", shape.label()), &methods, &Task::Digits(task));
    }
}

/// f. A classifier and an autoencoder, by all relatives.
fn digits(list: &mut List<'_>) {
    let classifier = Digits { hidden: vec![64, 32], ..list.size.classifier(2, Shape::Relu) };
    let autoencoder = Digits { hidden: vec![64, 16, 64], autoencoder: true, ..classifier.clone() };
    for (name, task) in [("classifier", classifier), ("autoencoder", autoencoder)] {
        list.add("digits", name, &RULES, &Task::Digits(task.clone()));
        list.add_relatives("digits", name, &task);
    }
}
