//! Figure 2 of the paper: LB-FB against SGD at several depths; beyond it, Adam and the lifted preset.

use super::curves::{View, loss_panels, write_courses};
use super::report::{Material, Section, links};
use super::{folder::cell, runs::Method};
use crate::chart::{Chart, Panel};
use crate::html::table;
use crate::train::announce::duration;
use maud::{Markup, html};
use proxlift::{Denoiser, Result, evaluation::mean_psnr};

pub fn write(all: &Material<'_>) -> Result<Section> {
    let scale = all.scale;
    let course = |(depth, method)| (method, depth, all.results.compared_course(method, depth));
    write_courses(all.folder, "figure2.csv", "depth", compared(all).map(course), true)?;
    write_grid(all)?;
    let variation = Denoiser::total_variation().sigma(all.sigma).denoise_all(all.noisy)?;
    let variation = mean_psnr(all.pictures.test.images(), &variation)?;
    let paper = format!(
        "Both forms of LB-FB against SGD with the best rate of the paper's grid and of a wider one, on the same patches \
         with the same noise in batches of {}, against time (left) and epochs (right). Loss is 1/2 ‖x̂ − x‖², summed \
         over the pixels of a patch and averaged over all training patches, taken of the network after each epoch by the \
         same function for all methods; its time does not count.",
        scale.batch
    );
    let beyond = html! {
        "The same loss for all trainers. Adam and the lifted preset are those of " code { "proxlift train" } ", with \
         small batches, fresh patches and fresh noise at every visit, so the patches whose loss is drawn are new to them."
    };
    let scores = "PSNR at peak 1 on the test images during training, against time. The test images never choose anything: \
                  the network of the last epoch is the one that is scored.";
    let losses = "loss on the training patches, against time and against epochs";
    let losses = beyond_chart(all, "All trainers", losses, &[View::LossByTime, View::LossByEpochs], None);
    let subtitle = "mean at peak 1, against time";
    let psnr = beyond_chart(all, "PSNR on the test images", subtitle, &[View::PsnrByTime], Some(variation));
    let body = html! {
        (all.figure("figure2", paper_chart(all), paper, &["figure2.csv"])?)
        h3 { "The grid of rates" }
        p {
            "SGD follows the gradient of the loss summed over pixels and averaged over the mini-batch; the meaning of the \
             paper's range of rates depends on that convention. The rate with the least loss at the end wins, separately \
             at each depth."
        }
        (grid_table(all))
        h3 { "Beyond the paper: Adam, and lifted Bregman in the diagonal metric" }
        (all.figure("figure2-beyond", losses, beyond, &["figure2.csv"])?)
        (all.figure("figure2-psnr", psnr, scores, &["figure2.csv"])?)
        (summary(all))
    };
    Ok(Section {
        id: "figure2",
        title: "Figure 2: comparison with SGD",
        short: "LB-FB and SGD at several depths; beyond the paper, Adam and the lifted preset".into(),
        body,
    })
}

fn paper_chart(all: &Material<'_>) -> Chart {
    let scale = all.scale;
    let both = [Method::Paper, Method::Sweep, Method::Sgd, Method::SgdWide];
    let depths = || scale.depths.iter().copied().enumerate();
    let (legend, courses): (Vec<_>, Vec<_>) = both
        .iter()
        .flat_map(|&method| depths().map(move |(i, depth)| (method, depth, method.style().dashed(i))))
        .map(|(method, depth, style)| {
            let name = format!("{}, K = {depth}", method.label());
            ((name, style), (style, all.results.compared_course(method, depth)))
        })
        .unzip();
    Chart {
        title: "Comparison with SGD".into(),
        subtitle: format!(
            "{} images, {} epochs, batches of {}; loss on the training patches after each epoch",
            scale.images, scale.epochs, scale.batch
        ),
        legend,
        panels: loss_panels("", &courses).into(),
        columns: 2,
        frame: (400.0, 290.0),
        ..Chart::default()
    }
}

/// All methods, a panel for each view and depth; `level` is what total variation scores there.
fn beyond_chart(
    all: &Material<'_>,
    title: &str,
    subtitle: &str,
    views: &[View],
    level: Option<f64>,
) -> Chart {
    let depths = all.scale.depths;
    let panels = views.iter().flat_map(|view| {
        depths.iter().map(|&depth| {
            let courses = Method::ALL.map(|m| (m.style(), all.results.compared_course(m, depth)));
            let level = level.map(|level| (level, "total variation"));
            Panel { level, ..view.panel(format!("K = {depth}"), &courses) }
        })
    });
    Chart {
        title: title.into(),
        subtitle: subtitle.into(),
        legend: Method::ALL.map(|method| (method.label().to_string(), method.style())).into(),
        panels: panels.collect(),
        columns: depths.len(),
        frame: (252.0, 220.0),
        ..Chart::default()
    }
}

fn compared(all: &Material<'_>) -> impl Iterator<Item = (usize, Method)> {
    all.scale.depths.iter().flat_map(|&depth| Method::ALL.map(|method| (depth, method)))
}

fn write_grid(all: &Material<'_>) -> Result<()> {
    let pairs =
        all.scale.depths.iter().flat_map(|&depth| all.scale.all_rates().map(move |rate| (depth, rate)));
    let rows = pairs.map(|(depth, rate)| {
        let chosen = |method| (all.results.best_rate(method, depth) == Some(rate)).to_string();
        let loss = cell(all.results.sgd(depth, rate).final_loss());
        vec![depth.to_string(), rate.to_string(), loss, chosen(Method::Sgd), chosen(Method::SgdWide)]
    });
    let head = "depth rate final_loss chosen_of_papers_grid chosen_of_wider_grid";
    all.folder.csv("figure2-grid.csv", head, rows)
}

fn grid_table(all: &Material<'_>) -> Markup {
    let (scale, results) = (all.scale, all.results);
    let head: Vec<String> = scale.depths.iter().map(|depth| format!("loss, K = {depth}")).collect();
    let head: Vec<&str> = std::iter::once("rate").chain(head.iter().map(String::as_str)).collect();
    let row = |rate: f64| {
        let losses = scale.depths.iter().map(|&depth| {
            let text = results.sgd(depth, rate).final_loss_text();
            let is_best = |method| results.best_rate(method, depth) == Some(rate);
            html! {
                @if is_best(Method::SgdWide) { strong { (text) } }
                @else if is_best(Method::Sgd) { em { (text) } " (best of the paper's)" }
                @else { (text) }
            }
        });
        std::iter::once(html! { (format!("{rate:e}")) }).chain(losses).collect()
    };
    // Where the best rate is the largest of a grid, a larger one might have been better.
    let at_edge = |method, rates: &[f64]| {
        let largest = rates.iter().copied().fold(0.0, f64::max);
        let depths = scale.depths.iter().filter(|&&depth| results.best_rate(method, depth) == Some(largest));
        let depths: Vec<String> = depths.map(|depth| format!("K = {depth}")).collect();
        (!depths.is_empty()).then(|| format!("its largest, {largest:e}, at {}", depths.join(", ")))
    };
    let narrow = at_edge(Method::Sgd, scale.rates);
    let wide = at_edge(Method::SgdWide, scale.wider_rates);
    html! {
        (table(&head, &scale.all_rates().map(row).collect::<Vec<_>>()))
        p.files.faint { "Behind it: " (links(&["figure2-grid.csv"])) }
        @if let Some(edge) = &narrow { p { "The best rate of the paper's range is " (edge) ": the range ends before SGD's optimum." } }
        @if let Some(edge) = &wide { p { "The best rate of the wider range is " (edge) ": it ends before SGD's optimum, too." } }
        @else { p { "The wider range contains SGD's optimum at every depth." } }
    }
}

fn summary(all: &Material<'_>) -> Markup {
    let row = |(depth, method): (usize, Method)| {
        let course = all.results.compared_course(method, depth);
        let psnr = course.points.last().and_then(|p| p.psnr);
        vec![
            format!("{}, K = {depth}", method.label()),
            course.final_loss_text(),
            psnr.map_or("–".into(), |psnr| format!("{:.2} dB", psnr.0)),
            duration(course.seconds()),
        ]
    };
    let rows: Vec<Vec<String>> = compared(all).map(row).collect();
    let deepest = all.scale.deepest();
    html! {
        (table(&["at the end", "loss", "PSNR on the test images", "training time, one thread"], &rows))
        p { "The trainers, in their own words (K = " (deepest) "):" }
        ul {
            @for method in Method::ALL {
                @if let Some(training) = all.results.compared(method, deepest).first() {
                    li { (method.label()) ": " (training.outcome().trainer) }
                }
            }
        }
    }
}
