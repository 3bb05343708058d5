//! The energy never rises on a batch.

use super::super::folder::cell;
use super::super::html::{Verdict, figure};
use super::super::plan::Method;
use super::super::sections::Material;
use super::{Claim, slug};
use crate::chart::{Axis, Chart, Line, Panel, Scale, Style};
use proxlift::Result;
use proxlift::training::ENERGY_ROUNDING;
use serde_json::json;

/// `E` falls on a fixed batch, and in every step of every LB-FB run.
///
/// # Errors
/// When a file cannot be written.
pub fn monotone(all: &Material<'_>, method: Method) -> Result<Claim> {
    let runs = all.results.energy(method);
    let (steps, rises) = all
        .results
        .all()
        .iter()
        .filter(|done| done.run.role.method() == method)
        .flat_map(|done| &done.outcome.epochs)
        .fold((0, 0), |(steps, rises), epoch| (steps + epoch.energy_steps, rises + epoch.energy_rises));
    let (mut rows, mut lines, mut between) = (Vec::new(), Vec::new(), 0);
    for done in &runs {
        let points: Vec<(f64, f64)> =
            done.outcome.epochs.iter().filter_map(|e| Some((e.epoch as f64, e.energy?))).collect();
        between += points.windows(2).filter(|w| w[1].1 > w[0].1 * (1.0 + ENERGY_ROUNDING)).count();
        for e in done.outcome.epochs.iter().filter(|e| e.energy.is_some()) {
            let seed = done.run.seed.to_string();
            rows.push(vec![seed, e.epoch.to_string(), cell(e.energy), cell(Some(e.loss))]);
        }
        let losses = done.outcome.epochs.iter().skip(1).map(|e| (e.epoch as f64, e.loss)).collect();
        lines.push(Line::new(Style::kind(0), points));
        lines.push(Line::new(Style::kind(1).dashed(1), losses));
    }
    let (csv, image) = (format!("energy-{}.csv", slug(method)), format!("energy-{}.svg", slug(method)));
    all.folder.csv(&csv, &["seed", "iteration", "energy", "loss"], &rows)?;
    let chart = Chart {
        title: "Energy and loss on a fixed batch".into(),
        subtitle: format!(
            "{}, K = {}, u kept from one iteration to the next, {} images as one batch",
            method.label(),
            all.scale.depths[0],
            all.scale.few
        ),
        caution: all.scale.caution(),
        legend: vec![
            ("E of the lifted problem".into(), Style::kind(0)),
            ("loss of the network".into(), Style::kind(1).dashed(1)),
        ],
        panels: vec![Panel {
            title: String::new(),
            x: Axis::new("iterations", Scale::Linear),
            y: Axis::new("mean of a patch", Scale::Auto),
            lines,
            level: None,
        }],
        columns: 1,
        frame: (520.0, 250.0),
    };
    let svg = chart.draw();
    all.folder.figure(&image, svg.as_bytes())?;
    let caption = format!(
        "In {rises} of the {steps} steps of all its runs in this report, E was higher after the step than before. From \
         one iteration to the next on the fixed batch it rose {between} times: between two steps τ<sub>k</sub> follows the \
         norm of the new filters, which makes E another function. A falling E is not yet a good network: with u kept, the \
         auxiliary variables take up error that the network still has."
    );
    Ok(Claim {
        id: format!("energy-{}", slug(method)),
        statement: format!("{}: E never rises on a batch", method.label()),
        rule: "The theory behind Algorithm 1: under backtracking the energy of a batch does not rise in a step. It holds if \
               it never did, in any step of any run with backtracking, beyond the rounding of single precision (a \
               share of 1e-5), nor from iteration to iteration on the fixed batch; mixed if in fewer than one step of a \
               thousand."
            .into(),
        verdict: match (steps, rises + between) {
            (0, _) => Verdict::NoData,
            (_, 0) => Verdict::Holds,
            (steps, rises) if rises * 1000 < steps => Verdict::Mixed,
            _ => Verdict::DoesNotHold,
        },
        evidence: figure(&svg, &caption, &[&csv, &image]),
        numbers: json!({"steps": steps, "rises": rises, "rises_between_iterations": between}),
    })
}
