//! The things in focus: wall, railing, sign, trunk, blanket, apples.

use super::super::arithmetic::{floor, sine};
use super::shape::{Area, Rgb, ease, length, mix, round, times, to_line};
use super::{canvas::Canvas, letters::Text, texture::Grain};

const WALL: f32 = 0.70;

/// A dry stone wall with slabs on top.
pub(super) fn wall(canvas: &mut Canvas, grain: Grain) {
    let area = Area { top: WALL, ..canvas.area() };
    let shape = |_: f32, y: f32| WALL - y;
    canvas.paint(area, 0.0, shape, |x, y, _| {
        let warp = [0, 1].map(|axis| grain.other(axis).fractal(x, y, (5.0, 7.0), 0.5));
        let (inside, tone) = grain.other(2).cells(7.5 * x + 0.25 * warp[0], 15.0 * y + 0.30 * warp[1]);
        let body = ease(0.02, 0.30, inside);
        let (colour, rough) = grain.other(3).stone(x, y, tone);
        let moss = ease(0.35, 1.0, grain.other(4).fractal(x, y, (6.0, 9.0), 0.7)) * (1.0 - 0.65 * body);
        (mix(times(colour, 0.10 + 0.90 * body), [0.10, 0.15, 0.025], 0.8 * moss), 0.016 * body + rough)
    });
    canvas.shade(area, |_, y| 0.85 * ease(WALL + 0.105, WALL + 0.055, y));
    for number in 0..8 {
        let left = -0.08 + 0.215 * number as f32 + 0.02 * sine(0.37 * number as f32);
        let slab = Area { left, top: WALL - 0.024, right: left + 0.212, bottom: WALL + 0.046 };
        let grain = grain.other(10 + number);
        let shape = |x, y| slab.distance(x, y, 0.010) + 0.0035 * grain.fractal(x, y, (14.0, 14.0), 0.6);
        canvas.paint(slab.grown(0.01), 0.0, shape, |x, y, edge| {
            // Its upper face is seen from just above: foreshortened, and turned to the light.
            let face = WALL + 0.004 + 0.004 * grain.other(1).fractal(x, 0.0, (9.0, 1.0), 0.5);
            let (v, deep, lying) = if y < face { (4.0 * y, 0.4, 0.55 * (face - y)) } else { (y, 1.0, 0.0) };
            let (colour, rough) = grain.stone(x, v, 0.5 * sine(0.21 * number as f32));
            (times(colour, 1.1), deep * rough - lying - 0.008 * ease(-0.010, 0.0, edge))
        });
    }
}

/// Wrought iron: two rails, thin bars with points.
pub(super) fn railing(canvas: &mut Canvas, grain: Grain) {
    // Of bars and rails, the one that is nearest: half its width, and how far inside.
    let iron = |x: f32, y: f32| {
        let across = (x / 0.046 - floor(x / 0.046) as f32 - 0.5).abs() * 0.046;
        let bar = if y < 0.435 { 0.0095 * (1.0 - (y - 0.415).abs() / 0.020) } else { 0.0034 };
        let rails = [0.468, 0.668].map(|middle: f32| (0.0055, 0.0055 - (y - middle).abs()));
        rails.into_iter().fold((bar, bar - across), |a, b| if b.1 > a.1 { b } else { a })
    };
    let area = Area { left: 0.15, top: 0.39, right: 1.6, bottom: WALL };
    let shape = |x, y| -iron(x, y).1;
    canvas.paint(area, 0.16, shape, |x, y, _| {
        let ((half, inside), rust) = (iron(x, y), grain.fractal(x, y, (150.0, 150.0), 0.7));
        let albedo = mix([0.030, 0.032, 0.034], [0.15, 0.065, 0.028], ease(0.4, 1.2, rust));
        (albedo, round(half, half - inside) + 0.0004 * rust)
    });
}

/// Two posts, three planks, letters cut into them.
pub(super) fn sign(canvas: &mut Canvas, grain: Grain) {
    let board = Area { left: 0.435, top: 0.225, right: 1.115, bottom: 0.535 };
    let posts = [0.525, 1.025];
    for (number, x) in posts.into_iter().enumerate() {
        let post = Area { left: x - 0.024, top: 0.165, right: x + 0.024, bottom: 1.1 };
        let (shape, grain) = (|x, y| post.distance(x, y, 0.006), grain.other(number as u32));
        canvas.cast(post, 0.065, 0.9, shape);
        canvas.paint(post, 0.0, shape, |x, y, edge| {
            let (colour, rough) = grain.wood(y, x);
            (times(colour, 0.9), rough - 0.010 * ease(-0.012, 0.0, edge))
        });
    }
    let middle = 0.5 * (board.left + board.right);
    let large = Text::default().line("BREGMAN ORCHARD", (middle, 0.258), 0.044, true);
    let small = Text::default()
        .line("APPLES - CIDER - HONEY", (middle, 0.360), 0.030, true)
        .line("OPEN DAILY 9 TO 5, APRIL TO OCTOBER", (middle, 0.450), 0.0185, true)
        .line("PLEASE CLOSE THE GATE", (middle, 0.490), 0.0185, true);
    let shape = |x, y| board.distance(x, y, 0.006);
    canvas.cast(board, 0.018, 0.8, shape);
    canvas.paint(board, 0.01, shape, |x, y, edge| {
        let down = 3.0 * (y - board.top) / (board.bottom - board.top);
        let plank = floor(down).clamp(0, 2);
        let seam = 0.1 * (down - plank as f32).min((plank + 1) as f32 - down);
        let (colour, rough) = grain.other(7 + plank as u32).wood(x + 3.0 * plank as f32, y);
        let stroke = (large.distance(x, y) - 0.0044).min(small.distance(x, y) - 0.0019);
        let paint = ease(0.0009, -0.0009, stroke);
        let worn = 1.0 + 0.10 * grain.other(5).fractal(x, y, (40.0, 160.0), 0.8);
        let wood = times(colour, 0.35 + 0.65 * ease(0.0, 0.004, seam));
        let worked = 0.008 * ease(-0.010, 0.0, edge) + 0.006 * ease(0.006, 0.0, seam);
        let cut = 0.0022 * ease(0.001, -0.003, stroke);
        (mix(wood, times([0.80, 0.74, 0.58], worn), paint), rough * (1.0 - 0.6 * paint) - worked - cut)
    });
    for (x, y) in posts.into_iter().flat_map(|x| [(x, board.top + 0.03), (x, board.bottom - 0.03)]) {
        ball(canvas, (x, y), 0.0065, 0.5, |_, _| [0.30, 0.29, 0.28]);
    }
    notice(canvas, grain.other(20));
}

/// A sheet of paper on a post, in small print.
fn notice(canvas: &mut Canvas, grain: Grain) {
    let sheet = Area { left: 0.468, top: 0.572, right: 0.584, bottom: 0.707 };
    let words = "LOST CAT//GREY TABBY/LAST SEEN BY/THE MILL POND/ANSWERS TO/THE NAME OF/LAMBDA";
    let text = words.split('/').enumerate().fold(Text::default(), |text, (row, line)| {
        let height = if row == 0 { 0.0132 } else { 0.0086 };
        text.line(line, (sheet.left + 0.009, sheet.top + 0.012 + 0.0142 * row as f32), height, false)
    });
    let shape = |x, y| sheet.distance(x, y, 0.001);
    canvas.cast(sheet, 0.008, 0.7, shape);
    canvas.paint(sheet, 0.0, shape, |x, y, _| {
        let paper = times([0.80, 0.78, 0.70], 1.0 + 0.03 * grain.fractal(x, y, (30.0, 30.0), 0.7));
        let curl = 0.010 * sine(2.2 * (x - sheet.left)) + 0.02 * (y - sheet.top);
        (mix(paper, [0.035, 0.035, 0.045], ease(0.0016, 0.0005, text.distance(x, y))), curl)
    });
    ball(canvas, (0.526, sheet.top + 0.007), 0.0048, 0.6, |_, _| [0.65, 0.04, 0.03]);
}

/// The trunk of a tree at the left edge, wider at its foot.
pub(super) fn trunk(canvas: &mut Canvas, grain: Grain) {
    let half = |y| 0.118 + 0.055 * ease(0.72, 1.1, y) + 0.02 * ease(0.2, -0.1, y);
    let across = |x: f32, y: f32| (x - 0.105 - 0.02 * sine(0.55 * y)) / half(y);
    let area = Area { right: 0.36, ..canvas.area() };
    let shape = |x: f32, y: f32| {
        (across(x, y).abs() - 1.0) * half(y) + 0.003 * grain.fractal(x, y, (50.0, 20.0), 0.7)
    };
    canvas.cast(area, 0.1, 0.9, shape);
    canvas.paint(area, 0.0, shape, |x, y, _| {
        let (across, half) = (across(x, y), half(y));
        // Around the trunk, the bark is seen from the side near the edges.
        let (colour, rough) = grain.bark(half * across * (1.0 + 0.35 * across * across), y);
        (colour, half * round(1.0, across) + rough)
    });
}

/// A blanket over the wall, with folds and a fringe.
pub(super) fn blanket(canvas: &mut Canvas, grain: Grain) {
    let cloth = Area { left: 1.185, top: WALL - 0.034, right: 1.440, bottom: WALL + 0.205 };
    let below = |x: f32, y: f32| y - cloth.bottom - 0.010 * sine(2.1 * x) - 0.004 * sine(7.0 * x);
    let shape = |x: f32, y: f32| {
        let swing = 0.012 * sine(3.0 * y + 0.1) * ease(WALL, cloth.bottom, y);
        let sides = (cloth.left + swing - x).max(x - cloth.right - swing).max(cloth.top - y);
        let threads = sine(150.0 * x + 1.5 * grain.fractal(x, y, (30.0, 30.0), 0.5));
        sides.max(below(x, y) - 0.020).max(below(x, y).min(0.002 * (0.1 - threads)))
    };
    canvas.cast(cloth.grown(0.035), 0.03, 0.85, shape);
    canvas.paint(cloth.grown(0.035), 0.0, shape, |x, y, _| {
        let fall = ease(WALL - 0.03, cloth.bottom, y);
        let folds = sine(7.3 * x + 0.25 * sine(1.6 * y)) + 0.4 * sine(13.1 * x - 0.9 * y + 0.3);
        let (colour, weave) = grain.tartan(x + 0.010 * folds * fall, y - 0.010 * folds * fall);
        // It bends over the edge of the slabs.
        let bend = -0.6 * (WALL + 0.004 - y).max(0.0);
        let colour = if below(x, y) > 0.0 { [0.30, 0.10, 0.06] } else { colour };
        (colour, 0.015 * folds * (0.2 + fall) + bend + weave)
    });
}

pub(super) fn apples(canvas: &mut Canvas, grain: Grain) {
    let places = [(0.712, 0.652, 0.032), (0.818, 0.651, 0.034), (0.766, 0.661, 0.031), (0.920, 0.660, 0.030)];
    for (number, (x, y, radius)) in places.into_iter().enumerate() {
        let (at, grain) = ((x, y), grain.other(number as u32));
        let shadow = (at.0 + 0.5 * radius, at.1 + 0.85 * radius);
        canvas.shade(Area::about(shadow, 2.0 * radius), |x, y| {
            0.85 * ease(1.25, 0.55, length((x - shadow.0) / 1.25, (y - shadow.1) * 2.2) / radius)
        });
        ball(canvas, at, radius, 0.22, |x, y| {
            let (u, v) = ((x - at.0) / radius, (y - at.1) / radius);
            let streaks = grain.fractal(u * (1.0 - 0.3 * v), v, (7.0, 1.2), 0.7);
            let dots = ease(0.75, 1.0, grain.other(9).fractal(x, y, (170.0, 170.0), 0.5));
            let blush = ease(-0.9, 0.7, 0.8 * streaks - 0.6 * u - 0.7 * v);
            let skin = mix([0.52, 0.40, 0.05], [0.46, 0.030, 0.020], blush);
            let dimple = ease(0.32, 0.05, length(u, (v + 0.72) * 1.8));
            mix(mix(skin, [0.7, 0.55, 0.25], 0.35 * dots), [0.07, 0.05, 0.02], 0.85 * dimple)
        });
        let (low, high) = ((at.0, at.1 - 0.70 * radius), (at.0 + 0.20 * radius, at.1 - 1.30 * radius));
        let shape = |x, y| to_line(x, y, low, high).0 - 0.0018;
        canvas.paint(Area::about(high, radius), 0.0, shape, |_, _, edge| ([0.07, 0.045, 0.025], -edge));
    }
}

fn ball(canvas: &mut Canvas, at: (f32, f32), radius: f32, gloss: f32, colour: impl Fn(f32, f32) -> Rgb) {
    let shape = |x, y| length(x - at.0, y - at.1) - radius;
    canvas.paint(Area::about(at, radius), gloss, shape, |x, y, edge| {
        (colour(x, y), round(radius, radius + edge))
    });
}
