//! Layers with a synthesis of their own.

use proxlift::engine::{Engine, Gradients, Reference, ReverseRule};
use proxlift::field::Field;
use proxlift::laws::random_field;
use proxlift::model::Model;
use proxlift::network::{Architecture, Network, Unrolling};

const ARCHITECTURE: Architecture = Architecture { depth: 4, features: 5, kernel: 3, channels: 1 };

/// A network whose activations are smooth near every number that it meets, or nearly so.
fn network(unrolling: Unrolling) -> Network<f64> {
    let network = Network::<f64>::glorot(ARCHITECTURE, 0.2, 1).unwrap().with_knots(3);
    let mut network = network.unrolled(unrolling, 1.5, 1).with_own_synthesis();
    for (k, synthesis) in network.synthesis.iter_mut().enumerate() {
        let other = random_field::<f64>(synthesis.weights().len(), 20 + k as u64);
        synthesis.weights_mut().iter_mut().zip(other).for_each(|(w, other)| *w += 0.1 * other);
    }
    network
}

fn images(seed: u64) -> Field<f64> {
    let grid = ARCHITECTURE.grid(9, 8).unwrap();
    Field::from_planar(2, 1, grid, &random_field::<f64>(2 * 72, seed)).unwrap()
}

fn loss(network: &Network<f64>) -> f64 {
    let (z, x) = (images(3), images(4));
    let mut output = z.clone();
    Reference.denoise(network, &z, &mut output);
    let errors = output.data().iter().zip(x.data()).map(|(o, x)| (o - x).powi(2));
    0.5 * errors.sum::<f64>()
}

/// Both gradients are those of finite differences.
#[test]
fn gradients_of_analysis_and_synthesis_are_those_of_differences() {
    for unrolling in
        [Unrolling::DualForwardBackward, Unrolling::Inertial, Unrolling::ChambollePockAccelerated]
    {
        let network = network(unrolling);
        let mut gradients = Gradients::zeros(&network, 2);
        Reference
            .training_pass(&network, ReverseRule::Backprop, &images(3), &images(4), &mut gradients)
            .unwrap();
        for (i, gradient) in gradients.filters().enumerate() {
            let direction = random_field::<f64>(gradient.weights().len(), 40 + i as u64);
            let moved = |by: f64| {
                let mut moved = network.clone();
                let filters = moved.filters_mut().nth(i).unwrap();
                filters.weights_mut().iter_mut().zip(&direction).for_each(|(w, d)| *w += by * d);
                loss(&moved)
            };
            let h = 1e-6;
            let (expected, slope) = (
                gradient.weights().iter().zip(&direction).map(|(g, d)| g * d).sum::<f64>(),
                (moved(h) - moved(-h)) / (2.0 * h),
            );
            assert!((expected - slope).abs() < 1e-6 * expected.abs().max(1.0), "{i}: {expected} and {slope}");
        }
    }
}

/// A synthesis that is the adjoint changes nothing, and its two gradients add up to that of the filters.
#[test]
fn the_adjoint_as_synthesis_is_the_network_before() {
    let own = network(Unrolling::ChambollePockAccelerated);
    let tied = Network { synthesis: Vec::new(), ..own.clone() };
    let own = tied.clone().with_own_synthesis();
    assert_eq!(loss(&tied), loss(&own));
    let gradients = [&tied, &own].map(|network| {
        let mut gradients = Gradients::zeros(network, 2);
        Reference
            .training_pass(network, ReverseRule::Backprop, &images(3), &images(4), &mut gradients)
            .unwrap();
        gradients
    });
    for k in 1..ARCHITECTURE.depth {
        let both = gradients[1].theta[k].weights().iter().zip(gradients[1].synthesis[k - 1].weights());
        for (sum, (analysis, synthesis)) in gradients[0].theta[k].weights().iter().zip(both) {
            assert!((sum - analysis - synthesis).abs() < 1e-12);
        }
    }
}

#[test]
fn files_keep_it() {
    let network = network(Unrolling::Inertial).cast::<f32>();
    let model = Model { network, sigma: 0.1, noise: Default::default(), provenance: Default::default() };
    let read = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(read.network, model.network);
    let weights = ARCHITECTURE.parameters() + 3 * ARCHITECTURE.layer_parameters();
    assert_eq!(read.network.parameters(), weights + 3 * 5 * (3 + 4));
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut network = network(Unrolling::Inertial);
    network.synthesis.pop();
    let error = network.validate().unwrap_err().to_string();
    assert!(error.contains("2 synthesis operators given, but 3 layers"), "{error}");
}
