//! What an ONNX file of a model holds; `python/tests/test_onnx.py` holds what it computes to what the engine does.

use super::OPSET;
use super::proto::{Dimension, FLOAT, GraphProto, INT64, ModelProto, TensorProto, ValueInfoProto};
use crate::image::Channels;
use crate::model::{BuiltIn, Model, Provenance};
use crate::named::Named;
use crate::network::{Activation, Architecture, Network, Unrolling};
use crate::prox::{
    BoxClip, GroupL2, Identity, L2Ball, PiecewiseLinear, Relu, Sigmoid, Simplex, SoftThreshold, Softmax,
};
use prost::Message;
use std::collections::HashSet;

const SIZES: Architecture = Architecture { depth: 4, features: 6, kernel: 3, channels: 1 };

fn model(activation: Activation<f32>, sigma: f64) -> Model {
    let mut network = Network::glorot(SIZES, 0.1, 7).unwrap();
    network.activation.fill(activation);
    let provenance = Provenance::from([("seed".into(), "7".into())]);
    Model { network, sigma, noise: Default::default(), provenance }
}

fn clip() -> Activation<f32> {
    Activation::clip(vec![0.1; SIZES.features])
}

fn learned() -> Activation<f32> {
    let slopes = [1.0, 0.5, 0.25].repeat(SIZES.features);
    PiecewiseLinear::new(2, [0.0, 0.2].repeat(SIZES.features), slopes).unwrap().into()
}

fn decoded(model: &Model) -> ModelProto {
    ModelProto::decode(&model.to_onnx().unwrap()[..]).unwrap()
}

fn graph(model: &Model) -> GraphProto {
    decoded(model).graph.unwrap()
}

fn count(graph: &GraphProto, operator: &str) -> usize {
    graph.node.iter().filter(|node| node.op_type == operator).count()
}

fn shape(value: &ValueInfoProto) -> (&str, Vec<String>) {
    let tensor = value.r#type.as_ref().unwrap().tensor_type.as_ref().unwrap();
    assert_eq!(tensor.elem_type, FLOAT);
    let sizes = tensor.shape.as_ref().unwrap().dim.iter().map(|dim| match dim.value.as_ref().unwrap() {
        Dimension::DimValue(count) => count.to_string(),
        Dimension::DimParam(name) => name.clone(),
    });
    (&value.name, sizes.collect())
}

fn tensor<'a>(graph: &'a GraphProto, name: &str) -> &'a TensorProto {
    graph.initializer.iter().find(|tensor| tensor.name == name).unwrap_or_else(|| panic!("no tensor {name}"))
}

fn floats(tensor: &TensorProto) -> Vec<f32> {
    tensor.raw_data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Every value is made once, before it is used, and is used; every constant has as many bytes as its shape needs.
fn check(graph: &GraphProto, what: &str) {
    let (mut known, mut used) = (HashSet::new(), HashSet::new());
    let make = |known: &mut HashSet<String>, name: &str| {
        let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        assert!(
            letters && !name.starts_with(|c: char| c.is_ascii_digit()),
            "{what}: {name} is no identifier"
        );
        assert!(known.insert(name.to_string()), "{what}: {name} is made twice");
    };
    for input in &graph.input {
        make(&mut known, &input.name);
    }
    for tensor in &graph.initializer {
        make(&mut known, &tensor.name);
        assert!(tensor.data_type == FLOAT || tensor.data_type == INT64);
        let size = if tensor.data_type == FLOAT { 4 } else { 8 };
        let numbers: i64 = tensor.dims.iter().product();
        assert_eq!(tensor.raw_data.len() as i64, size * numbers, "{what}: {}", tensor.name);
    }
    for node in &graph.node {
        for input in &node.input {
            assert!(known.contains(input), "{what}: {} uses {input}, which is not there yet", node.name);
            used.insert(input.clone());
        }
        make(&mut known, &node.output[0]);
    }
    used.extend(graph.output.iter().map(|output| output.name.clone()));
    let idle: Vec<_> = known.difference(&used).collect();
    assert!(idle.is_empty(), "{what}: {idle:?} is not used");
}

#[test]
fn the_file_says_what_it_is() {
    let model = model(clip(), 0.1);
    // The field numbers of onnx.proto: 1 is the version of the format, 2 the producer, 3 its version.
    let bytes = model.to_onnx().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let head =
        [&[0x08, 10, 0x12, 8][..], b"proxlift", &[0x1a, version.len() as u8], version.as_bytes()].concat();
    assert_eq!(bytes[..head.len()], head);
    let file = decoded(&model);
    assert_eq!((file.opset_import.len(), file.opset_import[0].version), (1, OPSET));
    assert_eq!(file.opset_import[0].domain.as_deref(), Some(""));
    assert!(file.doc_string.contains("K=4, J=6, 3x3 kernels, grey"), "{}", file.doc_string);
    let says = |key: &str, value: &str| file.metadata_props.iter().any(|p| p.key == key && p.value == value);
    assert!(says("sigma", "0.1") && says("unrolling", "dual-forward-backward"));
    assert!(says("provenance", r#"{"seed":"7"}"#));
    assert_eq!(bytes, model.to_onnx().unwrap(), "the same model gives the same bytes");
}

#[test]
fn inputs_and_outputs_have_their_shapes() {
    let images = |channels: &str| ["N", channels, "H", "W"].map(String::from).to_vec();
    let known = graph(&model(clip(), 0.1));
    let inputs: Vec<_> = known.input.iter().map(shape).collect();
    assert_eq!(inputs, [("image", images("1")), ("sigma", vec!["N".to_string()])]);
    assert_eq!(known.output.iter().map(shape).collect::<Vec<_>>(), [("denoised", images("1"))]);
    let unknown = graph(&Model { sigma: 0.0, ..BuiltIn::Small.model(Channels::Rgb).clone() });
    assert_eq!(unknown.input.iter().map(shape).collect::<Vec<_>>(), [("image", images("3"))]);
    assert_eq!(unknown.output.iter().map(shape).collect::<Vec<_>>(), [("denoised", images("3"))]);
}

#[test]
fn every_graph_is_well_formed() {
    for built_in in BuiltIn::ALL {
        for channels in [Channels::Grey, Channels::Rgb] {
            if built_in.model(channels).network.redescends() {
                continue;
            }
            check(&graph(built_in.model(channels)), built_in.name());
        }
    }
    let thresholds = vec![0.1, 0.2, 0.3, 0.1, 0.2, 0.3];
    let mut scaled = Activation::from(Softmax::new(SIZES.features).unwrap());
    scaled.scale(0.3);
    let activations: [Activation<f32>; 13] = [
        clip(),
        Activation::clip(thresholds.clone()),
        learned(),
        BoxClip::interval(vec![-0.1], vec![0.2]).unwrap().into(),
        SoftThreshold::new(thresholds).unwrap().into(),
        L2Ball::new(SIZES.features, 2, vec![0.1, 0.0, 0.2]).unwrap().into(),
        GroupL2::new(SIZES.features, 3, vec![0.1]).unwrap().into(),
        Relu.into(),
        Simplex::new(SIZES.features).unwrap().into(),
        Softmax::new(SIZES.features).unwrap().into(),
        scaled,
        Sigmoid::default().into(),
        Identity.into(),
    ];
    for activation in activations {
        for &unrolling in Unrolling::ALL {
            for (bounded, border, sigma) in [(false, 0, 0.0), (true, 0, 0.0), (true, 5, 0.1), (false, 5, 0.1)]
            {
                let mut model = model(activation.clone(), sigma);
                model.network = Network { unrolling, bounded, border, ..model.network };
                check(&graph(&model), &format!("{unrolling} {bounded} {border} {sigma} {activation:?}"));
            }
        }
    }
}

#[test]
fn weights_are_there_once_and_to_the_bit() {
    let model = BuiltIn::Best.model(Channels::Rgb);
    let graph = graph(model);
    let Architecture { depth, features, kernel, channels } = model.network.architecture();
    for (k, theta) in model.network.theta.iter().enumerate() {
        let stored = tensor(&graph, &format!("theta_{k}"));
        assert_eq!(stored.dims, [features, channels, kernel, kernel].map(|n| n as i64));
        assert_eq!(floats(stored), theta.weights());
    }
    // Each inner layer has its convolution and two of its activation; each layer one adjoint.
    assert_eq!(count(&graph, "Conv"), depth + 2 * (depth - 1));
    assert_eq!(count(&graph, "ConvTranspose"), depth);
}

#[test]
fn simple_networks_have_few_nodes() {
    // K convolutions, K adjoints, K differences, K-1 steps of length tau, sums and clips; and what names the output.
    let plain = graph(&model(clip(), 0.0));
    assert_eq!(plain.node.len(), 3 * SIZES.depth + 3 * (SIZES.depth - 1) + 1);
    assert_eq!(count(&plain, "Clip"), SIZES.depth - 1);
    // With a level: four nodes before the network, and after it three, the last of which names the output, and seven that
    // limit the change.
    assert_eq!(graph(&model(clip(), 0.1)).node.len(), plain.node.len() - 1 + 4 + 3 + 7);
    assert_eq!(count(&plain, "Gather") + count(&plain, "Slice"), 0);
}

#[test]
fn a_knot_at_zero_has_no_infinite_inverse() {
    let graph = graph(&model(learned(), 0.1));
    assert_eq!(floats(tensor(&graph, "inverse_knots_1"))[..2], [0.0, 5.0]);
    // (1 - 0.5) * 0 and (0.5 - 0.25) * 0.2.
    assert_eq!(floats(tensor(&graph, "heights_1"))[..2], [0.0, 0.25 * 0.2]);
    assert_eq!(floats(tensor(&graph, "last_slopes_1")), [0.25; SIZES.features]);
}

#[test]
fn models_that_are_not_valid_are_refused() {
    let told = |change: &dyn Fn(&mut Model)| {
        let mut model = model(clip(), 0.1);
        change(&mut model);
        model.to_onnx().unwrap_err().to_string()
    };
    assert!(told(&|m| m.network.theta[1].weights_mut()[0] = f32::NAN).contains("not a finite number"));
    assert!(told(&|m| m.sigma = -1.0).contains("sigma is -1"));
    assert!(told(&|m| m.sigma = 1e-60).contains("1e-60 is not a number of 32 bits"));
}
