//! Colours and textures.

use super::arithmetic::{bell, log_uniform, range, sine, value_noise};
use super::direction;
use crate::random::unit;
use rand::Rng;

/// The mood of one image: its tones, tint and saturation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    /// Darkest and lightest tone of leaves.
    tones: (f32, f32),
    /// Whether tones crowd at the dark end (positive) or the light end.
    skew: f32,
    /// Mean chroma: warm against cool, green against magenta.
    tint: (f32, f32),
    saturation: f32,
    roughness: f32,
}

/// What covers a leaf, as a function of its own coordinates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paint {
    tone: f32,
    chroma: (f32, f32),
    slope: (f32, f32),
    texture: Texture,
    strength: f32,
}

#[derive(Clone, Copy, Debug)]
enum Texture {
    None,
    /// Waves along a direction; `sharp` of 1 is a sine, more is stripes.
    Waves {
        frequency: (f32, f32),
        phase: f32,
        sharp: f32,
    },
    /// Value noise over octaves, stretched along the first axis.
    Noise {
        frequency: (f32, f32),
        gain: f32,
        seed: u32,
    },
}

impl Palette {
    pub(super) fn draw(rng: &mut impl Rng) -> Self {
        let contrast = 0.05 + 0.95 * unit(rng).max(0.6 * unit(rng));
        let dark = range(rng, 0.0, 1.0 - contrast);
        Self {
            tones: (dark, dark + contrast),
            skew: range(rng, -1.0, 1.0),
            tint: (0.05 * bell(rng), 0.02 * bell(rng)),
            saturation: log_uniform(rng, 0.015, 2.5),
            roughness: log_uniform(rng, 0.1, 4.5),
        }
    }

    pub(super) fn paint(&self, rng: &mut impl Rng, radius: f32) -> Paint {
        let (a, b) = (unit(rng), unit(rng));
        // A product crowds at 0; blending it with its mirror image skews the tones either way.
        let crowded = if self.skew > 0.0 { a * b } else { 1.0 - a * b };
        let even = unit(rng);
        let t = even + self.skew.abs() * (crowded - even);
        let chroma =
            (self.tint.0 + self.saturation * bell(rng), self.tint.1 + 0.4 * self.saturation * bell(rng));
        let shading = if unit(rng) < 0.6 { 0.12 * bell(rng) / radius } else { 0.0 };
        let along = direction(rng);
        let kind = unit(rng);
        let texture = if radius < 3.0 || kind < 0.15 {
            Texture::None
        } else if kind < 0.25 {
            let frequency = 1.0 / log_uniform(rng, 4.0, 4.0);
            let way = direction(rng);
            Texture::Waves {
                frequency: (frequency * way.0, frequency * way.1),
                phase: unit(rng),
                sharp: log_uniform(rng, 1.0, 2.0),
            }
        } else {
            let frequency = 1.0 / log_uniform(rng, 4.0, 4.0);
            let stretch = log_uniform(rng, 1.0, 1.5);
            Texture::Noise {
                frequency: (frequency / stretch, frequency * stretch),
                gain: range(rng, 0.6, 1.2),
                seed: rng.next_u32(),
            }
        };
        Paint {
            tone: self.tones.0 + (self.tones.1 - self.tones.0) * t,
            chroma,
            slope: (shading * along.0, shading * along.1),
            texture,
            strength: self.roughness * log_uniform(rng, 0.04, 3.0),
        }
    }
}

impl Paint {
    /// The colour at `(u, v)`; one channel gives the luma of three.
    pub(super) fn at<const C: usize>(&self, u: f32, v: f32) -> [f32; C] {
        let texture = match self.texture {
            Texture::None => 0.0,
            Texture::Waves { frequency, phase, sharp } => {
                (sharp * sine(u * frequency.0 + v * frequency.1 + phase)).clamp(-1.0, 1.0)
            }
            Texture::Noise { frequency, gain, seed } => octaves(u * frequency.0, v * frequency.1, gain, seed),
        };
        let luma = self.tone + self.slope.0 * u + self.slope.1 * v + self.strength * texture;
        if C == 1 {
            return [luma; C];
        }
        // YCbCr with orange against blue as the main axis of colour, as daylight and shade have it.
        let (warm, green) = self.chroma;
        let (cb, cr) = (-0.7 * warm - 0.5 * green, 0.7 * warm - 0.5 * green);
        let rgb = [luma + 1.402 * cr, luma - 0.344 * cb - 0.714 * cr, luma + 1.772 * cb];
        std::array::from_fn(|c| rgb[c])
    }
}

fn octaves(x: f32, y: f32, gain: f32, seed: u32) -> f32 {
    let (mut sum, mut weight, mut scale) = (0.0, 1.0, 1.0);
    for octave in 0..4_u32 {
        sum +=
            weight * value_noise(x * scale, y * scale, seed.wrapping_add(octave.wrapping_mul(0x9e37_79b9)));
        weight *= gain;
        scale *= 2.0;
    }
    sum
}
