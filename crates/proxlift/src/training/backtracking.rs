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
    /// Differences below this share of `f` are taken for rounding: that of single precision unless it is changed.
    pub resolution: f64,
}

impl Default for Backtracking {
    fn default() -> Self {
        Self { step: 1e-3, grow: 1.5, shrink: 0.5, longest: f64::INFINITY, most: 30, resolution: 1e-7 }
    }
}

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
    /// How often steps were taken: once for all blocks together.
    pub attempts: usize,
}

impl Backtracking {
    /// Searches a step for every block, `f` being its value now. `attempt` takes steps of these lengths and tells what each
    /// block made of its own.
    ///
    /// It is called last with the steps that were found, zero for a block that found none.
    pub fn search(&mut self, f: &[f64], mut attempt: impl FnMut(&[f64]) -> Vec<Trial>) -> Found {
        let mut steps = vec![(self.step * self.grow).min(self.longest); f.len()];
        let mut open = vec![true; f.len()];
        let (mut refused, mut attempts) = (0, 0);
        for _ in 0..=self.most {
            let trials = attempt(&steps);
            attempts += 1;
            for (((&f, trial), step), open) in f.iter().zip(trials).zip(&mut steps).zip(&mut open) {
                if *open && trial.value <= f + trial.model + self.resolution * f.abs() {
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
            attempts += 1;
        }
        let longest = steps.into_iter().fold(0.0, f64::max);
        let step = (longest > 0.0).then_some(longest);
        self.step = step.unwrap_or(self.step);
        Found { step, refused, attempts }
    }
}
