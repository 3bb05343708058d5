//! What is noted of a network while it is trained.

use serde::{Deserialize, Serialize};

/// The state after an epoch; epoch 0 is the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub epoch: usize,
    /// Seconds spent training on one thread, without any evaluation.
    pub seconds: f64,
    /// The mean loss of the network itself on what it was trained on.
    pub loss: f64,
    /// On what it has not seen: PSNR in dB, or the share of digits that are told right, in per cent.
    pub score: f64,
}
