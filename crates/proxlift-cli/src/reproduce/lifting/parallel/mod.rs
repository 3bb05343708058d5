//! Layers in parallel: whether it pays to move all of them at once.

mod measure;
pub mod over_processes;

use super::compare::{Duel, Spread, Verdict};
use super::experiments::Size;
use super::kept::Kept;
use super::pieces::{badge, behind};
use crate::chart::{Axis, Chart, Line, Panel, Style};
use crate::files::write_json;
use crate::html::table;
use crate::reproduce::{folder::Folder, report::figure};
use anyhow::Result;
use maud::{Markup, html};
use measure::{Courses, INNER, Moment, SAMPLES, Setting, Times, alone};
use serde::Serialize;

/// Samples at once: too few to be shared between threads, or just enough.
const BATCHES: [usize; 2] = [1, 4];

/// What was found for a chain and a batch.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    depth: usize,
    batch: usize,
    threads: usize,
    /// Milliseconds of an iteration.
    times: Times,
    loss_at_start: Spread,
    /// Of the sweep, and of all layers at once.
    after_equal_iterations: [Spread; 2],
    after_equal_seconds: [Spread; 2],
    iterations: usize,
    /// How many times sooner than the sweep all layers at once come to a loss that both come to.
    to_equal_loss: Spread,
    duel: Duel,
}

/// Measures what is not known yet, one after the other; none after Ctrl-C.
pub fn all(folder: &Folder, size: &Size, threads: usize) -> Result<Option<Vec<Found>>> {
    let (times, courses) = (Kept::open(folder, "parallel-times"), Kept::open(folder, "parallel-losses"));
    let mut found = Vec::new();
    for &depth in size.parallel_depths {
        for batch in BATCHES {
            let setting = Setting { depth, batch, threads };
            let name = format!("{setting:?}, {} s", size.timing_seconds);
            let Some(time) = times.or_measure(&name, || setting.times(size.timing_seconds))? else {
                return Ok(None);
            };
            let mut seeds = Vec::new();
            for seed in 0..size.seeds {
                let name = format!("{setting:?}, {} rounds, seed {seed}", size.parallel_rounds);
                match courses.or_measure(&name, || setting.courses(size.parallel_rounds, seed, &alone()))? {
                    Some(one) => seeds.push(one),
                    None => return Ok(None),
                }
            }
            found.push(Found::of(setting, time, &seeds));
        }
    }
    write_json(&folder.path("parallel.json"), &found)?;
    Ok(Some(found))
}

impl Found {
    fn of(setting: Setting, times: Times, seeds: &[Courses]) -> Self {
        let Setting { depth, batch, threads } = setting;
        let spread = |of: &dyn Fn(&Courses) -> f64| Spread::of(seeds.iter().map(of));
        let both = |of: fn(&[Moment], f64) -> f64, at: fn(&Courses) -> f64| {
            [
                spread(&|courses| of(&courses.sweep, at(courses))),
                spread(&|courses| of(&courses.parallel, at(courses))),
            ]
        };
        let to_equal_loss = spread(&|courses| {
            let loss = last(&courses.sweep).loss.max(last(&courses.parallel).loss);
            seconds_to(&courses.sweep, loss) / seconds_to(&courses.parallel, loss)
        });
        let about = format!("K = {depth}, {}", batches(batch));
        let sweep = ("the sweep", Spread::exactly(1.0));
        Self {
            depth,
            batch,
            threads,
            times,
            loss_at_start: spread(&|courses| courses.sweep[0].loss),
            after_equal_iterations: both(|course, _| last(course).loss, |_| 0.0),
            after_equal_seconds: both(loss_after, |courses| {
                last(&courses.sweep).seconds.min(last(&courses.parallel).seconds)
            }),
            iterations: last(&seeds[0].sweep).iterations,
            duel: Duel::more(&about, ("all at once", to_equal_loss), sweep),
            to_equal_loss,
        }
    }

    /// How many times faster an iteration is than one of the sweep, on all threads.
    fn of_an_iteration(&self) -> f64 {
        self.times.sweep[1] / self.times.parallel[1]
    }
}

fn last(course: &[Moment]) -> Moment {
    course[course.len() - 1]
}

/// The loss after so many seconds, on the line between the rounds before and after.
fn loss_after(course: &[Moment], seconds: f64) -> f64 {
    let pair = course.windows(2).find(|pair| pair[1].seconds >= seconds);
    pair.map_or(last(course).loss, |pair| {
        let share = (seconds - pair[0].seconds) / (pair[1].seconds - pair[0].seconds);
        pair[0].loss + share * (pair[1].loss - pair[0].loss)
    })
}

/// When the loss is first as low as this, which it comes to by the end.
fn seconds_to(course: &[Moment], loss: f64) -> f64 {
    let pair = course.windows(2).find(|pair| pair[1].loss <= loss);
    pair.map_or(last(course).seconds, |pair| {
        let share = ((pair[0].loss - loss) / (pair[0].loss - pair[1].loss)).clamp(0.0, 1.0);
        pair[0].seconds + share * (pair[1].seconds - pair[0].seconds)
    })
}

fn batches(batch: usize) -> String {
    format!("batches of {batch}")
}

pub fn section(folder: &Folder, size: &Size, found: &[Found]) -> Result<Markup> {
    let threads = found.first().map_or(1, |one| one.threads);
    let on_all = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
    let pays = found.iter().filter(|one| one.duel.verdict == Verdict::Wins).count();
    let costs = found.iter().filter(|one| one.duel.verdict == Verdict::Loses).count();
    let times = |one: &Found| {
        let [sweep, parallel] = [one.times.sweep, one.times.parallel];
        let ms = [sweep[0], sweep[1], parallel[0], parallel[1]].map(|ms| format!("{ms:.2} ms"));
        let ratios = [sweep[0] / sweep[1], parallel[0] / parallel[1], one.of_an_iteration()];
        let ratios = ratios.map(|ratio| format!("{ratio:.2}"));
        std::iter::once(one.duel.about.clone()).chain(ms).chain(ratios).collect::<Vec<_>>()
    };
    let losses = |one: &Found| {
        let [a, b] = one.after_equal_iterations.map(|loss| loss.text(2));
        let [c, d] = one.after_equal_seconds.map(|loss| loss.text(2));
        let (start, times) = (one.loss_at_start.text(2), one.to_equal_loss.text(2));
        let iterations = one.iterations.to_string();
        let cells = [one.duel.about.clone(), iterations, start, a, b, c, d, times];
        let cells = cells.into_iter().map(|cell| html! { (cell) });
        cells.chain([badge(one.duel.verdict, &one.duel.words())]).collect::<Vec<_>>()
    };
    let head = [
        "chain".to_string(),
        "sweep, 1 thread".into(),
        format!("sweep, {on_all}"),
        "all at once, 1 thread".into(),
        format!("all at once, {on_all}"),
        "threads speed up the sweep by".into(),
        "and all at once by".into(),
        format!("all at once over the sweep, {on_all}"),
    ];
    let loss_head = [
        "chain",
        "iterations",
        "loss at the start",
        "after them: sweep",
        "all at once",
        "after equal seconds: sweep",
        "all at once",
        "speed-up to equal loss",
        "verdict",
    ];
    Ok(html! {
        section id="parallel" {
            h2 { "Layers in parallel" }
            p {
                "The lifted energy couples neighbouring layers only, so that threads may share layers, not only samples. LB-FB \
                 with u kept for every sample, on denoisers as chains of K layers (8 filters, pictures of 24 x 24 pixels, "
                (INNER) " iterations on a batch, " (SAMPLES) " pictures): the sweep moves layer after layer, from the last to \
                 the first; all at once moves all parameters, then u of the even layers, then of the odd ones. The two differ \
                 in this order and in nothing else. An error crosses all layers in one sweep, but two layers in an iteration \
                 of all at once."
            }
            p {
                "All at once pays in " (pays) " of " (found.len()) " settings and costs time in " (costs) ": it pays if, with \
                 every seed, it comes sooner to a loss of the network itself that both come to, on as many threads ("
                (on_all) "). Times are those of the clock on the wall, taken while nothing else of the report ran, with the \
                 orders in turns; of an iteration, the least."
            }
            (table(&head.each_ref().map(String::as_str), &found.iter().map(times).collect::<Vec<_>>()))
            (table(&loss_head, &found.iter().map(losses).collect::<Vec<_>>()))
            (chart(folder, size, found)?)
            (behind("parallel.json"))
        }
    })
}

fn chart(folder: &Folder, size: &Size, found: &[Found]) -> Result<Markup> {
    let styles: Vec<_> =
        BATCHES.iter().enumerate().map(|(i, batch)| (batches(*batch), Style::kind(i))).collect();
    let panel = |title: &str, of: fn(&Found) -> Spread| {
        let line = |(i, batch): (usize, &usize)| {
            let of = found.iter().filter(|one| one.batch == *batch).map(|one| (one.depth as f64, of(one)));
            let band = of.clone().map(|(depth, s)| (depth, s.least, s.most)).collect();
            Line { band, ..Line::new(styles[i].1, of.map(|(depth, s)| (depth, s.mean)).collect()) }
        };
        let lines = BATCHES.iter().enumerate().map(line).collect();
        let (x, y) = (Axis::linear("layers K"), Axis::linear("times faster"));
        Panel { level: Some((1.0, "the sweep")), ..Panel::new(title, x, y, lines) }
    };
    let chart = Chart {
        title: "All layers at once against the sweep".into(),
        subtitle: "how many times faster, on all threads".into(),
        caution: size.caution(),
        panels: vec![
            panel("an iteration", |one| Spread::exactly(one.of_an_iteration())),
            panel("to equal loss", |one| one.to_equal_loss),
        ],
        legend: styles.clone(),
        columns: 2,
        frame: (400.0, 200.0),
    };
    let caption =
        "Above 1 all at once is faster. Lines are means over seeds, bands go from the least to the largest.";
    Ok(figure(folder, "lifting-parallel", chart, caption, &[])?)
}
