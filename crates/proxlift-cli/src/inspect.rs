//! `proxlift inspect`: what is inside a model, and how much it amplifies.

use crate::{files::check_free, output, sensitivity::jacobian_norms, test_set::images};
use proxlift::analysis::{LipschitzBound, filter_sheet, potential_sheet};
use proxlift::fixed_point::FixedPoint;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::image::noise::add_gaussian;
use proxlift::model::{BuiltIn, Model};
use proxlift::{Error, Result, image::Channels, network::Architecture, storage};
use safetensors::SafeTensors;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Show a model: its sizes, steps, norms and provenance, and a picture of its filters.
///
/// The norms ||L_k|| are proven upper bounds for pictures of any size. A plain layer with tau ||L||^2 of at most 2 never
/// increases the distance between two inputs.
///
/// Robustness is given in two ways. The Lipschitz bound is proven: whatever two pictures go in, their distance grows at
/// most by this factor; networks trained with --lipschitz have a small one, and those with `--lipschitz 1` are firmly non-expansive. The
/// Jacobian norm is measured: at a given picture, the factor by which the worst small change
/// is amplified. Shown are its median and maximum over pictures (centre crops of at most 96 x 96 pixels) with noise of
/// the level that the model was trained for.
#[derive(clap::Args)]
#[command(after_help = include_str!("help/inspect.txt").trim_end())]
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
    /// Draw the potentials of a convex network: each filter, and below it its potential for responses of up to eight times
    /// those to noise
    #[arg(long, value_name = "PNG", requires = "model")]
    potential_sheet: Option<PathBuf>,
    /// Replace sheets that exist
    #[arg(long)]
    overwrite: bool,
    /// Print one JSON object
    #[arg(long, requires = "model")]
    json: bool,
}

/// The pictures that the Jacobian is measured at: how many at most, and the side of their centre crops.
const MEASURED: (usize, usize) = (12, 96);
/// Operations that take as long as to keep a number, and to find it again.
const KEPT: usize = 40;
/// The least side, for networks however large.
const LEAST_SIDE: usize = 8;
/// What a forward pass over one of them may cost in floating-point operations, unless the model is built in: larger networks get
/// smaller pictures.
const MOST_WORK: usize = 1 << 29;
/// What one pass over all of them may cost: fewer are measured then, and at last none. Seconds in all.
const MOST_WORK_IN_ALL: usize = 1 << 31;
/// What the Lipschitz bound may cost: the networks of strangers may be large.
const MOST_OPERATIONS: f64 = 1e10;
/// The side of the picture at whose edges the norm of a mirrored operator is looked for.
const EDGE: usize = 64;
const TOO_LARGE: &str = "left out: the network is too large for that to take seconds";

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Some(name) = &arguments.model else { return list() };
    for sheet in arguments.filter_sheet.iter().chain(&arguments.potential_sheet) {
        check_free(sheet, arguments.overwrite)?;
    }
    let (model, version) = load(name, arguments.colour)?;
    let bound = LipschitzBound::within(&model.network, MOST_OPERATIONS)?;
    let known = BuiltIn::named(name).is_some();
    let measured = match model.network.redescends() {
        // Its layers are not run one after another.
        true => None,
        false => Measured::at(&model, known, arguments.data.as_deref(), arguments.seed)?,
    };
    if let Some(sheet) = &arguments.filter_sheet {
        io::write(sheet, &Picture::new(filter_sheet(&model.network)?, Depth::Eight))?;
        output::note(format_args!("wrote {}", sheet.display()));
    }
    if let Some(sheet) = &arguments.potential_sheet {
        let drawn = potential_sheet(&model.network, model.sigma)
            .map_err(|error| Error::invalid(format!("--potential-sheet: {error}")))?;
        io::write(sheet, &Picture::new(drawn, Depth::Eight))?;
        output::note(format_args!("wrote {}", sheet.display()));
    }
    let facts = Facts { model, version, bound, measured };
    if arguments.json { facts.print_json() } else { facts.print() }
}

/// The next multiple of 0.01, where rounding to it would be below what is proven.
fn up(bound: f64) -> f64 {
    (100.0 * bound - 1e-9).ceil() / 100.0
}

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
    /// None where even one small picture would take too long. A model that is known takes the time that it needs.
    fn at(model: &Model, known: bool, folder: Option<&Path>, seed: u64) -> Result<Option<Self>> {
        let (sizes, sigma) = (model.network.architecture(), model.sigma);
        let channels = if sizes.colours() == 1 { Channels::Grey } else { Channels::Rgb };
        // A feature of a layer, which is kept, costs as much as some operations.
        let work = sizes.forward_flops() + KEPT * sizes.depth * sizes.features;
        let most = |work: usize| if known { usize::MAX } else { work };
        let side = (most(MOST_WORK) / work.max(1)).isqrt().clamp(LEAST_SIDE, MEASURED.1);
        // Around small pictures the zeros that a kernel reads count too.
        let work = work * (side + sizes.kernel - 1).pow(2);
        let count = MEASURED.0.min(most(MOST_WORK_IN_ALL) / work.max(1));
        if count == 0 {
            return Ok(None);
        }
        let pictures = images(folder, channels, count)?;
        let noisy = pictures.images().iter().enumerate();
        let noisy = noisy.map(|(i, image)| add_gaussian(&image.centre(side), sigma as f32, seed, i as u64));
        let mut norms = jacobian_norms(&model.network, &noisy.collect::<Result<Vec<_>>>()?)?;
        norms.sort_by(f64::total_cmp);
        let (middle, images) = (norms.len() / 2, norms.len());
        let median = if images % 2 == 1 { norms[middle] } else { (norms[middle - 1] + norms[middle]) / 2.0 };
        let max = norms[images - 1];
        let data = folder.map_or("built-in".into(), |folder| folder.display().to_string());
        Ok(Some(Self { median, max, images, side, sigma, seed, data }))
    }
}

fn list() -> anyhow::Result<()> {
    output::line("model         pictures    K   J  parameters  trained for")?;
    for built_in in BuiltIn::ALL {
        for (channels, pictures) in [(Channels::Grey, "grey"), (Channels::Rgb, "colour")] {
            let Model { network, sigma, .. } = built_in.model(channels);
            let Architecture { depth, features, .. } = network.architecture();
            let (name, parameters, sigma) = (built_in.name(), network.distinct_parameters(), 255.0 * sigma);
            output::line(format_args!(
                "{name:<13} {pictures:<9} {depth:>3} {features:>3} {parameters:>11}  sigma {sigma:.0}/255"
            ))?;
        }
    }
    Ok(())
}

fn load(name: &str, colour: bool) -> Result<(Model, u32)> {
    let channels = if colour { Channels::Rgb } else { Channels::Grey };
    let built_in = BuiltIn::named(name);
    if colour && built_in.is_none() {
        return Err(Error::file(name, "--colour is for built-in models: leave it out"));
    }
    let model = Model::open(name, channels)?;
    let version = match built_in {
        Some(built_in) => version(built_in.bytes(channels)),
        None => version(&storage::read(name, 1 << 30, "a model")?),
    };
    let version = version.ok_or_else(|| Error::file(name, "the model does not say its format version"))?;
    Ok((model, version))
}

fn version(bytes: &[u8]) -> Option<u32> {
    let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
    header.metadata().as_ref()?.get("version")?.parse().ok()
}

#[derive(serde::Serialize)]
struct Layer {
    k: usize,
    /// The proven bound of `||L_k||`.
    norm: f64,
    /// The same of its synthesis, where it has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    synthesis_norm: Option<f64>,
    /// `tau_k`, and `tau_k ||L_k||^2`, or `tau_k ||L_k|| ||M_k||`; the first and the last operator have none.
    tau: Option<f64>,
    step: Option<f64>,
}

struct Facts {
    model: Model,
    version: u32,
    /// None where the network is too large.
    bound: Option<LipschitzBound>,
    measured: Option<Measured>,
}

impl Facts {
    fn layers(&self) -> Vec<Layer> {
        let tau = &self.model.network.tau;
        let Some(LipschitzBound { norms, of_synthesis, steps, .. }) = &self.bound else { return Vec::new() };
        let layer = |(k, &norm): (usize, &f64)| {
            let inner = k.checked_sub(1).filter(|&i| i < tau.len());
            let synthesis_norm = inner.and_then(|i| of_synthesis.get(i).copied());
            let (tau, step) = (inner.map(|i| f64::from(tau[i])), inner.map(|i| steps[i]));
            Layer { k, norm, synthesis_norm, tau, step }
        };
        norms.iter().enumerate().map(layer).collect()
    }

    /// Whether the network is the proximity operator of a convex function when it is run to its limit: one operator with its
    /// adjoint in all layers, and activations that are proxes.
    fn is_prox_at_limit(&self) -> bool {
        FixedPoint::of(&self.model.network).is_ok_and(|limit| limit.activation.piecewise().is_some())
            && self.steepest() <= 1.0
            && !self.model.network.redescends()
    }

    /// The modulus of weak convexity of the function whose proximity operator it is at its limit, where that is not convex.
    fn weak_convexity(&self) -> Option<f64> {
        let network = Some(&self.model.network).filter(|network| network.redescends())?;
        let engine = proxlift::engine::standard();
        let limit = FixedPoint::of(network).ok()?;
        Some(limit.regulariser(&*engine, (EDGE, EDGE)).ok()?.weak_convexity())
    }

    /// The least and the largest slope of its activations.
    fn slopes(&self) -> (f64, f64) {
        let functions = self.model.network.activation.iter().filter_map(|s| s.piecewise());
        let slopes = functions.map(|s| (f64::from(s.flattest()), f64::from(s.steepest())));
        slopes.fold((0.0, 0.0), |(least, most), (a, b)| (a.min(least), b.max(most)))
    }

    fn steepest(&self) -> f64 {
        self.model.network.activation.iter().map(|s| f64::from(s.steepest())).fold(0.0, f64::max)
    }

    fn thresholds(&self) -> (f64, f64) {
        let clips = self.model.network.activation.iter().filter_map(|s| s.piecewise());
        let lambda = clips.flat_map(|s| s.knots()).map(|&l| f64::from(l));
        lambda.fold((f64::INFINITY, 0.0), |(least, most), l| (least.min(l), most.max(l)))
    }

    fn print_json(&self) -> anyhow::Result<()> {
        let (Model { network, sigma, noise, provenance }, bound) = (&self.model, &self.bound);
        let sizes = network.architecture();
        let (least, most) = self.thresholds();
        output::json(&json!({
            "format_version": self.version,
            "architecture": sizes,
            "parameters": network.distinct_parameters(),
            "unrolling": network.unrolling,
            "bounded": network.bounded,
            "border": network.border,
            "step_scale": network.step_scale,
            "own_synthesis": !network.synthesis.is_empty(),
            "knots": network.pieces(),
            "steepest_activation": self.steepest(),
            "receptive_field": 2 * sizes.receptive_radius() + 1,
            "multiply_adds_per_pixel": sizes.forward_flops() / 2,
            "sigma": sigma,
            "noise": noise,
            "lambda": { "min": least, "max": most },
            "non_expansive_layers": bound.as_ref().map(|b| network.is_plain() && b.layers_are_non_expansive()),
            "lipschitz_bound": bound.as_ref().map(|b| b.bound),
            "firmly_non_expansive": bound.as_ref().map(|b| b.firmly_non_expansive),
            "proximity_operator_at_limit": self.is_prox_at_limit(),
            "weak_convexity_at_limit": self.weak_convexity(),
            "jacobian_norm": self.measured,
            "layers": self.layers(),
            "provenance": provenance,
        }))
    }

    fn print(&self) -> anyhow::Result<()> {
        let (Model { network, sigma, noise, provenance }, bound) = (&self.model, &self.bound);
        let sizes = network.architecture();
        let field = 2 * sizes.receptive_radius() + 1;
        let (least, most) = self.thresholds();
        let thresholds =
            if least == most { format!("{least:.4}") } else { format!("{least:.4} to {most:.4}") };
        let layers = match (network.is_plain(), bound.as_ref().map(LipschitzBound::layers_are_non_expansive))
        {
            (false, _) if !network.synthesis.is_empty() => {
                "with a synthesis of their own: whether the network expands does not follow from single layers"
            }
            (false, _) if bound.as_ref().is_some_and(|bound| bound.firmly_non_expansive) => {
                "one operator in all, and an average of what they give"
            }
            (false, _) => "with momentum: whether the network expands does not follow from single layers",
            (_, Some(true)) => "all non-expansive: tau ||L||^2 is at most 2",
            (_, Some(false)) => "at least one has tau ||L||^2 above 2 and may expand",
            (_, None) => TOO_LARGE,
        };
        let factor = bound.as_ref().map_or(
            TOO_LARGE.into(),
            |LipschitzBound { bound, firmly_non_expansive, .. }| {
                // It may be huge.
                let factor = if *bound < 1e5 { format!("{:.2}", up(*bound)) } else { format!("{bound:.1e}") };
                let firmly = if *firmly_non_expansive { ": firmly non-expansive" } else { "" };
                format!("{factor}, proven for pictures of any size{firmly}")
            },
        );
        let norms = self.measured.as_ref().map_or(TOO_LARGE.into(), |measured| {
            let Measured { median, max, images, side, data, .. } = measured;
            format!(
                "median {median:.3}, maximum {max:.3}, measured at {images} noisy pictures of {side} x {side} pixels \
                 ({data})"
            )
        });
        let convex =
            "the proximity operator of a convex function, so firmly non-expansive: proven, for --tolerance";
        let weak = |rho: f64| {
            format!(
                "the proximity operator of a weakly convex function, modulus {:.2}, so differences grow at most by {:.1}: \
                 proven, for --tolerance",
                up(rho),
                1.0 / (1.0 - rho)
            )
        };
        let limit = self.is_prox_at_limit().then(|| convex.into()).or(self.weak_convexity().map(weak));
        let limit = limit.map(|fact| ("limit", fact));
        let activations = match self.slopes() {
            (least, most) if network.redescends() => {
                format!("slopes from {least:.3} to {most:.3}: no proxes")
            }
            _ => format!("proxes: slopes from 0 to {:.3}", self.steepest()),
        };
        let facts = [
            ("format", format!("proxlift model, version {}", self.version)),
            ("network", network.to_string()),
            ("parameters", network.distinct_parameters().to_string()),
            ("receptive field", format!("{field} x {field} pixels")),
            ("work", format!("{} multiply-adds per pixel", sizes.forward_flops() / 2)),
            ("trained for", format!("{noise} noise, sigma {sigma:.4} ({:.1}/255)", 255.0 * sigma)),
            ("thresholds", thresholds),
            ("activations", activations),
        ];
        let of_layers = [("layers", layers.into()), ("Lipschitz bound", factor), ("Jacobian norm", norms)];
        let of_layers = of_layers.into_iter().filter(|_| !network.redescends());
        for (name, fact) in facts.into_iter().chain(of_layers).chain(limit) {
            output::line(format_args!("{name:<16} {fact}"))?;
        }
        if bound.is_some() {
            output::line(match network.synthesis.is_empty() {
                true => "\nlayer      ||L||        tau  tau ||L||^2",
                false => "\nlayer      ||L||      ||M||        tau  tau ||L|| ||M||",
            })?;
        }
        for Layer { k, norm, synthesis_norm, tau, step } in self.layers() {
            let [synthesis_norm, tau, step] =
                [synthesis_norm, tau, step].map(|value| value.map_or("-".into(), |v| format!("{v:.4}")));
            output::line(match network.synthesis.is_empty() {
                true => format!("{k:>5} {norm:>10.4} {tau:>10} {step:>12}"),
                false => format!("{k:>5} {norm:>10.4} {synthesis_norm:>10} {tau:>10} {step:>15}"),
            })?;
        }
        if !provenance.is_empty() {
            output::line("\nprovenance")?;
        }
        provenance.iter().try_for_each(|(name, value)| output::line(format_args!("  {name:<14} {value}")))
    }
}
