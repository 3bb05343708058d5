//! A new engine: three primitives, here those of the operator of the solvers, sample by sample.

use proxlift::Real;
use proxlift::engine::Engine;
use proxlift::field::Field;
use proxlift::operator::{Convolution, Filters, LinearOperator};

/// [`Convolution`], one sample after the other.
pub struct OneByOne;

fn convolution<'a, T: Real>(theta: &'a Filters<T>, field: &Field<T>) -> Convolution<'a, T> {
    Convolution::new(theta, field.grid().height(), field.grid().width()).expect("a grid has pixels")
}

impl<T: Real> Engine<T> for OneByOne {
    fn name(&self) -> String {
        "one by one".into()
    }

    fn analyse(&self, theta: &Filters<T>, z: &Field<T>, u: &mut Field<T>) {
        let op = convolution(theta, z);
        let mut out = vec![T::zero(); op.range_len()];
        for s in 0..z.samples() {
            op.apply(&z.sample_to_planar(s), &mut out);
            u.load_sample(s, &out);
        }
    }

    fn adjoint(&self, theta: &Filters<T>, u: &Field<T>, x: &mut Field<T>) {
        let op = convolution(theta, u);
        let mut out = vec![T::zero(); op.domain_len()];
        for s in 0..u.samples() {
            op.adjoint(&u.sample_to_planar(s), &mut out);
            x.load_sample(s, &out);
        }
    }

    fn correlate(&self, scale: T, x: &Field<T>, d: &Field<T>, gradient: &mut Filters<T>) {
        let mut sum = vec![T::zero(); gradient.weights().len()];
        for s in 0..x.samples() {
            convolution(gradient, x).add_weight_gradient(
                &x.sample_to_planar(s),
                &d.sample_to_planar(s),
                &mut sum,
            );
        }
        gradient.weights_mut().iter_mut().zip(&sum).for_each(|(g, sum)| *g += scale * *sum);
    }
}

mod tests {
    use super::*;
    use proxlift::engine::{Gradients, Reference, ReverseRule};
    use proxlift::field::Grid;
    use proxlift::laws::{
        Convolved, adjoint_mismatch, correlation_mismatch, max_relative_difference, random_field,
    };
    use proxlift::network::{Architecture, Network, Unrolling};

    #[test]
    fn it_keeps_the_laws() {
        let theta = Filters::new(5, 3, 5, random_field(5 * 3 * 25, 1)).unwrap();
        let grid = Grid::new(9, 7, theta.radius()).unwrap();
        let op = Convolved { engine: &OneByOne, theta: &theta, samples: 2, grid };
        assert!(adjoint_mismatch::<f64>(&op, 2) < 1e-14);
        assert!(correlation_mismatch(&op, -0.7, 3) < 1e-14);
    }

    #[test]
    fn both_passes_follow_from_its_primitives() {
        let architecture = Architecture { depth: 5, features: 4, kernel: 3, channels: 1 };
        let network = Network::<f64>::glorot(architecture, 0.1, 1).unwrap().with_knots(3);
        let network = network.unrolled(Unrolling::ChambollePockAccelerated, 6.0, 1);
        let grid = architecture.grid(12, 10).unwrap();
        let [z, x] = [2, 3].map(|seed| Field::from_planar(2, 1, grid, &random_field(240, seed)).unwrap());
        let run = |engine: &dyn Engine<f64>| {
            let mut output = z.zeros_like();
            engine.denoise(&network, &z, &mut output);
            let mut gradients = Gradients::zeros(&network, 2).with_activations(&network);
            engine.training_pass(&network, ReverseRule::Lifted { mu: 0.1 }, &z, &x, &mut gradients).unwrap();
            let weights = gradients.theta.iter().flat_map(|theta| theta.weights());
            (output.to_planar(), weights.copied().collect::<Vec<_>>())
        };
        let ((output, weights), (expected_output, expected_weights)) = (run(&OneByOne), run(&Reference));
        assert!(max_relative_difference(&output, &expected_output) < 1e-13);
        assert!(max_relative_difference(&weights, &expected_weights) < 1e-13);
    }
}
