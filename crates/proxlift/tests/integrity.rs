//! Damage to models and checkpoints is found, and files from before there were checksums are read.
#![allow(missing_docs)]

#[path = "help/unsealed.rs"]
mod unsealed;

use proxlift::lifting;
use proxlift::model::{Model, Provenance};
use proxlift::network::{Architecture, Network};
use proxlift::training::{Checkpoint, EpochRecord, Snapshot};
use std::collections::BTreeMap;
use std::sync::Arc;
use unsealed::unsealed;

fn network(knots: bool) -> Network<f32> {
    let architecture = Architecture { depth: 4, features: 3, kernel: 3, channels: 1 };
    let mut network = Network::glorot(architecture, 0.1, 1).unwrap();
    if knots {
        let learned = proxlift::prox::PiecewiseLinear::clip_with_knots(3, 3, 0.1);
        network.activation.fill(learned.into());
        network.border = 2;
    }
    network
}

fn model(knots: bool) -> Vec<u8> {
    let provenance = Provenance::from([("trainer".into(), "said \"checksum\":\"crc32:00000000\"".into())]);
    Model { network: network(knots), sigma: 0.1, noise: Default::default(), provenance }.to_bytes().unwrap()
}

fn checkpoint() -> Vec<u8> {
    let mut state = Snapshot::default();
    state.arrays.insert("mean_0".into(), Arc::new(vec![1.0, -0.0, 3.0]));
    state.scalars.insert("steps".into(), 7.0);
    let record = EpochRecord { epoch: 3, loss: 0.5, ..EpochRecord::default() };
    let notes = BTreeMap::from([("best".to_string(), 28.0)]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latest.safetensors");
    Checkpoint { network: network(true), state, record, notes, settings: "some".into() }.save(&path).unwrap();
    std::fs::read(path).unwrap()
}

/// Every bit of every byte, in turn.
fn no_flip_is_accepted(bytes: &[u8], read: impl Fn(&[u8]) -> bool) {
    assert!(read(bytes));
    let mut damaged = bytes.to_vec();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            damaged[at] ^= 1 << bit;
            assert!(!read(&damaged), "bit {bit} of byte {at}");
            damaged[at] ^= 1 << bit;
        }
    }
    println!("{} bits flipped", 8 * bytes.len());
}

#[test]
fn no_flipped_bit_of_a_model_is_accepted() {
    for knots in [false, true] {
        no_flip_is_accepted(&model(knots), |bytes| Model::from_bytes(bytes).is_ok());
    }
}

#[test]
fn no_flipped_bit_of_a_checkpoint_is_accepted() {
    no_flip_is_accepted(&checkpoint(), |bytes| Checkpoint::from_bytes(bytes).is_ok());
}

#[test]
fn no_flipped_bit_of_a_lifted_network_is_accepted() {
    let network = lifting::Network::from_denoiser(&network(true).cast::<f64>(), 6, 5).unwrap();
    let read = |bytes: &[u8]| lifting::Network::<f64>::from_bytes(bytes).is_ok();
    no_flip_is_accepted(&network.to_bytes().unwrap(), read);
}

/// The header of a file, to be changed, and the data behind it.
fn parts(bytes: &[u8]) -> (String, &[u8]) {
    let length = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    (String::from_utf8(bytes[8..8 + length].to_vec()).unwrap(), &bytes[8 + length..])
}

fn joined(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

#[test]
fn files_without_a_checksum_are_read() {
    let bytes = model(true);
    assert_eq!(Model::from_bytes(&unsealed(&bytes)).unwrap(), Model::from_bytes(&bytes).unwrap());
    let bytes = checkpoint();
    assert_eq!(Checkpoint::from_bytes(&unsealed(&bytes)).unwrap(), Checkpoint::from_bytes(&bytes).unwrap());
}

#[test]
fn names_that_stand_twice_or_mean_nothing_are_refused() {
    let bytes = unsealed(&model(true));
    let (header, data) = parts(&bytes);
    let refused = |header: String| Model::from_bytes(&joined(&header, data)).unwrap_err().to_string();
    let twice = refused(header.replacen(r#""border":"2""#, r#""border":"2","border":"1""#, 1));
    assert!(twice.contains("stands twice"), "{twice}");
    let odd = refused(header.replacen(r#""border""#, r#""borfer""#, 1));
    assert!(odd.contains("means nothing"), "{odd}");
}

#[test]
fn shapes_are_checked_not_only_numbers() {
    let bytes = unsealed(&model(true));
    let (header, data) = parts(&bytes);
    let other = header.replacen("[3,1,3,3]", "[1,3,3,3]", 1);
    assert_ne!(other, header);
    let refused = Model::from_bytes(&joined(&other, data)).unwrap_err().to_string();
    assert!(refused.contains("[1, 3, 3, 3]") && refused.contains("[3, 1, 3, 3]"), "{refused}");
}

#[test]
fn metadata_of_a_checkpoint_are_as_strict_as_those_of_a_model() {
    let bytes = unsealed(&checkpoint());
    let (header, data) = parts(&bytes);
    for border in ["9223372036854775807", "4294967296", "20000", "x", "-1"] {
        let header = header.replacen(r#""border":"2""#, &format!(r#""border":"{border}""#), 1);
        let refused = Checkpoint::from_bytes(&joined(&header, data)).unwrap_err().to_string();
        assert!(refused.contains("border"), "{refused}");
    }
    for (field, wrong) in [("bounded", "yes"), ("unrolling", "nothing"), ("step_scale", "-3")] {
        let start = header.find(&format!(r#""{field}":""#)).unwrap() + field.len() + 4;
        let end = start + header[start..].find(r#"","#).unwrap();
        let header = header[..start].to_string() + wrong + &header[end..];
        assert!(Checkpoint::from_bytes(&joined(&header, data)).is_err(), "{field}");
    }
}

/// A small file must not ask for much memory or work.
#[test]
fn networks_that_see_too_far_or_are_too_large_are_refused() {
    let far = Architecture { depth: 1000, features: 1, kernel: 31, channels: 1 };
    assert!(far.validate().unwrap_err().to_string().contains("pixels far"));
    let large = Architecture { depth: 60, features: 4096, kernel: 31, channels: 3 };
    assert!(large.validate().unwrap_err().to_string().contains("weights"));
    let mut wide =
        Network::<f32>::glorot(Architecture { depth: 100, features: 1, kernel: 7, channels: 1 }, 0.1, 1)
            .unwrap();
    wide.border = 129;
    assert!(wide.validate().unwrap_err().to_string().contains("at most 128"));
}
