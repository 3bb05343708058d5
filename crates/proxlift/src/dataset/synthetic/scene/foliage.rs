//! Branches, leaves and grass.

use super::super::arithmetic::{bell, range, sine};
use super::shape::{Area, Rgb, ease, length, mix, round, times, to_line};
use super::{canvas::Canvas, texture::Grain};
use crate::random::unit;
use rand::Rng;

type Point = (f32, f32);

struct Leaf {
    root: Point,
    /// From root to tip.
    reach: Point,
    /// Half its width, and how far its middle is bent aside, over its length.
    width: f32,
    bend: f32,
    colour: Rgb,
    /// How its halves are folded, and how it is turned to the light.
    fold: f32,
    tilt: Point,
    gloss: f32,
}

impl Leaf {
    /// A leaf on a twig, pointing `out`; they hang a little, and few are dry.
    fn on_twig(rng: &mut impl Rng, root: Point, out: Point) -> Self {
        let size = range(rng, 0.030, 0.062) / length(out.0, out.1);
        let (fresh, dry) = (unit(rng), unit(rng));
        let green = mix([0.030, 0.082, 0.013], [0.15, 0.22, 0.026], fresh * fresh);
        Self {
            root,
            reach: (out.0 * size, out.1 * size + 0.012),
            width: range(rng, 0.19, 0.27),
            bend: 0.05 * bell(rng),
            colour: if dry > 0.93 { [0.42, 0.24, 0.05] } else { green },
            fold: range(rng, -0.35, 0.35),
            tilt: (0.38 * bell(rng), 0.38 * bell(rng)),
            gloss: range(rng, 0.0, 0.12),
        }
    }

    fn blade(rng: &mut impl Rng, root: Point, tone: f32) -> Self {
        let tall = range(rng, 0.035, 0.125) * (0.7 + 0.3 * unit(rng));
        let colour = mix([0.075, 0.16, 0.02], [0.30, 0.31, 0.09], unit(rng) * unit(rng));
        Self {
            root,
            reach: (0.35 * tall * bell(rng), -tall),
            width: range(rng, 0.014, 0.028),
            bend: 0.10 * bell(rng),
            colour: times(colour, tone),
            fold: 0.0,
            tilt: (0.5 * bell(rng), 0.3 * bell(rng)),
            gloss: 0.03,
        }
    }

    fn area(&self) -> Area {
        let middle = (self.root.0 + 0.5 * self.reach.0, self.root.1 + 0.5 * self.reach.1);
        Area::about(middle, (0.5 + self.width + self.bend.abs()) * length(self.reach.0, self.reach.1))
    }

    /// Along it from 0 to 1, and across it on the same scale.
    fn local(&self, x: f32, y: f32) -> Point {
        let (dx, dy) = (x - self.root.0, y - self.root.1);
        let square = self.reach.0 * self.reach.0 + self.reach.1 * self.reach.1;
        let along = (dx * self.reach.0 + dy * self.reach.1) / square;
        let inside = along.clamp(0.0, 1.0);
        let across = (dy * self.reach.0 - dx * self.reach.1) / square;
        (along, across - 4.0 * self.bend * inside * (1.0 - inside))
    }

    fn distance(&self, x: f32, y: f32) -> f32 {
        let (along, across) = self.local(x, y);
        let inside = along.clamp(0.0, 1.0);
        // Widest before its middle, pointed at the tip.
        let half = self.width * 3.1 * inside.sqrt() * (1.0 - inside) * (0.62 + 0.38 * (1.0 - inside));
        let outside = across.abs() - half + (along - inside).abs();
        0.8 * outside * length(self.reach.0, self.reach.1)
    }

    fn paint(&self, canvas: &mut Canvas, grain: Grain) {
        let shape = |x, y| self.distance(x, y);
        canvas.cast(self.area(), 0.012, 0.6, shape);
        // Blades of grass are too narrow for ribs.
        let (size, broad) = (length(self.reach.0, self.reach.1), ease(0.05, 0.15, self.width));
        canvas.paint(self.area(), self.gloss, shape, |x, y, _| {
            let (along, across) = self.local(x, y);
            let vein = broad * sine(6.0 * along - 3.0 * across.abs() / self.width);
            let rib = broad * ease(0.026, 0.008, across.abs()) * ease(1.0, 0.7, along);
            let spots = grain.fractal(x, y, (90.0, 90.0), 0.7);
            let colour = times(self.colour, 1.0 + 0.05 * vein + 0.14 * spots - 0.12 * along);
            let turned = self.tilt.0 * (x - self.root.0) + self.tilt.1 * (y - self.root.1);
            let height = size * (self.fold * across.abs() + 0.004 * vein) + turned;
            (mix(colour, [0.34, 0.38, 0.14], 0.45 * rib), height)
        });
    }
}

/// A branch: its pieces from end to end, each with half its thickness there, and its leaves.
#[derive(Default)]
pub(super) struct Branch {
    twigs: Vec<[(Point, f32); 2]>,
    leaves: Vec<Leaf>,
}

impl Branch {
    /// Lets it grow from `at` in steps of `step`, until it is too thin. `leafy` is the chance of a leaf.
    pub(super) fn grow(&mut self, rng: &mut impl Rng, at: Point, step: Point, thick: f32, leafy: f32) {
        let (mut at, mut step, mut thick, mut side) = (at, step, thick, 1.0);
        while thick > 0.0008 {
            step = turned(step, 0.018 * bell(rng));
            let (to, thinner) = ((at.0 + step.0, at.1 + step.1), thick * 0.86 - 0.0002);
            self.twigs.push([(at, thick), (to, thinner)]);
            (at, thick) = (to, thinner);
            if unit(rng) < 0.75 && thick > 0.0014 {
                side = -side;
                let out = turned(step, side * range(rng, 0.09, 0.17));
                let thin = thick * range(rng, 0.5, 0.72);
                self.grow(rng, at, (out.0 * 0.82, out.1 * 0.82 + 0.004), thin, leafy);
            }
            for _ in 0..if thick < 0.006 { 4 } else { 0 } {
                if unit(rng) < leafy {
                    side = -side;
                    let out = turned(step, side * range(rng, 0.06, 0.2));
                    self.leaves.push(Leaf::on_twig(rng, at, out));
                }
            }
        }
        if unit(rng) < leafy {
            self.leaves.push(Leaf::on_twig(rng, at, step));
        }
    }

    /// Its shadow on what is `gap` behind, then the twigs, then the leaves, each in the shadow of those after it.
    pub(super) fn paint(&self, canvas: &mut Canvas, grain: Grain, gap: f32) {
        for leaf in &self.leaves {
            canvas.cast(leaf.area(), gap, 0.55, |x, y| leaf.distance(x, y));
        }
        for [(from, thick), (to, thinner)] in &self.twigs {
            let near = |x, y| {
                let (distance, t) = to_line(x, y, *from, *to);
                (distance, thick + t * (thinner - thick))
            };
            let shape = |x, y| near(x, y).0 - near(x, y).1.max(0.0009);
            let area = Area::around([*from, *to].into_iter()).grown(*thick);
            canvas.paint(area, 0.0, shape, |x, y, _| {
                let ((distance, radius), rough) = (near(x, y), grain.fractal(x, y, (120.0, 60.0), 0.7));
                (times([0.15, 0.11, 0.08], 1.0 + 0.35 * rough), round(radius, distance) + 0.0006 * rough)
            });
        }
        for leaf in &self.leaves {
            leaf.paint(canvas, grain);
        }
    }
}

pub(super) fn grass(canvas: &mut Canvas, rng: &mut impl Rng, grain: Grain) {
    for number in 0..700 {
        let near = number as f32 / 700.0;
        let root = (range(rng, -0.05, 1.55), 0.985 + 0.09 * near);
        Leaf::blade(rng, root, 0.5 + 0.5 * near).paint(canvas, grain);
    }
}

/// Turned by a share of a full turn.
fn turned((x, y): Point, turn: f32) -> Point {
    let (s, c) = (sine(turn), sine(turn + 0.25));
    (x * c - y * s, x * s + y * c)
}
