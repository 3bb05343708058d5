//! Networks, pictures and settings at random: what must hold for all of them. A case that fails is told with the least
//! numbers that still fail.
#![allow(missing_docs)]

use proptest::prelude::*;
use proptest::test_runner::Config as Runs;
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::engine::{Cpu, Reference};
use proxlift::image::io::{self, Depth, Format, Limits, Picture};
use proxlift::image::{Channels, noise::add_gaussian};
use proxlift::model::{Model, Provenance};
use proxlift::network::{Architecture, Network};
use proxlift::prox::PiecewiseLinear;
use proxlift::{Denoiser, Image};
use std::sync::Arc;

fn network() -> impl Strategy<Value = Network<f32>> {
    let sizes = (2..6_usize, 1..7_usize, 0..6_usize, any::<bool>());
    (sizes, 0..4_usize, 0..4_usize, any::<bool>(), any::<u64>()).prop_map(
        |((depth, features, half, grey), knots, border, bounded, seed)| {
            let channels = if grey { 1 } else { 3 };
            let architecture = Architecture { depth, features, kernel: 2 * half + 1, channels };
            let mut network = Network::glorot(architecture, 0.1, seed).unwrap();
            if knots > 1 {
                let mut learned = PiecewiseLinear::clip_with_knots(features, knots, 0.1_f32);
                // A slope that goes on for ever.
                learned.parts_mut()[1].iter_mut().for_each(|slope| *slope = (*slope + 0.3).min(1.0));
                network.activation.fill(learned.into());
            }
            network.border = border.min(architecture.receptive_radius());
            network.bounded = bounded;
            network
        },
    )
}

fn model(network: Network<f32>) -> Model {
    Model { network, sigma: 0.1, noise: Default::default(), provenance: Provenance::new() }
}

fn picture(network: &Network<f32>, height: usize, width: usize) -> Image {
    let kind = Channels::from_count(network.architecture().channels).unwrap();
    add_gaussian(&dead_leaves(5, 0, height, width, kind).unwrap(), 0.1, 3, 0).unwrap()
}

proptest! {
    #![proptest_config(Runs { cases: 48, failure_persistence: None, ..Runs::default() })]

    #[test]
    fn no_noise_is_no_change(network in network(), height in 1..40_usize, width in 1..40_usize, small in 1e-7..0.02_f64) {
        let noisy = picture(&network, height, width);
        let denoiser = Denoiser::from(model(network));
        prop_assert_eq!(&denoiser.clone().sigma(0.0).denoise(&noisy).unwrap(), &noisy);
        prop_assert_eq!(&denoiser.clone().strength(0.0).denoise(&noisy).unwrap(), &noisy);
        let close = denoiser.sigma(small).denoise(&noisy).unwrap();
        let change = close.data().iter().zip(noisy.data()).map(|(a, b)| f64::from(a - b).abs());
        prop_assert!(change.fold(0.0, f64::max) <= 6.001 * small + 1e-6);
    }

    #[test]
    fn tiles_and_threads_leave_the_bits_alone(
        network in network(),
        height in 1..90_usize,
        width in 1..90_usize,
        tile in 12..24_u32,
        threads in 1..4_usize,
        sigma in 0.01..0.5_f64,
    ) {
        let noisy = picture(&network, height, width);
        let denoiser = Denoiser::from(model(network)).sigma(sigma);
        let whole = denoiser.clone().engine(Arc::new(Cpu::new())).denoise(&noisy).unwrap();
        let small = denoiser.engine(Arc::new(Cpu::new().tile_bytes(1 << tile)));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        prop_assert_eq!(pool.install(|| small.denoise(&noisy)).unwrap(), whole);
    }

    #[test]
    fn engines_agree(network in network(), height in 1..30_usize, width in 1..30_usize) {
        let noisy = picture(&network, height, width);
        let denoiser = Denoiser::from(model(network)).sigma(0.1);
        let fast = denoiser.clone().engine(Arc::new(Cpu::new())).denoise(&noisy).unwrap();
        let portable = denoiser.clone().engine(Arc::new(Cpu::baseline())).denoise(&noisy).unwrap();
        let plain = denoiser.engine(Arc::new(Reference)).denoise(&noisy).unwrap();
        for other in [portable, plain] {
            let apart = fast.data().iter().zip(other.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            prop_assert!(apart < 2e-4, "{}", apart);
        }
    }

    #[test]
    fn a_model_comes_back_to_the_bit(network in network(), sigma in 0.0..1.0_f64) {
        let model = Model { sigma, ..model(network) };
        prop_assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
    }

    #[test]
    fn a_picture_comes_back_in_every_format_that_can_hold_it(
        height in 1..20_usize,
        width in 1..20_usize,
        grey in any::<bool>(),
        alpha in any::<bool>(),
        sixteen in any::<bool>(),
        values in prop::collection::vec(any::<u16>(), 4),
    ) {
        let channels = if grey { 1 } else { 3 };
        let (most, depth) = if sixteen { (65_535.0, Depth::Sixteen) } else { (255.0, Depth::Eight) };
        let value = |i: usize| f32::from(values[i % 4] ^ (i as u16).wrapping_mul(977)) % (most + 1.0) / most;
        let image = Image::new(channels, height, width, (0..channels * height * width).map(value).collect()).unwrap();
        let alpha = alpha.then(|| (0..height * width).map(value).collect());
        let picture = Picture { alpha, ..Picture::new(image, depth) };
        for format in [Format::Png, Format::Tiff] {
            let back = io::decode(&io::encode(&picture, format).unwrap(), &Limits::default()).unwrap();
            prop_assert_eq!((&back.image, &back.alpha, back.depth), (&picture.image, &picture.alpha, depth));
        }
    }
}
