//! Networks whose Lipschitz constant is proven: the theorem of `analysis/tied.rs`, what breaks it, and training that keeps it.

use proxlift::analysis::{Jacobian, LipschitzBound};
use proxlift::dataset::ImageSet;
use proxlift::engine::{Cpu, Engine, Reference};
use proxlift::field::Field;
use proxlift::image::{Channels, Image};
use proxlift::laws::{max_relative_difference, random_field};
use proxlift::network::{Activation, Network, Unrolling, averaged_slope};
use proxlift::operator::{Convolution, Filters, LinearOperator, NormParams, PowerState, spectral_norm};
use proxlift::prox::{PiecewiseLinear, Prox};
use proxlift::real::{dot, norm_squared};
use proxlift::training::{Config, EpochRecord, Session, Settings, Stability};
use proxlift::{Denoiser, model::Model};

const SIZE: (usize, usize) = (9, 7);

/// Random monotone functions with slopes between 0 and `steepest`, some of them there, steep and flat in any order.
fn activation(features: usize, steepest: f64, seed: u64) -> Activation<f64> {
    let mut random = random_field::<f64>(7 * features, seed).into_iter().map(f64::abs);
    let mut next = || random.next().unwrap();
    let mut knots = Vec::new();
    for _ in 0..features {
        let mut at = 0.0;
        knots.extend((0..3).map(|_| {
            at += 0.3 * next();
            at
        }));
    }
    let slopes = (0..4 * features).map(|_| (1.5 * steepest * next()).min(steepest)).collect();
    PiecewiseLinear::new(3, knots, slopes).unwrap().into()
}

/// Random filters in all layers, `tau = longer`, `tau ||L||^2 = 1` for images of any size, and random activations.
fn network(
    unrolling: Unrolling,
    depth: usize,
    steepest: impl Fn(usize) -> f64,
    longer: f64,
    seed: u64,
) -> Network<f64> {
    let (features, channels, kernel) = [(4, 1, 3), (3, 3, 3), (5, 1, 5)][seed as usize % 3];
    let weights = random_field::<f64>(features * channels * kernel * kernel, seed);
    let theta = Filters::new(features, channels, kernel, weights).unwrap();
    let activations = (1..depth).map(|k| activation(features, steepest(k), 1000 * seed + k as u64));
    let (theta, tau) = (vec![theta; depth + 1], vec![longer; depth - 1]);
    let mut network = Network::with_activations(theta, tau, activations.collect()).unwrap();
    let scale = (1.0 - 1e-9) / (longer.sqrt() * bound(&network).norms[0]);
    for theta in &mut network.theta {
        theta.weights_mut().iter_mut().for_each(|w| *w *= scale);
    }
    Network { unrolling, ..network }
}

fn averaged(depth: usize, longer: f64, seed: u64) -> Network<f64> {
    network(Unrolling::AveragedDualForwardBackward, depth, averaged_slope, longer, seed)
}

fn bound(network: &Network<f64>) -> LipschitzBound {
    LipschitzBound::of(network).unwrap()
}

fn field(network: &Network<f64>, z: &[f64]) -> Field<f64> {
    let sizes = network.architecture();
    Field::from_planar(1, sizes.channels, sizes.grid(SIZE.0, SIZE.1).unwrap(), z).unwrap()
}

fn image(network: &Network<f64>, scale: f64, seed: u64) -> Vec<f64> {
    let values = random_field::<f64>(network.architecture().channels * SIZE.0 * SIZE.1, seed);
    values.into_iter().map(|value| scale * value).collect()
}

fn output(network: &Network<f64>, z: &[f64]) -> Vec<f64> {
    let z = field(network, z);
    let mut x = z.clone();
    Reference.denoise(network, &z, &mut x);
    x.to_planar()
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// `2 J - I`, whose norm is at most 1 where the network is firmly non-expansive.
struct Reflected<'a>(Jacobian<'a, f64>);

impl LinearOperator<f64> for Reflected<'_> {
    fn domain_len(&self) -> usize {
        self.0.domain_len()
    }
    fn range_len(&self) -> usize {
        self.0.domain_len()
    }
    fn apply(&self, x: &[f64], y: &mut [f64]) {
        self.0.apply(x, y);
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * *y - x);
    }
    fn adjoint(&self, y: &[f64], x: &mut [f64]) {
        self.0.adjoint(y, x);
        x.iter_mut().zip(y).for_each(|(x, y)| *x = 2.0 * *x - y);
    }
}

fn norm(operator: &impl LinearOperator<f64>, state: &mut PowerState<f64>) -> f64 {
    spectral_norm(operator, state, &NormParams { max_iterations: 200, ..NormParams::default() }).norm
}

#[test]
fn the_averaged_network_is_the_average_of_the_iterates() {
    for (depth, seed) in [(2, 0), (3, 1), (4, 2), (13, 3), (13, 4)] {
        let network = averaged(depth, 1.3, seed);
        let z = image(&network, 0.5, seed);
        let op = Convolution::new(&network.theta[0], SIZE.0, SIZE.1).unwrap();
        let (mut u, mut v) = (vec![0.0; op.range_len()], vec![0.0; op.range_len()]);
        let (mut sum, mut weights, mut image) = (vec![0.0; z.len()], 0.0, vec![0.0; z.len()]);
        op.apply(&z, &mut u);
        for k in 0..depth {
            if k > 0 {
                op.apply(&image, &mut v);
                v.iter_mut().zip(&u).for_each(|(v, u)| *v = u + network.tau[k - 1] * *v);
                network.activation[k - 1].piecewise().unwrap().prox(1.0, &v, &mut u);
            }
            op.adjoint(&u, &mut image);
            image.iter_mut().zip(&z).for_each(|(x, z)| *x = z - *x);
            let weight = (k + 1) as f64;
            sum.iter_mut().zip(&image).for_each(|(sum, x)| *sum += weight * x);
            weights += weight;
        }
        sum.iter_mut().for_each(|sum| *sum /= weights);
        assert!(max_relative_difference(&output(&network, &z), &sum) < 1e-12, "K = {depth}");
    }
}

#[test]
fn with_one_operator_the_average_is_firmly_non_expansive() {
    for (seed, depth) in (0..12).zip([2, 3, 5, 12, 30].into_iter().cycle()) {
        let network = averaged(depth, [1.0, 1.5, 8.0][seed as usize % 3], seed);
        let proven = bound(&network);
        assert!(proven.firmly_non_expansive && proven.bound == 1.0, "K = {depth}: {proven:?}");
        for scale in [0.03, 0.3, 3.0] {
            let z = image(&network, scale, seed + 50);
            let x = output(&network, &z);
            let at = field(&network, &z);
            let jacobian = Jacobian::at(&Reference, &network, &at).unwrap();
            let mut state = PowerState::new(&jacobian, seed);
            assert!(norm(&jacobian, &mut state) <= 1.0 + 1e-12);
            let reflected = Reflected(Jacobian::at(&Reference, &network, &at).unwrap());
            let mut worst = PowerState::new(&reflected, seed);
            let firm = norm(&reflected, &mut worst);
            assert!(firm <= 1.0 + 1e-12, "K = {depth}: {firm}");
            // Pairs: other images, and the worst directions, near and far.
            let directions =
                [image(&network, 1.0, seed + 90), state.vector().to_vec(), worst.vector().to_vec()];
            for (direction, length) in
                directions.iter().flat_map(|d| [1e-3, 0.1, 1.0].map(|l| (d, l * scale)))
            {
                let other: Vec<f64> = z.iter().zip(direction).map(|(z, d)| z + length * d).collect();
                let (dz, dx) = (minus(&other, &z), minus(&output(&network, &other), &x));
                let (left, right) = (norm_squared(&dx), dot(&dz, &dx));
                assert!(left <= right + 1e-12 * norm_squared(&dz), "K = {depth}: {left} above {right}");
            }
        }
    }
}

#[test]
fn without_the_average_the_bound_hardly_grows_with_the_depth() {
    let plain = Unrolling::DualForwardBackward;
    let mut most: f64 = 0.0;
    for (seed, depth) in (0..12).zip([2, 3, 5, 12, 30].into_iter().cycle()) {
        for (steepest, limit) in [(1.0, (1.0 + (1.0 + depth as f64).sqrt()) / 2.0), (0.8, 1.4), (0.5, 1.2)] {
            let network = network(plain, depth, |_| steepest, [1.0, 3.0][seed as usize % 2], seed);
            let proven = bound(&network);
            assert!(
                !proven.firmly_non_expansive && proven.bound <= limit,
                "{steepest}, K = {depth}: {proven:?}"
            );
            let z = image(&network, 0.3, seed);
            let jacobian = Jacobian::at(&Reference, &network, &field(&network, &z)).unwrap();
            let found = norm(&jacobian, &mut PowerState::new(&jacobian, seed));
            assert!(found <= proven.bound + 1e-12, "{steepest}, K = {depth}: {found} above {proven:?}");
            most = most.max(found);
        }
    }
    // The average is there for a reason.
    assert!(most > 1.0, "{most}");
}

#[test]
fn what_breaks_the_proof() {
    let good = averaged(6, 1.0, 1);
    assert!(bound(&good).firmly_non_expansive);
    let change = |f: &dyn Fn(&mut Network<f64>)| {
        let mut network = good.clone();
        f(&mut network);
        network.validate().unwrap();
        bound(&network)
    };
    let steep = |p: f64| activation(3, p, 5);
    let broken = [
        ("a filter", change(&|n| n.theta[3].weights_mut()[2] *= 1.001)),
        ("the first operator", change(&|n| n.theta[0].weights_mut()[2] *= 1.001)),
        ("the last operator", change(&|n| n.theta[6].weights_mut()[2] *= 1.001)),
        ("a synthesis", change(&|n| *n = n.clone().with_own_synthesis())),
        ("a step", change(&|n| n.tau[2] *= 0.99)),
        ("long steps", change(&|n| n.tau.iter_mut().for_each(|tau| *tau *= 1.01))),
        ("short steps", change(&|n| n.tau.iter_mut().for_each(|tau| *tau *= 0.6))),
        ("a slope above the proof's", change(&|n| n.activation[1] = steep(0.95))),
        ("a slope above 1", change(&|n| n.activation[1] = steep(1.01))),
        (
            "a projection, as steep as 1",
            change(&|n| n.activation[1] = PiecewiseLinear::clip_with_knots(3, 3, 0.1).into()),
        ),
        ("bounds", change(&|n| n.bounded = true)),
        ("a border", change(&|n| n.border = 1)),
        ("no average", change(&|n| n.unrolling = Unrolling::DualForwardBackward)),
        ("inertia", change(&|n| n.unrolling = Unrolling::Inertial)),
        ("another average", change(&|n| n.unrolling = Unrolling::ChambollePock)),
    ];
    for (what, bound) in broken {
        assert!(bound.bound > 1.0 + 1e-6 && !bound.firmly_non_expansive, "{what}: {bound:?}");
    }
    // The last slope is of no consequence, nor are thresholds.
    assert!(change(&|n| n.activation[4] = steep(1.0)).firmly_non_expansive);
    assert!(change(&|n| n.scale_thresholds(7.0)).firmly_non_expansive);
}

#[test]
fn stride_two_is_not_proven() {
    let theta =
        Filters::new(3, 4, 3, random_field::<f64>(108, 1).iter().map(|w| 0.01 * w).collect()).unwrap();
    let network =
        Network::with_activations(vec![theta; 4], vec![1.0; 2], vec![activation(3, 0.5, 1); 2]).unwrap();
    let network = Network { unrolling: Unrolling::AveragedDualForwardBackward, ..network };
    assert!(!bound(&network).firmly_non_expansive);
}

fn trained(settings: Settings) -> Model {
    let config = Config::resolve(&Settings {
        depth: Some(5),
        features: Some(6),
        epochs: Some(2),
        count: Some(24),
        patch: Some(20),
        ..settings
    })
    .unwrap();
    assert_eq!(Config::resolve(&config.settings).unwrap().fingerprint(), config.fingerprint());
    let images = ImageSet::embedded_train(8, 48, Channels::Grey, 0).unwrap();
    let patches = config.patches(images.into()).unwrap();
    let mut session = Session::new(&config, config.network().unwrap(), &patches).unwrap();
    let mut epochs = 0;
    session.run(&Cpu::new(), &mut |_: &EpochRecord| epochs += 1).unwrap();
    assert_eq!(epochs, 2);
    session.model("pictures")
}

#[test]
fn what_is_trained_with_a_constant_has_it() {
    for (most, knots, rate) in [
        (1.0, 4, 1e-3),
        (1.0, 0, 1e-3),
        // Far beyond what is good for it.
        (1.0, 3, 0.3),
        (1.1, 3, 1e-3),
        (1.3, 3, 0.1),
        (2.0, 4, 1e-3),
        (50.0, 4, 1e-3),
    ] {
        let model = trained(Settings {
            lipschitz: Some(most),
            knots: Some(knots),
            rate: Some(proxlift::training::StepRule::Rate(rate)),
            ..Settings::default()
        });
        let proven = LipschitzBound::of(&model.network).unwrap();
        assert!(proven.bound <= most, "{most}: {proven:?}");
        assert_eq!(proven.firmly_non_expansive, most < 1.2, "{most}: {proven:?}");
        assert!(model.network.has_one_operator(), "{most}");
        // From the file alone.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        model.save(&path).unwrap();
        assert_eq!(LipschitzBound::of(&Model::load(&path).unwrap().network).unwrap(), proven);
    }
}

#[test]
fn constants_that_cannot_be_are_refused() {
    for most in [0.0, 0.99, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Stability::of(most).unwrap_err().to_string().contains("--lipschitz"), "{most}");
    }
}

#[test]
fn the_denoiser_has_it_too_at_every_level_it_was_trained_for_or_above() {
    let mut network = averaged(6, 1.0, 0).cast::<f32>();
    let stability = Stability::of(1.0).unwrap();
    stability.begin(&mut network);
    stability.prove(&mut network).unwrap();
    assert!(LipschitzBound::of(&network).unwrap().firmly_non_expansive);
    let model = Model { network, sigma: 0.1, ..trained(Settings::default()) };
    let size = (70, 90);
    let picture = |seed| Image::new(1, size.0, size.1, random_field(size.0 * size.1, seed)).unwrap();
    for sigma in [0.1, 0.15, 0.6] {
        let denoiser = Denoiser::from(model.clone()).sigma(sigma);
        let (a, b) = (picture(1), picture(2));
        let (x, y) = (denoiser.denoise(&a).unwrap(), denoiser.denoise(&b).unwrap());
        let minus = |a: &Image, b: &Image| -> Vec<f64> {
            a.data().iter().zip(b.data()).map(|(a, b)| f64::from(a - b)).collect()
        };
        let (dz, dx) = (minus(&a, &b), minus(&x, &y));
        assert!(norm_squared(&dx) <= dot(&dx, &dz) + 1e-5 * norm_squared(&dz), "{sigma}");
    }
}
