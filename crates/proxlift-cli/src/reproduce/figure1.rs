//! Figure 1 of the paper: LB-FB with mini-batches of several sizes.

use super::curves::{loss_panels, write_courses};
use super::report::{Material, Section};
use super::runs::{Experiment, Method};
use crate::chart::{Chart, Style};
use crate::html::table;
use crate::train::announce::duration;
use maud::html;
use proxlift::Result;

pub fn write(all: &Material<'_>) -> Result<Section> {
    let scale = all.scale;
    let (mut panels, mut all_courses, mut summary) = (Vec::new(), Vec::new(), Vec::new());
    for method in Method::LB_FB {
        let course = |(i, &size)| (Style::step(i), all.results.course(method, Experiment::Batch(size)));
        let courses: Vec<_> = scale.batches.iter().enumerate().map(course).collect();
        panels.extend(loss_panels(&format!("{}, ", method.label()), &courses));
        for (&size, (_, course)) in scale.batches.iter().zip(courses) {
            let (loss, time) = (course.final_loss_text(), duration(course.seconds()));
            summary.push(vec![method.label().to_string(), size.to_string(), loss, time]);
            all_courses.push((method, size, course));
        }
    }
    write_courses(all.folder, "figure1.csv", "batch", all_courses.into_iter(), false)?;
    let legend = scale.batches.iter().enumerate().map(|(i, b)| (format!("batch {b}"), Style::step(i)));
    let chart = Chart {
        title: "Mini-batch stability".into(),
        subtitle: format!(
            "LB-FB with backtracking, K = {}, {} images, {} epochs; loss on the training patches after each epoch",
            scale.depths[0], scale.few, scale.few_epochs
        ),
        legend: legend.collect(),
        panels,
        columns: 2,
        frame: (400.0, 290.0),
        ..Chart::default()
    };
    let caption = "Loss against computation time (left) and epochs (right), one line for each batch size. The paper \
                   reads two things from it: larger batches need more epochs, and very small ones need more time.";
    Ok(Section {
        id: "figure1",
        title: "Figure 1: mini-batch stability",
        short: "LB-FB with batches of several sizes".into(),
        body: html! {
            (all.figure("figure1", chart, caption, &["figure1.csv"])?)
            (table(&["", "batch size", "loss at the end", "time for all epochs"], &summary))
        },
    })
}
