//! Model files come back as they were, anything else in their place gets one sentence, and the built-in ones are read.

#[path = "help/unsealed.rs"]
mod unsealed;

use proxlift::image::Channels;
use proxlift::model::{BuiltIn, Model, Provenance};
use proxlift::network::{Architecture, Network};
use unsealed::unsealed;

fn model() -> Model {
    let architecture = Architecture { depth: 3, features: 4, kernel: 3, channels: 1 };
    let network = Network::glorot(architecture, 0.1, 7).unwrap();
    let provenance = Provenance::from([("seed".into(), "7".into())]);
    Model { network, sigma: 0.1, noise: Default::default(), provenance }
}

#[test]
fn a_model_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let network = Network { border: 3, step_scale: 6.5, bounded: true, ..model().network };
    for model in [model(), Model { network, ..model() }] {
        model.save(&path).unwrap();
        assert_eq!(Model::load(&path).unwrap(), model);
    }
}

#[test]
fn a_file_cut_at_any_byte_gets_an_error() {
    let bytes = model().to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(Model::from_bytes(&bytes[..length]).is_err(), "cut at {length}");
    }
}

#[test]
fn a_flipped_byte_never_panics() {
    let bytes = model().to_bytes().unwrap();
    for i in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[i] ^= flip;
            let _ = Model::from_bytes(&damaged);
        }
    }
}

/// Replaces `from` by `to`, of the same length, in the header.
fn edited(from: &str, to: &str) -> String {
    assert_eq!(from.len(), to.len());
    let mut bytes = unsealed(&model().to_bytes().unwrap());
    let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("text to replace");
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    Model::from_bytes(&bytes).unwrap_err().to_string()
}

#[test]
fn every_inconsistency_has_its_sentence() {
    for (from, to, sentence) in [
        ("\"proxlift\"", "\"something", "it is truncated or no safetensors file"),
        (":\"proxlift\"", ":\"proxlofd\"", "this is not a proxlift model"),
        (
            "\"version\":\"1\"",
            "\"version\":\"9\"",
            "format version 9, but this program reads up to 3: update",
        ),
        ("\"version\":\"1\"", "\"version\":\"x\"", "does not say its format version"),
        ("\\\"depth\\\":3", "\\\"depth\\\":4", "lacks the tensor theta_4"),
        (
            "\\\"depth\\\":3",
            "\\\"depth\\\":2",
            "the tensor tau has the shape [2], but the architecture needs [1]",
        ),
        ("\\\"depth\\\":3", "\\\"depth\\\":1", "the depth K is 1, but it must be between 2 and"),
        ("\\\"kernel\\\":3", "\\\"kernel\\\":4", "size is 4, but it must be odd"),
        (
            "\\\"features\\\":4",
            "\\\"features\\\":5",
            "theta_0 has the shape [4, 1, 3, 3], but the architecture needs [5, 1, 3, 3]",
        ),
        ("\"sigma\":\"0.1\"", "\"sigma\":\"-.1\"", "the model's sigma cannot be read"),
        ("\"sigma\":\"0.1\"", "\"sigma\":\"-10\"", "sigma is -10, but it must be a finite number, 0 or more"),
    ] {
        let told = edited(from, to);
        assert!(told.contains(sentence), "{from} -> {to}: {told}");
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    let mut bad = model();
    bad.network.theta[1].weights_mut()[0] = f32::NAN;
    assert!(bad.to_bytes().unwrap_err().to_string().contains("finite"));
}

#[test]
fn every_model_is_for_its_pictures_and_knows_its_noise() {
    for built_in in BuiltIn::ALL {
        assert_eq!(BuiltIn::named(built_in.name()), Some(built_in));
        for channels in [Channels::Grey, Channels::Rgb] {
            let model = built_in.model(channels);
            assert_eq!(model.network.architecture().colours(), channels.count());
            assert!(model.sigma > 0.0, "{built_in:?} {channels:?}");
            assert_eq!(Model::from_bytes(built_in.bytes(channels)).unwrap(), *model);
        }
    }
    assert_eq!(BuiltIn::named("huge"), None);
}
