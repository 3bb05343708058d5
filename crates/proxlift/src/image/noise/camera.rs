//! Noise as cameras make it: photons and read-out in linear light, white balance, demosaicing, the tone curve, smoothing,
//! 8 bits, JPEG. It is spatially correlated, differs between channels and follows the light.
//!
//! All steps but the tone curve and JPEG are linear, so they are applied to the noise alone: the picture keeps its
//! detail. White balance comes before demosaicing, as in cameras. The demosaicing filters are those of H. S. Malvar,
//! L. He, R. Cutler, "High-quality linear interpolation for demosaicing of Bayer-patterned color images", ICASSP 2004.

use crate::image::Image;
use crate::random::{below, unit};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use std::f32::consts::PI;

/// What a camera does to a picture. Values are those where white is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct CameraNoise {
    /// In linear light the variance of the noise is `gain x + read_noise^2`.
    pub gain: f32,
    /// See `gain`.
    pub read_noise: f32,
    /// What the sensor's red, green and blue are multiplied by.
    pub balance: [f32; 3],
    /// How the three colours come from a sensor that sees one at a pixel.
    pub demosaicing: Demosaicing,
    /// Standard deviations, in pixels, of the Gaussian that smooths brightness, and of the one that smooths colour.
    pub smoothing: [f32; 2],
    /// The share of colour noise that the camera leaves.
    pub colour: f32,
    /// JPEG quality, and whether colours are stored at half the resolution.
    pub jpeg: Option<(u8, bool)>,
}

/// How the three colours come from a sensor that sees one at a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demosaicing {
    /// The picture was scaled down so far that each pixel saw all colours.
    None,
    /// The mean of the neighbours that saw the colour.
    Bilinear,
    /// Bilinear, corrected by the gradients of the colour that the pixel saw (Malvar et al.).
    GradientCorrected,
}

/// Mid-grey in linear light, where the strength of the noise is drawn.
const MID_GREY: f32 = 0.2;
/// The least and largest standard deviation of the noise there, in displayed values, about, after it was smoothed.
const STRENGTH: [f32; 2] = [1.5 / 255.0, 24.0 / 255.0];

impl CameraNoise {
    /// A camera at random, with noise from hardly visible to strong.
    pub fn draw(rng: &mut impl Rng) -> Self {
        let mut between = |low: f32, high: f32| low + (high - low) * unit(rng);
        let luma = between(-0.4, 1.4).max(0.0);
        let chroma = luma + between(-0.5, 2.5).max(0.0);
        // A Gaussian of standard deviation s leaves about 1 / (1 + 4 pi s^2) of the variance of white noise.
        let left = (1.0 + 4.0 * PI * luma * luma).sqrt().recip();
        let displayed = between(STRENGTH[0].ln(), STRENGTH[1].ln()).exp() / left;
        let linear = displayed / (display(MID_GREY + 0.01) - display(MID_GREY - 0.01)) * 0.02;
        let read = between(0.1, 0.6);
        let colour = between(-0.4, 1.1).clamp(0.0, 1.0);
        let balance = [between(1.3, 2.4), 1.0, between(1.2, 2.2)];
        let (quality, keeps) = (between(75.0, 99.0) as u8, between(0.0, 1.0) < 0.35);
        let demosaicing =
            [Demosaicing::None, Demosaicing::Bilinear, Demosaicing::GradientCorrected][below(rng, 3)];
        let jpeg = (!keeps).then(|| (quality, below(rng, 2) == 1));
        let gain = (1.0 - read * read) * linear * linear / MID_GREY;
        Self {
            gain,
            read_noise: read * linear,
            balance,
            demosaicing,
            smoothing: [luma, chroma],
            colour,
            jpeg,
        }
    }

    /// What this camera makes of a colour picture without noise, planar, `height` x `width`.
    ///
    /// # Panics
    /// If it does not have three planes.
    pub fn add(&self, rng: &mut impl Rng, (height, width): (usize, usize), values: &mut [f32]) {
        assert_eq!(values.len(), 3 * height * width, "a camera sees three colours");
        let pixels = height * width;
        let mut noise = vec![0.0; values.len()];
        for (c, (noise, values)) in
            noise.chunks_exact_mut(pixels).zip(values.chunks_exact(pixels)).enumerate()
        {
            for (n, &v) in noise.iter_mut().zip(values) {
                let variance = self.gain * light(v) / self.balance[c] + self.read_noise * self.read_noise;
                let normal: f32 = StandardNormal.sample(rng);
                *n = self.balance[c] * variance.sqrt() * normal;
            }
        }
        if self.demosaicing != Demosaicing::None {
            noise = demosaic(&noise, (height, width), self.demosaicing);
        }
        for (n, &v) in noise.iter_mut().zip(&*values) {
            *n = display(light(v) + *n) - v;
        }
        smooth(&mut noise, (height, width), self.smoothing, self.colour);
        values
            .iter_mut()
            .zip(&noise)
            .for_each(|(v, n)| *v = ((*v + n).clamp(0.0, 1.0) * 255.0).round() / 255.0);
        if let Some((quality, half)) = self.jpeg {
            through_jpeg(values, (height, width), quality, half);
        }
    }

    /// [`CameraNoise::add`] for an image.
    pub fn photograph(&self, rng: &mut impl Rng, clean: &Image) -> Image {
        let mut noisy = clean.clone();
        self.add(rng, (clean.height(), clean.width()), noisy.data_mut());
        noisy
    }
}

/// A displayed value in linear light (sRGB).
fn light(v: f32) -> f32 {
    if v <= 0.04045 { v.max(0.0) / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
}

/// Linear light as it is displayed (sRGB), clipped to white.
fn display(x: f32) -> f32 {
    if x <= 0.003_130_8 { 12.92 * x.max(0.0) } else { 1.055 * x.min(1.0).powf(1.0 / 2.4) - 0.055 }
}

/// Rows and columns of a colour that a pixel did not see, with weights in eighths: offsets of one quadrant kind each.
type Taps = &'static [(isize, isize, f32)];

const CROSS: Taps = &[(0, 1, 2.0), (0, -1, 2.0), (1, 0, 2.0), (-1, 0, 2.0)];
const DIAGONAL: Taps = &[(1, 1, 2.0), (1, -1, 2.0), (-1, 1, 2.0), (-1, -1, 2.0)];
const ALONG: Taps = &[(0, 1, 4.0), (0, -1, 4.0)];
/// What Malvar's filters add: of the colour that the pixel saw.
const GREEN_CORRECTION: Taps = &[(0, 0, 4.0), (0, 2, -1.0), (0, -2, -1.0), (2, 0, -1.0), (-2, 0, -1.0)];
const OPPOSITE_CORRECTION: Taps = &[(0, 0, 6.0), (0, 2, -1.5), (0, -2, -1.5), (2, 0, -1.5), (-2, 0, -1.5)];
const ALONG_CORRECTION: Taps = &[
    (0, 0, 5.0),
    (0, 2, -1.0),
    (0, -2, -1.0),
    (2, 0, 0.5),
    (-2, 0, 0.5),
    (1, 1, -1.0),
    (1, -1, -1.0),
    (-1, 1, -1.0),
    (-1, -1, -1.0),
];

/// The colour that a pixel of the sensor sees: red and green in even rows, green and blue in odd ones.
fn seen(y: usize, x: usize) -> usize {
    (y % 2) + (x % 2)
}

/// Three planes from the one colour that each pixel saw of `planes`.
fn demosaic(planes: &[f32], (height, width): (usize, usize), how: Demosaicing) -> Vec<f32> {
    let pixels = height * width;
    // Mirrored at the edge of a pixel, so that the pattern goes on.
    let mirror = |i: isize, n: usize| {
        let last = n as isize - 1;
        let inside = if i < 0 {
            -i
        } else if i > last {
            2 * last - i
        } else {
            i
        };
        inside.clamp(0, last) as usize
    };
    let at = |y: usize, x: usize| {
        let c = seen(y, x);
        planes[c * pixels + y * width + x]
    };
    let sum = |y: usize, x: usize, taps: Taps, turned: bool| -> f32 {
        let tap = |&(dy, dx, weight): &(isize, isize, f32)| {
            let (dy, dx) = if turned { (dx, dy) } else { (dy, dx) };
            weight / 8.0 * at(mirror(y as isize + dy, height), mirror(x as isize + dx, width))
        };
        taps.iter().map(tap).sum()
    };
    let corrected = how == Demosaicing::GradientCorrected;
    let mut out = vec![0.0; planes.len()];
    for c in 0..3 {
        for y in 0..height {
            for x in 0..width {
                let (near, correction, turned) = match (seen(y, x), c) {
                    (own, c) if own == c => {
                        out[c * pixels + y * width + x] = at(y, x);
                        continue;
                    }
                    (_, 1) => (CROSS, GREEN_CORRECTION, false),
                    // Red lies in the rows of green pixels that are even, blue in their odd ones.
                    (1, c) => (ALONG, ALONG_CORRECTION, (y % 2 == 0) != (c == 0)),
                    _ => (DIAGONAL, OPPOSITE_CORRECTION, false),
                };
                let near = sum(y, x, near, turned);
                let more = if corrected { sum(y, x, correction, turned) } else { 0.0 };
                out[c * pixels + y * width + x] = near + more;
            }
        }
    }
    out
}

/// Smooths brightness and colour differences of three planes, and keeps a share of the latter.
fn smooth(planes: &mut [f32], size: (usize, usize), [luma, chroma]: [f32; 2], colour: f32) {
    let pixels = size.0 * size.1;
    let mean: Vec<f32> =
        (0..pixels).map(|i| (planes[i] + planes[pixels + i] + planes[2 * pixels + i]) / 3.0).collect();
    let mut bright = mean.clone();
    blur(&mut bright, size, luma);
    for plane in planes.chunks_exact_mut(pixels) {
        plane.iter_mut().zip(&mean).for_each(|(v, m)| *v = colour * (*v - m));
        blur(plane, size, chroma);
        plane.iter_mut().zip(&bright).for_each(|(v, b)| *v += b);
    }
}

/// A Gaussian of standard deviation `sigma`, over rows and columns, weighted anew at the edges.
fn blur(plane: &mut [f32], (height, width): (usize, usize), sigma: f32) {
    let radius = (3.0 * sigma).ceil() as usize;
    if sigma < 0.1 {
        return;
    }
    let weights: Vec<f32> = (0..=radius).map(|d| (-0.5 * (d as f32 / sigma).powi(2)).exp()).collect();
    let mut line = Vec::new();
    let mut along = |plane: &mut [f32], start: usize, step: usize, count: usize| {
        line.clear();
        line.extend((0..count).map(|i| plane[start + i * step]));
        for i in 0..count {
            let (from, to) = (i.saturating_sub(radius), (i + radius).min(count - 1));
            let (sum, total) = (from..=to).fold((0.0, 0.0), |(sum, total), k| {
                let weight = weights[k.abs_diff(i)];
                (sum + weight * line[k], total + weight)
            });
            plane[start + i * step] = sum / total;
        }
    };
    (0..height).for_each(|y| along(plane, y * width, 1, width));
    (0..width).for_each(|x| along(plane, x, width, height));
}

/// Encodes and decodes three planes.
fn through_jpeg(planes: &mut [f32], (height, width): (usize, usize), quality: u8, half: bool) {
    use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
    let pixels = height * width;
    let byte = |v: f32| (255.0 * v).round() as u8;
    let rgb: Vec<u8> = (0..3 * pixels).map(|i| byte(planes[i % 3 * pixels + i / 3])).collect();
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, quality);
    encoder.set_sampling_factor(if half { SamplingFactor::F_2_2 } else { SamplingFactor::F_1_1 });
    let side = |n: usize| u16::try_from(n).expect("a picture that a camera takes");
    encoder.encode(&rgb, side(width), side(height), ColorType::Rgb).expect("memory takes all bytes");
    let mut decoder = zune_jpeg::JpegDecoder::new(zune_jpeg::zune_core::bytestream::ZCursor::new(file));
    let rgb = decoder.decode().expect("what was just encoded");
    rgb.iter().enumerate().for_each(|(i, &v)| planes[i % 3 * pixels + i / 3] = f32::from(v) / 255.0);
}
