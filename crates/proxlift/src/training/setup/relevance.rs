//! Which settings go together: presets are adapted to what is given, and what would do nothing is refused, so that nobody
//! believes that it did something.

use super::{Algorithm, Preset, Secant, Settings, StepRule, settings::LIFTED_BREGMAN};
use crate::training::{Auxiliary, BlockOrder, Metric, Stability, ThetaSteps, UStep};
use crate::{Result, engine::SampleLoss, network::Unrolling};

/// The settings of a preset, changed where those that are `given` leave them no sense.
pub(super) fn adapted(mut preset: Settings, given: &Settings, stable: Option<&Stability>) -> Settings {
    let algorithm = given.trainer.or(preset.trainer).unwrap_or_default();
    if preset.trainer != Some(algorithm) {
        preset = algorithm_of(algorithm.preset().settings()).over(preset);
    }
    if given.u == Some(Auxiliary::Persistent) {
        (preset.fresh_noise, preset.fresh_places) = (Some(false), Some(false));
    }
    if given.at_fixed_point() {
        preset = Settings { unrolling: Some(Unrolling::Inertial), batch: Some(8), ..preset };
        if matches!(preset.rate, Some(StepRule::Rate(_))) {
            // Of a step that is a share of what is moved.
            preset.rate = Some(StepRule::Rate(1.5e-2));
        }
    }
    if let Some(stable) = stable {
        let step_scale = Some(stable.step_scale).filter(|&scale| scale != 1.0);
        preset = Settings { unrolling: Some(stable.unrolling), step_scale, ..preset };
    }
    if algorithm != Algorithm::Lb {
        return preset;
    }
    let needs_backtracking = given.u == Some(Auxiliary::Persistent)
        || given.order == Some(BlockOrder::Simultaneous)
        || given.metric == Some(Metric::Euclidean)
        || given.theta_steps.is_some()
        || matches!(given.u_step, Some(UStep::Closed | UStep::Backtracked));
    let backtracks = preset.rate == Some(StepRule::Backtracking);
    if needs_backtracking {
        preset.rate = Some(StepRule::Backtracking);
    } else if backtracks && (given.metric.is_some() || given.rate.is_some()) {
        preset = steps_of(Preset::Lifted.settings()).over(preset);
    }
    if given.rate.or(preset.rate) == Some(StepRule::Backtracking) {
        preset.metric = Some(Metric::Euclidean);
    }
    preset
}

/// How an algorithm takes its steps.
fn steps_of(all: Settings) -> Settings {
    let Settings { rate, schedule, momentum, beta2, metric, .. } = all;
    Settings { rate, schedule, momentum, beta2, metric, ..Settings::default() }
}

/// The same, and what only lifted Bregman has.
fn algorithm_of(all: Settings) -> Settings {
    let Settings { mu, mu_schedule, u, order, inner, .. } = all;
    Settings { mu, mu_schedule, u, order, inner, ..steps_of(all) }
}

/// All settings but those that the algorithm does not look at.
pub(super) fn without_useless(mut all: Settings) -> Settings {
    if all.trainer != Some(Algorithm::Lb) {
        (all.mu, all.mu_schedule, all.u, all.order, all.inner) = (None, None, None, None, None);
        (all.u_step, all.theta_steps) = (None, None);
    }
    // What a training does by default is not told, so that older ones keep their fingerprint.
    all.secant = all.secant.filter(|secant| *secant == Secant::Centred);
    let usual = if all.at_fixed_point() { SampleLoss::Norm } else { SampleLoss::Squared };
    all.loss = all.loss.filter(|loss| *loss != usual);
    if all.rate == Some(StepRule::Backtracking) {
        (all.schedule, all.momentum, all.beta2) = (None, None, None);
    }
    if !has_squares(&all) {
        all.beta2 = None;
    }
    if all.from.is_some() {
        all.lambda = None;
    }
    all
}

/// Refuses settings among the `given` that would silently do nothing; `all` has the preset's too.
pub(super) fn check_relevance(given: &Settings, all: &Settings) -> Result<()> {
    let lifted = all.trainer == Some(Algorithm::Lb);
    let backtracks = all.rate == Some(StepRule::Backtracking);
    for setting in given.given() {
        let name = setting.name();
        refuse!(!lifted && setting.group == LIFTED_BREGMAN => "--{name} is for --trainer lb: leave it out");
        let of_rates = ["schedule", "momentum", "beta2", "loss"].contains(&setting.field);
        refuse!(backtracks && of_rates => "--{name} is for steps with a --rate, not for backtracking");
        let of_grids = ["rate_grid", "grid_epochs"].contains(&setting.field);
        refuse!(all.rate != Some(StepRule::Grid) && of_grids =>
            "--{name} is for --rate grid: leave it or the rate out");
    }
    refuse!(!lifted && backtracks => "backtracking is for --trainer lb: give a number as --rate");
    refuse!(given.beta2.is_some() && !has_squares(all) =>
        "--beta2 is for the diagonal and Kronecker metrics: leave it out");
    let (tied, convex) = (all.tied == Some(true), all.at_fixed_point());
    refuse!((tied || convex) && all.own_synthesis == Some(true) =>
        "--own-synthesis is for layers that are not tied: leave it, or --tied and --convex, out");
    refuse!(all.convex == Some(true) && all.weakly_convex.is_some() =>
        "a function is trained to be convex or weakly convex: leave --convex or --weakly-convex out");
    refuse!(convex && backtracks => "--convex takes steps with a --rate, not by backtracking: give a number");
    refuse!(convex && all.step_scale.is_some_and(|scale| scale != 1.0) =>
        "--convex needs steps that converge: leave --step-scale out");
    refuse!(given.taught.is_some() && given.teacher.is_none() =>
        "--taught is the share of the epochs that a --teacher has: give both or neither");
    refuse!(given.teacher.is_some() && given.noisy.is_some() =>
        "--teacher is for noise that the training adds itself: leave it or --noisy out");
    refuse!(given.teacher.is_some() && backtracks =>
        "--teacher is for steps with a --rate, not for backtracking");
    refuse!(given.from.is_some() && given.start.is_some() =>
        "--start is for a new network: leave it or --from out");
    if given.from.is_some() && given.lambda.is_some() {
        tracing::warn!("--lambda does nothing beside --from: the model has its own thresholds");
    }
    if lifted { check_steps(given, all, backtracks) } else { Ok(()) }
}

/// Refuses settings that contradict a proven Lipschitz constant.
pub(super) fn check_stable(all: &Settings, stable: &Stability) -> Result<()> {
    let Stability { unrolling, step_scale, .. } = *stable;
    refuse!(all.unrolling != Some(unrolling) =>
        "--lipschitz unrolls {unrolling}: leave --unrolling, or a model that is unrolled from something else, out");
    refuse!(all.step_scale.is_some_and(|scale| (scale / step_scale - 1.0).abs() > 1e-6) =>
        "--lipschitz has steps of its own: leave --step-scale out");
    refuse!(all.at_fixed_point() =>
        "--convex trains the limit of infinitely many layers, which has the Lipschitz constant 1 by itself: leave it or \
         --lipschitz out");
    let without = [
        ("tied", all.tied == Some(true)),
        ("bounded", all.bounded == Some(true)),
        ("own-synthesis", all.own_synthesis == Some(true)),
        ("border", all.border.is_some_and(|border| border > 0)),
        ("stride", all.stride.is_some_and(|stride| stride > 1)),
    ];
    for (name, given) in without {
        refuse!(given => "--lipschitz is for networks without --{name}: leave one of them out");
    }
    refuse!(all.rate == Some(StepRule::Backtracking) =>
        "--lipschitz takes steps with a --rate, not by backtracking: give a number");
    Ok(())
}

/// Whether the metric keeps a mean of squares.
fn has_squares(all: &Settings) -> bool {
    matches!(all.metric, Some(Metric::Diagonal | Metric::Kronecker))
}

/// Refuses steps of the blocks that the order or the rate does not leave open.
fn check_steps(given: &Settings, all: &Settings, backtracks: bool) -> Result<()> {
    let other_u_step = |than| given.u_step.is_some_and(|step| step != than);
    let simultaneous = all.order == Some(BlockOrder::Simultaneous);
    refuse!(backtracks && given.secant.is_some() =>
        "--secant is for steps with a --rate: backtracking minimises E itself");
    if !backtracks {
        refuse!(all.u == Some(Auxiliary::Persistent) =>
            "persistent u is for --rate backtracking: give --u anchored, or leave the rate out");
        refuse!(simultaneous =>
            "simultaneous steps are for --rate backtracking: give --order sweep, or leave the rate out");
        refuse!(given.inner.is_some_and(|inner| inner > 1) =>
            "several --inner iterations are for --rate backtracking: leave them or the rate out");
        refuse!(given.theta_steps.is_some() =>
            "--theta-steps is for --rate backtracking: a rate is the same for all layers");
        refuse!(other_u_step(UStep::Minimiser) =>
            "with a --rate, u goes to its minimiser: give --rate backtracking, or leave --u-step out");
    }
    refuse!(simultaneous && other_u_step(UStep::Backtracked) =>
        "simultaneous steps of u are backtracked: leave --u-step out");
    refuse!(simultaneous && given.theta_steps == Some(ThetaSteps::Layer) =>
        "simultaneous steps are the same for all layers: leave --theta-steps out");
    Ok(())
}
