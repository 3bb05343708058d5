//! What is out of focus: sky, wires, trees whose gaps of light become discs, a meadow.

use super::shape::{Area, Rgb, ease, length, mix, times};
use super::{super::arithmetic::range, canvas::Canvas, texture::Grain};
use crate::random::unit;
use rand::Rng;

/// Where the meadow begins.
const HORIZON: f32 = 0.56;

pub(super) fn paint(canvas: &mut Canvas, rng: &mut impl Rng, grain: Grain) {
    let all = canvas.area();
    canvas.glow(all, |x, y| {
        let sky = mix([0.12, 0.30, 0.70], [0.86, 0.78, 0.64], ease(-0.05, 0.60, y + 0.04 * x));
        let cloud = grain.fractal(x, y, (1.2, 3.4), 0.42);
        (mix(sky, [1.0, 0.95, 0.90], 0.55 * ease(0.0, 1.2, cloud)), 1.0)
    });
    hills(canvas, grain.other(1));
    for (left, right, sag) in [(0.10, 0.235, 0.07), (0.135, 0.262, 0.075)] {
        canvas.glow(all, |x, y| {
            let t = x / 1.5;
            let wire = left + t * (right - left) + 4.0 * sag * t * (1.0 - t);
            ([0.10, 0.11, 0.13], 0.8 * ease(0.0028, 0.0008, (y - wire).abs()))
        });
    }
    trees(canvas, rng, grain.other(2));
    meadow(canvas, rng, grain.other(3));
}

fn hills(canvas: &mut Canvas, grain: Grain) {
    for (number, (height, colour)) in
        [(0.43, [0.44, 0.53, 0.66]), (0.475, [0.27, 0.36, 0.40])].into_iter().enumerate()
    {
        let grain = grain.other(number as u32);
        canvas.glow(canvas.area(), |x, y| {
            let edge = height + 0.035 * grain.fractal(x, 0.0, (2.2, 1.0), 0.35);
            (mix(colour, [0.62, 0.62, 0.52], ease(edge, edge + 0.16, y)), ease(edge - 0.006, edge + 0.006, y))
        });
    }
}

/// Discs from dark to bright, thickest on the left; the last are small gaps through which the sun shines.
fn trees(canvas: &mut Canvas, rng: &mut impl Rng, grain: Grain) {
    let top = |x: f32| 0.40 - 0.34 * ease(1.02, 0.28, x) + 0.10 * grain.fractal(x, 0.5, (3.4, 1.0), 0.5);
    let count = 900;
    for number in 0..count {
        let age = number as f32 / count as f32;
        let x = range(rng, -0.05, 1.55);
        let crown = top(x);
        let y = crown + (HORIZON + 0.06 - crown) * unit(rng);
        let radius = range(rng, 0.016, 0.045) * (1.25 - 0.5 * age);
        let tone = 0.03 + 0.34 * age * unit(rng) + 0.16 * ease(crown + 0.18, crown, y) * age;
        let yellow = unit(rng);
        let colour: Rgb = [tone * (0.62 + 0.55 * yellow), tone * (0.95 + 0.1 * yellow), tone * 0.36];
        disc(canvas, (x, y), radius, 0.55 * radius, colour, 0.75);
    }
    for _ in 0..130 {
        let x = range(rng, -0.05, 1.5);
        let y = top(x) + 0.02 + (HORIZON - top(x)) * unit(rng) * unit(rng);
        let light = range(rng, 0.7, 1.7);
        let colour = [1.0 * light, 0.98 * light, range(rng, 0.42, 0.8) * light];
        disc(canvas, (x, y), range(rng, 0.008, 0.021), 0.003, colour, range(rng, 0.15, 0.65));
    }
}

fn meadow(canvas: &mut Canvas, rng: &mut impl Rng, grain: Grain) {
    canvas.glow(Area { top: HORIZON - 0.05, ..canvas.area() }, |x, y| {
        let streak = grain.fractal(x, y, (2.0, 14.0), 0.4);
        let green = mix([0.34, 0.37, 0.11], [0.13, 0.19, 0.04], ease(HORIZON - 0.02, 0.70, y));
        (times(green, 1.0 + 0.28 * streak), ease(HORIZON - 0.02, HORIZON + 0.02, y + 0.012 * streak))
    });
    for _ in 0..240 {
        let at = (range(rng, -0.05, 1.55), HORIZON + 0.03 + 0.2 * unit(rng));
        let tone = range(rng, 0.15, 0.6);
        disc(canvas, at, range(rng, 0.005, 0.014), 0.004, [tone, 0.95 * tone, 0.28 * tone], 0.4);
    }
}

/// The image of a point of light out of focus: a disc with a soft edge.
fn disc(canvas: &mut Canvas, at: (f32, f32), radius: f32, soft: f32, colour: Rgb, cover: f32) {
    canvas.glow(Area::about(at, radius + soft), |x, y| {
        let distance = length(x - at.0, y - at.1);
        // Lenses make the rim a little brighter.
        let rim = 0.8 + 0.3 * ease(0.4 * radius, radius, distance);
        (times(colour, rim), cover * ease(radius + soft, radius - soft, distance))
    });
}
