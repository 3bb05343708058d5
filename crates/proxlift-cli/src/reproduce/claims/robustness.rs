//! How much of a small change comes through, and what happens when the noise is not that of the training.

use super::super::folder::cell;
use super::super::report::Material;
use super::super::runs::Method;
use super::super::scale::Scale;
use super::{Finding, Verdict};
use crate::chart::{Axis, Chart, Line, Panel};
use crate::{html::table, sensitivity::jacobian_norms};
use maud::{Markup, html};
use proxlift::{Denoiser, Result, evaluation::mean_psnr, image::Image, network::Network};
use serde_json::json;

/// By how much LB-FB's norm may exceed SGD's, and its PSNR fall behind (dB), to count as no less robust.
const NORM_ROOM: f64 = 1.05;
const PSNR_ROOM: f64 = 0.05;

pub fn rule(scale: &Scale) -> String {
    format!(
        "Not measured in the paper. It holds if the mean norm of LB-FB's Jacobians is at most {NORM_ROOM} times SGD's, and \
         its PSNR is nowhere more than {PSNR_ROOM} dB behind SGD's when the noise changes; mixed if one of both does. \
         K = {}.",
        scale.deepest()
    )
}

/// What was measured of one method: means over seeds.
struct Measured {
    method: Method,
    /// The largest singular value of the Jacobian at each test image.
    norms: Vec<f64>,
    /// Mean PSNR on the test images for each noise level.
    psnr: Vec<f64>,
}

pub struct Robustness {
    measured: Vec<Measured>,
    evidence: Markup,
}

impl Robustness {
    pub fn measure(all: &Material<'_>) -> Result<Self> {
        let scale = all.scale;
        let crops: Vec<Image> = all.noisy.iter().map(|image| image.centre(scale.jacobian_side)).collect();
        let levels =
            scale.sigmas.iter().map(|&sigma| all.pictures.noisy(sigma)).collect::<Result<Vec<_>>>()?;
        let score = |network: &Network<f32>, noisy: &Vec<Image>| {
            mean_psnr(all.pictures.test.images(), &Denoiser::from(network.clone()).denoise_all(noisy)?)
        };
        let mut measured = Vec::new();
        for (method, networks) in all.results.networks(scale.deepest())? {
            let norms = mean_over(&networks, |network| jacobian_norms(network, &crops))?;
            let psnr = mean_over(&networks, |network| levels.iter().map(|n| score(network, n)).collect())?;
            measured.push(Measured { method, norms, psnr });
        }
        write_csv(all, &measured)?;
        let caption = format!(
            "Left: the largest singular value ‖J‖ of the network's Jacobian at each test image with its noise (crops of \
             {0} x {0} pixels), by power iteration; a small change of the image is amplified by at most this factor. \
             Right: PSNR when the test noise is not that of the training, networks as they are. The table has both, PSNR \
             in dB.",
            scale.jacobian_side
        );
        let files = ["robustness.csv", "jacobian.csv"];
        let evidence = html! {
            (all.figure("robustness", chart(all, &measured), caption, &files)?)
            (scores_table(scale, &measured))
        };
        Ok(Self { measured, evidence })
    }

    pub fn no_less_than_sgd(&self, scale: &Scale, method: Method) -> Finding {
        let find = |method| self.measured.iter().find(|m| m.method == method);
        let tests = find(method).zip(find(Method::SgdWide)).map(|(lb, sgd)| {
            let mut pairs = lb.psnr.iter().zip(&sgd.psnr);
            [mean(&lb.norms) <= NORM_ROOM * mean(&sgd.norms), pairs.all(|(lb, sgd)| *lb >= sgd - PSNR_ROOM)]
        });
        let numbers = self.measured.iter().map(|Measured { method, norms, psnr }| {
            json!({"method": method, "norms": norms, "sigmas": scale.sigmas, "psnr": psnr})
        });
        Finding {
            verdict: Verdict::all_or_some(tests.as_ref().map_or(&[], |tests| &tests[..])),
            evidence: self.evidence.clone(),
            numbers: numbers.collect(),
        }
    }
}

fn scores_table(scale: &Scale, measured: &[Measured]) -> Markup {
    let row = |Measured { method, norms, psnr }: &Measured| -> Vec<String> {
        let largest = norms.iter().copied().fold(0.0, f64::max);
        let first = [method.label().to_string(), format!("{:.2}", mean(norms)), format!("{largest:.2}")];
        first.into_iter().chain(psnr.iter().map(|psnr| format!("{psnr:.2}"))).collect()
    };
    let sigmas: Vec<String> = scale.sigmas.iter().map(|sigma| format!("σ = {sigma}")).collect();
    let head = ["trainer", "‖J‖, mean", "‖J‖, largest"];
    let head: Vec<&str> = head.into_iter().chain(sigmas.iter().map(String::as_str)).collect();
    table(&head, &measured.iter().map(row).collect::<Vec<_>>())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean of several lists of numbers, entry by entry.
fn mean_over(networks: &[Network<f32>], of: impl Fn(&Network<f32>) -> Result<Vec<f64>>) -> Result<Vec<f64>> {
    let lists = networks.iter().map(of).collect::<Result<Vec<_>>>()?;
    let length = lists.first().map_or(0, Vec::len);
    Ok((0..length).map(|i| lists.iter().map(|list| list[i]).sum::<f64>() / lists.len() as f64).collect())
}

fn write_csv(all: &Material<'_>, measured: &[Measured]) -> Result<()> {
    let rows = |names: Vec<String>, of: fn(&Measured) -> &[f64]| {
        let row = |m: &Measured, name: &String, value: f64| {
            vec![m.method.label().into(), name.clone(), cell(value)]
        };
        let rows =
            measured.iter().flat_map(|m| names.iter().zip(of(m)).map(move |(name, v)| row(m, name, *v)));
        rows.collect::<Vec<Vec<String>>>()
    };
    let sigmas = all.scale.sigmas.iter().map(f64::to_string).collect();
    all.folder.csv("robustness.csv", "method sigma psnr", rows(sigmas, |m| &m.psnr))?;
    all.folder.csv("jacobian.csv", "method image norm", rows(all.pictures.test_names(), |m| &m.norms))
}

fn chart(all: &Material<'_>, measured: &[Measured]) -> Chart {
    let norms = measured.iter().map(|Measured { method, norms, .. }| {
        let points = norms.iter().enumerate().map(|(i, norm)| (i as f64 + 1.0, *norm)).collect();
        Line { dots: true, ..Line::new(method.style(), points) }
    });
    let scores = measured.iter().map(|Measured { method, psnr, .. }| {
        Line::new(method.style(), all.scale.sigmas.iter().copied().zip(psnr.iter().copied()).collect())
    });
    let (image, norm) = (Axis::linear("test image"), Axis::linear("largest singular value"));
    let (sigma, psnr) = (Axis::linear("σ of the test noise"), Axis::linear("PSNR in dB"));
    Chart {
        title: "Robustness".into(),
        subtitle: format!("K = {}, trained for σ = {}", all.scale.deepest(), all.sigma),
        legend: measured.iter().map(|m| (m.method.label().to_string(), m.method.style())).collect(),
        panels: vec![
            Panel::new("Norm of the Jacobian", image, norm, norms.collect()),
            Panel::new("Other noise than that of the training", sigma, psnr, scores.collect()),
        ],
        columns: 2,
        frame: (400.0, 260.0),
        ..Chart::default()
    }
}
