//! Fewer epochs than SGD, no oscillation, stability with depth.

use super::super::html::{Verdict, table};
use super::super::plan::Method;
use super::super::results::Course;
use super::super::sections::Material;
use super::{Claim, all_or_some, slug};
use serde_json::json;

/// LB-FB reaches SGD's last loss in fewer epochs.
pub fn fewer_epochs(all: &Material<'_>, method: Method, baseline: Method) -> Claim {
    let (mut tests, mut rows, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for &depth in &all.scale.depths {
        let sgd = all.results.course(baseline, depth);
        let Some(last) = sgd.points.last().copied() else { continue };
        let there = all.results.course(method, depth).reaches(last.loss.0).copied();
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
    Claim {
        id: format!("fewer-epochs-{}-{}", slug(method), if baseline == Method::Sgd { "paper" } else { "wide" }),
        statement: format!("{} needs fewer epochs than {}", method.label(), baseline.label()),
        rule: "The paper: “LB-FB needs fewer epochs than SGD to converge”. It holds if LB-FB reaches the loss that SGD \
               ends with in fewer epochs, at every depth; mixed at some. Time is shown, but does not count."
            .into(),
        verdict: all_or_some(&tests),
        evidence: table(&["", "SGD ends at", "LB-FB is there"], &rows),
        numbers: json!(numbers),
    }
}

/// A rise below this share of the loss is not one.
const RISE: f64 = 1e-4;

/// How often the loss rises from one epoch to the next, and by how much at most, as a share.
fn rises(course: &Course) -> (usize, f64) {
    let losses = course.losses();
    let rises: Vec<f64> = losses.windows(2).map(|w| w[1] / w[0] - 1.0).filter(|rise| *rise > RISE).collect();
    (rises.len(), rises.iter().copied().fold(0.0, f64::max))
}

/// The loss of LB-FB does not rise from epoch to epoch.
pub fn no_oscillation(all: &Material<'_>, form: Method) -> Claim {
    let (mut rows, mut numbers, mut counts) = (Vec::new(), Vec::new(), [0; Method::ALL.len()]);
    let mut any = false;
    for &depth in &all.scale.depths {
        let mut row = vec![format!("K = {depth}")];
        for (method, count) in Method::ALL.into_iter().zip(&mut counts) {
            let course = all.results.course(method, depth);
            if course.points.is_empty() {
                row.push("–".into());
                continue;
            }
            any = true;
            let (times, most) = rises(&course);
            *count += times;
            row.push(match times {
                0 => "0".into(),
                _ => format!("{times} (at most {:.2} %)", 100.0 * most),
            });
            numbers.push(json!({"depth": depth, "method": method, "rises": times, "largest_rise": most}));
        }
        rows.push(row);
    }
    let count_of = |method| Method::ALL.iter().position(|m| *m == method).map_or(0, |i| counts[i]);
    let verdict = match (count_of(form), count_of(Method::SgdWide)) {
        _ if !any => Verdict::NoData,
        (0, _) => Verdict::Holds,
        (lb, sgd) if lb < sgd => Verdict::Mixed,
        _ => Verdict::DoesNotHold,
    };
    let head: Vec<&str> =
        std::iter::once("rises of the loss").chain(Method::ALL.map(Method::label)).collect();
    Claim {
        id: format!("no-oscillation-{}", slug(form)),
        statement: format!("{} does not oscillate", form.label()),
        rule: "The paper: LB-FB “seems more stable (no oscillation ensured by the backtracking approach)”. Counted are \
               the epochs after which the loss on all training patches is higher than before, by more than 0.01 %. It \
               holds if LB-FB has none; mixed if it has fewer than SGD with the best rate of the wider grid."
            .into(),
        verdict,
        evidence: table(&head, &rows),
        numbers: json!(numbers),
    }
}

/// Largest gap between the shallow and the deep curve for “holds” and for “mixed”.
const GAPS: (f64, f64) = (0.10, 0.25);

/// The mean of `|loss of deep / loss of shallow - 1|` over the second half of the epochs.
fn gap(shallow: &Course, deep: &Course) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = shallow.losses().into_iter().zip(deep.losses()).collect();
    let half = &pairs[pairs.len() / 2..];
    (!half.is_empty()).then(|| half.iter().map(|(a, b)| (b / a - 1.0).abs()).sum::<f64>() / half.len() as f64)
}

/// Deeper networks train like shallow ones.
pub fn stable_with_depth(all: &Material<'_>, form: Method) -> Claim {
    let (first, last) = (all.scale.depths[0], all.scale.deepest());
    let gaps: Vec<_> = Method::ALL
        .into_iter()
        .map(|method| (method, gap(&all.results.course(method, first), &all.results.course(method, last))))
        .collect();
    let own = gaps.iter().find(|(method, _)| *method == form).and_then(|(_, gap)| *gap);
    let verdict = match own {
        None => Verdict::NoData,
        Some(gap) if gap <= GAPS.0 => Verdict::Holds,
        Some(gap) if gap <= GAPS.1 => Verdict::Mixed,
        Some(_) => Verdict::DoesNotHold,
    };
    let show = |gap: Option<f64>| gap.map_or("–".into(), |gap| format!("{:.1} %", 100.0 * gap));
    let rows: Vec<Vec<String>> =
        gaps.iter().map(|(method, gap)| vec![method.label().to_string(), show(*gap)]).collect();
    Claim {
        id: format!("depth-{}", slug(form)),
        statement: format!("{} stays stable in deeper networks", form.label()),
        rule: format!(
            "The paper: “a light discrepancy appears between the curves” of different depths. The gap between two curves \
             is the mean of |loss at K = {last} / loss at K = {first} − 1| over the second half of the epochs. It holds if \
             LB-FB's is at most {:.0} %, mixed up to {:.0} %.",
            100.0 * GAPS.0,
            100.0 * GAPS.1
        ),
        verdict,
        evidence: table(&["trainer", &format!("gap from K = {first} to K = {last}")], &rows),
        numbers: json!(gaps.iter().map(|(m, gap)| json!({"method": m, "gap": gap})).collect::<Vec<_>>()),
    }
}
