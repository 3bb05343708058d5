//! Draws the picture of the README: parts of the painted scene, noisy, denoised and as it was, at twice their size.
//!
//! ```text
//! cargo run --release --example before_after -- docs/before-after.png
//! ```

use proxlift::Denoiser;
use proxlift::dataset::synthetic::{caption, scene};
use proxlift::evaluation::Score;
use proxlift::image::io::{Depth, Picture, write};
use proxlift::image::{Channels, Image, noise::add_gaussian};

const SIGMA: f64 = 25.0 / 255.0;
/// The parts that are shown: letters and small print, cloth and stone, leaves and bark. Left and upper edge.
const PARTS: [(usize, usize); 3] = [(226, 226), (592, 330), (86, 66)];
const PART: (usize, usize) = (152, 140);
const ZOOM: usize = 2;
const GAP: usize = 6;
/// The bar with the names of the columns.
const BAR: usize = 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give the picture to write, such as docs/before-after.png")?;
    let clean = scene(1, 512, 768, Channels::Rgb)?;
    let noisy = add_gaussian(&clean, SIGMA as f32, 1, 0)?;
    let denoised = Denoiser::best().sigma(SIGMA).denoise(&noisy)?;
    let names = [
        format!("NOISY - PSNR {:.2}", Score::of(&clean, &noisy)?.psnr),
        format!("PROXLIFT - PSNR {:.2}", Score::of(&clean, &denoised)?.psnr),
        "ORIGINAL".to_string(),
    ];
    let (cell_width, cell_height) = (ZOOM * PART.0 + GAP, ZOOM * PART.1 + GAP);
    let (width, height) = (3 * cell_width - GAP, BAR + PARTS.len() * cell_height - GAP);
    let mut sheet = Image::new(3, height, width, vec![0.09; 3 * height * width])?;
    for (column, (image, name)) in [noisy, denoised, clean].iter().zip(&names).enumerate() {
        for (row, part) in PARTS.iter().enumerate() {
            paste(&mut sheet, image, *part, (column * cell_width, BAR + row * cell_height));
        }
        caption(&mut sheet, name, ((column * cell_width) as f32 + 8.0, 9.5), 11.0, 0.95);
        println!("{name}");
    }
    write(&path, &Picture::new(sheet, Depth::Eight))?;
    Ok(())
}

/// Copies a part of `image`, enlarged, to where it belongs on the sheet.
fn paste(sheet: &mut Image, image: &Image, (left, top): (usize, usize), (x, y): (usize, usize)) {
    let (_, height, width) = sheet.shape();
    for c in 0..3 {
        for down in 0..ZOOM * PART.1 {
            for across in 0..ZOOM * PART.0 {
                let from = (top + down / ZOOM) * image.width() + left + across / ZOOM;
                sheet.data_mut()[(c * height + y + down) * width + x + across] = image.plane(c)[from];
            }
        }
    }
}
