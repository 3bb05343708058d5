//! Matrices copied into panels.

use super::super::level::dispatch;
use super::super::vectors::{load, store};
use super::panel_width;
use fearless_simd::{Level, Simd, prelude::*};
use rayon::prelude::*;

/// Numbers of a matrix of `depth` rows and `columns` columns in panels.
pub(crate) fn packed_len(level: Level, depth: usize, columns: usize) -> usize {
    depth * columns.next_multiple_of(panel_width(level))
}

/// Panels of the matrix that lies row by row in `from`, with so many columns; the last one is filled up with zeros.
pub(crate) fn pack(level: Level, from: &[f32], columns: usize, panels: &mut [f32]) {
    let (depth, width) = (from.len() / columns, panel_width(level));
    assert!(from.len() == depth * columns && panels.len() == packed_len(level, depth, columns));
    panels.par_chunks_exact_mut(depth * width).enumerate().for_each(|(p, panel)| {
        let wide = width.min(columns - p * width);
        for (row, from) in panel.chunks_exact_mut(width).zip(from.chunks_exact(columns)) {
            row[..wide].copy_from_slice(&from[p * width..][..wide]);
            row[wide..].fill(0.0);
        }
    });
}

/// Panels of the transpose of the matrix that lies row by row in `from`, with `depth` columns.
pub(crate) fn pack_transposed(level: Level, from: &[f32], depth: usize, panels: &mut [f32]) {
    let (columns, width) = (from.len() / depth, panel_width(level));
    assert!(from.len() == depth * columns && panels.len() == packed_len(level, depth, columns));
    panels.par_chunks_exact_mut(depth * width).enumerate().for_each(|(p, panel)| {
        let wide = width.min(columns - p * width);
        transposed(level, &from[p * width * depth..][..wide * depth], depth, panel);
    });
}

/// One panel: `panel[k][j] = from[j][k]`, zero where there is no row `j`.
#[inline(never)]
fn transposed(level: Level, from: &[f32], depth: usize, panel: &mut [f32]) {
    let width = panel.len() / depth;
    assert!(panel.len() == width * depth && from.len().is_multiple_of(depth) && from.len() <= panel.len());
    let done = dispatch!(level, simd => squares(simd, from, depth, panel));
    let rows = from.len() / depth;
    for (k, to) in panel.chunks_exact_mut(width).enumerate() {
        let whole = if k < done.0 { done.1 } else { 0 };
        for (j, to) in to.iter_mut().enumerate().skip(whole) {
            *to = if j < rows { from[j * depth + k] } else { 0.0 };
        }
    }
}

/// All squares of as many rows and columns as a vector has lanes; returns the columns and rows of `from` that they cover.
#[inline(always)]
fn squares<S: Simd>(simd: S, from: &[f32], depth: usize, panel: &mut [f32]) -> (usize, usize) {
    let (lanes, width) = (S::f32s::LEN, panel.len() / depth);
    let (columns, rows) = (depth / lanes * lanes, from.len() / depth / lanes * lanes);
    for j in (0..rows).step_by(lanes) {
        for k in (0..columns).step_by(lanes) {
            match lanes {
                16 => {
                    square::<S, 16>(simd, &from[j * depth + k..], depth, &mut panel[k * width + j..], width)
                }
                8 => square::<S, 8>(simd, &from[j * depth + k..], depth, &mut panel[k * width + j..], width),
                4 => square::<S, 4>(simd, &from[j * depth + k..], depth, &mut panel[k * width + j..], width),
                _ => return (0, 0),
            }
        }
    }
    (columns, rows)
}

/// The transpose of one square, of as many vectors as they have lanes: that many perfect shuffles as `lanes` has bits.
#[inline(always)]
fn square<S: Simd, const L: usize>(simd: S, from: &[f32], depth: usize, to: &mut [f32], width: usize) {
    assert!(L == S::f32s::LEN && (L - 1) * depth + L <= from.len() && (L - 1) * width + L <= to.len());
    let mut rows = [S::f32s::splat(simd, 0.0); L];
    for (i, row) in rows.iter_mut().enumerate() {
        // SAFETY: asserted above.
        *row = unsafe { load(simd, from, i * depth) };
    }
    for _ in 0..L.ilog2() {
        let mut shuffled = rows;
        for i in 0..L / 2 {
            shuffled[2 * i] = rows[i].zip_low(rows[i + L / 2]);
            shuffled[2 * i + 1] = rows[i].zip_high(rows[i + L / 2]);
        }
        rows = shuffled;
    }
    for (i, row) in rows.into_iter().enumerate() {
        // SAFETY: asserted above.
        unsafe { store::<S>(row, to, i * width) };
    }
}
