//! Draws the picture of the README: clean, noisy and denoised crops of the embedded test images.
//!
//! ```text
//! cargo run --release --example before_after -- docs/before-after.png [MODEL]
//! ```
//!
//! Without a model, the last column is total variation.

use proxlift::Denoiser;
use proxlift::dataset::ImageSet;
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::io::{Depth, Picture, write};
use proxlift::image::{Channels, Image, noise};

const SIGMA: f32 = 0.1;
const SIZE: usize = 160;
const ROWS: usize = 2;
const GAP: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("give the picture to write")?;
    let denoiser = match arguments.next() {
        Some(model) => Denoiser::open(&model)?,
        None => Denoiser::total_variation(),
    }
    .sigma(SIGMA.into());
    let set = ImageSet::embedded_test(ROWS, SIZE, Channels::Grey, 1)?;
    let width = 3 * SIZE + 2 * GAP;
    let height = ROWS * (SIZE + GAP) - GAP;
    let mut sheet = vec![1.0; width * height];
    for (row, clean) in set.images().iter().enumerate() {
        let noisy = noise::add_gaussian(clean, SIGMA, 1, row as u64)?;
        let denoised = denoiser.denoise(&noisy)?;
        for (column, image) in [clean, &noisy, &denoised].into_iter().enumerate() {
            println!("row {row}, column {column}: {:.2} dB", psnr(clean, image, Peak::ONE)?);
            for (y, line) in image.data().chunks_exact(SIZE).enumerate() {
                let start = (row * (SIZE + GAP) + y) * width + column * (SIZE + GAP);
                sheet[start..start + SIZE].copy_from_slice(line);
            }
        }
    }
    write(&path, &Picture::new(Image::new(1, height, width, sheet)?, Depth::Eight))?;
    Ok(())
}
