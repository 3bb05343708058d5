//! One picture through a network, tile by tile: never more of it in floats than a tile that fits the memory.
//!
//! The result has the same bits as the whole picture at once, rounded to the picture's depth, since a tile sees all that
//! its pixels depend on. Around the picture the network sees a mirrored [border](Network::border).

use super::pixels::{BAND, Pixels};
use super::progress::{Progress, step};
use super::solved::{self, Proof};
use super::span::Span;
use super::{method::Work, noise::Noise, stabiliser::Stabiliser, variation};
use crate::engine::{Cut, Engine, Tiles};
use crate::image::{Image, io::Raster};
use crate::model::BuiltIn;
use crate::{Result, memory, network::Network};
use std::ops::Range;
use std::sync::OnceLock;

/// Floating-point operations that are done for a picture: the largest built-in network needs a hundredth of it for
/// 2^29 pixels.
const MOST_WORK: f64 = 1e16;

/// Takes a rectangle of the result, with the row and column where it belongs.
pub type Put<'a> = dyn FnMut((usize, usize), &Image) + 'a;

/// A [`Denoiser`](super::Denoiser) that has settled the noise level of a picture and is ready for it.
pub struct Prepared<'a> {
    pub(super) work: Work<'a>,
    pub(super) stabiliser: Option<Stabiliser>,
    pub(super) clip: bool,
    /// The level that the picture will be denoised for, unless a network is used as it was trained or total variation
    /// has a weight of its own.
    pub noise: Option<Noise>,
    /// The built-in model that denoises it, if one does.
    pub built_in: Option<BuiltIn>,
    pub(super) engine: &'a dyn Engine<f32>,
    pub(super) proof: OnceLock<Proof>,
}

impl Prepared<'_> {
    /// The second half of [`Denoiser::denoise_raster`](super::Denoiser::denoise_raster).
    pub fn denoise_raster(&self, raster: &mut Raster, progress: &mut Progress<'_>) -> Result<()> {
        memory::or_error(|| match &self.work {
            Work::Nothing => Ok(()),
            Work::Network(network, most) => {
                self.pass(network, *most, raster.size())?.raster(raster, progress)
            }
            Work::TotalVariation(_) | Work::Solved(..) => {
                let estimate = self.whole(raster, progress)?;
                raster.put((0, 0), &estimate);
                Ok(())
            }
        })
    }

    /// The second half of [`Denoiser::denoise_pixels`](super::Denoiser::denoise_pixels), for the picture that this was
    /// prepared for or for a part of it.
    pub fn denoise_pixels(
        &self,
        picture: &impl Pixels,
        put: &mut Put<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        memory::or_error(|| {
            match &self.work {
                Work::Nothing => copy(picture, self.clip, put),
                Work::Network(network, most) => {
                    return self.pass(network, *most, picture.size())?.pixels(picture, put, progress);
                }
                Work::TotalVariation(_) | Work::Solved(..) => put((0, 0), &self.whole(picture, progress)?),
            }
            Ok(())
        })
    }

    /// What was proven of the last picture that was [solved](super::Denoiser::tolerance) for.
    pub fn proof(&self) -> Option<Proof> {
        self.proof.get().copied()
    }

    /// A picture by what needs the whole of it.
    pub(super) fn whole(&self, picture: &impl Pixels, progress: &mut Progress<'_>) -> Result<Image> {
        let (height, width) = picture.size();
        if matches!(self.work, Work::TotalVariation(_)) {
            variation::check_memory(picture.kind(), (height, width))?;
        }
        let stabiliser = self.stabiliser.as_ref();
        let noisy = forward(stabiliser, picture.crop(0..height, 0..width));
        let estimate = match &self.work {
            Work::TotalVariation(lambda) => {
                step(progress, 0, 1)?;
                let estimate = variation::denoise(&noisy, *lambda, &mut |_| progress(0, 1))?;
                step(progress, 1, 1)?;
                estimate
            }
            Work::Solved(network, tolerance) => {
                let (estimate, proof) =
                    solved::denoise((self.engine, network), &noisy, *tolerance, progress)?;
                self.proof.get_or_init(|| proof);
                estimate
            }
            Work::Nothing | Work::Network(..) => noisy,
        };
        finished(stabiliser, estimate, self.clip)
    }

    pub(super) fn pass<'b>(
        &'b self,
        network: &'b Network<f32>,
        most: Option<f32>,
        size: (usize, usize),
    ) -> Result<Pass<'b>> {
        let pass = Pass::new(self.engine, network, most, size);
        pass.check()?;
        Ok(Pass { stabiliser: self.stabiliser.as_ref(), clip: self.clip, ..pass })
    }
}

/// A picture as it is, in bands of rows.
fn copy(picture: &impl Pixels, clip: bool, put: &mut Put<'_>) {
    let (height, width) = picture.size();
    for top in (0..height).step_by(BAND) {
        put((top, 0), &clipped(picture.crop(top..(top + BAND).min(height), 0..width), clip));
    }
}

fn forward(stabiliser: Option<&Stabiliser>, image: Image) -> Image {
    if let Some(stabiliser) = stabiliser { stabiliser.forward(image) } else { image }
}

/// An estimate on the scale of the picture; refuses one that is not finite, which an integer format would store as
/// black.
fn finished(stabiliser: Option<&Stabiliser>, estimate: Image, clip: bool) -> Result<Image> {
    let estimate = if let Some(stabiliser) = stabiliser { stabiliser.inverse(estimate) } else { estimate };
    refuse!(estimate.data().iter().any(|v| !v.is_finite()) =>
        "the result holds a number that is not finite: the model is damaged, or the picture has values beyond what \
         numbers of 32 bits can hold");
    Ok(clipped(estimate, clip))
}

/// Brings every estimate to within `most` of what it is an estimate of; what is not finite stays, to be refused.
pub(super) fn limit(most: f32, noisy: &[f32], estimate: &mut [f32]) {
    for (estimate, noisy) in estimate.iter_mut().zip(noisy) {
        let change = *estimate - noisy;
        if change.is_finite() && change.abs() > most {
            *estimate = noisy + most.copysign(change);
        }
    }
}

pub(super) fn clipped(mut image: Image, clip: bool) -> Image {
    if clip {
        image.data_mut().iter_mut().for_each(|v| *v = v.clamp(0.0, 1.0));
    }
    image
}

pub(super) struct Pass<'a> {
    engine: &'a dyn Engine<f32>,
    network: &'a Network<f32>,
    /// The most that a pixel may change.
    most: Option<f32>,
    stabiliser: Option<&'a Stabiliser>,
    /// Of the picture.
    size: (usize, usize),
    /// Of the picture with its border.
    tiles: Tiles,
    clip: bool,
}

impl<'a> Pass<'a> {
    pub fn new(
        engine: &'a dyn Engine<f32>,
        network: &'a Network<f32>,
        most: Option<f32>,
        size: (usize, usize),
    ) -> Self {
        // Tiles are cut from the planes that the network sees, so that no tile begins between two phases.
        let stride = network.architecture().stride();
        let [height, width] = [size.0, size.1].map(|side| (side + 2 * network.border).div_ceil(stride));
        let tiles = engine.tiles(network.architecture(), height, width);
        Self { engine, network, most, stabiliser: None, size, tiles, clip: false }
    }

    /// Refuses what would take days, or more memory than there is.
    pub fn check(&self) -> Result<()> {
        let architecture = self.network.architecture();
        let pixels = self.tiles.pixels() * (architecture.stride().pow(2) as u64);
        let work = pixels as f64 * architecture.forward_flops() as f64;
        refuse!(work > MOST_WORK =>
            "the network needs about {work:.0e} operations for a picture of this size, which would take days: use a \
             smaller one");
        memory::check("a tile of the picture in this network", self.tiles.bytes(architecture))
    }

    /// Tile after tile.
    fn pixels(&self, picture: &impl Pixels, put: &mut Put<'_>, progress: &mut Progress<'_>) -> Result<()> {
        step(progress, 0, self.tiles.count())?;
        for (done, (rows, columns)) in self.tiles.iter().enumerate() {
            let (rows, columns) = self.spans(rows, columns);
            put((rows.wanted.start, columns.wanted.start), &self.tile(picture, &rows, &columns)?);
            step(progress, done + 1, self.tiles.count())?;
        }
        Ok(())
    }

    /// In place, with two copies of a row of tiles in the depth of the picture.
    fn raster(&self, raster: &mut Raster, progress: &mut Progress<'_>) -> Result<()> {
        let mut done = 0;
        step(progress, done, self.tiles.count())?;
        // The rows above are needed as they were by the tiles below them, which see no further than one row of tiles.
        let mut above: Option<(usize, Raster)> = None;
        for rows in &self.tiles.rows {
            let wanted = self.spans(rows, rows).0.wanted;
            let mut result = raster.rows(wanted.clone());
            for columns in &self.tiles.columns {
                let (rows, columns) = self.spans(rows, columns);
                let tile = self.tile(raster, &rows, &columns)?;
                result.put((0, columns.wanted.start), &tile);
                done += 1;
                step(progress, done, self.tiles.count())?;
            }
            if let Some((y, result)) = above.replace((wanted.start, result)) {
                raster.put_rows(y, &result);
            }
        }
        if let Some((y, result)) = above {
            raster.put_rows(y, &result);
        }
        Ok(())
    }

    pub fn tiles(&self) -> &Tiles {
        &self.tiles
    }

    pub fn spans(&self, rows: &Cut, columns: &Cut) -> (Span, Span) {
        let (stride, border) = (self.network.architecture().stride(), self.network.border);
        let span = |cut: &Cut, length| Span::new(&cut.times(stride), length, border);
        (span(rows, self.size.0), span(columns, self.size.1))
    }

    /// The pixels that a tile wants, denoised.
    pub fn tile(&self, picture: &impl Pixels, rows: &Span, columns: &Span) -> Result<Image> {
        self.of_seen(picture.crop(rows.seen.clone(), columns.seen.clone()), rows, columns)
    }

    /// The same from the pixels that it sees. A network for grey pictures takes the channels of a colour picture as so many
    /// samples.
    pub fn of_seen(&self, seen: Image, rows: &Span, columns: &Span) -> Result<Image> {
        let (architecture, channels) = (self.network.architecture(), seen.channels());
        let noisy = seen.mirrored(rows.mirrored, columns.mirrored);
        drop(seen);
        let noisy = forward(self.stabiliser, noisy);
        let z = architecture.batch(noisy.data(), (noisy.height(), noisy.width()))?;
        drop(noisy);
        let mut output = z.zeros_like();
        let (wanted, stride) = ((rows.inside(), columns.inside()), architecture.stride());
        let phases = |range: Range<usize>| range.start / stride..range.end.div_ceil(stride);
        let planes = (phases(wanted.0), phases(wanted.1));
        self.engine.denoise_tile(self.network, &z, planes.clone(), &mut output);
        let mut data = architecture.images_of(&output, planes.clone());
        if let Some(most) = self.most {
            limit(most, &architecture.images_of(&z, planes.clone()), &mut data);
        }
        let (height, width) = (planes.0.len() * stride, planes.1.len() * stride);
        let tile = Image::new(channels, height, width, data)?;
        // With an odd side, the last row or column of phases has one that the picture has not.
        let tile = if (height, width) == (rows.wanted.len(), columns.wanted.len()) {
            tile
        } else {
            tile.crop(0..rows.wanted.len(), 0..columns.wanted.len())
        };
        finished(self.stabiliser, tile, self.clip)
    }
}
