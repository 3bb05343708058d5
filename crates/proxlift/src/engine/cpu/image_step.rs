//! The image part of a layer, chunk by chunk, between its adjoint and its convolution. Images are few beside the
//! features, so these loops are plain.

use crate::network::Primal;

/// What happens to the numbers of an image before the convolution sees them.
pub enum ImageStep<'a> {
    /// Nothing: dual forward-backward.
    Nothing,
    /// From `L* y - z` to `r_k + gamma_k (r_k - r_{k-1})`; `q_{k-1}` is replaced by `q_k`.
    Forward { primal: Primal<f32>, q: &'a mut [f32] },
    /// From `L* d` to what stands in its place in `-tau L L* d`; what `r_k` gets from later layers is replaced by what
    /// `r_{k-1}` gets.
    Reverse { primal: Primal<f32>, q: &'a [f32], carried: &'a mut [f32], tau: f32 },
}

impl ImageStep<'_> {
    /// Works on the numbers from `at` on of all image planes in a row.
    pub fn chunk(&mut self, at: usize, image: &mut [f32]) {
        match self {
            Self::Nothing => {}
            Self::Forward { primal, q } => {
                // The first layer has nothing to remember, whatever lies in the memory.
                let keep = if primal.memory == Default::default() { 0.0 } else { 1.0 };
                for (p, q) in image.iter_mut().zip(&mut q[at..]) {
                    let before = if keep == 0.0 { 0.0 } else { primal.bound(*q) };
                    *q = primal.blend(*p, before);
                    *p = primal.extrapolate(primal.bound(*q), before);
                }
            }
            Self::Reverse { primal, q, carried, tau } => {
                for ((a, &q), carried) in image.iter_mut().zip(&q[at..]).zip(&mut carried[at..]) {
                    let (to_image, before) = primal.reverse(q, -*tau * *a, *carried);
                    (*a, *carried) = (-to_image / *tau, before);
                }
            }
        }
    }
}
