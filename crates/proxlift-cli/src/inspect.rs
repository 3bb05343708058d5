//! `proxlift inspect`: what is inside a model.

use crate::choice::check_file;
use crate::filter_sheet;
use crate::output;
use proxlift::image::Channels;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::models::Embedded;
use proxlift::network::Model;
use proxlift::operator::convolution_norm_bound;
use proxlift::{Error, Result};
use rayon::prelude::*;
use safetensors::SafeTensors;
use serde_json::json;
use std::path::PathBuf;

/// Show a model: its sizes, steps, norms and origin, and a picture of its filters.
///
/// The norms ||L_k|| are proven bounds for pictures of every size. A layer with tau ||L||^2 below 2 expands no
/// difference between two inputs.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  proxlift inspect                                  lists the models built in
  proxlift inspect best --colour                    one of them
  proxlift inspect m.safetensors
  proxlift inspect m.safetensors --filters filters.png
  proxlift inspect m.safetensors --json | jq .lipschitz_bound")]
pub struct Arguments {
    /// A model's file, or the name of a model built in [default: list those]
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// The model built in for colour pictures, not the one for gray
    #[arg(long, requires = "model")]
    colour: bool,
    /// Draw the filters: a row for each layer, a tile for each filter; gray is 0, white the row's largest weight
    #[arg(long, value_name = "PNG", requires = "model")]
    filters: Option<PathBuf>,
    /// Replace the picture of the filters if there is one already
    #[arg(long)]
    overwrite: bool,
    /// Print one JSON object
    #[arg(long, requires = "model")]
    json: bool,
}

/// Frequencies along each axis at which norms are taken: within 0.12 % of the truth for 3x3 kernels.
const FREQUENCIES: usize = 128;

/// One row of the table.
#[derive(serde::Serialize)]
struct Row {
    k: usize,
    /// The proven bound of `||L_k||`.
    norm: f64,
    /// `tau_k`; the first and the last operator have none.
    tau: Option<f64>,
    /// `tau_k ||L_k||^2`.
    step: Option<f64>,
}

/// Reads the model, draws and prints.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Some(name) = &arguments.model else { return list() };
    let (model, version) = load(name, arguments.colour)?;
    let rows = rows(&model)?;
    if let Some(sheet) = &arguments.filters {
        if sheet.exists() && !arguments.overwrite {
            return Err(Error::file(sheet, "this file exists: give --overwrite to replace it").into());
        }
        io::write(sheet, &Picture::new(filter_sheet::draw(&model.network)?, Depth::Eight))?;
        output::note(format_args!("wrote {}", sheet.display()));
    }
    if arguments.json { print_json(&model, version, &rows) } else { print(&model, version, &rows) }
}

/// The models built in, a line each.
fn list() -> anyhow::Result<()> {
    output::line(format_args!(
        "{:<8} {:<9} {:>3} {:>3} {:>11}  trained for",
        "model", "pictures", "K", "J", "parameters"
    ))?;
    for built_in in Embedded::ALL {
        for (channels, pictures) in [(Channels::Gray, "gray"), (Channels::Rgb, "colour")] {
            let model = built_in.load(channels)?;
            let sizes = model.network.architecture();
            let (name, parameters, sigma) = (built_in.name(), sizes.parameters(), 255.0 * model.sigma);
            output::line(format_args!(
                "{name:<8} {pictures:<9} {:>3} {:>3} {parameters:>11}  sigma {sigma:.0}/255",
                sizes.depth, sizes.features
            ))?;
        }
    }
    Ok(())
}

/// A model with the format version that its file states.
fn load(name: &str, colour: bool) -> Result<(Model, u32)> {
    if let Some(built_in) = Embedded::named(name) {
        let channels = if colour { Channels::Rgb } else { Channels::Gray };
        return Ok((built_in.load(channels)?, version(built_in.bytes(channels))?));
    }
    let path = check_file(name)?;
    if colour {
        return Err(Error::file(path, "--colour is for the models built in: leave it out"));
    }
    let model = Model::load(path)?;
    let bytes = std::fs::read(path).map_err(Error::io(path))?;
    Ok((model, version(&bytes).map_err(|e| Error::file(path, e.to_string()))?))
}

fn version(bytes: &[u8]) -> Result<u32> {
    let header = SafeTensors::read_metadata(bytes).ok().and_then(|(_, header)| header.metadata().clone());
    let version = header.and_then(|metadata| metadata.get("version")?.parse().ok());
    version.ok_or_else(|| Error::invalid("the model does not say its format version"))
}

fn rows(model: &Model) -> Result<Vec<Row>> {
    let network = &model.network;
    let row = |k: usize| {
        let norm = convolution_norm_bound(&network.theta[k], FREQUENCIES)?.upper;
        let tau = (1..network.theta.len() - 1).contains(&k).then(|| f64::from(network.tau[k - 1]));
        Ok(Row { k, norm, tau, step: tau.map(|tau| tau * norm * norm) })
    };
    (0..network.theta.len()).into_par_iter().map(row).collect()
}

/// Whether every inner layer is non-expansive: `||I - tau L L*|| <= 1`.
fn is_non_expansive(rows: &[Row]) -> bool {
    rows.iter().filter_map(|row| row.step).all(|step| step <= 2.0)
}

/// A bound of the network's Lipschitz constant: with `rho_k = max(1, tau_k ||L_k||^2 - 1) >= ||I - tau_k L_k L_k*||`,
/// `Lip(u_k) <= rho_k Lip(u_{k-1}) + tau_k ||L_k||`, `Lip(u_0) = ||L_0||`, and `Lip(x^) <= 1 + ||L_K|| Lip(u_{K-1})`.
fn lipschitz_bound(rows: &[Row]) -> f64 {
    let [first, inner @ .., last] = rows else { return f64::INFINITY };
    let u = inner.iter().fold(first.norm, |u, row| match (row.tau, row.step) {
        (Some(tau), Some(step)) => u * (step - 1.0).max(1.0) + tau * row.norm,
        _ => u,
    });
    1.0 + last.norm * u
}

/// The least and the largest threshold.
fn thresholds(model: &Model) -> (f64, f64) {
    let lambda = model.network.activation.iter().flat_map(|s| s.knots()).map(|&l| f64::from(l));
    lambda.fold((f64::INFINITY, 0.0), |(least, most), l| (least.min(l), most.max(l)))
}

fn print_json(model: &Model, version: u32, rows: &[Row]) -> anyhow::Result<()> {
    let sizes = model.network.architecture();
    let (least, most) = thresholds(model);
    output::json(&json!({
        "format_version": version,
        "architecture": sizes,
        "parameters": sizes.parameters(),
        "receptive_field": 2 * sizes.receptive_radius() + 1,
        "multiply_adds_per_pixel": sizes.forward_flops() / 2,
        "sigma": model.sigma,
        "lambda": { "min": least, "max": most },
        "non_expansive_layers": is_non_expansive(rows),
        "lipschitz_bound": lipschitz_bound(rows),
        "layers": rows,
        "provenance": model.provenance,
    }))
}

fn print(model: &Model, version: u32, rows: &[Row]) -> anyhow::Result<()> {
    let sizes = model.network.architecture();
    let (least, most) = thresholds(model);
    let field = 2 * sizes.receptive_radius() + 1;
    let facts = [
        ("format", format!("proxlift model, version {version}")),
        (
            "network",
            format!(
                "K={} layers, J={} features, {k}x{k} kernels, {}",
                sizes.depth,
                sizes.features,
                if sizes.channels == 1 { "gray" } else { "RGB" },
                k = sizes.kernel
            ),
        ),
        ("parameters", format!("{} weights, {} thresholds", sizes.parameters(), sizes.features)),
        ("receptive field", format!("{field} x {field} pixels")),
        ("work", format!("{} multiply-adds a pixel", sizes.forward_flops() / 2)),
        ("trained for", format!("sigma {:.4} ({:.1}/255)", model.sigma, 255.0 * model.sigma)),
        ("lambda", if least == most { format!("{least:.4}") } else { format!("{least:.4} to {most:.4}") }),
        (
            "stability",
            format!(
                "{}; Lipschitz constant at most {:.2}",
                if is_non_expansive(rows) {
                    "every layer is non-expansive"
                } else {
                    "a layer has tau ||L||^2 above 2 and may expand"
                },
                lipschitz_bound(rows)
            ),
        ),
    ];
    for (name, fact) in facts {
        output::line(format_args!("{name:<16} {fact}"))?;
    }
    output::line(format_args!("\n{:>5} {:>10} {:>10} {:>12}", "layer", "||L||", "tau", "tau ||L||^2"))?;
    for row in rows {
        let number = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:.4}"));
        let (tau, step) = (number(row.tau), number(row.step));
        output::line(format_args!("{:>5} {:>10.4} {tau:>10} {step:>12}", row.k, row.norm))?;
    }
    if !model.provenance.is_empty() {
        output::line("\nprovenance")?;
    }
    for (name, value) in &model.provenance {
        output::line(format_args!("  {name:<14} {value}"))?;
    }
    Ok(())
}
