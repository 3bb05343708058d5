//! The flags that choose what removes noise.

use crate::flags::not_negative;
use proxlift::denoiser::{Noise, settings};
use proxlift::{Denoiser, Result, model::BuiltIn};
use std::path::Path;

/// The flags that choose a denoiser.
#[derive(clap::Args)]
pub struct Choice {
    /// A trained network: `best`, `small`, `photo`, `convex` or `weakly-convex` (built in; small is faster, photo for the noise of
    /// cameras, convex proven not to expand, weakly-convex better and proven to expand little), or a file written by `proxlift train` [default: best, or photo where that suits the picture]
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "method")]
    model: Option<String>,
    /// A classical method instead of a network: total variation (Rudin, Osher, Fatemi 1992), isotropic, over all
    /// channels jointly in colour
    #[arg(long, value_parser = ["tv"])]
    method: Option<String>,
    /// The weight of total variation in 1/2 ||x - z||^2 + lambda TV(x) [default: 0.74 sigma; 1.1 sigma in colour]
    #[arg(long, value_name = "X", value_parser = not_negative, allow_negative_numbers = true)]
    #[arg(requires = "method", conflicts_with = "model")]
    lambda: Option<f64>,
    /// Run a network whose layers are all the same, such as `convex`, to its fixed point instead of through its layers: until
    /// the duality gap is at most this share of the objective, such as 1e-5 [default: 1e-4 for `convex` and `weakly-convex`]
    #[arg(long, value_name = "X", value_parser = not_negative, allow_negative_numbers = true)]
    #[arg(conflicts_with = "method")]
    tolerance: Option<f64>,
    /// Denoise in all eight orientations and average: eight times as long, 0.04 dB better in grey and 0.06 in colour
    #[arg(long, conflicts_with_all = ["method", "tolerance"])]
    turned: bool,
    /// Denoise more (above 1) or less (below 1); 0 leaves the picture as it is
    #[arg(long, value_name = "X", value_parser = not_negative, allow_negative_numbers = true, default_value = "1")]
    strength: f64,
}

impl Choice {
    pub fn load(&self) -> Result<Denoiser> {
        let denoiser = match (&self.method, self.lambda) {
            (Some(_), Some(lambda)) => Denoiser::total_variation_with(lambda),
            (Some(_), None) => Denoiser::total_variation(),
            (None, _) => Denoiser::open(self.name())?,
        };
        let denoiser = match self.tolerance {
            Some(tolerance) => denoiser.tolerance(tolerance),
            None => denoiser,
        };
        let denoiser = if self.turned { denoiser.turned() } else { denoiser };
        Ok(denoiser.strength(self.strength))
    }

    /// The model's name or file, or the method's name.
    pub fn name(&self) -> &str {
        self.method.as_deref().or(self.model.as_deref()).unwrap_or(BuiltIn::Best.name())
    }

    /// Of a model's file only the name, so that the same picture gives the same bytes anywhere.
    pub fn short_name(&self) -> String {
        Path::new(self.name()).file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// A line for a result's metadata: the program, and what a picture with this noise was denoised with: `name`.
    pub fn settings(&self, name: &str, noise: Option<&Noise>) -> String {
        let what = if self.method.is_some() { "method" } else { "model" };
        let turned = if self.turned { " in eight orientations" } else { "" };
        settings(&format!("{what} {name}{turned}"), noise, self.lambda, self.strength)
    }
}
