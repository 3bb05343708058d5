//! Fewer epochs than SGD, no oscillation, stability with depth.

use super::super::report::Material;
use super::super::results::Course;
use super::super::runs::Method;
use super::super::scale::Scale;
use super::{Finding, Verdict};
use crate::html::table;
use serde_json::json;

pub const FEWER_EPOCHS: &str = "The paper: “LB-FB needs fewer epochs than SGD to converge”. It holds if LB-FB reaches \
    the loss that SGD ends with in fewer epochs, at every depth; mixed at some. Time is shown, but does not count.";

pub fn fewer_epochs(all: &Material<'_>, method: Method, baseline: Method) -> Finding {
    let (mut tests, mut rows, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for &depth in all.scale.depths {
        let sgd = all.results.compared_course(baseline, depth);
        let Some(last) = sgd.points.last() else { continue };
        let course = all.results.compared_course(method, depth);
        let there = course.points.iter().find(|p| p.loss.0 <= last.loss.0);
        tests.push(there.is_some_and(|p| p.epoch < last.epoch));
        rows.push(vec![
            format!("K = {depth}"),
            format!("{:.3} after {} epochs, {:.1} s", last.loss.0, last.epoch, last.seconds),
            there.map_or("never".into(), |p| format!("after {} epochs, {:.1} s", p.epoch, p.seconds)),
        ]);
        numbers.push(json!({
            "depth": depth, "sgd_loss": last.loss.0, "sgd_epochs": last.epoch, "sgd_seconds": last.seconds,
            "lb_fb_epochs": there.map(|p| p.epoch), "lb_fb_seconds": there.map(|p| p.seconds),
        }));
    }
    let evidence = table(&["", "SGD ends at", "LB-FB is there"], &rows);
    Finding { verdict: Verdict::all_or_some(&tests), evidence, numbers: json!(numbers) }
}

pub const NO_OSCILLATION: &str = "The paper: LB-FB “seems more stable (no oscillation ensured by the backtracking \
    approach)”. Counted are the epochs after which the loss on all training patches is higher than before, by more than \
    0.01 %. It holds if LB-FB has none; mixed if it has fewer than SGD with the best rate of the wider grid.";

/// A rise below this share of the loss is not one.
const RISE: f64 = 1e-4;

/// How often the loss rises from one epoch to the next, and by how much at most, as a share; none without any epoch.
fn rises(course: &Course) -> Option<(usize, f64)> {
    let losses = course.losses();
    let rises: Vec<f64> = losses.windows(2).map(|w| w[1] / w[0] - 1.0).filter(|rise| *rise > RISE).collect();
    (!losses.is_empty()).then(|| (rises.len(), rises.iter().copied().fold(0.0, f64::max)))
}

pub fn no_oscillation(all: &Material<'_>, form: Method) -> Finding {
    let (mut rows, mut numbers, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for &depth in all.scale.depths {
        let mut row = vec![format!("K = {depth}")];
        for method in Method::ALL {
            let found = rises(&all.results.compared_course(method, depth));
            row.push(match found {
                None => "–".into(),
                Some((0, _)) => "0".into(),
                Some((times, most)) => format!("{times} (at most {:.2} %)", 100.0 * most),
            });
            if let Some((times, most)) = found {
                counts.push((method, times));
                numbers.push(json!({"depth": depth, "method": method, "rises": times, "largest_rise": most}));
            }
        }
        rows.push(row);
    }
    let count_of =
        |method| counts.iter().filter(|(m, _)| *m == method).map(|(_, times)| times).sum::<usize>();
    let verdict = match (count_of(form), count_of(Method::SgdWide)) {
        _ if counts.is_empty() => Verdict::NoData,
        (0, _) => Verdict::Holds,
        (lb, sgd) if lb < sgd => Verdict::Mixed,
        _ => Verdict::DoesNotHold,
    };
    let head: Vec<&str> =
        std::iter::once("rises of the loss").chain(Method::ALL.map(Method::label)).collect();
    Finding { verdict, evidence: table(&head, &rows), numbers: json!(numbers) }
}

/// Largest gap between the shallow and the deep curve for “holds” and for “mixed”, in percent.
const GAPS: (f64, f64) = (10.0, 25.0);

pub fn depth_rule(scale: &Scale) -> String {
    format!(
        "The paper: “a light discrepancy appears between the curves” of different depths. The gap between two curves is \
         the mean of |loss at K = {} / loss at K = {} − 1| over the second half of the epochs. It holds if LB-FB's is at \
         most {} %, mixed up to {} %.",
        scale.deepest(),
        scale.depths[0],
        GAPS.0,
        GAPS.1
    )
}

pub fn stable(all: &Material<'_>, form: Method) -> Finding {
    let (first, last) = (all.scale.depths[0], all.scale.deepest());
    let (mut rows, mut numbers, mut verdict) = (Vec::new(), Vec::new(), Verdict::NoData);
    for method in Method::ALL {
        let [shallow, deep] = [first, last].map(|depth| all.results.compared_course(method, depth).losses());
        let ratios: Vec<f64> = shallow.iter().zip(&deep).map(|(a, b)| (b / a - 1.0).abs()).collect();
        let half = &ratios[ratios.len() / 2..];
        let gap = (!half.is_empty()).then(|| half.iter().sum::<f64>() / half.len() as f64);
        let percent = gap.map(|gap| 100.0 * gap);
        rows.push(vec![method.label().into(), percent.map_or("–".into(), |gap| format!("{gap:.1} %"))]);
        numbers.push(json!({"method": method, "gap": gap}));
        if method == form {
            verdict = match percent {
                None => Verdict::NoData,
                Some(gap) if gap <= GAPS.0 => Verdict::Holds,
                Some(gap) if gap <= GAPS.1 => Verdict::Mixed,
                Some(_) => Verdict::DoesNotHold,
            };
        }
    }
    let evidence = table(&["trainer", &format!("gap from K = {first} to K = {last}")], &rows);
    Finding { verdict, evidence, numbers: json!(numbers) }
}
