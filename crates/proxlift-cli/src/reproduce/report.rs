//! The report: what its parts are made of, and the page that holds them.

use super::{folder::Folder, machine, pictures::Pictures, results::Results, scale::Scale};
use crate::files::{write, write_json};
use crate::train::announce::duration;
use crate::{chart::Chart, html::document};
use maud::{Markup, PreEscaped, Render, html};
use proxlift::{Result, engine, image::Image};
use serde_json::json;
use std::path::PathBuf;

pub struct Material<'a> {
    pub scale: &'a Scale,
    pub results: &'a Results,
    pub pictures: &'a Pictures,
    /// The noise that all networks were trained for, and the test images with it.
    pub sigma: f64,
    pub noisy: &'a [Image],
    pub folder: &'a Folder,
}

pub struct Section {
    /// Where links lead.
    pub id: &'static str,
    pub title: &'static str,
    /// A line for the table of contents.
    pub short: String,
    pub body: Markup,
}

impl Material<'_> {
    pub fn caution(&self) -> Markup {
        html! { @if let Some(text) = self.scale.caution() { p.caution { (text) } "\n" } }
    }

    /// Draws `name.svg` and shows it, with what there is to say about it, and links to it and to the `files` behind it.
    pub fn figure(&self, name: &str, chart: Chart, caption: impl Render, files: &[&str]) -> Result<Markup> {
        figure(self.folder, name, Chart { caution: self.scale.caution(), ..chart }, caption, files)
    }
}

/// A drawing on a page: `name.svg` in the folder, what there is to say about it, and links to the `files` behind it.
pub fn figure(
    folder: &Folder,
    name: &str,
    chart: Chart,
    caption: impl Render,
    files: &[&str],
) -> Result<Markup> {
    let (svg, name) = (chart.draw(), format!("{name}.svg"));
    folder.figure(&name, svg.as_bytes())?;
    Ok(html! {
        figure {
            div.wide { (PreEscaped(svg)) }
            figcaption { (caption) " " span.files { "Behind it: " (links(&[files, &[&*name]].concat())) } }
        }
    })
}

pub fn links(files: &[&str]) -> Markup {
    html! {
        @for (i, file) in files.iter().enumerate() { @if i > 0 { ", " } a href={ "figures/" (file) } { (file) } }
    }
}

/// Writes the page, and `report.json` with how it was made; returns the page's place.
pub fn write_page(all: &Material<'_>, sections: &[Section], seeds: u64, threads: usize) -> Result<PathBuf> {
    let Material { scale, pictures, folder, .. } = all;
    let outcomes = || all.results.0.iter().map(|training| training.outcome());
    let (trainings, seconds) = (outcomes().count(), outcomes().map(|outcome| outcome.seconds()).sum::<f64>());
    let mut commits: Vec<&str> = outcomes().map(|outcome| &*outcome.commit).collect();
    commits.sort_unstable();
    commits.dedup();
    let seeds: Vec<u64> = (0..seeds).collect();
    let (program, system) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS);
    let (processor, cores) = (machine::processor(), machine::cores());
    let (engine, clock) = (engine::standard().name(), machine::clock());
    let setup = json!({
        "program": program,
        "commit": machine::COMMIT,
        "commits_of_runs": commits,
        "machine": processor,
        "cores": cores,
        "system": system,
        "engine": engine,
        "trainings_at_a_time": threads,
        "threads_of_a_training": 1,
        "clock": clock,
        "seeds": seeds,
        "scale": scale,
        "train": pictures.described,
        "test": pictures.test_described,
        "test_images": pictures.test_names(),
        "trainings": trainings,
        "training_seconds": seconds,
    });
    write_json(&folder.path("report.json"), &setup)?;
    let seeds = seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let body = html! {
        p {
            "The experiments of X. Wang, M. Benning and A. Repetti, “A lifted Bregman strategy for training unfolded \
             proximal neural network Gaussian denoisers” (MLSP 2024), run again by " code { "proxlift reproduce" }
            ". Training: " (pictures.described) ". Test: " (pictures.test_described) ". Commit " (machine::COMMIT)
            "; " (trainings) " trainings, " (duration(seconds)) " of one thread in all."
        }
        (all.caution())
        nav aria-label="Contents" {
            ol {
                @for s in sections { li { a href={ "#" (s.id) } { (s.title) } ": " (s.short) } }
                li { a href="#setup" { "How it was made" } }
            }
        }
        @for s in sections { section id=(s.id) { h2 { (s.title) } (s.body) } }
        section id="setup" {
            h2 { "How it was made" }
            ul {
                li {
                    "Program: proxlift " (program) ", commit " (machine::COMMIT) "."
                    @if commits.len() > 1 { " Some runs were trained by other commits: " (commits.join("; ")) "." }
                }
                li { "Machine: " (processor) ", " (cores) " cores, " (system) "; engine: " (engine) "." }
                li {
                    "Threads: " (threads) " trainings at a time, each on one thread, the longest first. Results do not \
                     depend on it; every time in this report is " (clock) " of one thread, with the other cores busy, \
                     and without evaluation."
                }
                li {
                    "Seeds: " (seeds) "; each decides the initial weights, the patches, their noise and the order of \
                     the samples. Lines are means over seeds, bands go from the least to the largest."
                }
                li { "Training images: " (pictures.described) ", patches of " (scale.patch) " x " (scale.patch) " pixels." }
                li {
                    "Test images: " (pictures.test_described) ": " (pictures.test_names().join(", "))
                    "; the noise on them is the same for all methods."
                }
                li {
                    "Loss: 1/2 ‖x̂ − x‖² of the network's own forward pass, summed over the pixels and averaged over all \
                     training patches with their first noise, after each epoch, for all methods alike; epoch 0 is the \
                     untrained network."
                }
                li {
                    "The mini-batch of the comparison is " (scale.batch)
                    ": the paper only says that it saturates the memory."
                }
                li {
                    "Every training, with its settings (" code { "config.toml" } " for "
                    code { "proxlift train --config" } "), its course and its network, is in " code { "runs/" } "; "
                    a href="report.json" { "report.json" } " has this list for programs."
                }
            }
        }
    };
    let path = folder.path("report.html");
    write(&path, document("Lifted Bregman training of proximal networks, reproduced", "", &body).as_bytes())?;
    Ok(path)
}
