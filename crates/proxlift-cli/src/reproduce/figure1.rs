//! Figure 1 of the paper: LB-FB with mini-batches of several sizes.

use super::curves::loss_panels;
use super::folder::cell;
use super::html::{figure, table};
use super::plan::Method;
use super::sections::{Material, Section};
use crate::chart::{Chart, Style};
use crate::train::announce::duration;
use anyhow::Result;

/// Draws it and writes what is behind it.
///
/// # Errors
/// When a file cannot be written.
pub fn write(all: &Material<'_>) -> Result<Section> {
    let scale = all.scale;
    let courses: Vec<_> = Method::LB_FB
        .iter()
        .flat_map(|&method| scale.batches.iter().map(move |&size| (method, size)))
        .map(|(method, size)| (method, size, all.results.batch(method, size)))
        .collect();
    let panels = Method::LB_FB.iter().flat_map(|&method| {
        let of_method = courses.iter().filter(|(m, ..)| *m == method).enumerate();
        let styled: Vec<_> = of_method.map(|(i, (.., course))| (Style::step(i), course.clone())).collect();
        let mut panels = loss_panels(&styled);
        panels.iter_mut().for_each(|panel| panel.title = format!("{}, {}", method.label(), panel.title));
        panels
    });
    let panels = panels.collect();
    let chart = Chart {
        title: "Mini-batch stability".into(),
        subtitle: format!(
            "LB-FB with backtracking, K = {}, {} images, {} epochs; loss on the training patches after each epoch",
            scale.depths[0], scale.few, scale.few_epochs
        ),
        caution: scale.caution(),
        legend: scale
            .batches
            .iter()
            .enumerate()
            .map(|(i, b)| (format!("batch {b}"), Style::step(i)))
            .collect(),
        panels,
        columns: 2,
        frame: (400.0, 290.0),
    };
    let svg = chart.draw();
    all.folder.figure("figure1.svg", svg.as_bytes())?;
    let rows: Vec<Vec<String>> = courses
        .iter()
        .flat_map(|(method, size, course)| {
            course.points.iter().map(move |p| {
                vec![
                    method.label().to_string(),
                    size.to_string(),
                    p.epoch.to_string(),
                    cell(Some(p.seconds)),
                    cell(Some(p.loss.0)),
                    cell(Some(p.loss.1)),
                    cell(Some(p.loss.2)),
                ]
            })
        })
        .collect();
    let head = ["method", "batch", "epoch", "seconds", "loss_mean", "loss_min", "loss_max"];
    all.folder.csv("figure1.csv", &head, &rows)?;
    let caption = "Loss against computation time (left) and epochs (right), one line for each batch size. The paper \
                   reads two things from it: larger batches need more epochs, and very small ones need more time.";
    let summary: Vec<Vec<String>> = courses
        .iter()
        .map(|(method, size, course)| {
            vec![
                method.label().to_string(),
                size.to_string(),
                course.final_loss_text(),
                duration(course.seconds()),
            ]
        })
        .collect();
    let html = figure(&svg, caption, &["figure1.csv", "figure1.svg"])
        + &table(&["", "batch size", "loss at the end", "time for all epochs"], &summary);
    Ok(Section {
        id: "figure1",
        title: "Figure 1: mini-batch stability",
        short: "LB-FB with batches of several sizes".into(),
        html,
    })
}
