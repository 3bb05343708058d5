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

#[cfg(test)]
mod tests {
    use super::*;

    /// `entry` of a symmetric matrix whose eigenvalues spread over orders of magnitude.
    fn matrix(n: usize) -> Vec<f32> {
        let entry = |i: usize, j: usize| ((i * j) as f32 * 0.7).cos() / (1 + i + j) as f32;
        (0..n * n).map(|k| entry(k / n, k % n)).collect()
    }

    /// The matrix in the basis.
    fn turned(n: usize, matrix: &[f32], basis: &[f32]) -> Vec<f64> {
        let at = |i: usize, k: usize| f64::from(basis[i * n + k]);
        let mut result = vec![0.0; n * n];
        for (entry, (p, q)) in result.iter_mut().zip((0..n * n).map(|k| (k / n, k % n))) {
            *entry = (0..n * n).map(|k| at(k / n, p) * f64::from(matrix[k]) * at(k % n, q)).sum();
        }
        result
    }

    fn identity(n: usize) -> Vec<f32> {
        (0..n * n).map(|k| f32::from(u8::from(k / n == k % n))).collect()
    }

    #[test]
    fn the_matrix_is_diagonal_in_its_eigenvectors() {
        for n in [1, 2, 9, 30] {
            let (matrix, mut basis) = (matrix(n), identity(n));
            turn_to_eigenvectors(n, &matrix, &mut basis);
            let (inside, lengths) = (turned(n, &matrix, &basis), turned(n, &identity(n), &basis));
            for (k, one) in identity(n).into_iter().enumerate() {
                assert!((lengths[k] - f64::from(one)).abs() < 1e-6, "entry {k} of {n}: {}", lengths[k]);
                assert!(one == 1.0 || inside[k].abs() < 1e-6, "entry {k} of {n}: {}", inside[k]);
            }
        }
    }

    #[test]
    fn a_matrix_that_moves_a_little_turns_its_eigenvectors_a_little() {
        let n = 12;
        let (mut matrix, mut basis) = (matrix(n), identity(n));
        turn_to_eigenvectors(n, &matrix, &mut basis);
        let before = basis.clone();
        turn_to_eigenvectors(n, &matrix, &mut basis);
        assert!(before.iter().zip(&basis).all(|(a, b)| (a - b).abs() < 1e-6));
        (0..n).for_each(|i| matrix[i * n + i] += 1e-4 * i as f32);
        turn_to_eigenvectors(n, &matrix, &mut basis);
        let kept = |k: usize| (0..n).map(|i| before[i * n + k] * basis[i * n + k]).sum::<f32>();
        assert!((0..n).all(|k| kept(k) > 0.95), "{:?}", (0..n).map(kept).collect::<Vec<_>>());
    }
}
