//! The paper's denoiser as a chain of affine maps and proxes.

use super::{DualStep, Loss, Network, Synthesis};
use crate::{Real, Result, network};

impl<T: Real> Network<T> {
    /// The unrolled `denoiser` on images of `height x width` pixels, with its parameters copied:
    ///
    /// ```text
    /// v_0 = (I - tau_1 L_1 L_1*) L_0 z + tau_1 L_1 z,    v_{k-1} = u_{k-2} - tau_k L_k (L_k* u_{k-2} - z),    v_{K-1} = z - L_K* u_{K-2}
    /// ```
    ///
    /// so that what the paper counts as layer `k` is layer `k - 1` here. The steps `tau_k` stay as they are when the filters
    /// move. Every pixel counts: of a border, the loss knows nothing.
    ///
    /// Fails when the denoiser has momentum or bounds, which reach further back than one layer, or a synthesis of its own, or the
    /// image has no pixel.
    ///
    /// ```
    /// use proxlift::lifting::{Network, Rows};
    /// use proxlift::network::{self, Architecture};
    /// let sizes = Architecture { depth: 4, features: 3, kernel: 3, channels: 1 };
    /// let denoiser = network::Network::<f64>::glorot(sizes, 0.1, 0)?;
    /// let chain = Network::from_denoiser(&denoiser, 8, 6)?;
    /// assert_eq!(chain.forward(&Rows::zeros(1, 48)).output(), &Rows::zeros(1, 48));
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    pub fn from_denoiser(denoiser: &network::Network<T>, height: usize, width: usize) -> Result<Self> {
        denoiser.validate()?;
        refuse!(!denoiser.is_plain() =>
            "only a network unrolled from plain dual forward-backward is a chain: momentum and bounds reach further back than a layer, \
             and the synthesis must be the adjoint");
        let (theta, size) = (&denoiser.theta, (height, width));
        let first = DualStep::first(theta[0].clone(), theta[1].clone(), denoiser.tau[0], size)?;
        let mut chain = Network::new(Loss::Squared).layer(first, denoiser.activation[0].clone());
        for k in 2..theta.len() - 1 {
            let layer = denoiser.layer(k);
            let step = DualStep::new(layer.theta.clone(), layer.tau, size)?;
            chain = chain.layer(step, layer.activation.clone());
        }
        chain.output(Synthesis::new(denoiser.last().clone(), size)?)
    }
}
