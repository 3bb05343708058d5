//! The relatives of lifted Bregman, each with the settings that it has here.

use super::digits::Digits;
use crate::chart::Style;
use proxlift::Result;
use proxlift::lifting::{
    Admm, ClosedForm, Contrastive, ContrastiveOptions, Fenchel, FenchelOptions, LbFb, LbFbOptions,
    Multipliers, Network, Splitting, Trainer,
};
use proxlift::training::{Auxiliary, Descent, Metric, Rate, Schedule};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relative {
    LbFb,
    LbFbPersistent,
    Mac,
    Fenchel,
    Contrastive,
    ClosedForm,
    Admm,
}

impl Relative {
    pub const ALL: [Self; 7] = [
        Self::LbFb,
        Self::LbFbPersistent,
        Self::Mac,
        Self::Fenchel,
        Self::Contrastive,
        Self::ClosedForm,
        Self::Admm,
    ];

    /// Its part of file names, and what tables and figures call it.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::LbFb => ("lb-fb", "LB-FB, u anchored"),
            Self::LbFbPersistent => ("lb-fb-persistent", "LB-FB, u persistent"),
            Self::Mac => ("mac", "MAC"),
            Self::Fenchel => ("fenchel", "Fenchel lifted"),
            Self::Contrastive => ("contrastive", "contrastive, 4 sweeps"),
            Self::ClosedForm => ("closed-form", "closed forms"),
            Self::Admm => ("admm", "ADMM"),
        }
    }

    pub fn slug(self) -> &'static str {
        self.names().0
    }

    pub fn label(self) -> &'static str {
        self.names().1
    }

    /// The weights of the loss that are tried; for contrastive lifting, the rates of Adam.
    pub fn weights(self) -> &'static [f64] {
        match self {
            Self::Contrastive => &[3e-3, 1e-2],
            _ => &[0.1, 1.0, 10.0],
        }
    }

    /// Samples of a batch: methods that solve for whole layers are for large ones.
    pub fn batch(self, task: &Digits) -> usize {
        match self {
            Self::ClosedForm | Self::Admm => task.samples.div_ceil(4).max(task.batch),
            _ => task.batch,
        }
    }

    pub fn style(self) -> Style {
        let number = Self::ALL.iter().position(|other| *other == self).unwrap_or(0);
        Style::step(number)
    }

    pub fn trainer(
        self,
        network: &Network<f32>,
        weight: f64,
        samples: usize,
    ) -> Result<Box<dyn Trainer<f32>>> {
        let options = LbFbOptions { mu: weight, ..LbFbOptions::default() };
        // Least squares of a batch alone would forget the others.
        let auxiliary = Auxiliary::Persistent;
        let splitting = Splitting { mu: weight, memory: 0.9, auxiliary, ..Splitting::default() };
        Ok(match self {
            Self::LbFb => Box::new(LbFb::new(network, options, samples)?),
            Self::LbFbPersistent => {
                let options = LbFbOptions { auxiliary: Auxiliary::Persistent, ..options };
                Box::new(LbFb::new(network, options, samples)?)
            }
            Self::Mac => {
                Box::new(LbFb::new(network, LbFbOptions { mu: weight, ..LbFbOptions::mac() }, samples)?)
            }
            Self::Fenchel => {
                let options = FenchelOptions { mu: weight, ..FenchelOptions::default() };
                Box::new(Fenchel::new(network, options, samples)?)
            }
            Self::Contrastive => {
                let rate = Rate { start: weight, schedule: Schedule::Cosine };
                let descent = Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.99, rate };
                Box::new(Contrastive::new(network, ContrastiveOptions { mu: 1.0, sweeps: 4 }, descent)?)
            }
            Self::ClosedForm => Box::new(ClosedForm::new(network, splitting, samples)?),
            Self::Admm => Box::new(Admm::new(network, splitting, Multipliers::default(), samples)?),
        })
    }
}
