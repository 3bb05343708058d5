//! The report: a verdict for every case, computed from the data, and the courses behind it.

use super::compare::{Case, Entry, Epoch, Spread, Verdict};
use super::digits::DigitSet;
use super::experiments::Size;
use super::job::Job;
use super::pieces::badge;
use crate::chart::{Axis, Chart, Line, Panel};
use crate::files::{self, write_json};
use crate::html::{document, table};
use crate::reproduce::folder::{Folder, cell};
use crate::reproduce::{machine, report::figure};
use crate::train::announce::duration;
use maud::{Markup, html};
use proxlift::Result;
use serde_json::{Value, json};
use std::path::PathBuf;

/// An experiment: its name in files, its title, and what is done in it.
const EXPERIMENTS: [(&str, &str, &str); 6] = [
    (
        "depth",
        "Depth",
        "The denoiser with a fixed clip, each layer of which sees the noisy picture, and chains of clipped layers, which see only \
         the layer before. Where units are saturated their tangent is zero; a secant that reaches beyond the bound is not.",
    ),
    (
        "few",
        "Few samples, few epochs",
        "How far each rule comes with little: a hundred digits three times, all digits once, twenty patches.",
    ),
    (
        "starts",
        "Bad starts",
        "Weights a tenth and ten times as large as He's. Small weights leave soft-thresholds in their dead zone, large ones \
         saturate clips: in both, tangents are exactly zero.",
    ),
    (
        "arithmetic",
        "Few bits, noisy gradients",
        "What enters every product rounded to 8 or 4 bits; and noise on errors and gradients, as strong as they are or three \
         times as strong.",
    ),
    (
        "weights",
        "The weight of the loss",
        "One-sided against centred secants, and weights that fall over the training against constant ones.",
    ),
    (
        "digits",
        "Digits: lifted Bregman and its relatives",
        "A classifier (784-64-32-10) and an autoencoder (784-64-16-64-784, logistic loss). The relatives choose their own steps; \
         their weight of the loss is the best of three, and closed forms and ADMM have \
         batches of a quarter of the set.",
    ),
];

/// What verdicts on cases are about.
const LIFTED: &str = "lifting";
const PLAIN: &str = "back-propagation";

/// Writes the page, with these sections after those of the trainings.
pub fn write(
    folder: &Folder,
    size: &Size,
    data: &DigitSet,
    jobs: &[Job],
    more: &[Markup],
) -> Result<PathBuf> {
    let cases: Vec<(&str, Vec<Case>)> =
        EXPERIMENTS.iter().map(|(id, ..)| (*id, Case::all(id, jobs))).collect();
    let all = || cases.iter().flat_map(|(_, cases)| cases);
    write_json(&folder.path("verdicts.json"), &all().map(verdict_json).collect::<Vec<_>>())?;
    write_courses(folder, all())?;
    let seconds: f64 = jobs.iter().filter_map(|job| job.outcome().points.last()).map(|p| p.seconds).sum();
    let caution = size.caution();
    let mut sections = Vec::new();
    for ((id, title, about), (_, cases)) in EXPERIMENTS.iter().zip(&cases) {
        sections.push(section(folder, caution.as_deref(), (id, title, about), cases)?);
    }
    let body = html! {
        p {
            "When does it pay to carry errors back by secants of the activations (lifted Bregman) rather than by tangents \
             (back-propagation)? Every comparison of trainings below changes that rule and nothing else: the same network, start, \
             data, order, optimiser (Adam) and choice of rates. What else lifting allows comes after them: layers in parallel, \
             infinite depth, inversion. Commit " (machine::COMMIT) "; " (jobs.len()) " trainings, "
            (duration(seconds)) " of one thread."
        }
        @if let Some(caution) = &caution { p.caution { (caution) } }
        (summary(all()))
        @for section in &sections { (section) }
        @for section in more { (section) }
        section id="setup" {
            h2 { "How it was made" }
            ul {
                li { "Digits: " (data.described) ". Patches: drawn by the program, as in the other parts of the report." }
                li {
                    "Seeds: " (size.seeds) "; each decides the first weights and the order of the samples. A verdict says that one \
                     method wins if each of its seeds scores better than each seed of the other."
                }
                li {
                    "Rates: every method is shown at the rate, of " (rates(size.rates)) " (denoiser: " (rates(size.denoiser_rates))
                    "), with the least training loss at the end; of the lifted methods, that with the least training loss \
                     stands against back-propagation. What is scored, digits or pictures that no training saw, chooses nothing."
                }
                li {
                    "Times are " (machine::clock()) " of one thread, without evaluation, but for those of layers in parallel. \
                     Machine: " (machine::processor()) ", " (machine::cores()) " cores."
                }
            }
        }
    };
    let path = folder.path("report.html");
    files::write(&path, document("What lifted training brings", "", &body).as_bytes())?;
    Ok(path)
}

fn rates(rates: &[f64]) -> String {
    rates.iter().map(f64::to_string).collect::<Vec<_>>().join(", ")
}

fn summary<'a>(cases: impl Iterator<Item = &'a Case> + Clone) -> Markup {
    let verdicts = || cases.clone().filter_map(|case| Some((case, case.verdict()?)));
    let count = |wanted: Verdict| verdicts().filter(|(_, verdict)| *verdict == wanted).count();
    let row = |(case, verdict): (&Case, Verdict)| {
        let score = |entry: Option<&Entry>| {
            entry.and_then(Entry::last).map_or("–".into(), |last| last.score.text(1))
        };
        let who = case.best_lifted().map_or(String::new(), |entry| entry.label.clone());
        vec![
            html! { a href={ "#" (case.experiment) } { (case.name) } },
            html! { (score(case.back_propagation())) },
            html! { (score(case.best_lifted())) },
            html! { (who) },
            badge(verdict, &verdict.words(LIFTED, PLAIN)),
        ]
    };
    let head = ["case", "back-propagation", "lifted", "which", "verdict"];
    html! {
        p {
            "Of " (verdicts().count()) " cases, lifting wins in " (count(Verdict::Wins)) " by more than the seeds differ, loses in "
            (count(Verdict::Loses)) ", and makes no difference in " (count(Verdict::Even)) ". Scores: digits told right in per \
             cent, PSNR in dB for the denoiser and the autoencoder; mean over seeds, least and largest in brackets."
        }
        (table(&head, &verdicts().map(row).collect::<Vec<_>>()))
        p.files.faint { "Behind it: " a href="verdicts.json" { "verdicts.json" } }
    }
}

fn section(
    folder: &Folder,
    caution: Option<&str>,
    (id, title, about): (&str, &str, &str),
    cases: &[Case],
) -> Result<Markup> {
    let mut legend = Vec::new();
    for entry in cases.iter().flat_map(|case| &case.entries) {
        if legend.iter().all(|(name, _)| *name != entry.label) {
            legend.push((entry.label.clone(), entry.style));
        }
    }
    let panels = cases.iter().flat_map(|case| {
        let losses =
            panel(case, "loss in training", "epochs", |e| (e.epoch as f64, e.loss), Axis::log("loss"));
        let scores =
            panel(case, "score", "seconds of one thread", |e| (e.seconds, e.score), Axis::linear("score"));
        [losses, scores]
    });
    let chart = Chart {
        title: title.into(),
        subtitle:
            "left: loss on the training set against epochs; right: score on what was not seen, against time"
                .into(),
        caution: caution.map(String::from),
        legend,
        panels: panels.collect(),
        columns: 2,
        frame: (400.0, 200.0),
    };
    let caption =
        "Every method at its best rate. Lines are means over seeds, bands go from the least to the largest.";
    let drawn = figure(folder, &format!("lifting-{id}"), chart, caption, &["lifting.csv"])?;
    Ok(html! {
        section id=(id) {
            h2 { (title) }
            p { (about) }
            @for case in cases {
                h3 { (case.name) @if let Some(verdict) = case.verdict() { " " (badge(verdict, &verdict.words(LIFTED, PLAIN))) } }
                (case_table(case))
            }
            (drawn)
        }
    })
}

fn case_table(case: &Case) -> Markup {
    let row = |entry: &Entry| {
        let last = entry.last();
        let text =
            |of: fn(&Epoch) -> Spread, digits| last.map_or("diverged".into(), |last| of(last).text(digits));
        vec![
            entry.label.clone(),
            format!("{}", entry.rate),
            text(|e| e.loss, 4),
            text(|e| e.score, 1),
            last.map_or("–".into(), |last| format!("{:.2} s", last.seconds)),
        ]
    };
    let head = ["method", "rate, or μ", "loss at the end", "score", "time"];
    table(&head, &case.entries.iter().map(row).collect::<Vec<_>>())
}

fn panel(
    case: &Case,
    what: &str,
    along: &'static str,
    of: impl Fn(&Epoch) -> (f64, Spread),
    y: Axis,
) -> Panel {
    let line = |entry: &Entry| {
        let points: Vec<(f64, Spread)> = entry.course.iter().filter(|e| e.epoch > 0).map(&of).collect();
        let band = points.iter().map(|(x, s)| (*x, s.least, s.most)).collect();
        Line { band, ..Line::new(entry.style, points.iter().map(|(x, s)| (*x, s.mean)).collect()) }
    };
    let x = Axis::linear(along);
    Panel::new(format!("{}: {what}", case.name), x, y, case.entries.iter().map(line).collect())
}

fn verdict_json(case: &Case) -> Value {
    let entry = |entry: &Entry| {
        let last = entry.last();
        json!({
            "method": entry.label,
            "rate": entry.rate,
            "loss": last.map(|last| last.loss),
            "score": last.map(|last| last.score),
            "seconds": last.map(|last| last.seconds),
            "diverged": entry.diverged,
        })
    };
    json!({
        "experiment": case.experiment,
        "case": case.name,
        "verdict": case.verdict(),
        "lifted": case.best_lifted().map(|entry| &entry.label),
        "methods": case.entries.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn write_courses<'a>(folder: &Folder, cases: impl Iterator<Item = &'a Case>) -> Result<()> {
    let rows = cases.flat_map(|case| {
        case.entries.iter().flat_map(move |entry| {
            entry.course.iter().map(move |e| {
                let names = [case.experiment.to_string(), case.name.clone(), entry.label.clone()];
                let numbers = [entry.rate, e.epoch as f64, e.seconds, e.loss.mean, e.loss.least, e.loss.most];
                let scores = [e.score.mean, e.score.least, e.score.most];
                names.into_iter().chain(numbers.into_iter().chain(scores).map(cell)).collect()
            })
        })
    });
    let head = "experiment case method rate epoch seconds loss_mean loss_min loss_max score_mean score_min score_max";
    folder.csv("lifting.csv", head, rows)
}
