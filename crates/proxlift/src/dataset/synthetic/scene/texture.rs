//! What surfaces are made of: noise over many octaves, cells, and the materials built from them.

use super::super::arithmetic::{floor, lattice, sine, value_noise};
use super::shape::{Rgb, ease, length, mix, times};

/// Noise with detail down to the pixel, whatever the size of the picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grain {
    seed: u32,
    /// The finest detail that pixels can show, in cycles a unit.
    finest: f32,
}

impl Grain {
    pub(super) fn new(seed: u32, scale: f32) -> Self {
        Self { seed, finest: 0.5 * scale }
    }

    /// The same kind, with other values.
    pub(super) fn other(self, number: u32) -> Self {
        Self { seed: self.seed ^ number.wrapping_mul(0x9e37_79b9), ..self }
    }

    /// Octaves from `frequency` cycles a unit in each direction to the finest, each `gain` times the one before; about
    /// from -1 to 1.
    pub(super) fn fractal(&self, x: f32, y: f32, frequency: (f32, f32), gain: f32) -> f32 {
        let (mut sum, mut all, mut weight, mut octave) = (0.0, 0.0, 1.0, 1.0);
        for number in 0..8_u32 {
            let seed = self.seed.wrapping_add(number.wrapping_mul(0x85eb_ca6b));
            sum += weight * value_noise(x * frequency.0 * octave, y * frequency.1 * octave, seed);
            all += weight * weight;
            octave *= 2.03;
            weight *= gain;
            if frequency.0.max(frequency.1) * octave > self.finest {
                break;
            }
        }
        1.1 * sum / all.sqrt()
    }

    /// Cells around points scattered one to each unit square: 0 at the border, about 1 in the middle; and a random
    /// number in `[-1, 1)` of the cell's own.
    pub(super) fn cells(&self, x: f32, y: f32) -> (f32, f32) {
        let (column, row) = (floor(x), floor(y));
        let (mut first, mut second, mut tone) = (9.0_f32, 9.0_f32, 0.0);
        for near in 0..9 {
            let (i, j) = (column + near % 3 - 1, row + near / 3 - 1);
            let random = |salt: u32| lattice(i as u32, j as u32, self.seed.wrapping_add(salt));
            let distance =
                length(i as f32 + 0.5 + 0.38 * random(1) - x, j as f32 + 0.5 + 0.38 * random(2) - y);
            if distance < first {
                (first, second, tone) = (distance, first, random(3));
            } else {
                second = second.min(distance);
            }
        }
        (second - first, tone)
    }

    /// Sawn wood, its fibres along `x`, with a knot here and there: colour and height.
    pub(super) fn wood(&self, x: f32, y: f32) -> (Rgb, f32) {
        let (inside, tone) = self.other(3).cells(2.6 * x, 9.0 * y);
        let knot = if tone > 0.45 { ease(0.45, 1.15, inside) } else { 0.0 };
        let warp = self.fractal(x, y, (1.1, 6.0), 0.5);
        let rings = sine(17.0 * y + 0.9 * warp + 1.6 * knot);
        let fibre = self.other(1).fractal(x, y, (5.0, 64.0), 0.85);
        let pores = ease(0.25, 1.1, self.other(4).fractal(x, y, (20.0, 230.0), 0.7));
        let stain = self.other(2).fractal(x, y, (2.0, 5.0), 0.7);
        let tone =
            (0.52 + 0.20 * rings + 0.22 * fibre + 0.10 * stain - 0.40 * pores - 0.45 * knot).clamp(0.0, 1.0);
        let colour = mix([0.075, 0.036, 0.017], [0.36, 0.195, 0.088], tone);
        let height = 0.0009 * fibre + 0.0005 * rings - 0.0006 * pores;
        (mix(colour, [0.20, 0.17, 0.14], 0.5 * ease(0.2, 1.4, stain)), height)
    }

    /// Bark with vertical fissures.
    pub(super) fn bark(&self, x: f32, y: f32) -> (Rgb, f32) {
        let warp = self.fractal(x, y, (9.0, 4.0), 0.6);
        let sway = self.other(3).fractal(x, y, (7.0, 6.0), 0.5);
        let (inside, tone) = self.other(1).cells(24.0 * x + 0.65 * warp, 6.5 * y + 0.9 * sway);
        let rough = self.other(2).fractal(x, y, (60.0, 26.0), 0.75);
        let ridge = ease(0.0, 0.45, inside + 0.10 * rough);
        let light = ridge * (0.72 + 0.16 * tone + 0.26 * rough);
        let colour = mix([0.022, 0.016, 0.012], [0.24, 0.19, 0.145], light);
        let lichen = ease(0.55, 1.05, self.other(4).fractal(x, y, (7.0, 5.0), 0.7) + 0.3 * rough) * ridge;
        (mix(colour, [0.23, 0.27, 0.13], 0.75 * lichen), 0.0085 * ridge + 0.0022 * rough)
    }

    /// Broken stone: `tone` makes one differ from the next.
    pub(super) fn stone(&self, x: f32, y: f32, tone: f32) -> (Rgb, f32) {
        let rough = self.fractal(x, y, (16.0, 22.0), 0.72);
        let spots = self.other(1).fractal(x, y, (70.0, 70.0), 0.8);
        let warm = self.other(2).fractal(x, y, (4.0, 4.0), 0.5) + tone;
        let colour = mix([0.20, 0.19, 0.18], [0.36, 0.28, 0.19], ease(-1.2, 1.2, warm));
        let light = (0.90 + 0.24 * tone + 0.22 * rough + 0.26 * spots).max(0.15);
        (times(colour, light), 0.0034 * rough + 0.0010 * spots)
    }

    /// Tartan in twill: stripes of threads over and under each other.
    pub(super) fn tartan(&self, x: f32, y: f32) -> (Rgb, f32) {
        const THREADS: f32 = 230.0;
        let (i, j) = (floor(x * THREADS), floor(y * THREADS));
        let thread = |i: i32| match i.rem_euclid(32) {
            0..=12 => [0.46, 0.028, 0.022],
            15..=16 => [0.62, 0.50, 0.16],
            19..=27 => [0.016, 0.055, 0.036],
            30 => [0.66, 0.62, 0.55],
            _ => [0.018, 0.022, 0.075],
        };
        let over = (i + j).rem_euclid(4) < 2;
        let (u, v) = (x * THREADS - i as f32 - 0.5, y * THREADS - j as f32 - 0.5);
        let (colour, round) = if over { (thread(i), u) } else { (thread(j), v) };
        let worn = 1.0 + 0.16 * self.fractal(x, y, (60.0, 60.0), 0.8);
        (times(colour, worn * (1.06 - 0.6 * round * round)), -0.0005 * round * round)
    }
}
