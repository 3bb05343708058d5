//! Enlarging by cubic interpolation: at the scale of their pixels, photographs as cameras store them are less sharp than
//! pictures that were scaled down.

/// The top left part of a plane of `height` x `width` values, enlarged by `factor`, at least 1, to the whole plane
/// (R. G. Keys, "Cubic convolution interpolation for digital image processing", 1981).
pub fn enlarge(plane: &mut [f32], (height, width): (usize, usize), factor: f32) {
    let mut line = Vec::new();
    let mut along = |plane: &mut [f32], start: usize, step: usize, count: usize| {
        line.clear();
        line.extend((0..count).map(|i| plane[start + i * step]));
        for i in 0..count {
            let place = i as f32 / factor;
            let (first, t) = (place as usize, place.fract());
            let at = |offset: usize| line[(first + offset).saturating_sub(1).min(count - 1)];
            let [a, b, c, d] = [at(0), at(1), at(2), at(3)];
            let slopes = [0.5 * (c - a), 0.5 * (d - b)];
            let bend = [2.0 * (b - c) + slopes[0] + slopes[1], 3.0 * (c - b) - 2.0 * slopes[0] - slopes[1]];
            plane[start + i * step] = ((bend[0] * t + bend[1]) * t + slopes[0]) * t + b;
        }
    };
    (0..height).for_each(|y| along(plane, y * width, 1, width));
    (0..width).for_each(|x| along(plane, x, width, height));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_enlarged_exactly_where_it_is_even() {
        let size = (9, 12);
        let value = |y: f32, x: f32| 0.1 + 0.02 * y - 0.03 * x;
        let mut plane: Vec<f32> = (0..9 * 12).map(|i| value((i / 12) as f32, (i % 12) as f32)).collect();
        let before = plane.clone();
        enlarge(&mut plane, size, 1.0);
        assert_eq!(plane, before);
        enlarge(&mut plane, size, 1.7);
        // The mirrored edge bends the plane within one pixel of it.
        for (y, x) in (2..9).flat_map(|y| (2..12).map(move |x| (y, x))) {
            assert!((plane[y * 12 + x] - value(y as f32 / 1.7, x as f32 / 1.7)).abs() < 1e-6, "{y} {x}");
        }
    }
}
