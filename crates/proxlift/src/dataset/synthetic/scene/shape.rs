//! Distances to simple shapes, negative inside, and what is made of them.

/// Linear light: red, green, blue.
pub(super) type Rgb = [f32; 3];

#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) left: f32,
    pub(super) top: f32,
    pub(super) right: f32,
    pub(super) bottom: f32,
}

impl Area {
    pub(super) fn around(points: impl Iterator<Item = (f32, f32)>) -> Self {
        let none = Self { left: f32::MAX, top: f32::MAX, right: f32::MIN, bottom: f32::MIN };
        points.fold(none, |a, (x, y)| Self {
            left: a.left.min(x),
            top: a.top.min(y),
            right: a.right.max(x),
            bottom: a.bottom.max(y),
        })
    }

    pub(super) fn about((x, y): (f32, f32), reach: f32) -> Self {
        Self { left: x - reach, top: y - reach, right: x + reach, bottom: y + reach }
    }

    pub(super) fn grown(self, by: f32) -> Self {
        Self { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }

    pub(super) fn moved(self, dx: f32, dy: f32) -> Self {
        Self { left: self.left + dx, top: self.top + dy, right: self.right + dx, bottom: self.bottom + dy }
    }

    pub(super) fn holds(&self, x: f32, y: f32) -> bool {
        x >= self.left && x <= self.right && y >= self.top && y <= self.bottom
    }

    /// The distance to its edge, corners rounded by `radius`.
    pub(super) fn distance(&self, x: f32, y: f32, radius: f32) -> f32 {
        let across = (x - 0.5 * (self.left + self.right)).abs() - 0.5 * (self.right - self.left) + radius;
        let down = (y - 0.5 * (self.top + self.bottom)).abs() - 0.5 * (self.bottom - self.top) + radius;
        let outside = length(across.max(0.0), down.max(0.0));
        outside + across.max(down).min(0.0) - radius
    }
}

pub(super) fn length(x: f32, y: f32) -> f32 {
    (x * x + y * y).sqrt()
}

/// The distance to a line from `a` to `b`, and how far along it is nearest, from 0 to 1.
pub(super) fn to_line(x: f32, y: f32, a: (f32, f32), b: (f32, f32)) -> (f32, f32) {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let t = (((x - a.0) * dx + (y - a.1) * dy) / (dx * dx + dy * dy).max(1e-12)).clamp(0.0, 1.0);
    (length(x - a.0 - t * dx, y - a.1 - t * dy), t)
}

/// From 0 at `from` to 1 at `to`, smoothly, and flat beyond.
pub(super) fn ease(from: f32, to: f32, v: f32) -> f32 {
    let t = ((v - from) / (to - from)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

/// `a` where `t` is 0, `b` where it is 1.
pub(super) fn mix(a: Rgb, b: Rgb, t: f32) -> Rgb {
    std::array::from_fn(|c| a[c] + t * (b[c] - a[c]))
}

pub(super) fn times(a: Rgb, by: f32) -> Rgb {
    a.map(|v| v * by)
}

/// The height of a round body at `distance` from its middle.
pub(super) fn round(radius: f32, distance: f32) -> f32 {
    (radius * radius - distance * distance).max(0.0).sqrt()
}
