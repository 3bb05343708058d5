//! The relatives of lifted Bregman, each with the settings that it has here.

use crate::chart::Style;
use proxlift::Result;
use proxlift::lifting::{LbFb, LbFbOptions, Network, Penalty, Trainer};
use proxlift::training::Auxiliary;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relative {
    LbFb,
    LbFbPersistent,
    Mac,
}

impl Relative {
    pub const ALL: [Self; 3] = [Self::LbFb, Self::LbFbPersistent, Self::Mac];

    pub fn slug(self) -> &'static str {
        match self {
            Self::LbFb => "lb-fb",
            Self::LbFbPersistent => "lb-fb-persistent",
            Self::Mac => "mac",
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::LbFb => "LB-FB, u anchored",
            Self::LbFbPersistent => "LB-FB, u persistent",
            Self::Mac => "MAC, u persistent",
        }
    }

    /// The weights of the loss that are tried.
    pub fn weights(self) -> &'static [f64] {
        &[0.1, 1.0]
    }

    pub fn style(self) -> Style {
        let number = Self::ALL.iter().position(|other| *other == self).unwrap_or(0);
        Style::step(number)
    }

    pub fn trainer(self, network: &Network<f32>, mu: f64, samples: usize) -> Result<Box<dyn Trainer<f32>>> {
        let options = LbFbOptions { mu, ..LbFbOptions::default() };
        let persistent = LbFbOptions { auxiliary: Auxiliary::Persistent, ..options };
        Ok(match self {
            Self::LbFb => Box::new(LbFb::new(network, options, samples)?),
            Self::LbFbPersistent => Box::new(LbFb::new(network, persistent, samples)?),
            Self::Mac => {
                let options = LbFbOptions { penalty: Penalty::Quadratic, ..persistent };
                Box::new(LbFb::new(network, options, samples)?)
            }
        })
    }
}
