//! Any prox can be a layer's activation: engines, gradients, energy, Jacobian and model files know no other.

use proxlift::analysis::Jacobian;
use proxlift::engine::{Cpu, Engine, Gradients, Reference, ReverseRule};
use proxlift::field::Field;
use proxlift::laws::{adjoint_mismatch, gradient_mismatch, max_relative_difference, random_field};
use proxlift::model::{Model, Provenance};
use proxlift::network::{Activation, Architecture, Network};
use proxlift::operator::Filters;
use proxlift::prox::{
    BoxClip, GroupL2, Identity, L2Ball, PiecewiseGradient, PiecewiseLinear, Prox, Relu, Sigmoid, Simplex,
    SoftThreshold, Softmax,
};
use proxlift::training::Lifted;

const SIZES: Architecture = Architecture { depth: 4, features: 4, kernel: 3, channels: 1 };
const SIDES: (usize, usize) = (7, 5);
const SAMPLES: usize = 2;

/// Networks with every kind of activation in the middle layer, and the clip around it.
fn networks() -> Vec<Network<f64>> {
    let learned = PiecewiseLinear::clip_with_knots(4, 1, 0.2);
    let kinds: [Activation<f64>; 10] = [
        learned.into(),
        BoxClip::interval(vec![-0.1, 0.0, -0.3, -0.2], vec![0.2, 0.3, 0.1, 0.4]).unwrap().into(),
        SoftThreshold::new(vec![0.05]).unwrap().into(),
        L2Ball::new(4, 2, vec![0.2, 0.3]).unwrap().into(),
        GroupL2::new(4, 4, vec![0.1]).unwrap().into(),
        Relu.into(),
        Simplex::new(4).unwrap().into(),
        Softmax::new(4).unwrap().into(),
        Sigmoid::default().into(),
        Identity.into(),
    ];
    let base = Network::<f64>::glorot(SIZES, 0.3, 7).unwrap();
    kinds
        .into_iter()
        .map(|activation| {
            let mut network = base.clone();
            network.activation[1] = activation;
            network.validate().unwrap();
            network
        })
        .collect()
}

fn images(seed: u64) -> Field<f64> {
    let grid = SIZES.grid(SIDES.0, SIDES.1).unwrap();
    Field::from_planar(SAMPLES, 1, grid, &random_field(SAMPLES * grid.pixels(), seed)).unwrap()
}

fn denoised(network: &Network<f64>, z: &Field<f64>) -> Field<f64> {
    let mut output = z.clone();
    Reference.denoise(network, z, &mut output);
    output
}

#[test]
fn both_engines_give_the_same_picture_and_the_same_gradients() {
    let (z, x) = (images(1).cast::<f32>(), images(2).cast::<f32>());
    for network in networks().iter().map(Network::cast::<f32>) {
        let name = format!("{:?}", network.activation[1]);
        let pass = |engine: &dyn Engine<f32>| {
            let mut output = z.clone();
            engine.denoise(&network, &z, &mut output);
            let mut gradients = Gradients::zeros(&network, SAMPLES);
            let rule = ReverseRule::Lifted { mu: 0.3 };
            engine.training_pass(&network, rule, &z, &x, &mut gradients).unwrap();
            let weights = gradients.theta.iter().flat_map(|g| g.weights().to_vec()).collect::<Vec<_>>();
            (output.to_planar(), weights)
        };
        let (plain, fast) = (pass(&Reference), pass(&Cpu::new()));
        assert!(max_relative_difference(&plain.0, &fast.0) < 1e-5, "{name}");
        assert!(max_relative_difference(&plain.1, &fast.1) < 1e-4, "{name}");
    }
}

#[test]
fn a_batch_gets_what_the_prox_makes_of_each_sample_and_the_gaps_stay_zero() {
    let grid = SIZES.grid(SIDES.0, SIDES.1).unwrap();
    let batch = |seed| {
        Field::from_planar(SAMPLES, 4, grid, &random_field(SAMPLES * 4 * grid.pixels(), seed)).unwrap()
    };
    let gaps = |field: &Field<f64>| field.data().iter().filter(|x| **x == 0.0).count();
    for network in networks() {
        let (activation, v, g) = (&network.activation[1], batch(1), batch(2));
        let (mut u, mut slope, mut penalty) = (v.clone(), v.clone(), vec![f64::NAN; SAMPLES]);
        activation.apply(&v, &mut u);
        activation.slope(&v, &g, &mut slope);
        let mut elsewhere = u.clone();
        activation.apply(&g, &mut elsewhere);
        activation.bregman(&elsewhere, &v, &mut penalty);
        for (s, penalty) in penalty.iter().enumerate() {
            let (prox, of_v) = (activation.prox(), v.sample_to_planar(s));
            let mut expected = of_v.clone();
            prox.prox_in_place(1.0, &mut expected);
            assert_eq!(u.sample_to_planar(s), expected, "{activation:?}");
            let b = prox.bregman(1.0, &elsewhere.sample_to_planar(s), &of_v, &mut expected);
            assert!((penalty - b).abs() < 1e-12 * b && b > 0.0, "{activation:?}: {penalty} and {b}");
            prox.pullback(1.0, &of_v, &g.sample_to_planar(s), &mut expected);
            assert_eq!(slope.sample_to_planar(s), expected, "{activation:?}");
        }
        assert!(gaps(&u) >= gaps(&v) && gaps(&slope) >= gaps(&v), "{activation:?} wrote into a gap");
    }
}

#[test]
fn back_propagation_is_the_gradient_of_the_loss() {
    let (z, x) = (images(3), images(4));
    for network in networks() {
        let mut gradients = Gradients::zeros(&network, SAMPLES);
        Reference.training_pass(&network, ReverseRule::Backprop, &z, &x, &mut gradients).unwrap();
        for (k, gradient) in gradients.theta.iter().enumerate() {
            let loss = |weights: &[f64]| {
                let mut network = network.clone();
                network.theta[k] = Filters::new(4, 1, 3, weights.to_vec()).unwrap();
                let output = denoised(&network, &z);
                let errors = output.data().iter().zip(x.data()).map(|(a, b)| (a - b).powi(2));
                0.5 * errors.sum::<f64>()
            };
            let off = gradient_mismatch(loss, gradient.weights(), network.theta[k].weights(), k as u64);
            assert!(off < 1e-5, "{:?} theta_{k}: {off:e}", network.activation[1]);
        }
    }
}

#[test]
fn the_energy_is_the_loss_at_the_anchor_and_its_gradients_are_right_away_from_it() {
    for network in networks() {
        let name = format!("{:?}", network.activation[1]);
        let mut lifted = Lifted::new(&network, images(5), images(6)).unwrap();
        lifted.anchor((&Reference, &network));
        let energy = lifted.energy((&Reference, &network), 1.0);
        assert!(energy.penalties.iter().flatten().all(|b| b.abs() < 1e-12), "{name}: {energy:?}");
        // Elsewhere among the values of the activation.
        for k in 1..SIZES.depth {
            let mut moved = lifted.v[k].clone();
            moved.map(|v| 0.6 * v);
            Reference.activate(network.layer(k), &moved, &mut lifted.u[k]);
        }
        lifted.refresh((&Reference, &network));
        assert!(lifted.energy((&Reference, &network), 1.0).total() > 0.0, "{name}");
        let mut gradients: Vec<Filters<f64>> = network.theta.clone();
        lifted.theta_gradients((&Reference, &network), 0.7, &mut gradients);
        for (k, gradient) in gradients.iter().enumerate() {
            let f = |weights: &[f64]| {
                let (mut network, mut lifted) = (network.clone(), lifted.clone());
                network.theta[k] = Filters::new(4, 1, 3, weights.to_vec()).unwrap();
                lifted.refresh((&Reference, &network));
                lifted.energy((&Reference, &network), 0.7).total()
            };
            let off = gradient_mismatch(f, gradient.weights(), network.theta[k].weights(), k as u64);
            assert!(off < 1e-5, "{name} theta_{k}: {off:e}");
        }
    }
}

#[test]
fn the_jacobian_has_its_adjoint() {
    for network in networks() {
        let z = Field::from_planar(1, 1, images(1).grid(), &images(8).sample_to_planar(0)).unwrap();
        let jacobian = Jacobian::at(&Reference, &network, &z).unwrap();
        assert!(adjoint_mismatch(&jacobian, 3) < 1e-12, "{:?}", network.activation[1]);
    }
}

#[test]
fn at_another_contrast_the_network_does_the_same() {
    let z = images(9);
    for network in networks() {
        let mut scaled = network.clone();
        scaled.scale_thresholds(3.0);
        let mut large = z.clone();
        large.map(|z| 3.0 * z);
        let (once, thrice) = (denoised(&network, &z), denoised(&scaled, &large));
        let once: Vec<f64> = once.data().iter().map(|x| 3.0 * x).collect();
        assert!(max_relative_difference(&once, thrice.data()) < 1e-12, "{:?}", network.activation[1]);
    }
}

#[test]
fn a_model_file_keeps_it() {
    for network in networks().iter().map(Network::cast::<f32>) {
        let model = Model { network, sigma: 0.1, noise: Default::default(), provenance: Provenance::new() };
        let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(again, model);
    }
}

#[test]
fn an_activation_for_other_features_is_refused() {
    let mut network = networks().remove(0);
    network.activation[1] = SoftThreshold::new(vec![0.1; 3]).unwrap().into();
    assert!(network.validate().unwrap_err().to_string().contains("3 thresholds given, but 4 features"));
}

/// Two learned functions.
fn sample() -> PiecewiseLinear<f64> {
    PiecewiseLinear::new(3, vec![0.1, 0.2, 0.5, 0.05, 0.3, 0.3], vec![1.0, 0.2, 0.6, 0.1, 0.0, 0.5, 0.7, 0.3])
        .unwrap()
}

/// Inputs on both sides of all knots.
fn points() -> impl Iterator<Item = f64> {
    (-40..=40).map(|i| f64::from(i) * 0.0237)
}

#[test]
fn the_sum_of_clips_has_the_slopes_between_the_knots() {
    let s = sample();
    assert!((s.at(0, 0.05) - 0.05).abs() < 1e-15);
    assert!((s.at(0, 0.15) - 0.11).abs() < 1e-15);
    assert!((s.at(0, -0.6) + 0.1 + 0.02 + 0.18 + 0.01).abs() < 1e-15);
    assert_eq!((s.slope(0, 0.3), s.slope(1, 0.1), s.slope(1, 9.0)), (0.6, 0.5, 0.3));
}

#[test]
fn the_potential_is_the_antiderivative_and_the_inverse_inverts() {
    let s = sample();
    for (j, t) in (0..2).flat_map(|j| points().map(move |t| (j, t))) {
        let h = 1e-6;
        let slope = (s.potential(j, t + h) - s.potential(j, t - h)) / (2.0 * h);
        assert!((slope - s.at(j, t)).abs() < 1e-6);
        assert!((s.at(j, s.inverse(j, s.at(j, t))) - s.at(j, t)).abs() < 1e-12);
    }
}

#[test]
fn the_bregman_penalty_vanishes_at_the_activation_alone_and_is_the_clips_own_for_a_clip() {
    let s = sample();
    let clip = PiecewiseLinear::clip(vec![0.3]);
    for (v, w) in points().flat_map(|v| points().map(move |w| (v, w))) {
        for j in 0..2 {
            let b = s.bregman_at(j, s.at(j, w), v);
            assert!(b >= -1e-15);
            assert!(b > 1e-9 || (s.at(j, w) - s.at(j, v)).abs() < 2e-4);
            assert!(s.bregman_at(j, s.at(j, v), v).abs() < 1e-15);
        }
        let (u, p) = (clip.at(0, w), clip.at(0, v));
        let own = 0.5 * (u - p) * (u - p) + (v - p) * (p - u);
        assert!((clip.bregman_at(0, u, v) - own).abs() < 1e-14);
    }
}

#[test]
fn projection_gives_a_prox_and_leaves_one_alone() {
    let mut wild = PiecewiseLinear::new(2, vec![0.0; 4], vec![0.0; 6]).unwrap();
    let [knots, slopes] = wild.parts_mut();
    knots.copy_from_slice(&[-0.1, 0.2, 0.3, 0.1]);
    slopes.copy_from_slice(&[1.2, -0.1, 0.5, 0.0, 1.0, 2.0]);
    wild.project();
    assert_eq!(wild.knots(), [0.0, 0.2, 0.3, 0.3]);
    assert_eq!(wild.slopes(), [1.0, 0.0, 0.5, 0.0, 1.0, 1.0]);
    let before = wild.clone();
    wild.project();
    assert_eq!(wild, before);
    assert!(wild.validate().is_ok() && wild.steepest() <= 1.0);
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let s = sample();
    // Values of u between the flat pieces, and inputs away from the knots.
    for (j, v, w) in [(0, 0.37, 0.13), (0, -0.04, 0.31), (1, 0.21, -0.44), (1, 0.7, 0.1)] {
        let u = s.at(j, w);
        let mut by_energy = s.zero_gradient();
        s.add_gradient(j, v, w, &mut by_energy);
        let mut by_value = s.zero_gradient();
        s.add_derivative(j, v, 1.0, &mut by_value);
        for part in 0..2 {
            for i in 0..s.clone().parts_mut()[part].len() {
                let moved = |h: f64| {
                    let mut s = s.clone();
                    s.parts_mut()[part][i] += h;
                    (s.bregman_at(j, u, v), s.at(j, v))
                };
                let (plus, minus) = (moved(1e-6), moved(-1e-6));
                let of = |g: &PiecewiseGradient<f64>| if part == 0 { g.knots[i] } else { g.slopes[i] };
                assert!(((plus.0 - minus.0) / 2e-6 - of(&by_energy)).abs() < 1e-6, "{j} {part} {i}");
                assert!(((plus.1 - minus.1) / 2e-6 - of(&by_value)).abs() < 1e-6, "{j} {part} {i}");
            }
        }
    }
}
