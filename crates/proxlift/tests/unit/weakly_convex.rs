use super::*;
use crate::dataset::synthetic::dead_leaves;
use crate::image::{Channels, noise::add_gaussian};
use crate::model::BuiltIn;
use crate::restoration::{Border, Degradation, Kernel, Restorer, variational};

/// Looks at every few iterations: the objective never rises, and in the end a plain step hardly moves the picture.
#[test]
fn the_objective_falls_to_a_stationary_point() {
    let clean = dead_leaves(3, 0, 40, 36, Channels::Grey).unwrap();
    let known = (0..40 * 36).map(|i| i * 7919 % 3 > 0).collect();
    let kernel = Kernel::gaussian(1.2).unwrap();
    for degradation in [Degradation::Blur(kernel), Degradation::Missing { known, size: (40, 36) }] {
        let sigma = 0.03;
        let restorer = Restorer::new(degradation.clone()).border(Border::Circular);
        let seen = add_gaussian(&restorer.degrade(&clean).unwrap(), sigma as f32, 1, 0).unwrap();
        let forward = degradation.forward(&seen, Border::Circular, false).unwrap();
        let y = restorer.seen(&seen, &forward);
        let data = DataTerm::gaussian(&forward, y.clone(), sigma).unwrap();
        let engine = crate::engine::standard();
        let limit =
            variational::adapted(BuiltIn::WeaklyConvex.model(Channels::Grey), &forward, sigma).unwrap();
        let regulariser = limit.regulariser(&*engine, forward.scene).unwrap();
        let (mut x, mut objectives) = (y, Vec::new());
        let mut watch = |at: &Reached| {
            objectives.push(at.objective);
            ControlFlow::Continue(())
        };
        let until = Until { tolerance: 1e-5, most: 3000 };
        let parts = (&data, sigma);
        let reached = minimise(&regulariser, parts, &mut x, &until, &mut watch).unwrap();
        assert!(reached.residual <= 1e-5 && reached.iterations < 3000, "{reached:?}");
        assert!(objectives.windows(2).all(|pair| pair[1] <= pair[0]), "{objectives:?}");
        assert!(objectives.len() > 2);
        // Neighbours are no lower by more than what is second order.
        let of = |x: &[f32]| data.value(x) + regulariser.value(x) / (sigma * sigma);
        for sign in [-1.0, 1.0] {
            let moved: Vec<f32> =
                x.iter().zip(clean.data()).map(|(x, c)| x + sign * 1e-3 * (c - x)).collect();
            assert!(of(&moved) >= reached.objective * (1.0 - 1e-4));
        }
    }
}
