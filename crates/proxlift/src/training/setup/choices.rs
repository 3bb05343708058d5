//! The settings that choose one of several: what there is to choose from.

use crate::named::named;
use serde::{Deserialize, Serialize};
use serde_json::Value;

named! {
    /// A set of settings to start from.
    pub enum Preset ("preset") {
        /// Lifted Bregman in the diagonal metric.
        Lifted = "lifted" | "best",
        /// Lifted Bregman in a reverse sweep with backtracking: no rate to tune.
        Backtracking = "backtracking",
        /// Lifted Bregman as the paper prints it: all parameters with one step, then all auxiliary variables with one
        /// step, both by backtracking, mu 1. The paper leaves open what happens to u between two visits to a sample (here
        /// it is kept), lambda (0.1) and the mini-batch (50).
        Paper = "paper",
        /// Stochastic gradient descent by back-propagation.
        Sgd = "sgd",
        /// The same with momentum.
        Momentum = "momentum",
        /// Adam by back-propagation, on the same data as lifted.
        Adam = "adam",
    }
}

named! {
    /// The training algorithm.
    pub enum Algorithm ("training algorithm") {
        /// Lifted Bregman: the secant of each activation where back-propagation has its tangent.
        Lb = "lb",
        /// Back-propagation.
        Backprop = "backprop" | "sgd" | "momentum" | "adam",
    }
}

named! {
    /// The secant of an activation that lifted Bregman carries errors by.
    pub enum Secant ("secant") {
        /// From `v` to where the error moves it.
        OneSided = "one-sided",
        /// From as far on the other side.
        Centred = "centred",
    }
}

named! {
    /// A constraint on the filters.
    pub enum FilterConstraint ("constraint on filters") {
        /// None.
        Free = "free",
        /// Every filter sums to zero, so that it sees details and not brightness.
        ZeroMean = "zero-mean",
    }
}

named! {
    /// The filters that a training starts from.
    pub enum Start ("start of the filters") {
        /// Drawn at random from --seed (Glorot).
        Random = "random",
        /// Cosines from low to high frequencies: a shrinkage of cosine coefficients to begin with.
        Cosines = "cosines",
    }
}

/// How long the steps of the parameters are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum StepRule {
    /// Steps of this length, in the metric.
    Rate(f64),
    /// The longest steps that keep the majorant.
    Backtracking,
    /// Every rate of a grid in turn; the one with the least training loss wins.
    Grid,
}

impl TryFrom<Value> for StepRule {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let number = |text: &str| text.parse::<f64>().ok().filter(|rate| rate.is_finite());
        let rule = match &value {
            Value::Number(rate) => rate.as_f64().map(Self::Rate),
            Value::String(text) if text == "backtracking" => Some(Self::Backtracking),
            Value::String(text) if text == "grid" => Some(Self::Grid),
            Value::String(text) => number(text).map(Self::Rate),
            _ => None,
        };
        rule.ok_or("the rate is a number such as 4e-3, or backtracking, or grid")
    }
}

impl From<StepRule> for Value {
    fn from(rule: StepRule) -> Self {
        match rule {
            StepRule::Rate(rate) => rate.into(),
            StepRule::Backtracking => "backtracking".into(),
            StepRule::Grid => "grid".into(),
        }
    }
}
