//! `proxlift export`: a model for other programs.

use crate::files::{self, check_extension, check_free};
use crate::output;
use proxlift::model::{BuiltIn, Model, OPSET};
use proxlift::{Error, Result, image::Channels};
use std::path::PathBuf;

/// Write a model as an ONNX file, which other programs run without proxlift.
///
/// The file does all that `proxlift denoise --sigma` does: it mirrors the picture at its edges, adapts the network to
/// the noise level, and leaves a picture whose level is 0 as it is. Its inputs are `image`, float32 [N, C, H, W] where
/// white is 1, of any size, and `sigma`, float32 [N], the noise level of each image; its output is `denoised`, of the
/// shape of `image` and not clipped. A model that does not know its own noise level has no input `sigma`.
#[derive(clap::Args)]
#[command(after_help = include_str!("help/export.txt").trim_end())]
pub struct Arguments {
    /// The file to write; its name ends with .onnx
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// `best`, `small`, `photo` or `convex` (built in), or a file written by `proxlift train`
    #[arg(long, value_name = "NAME|FILE", default_value = "best")]
    model: String,
    /// The channels of the pictures: 1 for grey, 3 for RGB [default: those of a model file; 3 for photo, else 1]
    #[arg(long, value_name = "C", value_parser = ["1", "3"])]
    channels: Option<String>,
    /// Replace the file if it exists
    #[arg(long)]
    overwrite: bool,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let path = &arguments.file;
    check_extension(path, &["onnx"])?;
    check_free(path, arguments.overwrite)?;
    let asked = arguments.channels.as_ref().and_then(|count| Channels::from_count(count.parse().ok()?));
    let model = load(&arguments.model, asked)?;
    let bytes = model.to_onnx()?;
    files::write(path, &bytes)?;
    let (network, size) = (&model.network, bytes.len().div_ceil(1000));
    let images = format!("float32 [N, {}, H, W]", network.architecture().colours());
    output::line(format_args!("wrote {}: ONNX, opset {OPSET}, {size} KB", path.display()))?;
    output::line(format_args!("network with {network}; {} parameters", network.parameters()))?;
    output::line(format_args!("input image, {images}, white is 1"))?;
    if model.sigma > 0.0 {
        output::line("input sigma, float32 [N], the noise level of each image")?;
    }
    output::line(format_args!("output denoised, {images}"))
}

fn load(name: &str, asked: Option<Channels>) -> Result<Model> {
    let built_in = BuiltIn::named(name);
    if built_in == Some(BuiltIn::Photo) && asked == Some(Channels::Grey) {
        return Err(Error::invalid("the model photo is for colour: leave --channels out, or export best"));
    }
    let usual = if built_in == Some(BuiltIn::Photo) { Channels::Rgb } else { Channels::Grey };
    let model = Model::open(name, asked.unwrap_or(usual))?;
    let channels = model.network.architecture().colours();
    match asked {
        Some(asked) if asked.count() != channels => {
            let kind = if channels == 1 { "grey" } else { "RGB" };
            Err(Error::file(
                name,
                format!("this model is for {kind} pictures: leave --channels {} out", asked.count()),
            ))
        }
        _ => Ok(model),
    }
}
