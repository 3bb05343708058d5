//! The trade-off between the batch size, the epochs and the time.

use super::super::report::Material;
use super::super::runs::{Experiment, Method};
use super::{Finding, Verdict};
use crate::html::table;
use maud::html;
use serde_json::json;

/// Rank correlation from which an order counts as one.
const ORDERED: f64 = 0.7;

pub fn rule() -> String {
    format!(
        "The paper: “using bigger batch sizes leads to slower convergence”, smaller ones seem “to enable better \
         optimization”, but all epochs take “longer runtime with very small batch sizes”. It holds if the loss after all \
         epochs grows with the batch size and the time falls with it (rank correlations of +{ORDERED} and −{ORDERED} or \
         beyond); mixed if one of both does. On a GPU, as in the paper, small batches leave most of the machine idle; on \
         one thread of a processor they need not."
    )
}

pub fn trade_off(all: &Material<'_>, method: Method) -> Finding {
    let (mut sizes, mut losses, mut times, mut rows) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for &size in all.scale.batches {
        let course = all.results.course(method, Experiment::Batch(size));
        if !course.points.is_empty() {
            let (loss, time) = (course.final_loss(), course.seconds());
            rows.push(vec![size.to_string(), format!("{loss:.3}"), format!("{time:.1} s")]);
            sizes.push(size as f64);
            losses.push(loss);
            times.push(time);
        }
    }
    let (by_loss, by_time) = (kendall(&sizes, &losses), kendall(&sizes, &times));
    let tests = by_loss.zip(by_time).map(|(loss, time)| [loss >= ORDERED, time <= -ORDERED]);
    let show = |tau: Option<f64>| tau.map_or("–".into(), |tau| format!("{tau:+.2}"));
    Finding {
        verdict: Verdict::all_or_some(tests.as_ref().map_or(&[], |tests| &tests[..])),
        evidence: html! {
            p {
                "Kendall's rank correlation of the batch size with the loss at the end: " (show(by_loss))
                ", with the time of all epochs: " (show(by_time)) "."
            }
            (table(&["batch size", "loss at the end", "time, one thread"], &rows))
        },
        numbers: json!({
            "sizes": sizes, "final_losses": losses, "seconds": times, "tau_loss": by_loss, "tau_seconds": by_time,
        }),
    }
}

/// Kendall's tau: the share of pairs in the same order, less that of pairs in the opposite one.
pub fn kendall(a: &[f64], b: &[f64]) -> Option<f64> {
    let pairs = (0..a.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let orders = pairs.map(|(i, j)| match (a[i] - a[j]) * (b[i] - b[j]) {
        product if product > 0.0 => 1.0,
        product if product < 0.0 => -1.0,
        _ => 0.0,
    });
    let count = orders.clone().count();
    (count > 0).then(|| orders.sum::<f64>() / count as f64)
}
