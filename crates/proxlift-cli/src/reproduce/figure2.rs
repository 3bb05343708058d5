//! Figure 2 of the paper: LB-FB against SGD at several depths; beyond it, Adam and the lifted preset.

use super::curves::{Along, Of, loss_panels, panel};
use super::folder::cell;
use super::html::{figure, table};
use super::plan::Method;
use super::sections::{Material, Section};
use crate::chart::{Chart, Style, escape};
use crate::train::announce::duration;
use anyhow::Result;
use maud::{Markup, html};
use proxlift::Denoiser;
use proxlift::evaluation::{Peak, psnr};

/// The colour of a method, everywhere.
pub fn style(method: Method) -> Style {
    Style::kind(match method {
        Method::Paper => 0,
        Method::Sgd => 1,
        Method::Adam => 2,
        Method::Lifted => 3,
        Method::Sweep => 4,
        Method::SgdWide => 5,
    })
}

/// Draws it and writes what is behind it.
///
/// # Errors
/// When a file cannot be written.
pub fn write(all: &Material<'_>) -> Result<Section> {
    write_courses(all)?;
    write_grid(all)?;
    let paper = paper_figure(all);
    all.folder.figure("figure2.svg", paper.as_bytes())?;
    let beyond = beyond_figure(all, Of::Loss, None);
    all.folder.figure("figure2-beyond.svg", beyond.as_bytes())?;
    let variation = total_variation(all)?;
    let scores = beyond_figure(all, Of::Psnr, Some(variation));
    all.folder.figure("figure2-psnr.svg", scores.as_bytes())?;

    let scale = all.scale;
    let mut html = figure(
        &paper,
        &format!(
            "Both forms of LB-FB against SGD with the best rate of the paper's grid and of a wider one, on the same patches with the same noise in batches of \
             {}, against time (left) and epochs (right). Loss is 1/2 ‖x̂ − x‖², summed over the pixels of a patch and \
             averaged over all training patches, taken of the network after each epoch by the same function for all \
             methods; its time does not count.",
            scale.batch
        ),
        &["figure2.csv", "figure2.svg"],
    );
    html += "<h3>The grid of rates</h3>\n<p>SGD follows the gradient of the loss summed over pixels and averaged over \
             the mini-batch; the meaning of the paper's range of rates depends on that convention. The rate with the \
             least loss at the end wins, separately at each depth.</p>\n";
    html += &grid_table(all);
    html += &edges(all);
    html += "<h3>Beyond the paper: Adam, and lifted Bregman in the diagonal metric</h3>\n";
    html += &figure(
        &beyond,
        "The same loss for all trainers. Adam and the lifted preset are those of <code>proxlift train</code>, with \
         small batches, fresh patches and fresh noise at every visit, so the patches whose loss is drawn are new to \
         them.",
        &["figure2.csv", "figure2-beyond.svg"],
    );
    html += &figure(
        &scores,
        "PSNR at peak 1 on the test images during training, against time. The test images never choose anything: \
         the network of the last epoch is the one that is scored.",
        &["figure2.csv", "figure2-psnr.svg"],
    );
    html += &summary(all);
    Ok(Section {
        id: "figure2",
        title: "Figure 2: comparison with SGD",
        short: "LB-FB and SGD at several depths; beyond the paper, Adam and the lifted preset".into(),
        html,
    })
}

fn paper_figure(all: &Material<'_>) -> String {
    let scale = all.scale;
    let both = [Method::Paper, Method::Sweep, Method::Sgd, Method::SgdWide];
    let lines: Vec<_> = both
        .iter()
        .flat_map(|&method| {
            scale.depths.iter().enumerate().map(move |(i, &depth)| (method, depth, style(method).dashed(i)))
        })
        .collect();
    let styled: Vec<_> =
        lines.iter().map(|&(m, depth, style)| (style, all.results.course(m, depth))).collect();
    let chart = Chart {
        title: "Comparison with SGD".into(),
        subtitle: format!(
            "{} images, {} epochs, batches of {}; loss on the training patches after each epoch",
            scale.images, scale.epochs, scale.batch
        ),
        caution: scale.caution(),
        legend: lines
            .iter()
            .map(|(m, depth, style)| (format!("{}, K = {depth}", m.label()), *style))
            .collect(),
        panels: loss_panels(&styled),
        columns: 2,
        frame: (400.0, 290.0),
    };
    chart.draw()
}

fn beyond_figure(all: &Material<'_>, of: Of, level: Option<f64>) -> String {
    let scale = all.scale;
    let rows: &[Along] = if of == Of::Loss { &[Along::Time, Along::Epochs] } else { &[Along::Time] };
    let panels = rows.iter().flat_map(|&along| {
        scale.depths.iter().map(move |&depth| {
            let courses: Vec<_> =
                Method::ALL.iter().map(|&m| (style(m), all.results.course(m, depth))).collect();
            let mut panel = panel(format!("K = {depth}"), along, of, &courses);
            panel.level = level.map(|level| (level, "total variation".into()));
            panel
        })
    });
    let (title, subtitle) = match of {
        Of::Loss => ("All trainers", "loss on the training patches, against time and against epochs"),
        Of::Psnr => ("PSNR on the test images", "mean at peak 1, against time"),
    };
    let chart = Chart {
        title: title.into(),
        subtitle: subtitle.into(),
        caution: scale.caution(),
        legend: Method::ALL.iter().map(|&m| (m.label().to_string(), style(m))).collect(),
        panels: panels.collect(),
        columns: scale.depths.len(),
        frame: (252.0, 220.0),
    };
    chart.draw()
}

/// PSNR of total variation on the test images.
fn total_variation(all: &Material<'_>) -> Result<f64> {
    let sigma = all.sigma();
    let estimates = Denoiser::total_variation().sigma(sigma).denoise_all(&all.pictures.noisy(sigma)?)?;
    let scores = all.pictures.test.images().iter().zip(&estimates).map(|(x, e)| psnr(x, e, Peak::ONE));
    let scores = scores.collect::<proxlift::Result<Vec<_>>>()?;
    Ok(scores.iter().sum::<f64>() / scores.len() as f64)
}

fn write_courses(all: &Material<'_>) -> Result<()> {
    let mut rows = Vec::new();
    for &depth in &all.scale.depths {
        for method in Method::ALL {
            for p in all.results.course(method, depth).points {
                rows.push(vec![
                    method.label().to_string(),
                    depth.to_string(),
                    p.epoch.to_string(),
                    cell(Some(p.seconds)),
                    cell(Some(p.loss.0)),
                    cell(Some(p.loss.1)),
                    cell(Some(p.loss.2)),
                    cell(p.psnr.map(|v| v.0)),
                    cell(p.psnr.map(|v| v.1)),
                    cell(p.psnr.map(|v| v.2)),
                ]);
            }
        }
    }
    let head = [
        "method",
        "depth",
        "epoch",
        "seconds",
        "loss_mean",
        "loss_min",
        "loss_max",
        "psnr_mean",
        "psnr_min",
        "psnr_max",
    ];
    Ok(all.folder.csv("figure2.csv", &head, &rows)?)
}

fn write_grid(all: &Material<'_>) -> Result<()> {
    let mut rows = Vec::new();
    for &depth in &all.scale.depths {
        for &rate in all.scale.rates.iter().chain(&all.scale.wider_rates) {
            let course = all.results.sgd(depth, rate);
            let chosen = all.results.best_rate(Method::SgdWide, depth) == Some(rate);
            let in_paper = all.results.best_rate(Method::Sgd, depth) == Some(rate);
            rows.push(vec![
                depth.to_string(),
                rate.to_string(),
                cell(Some(course.final_loss())),
                in_paper.to_string(),
                chosen.to_string(),
            ]);
        }
    }
    Ok(all.folder.csv(
        "figure2-grid.csv",
        &["depth", "rate", "final_loss", "chosen_of_papers_grid", "chosen_of_wider_grid"],
        &rows,
    )?)
}

fn grid_table(all: &Material<'_>) -> String {
    let head: Vec<String> = all.scale.depths.iter().map(|depth| format!("loss, K = {depth}")).collect();
    let head: Vec<&str> = std::iter::once("rate").chain(head.iter().map(String::as_str)).collect();
    let rows: Vec<Vec<Markup>> = all
        .scale
        .rates
        .iter()
        .chain(&all.scale.wider_rates)
        .map(|&rate| {
            let losses = all.scale.depths.iter().map(|&depth| {
                let text = all.results.sgd(depth, rate).final_loss_text();
                let is_best = |method| all.results.best_rate(method, depth) == Some(rate);
                html! {
                    @if is_best(Method::SgdWide) { strong { (text) } }
                    @else if is_best(Method::Sgd) { em { (text) } " (best of the paper's)" }
                    @else { (text) }
                }
            });
            std::iter::once(html! { (format!("{rate:e}")) }).chain(losses).collect()
        })
        .collect();
    table(&head, &rows)
        + "<p class=\"files faint\">Behind it: <a href=\"figures/figure2-grid.csv\">figure2-grid.csv</a></p>\n"
}

/// Where the best rate is the largest of the grid, a larger one might have been better.
fn edges(all: &Material<'_>) -> String {
    let largest = all.scale.rates.iter().copied().fold(0.0, f64::max);
    let at_edge = |depth: &&usize| all.results.best_rate(Method::Sgd, **depth) == Some(largest);
    let depths: Vec<String> =
        all.scale.depths.iter().filter(at_edge).map(|depth| format!("K = {depth}")).collect();
    if depths.is_empty() {
        return String::new();
    }
    format!(
        "<p>At {} the best rate of the paper's range is its largest, 5e-4: the range ends before SGD's optimum. The wider grid \
         contains it.</p>\n",
        depths.join(", ")
    )
}

fn summary(all: &Material<'_>) -> String {
    let mut rows = Vec::new();
    for &depth in &all.scale.depths {
        for method in Method::ALL {
            let course = all.results.course(method, depth);
            rows.push(vec![
                format!("{}, K = {depth}", method.label()),
                course.final_loss_text(),
                course.final_psnr().map_or("–".into(), |psnr| format!("{psnr:.2} dB")),
                duration(course.seconds()),
            ]);
        }
    }
    let who: String = Method::ALL
        .iter()
        .filter_map(|&m| Some((m, all.results.trainer(m, all.scale.deepest())?)))
        .map(|(m, text)| format!("<li>{}: {}</li>", m.label(), escape(text)))
        .collect();
    table(&["at the end", "loss", "PSNR on the test images", "training time, one thread"], &rows)
        + &format!("<p>The trainers, in their own words (K = {}):</p><ul>{who}</ul>\n", all.scale.deepest())
}
