//! The kernels of dense layers against sums in double precision, on every instruction set of this machine.

use super::*;
use crate::laws::random_field;

fn levels() -> Vec<Level> {
    let mut all = vec![level(), Level::baseline()];
    #[cfg(target_arch = "x86_64")]
    all.extend(level().as_avx2().map(|simd| simd.level()));
    all
}

fn random(len: usize, seed: u64) -> Vec<f32> {
    random_field::<f32>(len, seed)
}

/// `sum_i a(i) b(i)`.
fn dot(k: usize, a: impl Fn(usize) -> f32, b: impl Fn(usize) -> f32) -> f64 {
    (0..k).map(|i| f64::from(a(i)) * f64::from(b(i))).sum()
}

fn close(ours: f32, expected: f64, k: usize) {
    assert!((f64::from(ours) - expected).abs() <= 1e-6 * (k as f64 + 10.0), "{ours} is not {expected}");
}

#[test]
fn products_are_those_of_the_definition() {
    for level in levels() {
        for [m, k, n] in [[1, 1, 16], [3, 7, 32], [8, 100, 48], [15, 33, 80], [26, 5, 16]] {
            let (a, b) = (random(m * (k + 3), 1), random(k * (n + 16), 2));
            let mut c = vec![f32::NAN; m * (n + 5)];
            let by_rows = ByRows { values: &b, row: n + 16 };
            product(
                level,
                [m, k, n],
                Strided { values: &a, row: k + 3, column: 1 },
                by_rows,
                (&mut c, n + 5),
            );
            let flipped: Vec<f32> = (0..k * m).map(|at| a[at % m * (k + 3) + at / m]).collect();
            let mut same = c.clone();
            let transposed = Strided { values: &flipped, row: 1, column: m };
            product(level, [m, k, n], transposed, by_rows, (&mut same, n + 5));
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                close(c[i * (n + 5) + j], dot(k, |q| a[i * (k + 3) + q], |q| b[q * (n + 16) + j]), k);
                assert_eq!(c[i * (n + 5) + j].to_bits(), same[i * (n + 5) + j].to_bits());
            }
        }
    }
}

#[test]
fn products_of_rows_are_those_of_the_definition_however_they_are_cut() {
    for level in levels() {
        for [m, k, n] in [[1, 16, 1], [3, 32, 5], [13, 80, 9], [50, 64, 4], [21, 784, 45], [12, 272, 32]] {
            let (a, b, start) = (random(m * (k + 1), 1), random(n * k, 2), random(n, 3));
            let [a_rows, b_rows] = [(&a, k + 1), (&b, k)].map(|(values, row)| ByRows { values, row });
            let mut c = vec![f32::NAN; m * (n + 2)];
            product_of_rows(level, [m, k, n], a_rows, b_rows, &start, (&mut c, n + 2));
            for i in 0..m {
                let mut alone = vec![0.0; n];
                let row = ByRows { values: &a[i * (k + 1)..], ..a_rows };
                product_of_rows(level, [1, k, n], row, b_rows, &start, (&mut alone, n));
                for j in 0..n {
                    let expected = dot(k, |q| a[i * (k + 1) + q], |q| b[j * k + q]) + f64::from(start[j]);
                    close(c[i * (n + 2) + j], expected, k);
                    assert_eq!(c[i * (n + 2) + j].to_bits(), alone[j].to_bits());
                }
            }
        }
    }
}

#[test]
fn descending_is_a_product_and_a_step() {
    let betas = [(0.0, None), (0.9, None), (0.9, Some(0.99))];
    for (level, betas) in levels().into_iter().flat_map(|level| betas.map(|betas| (level, betas))) {
        for [rows, samples, columns] in
            [[8usize, 100usize, 64usize], [16, 5, 32], [11, 17, 33], [24, 40, 81], [3, 1, 7]]
        {
            let width = columns.next_multiple_of(PADDING);
            let (d, u) = (random(samples * rows, 1), random(samples * width, 2));
            let update = Update::new(3.0, 0.5, 0.1, betas);
            let start = [random(rows * columns, 3), random(rows * columns, 4), random(rows * columns, 5)];
            let [mut w, mut m, mut s] = start.clone();
            s.iter_mut().for_each(|s| *s = s.abs());
            let (mut mean, mut square, mut weights) = (m.clone(), s.clone(), w.clone());
            let to = Weights { weights: &mut weights, mean: &mut mean, square: &mut square, columns };
            let errors = ByRows { values: &d, row: rows };
            descend(level, samples, errors, ByRows { values: &u, row: width }, to, &update);
            for at in 0..rows * columns {
                let gradient =
                    dot(samples, |i| d[i * rows + at / columns], |i| u[i * width + at % columns]) as f32;
                w[at] -= update.step(gradient, &mut m[at], &mut s[at]);
                close(mean[at], m[at].into(), samples);
                close(square[at], s[at].into(), 10 * samples);
                close(weights[at], w[at].into(), samples);
            }
        }
    }
}
