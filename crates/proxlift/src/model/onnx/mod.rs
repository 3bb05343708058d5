//! Models for other programs: ONNX.
//!
//! | | name | type and shape | |
//! |---|---|---|---|
//! | input | `image` | float32 `[N, C, H, W]` | noisy, white is 1 |
//! | input | `sigma` | float32 `[N]` | the noise level of each image; absent if the model does not know its own |
//! | output | `denoised` | float32 `[N, C, H, W]` | not clipped |
//!
//! The graph does all that [`Denoiser`](crate::Denoiser) does for a given level: it mirrors the border, adapts the network
//! to the level, and leaves an image whose level is 0 as it is. The network `G` for the level `sigma_0` becomes the one for
//! `sigma = s sigma_0` as `z -> s G(z / s)`, so that its thresholds are constants. Below `sigma_0` the change of a pixel is
//! limited, as it is in [`Denoiser`](crate::Denoiser).

mod activation;
mod graph;
mod layers;
mod mirror;
mod proto;

use super::{MOST_CHANGE, Model};
use crate::{Result, image::noise::check_sigma};
use graph::Graph;
use prost::Message;
use proto::{
    Dimension, DimensionProto, FLOAT, ModelProto, OperatorSetIdProto, StringStringEntryProto,
    TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};

/// The version of ONNX's operators that models are written in: of 2024, so that programs of today know it.
pub const OPSET: i64 = 21;

/// The version of the file format that came with it.
const IR_VERSION: i64 = 10;

/// Contrasts, knots and norms below this are as good as zero, and their inverses are more than numbers of 32 bits can hold.
const LEAST: f32 = 1e-30;

const IMAGE: &str = "image";
const SIGMA: &str = "sigma";
const DENOISED: &str = "denoised";

impl Model {
    /// The bytes of an ONNX file: inputs `image`, float32 `[N, C, H, W]` where white is 1, and, if the model's own level
    /// is known, `sigma`, float32 `[N]`, the noise level of each image; output `denoised`, of the shape of `image`.
    /// Fails when the model is not valid, or too large for the format.
    ///
    /// ```
    /// use proxlift::{image::Channels, model::BuiltIn};
    /// let bytes = BuiltIn::Small.model(Channels::Rgb).to_onnx()?;
    /// assert!(bytes.len() < 400_000);
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    pub fn to_onnx(&self) -> Result<Vec<u8>> {
        self.network.validate()?;
        refuse!(self.network.redescends() =>
            "this network is run to its fixed point, until it is near enough, which an ONNX file does not do");
        check_sigma(self.sigma)?;
        let sigma = self.sigma as f32;
        refuse!(self.sigma > 0.0 && !sigma.is_normal() =>
            "the model's noise level {:e} is not a number of 32 bits", self.sigma);
        let model = onnx(self, sigma);
        refuse!(model.encoded_len() > i32::MAX as usize =>
            "the model takes {} bytes, but an ONNX file holds at most {}", model.encoded_len(), i32::MAX);
        Ok(model.encode_to_vec())
    }
}

fn onnx(model: &Model, sigma: f32) -> ModelProto {
    let network = &model.network;
    let mut graph = Graph::default();
    let level = (sigma > 0.0).then(|| Level::read(&mut graph, sigma));
    let z = level.as_ref().map_or(IMAGE.to_string(), |level| level.normalise(&mut graph));
    let sides = mirror::Sides { border: network.border, stride: network.architecture().stride() };
    let z = sides.pad(&mut graph, &z);
    let white = network.bounded.then(|| match &level {
        Some(level) => level.white(&mut graph),
        None => graph.number("white", 1.0),
    });
    let x = layers::unroll(&mut graph, network, &z, white.as_deref());
    let x = sides.crop(&mut graph, &x, IMAGE);
    match level {
        Some(level) => level.restore(&mut graph, &x),
        None => drop(graph.node("Identity", &[&x], DENOISED)),
    }
    let mut graph = graph.0;
    let shape =
        [Size::Named("N"), Size::Known(network.architecture().colours()), Size::Named("H"), Size::Named("W")];
    graph.name = "proxlift".into();
    graph.input.push(value(IMAGE, &shape, "noisy images, white is 1"));
    if sigma > 0.0 {
        graph.input.push(value(SIGMA, &shape[..1], "the noise level of each image, where white is 1"));
    }
    graph.output.push(value(DENOISED, &shape, "the images without noise, not clipped"));
    let about = format!("A denoiser of proxlift for {} noise: network with {network}.", model.noise);
    ModelProto {
        ir_version: IR_VERSION,
        producer_name: "proxlift".into(),
        producer_version: env!("CARGO_PKG_VERSION").into(),
        doc_string: about,
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: OPSET }],
        metadata_props: metadata(model),
    }
}

fn metadata(model: &Model) -> Vec<StringStringEntryProto> {
    let entry = |(key, value): (&str, String)| StringStringEntryProto { key: key.into(), value };
    let entries = [
        ("sigma", model.sigma.to_string()),
        ("noise", model.noise.to_string()),
        ("unrolling", model.network.unrolling.to_string()),
        ("bounded", model.network.bounded.to_string()),
        ("border", model.network.border.to_string()),
        ("provenance", serde_json::json!(model.provenance).to_string()),
    ];
    entries.map(entry).into()
}

/// The nodes that follow the noise level: `level`, that of each image, and `s`, both `[N, 1, 1, 1]`.
struct Level {
    level: String,
    s: String,
    /// The level of the training.
    trained: String,
}

impl Level {
    fn read(graph: &mut Graph, trained: f32) -> Self {
        let axes = graph.integers("level_axes", &[1, 2, 3]);
        let level = graph.node("Unsqueeze", &[SIGMA, &axes], "level");
        let trained = graph.number("trained_sigma", trained);
        let ratio = graph.node("Div", &[&level, &trained], "ratio");
        // An image without noise must not become infinite on the way, although it is not used in the end.
        let least = graph.number("least_s", LEAST);
        let s = graph.node("Max", &[&ratio, &least], "s");
        Self { level, s, trained }
    }

    /// The image at the contrast at which its noise has the level of the training.
    fn normalise(&self, graph: &mut Graph) -> String {
        graph.node("Div", &[IMAGE, &self.s], "normalised")
    }

    /// White at that contrast.
    fn white(&self, graph: &mut Graph) -> String {
        graph.node("Reciprocal", &[&self.s], "white")
    }

    fn restore(&self, graph: &mut Graph, x: &str) {
        let x = graph.node("Mul", &[x, &self.s], "restored");
        // Below the level of the training, no pixel changes by more than so many times the level.
        let times = graph.number("most_change", MOST_CHANGE as f32);
        let most = graph.node("Mul", &[&self.level, &times], "most");
        let low = graph.node("Sub", &[IMAGE, &most], "lowest");
        let high = graph.node("Add", &[IMAGE, &most], "highest");
        let above = graph.node("Max", &[&x, &low], "above");
        let limited = graph.node("Min", &[&above, &high], "limited");
        let lower = graph.node("Less", &[&self.level, &self.trained], "lower");
        let x = graph.node("Where", &[&lower, &limited, &x], "estimate");
        let zero = graph.number("zero", 0.0);
        let noisy = graph.node("Greater", &[&self.level, &zero], "noisy");
        graph.node("Where", &[&noisy, &x, IMAGE], DENOISED);
    }
}

#[derive(Clone, Copy)]
enum Size {
    Known(usize),
    Named(&'static str),
}

fn value(name: &str, shape: &[Size], about: &str) -> ValueInfoProto {
    let dim = shape.iter().map(|size| match *size {
        Size::Known(count) => DimensionProto { value: Some(Dimension::DimValue(count as i64)) },
        Size::Named(name) => DimensionProto { value: Some(Dimension::DimParam(name.into())) },
    });
    let shape = Some(TensorShapeProto { dim: dim.collect() });
    let tensor_type = Some(TensorTypeProto { elem_type: FLOAT, shape });
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type }), doc_string: about.into() }
}

#[cfg(test)]
#[path = "../../../tests/unit/onnx.rs"]
mod tests;
