//! Procedural images with the statistics of photographs: dead leaves, for training; and one that looks like a
//! photograph, to look at: [`scene`].
//!
//! # Dead leaves
//!
//! Opaque shapes of random size, place and colour fall on each other until the frame is covered. With radii of
//! density `r^-3` the picture is nearly scale invariant, as natural scenes are: spectrum about `1/f`, heavy-tailed
//! gradients, broad histogram. A denoiser trained on such images alone works on photographs:
//! R. Achddou, Y. Gousseau, S. Ladjal, "Synthetic images as a regularity prior for image restoration neural
//! networks", SSVM 2021. Leaves here also carry gradients and textures, since flat ones teach a network to flatten.
//!
//! The picture is painted at twice its size, front to back, and averaged. Only arithmetic with defined rounding is
//! used, so an image has the same bits on every platform.

mod arithmetic;
mod leaf;
mod paint;
mod scene;

pub use self::scene::{caption, scene};

use self::arithmetic::range;
use self::leaf::{Leaf, Radii};
use self::paint::Palette;
use crate::Result;
use crate::image::{Channels, Image};
use crate::random::{Purpose, stream, unit};
use rand::Rng;

/// Painted pixels for one pixel of the image, along each side.
const SCALE: usize = 2;
/// Below this share of uncovered area, the rest becomes background: the last holes would take most of the time.
const BARE: f32 = 0.01;

/// Image `index` of the endless training series of `seed`, values in `[0, 1]`.
pub fn dead_leaves(seed: u64, index: u64, height: usize, width: usize, channels: Channels) -> Result<Image> {
    dead_leaves_for(Purpose::SyntheticTrain, seed, index, height, width, channels)
}

pub(super) fn dead_leaves_for(
    purpose: Purpose,
    seed: u64,
    index: u64,
    height: usize,
    width: usize,
    channels: Channels,
) -> Result<Image> {
    check_size(height, width)?;
    let mut rng = stream(seed, purpose, 0, index);
    let palette = Palette::draw(&mut rng);
    let softness = unit(&mut rng);
    let mut image = match channels {
        Channels::Grey => canvas::<1>(&mut rng, &palette, height, width),
        Channels::Rgb => canvas::<3>(&mut rng, &palette, height, width),
    }?;
    // The optics of a camera, from none to a full binomial blur.
    blur(&mut image, softness * softness * softness);
    Ok(image)
}

/// Refuses a picture without pixels, or too large to be meant.
fn check_size(height: usize, width: usize) -> Result<()> {
    refuse!(height == 0 || width == 0 || height.max(width) > 1 << 14 =>
        "a synthetic image of {width} x {height} pixels cannot be painted");
    Ok(())
}

/// Paints leaves front to back: what a leaf leaves visible of a pixel is the product of the transparencies above it.
fn canvas<const C: usize>(
    rng: &mut impl Rng,
    palette: &Palette,
    height: usize,
    width: usize,
) -> Result<Image> {
    let (h, w) = (SCALE * height, SCALE * width);
    let mut colours = vec![[0.0_f32; C]; h * w];
    let mut visible = vec![1.0_f32; h * w];
    let mut bare = (h * w) as f32;
    let radii = Radii::draw(rng);
    while bare > BARE * (h * w) as f32 {
        let leaf = Leaf::draw(rng, &radii, h, w);
        let paint = palette.paint(rng, leaf.radius());
        let (rows, columns) = leaf.bounds(h, w);
        let mut covered = 0.0;
        for y in rows {
            let line = y * w + columns.start..y * w + columns.end;
            let pixels = visible[line.clone()].iter_mut().zip(&mut colours[line]);
            for (x, (visible, colour)) in columns.clone().zip(pixels) {
                if *visible == 0.0 {
                    continue;
                }
                let (u, v) = leaf.local(x as f32 + 0.5, y as f32 + 0.5);
                let share = *visible * leaf.opacity(u, v);
                if share == 0.0 {
                    continue;
                }
                let painted = paint.at::<C>(u, v);
                colour.iter_mut().zip(painted).for_each(|(c, p)| *c += share * p);
                let left = *visible - share;
                *visible = if left < 1e-3 { 0.0 } else { left };
                covered += share;
            }
        }
        bare -= covered;
    }
    let background = palette.paint(rng, h.max(w) as f32);
    let mut data = vec![0.0; C * height * width];
    for (at, (colour, &visible)) in colours.iter_mut().zip(&visible).enumerate() {
        let (y, x) = (at / w, at % w);
        if visible > 0.0 {
            let behind = background.at::<C>(x as f32, y as f32);
            colour.iter_mut().zip(behind).for_each(|(c, b)| *c += visible * b);
        }
        for (c, value) in colour.iter().enumerate() {
            data[(c * height + y / SCALE) * width + x / SCALE] += value.clamp(0.0, 1.0);
        }
    }
    let share = 1.0 / (SCALE * SCALE) as f32;
    data.iter_mut().for_each(|v| *v *= share);
    Image::new(C, height, width, data)
}

/// Blends with the 3 x 3 binomial filter, `amount` from 0 to 1, borders repeated.
fn blur(image: &mut Image, amount: f32) {
    let (channels, h, w) = image.shape();
    let (side, middle) = (0.25 * amount, 1.0 - 0.5 * amount);
    let mut source = vec![0.0; h * w];
    for c in 0..channels {
        let plane = &mut image.data_mut()[c * h * w..(c + 1) * h * w];
        for (line, out) in plane.chunks_exact(w).zip(source.chunks_exact_mut(w)) {
            for x in 0..w {
                out[x] = middle * line[x] + side * (line[x.saturating_sub(1)] + line[(x + 1).min(w - 1)]);
            }
        }
        for y in 0..h {
            let (above, below) = (y.saturating_sub(1) * w, (y + 1).min(h - 1) * w);
            for x in 0..w {
                plane[y * w + x] =
                    middle * source[y * w + x] + side * (source[above + x] + source[below + x]);
            }
        }
    }
}

/// A direction, by rejection from the square: no trigonometry.
fn direction(rng: &mut impl Rng) -> (f32, f32) {
    loop {
        let (x, y) = (range(rng, -1.0, 1.0), range(rng, -1.0, 1.0));
        let square = x * x + y * y;
        if (0.01..1.0).contains(&square) {
            let norm = square.sqrt();
            return (x / norm, y / norm);
        }
    }
}
