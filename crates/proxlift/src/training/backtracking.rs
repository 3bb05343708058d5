//! Two-way backtracking (Section 3.4): the longest step that keeps a majorant.
//!
//! A step of length `beta` from `w` along a direction leads to `w+` and is accepted if
//!
//! ```text
//! f(w+) <= f(w) + <w+ - w, g> + 1/(2 beta) ||w+ - w||^2            (eq:maj-theta), (eq:maj-u)
//! ```
//!
//! with `g` the gradient of `f` at `w`. Every search starts a little longer than the last accepted step and shortens it
//! until the inequality holds. Blocks that are independent, such as the samples of a batch given `theta`, are searched
//! side by side, each with a step of its own.

/// A step that remembers: the next search starts from a longer one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backtracking {
    /// The step that was accepted last.
    pub step: f64,
    /// By how much a search starts longer than the last accepted step.
    pub grow: f64,
    /// By how much a refused step is shortened.
    pub shrink: f64,
    /// No step is longer.
    pub longest: f64,
    /// The search ends without a step after so many refusals.
    pub most: usize,
}

impl Default for Backtracking {
    fn default() -> Self {
        Self { step: 1e-3, grow: 1.5, shrink: 0.5, longest: f64::INFINITY, most: 30 }
    }
}

/// Differences below this share of `f` cannot be told from rounding.
const RESOLUTION: f64 = 1e-7;

/// What a step led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// `f(w+)`.
    pub value: f64,
    /// `<w+ - w, g> + 1/(2 beta) ||w+ - w||^2`.
    pub model: f64,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The longest accepted step; none if all were refused.
    pub step: Option<f64>,
    /// How many steps were refused.
    pub refused: usize,
}

impl Backtracking {
    /// Searches a step for every block, `f` being its value now. `attempt` takes steps of these lengths and tells what each
    /// block made of its own.
    ///
    /// It is called last with the steps that were found, zero for a block that found none.
    pub fn search(&mut self, f: &[f64], mut attempt: impl FnMut(&[f64]) -> Vec<Trial>) -> Found {
        let mut steps = vec![(self.step * self.grow).min(self.longest); f.len()];
        let mut open = vec![true; f.len()];
        let mut refused = 0;
        for _ in 0..=self.most {
            let trials = attempt(&steps);
            for (((&f, trial), step), open) in f.iter().zip(trials).zip(&mut steps).zip(&mut open) {
                if *open && trial.value <= f + trial.model + RESOLUTION * f.abs() {
                    *open = false;
                } else if *open {
                    *step *= self.shrink;
                    refused += 1;
                }
            }
            if !open.contains(&true) {
                break;
            }
        }
        if open.contains(&true) {
            steps.iter_mut().zip(&open).filter(|(_, open)| **open).for_each(|(step, _)| *step = 0.0);
            attempt(&steps);
        }
        let longest = steps.into_iter().fold(0.0, f64::max);
        let step = (longest > 0.0).then_some(longest);
        self.step = step.unwrap_or(self.step);
        Found { step, refused }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `f(t) = c/2 t^2` from `t = 1` along its gradient: the inequality holds up to `1/c`.
    fn search(curvatures: &[f64], start: f64) -> (Backtracking, Found, Vec<f64>) {
        let mut backtracking = Backtracking { step: start, ..Backtracking::default() };
        let f: Vec<f64> = curvatures.iter().map(|c| 0.5 * c).collect();
        let mut last = Vec::new();
        let found = backtracking.search(&f, |steps| {
            last = steps.to_vec();
            let trial = |(c, step): (&f64, &f64)| Trial {
                value: 0.5 * c * (1.0 - step * c).powi(2),
                model: -0.5 * step * c * c,
            };
            curvatures.iter().zip(steps).map(trial).collect()
        });
        (backtracking, found, last)
    }

    #[test]
    fn a_step_that_is_too_long_is_shortened_and_a_short_one_grows() {
        let (after, found, _) = search(&[4.0], 100.0);
        assert!(after.step <= 0.25 + 1e-6 && after.step > 0.125 && found.refused > 5);
        let (after, found, _) = search(&[4.0], 0.01);
        assert_eq!((after.step, found.refused), (0.01 * 1.5, 0));
    }

    #[test]
    fn every_block_finds_its_own_step_and_the_longest_is_remembered() {
        let (after, _, steps) = search(&[4.0, 1.0, 16.0], 100.0);
        for (step, curvature) in steps.iter().zip([4.0, 1.0, 16.0]) {
            assert!(*step <= 1.0 / curvature + 1e-6 && *step > 0.5 / curvature, "{steps:?}");
        }
        assert_eq!(after.step, steps[1]);
    }

    #[test]
    fn a_function_that_only_rises_gets_no_step_and_is_put_back() {
        let mut backtracking = Backtracking::default();
        let mut last = f64::NAN;
        let found = backtracking.search(&[1.0], |steps| {
            last = steps[0];
            vec![Trial { value: 1.0 + steps[0].sqrt(), model: -0.5 * steps[0] }]
        });
        assert_eq!((found.step, found.refused, last), (None, 31, 0.0));
        assert_eq!(backtracking, Backtracking::default());
    }

    #[test]
    fn no_step_is_longer_than_allowed() {
        let mut backtracking = Backtracking { step: 0.9, longest: 1.0, ..Backtracking::default() };
        assert_eq!(backtracking.search(&[1.0], |_| vec![Trial { value: 0.0, model: 0.0 }]).step, Some(1.0));
    }
}
