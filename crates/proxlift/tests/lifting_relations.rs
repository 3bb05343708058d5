//! The relatives of lifted Bregman training: where two methods are one, how fast one tends to another, and what cannot rise.

use proxlift::Real;
use proxlift::laws::{gradient_mismatch, max_relative_difference, random_field};
use proxlift::lifting::{
    Admm, Batch, ClosedForm, Contrastive, ContrastiveOptions, Dense, Fenchel, FenchelOptions, LbFb,
    LbFbOptions, Lifted, Loss, Multipliers, Network, Penalty, Rows, Rule, Split, Splitting, Trainer,
    contrast, one_hot, sweep,
};
use proxlift::network::Activation;
use proxlift::prox::{BoxClip, Identity, PiecewiseLinear, Relu, Sigmoid, Simplex, SoftThreshold, Softmax};
use proxlift::random::seeded;
use proxlift::training::{Auxiliary, Descent, Metric, Rate, Schedule};

const SAMPLES: usize = 24;

/// Three classes on the arms of a spiral: nothing that a line tells apart.
fn points<T: Real>() -> (Rows<T>, Vec<usize>) {
    let (mut data, mut labels) = (Vec::new(), Vec::new());
    for i in 0..SAMPLES {
        let (class, r) = (i % 3, 0.2 + 0.8 * (i / 3) as f64 / (SAMPLES / 3) as f64);
        let angle = 4.0 * r + 2.1 * class as f64;
        data.extend([T::of(2.0 * r * angle.cos()), T::of(2.0 * r * angle.sin())]);
        labels.push(class);
    }
    (Rows::new(2, data).unwrap(), labels)
}

/// Layers of these widths, the same activation after each but the last.
fn dense<T: Real>(loss: Loss, widths: &[usize], activation: impl Fn(usize) -> Activation<T>) -> Network<T> {
    let rng = &mut seeded(11);
    let mut network = Network::new(loss);
    let last = widths.len() - 1;
    for pair in widths[..last].windows(2) {
        let layer = Dense::random(pair[0], pair[1], 2f64.sqrt(), rng).unwrap();
        network = network.layer(layer, activation(pair[1]));
    }
    network.output(Dense::random(widths[last - 1], widths[last], 1.0, rng).unwrap()).unwrap()
}

fn relu<T: Real>(_: usize) -> Activation<T> {
    Relu.into()
}

fn piecewise<T: Real>() -> [fn(usize) -> Activation<T>; 5] {
    [
        relu,
        |_| Identity.into(),
        |_| SoftThreshold::new(vec![T::of(0.1)]).unwrap().into(),
        |_| BoxClip::symmetric(vec![T::one()]).unwrap().into(),
        |n| PiecewiseLinear::clip_with_knots(n, 3, T::of(0.6)).into(),
    ]
}

fn smooth<T: Real>() -> [fn(usize) -> Activation<T>; 3] {
    [|_| Sigmoid::default().into(), |n| Softmax::new(n).unwrap().into(), |n| Simplex::new(n).unwrap().into()]
}

fn steps<T: Real>(
    trainer: &mut dyn Trainer<T>,
    network: &mut Network<T>,
    count: usize,
) -> Vec<proxlift::lifting::Step> {
    let ((z, labels), all) = (points::<T>(), (0..SAMPLES).collect::<Vec<_>>());
    let x = one_hot(&labels, 3).unwrap();
    let batch = Batch { z: &z, x: &x, indices: &all };
    (0..count).map(|i| trainer.step(network, batch, i as f64 / count as f64).unwrap()).collect()
}

#[test]
fn with_identities_both_penalties_train_the_same_network() {
    let run = |penalty| {
        let mut network = dense::<f64>(Loss::Softmax, &[2, 5, 4, 3], |_| Identity.into());
        let options = LbFbOptions { penalty, ..LbFbOptions::mac() };
        steps(&mut LbFb::new(&network, options, SAMPLES).unwrap(), &mut network, 20);
        network.blocks().concat()
    };
    assert!(max_relative_difference(&run(Penalty::Bregman), &run(Penalty::Quadratic)) < 1e-9);
}

#[test]
fn fenchel_lifted_networks_have_the_energy_of_the_paper_with_weights() {
    let (z, labels) = points::<f64>();
    let x = one_hot(&labels, 3).unwrap();
    let network = dense(Loss::Softmax, &[2, 6, 5, 3], relu);
    let u = network.forward(&z).u.into_iter().map(|mut u| {
        u.data_mut().iter_mut().for_each(|u| *u = 0.7 * *u + 0.1);
        u
    });
    let lifted = || Lifted::with_u(&network, &z, &x, u.clone().collect()).unwrap();
    let plain = lifted().energy(&network, 0.3);
    assert_eq!(lifted().with_weights(vec![1.0, 1.0]).energy(&network, 0.3), plain);
    let doubled = lifted().with_weights(vec![2.0, 2.0]).energy(&network, 0.6);
    let twice: Vec<f64> = plain.iter().map(|e| 2.0 * e).collect();
    assert!(max_relative_difference(&doubled, &twice) < 1e-14);
    let weighted = lifted().with_weights(vec![0.5, 3.0]);
    let by_layer: Vec<f64> = plain.iter().zip([0.5, 3.0, 1.0]).map(|(e, w)| e * w).collect();
    assert!(max_relative_difference(&weighted.energy(&network, 0.3), &by_layer) < 1e-14);
    for k in 0..2 {
        let along = |values: &[f64]| {
            let mut moved = lifted().with_weights(vec![0.5, 3.0]);
            moved.pass.u[k].data_mut().copy_from_slice(values);
            moved.follow(&network, k + 1);
            moved.energy(&network, 0.3).iter().sum()
        };
        let gradient = weighted.u_gradient(&network, k, 0.3);
        let mismatch = gradient_mismatch(along, gradient.data(), weighted.pass.u[k].data(), 3);
        assert!(mismatch < 1e-7, "u_{k}: {mismatch:e}");
    }
}

/// `f = 1/2 ||u||^2 + q*(v) - <u, v>` is the smooth part of the penalty wherever `u` is, also off the simplex.
#[test]
fn gradients_are_right_for_activations_whose_domain_has_no_inside() {
    let (z, labels) = points::<f64>();
    let x = one_hot(&labels, 3).unwrap();
    for activation in smooth() {
        let network = dense(Loss::Softmax, &[2, 4, 5, 3], activation);
        let other = Rows::new(2, random_field(z.data().len(), 8)).unwrap();
        let u = vec![network.forward(&other).u.remove(0), network.forward(&z).u.remove(1)];
        let mut lifted = Lifted::with_u(&network, &z, &x, u).unwrap();
        assert!(lifted.energy(&network, 0.3).iter().all(|e| e.is_finite() && *e > 0.0));
        let f = |lifted: &Lifted<'_, f64>| {
            let penalty = |k: usize| {
                let rows = lifted.pass.u[k].rows().zip(lifted.pass.v[k].rows());
                let value = |(u, v): (&[f64], &[f64])| {
                    let q_star = network.activations()[k].prox().q_star(1.0, v, &mut vec![0.0; v.len()]);
                    q_star + u.iter().zip(v).map(|(u, v)| 0.5 * u * u - u * v).sum::<f64>()
                };
                rows.map(value).sum::<f64>()
            };
            (0..2).map(penalty).sum::<f64>() + lifted.block(&network, 2, 0.3).iter().sum::<f64>()
        };
        for k in 0..2 {
            let (gradient, at) = (lifted.u_gradient(&network, k, 0.3), lifted.pass.u[k].clone());
            let shared = std::cell::RefCell::new(&mut lifted);
            let along = |values: &[f64]| {
                let mut lifted = shared.borrow_mut();
                lifted.pass.u[k].data_mut().copy_from_slice(values);
                lifted.follow(&network, k + 1);
                f(&lifted)
            };
            let mismatch = gradient_mismatch(along, gradient.data(), at.data(), 3);
            assert!(mismatch < 1e-7, "{:?}, u_{k}: {mismatch:e}", network.activations()[0]);
            along(at.data());
        }
    }
}

#[test]
fn one_sweep_of_contrast_over_one_hidden_layer_is_the_centred_rule() {
    let (z, labels) = points::<f64>();
    let x = one_hot(&labels, 3).unwrap();
    for activation in piecewise().into_iter().chain(smooth()) {
        let network = dense(Loss::Softmax, &[2, 6, 3], activation);
        let options = ContrastiveOptions { mu: 0.2, sweeps: 1 };
        let (losses, ours) = contrast(&network, options, &z, &x).unwrap();
        let (same, theirs) = sweep(&network, Rule::Centred { mu: 0.2 }, &z, &x).unwrap();
        assert_eq!(losses, same);
        assert!(max_relative_difference(&ours.concat().concat(), &theirs.concat().concat()) < 1e-12);
    }
}

#[test]
fn contrasts_tend_to_back_propagation_by_the_second_order_and_single_sides_by_the_first() {
    let (z, labels) = points::<f64>();
    let x = one_hot(&labels, 3).unwrap();
    let network = dense(Loss::Softmax, &[2, 6, 5, 4, 3], |_| Sigmoid::default().into());
    let flat = |rule| -> Vec<f64> { sweep(&network, rule, &z, &x).unwrap().1.concat().concat() };
    let plain = flat(Rule::Backprop);
    let side = |mu| flat(Rule::Lifted { mu });
    let centred = |mu| flat(Rule::Centred { mu });
    let swept = |mu, sweeps| -> Vec<f64> {
        contrast(&network, ContrastiveOptions { mu, sweeps }, &z, &x).unwrap().1.concat().concat()
    };
    let off = |g: Vec<f64>| g.iter().zip(&plain).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let ratio = |at: &dyn Fn(f64) -> Vec<f64>| off(at(0.02)) / off(at(0.01));
    assert!((ratio(&side) - 2.0).abs() < 0.1, "one side: {}", ratio(&side));
    assert!((ratio(&centred) - 4.0).abs() < 0.2, "centred: {}", ratio(&centred));
    let one = |mu| swept(mu, 1);
    assert!((ratio(&one) - 4.0).abs() < 0.2, "contrast: {}", ratio(&one));
    assert!(off(one(0.01)) < 0.02 * off(side(0.01)));
}

#[test]
fn back_propagated_errors_are_the_multipliers_of_the_forward_pass() {
    let (z, labels) = points::<f64>();
    let x = one_hot(&labels, 3).unwrap();
    for loss in [Loss::Squared, Loss::Logistic, Loss::Softmax] {
        for activation in piecewise() {
            let network = dense(loss, &[2, 6, 5, 3], activation);
            let weights = Splitting { mu: 0.4, rho: 3e4, gamma: 2e4, ..Splitting::default() };
            let mut split = Split::new(&network, &z, &x, weights).unwrap();
            let pass = network.forward(&z);
            assert!((split.value(&network) - 0.4 * losses(&network, &z, &x)).abs() < 1e-10);
            // d_K = mu dl, b_k = A_{k+1}* d_{k+1}, d_k = s'(v_k) b_k
            let mut d = pass.v[2].zeros_like();
            network.loss.gradient(&pass.v[2], &x, &mut d);
            d.data_mut().iter_mut().for_each(|d| *d *= 0.4);
            for k in (0..=2).rev() {
                split.y[k].zip(&d, |_, d| -d / 3e4);
                if k > 0 {
                    let mut back = pass.u[k - 1].zeros_like();
                    network.layers()[k].adjoint(&d, &mut back);
                    split.w[k - 1].zip(&back, |_, b| -b / 2e4);
                    d = network.slope(k - 1, &pass.v[k - 1], &back);
                }
            }
            for k in (0..=2).rev() {
                split.move_v(&network, k);
                let off = max_relative_difference(split.v[k].data(), pass.v[k].data());
                assert!(off < 1e-10, "{loss}, v_{k}: {off:e}");
                if k > 0 {
                    split.move_u(&network, k - 1);
                    let off = max_relative_difference(split.u[k - 1].data(), pass.u[k - 1].data());
                    assert!(off < 1e-10, "{loss}, u_{}: {off:e}", k - 1);
                }
            }
        }
    }
}

fn losses(network: &Network<f64>, z: &Rows<f64>, x: &Rows<f64>) -> f64 {
    network.forward(z).output().rows().zip(x.rows()).map(|(o, x)| network.loss.value(o, x)).sum()
}

#[test]
fn the_first_iteration_of_admm_is_that_of_descent_in_closed_form_and_the_second_is_not() {
    let run = |count, multipliers: Option<Multipliers>| {
        let mut network = dense::<f64>(Loss::Softmax, &[2, 6, 5, 3], relu);
        let options = Splitting { auxiliary: Auxiliary::Persistent, ..Splitting::default() };
        let mut trainer: Box<dyn Trainer<f64>> = match multipliers {
            Some(multipliers) => Box::new(Admm::new(&network, options, multipliers, SAMPLES).unwrap()),
            None => Box::new(ClosedForm::new(&network, options, SAMPLES).unwrap()),
        };
        steps(&mut *trainer, &mut network, count);
        network.blocks().concat()
    };
    for multipliers in [Multipliers::Output, Multipliers::All] {
        assert_eq!(run(1, None), run(1, Some(multipliers)));
        assert!(max_relative_difference(&run(2, None), &run(2, Some(multipliers))) > 1e-6);
    }
}

#[test]
fn constraints_hold_in_the_limit_of_large_weights() {
    let (z, labels) = points::<f64>();
    let x = one_hot(&labels, 3).unwrap();
    let network = dense(Loss::Softmax, &[2, 6, 5, 3], relu);
    let left = |weight: f64| {
        let weights = Splitting { rho: weight, gamma: weight, ..Splitting::default() };
        let mut split = Split::new(&network, &z, &x, weights).unwrap();
        for _ in 0..400 {
            for k in (0..=2).rev() {
                split.move_v(&network, k);
                if k > 0 {
                    split.move_u(&network, k - 1);
                }
            }
        }
        let square = |rows: Rows<f64>| proxlift::real::norm_squared(rows.data());
        let left = (0..=2).map(|k| square(split.affine_residual(&network, k))).sum::<f64>();
        let left = left + (0..2).map(|k| square(split.activation_residual(&network, k))).sum::<f64>();
        (left.sqrt(), split.value(&network), losses(&network, &z, &x))
    };
    let ((near, value, loss), (far, ..)) = (left(1e4), left(1e3));
    assert!((far / near - 10.0).abs() < 0.1, "{far:e} and {near:e}");
    assert!(value < loss && loss - value < 2e-3 * loss, "{value} and {loss}");
}

#[test]
fn energies_never_rise() {
    let rise = |name: &str, steps: &[proxlift::lifting::Step], tolerance: f64| {
        let energies: Vec<f64> = steps.iter().flat_map(|step| step.energy.clone()).collect();
        let worst = energies.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        assert!(worst <= tolerance * energies[0], "{name}: rises by {worst:e} of {}", energies[0]);
        let last = energies[energies.len() - 1];
        assert!(last < 0.95 * energies[0], "{name}: {} to {last}", energies[0]);
    };
    let auxiliary = Auxiliary::Persistent;
    for loss in [Loss::Squared, Loss::Logistic, Loss::Softmax] {
        for activation in piecewise() {
            let mut network = dense::<f64>(loss, &[2, 8, 6, 3], activation);
            let options = Splitting { auxiliary, inner: 2, ..Splitting::default() };
            let mut trainer = ClosedForm::new(&network, options, SAMPLES).unwrap();
            rise("closed form", &steps(&mut trainer, &mut network, 40), 1e-13);
        }
        let smooth = smooth().into_iter().filter(|_| loss == Loss::Softmax);
        for activation in piecewise().into_iter().chain(smooth) {
            let mut network = dense::<f64>(loss, &[2, 8, 6, 3], activation);
            let name = format!("{:?}", network.activations()[0]);
            let options = FenchelOptions { auxiliary, lambda: vec![0.5, 2.0], ..FenchelOptions::default() };
            let mut trainer = Fenchel::new(&network, options, SAMPLES).unwrap();
            rise(&name, &steps(&mut trainer, &mut network, 10), 1e-6);
            let options = LbFbOptions { auxiliary, ..LbFbOptions::default() };
            let mut network = dense::<f64>(loss, &[2, 8, 6, 3], activation);
            rise(&name, &steps(&mut LbFb::new(&network, options, SAMPLES).unwrap(), &mut network, 40), 1e-6);
        }
    }
}

fn right<T: Real>(network: &Network<T>) -> usize {
    let (z, labels) = points::<T>();
    let best = |row: &[T]| {
        row.iter().enumerate().max_by(|a, b| a.1.partial_cmp(b.1).unwrap()).map(|(i, _)| i).unwrap()
    };
    network.forward(&z).output().rows().zip(labels).filter(|(row, label)| best(row) == *label).count()
}

#[test]
fn every_trainer_learns_the_spiral() {
    let fresh = || dense::<f32>(Loss::Softmax, &[2, 16, 12, 3], relu);
    let network = fresh();
    let auxiliary = Auxiliary::Persistent;
    let splitting = Splitting { mu: 1.0, inner: 4, proximal: 0.1, ..Splitting::default() };
    let rate = Rate { start: 0.01, schedule: Schedule::Constant };
    let descent = Descent { metric: Metric::Diagonal, momentum: 0.9, beta2: 0.99, rate };
    let trainers: Vec<(&str, usize, Box<dyn Trainer<f32>>)> = vec![
        (
            "contrastive",
            300,
            Box::new(Contrastive::new(&network, ContrastiveOptions::default(), descent).unwrap()),
        ),
        ("fenchel", 300, Box::new(Fenchel::new(&network, FenchelOptions::default(), SAMPLES).unwrap())),
        (
            "mac",
            600,
            Box::new(LbFb::new(&network, LbFbOptions { inner: 4, ..LbFbOptions::mac() }, SAMPLES).unwrap()),
        ),
        ("closed form", 300, Box::new(ClosedForm::new(&network, splitting, SAMPLES).unwrap())),
        (
            "admm, output",
            300,
            Box::new(
                Admm::new(&network, Splitting { auxiliary, ..splitting }, Multipliers::Output, SAMPLES)
                    .unwrap(),
            ),
        ),
        (
            "admm, all",
            300,
            Box::new(
                Admm::new(&network, Splitting { auxiliary, ..splitting }, Multipliers::All, SAMPLES).unwrap(),
            ),
        ),
    ];
    let mut report = String::new();
    for (name, count, mut trainer) in trainers {
        let mut network = fresh();
        let losses = steps(&mut *trainer, &mut network, count);
        let (first, last) = (losses[0].loss, losses[count - 1].loss);
        report += &format!("{name}: {} of {SAMPLES}, loss {first:.3} to {last:.3}\n", right(&network));
        if right(&network) < SAMPLES - 2 {
            report += "  too few\n";
        }
    }
    assert!(!report.contains("too few"), "{report}");
}

#[test]
fn what_has_no_closed_form_is_refused() {
    let said =
        |network: &Network<f64>, options| ClosedForm::new(network, options, 1).err().unwrap().to_string();
    let options = Splitting::default();
    let soft = dense(Loss::Softmax, &[2, 4, 3], |n| Softmax::new(n).unwrap().into());
    assert!(said(&soft, options).contains("piecewise-linear activations, but layer 0"));
    let network = dense(Loss::Softmax, &[2, 4, 3], relu);
    assert!(said(&network, Splitting { rho: 0.0, ..options }).contains("rho is 0"));
    assert!(said(&network, Splitting { memory: 1.0, ..options }).contains("memory is 1"));
    let admm = Admm::new(&network, options, Multipliers::All, 1).err().unwrap().to_string();
    assert!(admm.contains("never used"), "{admm}");
    let lambda = vec![1.0, 2.0];
    let fenchel = Fenchel::new(&network, FenchelOptions { lambda, ..FenchelOptions::default() }, 1);
    assert!(fenchel.err().unwrap().to_string().contains("2 weights given for 1 layers"));
    let (z, x) = (Rows::zeros(1, 2), one_hot(&[0], 3).unwrap());
    let zero = ContrastiveOptions { mu: 0.0, sweeps: 1 };
    assert!(contrast(&network, zero, &z, &x).err().unwrap().to_string().contains("above zero"));
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut network = dense::<f32>(Loss::Softmax, &[2, 90, 70, 3], relu);
            let options = Splitting { inner: 2, ..Splitting::default() };
            steps(&mut ClosedForm::new(&network, options, SAMPLES).unwrap(), &mut network, 3);
            let options = FenchelOptions { steps: 2, ..FenchelOptions::default() };
            steps(&mut Fenchel::new(&network, options, SAMPLES).unwrap(), &mut network, 2);
            network.blocks().concat()
        })
    };
    let one = run(1);
    assert!(one.iter().all(|w| w.is_finite()));
    assert!(run(2) == one && run(3) == one);
}
