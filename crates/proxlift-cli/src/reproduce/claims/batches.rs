//! The trade-off between the batch size, the epochs and the time.

use super::super::html::table;
use super::super::plan::Method;
use super::super::sections::Material;
use super::{Claim, all_or_some, slug};
use serde_json::json;

/// Rank correlation from which an order counts as one.
const ORDERED: f64 = 0.7;

/// Larger batches end higher, smaller ones take longer.
pub fn trade_off(all: &Material<'_>, method: Method) -> Claim {
    let courses: Vec<_> = all
        .scale
        .batches
        .iter()
        .map(|&size| (size as f64, all.results.batch(method, size)))
        .filter(|(_, course)| !course.points.is_empty())
        .collect();
    let sizes: Vec<f64> = courses.iter().map(|(size, _)| *size).collect();
    let losses: Vec<f64> = courses.iter().map(|(_, course)| course.final_loss()).collect();
    let times: Vec<f64> = courses.iter().map(|(_, course)| course.seconds()).collect();
    let (by_loss, by_time) = (kendall(&sizes, &losses), kendall(&sizes, &times));
    let tests = match by_loss.zip(by_time) {
        Some((loss, time)) => vec![loss >= ORDERED, time <= -ORDERED],
        None => Vec::new(),
    };
    let rows: Vec<Vec<String>> = courses
        .iter()
        .map(|(size, course)| {
            vec![
                size.to_string(),
                format!("{:.3}", course.final_loss()),
                format!("{:.1} s", course.seconds()),
            ]
        })
        .collect();
    let show = |tau: Option<f64>| tau.map_or("–".into(), |tau| format!("{tau:+.2}"));
    let evidence = format!(
        "<p>Kendall's rank correlation of the batch size with the loss at the end: {}, with the time of all epochs: \
         {}.</p>\n{}",
        show(by_loss),
        show(by_time),
        table(&["batch size", "loss at the end", "time, one thread"], &rows)
    );
    Claim {
        id: format!("batches-{}", slug(method)),
        statement: format!("{}: batch size trades epochs against time", method.label()),
        rule: format!(
            "The paper: “using bigger batch sizes leads to slower convergence”, smaller ones seem “to enable better \
             optimization”, but all epochs take “longer runtime with very small batch sizes”. It holds if the loss after \
             all epochs grows with the batch size and the time falls with it (rank correlations of +{ORDERED} and \
             −{ORDERED} or beyond); mixed if one of both does. On a GPU, as in the paper, small batches leave most of the \
             machine idle; on one thread of a processor they need not."
        ),
        verdict: all_or_some(&tests),
        evidence,
        numbers: json!({
            "sizes": sizes, "final_losses": losses, "seconds": times, "tau_loss": by_loss, "tau_seconds": by_time,
        }),
    }
}

/// Kendall's tau: the share of pairs in the same order, less that of pairs in the opposite one.
fn kendall(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mut sum, mut pairs) = (0.0, 0.0_f64);
    for i in 0..a.len() {
        for j in 0..i {
            let product = (a[i] - a[j]) * (b[i] - b[j]);
            sum += if product > 0.0 {
                1.0
            } else if product < 0.0 {
                -1.0
            } else {
                0.0
            };
            pairs += 1.0;
        }
    }
    (pairs > 0.0).then(|| sum / pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kendall_is_one_for_the_same_order() {
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[5.0, 6.0, 9.0]), Some(1.0));
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[9.0, 6.0, 5.0]), Some(-1.0));
        assert_eq!(kendall(&[1.0], &[2.0]), None);
    }
}
