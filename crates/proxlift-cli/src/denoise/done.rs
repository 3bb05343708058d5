//! A picture that is done, and what is said about it.

use crate::before_after::BeforeAfter;
use proxlift::denoiser::{Noise, Proof};
use serde_json::Value;

pub(super) struct Done {
    pub pixels: usize,
    pub pages: usize,
    /// That of the first page.
    pub noise: Option<Noise>,
    /// What denoised the first page.
    pub model: String,
    /// What was proven of the first page.
    pub proof: Option<Proof>,
    /// The first page, if it is to be shown.
    pub shown: Option<BeforeAfter>,
    /// For `--json`.
    pub facts: Value,
}

impl Done {
    /// The noise of the first page, and whether it was given.
    pub(super) fn noise_for_people(&self) -> String {
        match &self.noise {
            None => "as the model was trained".into(),
            Some(noise) if noise.model.is_none() => format!("{noise}, given"),
            Some(noise) if noise.faint => format!("{noise}: hardly any"),
            Some(noise) => noise.to_string(),
        }
    }

    /// What was done and why, in one line.
    pub(super) fn told(&self) -> String {
        let (estimated, faint) = self.noise.as_ref().map_or((false, false), |n| (n.model.is_some(), n.faint));
        let estimated = if estimated { "estimated: " } else { "" };
        let advice = if faint { "; --sigma S denoises for another level" } else { "" };
        let proof = self.proof.map_or(String::new(), |Proof { iterations, gap, parts }| {
            let parts = if parts > 1 { format!(" in {parts} parts") } else { String::new() };
            format!("; solved{parts} in {iterations} iterations to a gap of {gap:.1e}")
        });
        format!("noise {estimated}{}; model {}{proof}{advice}", self.noise_for_people(), self.model)
    }
}
