//! Sweeps that compute features again, and arithmetic that is not exact.

use proxlift::laws::random_field;
use proxlift::lifting::{Affine, Dense, Imprecise, Loss, Network, Rows, Rule, sweep, sweep_recomputing};
use proxlift::prox::{BoxClip, Relu};
use proxlift::random::seeded;

fn chain(depth: usize) -> Network<f64> {
    let mut rng = seeded(3);
    let mut network = Network::new(Loss::Softmax);
    let mut width = 7;
    for k in 0..depth {
        let map = Dense::random(width, 5 + k % 3, 1.2, &mut rng).unwrap();
        width = map.outputs();
        network = if k % 2 == 0 {
            network.layer(map, Relu)
        } else {
            network.layer(map, BoxClip::symmetric(vec![0.7]).unwrap())
        };
    }
    network.output(Dense::random(width, 3, 1.0, &mut rng).unwrap()).unwrap()
}

fn batch() -> (Rows<f64>, Rows<f64>) {
    let x = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5], [0.0, 1.0, 0.0]].concat();
    (Rows::new(7, random_field(4 * 7, 1)).unwrap(), Rows::new(3, x).unwrap())
}

#[test]
fn features_computed_again_give_the_same_bits() {
    let (z, x) = batch();
    for depth in [1, 2, 5, 9] {
        let network = chain(depth);
        for rule in
            [Rule::Backprop, Rule::StraightThrough, Rule::Lifted { mu: 0.5 }, Rule::Centred { mu: 2.0 }]
        {
            let whole = sweep(&network, rule, &z, &x).unwrap();
            for every in [1, 2, 3, 4, 9, 100] {
                assert_eq!(
                    sweep_recomputing(&network, rule, &z, &x, every).unwrap(),
                    whole,
                    "{rule:?}, {every}"
                );
            }
        }
        let said = sweep_recomputing(&network, Rule::Backprop, &z, &x, 0).unwrap_err().to_string();
        assert!(said.contains("0th layer"), "{said}");
    }
}

#[test]
fn straight_through_is_back_propagation_where_activations_are_the_identity() {
    let (z, x) = batch();
    let mut rng = seeded(4);
    let network = Network::new(Loss::Softmax)
        .layer(Dense::random(7, 6, 1.0, &mut rng).unwrap(), BoxClip::symmetric(vec![1e6]).unwrap());
    let network = network.output(Dense::random(6, 3, 1.0, &mut rng).unwrap()).unwrap();
    let gradients = |rule| sweep(&network, rule, &z, &x).unwrap();
    assert_eq!(gradients(Rule::StraightThrough), gradients(Rule::Backprop));
}

#[test]
fn few_bits_are_few_levels_and_noise_repeats() {
    let dense = |rng: &mut _| Dense::<f64>::random(9, 4, 1.0, rng).unwrap();
    let exact = dense(&mut seeded(5));
    let u = Rows::new(9, random_field(9 * 20, 6)).unwrap();
    let apply = |map: &dyn Affine<f64>| {
        let mut v = Rows::zeros(20, 4);
        map.apply(&u, &u, &mut v);
        v
    };
    let exactly = apply(&exact);
    let away = |bits| {
        let v = apply(&Imprecise::new(dense(&mut seeded(5)), bits, 0.0, 0).unwrap());
        let pairs = v.data().iter().zip(exactly.data());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert_eq!(away(None), 0.0);
    // Half a level of every input, times the weights.
    let most = u.data().iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let weights: f64 = exact.parameters()[0].iter().map(|w| w.abs()).sum();
    for bits in [3, 8, 12] {
        let level = most / f64::from((1 << (bits - 1)) - 1);
        assert!(away(Some(bits)) > 0.0 && away(Some(bits)) < 0.5 * level * weights, "{bits} bits");
    }
    let d = Rows::new(4, random_field(4 * 20, 7)).unwrap();
    let back = |noise, seed| {
        let map = Imprecise::new(dense(&mut seeded(5)), None, noise, seed).unwrap();
        let mut backs = vec![Rows::zeros(20, 9), Rows::zeros(20, 9)];
        backs.iter_mut().for_each(|back| map.adjoint(&d, back));
        backs
    };
    let square = |a: &Rows<f64>, b: &Rows<f64>| {
        a.data().iter().zip(b.data()).map(|(a, b)| (a - b).powi(2)).sum::<f64>()
    };
    let (plain, noisy) = (back(0.0, 1), back(0.5, 1));
    assert_eq!(noisy, back(0.5, 1));
    assert!(noisy[0] != noisy[1] && noisy != back(0.5, 2));
    let share = (square(&noisy[0], &plain[0]) / square(&plain[0], &Rows::zeros(20, 9))).sqrt();
    assert!((share - 0.5).abs() < 0.1, "noise of {share}");
    assert!(Imprecise::new(exact.clone(), Some(1), 0.0, 0).err().unwrap().to_string().contains("1 bits"));
    assert!(Imprecise::new(exact, None, f64::NAN, 0).err().unwrap().to_string().contains("noise"));
}
