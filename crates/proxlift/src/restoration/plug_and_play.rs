//! A denoiser in the place of a prox, with a falling noise level.
//!
//! K. Zhang, Y. Li, W. Zuo, L. Zhang, L. Van Gool, R. Timofte, "Plug-and-play image restoration with deep denoiser prior", 2021
//! (DPIR).

use super::data::DataTerm;
use super::forward::Forward;
use crate::image::{Image, symmetry::Symmetry};
use crate::solver::{Watcher, half_quadratic, multipliers};
use crate::{Denoiser, Result};

/// How the noise level falls, and how much the data weigh.
///
/// ```text
/// x_k = argmin_x  -log p(y | x) + lambda / (2 sigma_k^2) ||x - z_{k-1}||^2
/// z_k = D_{sigma_k}(x_k)
/// ```
///
/// with levels `sigma_k` that fall by the same factor from the first to the last. What the two steps disagree by is forgotten
/// (half-quadratic splitting), or remembered (the method of [`multipliers`](crate::solver::multipliers)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Iterations.
    pub steps: usize,
    /// The first level, where white is 1.
    pub first: f64,
    /// The last level.
    pub last: f64,
    /// The weight of the prior.
    pub lambda: f64,
    /// Whether what the steps disagree by is remembered: better where pixels were not seen, worse for blurs.
    pub remembers: bool,
}

impl Schedule {
    /// `sigma_k`.
    pub fn levels(&self) -> Vec<f64> {
        let last = (self.steps.max(2) - 1) as f64;
        let ratio = (self.last / self.first).min(1.0);
        (0..self.steps).map(|k| self.first.max(self.last) * ratio.powf(k as f64 / last)).collect()
    }

    pub(super) fn check(&self) -> Result<()> {
        let fine = |x: f64| x.is_finite() && x > 0.0;
        refuse!(!(self.steps > 0 && fine(self.first) && fine(self.last) && fine(self.lambda)) =>
            "a schedule needs steps, levels and a weight above zero");
        Ok(())
    }
}

/// The scene, and how far each iteration moved it.
pub(super) fn run(
    data: &DataTerm,
    denoiser: &Denoiser,
    forward: &Forward,
    schedule: &Schedule,
    z: &mut Vec<f32>,
    watch: &mut Watcher<'_, f32>,
) -> Result<Vec<f64>> {
    schedule.check()?;
    let levels = schedule.levels();
    let taus: Vec<f64> = levels.iter().map(|sigma| sigma * sigma / schedule.lambda).collect();
    let (height, width) = forward.scene;
    let mut step = 0;
    let mut nearer = |tau: f64, x: &mut Vec<f32>| {
        data.prox(tau, x);
        Ok(())
    };
    let mut cleaner = |tau: f64, z: &mut Vec<f32>| {
        let noisy = Image::new(forward.channels, height, width, std::mem::take(z))?;
        // What a network does to a picture and to its mirror image differs: it sees all eight by turns.
        let symmetry = Symmetry::nth(step);
        step += 1;
        let level = (tau * schedule.lambda).sqrt();
        let clean = denoiser.clone().sigma(level).denoise(&symmetry.image(&noisy))?;
        *z = symmetry.inverse().image(&clean).data().to_vec();
        Ok(())
    };
    if schedule.remembers {
        multipliers(&mut nearer, &mut cleaner, z, &taus, watch)
    } else {
        half_quadratic(&mut nearer, &mut cleaner, z, &taus, watch)
    }
}
