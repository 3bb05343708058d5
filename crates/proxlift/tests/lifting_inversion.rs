//! Inversion of networks: gradients, descent, recovery, and where both methods must agree with a convex solver.

use proxlift::laws::{gradient_mismatch, max_relative_difference, random_field};
use proxlift::lifting::{
    ByProx, Data, Dense, Inversion, InversionOptions, InversionStop, Inverted, Loss, Near, Network,
    Regulariser, Rows, Variation,
};
use proxlift::network::{self, Architecture};
use proxlift::prox::{BoxClip, Identity, PiecewiseLinear, Relu, SoftThreshold};
use proxlift::solver::TotalVariation;

const SAMPLES: usize = 2;

fn scaled(len: usize, scale: f64, seed: u64) -> Vec<f64> {
    random_field::<f64>(len, seed).iter().map(|w| scale * w).collect()
}

fn rows(width: usize, seed: u64) -> Rows<f64> {
    Rows::new(width, random_field(SAMPLES * width, seed)).unwrap()
}

/// A map near the identity: safely invertible.
fn near_identity(n: usize, seed: u64) -> Dense<f64> {
    let mut weights = scaled(n * n, 0.3 / (n as f64).sqrt(), seed);
    (0..n).for_each(|i| weights[i * n + i] += 1.0);
    Dense::new(n, weights, scaled(n, 0.1, seed + 50)).unwrap()
}

fn identity(n: usize) -> Dense<f64> {
    let weights = (0..n * n).map(|i| if i % (n + 1) == 0 { 1.0 } else { 0.0 }).collect();
    Dense::new(n, weights, vec![0.0; n]).unwrap()
}

/// Strictly increasing, so that it can be inverted.
fn leaky(features: usize) -> PiecewiseLinear<f64> {
    PiecewiseLinear::new(1, vec![0.5; features], vec![[1.0, 0.5]; features].concat()).unwrap()
}

fn invertible(n: usize) -> Network<f64> {
    let network =
        Network::new(Loss::Squared).layer(near_identity(n, 1), leaky(n)).layer(near_identity(n, 2), leaky(n));
    network.output(near_identity(n, 3)).unwrap()
}

fn denoiser() -> Network<f64> {
    let sizes = Architecture { depth: 5, features: 4, kernel: 3, channels: 1 };
    let denoiser = network::Network::glorot(sizes, 0.1, 3).unwrap();
    Network::from_denoiser(&denoiser, 8, 7).unwrap()
}

fn networks() -> Vec<Network<f64>> {
    let relu =
        Network::new(Loss::Squared).layer(near_identity(5, 1), Relu).layer(near_identity(5, 2), leaky(5));
    let soft = SoftThreshold::new(vec![0.1]).unwrap();
    let soft = Network::new(Loss::Logistic).layer(near_identity(5, 6), soft);
    vec![
        invertible(6),
        relu.output(near_identity(5, 4)).unwrap(),
        soft.output(near_identity(5, 7)).unwrap(),
        denoiser(),
    ]
}

fn outputs(network: &Network<f64>) -> Rows<f64> {
    let width = network.layers()[network.depth()].outputs();
    match network.loss {
        Loss::Squared => rows(width, 9),
        _ => Rows::new(width, (0..SAMPLES * width).map(|i| (i % 4) as f64 / 3.0).collect()).unwrap(),
    }
}

fn nothing() -> ByProx<Identity> {
    ByProx(Identity)
}

fn never_rises(found: &Inverted<f64>) {
    let (first, last) = (found.history[0].energy, found.history[found.history.len() - 1].energy);
    let rise = found.history.windows(2).map(|pair| pair[1].energy - pair[0].energy).fold(0.0, f64::max);
    assert!(rise <= 1e-12 * first, "the energy rises by {rise:e} of {first:e}");
    assert!(last < first, "{first} to {last}");
}

#[test]
fn gradients_by_the_input_are_those_of_finite_differences() {
    for network in networks() {
        let (inputs, y) = (network.layers()[0].inputs(), outputs(&network));
        let z = rows(inputs, 20);
        let mut u = network.forward(&rows(inputs, 21)).u;
        u.iter_mut().for_each(|u| u.data_mut().iter_mut().for_each(|u| *u *= 0.9));
        let nothing = nothing();
        let options = InversionOptions { mu: 0.7, ..InversionOptions::default() };
        let activation = Data::Activation(BoxClip::symmetric(vec![10.0]).unwrap().into());
        for data in [Data::Loss, activation] {
            let problem = Inversion::new(&network, &y, &nothing, options).unwrap().with_data(data).unwrap();
            let at = |z: &[f64]| Rows::new(inputs, z.to_vec()).unwrap();
            let lifted = gradient_mismatch(
                |z| problem.energy(&at(z), &u),
                problem.z_gradient(&z, &u).data(),
                z.data(),
                1,
            );
            let through =
                gradient_mismatch(|z| problem.objective(&at(z)), problem.gradient(&z).data(), z.data(), 2);
            assert!(lifted < 1e-7 && through < 1e-6, "{lifted:e}, {through:e}");
        }
    }
}

#[test]
fn energies_never_rise_with_any_regulariser() {
    for network in networks() {
        let (inputs, y) = (network.layers()[0].inputs(), outputs(&network));
        let mut regularisers: Vec<Box<dyn Regulariser<f64>>> = vec![
            Box::new(ByProx(SoftThreshold::new(vec![1.0]).unwrap())),
            Box::new(ByProx(BoxClip::interval(vec![0.0], vec![1.0]).unwrap())),
            Box::new(Near(rows(inputs, 4))),
        ];
        if inputs == 56 {
            regularisers.push(Box::new(Variation::new((1, 8, 7), TotalVariation::Isotropic).unwrap()));
        }
        for regulariser in &regularisers {
            let options =
                InversionOptions { alpha: 0.1, tolerance: 0.0, passes: 150.0, ..InversionOptions::default() };
            let problem = Inversion::new(&network, &y, &**regulariser, options).unwrap();
            let start = rows(inputs, 5);
            for found in [problem.lifted(&start).unwrap(), problem.descent(&start).unwrap()] {
                never_rises(&found);
                let last = found.history[found.history.len() - 1];
                assert!((last.objective - problem.objective(&found.z)).abs() < 1e-9 * last.objective);
            }
        }
    }
}

#[test]
fn what_an_invertible_network_was_given_is_found() {
    let network = invertible(6);
    let (truth, nothing) = (rows(6, 30), nothing());
    let y = network.forward(&truth).output().clone();
    let options =
        InversionOptions { mu: 1.0, tolerance: 0.0, passes: 20_000.0, ..InversionOptions::default() };
    let problem = Inversion::new(&network, &y, &nothing, options).unwrap();
    let start = Rows::zeros(SAMPLES, 6);
    for found in [problem.lifted(&start).unwrap(), problem.descent(&start).unwrap()] {
        let away = max_relative_difference(found.z.data(), truth.data());
        assert!(away < 1e-5, "{away:e} after {:?}", found.history.last());
    }
}

#[test]
fn what_a_denoiser_was_given_is_explained() {
    let (network, nothing) = (denoiser(), nothing());
    let truth = rows(56, 40);
    let y = network.forward(&truth).output().clone();
    let options = InversionOptions { tolerance: 0.0, passes: 4000.0, ..InversionOptions::default() };
    let problem = Inversion::new(&network, &y, &nothing, options).unwrap();
    for found in [problem.lifted(&y).unwrap(), problem.descent(&y).unwrap()] {
        let (first, last) = (found.history[0].misfit, found.history[found.history.len() - 1].misfit);
        assert!(last < 1e-4 * first, "{first:e} to {last:e}");
        assert!(found.stop == InversionStop::Settled || found.history.last().unwrap().passes >= 4000.0);
    }
}

/// `alpha ||z||_1 + 1/2 ||u - z||^2 + mu B(y, W u + b)` is convex in both together: forward-backward on both at once, with
/// formulas of its own, finds the same point.
#[test]
fn one_layer_agrees_with_a_direct_convex_solve() {
    let n = 5;
    let map = near_identity(n, 12);
    let (w, b) = (scaled(n * n, 0.3 / (n as f64).sqrt(), 12), scaled(n, 0.1, 62));
    let entry = |i: usize, j: usize| w[i * n + j] + if i == j { 1.0 } else { 0.0 };
    let network = Network::new(Loss::Squared).layer(identity(n), Identity).output(map).unwrap();
    let y = network.activate_output(&rows(n, 13));
    let l1 = ByProx(SoftThreshold::new(vec![1.0]).unwrap());
    let (mu, alpha) = (2.0, 0.05);
    let options = InversionOptions { mu, alpha, tolerance: 0.0, passes: 6000.0 };
    let problem = Inversion::new(&network, &y, &l1, options).unwrap();
    let found = problem.with_data(Data::Activation(Relu.into())).unwrap().lifted(&rows(n, 14)).unwrap();

    for s in 0..SAMPLES {
        let (mut z, mut u) = (vec![0.0; n], vec![0.0; n]);
        for _ in 0..40_000 {
            let d: Vec<f64> = (0..n)
                .map(|i| {
                    let v = b[i] + (0..n).map(|j| entry(i, j) * u[j]).sum::<f64>();
                    mu * (v.max(0.0) - y.row(s)[i])
                })
                .collect();
            let step = 0.05;
            let by_u: Vec<f64> =
                (0..n).map(|j| u[j] - z[j] + (0..n).map(|i| entry(i, j) * d[i]).sum::<f64>()).collect();
            for j in 0..n {
                let moved = z[j] - step * (z[j] - u[j]);
                u[j] -= step * by_u[j];
                z[j] = moved.signum() * (moved.abs() - step * alpha).max(0.0);
            }
        }
        let away = max_relative_difference(found.z.row(s), &z);
        assert!(away < 1e-5, "sample {s}: {away:e}");
    }
}

trait ActivateOutput {
    fn activate_output(&self, z: &Rows<f64>) -> Rows<f64>;
}

impl ActivateOutput for Network<f64> {
    /// What the network gives after one more positive part.
    fn activate_output(&self, z: &Rows<f64>) -> Rows<f64> {
        let mut y = self.forward(z).output().clone();
        y.data_mut().iter_mut().for_each(|y| *y = y.max(0.0));
        y
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (network, start) = (denoiser(), rows(56, 1));
            let y = outputs(&network);
            let variation = Variation::new((1, 8, 7), TotalVariation::Anisotropic).unwrap();
            let options =
                InversionOptions { alpha: 0.1, tolerance: 0.0, passes: 60.0, ..InversionOptions::default() };
            Inversion::new(&network, &y, &variation, options).unwrap().lifted(&start).unwrap().z
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let network = invertible(6);
    let (y, nothing) = (rows(6, 1), nothing());
    let said = |options| Inversion::new(&network, &y, &nothing, options).err().unwrap().to_string();
    let default = InversionOptions::default();
    assert!(said(InversionOptions { mu: 0.0, ..default }).contains("mu is 0"));
    assert!(said(InversionOptions { alpha: -1.0, ..default }).contains("alpha is -1"));
    assert!(said(InversionOptions { passes: 0.0, ..default }).contains("passes"));
    let bad = |y: &Rows<f64>, regulariser: &dyn Regulariser<f64>| {
        Inversion::new(&network, y, regulariser, default).err().unwrap().to_string()
    };
    assert!(bad(&rows(5, 1), &nothing).contains("outputs of 5 numbers are given, but the network gives 6"));
    assert!(bad(&y, &Near(rows(5, 1))).contains("2 centres of 5 numbers"));
    let variation = Variation::new((1, 2, 2), TotalVariation::Isotropic).unwrap();
    assert!(bad(&y, &variation).contains("no images of 1 channels and 2 x 2 pixels"));
    let problem = Inversion::new(&network, &y, &nothing, default).unwrap();
    assert!(problem.lifted(&rows(5, 2)).unwrap_err().to_string().contains("the start has 2 samples of 5"));
    let infinite = Rows::new(6, vec![f64::INFINITY; 12]).unwrap();
    assert!(problem.descent(&infinite).unwrap_err().to_string().contains("not finite"));
    assert!(bad(&Rows::zeros(0, 6), &nothing).contains("no output is given"));
    let steep = PiecewiseLinear::new(1, vec![0.5; 6], [1.5, 0.0].repeat(6)).unwrap();
    let refused = Inversion::new(&network, &y, &nothing, default).unwrap();
    let refused = refused.with_data(Data::Activation(steep.into())).err().unwrap().to_string();
    assert!(refused.contains("the last activation has a slope of 1.5"), "{refused}");
    let negative = Rows::new(6, vec![-1.0; 12]).unwrap();
    let problem = Inversion::new(&network, &negative, &nothing, default).unwrap();
    let refused = problem.with_data(Data::Activation(Relu.into()));
    assert!(refused.err().unwrap().to_string().contains("nothing that the last activation can give"));

    let sizes = Architecture { depth: 4, features: 2, kernel: 3, channels: 1 };
    let momentum = network::Network::<f64>::glorot(sizes, 0.1, 0).unwrap();
    let bounded = network::Network { bounded: true, ..momentum };
    assert!(Network::from_denoiser(&bounded, 8, 8).err().unwrap().to_string().contains("plain dual"));
}
