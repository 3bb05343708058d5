//! Two-way backtracking (Section 3.4): the largest step that keeps a majorant.
//!
//! For a step `theta+ = theta - beta p`, `p = A^{-1} g`, the majorant inequality (eq:maj-theta) in the norm of `A`,
//!
//! ```text
//! f(theta+) <= f(theta) + <theta+ - theta, g> + 1/(2 beta) ||theta+ - theta||_A^2,
//! ```
//!
//! is `f(theta+) <= f(theta) - beta/2 <g, p>`, whatever the metric.

/// A step that remembers: the next search starts from a longer one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backtracking {
    /// The step that was accepted last.
    pub step: f64,
    /// By how much a search starts longer than the last accepted step.
    pub grow: f64,
    /// By how much a refused step is shortened.
    pub shrink: f64,
    /// The search ends without a step after so many refusals.
    pub most: usize,
}

impl Default for Backtracking {
    fn default() -> Self {
        Self { step: 1e-3, grow: 1.5, shrink: 0.5, most: 30 }
    }
}

/// A decrease below this share of `f` cannot be told from rounding, and is not searched for.
pub(super) const RESOLUTION: f64 = 1e-7;

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The accepted step; none if all were refused.
    pub step: Option<f64>,
    /// How many steps were refused.
    pub refused: usize,
}

impl Backtracking {
    /// Tries steps, the longest first, until `value(step) <= f - step/2 slope`, with `slope = <g, p>`.
    ///
    /// `value` leaves whatever it computed for the accepted step in place: it is called for it last. After a search
    /// without a step, the caller restores what `value` changed.
    pub fn search(&mut self, f: f64, slope: f64, mut value: impl FnMut(f64) -> f64) -> Found {
        let mut step = self.step * self.grow;
        for refused in 0..=self.most {
            if step * slope <= RESOLUTION * f.abs() {
                return Found { step: None, refused };
            }
            if value(step) <= f - 0.5 * step * slope {
                self.step = step;
                return Found { step: Some(step), refused };
            }
            step *= self.shrink;
        }
        Found { step: None, refused: self.most + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `f(t) = c/2 t^2` from `t = 1` along its gradient: the inequality holds up to `1/c`.
    fn search(curvature: f64, start: f64) -> (Backtracking, Found) {
        let mut backtracking = Backtracking { step: start, ..Backtracking::default() };
        let value = |step: f64| 0.5 * curvature * (1.0 - step * curvature).powi(2);
        let found = backtracking.search(0.5 * curvature, curvature * curvature, value);
        (backtracking, found)
    }

    #[test]
    fn a_step_that_is_too_long_is_shortened_and_a_short_one_grows() {
        let (after, found) = search(4.0, 100.0);
        assert!(after.step <= 0.25 + 1e-12 && after.step > 0.125 && found.refused > 5);
        let (after, found) = search(4.0, 0.01);
        assert_eq!((after.step, found.refused), (0.01 * 1.5, 0));
    }

    #[test]
    fn a_function_that_only_rises_gets_no_step() {
        let mut backtracking = Backtracking::default();
        let found = backtracking.search(0.0, 1.0, |step| step);
        assert_eq!(found.step, None);
        assert_eq!(backtracking, Backtracking::default());
    }
}
