//! Inversion: what a network was given, lifted and by proximal gradients through it.

mod search;

use super::compare::{Duel, Spread};
use super::experiments::Size;
use super::kept::Kept;
use super::pieces::{badge, behind};
use crate::chart::{Axis, Chart, Line, Panel, Style};
use crate::files::write_json;
use crate::flags::pool;
use crate::html::table;
use crate::reproduce::{folder::Folder, report::figure};
use crate::workers::side_by_side;
use anyhow::Result;
use maud::{Markup, html};
use search::{Both, Kind, Search, State, Way};
use serde::Serialize;

/// A method over all seeds.
#[derive(Clone, Debug, Serialize)]
struct Method {
    passes: Spread,
    objective: Spread,
    misfit: Spread,
    distance: Spread,
    /// The objective after numbers of passes.
    course: Vec<(f64, Spread)>,
}

/// Both on the same problem.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    case: &'static str,
    lifted: Method,
    gradient: Method,
    /// How many times more the gradient leaves.
    by_objective: Duel,
    by_distance: Duel,
}

/// The methods as verdicts call them.
const LIFTED: &str = "lifting";
const GRADIENT: &str = "the gradient";

/// Searches for what is not known yet, so many at a time; none after Ctrl-C.
pub fn all(folder: &Folder, size: &Size, threads: usize) -> Result<Option<Vec<Found>>> {
    let kept = Kept::open(folder, "inversion");
    let one = |kind, seed| {
        let passes = if kind == Kind::Denoiser { size.passes.0 } else { size.passes.1 };
        let search = Search { kind, passes, pictures: size.inverted, seed };
        kept.or_measure(&format!("{search:?}"), || pool(Some(1))?.install(|| search.work()))
    };
    let tasks: Vec<_> =
        Kind::ALL.into_iter().flat_map(|kind| (0..size.seeds).map(move |seed| (kind, seed))).collect();
    side_by_side(&tasks, threads, |&(kind, seed)| one(kind, seed).map(drop))?;
    let mut found = Vec::new();
    for kind in Kind::ALL {
        let seeds = (0..size.seeds).map(|seed| one(kind, seed)).collect::<Result<Option<Vec<_>>>>()?;
        let Some(seeds) = seeds else { return Ok(None) };
        for (i, case) in kind.regularisers().into_iter().enumerate() {
            found.push(Found::of(case, &seeds.iter().map(|both| &both[i]).collect::<Vec<_>>()));
        }
    }
    write_json(&folder.path("inversion.json"), &found)?;
    Ok(Some(found))
}

impl Method {
    fn of(seeds: &[&Way]) -> Self {
        let spread = |of: &dyn Fn(&Way) -> f64| Spread::of(seeds.iter().map(|way| of(way)));
        let at = |(i, state): (usize, &State)| (state.passes, spread(&|way| way.course[i].objective));
        Self {
            passes: spread(&|way| way.end.passes),
            objective: spread(&|way| way.end.objective),
            misfit: spread(&|way| way.end.misfit),
            distance: spread(&|way| way.distance),
            course: seeds[0].course.iter().enumerate().map(at).collect(),
        }
    }
}

impl Found {
    fn of(case: &'static str, seeds: &[&Both]) -> Self {
        let method =
            |of: fn(&Both) -> &Way| Method::of(&seeds.iter().map(|both| of(both)).collect::<Vec<_>>());
        let (lifted, gradient) = (method(|both| &both.lifted), method(|both| &both.gradient));
        let duel = |of: fn(&Way) -> f64| {
            let times = seeds.iter().map(|both| of(&both.gradient) / of(&both.lifted));
            Duel::more(case, (LIFTED, Spread::of(times)), (GRADIENT, Spread::exactly(1.0)))
        };
        let (by_objective, by_distance) = (duel(|way| way.end.objective), duel(|way| way.distance));
        Self { case, lifted, gradient, by_objective, by_distance }
    }
}

pub fn section(folder: &Folder, size: &Size, found: &[Found]) -> Result<Markup> {
    let rows = found.iter().flat_map(|one| {
        [("lifted", &one.lifted), ("gradient", &one.gradient)].map(|(name, method)| {
            vec![
                format!("{}: {name}", one.case),
                method.passes.text(0),
                method.objective.powers(),
                method.misfit.powers(),
                method.distance.text(4),
            ]
        })
    });
    let head = ["inverted, by", "passes", "objective", "misfit", "distance to the true input"];
    let verdict = |one: &Found| {
        let cells = [&one.by_objective, &one.by_distance]
            .map(|duel| [html! { (duel.of_first.text(2)) }, badge(duel.verdict, &duel.words())]);
        std::iter::once(html! { (one.case) }).chain(cells.into_iter().flatten()).collect::<Vec<_>>()
    };
    let verdicts: Vec<_> = found.iter().map(verdict).collect();
    Ok(html! {
        section id="inversion" {
            h2 { "Inversion" }
            p {
                "Given outputs y of a trained network G, which inputs z have little of α R(z) + l(G(z), y)? Lifted, by steps on z and \
                 on every layer in turn, each of which sees a convex problem; or by proximal gradients through the network. Both \
                 start from the same input, never let their objective rise, and have as many passes through the network; they \
                 differ in what they step on. The denoiser (K = 6, 8 filters, pictures of 32 x 32 pixels) is inverted from its \
                 own output; the encoder (64-96-40, patches of 8 x 8 pixels) from grey. Without total variation R is nothing for \
                 the denoiser, and for the encoder bounds."
            }
            (table(&head, &rows.collect::<Vec<_>>()))
            p {
                "Of a picture, on average: the misfit is l(G(z), y), the distance ‖z − truth‖ / ‖truth‖. The objective is what both \
                 are to lower; a lower one need not be nearer to the truth. Every seed has a network and pictures of its own, on which the methods \
                 are compared: below is how many times more the gradient leaves, and one of them wins where all seeds agree."
            }
            (table(&["gradient over lifted", "objective", "verdict", "distance", "verdict"], &verdicts))
            (chart(folder, size, found)?)
            (behind("inversion.json"))
        }
    })
}

fn chart(folder: &Folder, size: &Size, found: &[Found]) -> Result<Markup> {
    let (lifted, gradient) = (Style::kind(0), Style::kind(1));
    let panel = |one: &Found| {
        let line = |(style, method): (Style, &Method)| {
            let band = method.course.iter().map(|(x, s)| (*x, s.least, s.most)).collect();
            Line { band, ..Line::new(style, method.course.iter().map(|(x, s)| (*x, s.mean)).collect()) }
        };
        let lines = [(lifted, &one.lifted), (gradient, &one.gradient)].map(line).into();
        Panel::new(one.case, Axis::log("passes"), Axis::log("objective"), lines)
    };
    let chart = Chart {
        title: "Inversion".into(),
        subtitle: "the objective against passes through the network".into(),
        caution: size.caution(),
        legend: vec![("lifted".into(), lifted), ("gradient".into(), gradient)],
        panels: found.iter().map(panel).collect(),
        columns: 2,
        frame: (400.0, 200.0),
    };
    let caption = "Lines are means over seeds, bands go from the least to the largest.";
    Ok(figure(folder, "lifting-inversion", chart, caption, &[])?)
}
