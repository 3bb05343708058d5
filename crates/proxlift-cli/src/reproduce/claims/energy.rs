//! The energy never rises on a batch.

use super::super::folder::cell;
use super::super::report::Material;
use super::super::runs::{Experiment, Method};
use super::{Finding, Verdict};
use crate::chart::{Axis, Chart, Line, Panel, Style};
use maud::html;
use proxlift::{Result, training::ENERGY_ROUNDING};
use serde_json::json;

pub const RULE: &str = "The theory behind Algorithm 1: under backtracking the energy of a batch does not rise in a step. \
    It holds if it never did, in any step of any run with backtracking, beyond the rounding of single precision (a share \
    of 1e-5), nor from iteration to iteration on the fixed batch; mixed if in fewer than one step of a thousand.";

pub fn monotone(all: &Material<'_>, method: Method) -> Result<Finding> {
    let own = all.results.0.iter().filter(|training| training.run.method == method);
    let (steps, rises) = own
        .flat_map(|training| &training.outcome().epochs)
        .fold((0, 0), |(steps, rises), epoch| (steps + epoch.energy_steps, rises + epoch.energy_rises));
    let (energy_style, loss_style) = (Style::kind(0), Style::kind(1).dashed(1));
    let (mut rows, mut lines, mut between) = (Vec::new(), Vec::new(), 0);
    for training in all.results.of(method, Experiment::Energy) {
        let (seed, epochs) = (training.run.config.seed, &training.outcome().epochs);
        let mut energies: Vec<(f64, f64)> = Vec::new();
        for (epoch, energy) in epochs.iter().filter_map(|e| Some((e, e.energy?))) {
            energies.push((epoch.epoch as f64, energy));
            rows.push(vec![seed.to_string(), epoch.epoch.to_string(), cell(energy), cell(epoch.loss)]);
        }
        between += energies.windows(2).filter(|w| w[1].1 > w[0].1 * (1.0 + ENERGY_ROUNDING)).count();
        let losses = epochs.iter().skip(1).map(|e| (e.epoch as f64, e.loss)).collect();
        lines.extend([Line::new(energy_style, energies), Line::new(loss_style, losses)]);
    }
    let name = format!("energy-{}", method.slug());
    let csv = format!("{name}.csv");
    all.folder.csv(&csv, "seed iteration energy loss", rows)?;
    let chart = Chart {
        title: "Energy and loss on a fixed batch".into(),
        subtitle: format!(
            "{}, K = {}, u kept from one iteration to the next, {} images as one batch",
            method.label(),
            all.scale.depths[0],
            all.scale.few
        ),
        legend: vec![
            ("E of the lifted problem".into(), energy_style),
            ("loss of the network".into(), loss_style),
        ],
        panels: vec![Panel::new("", Axis::linear("iterations"), Axis::auto("mean of a patch"), lines)],
        columns: 1,
        frame: (520.0, 250.0),
        ..Chart::default()
    };
    let caption = html! {
        "In " (rises) " of the " (steps) " steps of all its runs in this report, E was higher after the step than before. \
         From one iteration to the next on the fixed batch it rose " (between) " times: between two steps τ" sub { "k" }
        " follows the norm of the new filters, which makes E another function. A falling E is not yet a good network: \
         with u kept, the auxiliary variables take up error that the network still has."
    };
    Ok(Finding {
        verdict: match (steps, rises + between) {
            (0, _) => Verdict::NoData,
            (_, 0) => Verdict::Holds,
            (steps, rises) if rises * 1000 < steps => Verdict::Mixed,
            _ => Verdict::DoesNotHold,
        },
        evidence: all.figure(&name, chart, caption, &[&csv])?,
        numbers: json!({"steps": steps, "rises": rises, "rises_between_iterations": between}),
    })
}
