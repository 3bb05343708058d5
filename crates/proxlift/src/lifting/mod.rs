//! Lifted training of any network whose activations are proximity operators (Section 3.2).
//!
//! A [`Network`] is a chain of [`Affine`] maps and proxes with a [`Loss`]; [`Lifted`] is its energy, block by block, with the
//! [`Penalty`] of the paper or its relative. The
//! paper's denoiser is one of them: [`DualStep`] and [`Synthesis`] are its layers.

mod admm;
mod affine;
mod blocks;
mod cholesky;
mod closed_form;
mod contrastive;
mod convolution;
mod denoiser;
mod dense;
mod descent;
mod dual_step;
mod energy;
mod fenchel;
mod file;
mod fixed_point;
mod fused;
mod imprecise;
mod init;
mod inversion;
mod kind;
mod layer_parallel;
mod lbfb;
mod loss;
mod network;
mod penalty;
mod pieces;
mod recompute;
mod regulariser;
mod rows;
mod splitting;
mod trainer;

pub use admm::{Admm, Multipliers};
pub use affine::Affine;
pub use closed_form::ClosedForm;
pub use contrastive::{Contrastive, ContrastiveOptions, contrast};
pub use convolution::Convolutional;
pub use dense::Dense;
pub use descent::GradientDescent;
pub use dual_step::{DualStep, Synthesis};
pub use energy::{Gradients, Lifted, Rule, sweep};
pub use fenchel::{Fenchel, FenchelOptions};
pub use fixed_point::{
    Acceleration, FixedPoint, FixedPointGradients, FixedPointOptions, FixedPointParams, FixedPointRule,
    FixedPointTrainer, Solution,
};
pub use imprecise::Imprecise;
pub use inversion::{Data, Inversion, InversionOptions, InversionRecord, InversionStop, Inverted};
pub use kind::Kind;
pub use lbfb::{LbFb, LbFbOptions};
pub use loss::{Loss, one_hot};
pub use network::{Builder, Network, Pass};
pub use penalty::Penalty;
pub use recompute::sweep_recomputing;
pub use regulariser::{ByProx, Near, Regulariser, Variation};
pub use rows::Rows;
pub use splitting::{Split, Splitting};
pub use trainer::{Batch, Step, Trainer};
