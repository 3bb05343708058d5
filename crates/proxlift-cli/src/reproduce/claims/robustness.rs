//! How much of a small change comes through, and what happens when the noise is not that of the training.

use super::super::figure2::style;
use super::super::folder::cell;
use super::super::html::{figure, table};
use super::super::plan::Method;
use super::super::sections::Material;
use super::{Claim, all_or_some, slug};
use crate::chart::{Axis, Chart, Line, Panel, Scale};
use crate::sensitivity::jacobian_norms;
use crate::train::data::centre;
use proxlift::Denoiser;
use proxlift::Result;
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::Image;
use proxlift::network::Network;
use serde_json::json;

/// By how much LB-FB's norm may exceed SGD's, and its PSNR fall behind (dB), to count as no less robust.
const NORM_ROOM: f64 = 1.05;
const PSNR_ROOM: f64 = 0.05;

/// What was measured of one method: means over seeds.
struct Measured {
    method: Method,
    /// The largest singular value of the Jacobian at each test image.
    norms: Vec<f64>,
    /// Mean PSNR on the test images for each noise level.
    psnr: Vec<f64>,
}

/// What was measured of all methods.
pub struct Robustness {
    measured: Vec<Measured>,
    svg: String,
}

impl Robustness {
    /// Measures, draws, and writes what is behind the figure.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn measure(all: &Material<'_>) -> Result<Self> {
        let scale = all.scale;
        let mut measured = Vec::new();
        for method in Method::ALL {
            let models = all.results.models(method, scale.deepest())?;
            if models.is_empty() {
                continue;
            }
            let networks: Vec<Network<f32>> = models.into_iter().map(|model| model.network).collect();
            let norms = mean_over(&networks, |network| norms(all, network))?;
            let psnr = mean_over(&networks, |network| {
                scale.sigmas.iter().map(|&sigma| score(all, network, sigma)).collect()
            })?;
            measured.push(Measured { method, norms, psnr });
        }
        write_csv(all, &measured)?;
        let svg = draw(all, &measured);
        all.folder.figure("robustness.svg", svg.as_bytes())?;
        Ok(Self { measured, svg })
    }

    /// A form of LB-FB against SGD.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn no_less_than_sgd(&self, all: &Material<'_>, method: Method) -> Result<Claim> {
        let (scale, Self { measured, svg }) = (all.scale, self);
        let find = |method| measured.iter().find(|m| m.method == method);
        let tests = match find(method).zip(find(Method::SgdWide)) {
            Some((lb, sgd)) => vec![
                mean(&lb.norms) <= NORM_ROOM * mean(&sgd.norms),
                lb.psnr.iter().zip(&sgd.psnr).all(|(lb, sgd)| *lb >= sgd - PSNR_ROOM),
            ],
            None => Vec::new(),
        };
        let rows: Vec<Vec<String>> = measured
            .iter()
            .map(|m| {
                let largest = m.norms.iter().copied().fold(0.0, f64::max);
                let first =
                    [m.method.label().to_string(), format!("{:.2}", mean(&m.norms)), format!("{largest:.2}")];
                first.into_iter().chain(m.psnr.iter().map(|psnr| format!("{psnr:.2}"))).collect()
            })
            .collect();
        let sigmas: Vec<String> = scale.sigmas.iter().map(|sigma| format!("σ = {sigma}")).collect();
        let head = ["trainer", "‖J‖, mean", "‖J‖, largest"];
        let head: Vec<&str> = head.into_iter().chain(sigmas.iter().map(String::as_str)).collect();
        let caption = format!(
            "Left: the largest singular value ‖J‖ of the network's Jacobian at each test image with its noise (crops of {0} x \
         {0} pixels), by power iteration; a small change of the image is amplified by at most this factor. Right: PSNR \
         when the test noise is not that of the training, networks as they are. The table has \
         both, PSNR in dB.",
            scale.jacobian_side
        );
        Ok(Claim {
            id: format!("robustness-{}", slug(method)),
            statement: format!("Networks trained by {} are no less robust than those by SGD", method.label()),
            rule: format!(
                "Not measured in the paper. It holds if the mean norm of LB-FB's Jacobians is at most {NORM_ROOM} times \
             SGD's, and its PSNR is nowhere more than {PSNR_ROOM} dB behind SGD's when the noise changes; mixed if one of \
             both does. K = {}.",
                scale.deepest()
            ),
            verdict: all_or_some(&tests),
            evidence: figure(svg, &caption, &["robustness.csv", "jacobian.csv", "robustness.svg"])
                + &table(&head, &rows),
            numbers: json!(
            measured
                .iter()
                .map(
                    |m| json!({"method": m.method, "norms": m.norms, "sigmas": scale.sigmas, "psnr": m.psnr})
                )
                .collect::<Vec<_>>()
        ),
        })
    }
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

/// The norm of the Jacobian at every noisy test image.
fn norms(all: &Material<'_>, network: &Network<f32>) -> Result<Vec<f64>> {
    let sigma = all.sigma();
    let crops = all.pictures.noisy(sigma)?;
    let crops =
        crops.iter().map(|image| centre(image, all.scale.jacobian_side)).collect::<Result<Vec<Image>>>()?;
    jacobian_norms(network, &crops)
}

/// Mean PSNR on the test images with noise of level `sigma`.
fn score(all: &Material<'_>, network: &Network<f32>, sigma: f64) -> Result<f64> {
    let noisy = all.pictures.noisy(sigma)?;
    let estimates = Denoiser::from(network.clone()).denoise_all(&noisy)?;
    let scores = all.pictures.test.images().iter().zip(&estimates).map(|(x, e)| psnr(x, e, Peak::ONE));
    Ok(mean(&scores.collect::<Result<Vec<_>>>()?))
}

fn write_csv(all: &Material<'_>, measured: &[Measured]) -> Result<()> {
    let rows: Vec<Vec<String>> = measured
        .iter()
        .flat_map(|m| {
            let pairs = all.scale.sigmas.iter().zip(&m.psnr);
            pairs.map(|(s, p)| vec![m.method.label().to_string(), s.to_string(), cell(Some(*p))])
        })
        .collect();
    all.folder.csv("robustness.csv", &["method", "sigma", "psnr"], &rows)?;
    let names = all.pictures.test_names();
    let rows: Vec<Vec<String>> = measured
        .iter()
        .flat_map(|m| {
            let pairs = names.iter().zip(&m.norms);
            pairs.map(|(n, v)| vec![m.method.label().to_string(), n.clone(), cell(Some(*v))])
        })
        .collect();
    all.folder.csv("jacobian.csv", &["method", "image", "norm"], &rows)
}

fn draw(all: &Material<'_>, measured: &[Measured]) -> String {
    let norms = measured.iter().map(|m| Line {
        dots: true,
        ..Line::new(style(m.method), m.norms.iter().enumerate().map(|(i, v)| (i as f64 + 1.0, *v)).collect())
    });
    let scores = measured.iter().map(|m| {
        let points = all.scale.sigmas.iter().copied().zip(m.psnr.iter().copied());
        Line::new(style(m.method), points.collect())
    });
    let chart = Chart {
        title: "Robustness".into(),
        subtitle: format!("K = {}, trained for σ = {}", all.scale.deepest(), all.sigma()),
        caution: all.scale.caution(),
        legend: measured.iter().map(|m| (m.method.label().to_string(), style(m.method))).collect(),
        panels: vec![
            Panel {
                title: "Norm of the Jacobian".into(),
                x: Axis::new("test image", Scale::Linear),
                y: Axis::new("largest singular value", Scale::Linear),
                lines: norms.collect(),
                level: None,
            },
            Panel {
                title: "Other noise than that of the training".into(),
                x: Axis::new("σ of the test noise", Scale::Linear),
                y: Axis::new("PSNR in dB", Scale::Linear),
                lines: scores.collect(),
                level: None,
            },
        ],
        columns: 2,
        frame: (400.0, 260.0),
    };
    chart.draw()
}
