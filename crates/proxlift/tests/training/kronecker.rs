//! The Kronecker metric: the basis that it turns gradients into, as its checkpoints hold it.

use super::*;
use proxlift::engine::Gradients;
use proxlift::training::Optimiser;

#[path = "../../src/training/optimiser/eigenvectors.rs"]
mod eigenvectors;
use eigenvectors::turn_to_eigenvectors;

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

/// The step that first has a basis.
const FIRST: usize = 20;

/// The optimiser of a network after steps along gradients whose entries are strongly correlated, then one along zero.
fn after(steps: usize) -> Snapshot {
    let architecture = Architecture { depth: 2, features: 3, kernel: 3, channels: 1 };
    let mut network = Network::glorot(architecture, 0.1, 4).unwrap();
    let rate = Rate { start: 1e-3, schedule: Schedule::Constant };
    let descent = Descent { metric: Metric::Kronecker, momentum: 0.5, beta2: 0.99, rate };
    let mut optimiser = Optimiser::new(&network, descent, 1).unwrap();
    let mut rng = stream(1, Purpose::Metric, 0, 0);
    let mut uniform = move || 2.0 * unit(&mut rng) - 1.0;
    let mut gradients = Gradients::zeros(&network, 1);
    for step in 0..steps {
        for gradient in &mut gradients.theta {
            let common = 3.0 * uniform();
            gradient.weights_mut().iter_mut().for_each(|g| *g = common + uniform());
            if step + 1 == FIRST {
                gradient.weights_mut().fill(0.0);
            }
        }
        optimiser.step(&mut network, &mut gradients, 1.0, 0.0);
    }
    let mut state = Snapshot::default();
    optimiser.save(&mut state);
    state
}

#[test]
fn the_basis_is_orthonormal_and_the_moments_are_diagonal_in_it() {
    let state = after(FIRST);
    for (k, side, n) in (0..3).flat_map(|k| [(k, 0, 3), (k, 1, 9)]) {
        let get = |what: &str| state.array(&format!("{what}_{k}_{side}")).unwrap();
        let (vectors, moment) = (get("vectors"), get("moment"));
        assert!(**vectors != identity(n), "the basis is no longer the first");
        let (inside, lengths) = (turned(n, moment, vectors), turned(n, &identity(n), vectors));
        let trace: f64 = (0..n).map(|i| inside[i * n + i]).sum();
        for (i, one) in identity(n).into_iter().enumerate() {
            assert!((lengths[i] - f64::from(one)).abs() < 1e-6, "entry {i} of {n}: {}", lengths[i]);
            assert!(one == 1.0 || inside[i].abs() < 1e-5 * trace, "entry {i} of {n}: {}", inside[i]);
        }
    }
}

#[test]
fn what_is_averaged_goes_along_when_the_basis_changes() {
    let (before, after) = (after(FIRST - 1), after(FIRST));
    for k in 0..3 {
        let name = format!("mean_{k}");
        let (old, mean) = (before.array(&name).unwrap(), after.array(&name).unwrap());
        let [p, q] = [0, 1].map(|side| after.array(&format!("vectors_{k}_{side}")).unwrap());
        // The last gradient was zero, so that half of the mean is left: P mean Q^T is half of what it was.
        for (i, old) in old.iter().enumerate() {
            let term = |at: usize| p[i / 9 * 3 + at / 9] * mean[at] * q[i % 9 * 9 + at % 9];
            let back: f32 = (0..27).map(term).sum();
            assert!((back - 0.5 * old).abs() < 1e-5, "theta_{k}[{i}]: {back} of {old}");
        }
        assert!(old.iter().zip(mean.iter()).any(|(old, new)| (0.5 * old - new).abs() > 0.1));
    }
}
