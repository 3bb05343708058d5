//! The models within the library, on a picture made by a formula, against an independent implementation in double
//! precision that reads the same model files.
//!
//! `reference/shipped.py` made the results.

use proxlift::Denoiser;
use proxlift::engine::{Cpu, Engine, Reference};
use proxlift::image::{Channels, Image};
use proxlift::laws::max_relative_difference;
use proxlift::model::BuiltIn;
use safetensors::SafeTensors;
use std::sync::Arc;

const HEIGHT: usize = 24;
const WIDTH: usize = 20;

/// Waves, a chequered board and noise, as `picture` of `reference/shipped.py` has it.
fn picture(channels: usize) -> Image {
    let mut state = 7u32;
    let mut data = Vec::new();
    for (c, y, x) in (0..channels).flat_map(|c| (0..HEIGHT * WIDTH).map(move |i| (c, i / WIDTH, i % WIDTH))) {
        let wave = (0.31 * x as f64 + 0.5 * c as f64).sin() * (0.23 * y as f64).cos();
        let board = ((x / 5 + y / 4) % 2) as f64;
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f64::from(state) / 4_294_967_296.0 - 0.5;
        data.push((0.5 + 0.25 * wave + 0.15 * board + 0.34 * noise) as f32);
    }
    Image::new(channels, HEIGHT, WIDTH, data).unwrap()
}

/// The golden picture of that name.
fn golden(name: &str) -> Vec<f32> {
    let path = format!("{}/tests/data/golden_shipped.safetensors", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let values = file.tensor(name).unwrap().data().as_chunks::<4>().0;
    values.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// They compress to half of what they would take otherwise.
#[test]
fn numbers_of_built_in_models_are_rounded() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/models");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let models: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "safetensors")).collect();
    assert!(models.len() > 5);
    for path in models {
        let bytes = std::fs::read(&path).unwrap();
        let falling = path.ends_with("grey-weakly-convex.safetensors");
        for (name, tensor) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
            if falling && name.starts_with("knots_") {
                continue;
            }
            let fine = tensor.data().as_chunks::<4>().0.iter().any(|n| u32::from_le_bytes(*n) & 0x1fff != 0);
            let told = path.display();
            assert!(!fine, "{name} of {told} is not rounded: python3 experiments/round_model.py {told}");
        }
    }
}

#[test]
fn every_built_in_model_gives_the_golden_picture() {
    let engines: [Arc<dyn Engine<f32>>; 3] =
        [Arc::new(Cpu::new()), Arc::new(Cpu::baseline()), Arc::new(Reference)];
    let mut worst: f64 = 0.0;
    for (colour, channels) in [("grey", Channels::Grey), ("colour", Channels::Rgb)] {
        for built_in in BuiltIn::ALL {
            // Photo in grey is `best`; what is solved for is held to laws (tests/convex.rs and tests/weakly_convex.rs).
            let solved = matches!(built_in, BuiltIn::Convex | BuiltIn::WeaklyConvex);
            if (built_in == BuiltIn::Photo && channels == Channels::Grey) || solved {
                continue;
            }
            let name = format!("{colour}-{}", built_in.name());
            let trained = built_in.model(channels).sigma;
            for (noise, name) in [(1.0, name.clone()), (2.0, name + " at twice the noise")] {
                if noise > 1.0 && channels == Channels::Rgb {
                    continue;
                }
                for engine in &engines {
                    let noisy = picture(channels.count());
                    let denoiser = Denoiser::from(built_in).sigma(noise * trained).engine(engine.clone());
                    let output = denoiser.denoise(&noisy).unwrap();
                    let off = max_relative_difference(output.data(), &golden(&name));
                    assert!(off < 1e-5, "{name}, {}: off by {off:e}", engine.name());
                    worst = worst.max(off);
                    assert!(
                        max_relative_difference(noisy.data(), &golden(&name)) > 0.05,
                        "nothing was denoised"
                    );
                }
            }
        }
    }
    println!("the models are within {worst:.1e} of the golden pictures");
}
