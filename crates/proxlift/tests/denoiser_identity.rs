//! No damage: as the noise level goes to 0, every denoiser tends to the identity, and at 0 it is that.
#![allow(missing_docs)]

use proxlift::image::io::{Depth, Picture, Raster};
use proxlift::image::{Channels, noise::add_gaussian};
use proxlift::model::{BuiltIn, Model, Provenance};
use proxlift::network::{Activation, Architecture, Network};
use proxlift::prox::{Identity, PiecewiseLinear, Relu, SoftThreshold};
use proxlift::{Denoiser, Image};
use std::ops::ControlFlow;

/// The promise: no pixel changes by more than so many times the level.
const MOST_CHANGE: f32 = 6.0;

/// A screenshot: hard edges, thin lines, no noise.
fn screenshot(channels: usize, side: usize) -> Image {
    let value = |i: usize| {
        let (y, x) = (i / side % side, i % side);
        match (y / 7 % 2, x / 5 % 3) {
            (0, 0) => 1.0,
            (1, 2) => 0.0,
            _ if x % 9 == 0 || y % 11 == 3 => 0.0,
            _ => 0.8,
        }
    };
    Image::new(channels, side, side, (0..channels * side * side).map(value).collect()).unwrap()
}

fn largest_change(a: &Image, b: &Image) -> f32 {
    a.data().iter().zip(b.data()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn shipped() -> Vec<(Denoiser, usize)> {
    let models = [BuiltIn::Small, BuiltIn::Best, BuiltIn::Photo];
    models.into_iter().flat_map(|model| [(model.into(), 1), (model.into(), 3)]).collect()
}

/// Networks of all activations, also those that keep a slope however far out.
fn networks() -> Vec<(Denoiser, usize)> {
    let architecture = Architecture { depth: 5, features: 4, kernel: 3, channels: 1 };
    let activations: [Activation<f32>; 5] = [
        Activation::clip(vec![0.1; 4]),
        PiecewiseLinear::new(2, [0.05, 0.1].repeat(4), [1.0, 0.3, 0.9].repeat(4)).unwrap().into(),
        SoftThreshold::new(vec![0.1; 4]).unwrap().into(),
        Relu.into(),
        Identity.into(),
    ];
    let network = |activation: Activation<f32>, bounded| {
        let mut network = Network::glorot(architecture, 0.1, 1).unwrap();
        network.activation.fill(activation);
        network.bounded = bounded;
        network
    };
    let model =
        |network, sigma| Model { network, sigma, noise: Default::default(), provenance: Provenance::new() };
    activations
        .into_iter()
        .flat_map(|s| [model(network(s.clone(), false), 0.1), model(network(s, true), 0.2)])
        .map(|model| (model.into(), 1))
        .collect()
}

#[test]
fn at_strength_0_and_at_level_0_every_sample_of_every_depth_comes_back() {
    for (denoiser, channels) in shipped().into_iter().chain(networks()) {
        let kind = Channels::from_count(channels).unwrap();
        for depth in [Depth::Eight, Depth::Sixteen, Depth::Float] {
            let noisy = add_gaussian(&screenshot(channels, 40), 0.05, 1, 0).unwrap();
            let raster = Raster::of_picture(&Picture::new(noisy, depth)).unwrap();
            assert_eq!(raster.kind(), kind);
            for none in [denoiser.clone().strength(0.0), denoiser.clone().sigma(0.0)] {
                let mut result = raster.clone();
                none.denoise_raster(&mut result, &mut |_, _| ControlFlow::Continue(())).unwrap();
                assert!(result == raster, "{depth:?}");
            }
        }
    }
}

#[test]
fn below_the_level_of_its_training_no_network_changes_a_pixel_by_more_than_six_times_the_level() {
    for (denoiser, channels) in shipped().into_iter().chain(networks()) {
        let picture = screenshot(channels, 48);
        for sigma in [1e-6, 1e-4, 0.5 / 255.0, 2.0 / 255.0, 0.05] {
            let result = denoiser.clone().sigma(sigma).denoise(&picture).unwrap();
            let (change, most) = (largest_change(&picture, &result), MOST_CHANGE * sigma as f32);
            assert!(change <= most * 1.001 + 1e-6, "{change} at {sigma}");
            let weaker = denoiser.clone().sigma(0.01).strength(sigma / 0.01).denoise(&picture).unwrap();
            assert!(largest_change(&picture, &weaker) <= most * 1.001 + 1e-6);
        }
    }
}

/// On any scale: a float picture whose white is 4000 has as much less to lose.
#[test]
fn the_limit_follows_the_scale_of_a_float_picture() {
    let mut picture = screenshot(1, 48);
    picture.data_mut().iter_mut().for_each(|v| *v *= 4000.0);
    let result = Denoiser::from(BuiltIn::Small).sigma(0.01).denoise(&picture).unwrap();
    assert!(largest_change(&picture, &result) <= 0.0601);
}

/// Where the change is at its limit, the derivative is that of the identity.
#[test]
fn the_derivative_knows_the_limit() {
    let picture = screenshot(1, 24);
    let denoiser = Denoiser::from(BuiltIn::Small).sigma(0.5 / 255.0);
    let g = add_gaussian(&Image::zeros(1, 24, 24).unwrap(), 1.0, 2, 0).unwrap();
    let (estimate, gradient) = denoiser.pull_back(&picture, &g).unwrap();
    assert!(largest_change(&estimate, &denoiser.denoise(&picture).unwrap()) < 1e-6);
    // Along a random direction, against differences.
    let d = add_gaussian(&Image::zeros(1, 24, 24).unwrap(), 1.0, 3, 0).unwrap();
    let moved = |step: f32| {
        let mut moved = picture.clone();
        moved.data_mut().iter_mut().zip(d.data()).for_each(|(v, d)| *v += step * d);
        denoiser.denoise(&moved).unwrap()
    };
    let (above, below) = (moved(3e-5), moved(-3e-5));
    let slope = |i: usize| f64::from(above.data()[i] - below.data()[i]) / 6e-5;
    let expected: f64 = g.data().iter().enumerate().map(|(i, &g)| f64::from(g) * slope(i)).sum();
    let found: f64 = gradient.data().iter().zip(d.data()).map(|(&a, &b)| f64::from(a * b)).sum();
    assert!((expected - found).abs() < 0.05 * expected.abs().max(5.0), "{expected} {found}");
}

#[test]
fn a_result_that_is_not_finite_is_refused_in_every_depth() {
    let mut network =
        Network::glorot(Architecture { depth: 4, features: 3, kernel: 3, channels: 1 }, 0.1, 1).unwrap();
    network.theta.iter_mut().for_each(|theta| theta.weights_mut().fill(3e38));
    for depth in [Depth::Eight, Depth::Sixteen, Depth::Float] {
        let mut raster = Raster::of_picture(&Picture::new(screenshot(1, 20), depth)).unwrap();
        let on = &mut |_: usize, _: usize| ControlFlow::Continue(());
        let refused =
            Denoiser::from(network.clone()).denoise_raster(&mut raster, on).unwrap_err().to_string();
        assert!(refused.contains("not finite"), "{refused}");
    }
    // Total variation takes differences, which overflow.
    let mut huge = screenshot(1, 20);
    huge.data_mut().iter_mut().for_each(|v| *v = if *v > 0.5 { 3e38 } else { -3e38 });
    let result = Denoiser::total_variation().sigma(1e37).denoise(&huge);
    assert!(result.is_err() || result.unwrap().data().iter().all(|v| v.is_finite()));
}

/// The limit must not make numbers of what is none.
#[test]
fn below_the_level_of_the_training_too() {
    let mut network =
        Network::glorot(Architecture { depth: 4, features: 3, kernel: 3, channels: 1 }, 0.1, 1).unwrap();
    network.theta.iter_mut().for_each(|theta| theta.weights_mut().fill(3e38));
    let model = Model { network, sigma: 0.1, noise: Default::default(), provenance: Provenance::new() };
    let refused = Denoiser::from(model).sigma(0.05).denoise(&screenshot(1, 20)).unwrap_err().to_string();
    assert!(refused.contains("not finite"), "{refused}");
}
