//! What hostile bytes are fed to. `fuzz_targets/` gives each to libFuzzer, `crates/proxlift/tests/mutations.rs` to plain
//! mutations of files that the program wrote. A target returns, whatever the bytes.

#[path = "mutate.rs"]
pub mod mutate;
#[path = "../crates/proxlift/tests/help/unsealed.rs"]
mod unsealed;

use mutate::Target;
use proxlift::Denoiser;
use proxlift::dataset::{Labelled, PatchNoise, synthetic::dead_leaves};
use proxlift::image::io::{self, Depth, Format, Limits, Picture, Raster};
use proxlift::image::{Channels, noise::add_gaussian};
use proxlift::lifting::{self, Affine, Convolutional, Dense, DualStep, Loss, Synthesis};
use proxlift::model::{Model, Provenance};
use proxlift::network::{Activation, Architecture, Network, Unrolling};
use proxlift::prox::{BoxClip, Relu, SoftThreshold, Softmax};
use proxlift::training::{Checkpoint, Config, EpochRecord, Settings, Snapshot};
use std::sync::Arc;
use unsealed::unsealed;

/// All of them. Those that take longest get the smallest shares.
pub const ALL: [Target; 12] = [
    Target { name: "png", share: 10, run: image, seeds: || pictures(Format::Png) },
    Target { name: "jpeg", share: 8, run: image, seeds: jpegs },
    Target { name: "tiff", share: 10, run: image, seeds: tiffs },
    Target { name: "webp", share: 10, run: image, seeds: webps },
    Target { name: "pnm", share: 10, run: image, seeds: pnms },
    Target { name: "bmp", share: 10, run: image, seeds: || pictures(Format::Bmp) },
    Target { name: "fits", share: 10, run: image, seeds: fits },
    Target { name: "model", share: 10, run: model, seeds: models },
    Target { name: "checkpoint", share: 10, run: checkpoint, seeds: checkpoints },
    Target { name: "lifting", share: 10, run: lifting, seeds: liftings },
    Target { name: "idx", share: 10, run: idx, seeds: idxs },
    Target { name: "config", share: 6, run: config, seeds: configs },
];

/// The target of a name.
pub fn named(name: &str) -> Option<&'static Target> {
    static TARGETS: [Target; ALL.len()] = ALL;
    TARGETS.iter().find(|target| target.name == name)
}

/// Reads a picture, and writes it again if it is one.
pub fn image(bytes: &[u8]) {
    let limits = Limits { max_pixels: 1 << 20, max_bytes: 1 << 26 };
    let Ok(picture) = io::decode(bytes, &limits) else { return };
    assert!(picture.image.data().iter().all(|v| v.is_finite()));
    // Now and then in a format that takes longer.
    let format = [Format::Tiff, Format::Png, Format::Fits, Format::Jpeg][bytes.len() % 32 / 2 % 7 % 4];
    let _ = io::encode(&picture, format);
}

/// Reads a model, and denoises a few pixels with it if it is one and does not take long.
pub fn model(bytes: &[u8]) {
    let Ok(model) = Model::from_bytes(bytes) else { return };
    let architecture = model.network.architecture();
    let again = model.to_bytes().and_then(|bytes| Model::from_bytes(&bytes));
    assert_eq!(again.expect("what was read can be written"), model);
    let kind = Channels::from_count(architecture.colours()).expect("networks are grey or RGB");
    if architecture.parameters() < 1 << 10 {
        let _ = model.to_onnx();
    }
    if architecture.forward_flops() < 1 << 20 && model.network.border < 32 {
        let noisy = dead_leaves(1, 0, 9, 11, kind).expect("a picture can be painted");
        let _ = Denoiser::from(model).denoise(&noisy);
    }
}

/// Reads a checkpoint, and writes it again if it is one.
pub fn checkpoint(bytes: &[u8]) {
    let Ok(checkpoint) = Checkpoint::from_bytes(bytes) else { return };
    assert!(checkpoint.network.validate().is_ok() && checkpoint.to_bytes().is_ok());
}

/// Reads a network of any layers, and applies it if it is one and does not take long.
pub fn lifting(bytes: &[u8]) {
    let Ok(network) = lifting::Network::<f32>::from_bytes(bytes) else { return };
    let again = network.to_bytes().and_then(|bytes| lifting::Network::<f32>::from_bytes(&bytes));
    assert_eq!(again.expect("what was read can be written").parameters(), network.parameters());
    let widest = network.layers().iter().map(|layer| layer.inputs().max(layer.outputs())).max();
    if network.parameters() < 1 << 12 && widest.is_some_and(|widest| widest < 1 << 12) {
        network.forward(&lifting::Rows::zeros(1, network.layers()[0].inputs()));
    }
}

/// Reads labelled pictures: the first byte says whether the files are packed, the next two how long the first is.
pub fn idx(bytes: &[u8]) {
    let [packed, high, low, rest @ ..] = bytes else { return };
    let (pictures, labels) = rest.split_at(rest.len().min(u16::from_be_bytes([*high, *low]).into()));
    let _ = Labelled::from_idx_bytes(pictures, labels, packed & 1 == 1);
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
        let clean = dead_leaves(1, 0, 9, 7, kind).expect("a picture can be painted");
        let noisy = add_gaussian(&clean, 0.1, 1, 0).expect("noise can be added");
        let pixels = noisy.pixels();
        let plain = Picture::new(noisy, depth);
        let mut told = Picture { alpha: Some(vec![0.5; pixels]), ..plain.clone() };
        told.metadata.icc = Some(vec![7; 60]);
        told.metadata.exif =
            Some(b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".to_vec());
        told.metadata.settings = Some("proxlift".into());
        files.extend([plain, told].iter().filter_map(|picture| io::encode(picture, format).ok()));
    }
    files
}

/// Progressive ones too, which the program reads but does not write.
fn jpegs() -> Vec<Vec<u8>> {
    let mut files = pictures(Format::Jpeg);
    for (colours, samples) in [(jpeg_encoder::ColorType::Luma, 1), (jpeg_encoder::ColorType::Rgb, 3)] {
        let (mut file, pixels) = (Vec::new(), (0..17 * 19 * samples).map(|i| (i * 37 % 251) as u8));
        let mut encoder = jpeg_encoder::Encoder::new(&mut file, 80);
        encoder.set_progressive(true);
        encoder.set_restart_interval(3);
        encoder.encode(&pixels.collect::<Vec<_>>(), 17, 19, colours).expect("it goes to memory");
        files.push(file);
    }
    files
}

/// Stacks too.
fn tiffs() -> Vec<Vec<u8>> {
    let mut files = pictures(Format::Tiff);
    files.push(stack(Format::Tiff));
    files
}

fn fits() -> Vec<Vec<u8>> {
    let mut files = pictures(Format::Fits);
    files.push(stack(Format::Fits));
    files
}

/// A file of three pages.
fn stack(format: Format) -> Vec<u8> {
    let page = dead_leaves(2, 0, 6, 5, Channels::Grey).expect("a picture can be painted");
    let page = Raster::of_picture(&Picture::new(page, Depth::Sixteen)).expect("it is one");
    let mut file = io::spool_pages(format, 3, &mut |_| Ok(page.clone())).expect("pages can be written");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut bytes).expect("they were written");
    bytes
}

/// With loss, with alpha, and an animation, of one pixel each: the program writes none of these.
fn webps() -> Vec<Vec<u8>> {
    let mut files = pictures(Format::WebP);
    files.push(
        b"RIFF\x22\0\0\0WEBPVP8 \x16\0\0\x000\x01\0\x9d\x01*\x01\0\x01\0\x0e\xc0\xfe%\xa4\0\x03p\0\0\0\0"
            .to_vec(),
    );
    files.push(
        b"RIFFJ\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0\0\0\0\0\0\0ALPH\x0c\0\0\0\x11\x07\x10\x11\xfd\x0fDD\xff\x03\0\0\
          VP8 \x18\0\0\0\x14\x01\0\x9d\x01*\x01\0\x01\0\0\0\xfe\0\0\x0d\xc0\0\xfe\xe6\xb5\0\0\0"
            .to_vec(),
    );
    files.push(ANIMATION.to_vec());
    files
}

/// A WebP of one frame of one pixel, in an animation.
pub const ANIMATION: &[u8] =
    b"RIFFR\0\0\0WEBPVP8X\x0a\0\0\0\x12\0\0\0\0\0\0\0\0\0ANIM\x06\0\0\0\xff\xff\xff\xff\0\0\
    ANMF&\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0d\0\0\0VP8L\x0d\0\0\0/\0\0\0\x10\x07\x10\x11\x11\x88\x88\xfe\x07\0";

/// As text, of single bits, and with names for their numbers too.
fn pnms() -> Vec<Vec<u8>> {
    let mut files = pictures(Format::Pnm);
    files.extend([
        b"P1\n# bits\n3 2\n1 0 1 0 1 0\n".to_vec(),
        b"P2 3 2 1000\n1 2 3 400 500 999\n".to_vec(),
        b"P3\n1 2\n255\n1 2 3 4 5 6\n".to_vec(),
        b"P4\n9 2\n\xaa\x80\x55\x00".to_vec(),
        b"P7\nWIDTH 2\nHEIGHT 2\nDEPTH 2\nMAXVAL 255\nTUPLTYPE GRAYSCALE_ALPHA\nENDHDR\n12345678".to_vec(),
        b"Pf\n2 1\n-1.0\n\0\0\x80?\0\0\0\0".to_vec(),
    ]);
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
    learned.network = learned.network.with_own_synthesis();
    learned.network.unrolling = Unrolling::default();
    learned.noise = PatchNoise::Own;
    learned.provenance.insert("data".into(), "pictures".into());
    // Of stride 2: layers that see the four phases of an image.
    let mut phases = plain.clone();
    let architecture = Architecture { depth: 2, features: 3, kernel: 3, channels: 4 };
    phases.network = Network::glorot(architecture, 0.1, 2).expect("these sizes make a network");
    let sealed = [plain, learned, phases].map(|model| model.to_bytes().expect("a valid model"));
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

/// With layers of every kind.
fn liftings() -> Vec<Vec<u8>> {
    let rng = &mut proxlift::random::seeded(3);
    let mut dense = |inputs, outputs| Dense::<f32>::random(inputs, outputs, 1.0, rng).expect("sizes");
    let chain = lifting::Network::new(Loss::Softmax)
        .layer(dense(5, 4), BoxClip::interval(vec![-0.1], vec![0.3]).expect("an interval"))
        .layer(dense(4, 4), SoftThreshold::new(vec![0.1]).expect("a threshold"))
        .layer(dense(4, 4), Softmax::new(4).expect("four numbers"))
        .layer(dense(4, 4), Relu)
        .output(dense(4, 3));
    let filters = |seed: u64| {
        let weights = proxlift::laws::random_field(2 * 9, seed);
        proxlift::operator::Filters::new(2, 1, 3, weights).expect("sizes")
    };
    let clip = Activation::clip(vec![0.2, 0.3]);
    let steps = lifting::Network::new(Loss::Squared)
        .layer(DualStep::first(filters(1), filters(2), 0.1, (4, 5)).expect("sizes"), clip.clone())
        .layer(DualStep::new(filters(3), 0.3, (4, 5)).expect("sizes"), clip)
        .output(Synthesis::new(filters(4), (4, 5)).expect("sizes"));
    let first =
        Convolutional::random(2, 1, 3, (4, 5), 2, 1.0, &mut proxlift::random::seeded(4)).expect("sizes");
    let numbers = first.outputs();
    let convolutional = lifting::Network::new(Loss::Logistic).layer(first, Relu);
    let last = Dense::random(numbers, 2, 1.0, &mut proxlift::random::seeded(5)).expect("sizes");
    let networks = [chain, steps, convolutional.output(last)];
    let sealed = networks.map(|network| network.and_then(|network| network.to_bytes()).expect("a network"));
    sealed.iter().flat_map(|bytes| [bytes.clone(), unsealed(bytes)]).collect()
}

fn idxs() -> Vec<Vec<u8>> {
    let pictures = [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2][..], &[9; 12]].concat();
    let labels = vec![0, 0, 8, 1, 0, 0, 0, 2, 7, 1];
    let packed = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, bytes)
            .and_then(|()| encoder.finish())
            .expect("it goes to memory")
    };
    let both = |flag: u8, pictures: Vec<u8>, labels: Vec<u8>| {
        [&[flag][..], &(pictures.len() as u16).to_be_bytes(), &pictures, &labels].concat()
    };
    vec![both(1, packed(&pictures), packed(&labels)), both(0, pictures, labels)]
}

fn configs() -> Vec<Vec<u8>> {
    let resolved = Config::resolve(&Settings::default()).expect("nothing given is a training");
    let few = br#"{"epochs": 2, "depth": 4, "sigma": 0.1, "rate": 0.001, "knots": 4, "border": 2}"#.to_vec();
    vec![serde_json::Value::Object(resolved.settings.to_map()).to_string().into_bytes(), few]
}
