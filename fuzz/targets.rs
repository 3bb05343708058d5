//! What hostile bytes are fed to. `fuzz_targets/` gives each to libFuzzer, `crates/proxlift/tests/mutations.rs` to plain
//! mutations of files that the program wrote. A target returns, whatever the bytes.

#[path = "../crates/proxlift/tests/help/unsealed.rs"]
mod unsealed;

use proxlift::Denoiser;
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::io::{self, Depth, Format, Limits, Picture};
use proxlift::image::{Channels, noise::add_gaussian};
use proxlift::model::{Model, Provenance};
use proxlift::network::{Architecture, Network};
use proxlift::training::{Checkpoint, Config, EpochRecord, Settings, Snapshot};
use std::sync::Arc;
use unsealed::unsealed;

/// A target: its name, what it does with bytes, and files to start from.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All of them.
pub const ALL: [Target; 10] = [
    Target { name: "png", run: image, seeds: || pictures(Format::Png) },
    Target { name: "jpeg", run: image, seeds: || pictures(Format::Jpeg) },
    Target { name: "tiff", run: image, seeds: || pictures(Format::Tiff) },
    Target { name: "webp", run: image, seeds: || pictures(Format::WebP) },
    Target { name: "pnm", run: image, seeds: || pictures(Format::Pnm) },
    Target { name: "bmp", run: image, seeds: || pictures(Format::Bmp) },
    Target { name: "fits", run: image, seeds: || pictures(Format::Fits) },
    Target { name: "model", run: model, seeds: models },
    Target { name: "checkpoint", run: checkpoint, seeds: checkpoints },
    Target { name: "config", run: config, seeds: configs },
];

/// The target of a name.
pub fn named(name: &str) -> Option<&'static Target> {
    static TARGETS: [Target; 10] = ALL;
    TARGETS.iter().find(|target| target.name == name)
}

/// Reads a picture, and writes it again if it is one.
pub fn image(bytes: &[u8]) {
    let limits = Limits { max_pixels: 1 << 20, max_bytes: 1 << 26 };
    let Ok(picture) = io::decode(bytes, &limits) else { return };
    assert!(picture.image.data().iter().all(|v| v.is_finite()));
    for format in [Format::Png, Format::Tiff] {
        let _ = io::encode(&picture, format);
    }
}

/// Reads a model, and denoises a few pixels with it if it is one and does not take long.
pub fn model(bytes: &[u8]) {
    let Ok(model) = Model::from_bytes(bytes) else { return };
    let architecture = model.network.architecture();
    let again = model.to_bytes().and_then(|bytes| Model::from_bytes(&bytes));
    assert_eq!(again.expect("what was read can be written"), model);
    let kind = Channels::from_count(architecture.channels).expect("networks are grey or RGB");
    if architecture.forward_flops() < 1 << 20 && model.network.border < 32 {
        let noisy = dead_leaves(1, 0, 9, 11, kind).expect("a picture can be painted");
        let _ = Denoiser::from(model).denoise(&noisy);
    }
}

/// Reads a checkpoint.
pub fn checkpoint(bytes: &[u8]) {
    let _ = Checkpoint::from_bytes(bytes);
}

/// Reads settings, and resolves them to a training, which is not started.
pub fn config(bytes: &[u8]) {
    let Ok(map) = serde_json::from_slice(bytes) else { return };
    let Ok(mut settings) = Settings::from_map(map) else { return };
    // Files of this machine are none of the fuzzer's business.
    settings.from = None;
    if let Ok(config) = Config::resolve(&settings) {
        let _ = config.memory(1000);
        assert_eq!(config.fingerprint().len(), 16);
    }
}

fn pictures(format: Format) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for (kind, depth) in [
        (Channels::Grey, Depth::Eight),
        (Channels::Rgb, Depth::Eight),
        (Channels::Grey, Depth::Sixteen),
        (Channels::Rgb, Depth::Float),
    ] {
        let clean = dead_leaves(1, 0, 17, 13, kind).expect("a picture can be painted");
        let noisy = add_gaussian(&clean, 0.1, 1, 0).expect("noise can be added");
        let pixels = noisy.pixels();
        let plain = Picture::new(noisy, depth);
        let mut told = Picture { alpha: Some(vec![0.5; pixels]), ..plain.clone() };
        told.metadata.icc = Some(vec![7; 200]);
        told.metadata.exif =
            Some(b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".to_vec());
        told.metadata.settings = Some("proxlift".into());
        files.extend([plain, told].iter().filter_map(|picture| io::encode(picture, format).ok()));
    }
    files
}

fn small() -> Network<f32> {
    let architecture = Architecture { depth: 3, features: 2, kernel: 3, channels: 1 };
    Network::glorot(architecture, 0.1, 1).expect("these sizes make a network")
}

fn models() -> Vec<Vec<u8>> {
    let plain =
        Model { network: small(), sigma: 0.1, noise: Default::default(), provenance: Provenance::new() };
    let mut learned = plain.clone();
    let knots = proxlift::prox::PiecewiseLinear::clip_with_knots(2, 3, 0.1);
    learned.network.activation.fill(knots.into());
    learned.network.border = 2;
    let sealed = [plain, learned].map(|model| model.to_bytes().expect("a valid model"));
    // Without their checksum they are read, so that what is behind it sees damage too.
    sealed.iter().flat_map(|bytes| [bytes.clone(), unsealed(bytes)]).collect()
}

fn checkpoints() -> Vec<Vec<u8>> {
    let mut state = Snapshot::default();
    state.arrays.insert("mean_0".into(), Arc::new(vec![1.0, 2.0]));
    state.scalars.insert("steps".into(), 7.0);
    let record = EpochRecord { epoch: 3, loss: 0.5, ..EpochRecord::default() };
    let checkpoint =
        Checkpoint { network: small(), state, record, notes: Default::default(), settings: "a".into() };
    let bytes = checkpoint.to_bytes().expect("it goes to memory");
    vec![unsealed(&bytes), bytes]
}

fn configs() -> Vec<Vec<u8>> {
    let resolved = Config::resolve(&Settings::default()).expect("nothing given is a training");
    let few = br#"{"epochs": 2, "depth": 4, "sigma": 0.1, "rate": 0.001, "knots": 4, "border": 2}"#.to_vec();
    vec![serde_json::Value::Object(resolved.settings.to_map()).to_string().into_bytes(), few]
}
