//! Deblur, fill in, enlarge, demosaic: a degraded picture in, the picture as it was out.
//!
//! What was seen is `y = A x` with noise; `A` is a [`Degradation`]. The estimate is found by splitting: one step fits the data,
//! the other makes a picture of it.
//!
//! ```
//! use proxlift::dataset::synthetic::dead_leaves;
//! use proxlift::evaluation::{Peak, psnr};
//! use proxlift::image::{Channels, noise::add_gaussian};
//! use proxlift::restoration::{Border, Degradation, Kernel, Restorer};
//!
//! let clean = dead_leaves(1, 0, 64, 64, Channels::Grey)?;
//! let blur = Restorer::new(Degradation::Blur(Kernel::gaussian(1.2)?)).border(Border::Circular);
//! let seen = add_gaussian(&blur.degrade(&clean)?, 0.02, 1, 0)?;
//! let restored = blur.sigma(0.02).restore(&seen)?;
//! assert!(psnr(&clean, &restored.image, Peak::ONE)? > psnr(&clean, &seen, Peak::ONE)? + 1.0);
//! # Ok::<(), proxlift::Error>(())
//! ```

mod attenuation;
mod data;
mod degradation;
mod forward;
mod kernel;
mod linear;
mod npy;
mod own_data;
mod parts;
mod plug_and_play;
mod start;
mod variational;
mod weakly_convex;

pub use data::Likelihood;
pub use degradation::{Border, Degradation};
pub use kernel::Kernel;
pub use linear::Linear;
pub use plug_and_play::Schedule;

use crate::denoiser::estimate_pixels;
use crate::engine;
use crate::fixed_point::FixedPoint;
use crate::image::{Channels, Image, noise::check_sigma_below_white};
use crate::model::{BuiltIn, Model};
use crate::noise::NoiseKind;
use crate::solver::{Iterate, Until};
use crate::{Denoiser, Error, Result, memory};
use data::DataTerm;
use forward::Forward;
use std::ops::ControlFlow;
use std::sync::Arc;
use variational::{Penalty, Reached, minimise};

/// What pictures are like.
#[derive(Clone)]
pub enum Prior {
    /// What this denoiser leaves as it is: plug-and-play.
    Denoiser(Box<Denoiser>),
    /// Small total variation: a convex problem, solved to its optimum.
    TotalVariation,
    /// A learned convex function, by the network whose layers, all the same, are its proximity operator in the limit
    /// ([`FixedPoint`](crate::fixed_point::FixedPoint)): a convex problem too. The built-in one, unless a model is given.
    /// With one that is weakly convex instead, the objective is lowered to where it is stationary.
    Convex(Option<Arc<Model>>),
    /// The built-in weakly convex function, which is that of [`Prior::Convex`] in colour.
    WeaklyConvex,
}

impl From<Denoiser> for Prior {
    fn from(denoiser: Denoiser) -> Self {
        Self::Denoiser(Box::new(denoiser))
    }
}

/// Below this level, the rounding to 8 bits is all the noise that there is.
const LEAST_SIGMA: f64 = 0.5 / 255.0;

/// Bytes that a sample of the scene takes: the picture, its copies in the iteration, and two spectra in double precision.
const BYTES: u64 = 96;

/// What a restoration takes at once, beside the pictures.
const MEMORY: u64 = 1 << 30;

/// What an iteration may still move a picture by, as a share of its norm and of the tolerance, where the objective is not convex.
const STATIONARY: f64 = 0.004;

/// The gap at which a convex prior stops, as a share of the objective: PSNR is then within a thousandth of a decibel of that at the
/// optimum, as the bound is tens of times larger than what is left to gain.
const TOLERANCE: f64 = 5e-3;

/// Fields of dual variables that the solution of a convex problem takes.
const DUAL_FIELDS: u64 = 8;

/// Told of every iteration; ends the work if it breaks.
pub type Progress<'a> = dyn FnMut(&Step) -> ControlFlow<()> + 'a;

/// An iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// How many are done.
    pub done: usize,
    /// Of how many, at most.
    pub of: usize,
    /// How far it moved the estimate, relative to its norm.
    pub residual: f64,
    /// What is minimised, and how much lower it may still get: for convex priors.
    pub objective: Option<(f64, f64)>,
}

/// A restored picture, and how it was found.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The estimate, not clipped.
    pub image: Image,
    /// The noise level that it was restored for, where white is 1.
    pub sigma: f64,
    /// How far iterations moved the estimate, relative to its norm: each of plug-and-play, the last of every few else.
    pub residuals: Vec<f64>,
    /// `-log p(y | x)`, up to a constant: for Gaussian noise `||A x - y||^2 / (2 sigma^2)`, about half the number of values.
    pub misfit: f64,
    /// What was minimised, where that is a function: the misfit and the penalty.
    pub objective: Option<f64>,
    /// How much lower it may be for any other picture, which is proven: the duality gap.
    pub gap: Option<f64>,
    /// How many iterations there were.
    pub iterations: usize,
    /// Whether the iteration came to rest: the optimum, within the tolerance of the gap, or a schedule whose last iterations moved the
    /// estimate less and less.
    pub settled: bool,
}

/// Restores pictures: what was done to them, what noise they have, and what pictures are like.
#[derive(Clone)]
pub struct Restorer {
    degradation: Degradation,
    border: Border,
    likelihood: Likelihood,
    prior: Prior,
    strength: f64,
    weight: Option<f64>,
    schedule: Option<Schedule>,
    until: Until,
    memory: u64,
}

impl Restorer {
    /// With the denoiser `best` as the prior, unknown borders, and white noise whose level is estimated.
    pub fn new(degradation: Degradation) -> Self {
        Self {
            degradation,
            border: Border::Unknown,
            likelihood: Likelihood::Gaussian { sigma: None },
            prior: Denoiser::from(BuiltIn::Best).into(),
            strength: 1.0,
            weight: None,
            schedule: None,
            until: Until { tolerance: TOLERANCE, most: 2000 },
            memory: MEMORY,
        }
    }

    /// What was done to pictures.
    pub fn degradation(&self) -> &Degradation {
        &self.degradation
    }

    /// What is beyond the edges of a blurred picture.
    #[must_use]
    pub fn border(self, border: Border) -> Self {
        Self { border, ..self }
    }

    /// White noise of this standard deviation, where white is 1.
    #[must_use]
    pub fn sigma(self, sigma: f64) -> Self {
        self.likelihood(Likelihood::Gaussian { sigma: Some(sigma) })
    }

    /// The noise.
    #[must_use]
    pub fn likelihood(self, likelihood: Likelihood) -> Self {
        Self { likelihood, ..self }
    }

    /// What pictures are like.
    #[must_use]
    pub fn prior(self, prior: impl Into<Prior>) -> Self {
        Self { prior: prior.into(), ..self }
    }

    /// The prior as if for noise so many times as strong: smoother above 1, nearer to the data below.
    #[must_use]
    pub fn strength(self, strength: f64) -> Self {
        Self { strength, ..self }
    }

    /// How many times a convex prior counts, where 1 is right for noise alone; beside what [`Restorer::strength`] does. Follows from
    /// the degradation and the noise level unless this is called.
    #[must_use]
    pub fn weight(self, weight: f64) -> Self {
        Self { weight: Some(weight), ..self }
    }

    /// The weight of a convex prior that follows from the degradation, for noise of this standard deviation.
    pub fn usual_weight(&self, sigma: f64) -> Result<f64> {
        self.degradation.weight(sigma)
    }

    /// Another schedule of plug-and-play than the one that follows from the noise level.
    #[must_use]
    pub fn schedule(self, schedule: Schedule) -> Self {
        Self { schedule: Some(schedule), ..self }
    }

    /// When a convex prior stops: at a gap of at most this share of the objective.
    #[must_use]
    pub fn until(self, until: Until) -> Self {
        Self { until, ..self }
    }

    /// About how many bytes it takes at once, beside the pictures; larger ones are restored in parts. 1 GiB unless this is called.
    #[must_use]
    pub fn memory(self, bytes: u64) -> Self {
        Self { memory: bytes, ..self }
    }

    /// `A x`: what becomes of a picture, without noise. Mirrored beyond the edges where the border is unknown.
    pub fn degrade(&self, clean: &Image) -> Result<Image> {
        let factor = self.degradation.factor();
        let (channels, height, width) = clean.shape();
        refuse!(height % factor != 0 || width % factor != 0 =>
            "the factor {factor} does not divide the {width} x {height} pixels of the picture");
        let seen = Image::zeros(channels, height / factor, width / factor)?;
        let forward = self.degradation.forward(&seen, self.border, false)?;
        Image::new(channels, height / factor, width / factor, forward.apply(&forward.begin(clean)))
    }

    /// Restores a picture in memory.
    /// Fails when it does not fit the degradation, a setting is out of range, or a value is not finite.
    pub fn restore(&self, seen: &Image) -> Result<Restored> {
        self.restore_watched(seen, &mut |_| ControlFlow::Continue(()))
    }

    /// The same; `progress` may end it.
    pub fn restore_watched(&self, seen: &Image, progress: &mut Progress<'_>) -> Result<Restored> {
        seen.check_finite()?;
        self.check()?;
        self.degradation.check(seen)?;
        if let Degradation::Operator(_) = self.degradation {
            let known = match self.likelihood {
                Likelihood::Gaussian { sigma } => self.clone().sigma(self.level(sigma, seen)?),
                Likelihood::Poisson { .. } => self.clone(),
            };
            return known.restore_data(seen.data().to_vec(), None, progress);
        }
        let (channels, factor) = (seen.channels(), self.degradation.factor());
        let bytes = self.bytes(seen.kind());
        let size = (seen.height(), seen.width());
        let parts = parts::parts(&self.degradation, self.border, size, (self.memory, bytes));
        if let [_] = &parts[..] {
            let pixels = (seen.pixels() * factor.pow(2)) as u64;
            memory::check("the restoration of the picture", pixels.saturating_mul(bytes))?;
            return memory::or_error(|| self.solve(seen, progress));
        }
        let mut image = Image::zeros(channels, factor * seen.height(), factor * seen.width())?;
        let mut one = Self { border: Border::Unknown, ..self.clone() };
        if let Likelihood::Gaussian { sigma } = self.likelihood {
            one = one.sigma(self.level(sigma, seen)?);
        }
        let mut all: Option<Restored> = None;
        for (done, part) in parts.iter().enumerate() {
            one.degradation = part.degradation(&self.degradation);
            let mut watch = |step: &Step| {
                progress(&Step { done: done * step.of + step.done, of: parts.len() * step.of, ..*step })
            };
            let found = memory::or_error(|| one.solve(&part.of(seen)?, &mut watch))?;
            part.put(&found.image, factor, &mut image);
            all = Some(match all {
                None => found,
                Some(before) => before.with(found),
            });
        }
        let all = all.ok_or_else(|| invalid!("the picture has no pixels"))?;
        Ok(Restored { image, ..all })
    }

    /// Refuses settings that are out of range.
    fn check(&self) -> Result<()> {
        refuse!(!(self.strength.is_finite() && self.strength > 0.0) =>
            "the strength is {}, but it must be above zero", self.strength);
        refuse!(self.weight.is_some_and(|weight| !(weight.is_finite() && weight > 0.0)) =>
            "the weight of the prior is {}, but it must be above zero", self.weight.unwrap_or(0.0));
        Ok(())
    }

    /// Bytes that a pixel of the restored picture takes.
    fn bytes(&self, kind: Channels) -> u64 {
        let channels = kind.count() as u64;
        let dual = match &self.prior {
            Prior::Denoiser(_) => 0,
            Prior::TotalVariation => 2 * channels,
            Prior::Convex(_) | Prior::WeaklyConvex => {
                self.convex(kind).network.architecture().features as u64
            }
        };
        BYTES * channels + DUAL_FIELDS * size_of::<f32>() as u64 * dual
    }

    /// The model of a learned function, for pictures with these channels.
    fn convex(&self, channels: Channels) -> &Model {
        match &self.prior {
            Prior::Convex(Some(model)) => model,
            Prior::WeaklyConvex => BuiltIn::WeaklyConvex.model(channels),
            _ => BuiltIn::Convex.model(channels),
        }
    }

    fn solve(&self, seen: &Image, progress: &mut Progress<'_>) -> Result<Restored> {
        let exact = !matches!(self.prior, Prior::Denoiser(_));
        let forward = self.degradation.forward(seen, self.border, exact)?;
        let start = start::start(seen, &self.degradation, &forward)?;
        let likelihood = match self.likelihood {
            Likelihood::Gaussian { sigma } => Likelihood::Gaussian { sigma: Some(self.level(sigma, seen)?) },
            counts @ Likelihood::Poisson { .. } => counts,
        };
        self.found(&forward, self.seen(seen, &forward), likelihood, forward.begin(&start), progress)
    }

    /// The estimate, from data and a scene to start from. The noise level is known.
    fn found(
        &self,
        forward: &Forward,
        y: Vec<f32>,
        likelihood: Likelihood,
        mut x: Vec<f32>,
        progress: &mut Progress<'_>,
    ) -> Result<Restored> {
        let kind = Channels::from_count(forward.channels).unwrap_or(Channels::Grey);
        let (sigma, data) = match likelihood {
            Likelihood::Gaussian { sigma } => {
                let sigma = sigma.unwrap_or(LEAST_SIGMA);
                (sigma, DataTerm::gaussian(forward, y.clone(), sigma)?)
            }
            Likelihood::Poisson { gain } => {
                let data = DataTerm::poisson(forward, y.clone(), gain)?;
                (data.usual_sigma().max(LEAST_SIGMA), data)
            }
        };
        let (mut residuals, mut solved) = (Vec::new(), None);
        let settled = match &self.prior {
            Prior::Denoiser(denoiser) => {
                let schedule = self.schedule.unwrap_or_else(|| self.usual_schedule(sigma));
                let mut watch = |i: &Iterate<'_, f32>| {
                    progress(&Step {
                        done: i.iteration,
                        of: schedule.steps,
                        residual: i.residual,
                        objective: None,
                    })
                };
                residuals = plug_and_play::run(&data, denoiser, forward, &schedule, &mut x, &mut watch)?;
                let contracts = contracts(&residuals);
                if !contracts {
                    tracing::warn!(
                        "the last iterations did not move the estimate less and less: it may not be a fixed point"
                    );
                }
                contracts
            }
            Prior::Convex(_) | Prior::WeaklyConvex if self.convex(kind).network.redescends() => {
                refuse!(matches!(data, DataTerm::Poisson(_)) =>
                    "counts need a convex prior: this one is weakly convex");
                let engine = engine::standard();
                let weight = self.weight.map_or_else(|| self.usual_weight(sigma), Ok)?;
                // A function that grows like a norm counts `w` times at the level `sigma` as it does `w^2` times at `sigma / w`, the level
                // of what the data leave uncertain. One that bends down is at its best there.
                let limit = variational::adapted(self.convex(kind), forward, self.strength * sigma / weight)?;
                let limit = limit.weighted((weight * weight) as f32)?;
                let regulariser = limit.regulariser(&*engine, forward.scene)?;
                let mut watch = |at: &Reached| {
                    residuals.push(at.residual);
                    let (done, of) = (at.iterations, self.until.most);
                    progress(&Step { done, of, residual: at.residual, objective: None })
                };
                let until = Until { tolerance: STATIONARY * self.until.tolerance, ..self.until };
                let reached =
                    weakly_convex::minimise(&regulariser, (&data, sigma), &mut x, &until, &mut watch)?;
                solved = Some(reached);
                reached.residual <= until.tolerance
            }
            Prior::TotalVariation | Prior::Convex(_) | Prior::WeaklyConvex => {
                let engine = engine::standard();
                let weight = self.weight.map_or_else(|| self.usual_weight(sigma), Ok)?;
                let scaled = (self.strength * sigma, weight);
                let penalty = match &self.prior {
                    Prior::Convex(_) | Prior::WeaklyConvex => {
                        Penalty::learned(&*engine, self.convex(kind), forward, scaled)?
                    }
                    _ => Penalty::variation(forward, scaled)?,
                };
                let mut watch = |at: &Reached| {
                    residuals.push(at.residual);
                    let (done, of) = (at.iterations, self.until.most);
                    progress(&Step {
                        done,
                        of,
                        residual: at.residual,
                        objective: Some((at.objective, at.gap)),
                    })
                };
                let parts = (&data, &y[..], likelihood);
                let reached = minimise(penalty, parts, (forward, sigma), &mut x, &self.until, &mut watch)?;
                solved = Some(reached);
                reached.gap <= self.until.tolerance * reached.objective
            }
        };
        let misfit = data.value(&x);
        let iterations = solved.map_or(residuals.len(), |at| at.iterations);
        let (objective, gap) =
            (solved.map(|at| at.objective), solved.map(|at| at.gap).filter(|gap| gap.is_finite()));
        Ok(Restored {
            image: forward.picture(x)?,
            sigma,
            residuals,
            misfit,
            objective,
            gap,
            iterations,
            settled,
        })
    }

    /// What was seen, with zeros where nothing was.
    fn seen(&self, seen: &Image, forward: &Forward) -> Vec<f32> {
        let y = seen.data().to_vec();
        if self.degradation.leaves_gaps() { forward.apply(&y) } else { y }
    }

    /// The noise level. Gaps hide it: there, none is assumed unless it is given.
    fn level(&self, given: Option<f64>, seen: &Image) -> Result<f64> {
        let sigma = match given {
            Some(sigma) => {
                check_sigma_below_white(sigma)?;
                sigma
            }
            None if self.degradation.leaves_gaps() => 0.0,
            None => estimate_pixels(seen, Some(NoiseKind::Gaussian)).sigma,
        };
        Ok(sigma.max(LEAST_SIGMA))
    }

    /// From a level at which a picture is little more than its outlines to that of the noise, in a few iterations; in more where
    /// pixels have to be found that were not seen.
    fn usual_schedule(&self, sigma: f64) -> Schedule {
        let (steps, last, remembers) = match &self.degradation {
            Degradation::Blur(_) | Degradation::Operator(_) => (8, sigma, false),
            Degradation::Missing { .. } | Degradation::Mosaic(_) => (40, sigma.max(4.0 / 255.0), true),
            Degradation::Small { factor, .. } => (24, sigma.max((*factor as f64 + 1.0) / 255.0), true),
        };
        Schedule { steps, first: 49.0 / 255.0, last: self.strength * last, lambda: 0.23, remembers }
    }
}

impl Restored {
    /// With another part of the picture: sums of what is summed over pixels, and of the rest what is worse.
    fn with(self, part: Self) -> Self {
        let slower = part.iterations > self.iterations;
        let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        Self {
            misfit: self.misfit + part.misfit,
            objective: sum(self.objective, part.objective),
            gap: sum(self.gap, part.gap),
            iterations: self.iterations.max(part.iterations),
            settled: self.settled && part.settled,
            residuals: if slower { part.residuals } else { self.residuals },
            ..self
        }
    }
}

/// Whether the last three changes were less and less, in the mean.
fn contracts(residuals: &[f64]) -> bool {
    match residuals {
        [.., a, _, _, b] => b < a,
        _ => true,
    }
}

impl std::str::FromStr for Prior {
    type Err = Error;

    /// `tv`; `convex` or `weakly-convex`, or `convex:FILE` for the model of another such function; or a denoiser by the name or file
    /// of its model.
    fn from_str(name: &str) -> Result<Self> {
        match name.split_once(':') {
            Some(("convex", file)) => {
                let model = Model::load(file)?;
                FixedPoint::of(&model.network).map_err(|error| Error::file(file, error.to_string()))?;
                Ok(Self::Convex(Some(model.into())))
            }
            _ if name == "tv" => Ok(Self::TotalVariation),
            _ if name == "weakly-convex" => Ok(Self::WeaklyConvex),
            _ if name == "convex" => Ok(Self::Convex(None)),
            _ => Ok(Denoiser::open(name)?.into()),
        }
    }
}
