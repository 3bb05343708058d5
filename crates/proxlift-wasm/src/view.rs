//! Parts of a picture as the screen shows them: 8 bits, scaled down where the screen has fewer pixels.

use proxlift::image::io::{Depth, Raster};

/// Rows that are averaged for one of the screen, at the most.
const MOST_ROWS: usize = 4;

/// Pictures darker than this are brightened for the screen, and floats beyond the second are darkened.
const DARK: f32 = 0.2;
const BRIGHT: f32 = 1.5;

/// The values that are shown black and white.
pub fn ends(raster: &Raster) -> (f32, f32) {
    let largest = raster.largest();
    let float = raster.depth() == Depth::Float;
    if raster.depth() == Depth::Eight || largest == 0.0 {
        return (0.0, 1.0);
    }
    if largest >= DARK && (!float || largest <= BRIGHT) {
        return (0.0, 1.0);
    }
    let (mut least, mut most) = (f32::INFINITY, f32::NEG_INFINITY);
    for y in 0..raster.height() {
        for &v in raster.crop(y..y + 1, 0..raster.width()).data() {
            (least, most) = (least.min(v), most.max(v));
        }
    }
    if least < most { (least, most) } else { (0.0, 1.0) }
}

/// A rectangle of the picture, `[top, left, height, width]`, in RGBA of another size.
pub fn rgba(
    raster: &Raster,
    (black, white): (f32, f32),
    [top, left, height, width]: [usize; 4],
    (out_height, out_width): (usize, usize),
) -> Vec<u8> {
    let channels = raster.kind().count();
    let mut rgba = vec![255; 4 * out_height * out_width];
    let scale = 255.0 / (white - black);
    let mut sums = vec![0.0f32; channels * width];
    let part = |i: usize, of: usize, length: usize| {
        let start = (i * length / of).min(length - 1);
        start..((i + 1) * length / of).max(start + 1)
    };
    for (i, line) in rgba.chunks_exact_mut(4 * out_width).enumerate() {
        let rows = part(i, out_height, height);
        let count = rows.len().min(MOST_ROWS);
        sums.fill(0.0);
        for n in 0..count {
            let y = top + rows.start + n * rows.len() / count;
            let row = raster.crop(y..y + 1, left..left + width);
            sums.iter_mut().zip(row.data()).for_each(|(sum, v)| *sum += v);
        }
        for (j, pixel) in line.chunks_exact_mut(4).enumerate() {
            let columns = part(j, out_width, width);
            let factor = scale / (count * columns.len()) as f32;
            for c in 0..3 {
                let plane = &sums[if channels == 3 { c } else { 0 } * width..][columns.clone()];
                let sum = plane.iter().sum::<f32>();
                pixel[c] = (sum * factor - scale * black + 0.5) as u8;
            }
        }
    }
    rgba
}
