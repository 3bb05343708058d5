//! Lifted training of any network whose activations are proximity operators (Section 3.2).
//!
//! ```text
//! E(theta, u | z, x) = mu l(F_K(u_{K-1}), x) + sum_k P_k(u_k, F_k(u_{k-1})),     u_{-1} = z
//! ```
//!
//! | | |
//! |---|---|
//! | the network | [`Network`]: a chain of [`Affine`] maps and proxes with a [`Loss`], in files too; batches are [`Rows`] |
//! | its maps | [`Dense`], [`Convolutional`]; [`DualStep`] and [`Synthesis`], of which the paper's denoiser is made |
//! | the energy | [`Lifted`], block by block, with its gradients |
//! | what holds `u` | [`Penalty`]: Bregman in the paper, or quadratic |
//! | gradients by one sweep | [`sweep`] with a [`Rule`]: tangents, secants, or both sides; [`sweep_recomputing`] in less memory |
//! | trainers | [`Trainer`]: see below |
//! | inversion | [`Inversion`]: the input that gives an output, with a [`Regulariser`] |
//! | infinite depth | [`FixedPoint`](crate::fixed_point::FixedPoint) and its [`FixedPointTrainer`](crate::training::FixedPointTrainer) |
//! | arithmetic | any map in few bits or with noise, [`Imprecise`]; `f32` and `f64` throughout |
//!
//! Build a classifier, train it on a few points, save it and read it back:
//!
//! ```
//! # let folder = std::env::temp_dir().join(format!("proxlift-lifting-page-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let path = folder.join("ring.safetensors");
//! use proxlift::lifting::{Batch, Dense, LbFb, LbFbOptions, Loss, Network, Rows, Trainer, one_hot};
//! use proxlift::{prox::Relu, random::seeded};
//!
//! // Points inside a ring, and on it.
//! let point = |i: usize| (f64::from(i as u32).sin_cos(), if i % 2 == 0 { 0.3 } else { 1.0 });
//! let z = Rows::new(2, (0..40).map(point).flat_map(|((y, x), r)| [r * x, r * y]).collect())?;
//! let x = one_hot(&(0..40).map(|i| i % 2).collect::<Vec<_>>(), 2)?;
//!
//! let rng = &mut seeded(1);
//! let mut network = Network::<f64>::new(Loss::Softmax)
//!     .layer(Dense::random(2, 16, 2f64.sqrt(), rng)?, Relu)
//!     .output(Dense::random(16, 2, 1.0, rng)?)?;
//! let mut trainer = LbFb::new(&network, LbFbOptions { mu: 0.1, ..LbFbOptions::default() }, 40)?;
//! let indices: Vec<usize> = (0..40).collect();
//! let mut losses = Vec::new();
//! for _ in 0..100 {
//!     losses.push(trainer.step(&mut network, Batch { z: &z, x: &x, indices: &indices }, 0.0)?.loss);
//! }
//! assert!(losses[99] < 0.2 * losses[0], "{} to {}", losses[0], losses[99]);
//!
//! network.save(&path)?;
//! let same = Network::<f64>::load(&path)?;
//! assert_eq!(same.forward(&z), network.forward(&z));
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), proxlift::Error>(())
//! ```
//!
//! # Trainers
//!
//! All are of one family: what holds the auxiliary variables to the network, and how far each block moves.
//!
//! | | penalty | a step | is |
//! |---|---|---|---|
//! | [`LbFb`] | Bregman | a forward-backward step of each block, by backtracking, in the Euclidean or a diagonal metric; layer by layer, or all layers in parallel | the paper's |
//! | [`LbFb`] with [`LbFbOptions::mac`] | quadratic, growing | the same | the method of auxiliary coordinates |
//! | [`Fenchel`] | Bregman, weighted by layer | so many that each convex block is all but minimised | with one step and all weights 1, [`LbFb`] in another order |
//! | [`Contrastive`] | Bregman | the difference of two minimisations over `u`, then descent in any metric | as `mu -> 0`, back-propagation up to `mu^2` |
//! | [`GradientDescent`] with [`Rule::Lifted`], [`Rule::Centred`] | Bregman | one unit step of each `u`, then the same | as `mu -> 0`, back-propagation up to `mu`, `mu^2` |
//! | [`GradientDescent`] with [`Rule::Backprop`] | quadratic | the same | back-propagation |
//! | [`ClosedForm`] | quadratic, of maps and activations | the minimiser of each block | as its weights grow, the network itself |
//! | [`Admm`] | the same with multipliers | the same, then up the multipliers | in its first iteration, [`ClosedForm`] |
//!
//! `tests/lifting_relations.rs` tests the limits.

mod blocks;
mod denoiser;
mod energy;
mod file;
mod fused;
mod home;
mod inversion;
mod learned;
mod loss;
mod maps;
mod metric;
mod network;
mod penalty;
mod recompute;
mod rows;
mod rules;
mod share;
mod trainers;

pub use energy::Lifted;
pub use inversion::{
    ByProx, Data, Inversion, InversionOptions, InversionRecord, InversionStop, Inverted, Near, Regulariser,
    Variation,
};
pub use loss::{Loss, one_hot};
pub use maps::{Affine, Convolutional, Dense, DualStep, Imprecise, Kind, Synthesis};
pub use network::{Builder, Network, Pass};
pub use penalty::Penalty;
pub use recompute::sweep_recomputing;
pub use rows::Rows;
pub use rules::{Gradients, Rule, sweep};
pub use trainers::{
    Admm, Batch, ClosedForm, Contrastive, ContrastiveOptions, Fenchel, FenchelOptions, GradientDescent, LbFb,
    LbFbOptions, Multipliers, Split, Splitting, Step, Trainer, contrast,
};
