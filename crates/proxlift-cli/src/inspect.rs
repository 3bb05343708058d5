//! `proxlift inspect`: what is inside a model, and how much it amplifies.

use crate::files::check_free;
use crate::filter_sheet;
use crate::output;
use crate::sensitivity::jacobian_norms;
use crate::test_set::TestSet;
use proxlift::analysis::LipschitzBound;
use proxlift::image::Channels;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::image::noise::add_gaussian;
use proxlift::model::BuiltIn;
use proxlift::model::Model;
use proxlift::network::Architecture;
use proxlift::{Error, Result};
use safetensors::SafeTensors;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Show a model: its sizes, steps, norms and provenance, and a picture of its filters.
///
/// The norms ||L_k|| are proven upper bounds for pictures of any size. A plain layer with tau ||L||^2 of at most 2 never
/// increases the distance between two inputs.
///
/// Robustness is given in two ways. The Lipschitz bound is proven: whatever two pictures go in, their distance grows at
/// most by this factor. The Jacobian norm is measured: at a given picture, the factor by which the worst small change
/// is amplified. Shown are its median and maximum over pictures (centre crops of at most 96 x 96 pixels) with noise of
/// the level that the model was trained for.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  proxlift inspect                                lists the built-in models
  proxlift inspect best --colour                  shows one of them
  proxlift inspect m.safetensors
  proxlift inspect m.safetensors --data photos/   robustness on your pictures
  proxlift inspect m.safetensors --filter-sheet filters.png
  proxlift inspect m.safetensors --json | jq .jacobian_norm.max")]
pub struct Arguments {
    /// A model file, or the name of a built-in model [default: list the built-in ones]
    #[arg(value_name = "MODEL")]
    model: Option<String>,
    /// Show the built-in model for colour pictures instead of the one for grey
    #[arg(long, requires = "model")]
    colour: bool,
    /// A folder of clean pictures on which the Jacobian is measured [default: 12 built-in ones]
    #[arg(long, value_name = "DIR", requires = "model")]
    data: Option<PathBuf>,
    /// The seed of the noise on these pictures
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Draw the filters: one row per layer, one tile per filter; grey is 0, white the largest weight of the row
    #[arg(long, alias = "filters", value_name = "PNG", requires = "model")]
    filter_sheet: Option<PathBuf>,
    /// Replace the filter sheet if it exists
    #[arg(long)]
    overwrite: bool,
    /// Print one JSON object
    #[arg(long, requires = "model")]
    json: bool,
}

/// The pictures that the Jacobian is measured at: how many at most, and the side of their centre crops.
const MEASURED: (usize, usize) = (12, 96);
/// The least side, for networks however large.
const LEAST_SIDE: usize = 8;
/// What a forward pass over one of them may cost in floating-point operations: larger networks get smaller pictures.
const MOST_WORK: usize = 1 << 29;

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
    if let Some(sheet) = &arguments.filter_sheet {
        check_free(sheet, arguments.overwrite)?;
    }
    let (model, version) = load(name, arguments.colour)?;
    let facts = Facts {
        version,
        bound: LipschitzBound::of(&model.network)?,
        measured: Measured::at(&model, arguments.data.as_deref(), arguments.seed)?,
    };
    if let Some(sheet) = &arguments.filter_sheet {
        io::write(sheet, &Picture::new(filter_sheet::draw(&model.network)?, Depth::Eight))?;
        output::note(format_args!("wrote {}", sheet.display()));
    }
    if arguments.json { print_json(&model, &facts) } else { print(&model, &facts) }
}

/// What is found out about a model.
struct Facts {
    version: u32,
    bound: LipschitzBound,
    measured: Measured,
}

/// Norms of the Jacobian at pictures.
#[derive(serde::Serialize)]
struct Measured {
    median: f64,
    max: f64,
    images: usize,
    /// Pictures were cropped to this side.
    side: usize,
    sigma: f64,
    seed: u64,
    data: String,
}

impl Measured {
    fn at(model: &Model, folder: Option<&Path>, seed: u64) -> Result<Self> {
        let sizes = model.network.architecture();
        let channels = if sizes.channels == 1 { Channels::Grey } else { Channels::Rgb };
        let pictures = TestSet::load_at_most(folder, channels, MEASURED.0)?;
        let side = side(&sizes);
        let noisy = pictures
            .set
            .images()
            .iter()
            .enumerate()
            .map(|(i, image)| add_gaussian(&image.centre(side), model.sigma as f32, seed, i as u64));
        let mut norms = jacobian_norms(&model.network, &noisy.collect::<Result<Vec<_>>>()?)?;
        norms.sort_by(f64::total_cmp);
        let (middle, images) = (norms.len() / 2, norms.len());
        let median = if images % 2 == 1 { norms[middle] } else { (norms[middle - 1] + norms[middle]) / 2.0 };
        let max = norms[images - 1];
        Ok(Self { median, max, images, side, sigma: model.sigma, seed, data: pictures.described() })
    }
}

/// The side of the pictures that a network is measured at.
fn side(sizes: &Architecture) -> usize {
    let affordable = (MOST_WORK / sizes.forward_flops().max(1)).isqrt();
    affordable.clamp(LEAST_SIDE, MEASURED.1)
}

/// The built-in models, a line each.
fn list() -> anyhow::Result<()> {
    output::line(format_args!(
        "{:<8} {:<9} {:>3} {:>3} {:>11}  trained for",
        "model", "pictures", "K", "J", "parameters"
    ))?;
    for built_in in BuiltIn::ALL {
        for (channels, pictures) in [(Channels::Grey, "grey"), (Channels::Rgb, "colour")] {
            let model = built_in.model(channels);
            let sizes = model.network.architecture();
            let (name, parameters, sigma) =
                (built_in.name(), model.network.parameters(), 255.0 * model.sigma);
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
    let channels = if colour { Channels::Rgb } else { Channels::Grey };
    if colour && BuiltIn::named(name).is_none() {
        return Err(Error::file(name, "--colour is for built-in models: leave it out"));
    }
    let model = Model::open(name, channels)?;
    let version = match BuiltIn::named(name) {
        Some(built_in) => version(built_in.bytes(channels)),
        None => version(&std::fs::read(name).map_err(Error::io(name))?),
    };
    Ok((model, version.map_err(|e| Error::file(name, e.to_string()))?))
}

fn version(bytes: &[u8]) -> Result<u32> {
    let header = SafeTensors::read_metadata(bytes).ok().and_then(|(_, header)| header.metadata().clone());
    let version = header.and_then(|metadata| metadata.get("version")?.parse().ok());
    version.ok_or_else(|| Error::invalid("the model does not say its format version"))
}

fn rows(model: &Model, bound: &LipschitzBound) -> Vec<Row> {
    let inner = |k: usize| k.checked_sub(1).filter(|&i| i < model.network.tau.len());
    let row = |(k, &norm): (usize, &f64)| Row {
        k,
        norm,
        tau: inner(k).map(|i| f64::from(model.network.tau[i])),
        step: inner(k).map(|i| bound.steps[i]),
    };
    bound.norms.iter().enumerate().map(row).collect()
}

/// The largest slope of an activation.
fn steepest(model: &Model) -> f64 {
    let slopes = model.network.activation.iter().map(|s| f64::from(s.steepest()));
    slopes.fold(0.0, f64::max)
}

/// The least and the largest threshold.
fn thresholds(model: &Model) -> (f64, f64) {
    let lambda = model
        .network
        .activation
        .iter()
        .filter_map(|s| s.piecewise())
        .flat_map(|s| s.knots())
        .map(|&l| f64::from(l));
    lambda.fold((f64::INFINITY, 0.0), |(least, most), l| (least.min(l), most.max(l)))
}

fn print_json(model: &Model, facts: &Facts) -> anyhow::Result<()> {
    let sizes = model.network.architecture();
    let (least, most) = thresholds(model);
    output::json(&json!({
        "format_version": facts.version,
        "architecture": sizes,
        "parameters": model.network.parameters(),
        "unrolling": model.network.unrolling,
        "bounded": model.network.bounded,
        "border": model.network.border,
        "step_scale": model.network.step_scale,
        "knots": model.network.pieces(),
        "steepest_activation": steepest(model),
        "receptive_field": 2 * sizes.receptive_radius() + 1,
        "multiply_adds_per_pixel": sizes.forward_flops() / 2,
        "sigma": model.sigma,
        "lambda": { "min": least, "max": most },
        "non_expansive_layers": model.network.is_plain() && facts.bound.layers_are_non_expansive(),
        "lipschitz_bound": facts.bound.bound,
        "jacobian_norm": facts.measured,
        "layers": rows(model, &facts.bound),
        "provenance": model.provenance,
    }))
}

fn print(model: &Model, facts: &Facts) -> anyhow::Result<()> {
    let Facts { version, bound, measured } = facts;
    let sizes = model.network.architecture();
    let (least, most) = thresholds(model);
    let field = 2 * sizes.receptive_radius() + 1;
    let facts = [
        ("format", format!("proxlift model, version {version}")),
        ("network", model.network.to_string()),
        ("parameters", model.network.parameters().to_string()),
        ("receptive field", format!("{field} x {field} pixels")),
        ("work", format!("{} multiply-adds per pixel", sizes.forward_flops() / 2)),
        ("trained for", format!("sigma {:.4} ({:.1}/255)", model.sigma, 255.0 * model.sigma)),
        (
            "thresholds",
            if least == most { format!("{least:.4}") } else { format!("{least:.4} to {most:.4}") },
        ),
        ("activations", format!("proxes: slopes from 0 to {:.3}", steepest(model))),
        (
            "layers",
            if !model.network.is_plain() {
                "with momentum: whether the network expands does not follow from single layers".into()
            } else if bound.layers_are_non_expansive() {
                "all non-expansive: tau ||L||^2 is at most 2".into()
            } else {
                "at least one has tau ||L||^2 above 2 and may expand".into()
            },
        ),
        ("Lipschitz bound", format!("{}, proven for pictures of any size", factor(bound.bound))),
        (
            "Jacobian norm",
            format!(
                "median {:.3}, maximum {:.3}, measured at {} noisy pictures of {side} x {side} pixels ({})",
                measured.median,
                measured.max,
                measured.images,
                measured.data,
                side = measured.side
            ),
        ),
    ];
    for (name, fact) in facts {
        output::line(format_args!("{name:<16} {fact}"))?;
    }
    output::line(format_args!("\n{:>5} {:>10} {:>10} {:>12}", "layer", "||L||", "tau", "tau ||L||^2"))?;
    for row in rows(model, bound) {
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

/// A factor that may be huge, short enough to read.
fn factor(value: f64) -> String {
    if value < 1e5 { format!("{value:.2}") } else { format!("{value:.1e}") }
}
