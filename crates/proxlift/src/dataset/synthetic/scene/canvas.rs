//! The picture while it is painted: surfaces are lit, laid over each other from back to front, and developed.

use super::shape::{Area, Rgb, ease, mix};
use crate::{Result, image::Image};
use std::ops::Range;

/// Where the sun is: up on the left, behind the camera. A unit vector; `y` points down, `z` at the camera.
const SUN: [f32; 3] = [-0.48, -0.6, 0.64];
const SUNLIGHT: Rgb = [1.72, 1.38, 0.94];
/// The light of the sky on what faces it, and of what reaches everything else.
const SKYLIGHT: Rgb = [0.20, 0.27, 0.40];
const BOUNCED: Rgb = [0.12, 0.11, 0.08];
/// What is left of the light in full shadow.
const SHADOW: Rgb = [0.20, 0.25, 0.36];

/// Where a shadow falls, and how soft it is, for each unit between what casts it and what it falls on.
const AWAY: (f32, f32) = (0.75, 0.94);
const PENUMBRA: f32 = 0.1;

/// A surface at one place: its own colour, and its height towards the camera, whose slope makes the shading.
pub(super) type Surface = (Rgb, f32);

/// Light that was gathered so far.
pub(super) struct Canvas {
    height: usize,
    width: usize,
    /// Pixels in a unit of the scene.
    pub(super) scale: f32,
    /// Of the picture's corner, in units of the scene.
    origin: (f32, f32),
    light: Vec<Rgb>,
    /// How much of a pixel belongs to what is near; only that takes shadows.
    near: Vec<f32>,
}

impl Canvas {
    /// A picture that is filled by the middle of `frame`.
    pub(super) fn new(height: usize, width: usize, frame: (f32, f32)) -> Self {
        let scale = (height as f32 / frame.1).max(width as f32 / frame.0);
        let corner = |frame: f32, pixels: usize| 0.5 * (frame - pixels as f32 / scale);
        let origin = (corner(frame.0, width), corner(frame.1, height));
        let (light, near) = (vec![[0.0; 3]; height * width], vec![0.0; height * width]);
        Self { height, width, scale, origin, light, near }
    }

    pub(super) fn area(&self) -> Area {
        let (x, y) = self.origin;
        let (right, bottom) = (x + self.width as f32 / self.scale, y + self.height as f32 / self.scale);
        Area { left: x, top: y, right, bottom }
    }

    /// The rows and columns of pixels in an area, with one more on all sides.
    fn pixels(&self, area: Area) -> (Range<usize>, Range<usize>) {
        let place = |v: f32, origin: f32, end: usize| ((v - origin) * self.scale).clamp(0.0, end as f32);
        let span = |low, high, origin, end| {
            let (low, high) = (place(low, origin, end), place(high, origin, end));
            (low as usize).saturating_sub(1)..(high as usize + 2).min(end)
        };
        let rows = span(area.top, area.bottom, self.origin.1, self.height);
        (rows, span(area.left, area.right, self.origin.0, self.width))
    }

    /// Calls `change` for every pixel of an area, with its place and where it is stored.
    fn each(&mut self, area: Area, mut change: impl FnMut(&mut Self, f32, f32, usize)) {
        let (rows, columns) = self.pixels(area);
        for row in rows {
            for column in columns.clone() {
                let x = self.origin.0 + (column as f32 + 0.5) / self.scale;
                let y = self.origin.1 + (row as f32 + 0.5) / self.scale;
                change(self, x, y, row * self.width + column);
            }
        }
    }

    /// Lays something far away over the picture, as it shines by itself: its light and how much it covers.
    pub(super) fn glow(&mut self, area: Area, source: impl Fn(f32, f32) -> (Rgb, f32)) {
        self.each(area, |canvas, x, y, at| {
            let (colour, cover) = source(x, y);
            canvas.light[at] = mix(canvas.light[at], colour, cover);
        });
    }

    /// Takes the sun from what is near, as far as `cover` says.
    pub(super) fn shade(&mut self, area: Area, cover: impl Fn(f32, f32) -> f32) {
        self.each(area, |canvas, x, y, at| {
            let shaded = if canvas.near[at] > 0.0 { canvas.near[at] * cover(x, y) } else { 0.0 };
            let light = &mut canvas.light[at];
            *light = std::array::from_fn(|c| light[c] * (1.0 + shaded * (SHADOW[c] - 1.0)));
        });
    }

    /// The shadow of a shape, given by the distance to it, on what is `gap` behind.
    pub(super) fn cast(&mut self, area: Area, gap: f32, strength: f32, shape: impl Fn(f32, f32) -> f32) {
        let ((dx, dy), soft) = ((gap * AWAY.0, gap * AWAY.1), PENUMBRA * gap + 0.0015);
        self.shade(area.moved(dx, dy).grown(soft), |x, y| {
            strength * ease(soft, -soft, shape(x - dx, y - dy))
        });
    }

    /// Lays a shape over the picture, lit by sun and sky. `surface` is asked where it is seen, with the distance to its
    /// edge too.
    pub(super) fn paint(
        &mut self,
        area: Area,
        gloss: f32,
        shape: impl Fn(f32, f32) -> f32,
        surface: impl Fn(f32, f32, f32) -> Surface,
    ) {
        // Of the pixels to the left and above, if they are part of it.
        let mut heights: Vec<Option<f32>> = vec![None; self.width + 1];
        self.each(area, |canvas, x, y, at| {
            let edge = shape(x, y);
            let (column, cover) = (at % canvas.width, (0.5 - edge * canvas.scale).min(1.0));
            if cover <= 0.0 {
                heights[column + 1] = None;
                return;
            }
            let (albedo, height) = surface(x, y, edge);
            let rise = |before: Option<f32>| before.map_or(0.0, |before| (height - before) * canvas.scale);
            let lit = lit(albedo, gloss, rise(heights[column]), rise(heights[column + 1]));
            canvas.light[at] = mix(canvas.light[at], lit, cover);
            canvas.near[at] += (1.0 - canvas.near[at]) * cover;
            heights[column + 1] = Some(height);
        });
    }

    /// Exposure, the falling light of a lens towards the corners, the tone curve of film, sRGB.
    pub(super) fn develop(&self) -> Result<Image> {
        let pixels = self.height * self.width;
        let mut data = vec![0.0; 3 * pixels];
        for (at, light) in self.light.iter().enumerate() {
            let across = (at % self.width) as f32 / self.width as f32 - 0.5;
            let down = (at / self.width) as f32 / self.height as f32 - 0.5;
            let lens = 1.0 - 0.5 * (across * across + down * down);
            for (c, value) in light.iter().enumerate() {
                let v = lens * value.max(0.0);
                // Deeper shadows, and a shoulder that bends towards white.
                let v = v * (2.1 * v + 0.12) / (v * (1.9 * v + 0.78) + 0.17);
                data[c * pixels + at] = srgb(v.min(1.0));
            }
        }
        Image::new(3, self.height, self.width, data)
    }
}

/// Lambert's law, the light of the sky from above, and a highlight.
fn lit(albedo: Rgb, gloss: f32, slope_x: f32, slope_y: f32) -> Rgb {
    let norm = 1.0 / (1.0 + slope_x * slope_x + slope_y * slope_y).sqrt();
    let normal = [-slope_x * norm, -slope_y * norm, norm];
    let along: f32 = normal.iter().zip(SUN).map(|(n, s)| n * s).sum();
    let diffuse = along.max(0.0);
    let up = 0.5 - 0.5 * normal[1];
    // Halfway between the sun and the camera.
    let half = [SUN[0], SUN[1], SUN[2] + 1.0].map(|v| v * 0.552);
    let mirror: f32 = normal.iter().zip(half).map(|(n, h)| n * h).sum::<f32>().max(0.0);
    let mirror = (0..5).fold(mirror, |m, _| m * m) * gloss;
    std::array::from_fn(|c| {
        let light = SUNLIGHT[c] * diffuse + SKYLIGHT[c] * up + BOUNCED[c] * ease(1.0, 0.2, up);
        albedo[c] * light + mirror * SUNLIGHT[c]
    })
}

/// Linear light in `[0, 1]` as sRGB, to a thousandth, from roots alone: they have the same bits everywhere.
fn srgb(v: f32) -> f32 {
    let [second, fourth, eighth] = [v.sqrt(), v.sqrt().sqrt(), v.sqrt().sqrt().sqrt()];
    let curve = 0.585_122_4 * second + 0.783_140_4 * fourth - 0.368_262_7 * eighth;
    if v < 0.003_130_8 { 12.92 * v } else { curve }
}
