//! A noise level for every pixel.
//!
//! A network has one level for the whole picture. Where the level changes from place to place, the picture is denoised for
//! each of the levels `0, .., 2^{-1/4}, 1, 2^{1/4}, ..` that are needed, and every pixel is blended linearly between the two
//! around its own. In a tile only the levels of that tile are computed.

use super::method::Work;
use super::pixels::{BAND, Pixels};
use super::prepared::{Pass, Put, clipped};
use super::progress::{Progress, step};
use super::{Denoiser, variation};
use crate::image::noise::{check_sigma, check_sigma_below_white};
use crate::{Result, image::Image, memory, noise::NoiseKind};
use std::ops::Range;

const LEVELS_PER_OCTAVE: f64 = 4.0;

/// The least level above zero is `2^{-LEAST / 4}`, a sixteenth of a grey level of 8 bits.
const LEAST: i32 = 48;

/// A level of the grid: the first is 0.
fn level(index: usize) -> f64 {
    if index == 0 { 0.0 } else { ((index as f64 - f64::from(LEAST) - 1.0) / LEVELS_PER_OCTAVE).exp2() }
}

/// The index of the level at or below `sigma`, and the share that the next one has in it.
fn place(sigma: f64) -> (usize, f64) {
    let octaves = (LEVELS_PER_OCTAVE * sigma.log2()).floor() + f64::from(LEAST) + 1.0;
    let mut index = octaves.max(0.0) as usize;
    // The logarithm is rounded.
    if level(index) > sigma {
        index -= 1;
    } else if level(index + 1) <= sigma {
        index += 1;
    }
    let (low, high) = (level(index), level(index + 1));
    (index, (sigma - low) / (high - low))
}

impl Denoiser {
    /// [`Denoiser::denoise_pixels`] with a noise level for every pixel: `levels` is grey, has the size of the picture, and
    /// the scale of its floats. Blends the results for levels a quarter of an octave apart; where all levels are the same, it is
    /// [`Denoiser::sigma`], unless the map is said to be [a part of another](Denoiser::part_of_map).
    ///
    /// ```
    /// # use proxlift::{Denoiser, Image, dataset::synthetic::dead_leaves, image::{Channels, noise::add_gaussian}};
    /// use std::ops::ControlFlow;
    /// let noisy = add_gaussian(&dead_leaves(1, 0, 64, 64, Channels::Grey)?, 0.1, 1, 0)?;
    /// let levels = Image::new(1, 64, 64, (0..64 * 64).map(|i| 0.05 + 0.1 * (i % 64) as f32 / 64.0).collect())?;
    /// let mut result = noisy.clone();
    /// let put = &mut |at: (usize, usize), tile: &Image| result.put(at, tile);
    /// Denoiser::best().denoise_with_map(&noisy, &levels, put, &mut |_, _| ControlFlow::Continue(()))?;
    /// # assert_ne!(result, noisy);
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    pub fn denoise_with_map(
        &self,
        picture: &impl Pixels,
        levels: &impl Pixels,
        put: &mut Put<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        memory::or_error(|| self.with_map(picture, levels, put, progress))
    }

    fn with_map(
        &self,
        picture: &impl Pixels,
        levels: &impl Pixels,
        put: &mut Put<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let size = picture.size();
        refuse!(levels.size() != size || levels.kind().count() != 1 =>
            "the map of noise levels has {} x {} pixels, but the picture {} x {}",
            levels.size().1, levels.size().0, size.1, size.0);
        picture.check_finite()?;
        let (least, most) = ends(levels)?;
        if picture.unit() != 1.0 {
            check_sigma_below_white(most)?;
        }
        refuse!(self.tolerance.is_some() && least != most =>
            "a map of noise levels has no single fixed point: leave the tolerance out, or choose another model than convex");
        if least == most && !self.blend {
            return self.clone().sigma(least).denoise_pixels(picture, put, progress).map(drop);
        }
        self.clone().sigma(most).check()?;
        let method = self.method.suited(picture.kind(), self.kind == Some(NoiseKind::Camera));
        let indices = place(least).0..place(most).0 + 2;
        let works = indices.clone().map(|i| method.work(picture.kind(), self.strength, Some(level(i)), None));
        let works = works.collect::<Result<Vec<_>>>()?;
        let network =
            works.iter().find_map(|work| if let Work::Network(n, _) = work { Some(n) } else { None });
        match network {
            None => self.blend(picture, levels, (indices.start, &works), put, progress),
            Some(any) => {
                let engine = &*self.engine;
                let pass = Pass::new(engine, any, None, size);
                pass.check()?;
                let tiles = pass.tiles().count();
                step(progress, 0, tiles)?;
                for (done, (rows, columns)) in pass.tiles().iter().enumerate() {
                    let (rows, columns) = pass.spans(rows, columns);
                    let part = (rows.wanted.clone(), columns.wanted.clone());
                    let map = levels.crop(part.0.clone(), part.1.clone());
                    let tile = blended(&map, indices.start, |i| match &works[i] {
                        Work::Network(network, most) => {
                            Pass::new(engine, network, *most, size).tile(picture, &rows, &columns)
                        }
                        _ => Ok(picture.crop(part.0.clone(), part.1.clone())),
                    })?;
                    put((rows.wanted.start, columns.wanted.start), &clipped(tile, self.clip));
                    step(progress, done + 1, tiles)?;
                }
                Ok(())
            }
        }
    }

    /// The same for total variation, which needs the whole picture.
    fn blend(
        &self,
        picture: &impl Pixels,
        levels: &impl Pixels,
        (first, works): (usize, &[Work<'_>]),
        put: &mut Put<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let (height, width) = picture.size();
        variation::check_memory(picture.kind(), (height, width))?;
        let noisy = picture.crop(0..height, 0..width);
        let map = levels.crop(0..height, 0..width);
        let estimate = blended(&map, first, |i| match works[i] {
            Work::TotalVariation(lambda) => {
                step(progress, i, works.len())?;
                variation::denoise(&noisy, lambda, &mut |_| progress(i, works.len()))
            }
            _ => Ok(noisy.clone()),
        })?;
        put((0, 0), &clipped(estimate, self.clip));
        step(progress, works.len(), works.len())
    }
}

/// What `denoise` gives for the levels, counted from `first`, that pixels of `map` need, blended.
fn blended(map: &Image, first: usize, mut denoise: impl FnMut(usize) -> Result<Image>) -> Result<Image> {
    let places: Vec<(usize, f64)> = map.data().iter().map(|&sigma| place(sigma.into())).collect();
    let needed =
        |index: usize| places.iter().any(|&(low, share)| low == index || (low + 1 == index && share > 0.0));
    let last = places.iter().map(|&(low, _)| low + 1).max().unwrap_or(first);
    let mut sum: Option<Image> = None;
    for index in (first..=last).filter(|&index| needed(index)) {
        let estimate = denoise(index - first)?;
        let sum = match &mut sum {
            Some(sum) => sum,
            none => none.insert(Image::zeros(estimate.channels(), estimate.height(), estimate.width())?),
        };
        let pixels = estimate.pixels();
        let planes = sum.data_mut().chunks_exact_mut(pixels).zip(estimate.data().chunks_exact(pixels));
        for (sum, estimate) in planes {
            for ((sum, value), &(low, share)) in sum.iter_mut().zip(estimate).zip(&places) {
                if low == index {
                    *sum += (1.0 - share) as f32 * value;
                } else if low + 1 == index {
                    *sum += share as f32 * value;
                }
            }
        }
    }
    Ok(sum.expect("a map has pixels"))
}

/// The least and the highest level of a map; refuses what is no level.
fn ends(levels: &impl Pixels) -> Result<(f64, f64)> {
    let (height, width) = levels.size();
    let band = |top: usize| -> Range<usize> { top..(top + BAND).min(height) };
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for top in (0..height).step_by(BAND) {
        for &sigma in levels.crop(band(top), 0..width).data() {
            check_sigma(sigma.into())?;
            (least, most) = (least.min(sigma.into()), most.max(sigma.into()));
        }
    }
    Ok((least, most))
}
