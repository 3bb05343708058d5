//! Eigenvectors of a symmetric matrix, by Jacobi's rotations.
//!
//! They start from a basis at hand, the last one of a matrix that changes slowly. Few rotations are left then, and every
//! vector stays what it was but for a small turn, so whatever is kept in the basis keeps its meaning.

/// Sweeps over all pairs at most; four to eight do from any start.
const SWEEPS: usize = 30;
/// What may be left beside the diagonal, as a share of the whole matrix.
const TOLERANCE: f64 = 1e-12;

/// Turns an orthonormal basis, a vector in each column, into one of eigenvectors of the symmetric `matrix` of `n x n`
/// numbers. Both are kept row by row.
pub(super) fn turn_to_eigenvectors(n: usize, matrix: &[f32], basis: &mut [f32]) {
    let mut vectors: Vec<Vec<f64>> =
        (0..n).map(|k| (0..n).map(|i| f64::from(basis[i * n + k])).collect()).collect();
    orthonormalise(&mut vectors);
    let product = |v: &[f64]| -> Vec<f64> {
        let rows = matrix.chunks_exact(n);
        rows.map(|row| row.iter().zip(v).map(|(&m, v)| f64::from(m) * v).sum()).collect()
    };
    // The matrix in the basis.
    let products: Vec<_> = vectors.iter().map(|v| product(v)).collect();
    let mut a: Vec<Vec<f64>> =
        vectors.iter().map(|v| products.iter().map(|product| dot(v, product)).collect()).collect();
    let whole: f64 = a.iter().flatten().map(|a| a * a).sum();
    for _ in 0..SWEEPS {
        let beside: f64 = (0..n).flat_map(|p| &a[p][..p]).map(|a| 2.0 * a * a).sum();
        if beside <= TOLERANCE * TOLERANCE * whole {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let Some(turn) = rotation(a[p][p], a[p][q], a[q][q]) else { continue };
                rotate(turn, pair(&mut a, p, q));
                a.iter_mut().for_each(|row| (row[p], row[q]) = rotated(turn, row[p], row[q]));
                rotate(turn, pair(&mut vectors, p, q));
            }
        }
    }
    for (k, vector) in vectors.iter().enumerate() {
        vector.iter().enumerate().for_each(|(i, &v)| basis[i * n + k] = v as f32);
    }
}

/// Cosine and sine of the rotation that makes `[[a, b], [b, d]]` diagonal, the smaller of the two.
fn rotation(a: f64, b: f64, d: f64) -> Option<(f64, f64)> {
    if b == 0.0 {
        return None;
    }
    let slope = (d - a) / (2.0 * b);
    let tangent = slope.signum() / (slope.abs() + slope.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    Some((cosine, tangent * cosine))
}

fn rotated((cosine, sine): (f64, f64), p: f64, q: f64) -> (f64, f64) {
    (cosine * p - sine * q, sine * p + cosine * q)
}

fn rotate(turn: (f64, f64), (p, q): (&mut [f64], &mut [f64])) {
    p.iter_mut().zip(q).for_each(|(p, q)| (*p, *q) = rotated(turn, *p, *q));
}

fn pair(rows: &mut [Vec<f64>], p: usize, q: usize) -> (&mut [f64], &mut [f64]) {
    let (before, after) = rows.split_at_mut(q);
    (&mut before[p], &mut after[0])
}

/// Gram and Schmidt: what rounding left of lengths and right angles is not carried on.
fn orthonormalise(vectors: &mut [Vec<f64>]) {
    for k in 0..vectors.len() {
        let (before, rest) = vectors.split_at_mut(k);
        for other in before {
            let along = dot(other, &rest[0]);
            rest[0].iter_mut().zip(other).for_each(|(v, o)| *v -= along * *o);
        }
        let length = dot(&rest[0], &rest[0]).sqrt();
        rest[0].iter_mut().for_each(|v| *v /= length);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
