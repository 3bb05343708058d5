//! LB-FB: mini-batch block-coordinate forward-backward on the lifted energy, with two-way backtracking (algo:BC-FB).
//!
//! Every parameter block takes the longest step that keeps its majorant, in the Euclidean norm or in that of a metric;
//! every `u`-block takes one whose constant is known, or that is searched for. `E` cannot rise on the batch.

use super::blocks::{Blocks, UMemory};
use super::optimiser::gauss_newton::{GaussNewton, OBSERVE_EVERY};
use super::{
    Auxiliary, Batch, BlockOrder, Lifted, Machine, Metric, Options, Report, Snapshot, ThetaSteps, Trainer,
    UStep, backtracking::Backtracking,
};
use crate::network::{Network, Norms};
use crate::{Result, engine::Engine, team::Ranks};
use std::sync::Arc;

/// Where the first search of a parameter step starts: longer than most majorants allow, so that it is the search that
/// finds the step.
const FIRST_STEP: f64 = 1.0;

/// By how much a parameter step is tried longer than the last. A step must suit the batches to come as well, so it
/// grows slowly: the accepted ones stay near the least that the last hundred batches allowed, and few are refused.
const STEP_GROWTH: f64 = 1.02;

/// The lifted Bregman trainer with backtracking.
pub struct LbFb {
    options: Options,
    norms: Norms<f32>,
    metric: Option<GaussNewton>,
    /// The parameter step of each layer; the first also where all layers share one.
    beta: Vec<Backtracking>,
    /// The `u` step of each layer; the first is that of all layers at once in the simultaneous order.
    gamma: Vec<Backtracking>,
    /// `u_1..u_{K-1}` of every sample, `[sample][k][j][pixels with gaps]`, when persistent. Shared with a checkpoint
    /// while that is written, so that it costs no second copy.
    kept: Vec<Arc<Vec<f32>>>,
    /// Which samples were visited, and which of these keep their `u` here; the others keep it with another member of a team.
    visited: Vec<bool>,
    at_home: Vec<bool>,
    visits: u64,
    lifted: Option<Lifted<f32>>,
    memory: UMemory,
}

impl LbFb {
    /// A trainer for `network` on a set of `samples`.
    /// Fails when the options are out of range, contradict each other, or are not for this network.
    pub fn new(network: &Network<f32>, options: Options, samples: usize, seed: u64) -> Result<Self> {
        options.validate(network)?;
        let metric = match options.metric {
            Metric::GaussNewton => Some(GaussNewton::new(network, true, seed)),
            Metric::Diagonal => Some(GaussNewton::new(network, false, seed)),
            Metric::Euclidean | Metric::Kronecker => None,
        };
        let kept = if options.auxiliary == Auxiliary::Persistent { samples } else { 0 };
        let beta = Backtracking { step: FIRST_STEP, grow: STEP_GROWTH, ..Backtracking::default() };
        // The curvature of q is 1, so that no step of a single block above 1 keeps the majorant.
        let gamma = match options.order {
            BlockOrder::Sweep => Backtracking { step: 0.5, longest: 1.0, ..Backtracking::default() },
            BlockOrder::Simultaneous => Backtracking { step: 0.25, ..Backtracking::default() },
        };
        Ok(Self {
            options,
            norms: Norms::new(network, seed),
            metric,
            beta: vec![beta; network.theta.len()],
            gamma: vec![gamma; network.theta.len() - 1],
            kept: vec![Arc::default(); kept],
            visited: vec![false; kept],
            at_home: vec![true; kept],
            visits: 0,
            lifted: None,
            memory: UMemory::default(),
        })
    }

    /// `theta <- theta - beta grad_theta f`, then `u <- prox(u - gamma grad_u f)`, all blocks at once (algo:BC-FB).
    fn simultaneous(&mut self, blocks: &mut Blocks<'_>) {
        blocks.all_theta(&mut self.beta[0]);
        blocks.all_u(&mut self.gamma[0]);
    }

    /// `theta_K, u_{K-1}, theta_{K-1}, ..., u_1, theta_1, theta_0`.
    fn sweep(&mut self, blocks: &mut Blocks<'_>) {
        let shared = self.options.theta_steps == ThetaSteps::Global;
        if shared {
            // A step for all layers grows once in a sweep, and shrinks with each layer that refuses it.
            self.beta[0].step *= STEP_GROWTH;
            self.beta[0].grow = 1.0;
        }
        for k in (0..self.beta.len()).rev() {
            blocks.theta(k, self.metric.as_ref(), &mut self.beta[if shared { 0 } else { k }]);
            if k >= 2 {
                match self.options.u_step {
                    UStep::Closed => blocks.u(k - 1, blocks.closed_u_step(k - 1)),
                    UStep::Minimiser => blocks.u(k - 1, blocks.unit_u_step(k - 1)),
                    UStep::Backtracked => blocks.searched_u(k - 1, &mut self.gamma[k - 1]),
                }
            }
        }
    }

    fn observe(&mut self, machine: Machine<'_, f32>, lifted: &Lifted<f32>) {
        if let Some(metric) = &mut self.metric
            && self.visits.is_multiple_of(OBSERVE_EVERY)
        {
            metric.observe(machine, lifted);
        }
    }

    /// Puts the kept `u` of the batch's samples in place; a sample seen for the first time starts anchored.
    fn recall(&self, ranks: &Ranks, lifted: &mut Lifted<f32>, batch: &Batch) {
        let length = lifted.u[0].sample_len();
        let (all, indices) = (lifted.u[1..].len() * length, &batch.indices);
        let visited = |s: usize| self.visited[indices[s]];
        let give = |s: usize, to: &mut Vec<f32>| to.extend_from_slice(&self.kept[indices[s]]);
        ranks.to_places(all, indices.len(), visited, give, |s, kept| {
            for (u, kept) in lifted.u[1..].iter_mut().zip(kept.chunks_exact(length)) {
                u.data_mut()[s * length..][..length].copy_from_slice(kept);
            }
        });
    }

    fn keep(&mut self, ranks: &Ranks, lifted: &Lifted<f32>, batch: &Batch) {
        let (all, indices) = (lifted.u[1..].len() * lifted.u[0].sample_len(), &batch.indices);
        let give = |s: usize, to: &mut Vec<f32>| {
            lifted.u[1..].iter().for_each(|u| to.extend_from_slice(u.sample(s)))
        };
        ranks.to_homes(all, indices.len(), give, |s, values| {
            let kept = Arc::make_mut(&mut self.kept[indices[s]]);
            kept.clear();
            kept.reserve_exact(all);
            kept.extend_from_slice(values);
        });
        indices.iter().for_each(|&i| self.visited[i] = true);
    }
}

impl Trainer for LbFb {
    fn describe(&self) -> String {
        self.options.to_string()
    }

    fn step(
        &mut self,
        engine: &dyn Engine<f32>,
        network: &mut Network<f32>,
        batch: &Batch,
        progress: f64,
    ) -> Result<Report> {
        let Options { mu, order, auxiliary, inner, constraint, .. } = self.options;
        self.norms.start(network);
        let mut lifted = Lifted::reuse(self.lifted.take(), network, &batch.z, &batch.x)?;
        lifted.anchor((engine, network));
        let mut report = Report { steps: (f64::INFINITY, 0.0), ..Report::default() };
        report.loss = lifted.block((engine, network), lifted.u.len(), 1.0);
        if auxiliary == Auxiliary::Persistent {
            self.recall(engine.ranks(), &mut lifted, batch);
            lifted.refresh((engine, network));
        }
        self.observe((engine, network), &lifted);

        let mut memory = std::mem::take(&mut self.memory);
        memory.fit(&lifted);
        let mut blocks = Blocks {
            engine,
            network,
            lifted: &mut lifted,
            mu: mu.at(progress),
            constraint,
            memory: &mut memory,
            report: &mut report,
        };
        blocks.report.energy_before = Some(blocks.energy().total());
        for iteration in 0..inner {
            match order {
                BlockOrder::Simultaneous => self.simultaneous(&mut blocks),
                BlockOrder::Sweep => {
                    if iteration > 0 && auxiliary == Auxiliary::Anchored {
                        blocks.lifted.anchor((engine, blocks.network));
                    }
                    self.sweep(&mut blocks);
                    blocks.lifted.refresh((engine, blocks.network));
                }
            }
        }
        let energy = blocks.energy();
        report.energy = Some(energy.total());
        report.blocks = energy.blocks();

        if auxiliary == Auxiliary::Persistent {
            self.keep(engine.ranks(), &lifted, batch);
        }
        (self.lifted, self.memory) = (Some(lifted), memory);
        self.visits += 1;
        self.norms.follow_among(network, engine.ranks());
        Ok(report)
    }

    fn join(&mut self, at_home: &dyn Fn(usize) -> bool) {
        for (s, (kept, here)) in self.kept.iter_mut().zip(&mut self.at_home).enumerate() {
            *here = at_home(s);
            if !*here {
                *kept = Arc::default();
            }
        }
    }

    fn save(&self, state: &mut Snapshot) {
        self.norms.save(state);
        self.metric.iter().for_each(|metric| metric.save(state));
        for (name, steps) in [("beta", &self.beta), ("gamma", &self.gamma)] {
            steps.iter().enumerate().for_each(|(k, s)| state.put_scalar(format!("{name}_{k}"), s.step));
        }
        state.put_scalar("visits", self.visits as f64);
        let kept = self.kept.iter().enumerate().filter(|(s, _)| self.at_home[*s]);
        kept.for_each(|(s, kept)| state.share(format!("u_{s}"), kept));
    }

    fn restore(&mut self, state: &Snapshot) -> Result<()> {
        self.norms.restore(state)?;
        self.metric.iter_mut().try_for_each(|metric| metric.restore(state))?;
        for (name, steps) in [("beta", &mut self.beta), ("gamma", &mut self.gamma)] {
            for (k, backtracking) in steps.iter_mut().enumerate() {
                backtracking.step = state.scalar(&format!("{name}_{k}"))?;
            }
        }
        self.visits = state.scalar("visits")? as u64;
        for (s, kept) in self.kept.iter_mut().enumerate() {
            *kept = Arc::clone(state.array(&format!("u_{s}"))?);
            self.visited[s] = !kept.is_empty();
        }
        Ok(())
    }
}
