//! Scores of an estimate against the clean image.
//!
//! Images are scored as they are given; clip the estimate to `[0, 1]` first if the figure you compare with did.

mod psnr;
mod score;
mod ssim;

pub use psnr::{Peak, mse, psnr};
pub use score::{Score, Summary, mean_psnr};
pub use ssim::ssim;

use crate::{Result, image::Image};

fn check_same_shape(clean: &Image, estimate: &Image) -> Result<()> {
    let size = |i: &Image| format!("{} x {} pixels with {} channels", i.width(), i.height(), i.channels());
    refuse!(clean.shape() != estimate.shape() =>
        "images to compare must have one shape: the clean one has {}, the estimate {}", size(clean), size(estimate));
    Ok(())
}
