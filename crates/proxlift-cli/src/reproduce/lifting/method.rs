//! Who trains in these experiments.

use crate::chart::Style;
use serde::{Deserialize, Serialize};

/// A way of training. Those of the first group differ in how errors go back through an activation, and in nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Tangents.
    Backprop,
    /// As if activations were not there.
    StraightThrough,
    /// One-sided secants with this weight of the loss.
    Lifted(f64),
    /// Centred secants.
    Centred(f64),
    /// One-sided secants whose weight falls from the first to the second.
    Falling(f64, f64),
    /// Centred ones.
    CentredFalling(f64, f64),
}

impl Method {
    /// What tables and figures call it.
    pub fn label(self) -> String {
        match self {
            Self::Backprop => "back-propagation".into(),
            Self::StraightThrough => "straight-through".into(),
            Self::Lifted(mu) => format!("lifted, μ {mu}"),
            Self::Centred(mu) => format!("centred, μ {mu}"),
            Self::Falling(from, to) => format!("lifted, μ {from} to {to}"),
            Self::CentredFalling(from, to) => format!("centred, μ {from} to {to}"),
        }
    }

    /// Its part of a file's name.
    pub fn slug(self) -> String {
        self.label().replace(", μ ", "-").replace(' ', "-")
    }

    pub fn is_lifted(self) -> bool {
        !matches!(self, Self::Backprop | Self::StraightThrough)
    }

    /// Its line in a figure: a colour for the kind, a stroke for the weight.
    pub fn style(self) -> Style {
        let stroke = |mu: f64| {
            if mu < 0.5 {
                1
            } else if mu < 5.0 {
                0
            } else {
                2
            }
        };
        match self {
            Self::Backprop => Style::kind(1),
            Self::StraightThrough => Style::kind(5),
            Self::Lifted(mu) => Style::kind(0).dashed(stroke(mu)),
            Self::Centred(mu) => Style::kind(2).dashed(stroke(mu)),
            Self::Falling(..) => Style::kind(3),
            Self::CentredFalling(..) => Style::kind(4),
        }
    }
}
