//! Draws the picture of the README: clean, noisy and denoised crops of the embedded test images.
//!
//! ```text
//! cargo run --release --example before_after -- docs/before-after.png [MODEL]
//! ```
//!
//! Without a model, the last column is total variation.

use proxlift::dataset::ImageSet;
use proxlift::denoise::denoise_image;
use proxlift::engine::Cpu;
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::io::{Depth, Picture, write};
use proxlift::image::{Channels, Image, noise};
use proxlift::model::Model;
use proxlift::solver::{TotalVariation, TvParams, total_variation};

const SIGMA: f32 = 0.1;
const SIZE: usize = 160;
const ROWS: usize = 2;
const GAP: usize = 4;

fn denoise(model: Option<&Model>, noisy: &Image) -> proxlift::Result<Image> {
    let (height, width) = (noisy.height(), noisy.width());
    let data = match model {
        Some(model) => denoise_image(&Cpu::new(), &model.network, noisy)?.into_data(),
        None => {
            let lambda = 0.74 * SIGMA;
            let kind = TotalVariation::Isotropic;
            total_variation(noisy.data(), 1, height, width, lambda, kind, &TvParams::default())?.0
        }
    };
    Image::new(1, height, width, data)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("give the picture to write")?;
    let model = arguments.next().map(Model::load).transpose()?;
    let set = ImageSet::embedded_test(ROWS, SIZE, Channels::Grey, 1)?;
    let width = 3 * SIZE + 2 * GAP;
    let height = ROWS * (SIZE + GAP) - GAP;
    let mut sheet = vec![1.0; width * height];
    for (row, clean) in set.images().iter().enumerate() {
        let noisy = noise::add_gaussian(clean, SIGMA, 1, row as u64)?;
        let denoised = denoise(model.as_ref(), &noisy)?;
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
