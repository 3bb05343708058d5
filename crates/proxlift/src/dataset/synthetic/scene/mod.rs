//! A picture that could be a photograph: an orchard's sign before a wall, under a tree, in the light of the evening.
//!
//! It has what denoisers are judged by: smooth sky, soft discs of light behind the focus, wood, bark, stone and cloth
//! in their textures, leaves and grass, thin lines, letters down to small print, shadows. Everything follows from the
//! seed, and is painted from distances and noise, in arithmetic that has the same bits on every platform.

mod canvas;
mod distance;
mod foliage;
mod letters;
mod shape;
mod texture;
mod things;

use self::canvas::Canvas;
use self::foliage::Branch;
use self::texture::Grain;
use super::{blur, check_size};
use crate::Result;
use crate::image::{Channels, Image};
use crate::random::{Purpose, stream};
use rand::Rng;

pub use self::letters::caption;

/// What is seen, in units of the scene; a picture of other proportions shows the middle of it.
const FRAME: (f32, f32) = (1.5, 1.0);

/// The scene of `seed`, values in `[0, 1]`. It is the same at every size, with more detail in a larger picture.
pub fn scene(seed: u64, height: usize, width: usize, channels: Channels) -> Result<Image> {
    check_size(height, width)?;
    let mut rng = stream(seed, Purpose::SyntheticTest, 1, 0);
    let mut canvas = Canvas::new(height, width, FRAME);
    let grain = Grain::new(rng.next_u32(), canvas.scale);
    distance::paint(&mut canvas, &mut rng, grain);
    things::railing(&mut canvas, grain.other(20));
    things::wall(&mut canvas, grain.other(21));
    things::apples(&mut canvas, grain.other(22));
    things::blanket(&mut canvas, grain.other(23));
    things::sign(&mut canvas, grain.other(24));
    things::trunk(&mut canvas, grain.other(25));
    foliage::grass(&mut canvas, &mut rng, grain.other(26));
    let mut branch = Branch::default();
    branch.grow(&mut rng, (0.10, -0.06), (0.046, 0.002), 0.018, 0.95);
    branch.grow(&mut rng, (0.02, 0.02), (0.030, 0.014), 0.010, 0.9);
    branch.paint(&mut canvas, grain.other(27), 0.10);
    let mut bare = Branch::default();
    bare.grow(&mut rng, (1.54, 0.10), (-0.030, -0.004), 0.0062, 0.12);
    bare.paint(&mut canvas, grain.other(28), 0.06);
    let mut image = canvas.develop()?;
    // A sharp lens is not as sharp as a formula.
    blur(&mut image, 0.25);
    Ok(image.into_channels(channels))
}
