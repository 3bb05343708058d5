//! The steps that backtracking accepts keep their majorants, (eq:maj-theta) and (eq:maj-u), in double precision and by
//! another engine:
//!
//! ```text
//! f(w+) <= f(w) + <w+ - w, g> + 1/(2 step) ||w+ - w||^2
//! ```
//!
//! All that is needed is seen from outside: parameters before and after, and the snapshot's `u` and steps.

use super::*;
use proxlift::engine::Reference;
use proxlift::operator::convolution_norm_bound;
use proxlift::training::Lifted;

/// A batch at work in double precision.
struct Twin {
    network: Network<f64>,
    lifted: Lifted<f64>,
    mu: f64,
}

/// Rounding of single precision, as a share of `E`.
const ROUNDING: f64 = 2e-6;

impl Twin {
    fn new(network: &Network<f32>, batch: &Batch, state: &Snapshot, mu: f64) -> Self {
        let network = network.cast::<f64>();
        let lifted = Lifted::new(&network, batch.z.cast(), batch.x.cast()).unwrap();
        let mut twin = Self { network, lifted, mu };
        (1..DEPTH).for_each(|k| twin.put_u(k, state));
        twin
    }

    /// Takes `u_k` from the snapshot.
    fn put_u(&mut self, k: usize, state: &Snapshot) {
        let length = self.lifted.u[0].sample_len();
        for s in 0..SAMPLES {
            let kept = &state.array(&format!("u_{s}")).unwrap()[(k - 1) * length..][..length];
            let u = &mut self.lifted.u[k].data_mut()[s * length..][..length];
            u.iter_mut().zip(kept).for_each(|(u, kept)| *u = f64::from(*kept));
        }
        self.lifted.refresh((&Reference, &self.network));
    }

    fn energy(&self) -> f64 {
        self.lifted.energy((&Reference, &self.network), self.mu).total()
    }

    fn theta_gradients(&mut self) -> Vec<Vec<f64>> {
        let mut gradients = self.network.theta.clone();
        self.lifted.theta_gradients((&Reference, &self.network), self.mu, &mut gradients);
        gradients.iter().map(|gradient| gradient.weights().to_vec()).collect()
    }

    fn u_gradients(&mut self) -> Vec<Vec<f64>> {
        let mut gradients = self.lifted.u.clone();
        self.lifted.u_gradients((&Reference, &self.network), self.mu, &mut gradients);
        gradients.iter().map(|gradient| gradient.data().to_vec()).collect()
    }

    /// Moves the filters `k` to those of `after` with a step `beta` for a sample's mean.
    fn theta(&mut self, layers: &[usize], after: &Network<f32>, beta: f64, what: &str) {
        let (f, mean) = (self.energy(), 1.0 / SAMPLES as f64);
        let (gradients, mut model, mut distance, mut size) = (self.theta_gradients(), 0.0, 0.0f64, 0.0f64);
        for &k in layers {
            let weights = self.network.theta[k].weights_mut();
            for ((w, after), g) in weights.iter_mut().zip(after.theta[k].weights()).zip(&gradients[k]) {
                let moved = f64::from(*after) - *w;
                model += moved * g + moved * moved / (2.0 * beta * mean);
                // The step is a gradient step and no other.
                distance = distance.max((moved + beta * mean * g).abs());
                size = size.max(moved.abs());
                *w = f64::from(*after);
            }
        }
        self.lifted.refresh((&Reference, &self.network));
        assert!(
            size > 0.0 && distance < 1e-3 * size + 1e-6,
            "{what}: off the gradient by {distance} of {size}"
        );
        assert!(model < 0.0, "{what}: the majorant does not fall");
        assert!(self.energy() <= f + model + ROUNDING * f, "{what}: {} > {f} + {model}", self.energy());
    }

    /// Moves `u` of these layers to that of the snapshot with a step `gamma`.
    fn u(&mut self, layers: &[usize], after: &Snapshot, gamma: f64, what: &str) {
        let (f, gradients, before) = (self.energy(), self.u_gradients(), self.lifted.u.clone());
        let mut model = 0.0;
        for &k in layers {
            self.put_u(k, after);
            let mut step = before[k].clone();
            step.data_mut().iter_mut().zip(&gradients[k]).for_each(|(u, g)| *u -= gamma * g);
            let from = step.clone();
            self.network.activation[k - 1].apply(&from, &mut step);
            for (i, (&u, &from)) in self.lifted.u[k].data().iter().zip(before[k].data()).enumerate() {
                // The step is a forward-backward step and no other; gaps between rows stay zero.
                assert!(
                    (u - step.data()[i]).abs() < 1e-5,
                    "{what}: u_{k}[{i}] is {u}, not {}",
                    step.data()[i]
                );
                model += (u - from) * gradients[k][i] + (u - from).powi(2) / (2.0 * gamma);
            }
        }
        assert!(model < 0.0, "{what}: the majorant does not fall");
        assert!(self.energy() <= f + model + ROUNDING * f, "{what}: {} > {f} + {model}", self.energy());
    }
}

/// Calls `check` with the network and the snapshot before and after every step but the first, which settles the norms.
fn for_each_step(options: Options, mut check: impl FnMut(usize, &mut Twin, &Network<f32>, &Snapshot)) {
    let (engine, batch, mut network) = (Cpu::new(), batch(), network());
    let mut trainer = LbFb::new(&network, options, SAMPLES, 1).unwrap();
    let snapshot = |trainer: &LbFb| {
        let mut state = Snapshot::default();
        trainer.save(&mut state);
        state
    };
    trainer.step(&engine, &mut network, &batch, 0.0).unwrap();
    for step in 1..12 {
        let mut twin = Twin::new(&network, &batch, &snapshot(&trainer), f64::from(options.mu.start));
        let report = trainer.step(&engine, &mut network, &batch, 0.0).unwrap();
        let seen = report.energy_before.unwrap();
        assert!((twin.energy() - seen).abs() < 1e-5 * seen, "{options}: E is {}, not {seen}", twin.energy());
        check(step, &mut twin, &network, &snapshot(&trainer));
        let reached = report.energy.unwrap();
        assert!((twin.energy() - reached).abs() < 1e-5 * reached, "{options}: {} {reached}", twin.energy());
    }
}

#[test]
fn of_all_blocks_at_once() {
    for mu in [1.0, 0.2] {
        let options = Options { mu: Mu::constant(mu), ..Options::PAPER };
        for_each_step(options, |step, twin, network, state| {
            let all: Vec<usize> = (0..=DEPTH).collect();
            let beta = state.scalar("beta_0").unwrap();
            twin.theta(&all, network, beta, &format!("{options}, step {step}, theta"));
            let gamma = state.scalar("gamma_0").unwrap();
            twin.u(&all[1..DEPTH], state, gamma, &format!("{options}, step {step}, u"));
        });
    }
}

#[test]
fn of_one_block_after_the_other() {
    let persistent = Options { auxiliary: Auxiliary::Persistent, ..SWEEP };
    for options in [persistent, Options { mu: Mu::constant(0.2), ..persistent }] {
        for_each_step(options, |step, twin, network, state| {
            for k in (0..=DEPTH).rev() {
                let what = format!("{options}, step {step}, layer {k}");
                let beta = state.scalar(&format!("beta_{k}")).unwrap();
                twin.theta(&[k], network, beta, &what);
                if k >= 2 {
                    // 1/2, and for u_{K-1} the inverse of 1 + mu ||L_K||^2.
                    let norm = convolution_norm_bound(network.last(), 24).unwrap().upper;
                    let last = (1.0 / (1.0 + twin.mu * norm * norm)).min(0.5);
                    twin.u(&[k - 1], state, if k == DEPTH { last } else { 0.5 }, &what);
                }
            }
        });
    }
}
