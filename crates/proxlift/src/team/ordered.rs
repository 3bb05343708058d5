//! Sums over samples in their order.

use rayon::prelude::*;

/// Numbers that are added up at once, and the least that a thread takes.
const BLOCK: usize = 1024;
const BLOCKS: usize = 8;

/// `sum += row 0 + row 1 + ...`, the rows added up in this order in double precision: no bit depends on the threads.
pub(super) fn add_rows<'a>(rows: usize, row: impl Fn(usize) -> &'a [f32] + Sync, sum: &mut [f32]) {
    let blocks = sum.par_chunks_mut(BLOCK).with_min_len(BLOCKS).enumerate();
    blocks.for_each(|(i, sum)| {
        // What a sum of nothing is: -0 leaves every number as it is.
        let mut total = [-0.0_f64; BLOCK];
        for r in 0..rows {
            let values = &row(r)[i * BLOCK..][..sum.len()];
            total.iter_mut().zip(values).for_each(|(total, &value)| *total += f64::from(value));
        }
        sum.iter_mut().zip(total).for_each(|(sum, total)| *sum = (f64::from(*sum) + total) as f32);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added_in_their_order() {
        let (weights, rows) = (3 * BLOCK + 17, 7);
        let value = |i: usize| ((i * 2_654_435_761) % 1000) as f32 * 1e-3 - 0.5;
        let values: Vec<f32> = (0..weights * rows).map(value).collect();
        let start: Vec<f32> = (0..weights).map(|w| value(w + 5)).collect();
        let mut sum = start.clone();
        add_rows(rows, |r| &values[r * weights..][..weights], &mut sum);
        for w in 0..weights {
            let total: f64 = (0..rows).map(|r| f64::from(values[r * weights + w])).sum();
            assert_eq!(sum[w].to_bits(), ((f64::from(start[w]) + total) as f32).to_bits());
        }
    }
}
