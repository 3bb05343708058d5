//! Checkpoints come back to the bit, and anything else in their place gets one sentence.

#[path = "help/unsealed.rs"]
mod unsealed;

use proxlift::model::{Model, Provenance};
use proxlift::network::{Architecture, Network};
use proxlift::training::Checkpoint;
use proxlift::training::{EpochRecord, Snapshot};
use std::collections::BTreeMap;
use unsealed::unsealed;

fn checkpoint() -> Checkpoint {
    let architecture = Architecture { depth: 3, features: 4, kernel: 3, channels: 1 };
    let mut state = Snapshot::default();
    state.put("mean_0", &[1.5, -0.0, f32::MIN_POSITIVE / 4.0, f32::INFINITY]);
    state.put("u_0", &[]);
    state.put_scalar("steps", 0.1 + 0.2);
    state.put_scalar("gamma", f64::NEG_INFINITY);
    let record = EpochRecord { epoch: 7, loss: 1.0 / 3.0, energy: Some(1e-300), ..EpochRecord::default() };
    let record = EpochRecord { blocks: vec![0.1, 0.0, 1e9], energy_steps: 5, energy_rises: 2, ..record };
    Checkpoint {
        network: Network::glorot(architecture, 0.1, 7).unwrap(),
        state,
        record,
        notes: BTreeMap::from([("best".to_string(), 28.123_456_789)]),
        settings: "an \"odd\" name\n".into(),
    }
}

fn written() -> (tempfile::TempDir, std::path::PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    checkpoint().save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    (folder, path, bytes)
}

#[test]
fn a_checkpoint_comes_back_to_the_bit_and_replaces_the_one_before() {
    let (folder, path, bytes) = written();
    let back = Checkpoint::load(&path).unwrap();
    assert_eq!(back, checkpoint());
    assert!(back.state.arrays["mean_0"][1].is_sign_negative());
    back.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "the same checkpoint has the same bytes");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    back.save_keeping_previous(&path).unwrap();
    assert_eq!(Checkpoint::load(Checkpoint::previous(&path)).unwrap(), back, "the one before is kept");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_checkpoint_cut_at_any_byte_gets_an_error() {
    let (_folder, path, bytes) = written();
    for length in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let sentence = Checkpoint::load(&path).unwrap_err().to_string();
        assert!(sentence.contains("not a checkpoint"), "{sentence}");
    }
}

#[test]
fn a_flipped_byte_never_panics() {
    let (_folder, path, bytes) = written();
    for i in (0..bytes.len()).step_by(3) {
        let mut damaged = bytes.clone();
        damaged[i] ^= 0x11;
        std::fs::write(&path, &damaged).unwrap();
        let _ = Checkpoint::load(&path);
    }
}

#[test]
fn every_inconsistency_has_its_sentence() {
    let (_folder, path, bytes) = written();
    let bytes = unsealed(&bytes);
    let edited = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).expect("text to replace");
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        std::fs::write(&path, &bytes).unwrap();
        Checkpoint::load(&path).unwrap_err().to_string()
    };
    assert!(edited("\"proxlift checkpoint\"", "\"proxlift checkpaint\"").contains("not a checkpoint"));
    assert!(edited("\"version\":\"1\"", "\"version\":\"9\"").contains("update proxlift"));
    assert!(edited("\\\"depth\\\":3", "\\\"depth\\\":4").contains("theta_4"));
    assert!(edited("\\\"features\\\":4", "\\\"features\\\":8").contains("theta_0"));
    assert!(edited("record/epoch", "record/epach").contains("epoch"));
    assert!(edited("note/best", "nose/best").contains("no part"));
    assert!(edited("\"border\":\"0\"", "\"border\":\"x\"").contains("border cannot be read"));
    assert!(edited("\"border\":\"0\"", "\"border\":\"9\"").contains("sees no further than 6"));
}

#[test]
fn a_model_is_no_checkpoint() {
    let (_folder, path, _) = written();
    let model = Model {
        network: checkpoint().network,
        sigma: 0.1,
        noise: Default::default(),
        provenance: Provenance::new(),
    };
    model.save(&path).unwrap();
    assert!(Checkpoint::load(&path).unwrap_err().to_string().contains("not a checkpoint of proxlift"));
    assert!(Checkpoint::load(path.join("none")).is_err());
}

#[test]
fn a_model_has_the_same_bytes_whenever_it_is_written() {
    let model = || Model {
        network: checkpoint().network,
        sigma: 0.1,
        noise: Default::default(),
        provenance: (0..9).map(|i| (format!("name {i}"), format!("\"value\" {i}"))).collect(),
    };
    let bytes = model().to_bytes().unwrap();
    assert!((0..20).all(|_| model().to_bytes().unwrap() == bytes));
}
