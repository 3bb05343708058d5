//! Arrays of two dimensions from NumPy's `.npy` files.

use crate::{Error, Result, storage};
use std::path::Path;

/// The most bytes of a file that is read.
const MOST: u64 = 1 << 26;

/// Rows, columns, and the numbers row by row. Fails when it is anything but a plain array of numbers.
pub(super) fn read(path: &Path) -> Result<(usize, usize, Vec<f64>)> {
    parse(&storage::read(path, MOST, "a kernel")?).map_err(|reason| Error::file(path, reason))
}

fn parse(bytes: &[u8]) -> std::result::Result<(usize, usize, Vec<f64>), &'static str> {
    const NOT: &str = "this is not an array of NumPy (.npy), or it is damaged";
    let version = bytes.strip_prefix(b"\x93NUMPY").and_then(|rest| rest.first()).ok_or(NOT)?;
    let (start, size) = match version {
        1 => (10, bytes.get(8..10).map(|b| u64::from(u16::from_le_bytes([b[0], b[1]])))),
        _ => (12, bytes.get(8..12).map(|b| u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])))),
    };
    let end = start + size.filter(|size| *size < MOST).ok_or(NOT)? as usize;
    let header = bytes.get(start..end).and_then(|text| std::str::from_utf8(text).ok()).ok_or(NOT)?;
    let after = |key: &str| header.split_once(key).map(|(_, rest)| rest.trim_start_matches([' ', ':']));
    let kind = after("'descr'").and_then(|rest| rest.split('\'').nth(1)).ok_or(NOT)?;
    let by_columns = after("'fortran_order'").ok_or(NOT)?.starts_with("True");
    let shape = after("'shape'").and_then(|rest| rest.strip_prefix('(')?.split(')').next()).ok_or(NOT)?;
    let shape: Option<Vec<usize>> =
        shape.split(',').map(str::trim).filter(|n| !n.is_empty()).map(|n| n.parse().ok()).collect();
    let shape: Vec<usize> = shape.ok_or(NOT)?;
    let ([rows, columns] | [1, rows, columns]) = shape[..] else {
        return Err("a kernel is an array of two dimensions");
    };
    let count = rows.checked_mul(columns).ok_or(NOT)?;
    let width = kind.get(2..).and_then(|width| width.parse::<usize>().ok()).ok_or(NOT)?;
    let data = bytes.get(end..).filter(|data| count.checked_mul(width) == Some(data.len())).ok_or(NOT)?;
    let number: fn(&[u8]) -> f64 = match kind {
        "<f8" => |b| f64::from_le_bytes(b.try_into().unwrap_or_default()),
        "<f4" => |b| f64::from(f32::from_le_bytes(b.try_into().unwrap_or_default())),
        "|u1" => |b| f64::from(b[0]),
        "<u2" => |b| f64::from(u16::from_le_bytes(b.try_into().unwrap_or_default())),
        "<i4" => |b| f64::from(i32::from_le_bytes(b.try_into().unwrap_or_default())),
        "<i8" => |b| i64::from_le_bytes(b.try_into().unwrap_or_default()) as f64,
        _ => return Err("the numbers of the array are of another kind: save it as float64 or float32"),
    };
    let numbers: Vec<f64> = data.chunks_exact(width.max(1)).map(number).collect();
    let ordered = |i: usize| numbers[i % columns * rows + i / columns];
    Ok((rows, columns, if by_columns { (0..count).map(ordered).collect() } else { numbers }))
}
