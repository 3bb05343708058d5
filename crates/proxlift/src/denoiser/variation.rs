//! Total variation: its weight for a noise level, and the memory that it takes.

use crate::Result;
use crate::image::{Channels, Image};
use crate::solver::{TotalVariation, TvParams, Watch, watched_total_variation};

/// Bytes that total variation takes for a sample: the picture, its estimate, and three fields of two numbers each.
const BYTES: u64 = 32;

/// The most that it may take.
const MOST: u64 = 8 << 30;

/// `lambda / sigma`: about the best single choice for photographs.
///
/// In grey, the best lambda is 0.073 to 0.075 at sigma 0.1. In colour one norm is taken over three channels: 1.1 is the
/// best of 0.74, 0.9, 1, 1.1, 1.2 and 1.3 on 14 photographs of the BSDS500 training folder at sigma 0.1 (28.07 dB; 0.74
/// gives 26.88).
pub(crate) fn lambda_per_sigma(channels: Channels) -> f64 {
    match channels {
        Channels::Grey => 0.74,
        Channels::Rgb => 1.1,
    }
}

/// Denoises with the weight `lambda`: isotropic in grey, over all channels jointly in colour; `watch` may end it.
pub(super) fn denoise(noisy: &Image, lambda: f32, watch: &mut Watch<'_>) -> Result<Image> {
    let (channels, height, width) = noisy.shape();
    let kind = match noisy.kind() {
        Channels::Grey => TotalVariation::Isotropic,
        Channels::Rgb => TotalVariation::Vectorial,
    };
    let size = (channels, height, width);
    let (data, _) = watched_total_variation(noisy.data(), size, lambda, kind, &TvParams::default(), watch)?;
    Image::new(channels, height, width, data)
}

pub(super) fn check_memory(channels: Channels, (height, width): (usize, usize)) -> Result<()> {
    let bytes =
        [channels.count(), height, width].iter().fold(BYTES, |bytes, &n| bytes.saturating_mul(n as u64));
    refuse!(bytes > MOST =>
        "total variation needs the whole picture at once, {:.1} GB of memory for {width} x {height} pixels, more than \
         {:.1} GB: use a network, or cut the picture", bytes as f64 / 1e9, MOST as f64 / 1e9);
    crate::memory::check("total variation of the whole picture", bytes)
}
