//! Settings that would do nothing beside others are refused, so that nobody believes they did something.

use super::settings::{Order, Rate, Settings, ThetaSteps, Trainer, UStep};
use proxlift::{Error, Result};

/// Refuses settings of `told` that would silently do nothing; `all` has the preset's too.
///
/// # Errors
/// In a sentence that says which, and why.
pub fn check_relevance(told: &Settings, all: &Settings, trainer: Trainer, rate: Rate) -> Result<()> {
    let lifted = [
        ("mu", told.mu.is_some()),
        ("mu-schedule", told.mu_schedule.is_some()),
        ("u", told.u.is_some()),
        ("order", told.order.is_some()),
        ("inner", told.inner.is_some()),
        ("u-step", told.u_step.is_some()),
        ("theta-steps", told.theta_steps.is_some()),
    ];
    if trainer != Trainer::Lb {
        if let Some((name, _)) = lifted.iter().find(|(_, given)| *given) {
            return Err(Error::invalid(format!("--{name} is for --trainer lb: leave it out")));
        }
        if rate == Rate::Backtracking {
            return Err(Error::invalid("backtracking is for --trainer lb: give a number as --rate"));
        }
    }
    if rate == Rate::Backtracking {
        let useless = [
            ("schedule", told.schedule.is_some()),
            ("momentum", told.momentum.is_some()),
            ("beta2", told.beta2.is_some()),
        ];
        if let Some((name, _)) = useless.iter().find(|(_, given)| *given) {
            return Err(Error::invalid(format!("--{name} is for steps with a --rate, not for backtracking")));
        }
    }
    if rate != Rate::Grid && (told.rate_grid.is_some() || told.grid_epochs.is_some()) {
        return Err(Error::invalid(
            "--rate-grid and --grid-epochs are for --rate grid: leave them or the rate out",
        ));
    }
    if trainer == Trainer::Lb { check_steps(told, all, rate) } else { Ok(()) }
}

/// Refuses steps of the blocks that the order or the rate does not leave open.
fn check_steps(told: &Settings, all: &Settings, rate: Rate) -> Result<()> {
    if rate != Rate::Backtracking {
        if told.theta_steps.is_some() {
            return Err(Error::invalid(
                "--theta-steps is for --rate backtracking: a rate is the same for all layers",
            ));
        }
        if told.u_step.is_some_and(|step| step != UStep::Minimiser) {
            return Err(Error::invalid(
                "with a --rate, u goes to its minimiser: give --rate backtracking, or leave --u-step out",
            ));
        }
    }
    if all.order == Some(Order::Simultaneous) {
        if told.u_step.is_some_and(|step| step != UStep::Backtracked) {
            return Err(Error::invalid("simultaneous steps of u are backtracked: leave --u-step out"));
        }
        if told.theta_steps == Some(ThetaSteps::Layer) {
            return Err(Error::invalid(
                "simultaneous steps are the same for all layers: leave --theta-steps out",
            ));
        }
    }
    Ok(())
}
