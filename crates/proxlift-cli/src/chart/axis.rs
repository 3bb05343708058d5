//! Axes: what they measure, where their ticks are, how values become places.

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm; values that are not positive are not drawn.
    Log,
    /// By the logarithm where all values are positive and the largest is eight times the least.
    Auto,
}

/// One axis of a panel: what it measures, and how.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub label: &'static str,
    pub scale: Scale,
}

impl Axis {
    pub const fn linear(label: &'static str) -> Self {
        Self { label, scale: Scale::Linear }
    }

    pub const fn log(label: &'static str) -> Self {
        Self { label, scale: Scale::Log }
    }

    pub const fn auto(label: &'static str) -> Self {
        Self { label, scale: Scale::Auto }
    }
}

/// From values to places in `[0, 1]`.
#[derive(Clone, Debug)]
pub struct Range {
    log: bool,
    low: f64,
    high: f64,
}

impl Range {
    /// The range of `values`, with `room` around it as a share of it; none where nothing can be drawn.
    pub fn of(values: impl Iterator<Item = f64> + Clone, scale: Scale, room: f64) -> Option<Self> {
        let finite = values.filter(|v| v.is_finite() && (scale != Scale::Log || *v > 0.0));
        let ends =
            finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b): (f64, f64), v| (a.min(v), b.max(v)));
        let (low, high) = if ends.0 <= ends.1 { ends } else { return None };
        let log = match scale {
            Scale::Linear => false,
            Scale::Log => true,
            Scale::Auto => low > 0.0 && high / low > 8.0,
        };
        let on = |v: f64| if log { v.ln() } else { v };
        let (mut from, mut to) = (on(low), on(high));
        if to - from < 1e-9 * to.abs().max(1e-9) {
            (from, to) = (from - 0.5, to + 0.5);
        }
        let room = room * (to - from);
        Some(Self { log, low: from - room, high: to + room })
    }

    /// Where a value is; none if it cannot be drawn.
    pub fn place(&self, value: f64) -> Option<f64> {
        let value = if self.log { value.ln() } else { value };
        value.is_finite().then(|| (value - self.low) / (self.high - self.low))
    }

    /// Round values inside, about `most` of them, with their labels.
    pub fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let ticks = if self.log {
            log_ticks(self.low.exp(), self.high.exp(), most)
        } else {
            ticks(self.low, self.high, most)
        };
        ticks.iter().map(|&t| (t, if self.log { log_label(t) } else { label(t, &ticks) })).collect()
    }
}

/// Round numbers between `low` and `high`, `most` at most.
pub fn ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let raw = (high - low) / most as f64;
    let unit = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * unit).find(|s| *s >= raw).unwrap_or(10.0 * unit);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Round numbers for a logarithmic axis, as dense as there is room for: 1, 2, 3, 4, 5, 7 or 1, 2, 5 or 1 times the
/// powers of ten.
pub fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let choices: [&[f64]; 4] =
        [&[1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0], &[1.0, 2.0, 3.0, 5.0], &[1.0, 2.0, 5.0], &[1.0]];
    let of = |factors: &[f64]| -> Vec<f64> {
        let all = powers.clone().flat_map(|p| factors.iter().map(move |m| m * 10_f64.powi(p)));
        all.filter(|t| (low..=high).contains(t)).collect()
    };
    let fitting = choices.iter().map(|factors| of(factors)).find(|ticks| ticks.len() <= most);
    fitting.unwrap_or_else(|| {
        let powers = of(&[1.0]);
        let every = powers.len().div_ceil(most.max(1));
        powers.into_iter().step_by(every.max(1)).collect()
    })
}

/// With as many digits as tell the ticks apart.
pub fn label(tick: f64, ticks: &[f64]) -> String {
    let gap = ticks.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    let digits = if gap.is_finite() { (-gap.log10()).ceil().clamp(0.0, 9.0) as usize } else { 2 };
    format!("{tick:.digits$}")
}

pub fn log_label(tick: f64) -> String {
    match tick {
        t if (1e-3..1e5).contains(&t) => format!("{}", (t * 1e6).round() / 1e6),
        t => format!("{t:.0e}"),
    }
}
