//! The fast engine against the plain one in double precision: every operation, over odd sizes, borders, kernels and
//! channels. Miri runs the test that is named for it (`.ci/miri`).

use proxlift::Real;
use proxlift::engine::{Cpu, Engine, Gradients, Reference, ReverseRule, SampleLoss};
use proxlift::field::{Field, Grid};
use proxlift::network::{Architecture, Network, Unrolling};
use proxlift::operator::Filters;
use proxlift::prox::PiecewiseLinear;
use proxlift::training::Lifted;

/// Numbers in [-1, 1] from a counter, the same on every machine.
fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn network(architecture: Architecture) -> Network<f32> {
    let Architecture { depth, features, kernel, channels } = architecture;
    let count = architecture.layer_parameters();
    let scale = 1.0 / ((channels * kernel * kernel) as f32).sqrt();
    let theta = (0..=depth as u32).map(|k| {
        let weights = numbers(k + 1, count).iter().map(|w| w * scale).collect();
        Filters::new(features, channels, kernel, weights).unwrap()
    });
    let tau = (1..depth).map(|k| 0.3 + 0.01 * k as f32).collect();
    let lambda = (0..features).map(|j| 0.05 + 0.02 * j as f32).collect();
    Network::new(theta.collect(), tau, lambda).unwrap()
}

/// The same with learned activations of four pieces.
fn learned(architecture: Architecture) -> Network<f32> {
    let Network { theta, tau, .. } = network(architecture);
    let features = architecture.features;
    let activation = (1..architecture.depth as u32).map(|k| {
        let knots = numbers(50 + k, 4 * features);
        let knots = knots.iter().enumerate().map(|(i, r)| 0.05 * (i % 4 + 1) as f32 + 0.02 * r);
        let slopes = numbers(70 + k, 5 * features).iter().map(|r| 0.5 + 0.5 * r).collect();
        PiecewiseLinear::new(4, knots.collect(), slopes).unwrap().into()
    });
    let activation = activation.collect();
    Network::with_activations(theta, tau, activation).unwrap()
}

/// With a synthesis of its own in every layer.
fn own_synthesis(network: Network<f32>) -> Network<f32> {
    let mut network = network.with_own_synthesis();
    for (k, synthesis) in (100..).zip(&mut network.synthesis) {
        let others = numbers(k, synthesis.weights().len());
        synthesis.weights_mut().iter_mut().zip(others).for_each(|(w, other)| *w = 0.8 * *w + 0.1 * other);
    }
    network
}

/// Clipped and learned, unrolled from every algorithm, one of them bounded, one with a border, some with a synthesis of their own.
fn family(architecture: Architecture) -> Vec<Network<f32>> {
    let unrolled = |unrolling| Network { unrolling, ..learned(architecture) };
    vec![
        network(architecture),
        learned(architecture),
        Network { border: 2, ..unrolled(Unrolling::Inertial) },
        unrolled(Unrolling::ChambollePock),
        Network { bounded: true, ..unrolled(Unrolling::ChambollePockAccelerated) },
        unrolled(Unrolling::AveragedDualForwardBackward),
        own_synthesis(network(architecture)),
        own_synthesis(unrolled(Unrolling::Inertial)),
        own_synthesis(unrolled(Unrolling::ChambollePockAccelerated)),
    ]
}

fn field(seed: u32, samples: usize, channels: usize, grid: Grid) -> Field<f32> {
    Field::from_planar(samples, channels, grid, &numbers(seed, samples * channels * grid.pixels())).unwrap()
}

/// How near the fast engine is.
const CLOSE: f64 = 1e-5;

#[track_caller]
fn assert_close(what: &str, fast: &[f32], plain: &[f64]) {
    assert_eq!(fast.len(), plain.len());
    let scale = plain.iter().fold(1e-6f64, |m, x| m.max(x.abs()));
    for (i, (f, p)) in fast.iter().zip(plain).enumerate() {
        let off = (f64::from(*f) - p).abs() / scale;
        assert!(off <= CLOSE, "{what}[{i}]: fused {f}, reference {p}, {off:e} of the largest");
    }
}

/// Moves the knots of `net` by a little, away from what they meet on the image `z`: in back-propagation slopes jump there,
/// and a unit that rounding puts on the other side would count as a difference.
fn clear_of_knots(mut net: Network<f32>, z: &Field<f32>) -> Network<f32> {
    const REACH: f64 = 0.004;
    for k in 1..net.theta.len() - 1 {
        let mut lifted = Lifted::new(&net.cast::<f64>(), z.cast(), z.cast()).unwrap();
        lifted.anchor((&Reference, &net.cast()));
        let planar = lifted.v[k].to_planar();
        let (pixels, features) = (z.grid().pixels(), net.architecture().features);
        let functions = net.activation[k - 1].piecewise_mut().unwrap();
        let pieces = functions.pieces();
        for (i, knot) in functions.parts_mut()[0].iter_mut().enumerate() {
            let near = f64::from(*knot);
            let planes = planar.chunks(pixels).skip(i / pieces).step_by(features).flatten();
            let mut met: Vec<f64> = planes.map(|v| v.abs()).filter(|v| (v - near).abs() < REACH).collect();
            met.extend([near - REACH, near + REACH]);
            met.sort_by(f64::total_cmp);
            let widest = met.windows(2).max_by(|a, b| (a[1] - a[0]).total_cmp(&(b[1] - b[0]))).unwrap();
            *knot = (0.5 * (widest[0] + widest[1])) as f32;
        }
    }
    net
}

/// Shapes that exercise every tail: single pixels, rows, columns, widths around the vector length.
fn cases() -> Vec<(Architecture, usize, usize, usize)> {
    let net = |depth, features, kernel, channels| Architecture { depth, features, kernel, channels };
    vec![
        (net(3, 16, 3, 1), 2, 32, 32),
        (net(2, 1, 3, 1), 1, 1, 1),
        (net(4, 5, 3, 3), 3, 7, 5),
        (net(3, 4, 5, 1), 2, 9, 17),
        (net(3, 6, 7, 3), 1, 11, 13),
        (net(2, 3, 7, 1), 1, 2, 1),
        (net(3, 8, 5, 3), 1, 1, 40),
        (net(2, 3, 9, 1), 1, 12, 10),
        (net(2, 4, 11, 1), 1, 9, 13),
        (net(3, 3, 3, 1), 1, 40, 1),
        (net(5, 9, 1, 1), 2, 3, 4),
        (net(2, 17, 3, 1), 1, 33, 31),
        (net(3, 64, 3, 1), 1, 150, 61),
    ]
}

/// Every operation of an engine on a network and its batch, by name.
fn results<T: Real>(
    engine: &dyn Engine<T>,
    net: &Network<T>,
    (z, x, u): (&Field<T>, &Field<T>, &Field<T>),
) -> Vec<(String, Vec<T>)> {
    let (layer, samples) = (net.layer(1), z.samples());
    let (mut analysed, mut residual) = (u.clone(), z.clone());
    engine.analyse(&net.theta[0], z, &mut analysed);
    engine.residual(net.last(), u, z, &mut residual);
    let (mut v, mut r, mut s) = (u.clone(), z.clone(), u.clone());
    engine.layer(layer, u, z, &mut r, &mut v);
    engine.activate(layer, &v, &mut s);
    let (mut back, mut a) = (u.clone(), z.clone());
    engine.pullback(layer, u, &mut a, &mut back);
    let mut output = z.clone();
    engine.denoise(net, z, &mut output);
    let fields = [("L z", analysed), ("L* u - z", residual), ("v", v), ("r", r), ("s(v)", s.clone())];
    let more = [("back", back), ("L* d", a), ("output", output)];
    let fields =
        fields.into_iter().chain(more).map(|(name, field)| (name.to_string(), field.data().to_vec()));
    let mut results: Vec<_> = fields.collect();

    let mut gradient = net.theta[0].clone();
    engine.correlate(T::of(0.7), z, u, &mut gradient);
    results.push(("corr".into(), gradient.weights().to_vec()));
    let mut penalty = vec![0.0; samples];
    engine.bregman(layer, &s, u, &mut penalty);
    results.push(("B".into(), penalty.iter().map(|p| T::of(*p)).collect()));
    // The weight is large, so that v - back keeps its digits.
    let mu = T::of(3.0);
    let rules = [ReverseRule::Backprop, ReverseRule::Lifted { mu }, ReverseRule::Centred { mu }];
    let squared = rules.map(|rule| (rule, SampleLoss::Squared));
    for (rule, of) in squared.into_iter().chain([(ReverseRule::Backprop, SampleLoss::Norm)]) {
        let mut gradients = Gradients { of, ..Gradients::zeros(net, samples).with_activations(net) };
        engine.training_pass(net, rule, z, x, &mut gradients).unwrap();
        let rule = format!("{rule:?} {of}");
        results.push((format!("{rule} loss"), gradients.loss.iter().map(|l| T::of(*l)).collect()));
        for (k, theta) in gradients.theta.iter().enumerate() {
            results.push((format!("{rule} theta_{k}"), theta.weights().to_vec()));
        }
        for (k, synthesis) in gradients.synthesis.iter().enumerate() {
            results.push((format!("{rule} synthesis_{}", k + 1), synthesis.weights().to_vec()));
        }
        for (k, activation) in gradients.activation.into_iter().enumerate() {
            results.push((format!("{rule} knots of {k}"), activation.knots));
            results.push((format!("{rule} slopes of {k}"), activation.slopes));
        }
    }
    results
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn every_operation_equals_the_reference() {
    for (architecture, samples, height, width) in cases() {
        let grid = architecture.grid(height, width).unwrap();
        let z = field(7, samples, architecture.channels, grid);
        let x = field(8, samples, architecture.channels, grid);
        let u = field(9, samples, architecture.features, grid);
        for net in family(architecture) {
            let net = clear_of_knots(net, &z);
            let plain = results(&Reference, &net.cast::<f64>(), (&z.cast(), &x.cast(), &u.cast()));
            for cpu in [Cpu::new(), Cpu::baseline()] {
                let what =
                    format!("{architecture:?} {samples}x{height}x{width} {} {}", net.unrolling, cpu.name());
                let fast = results(&cpu, &net, (&z, &x, &u));
                for ((name, fast), (_, plain)) in fast.iter().zip(&plain) {
                    assert_close(&format!("{what}: {name}"), fast, plain);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn strips_of_a_large_image_give_the_bits_of_the_whole() {
    // A small image; features in many pieces; several groups of layers; many features.
    let shapes =
        [(3, 4, 3, 1, 97, 45), (4, 16, 5, 3, 211, 130), (15, 16, 3, 1, 256, 256), (2, 64, 3, 1, 1000, 300)];
    for (depth, features, kernel, channels, height, width) in shapes {
        let architecture = Architecture { depth, features, kernel, channels };
        for net in family(architecture) {
            let z = field(3, 1, channels, architecture.grid(height, width).unwrap());
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let mut output = z.clone();
                pool.install(|| Cpu::new().denoise(&net, &z, &mut output));
                output
            };
            let whole = run(1);
            if height * width < 50_000 {
                let mut plain = z.cast::<f64>();
                Reference.denoise(&net.cast(), &plain.clone(), &mut plain);
                assert_close(&format!("{architecture:?}"), whole.data(), plain.data());
            }
            for threads in [2, 3, 5, 8] {
                assert_eq!(run(threads).data(), whole.data(), "{architecture:?}: {threads} threads");
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "it has no such instructions")]
fn the_matrix_unit_trains_by_the_gradients_of_the_reference() {
    let Some(cpu) = Cpu::on_matrix_unit() else {
        return eprintln!("SKIPPED: this machine has no matrix unit");
    };
    for (architecture, samples, height, width) in cases() {
        let grid = architecture.grid(height, width).unwrap();
        let z = field(7, samples, architecture.channels, grid);
        let x = field(8, samples, architecture.channels, grid);
        for net in family(architecture) {
            let net = clear_of_knots(net, &z);
            let mu = 0.5;
            for rule in [ReverseRule::Backprop, ReverseRule::Lifted { mu }, ReverseRule::Centred { mu }] {
                let mut fast = Gradients::zeros(&net, samples).with_activations(&net);
                cpu.training_pass(&net, rule, &z, &x, &mut fast).unwrap();
                let (net, mut plain) = (net.cast::<f64>(), Gradients::zeros(&net.cast(), samples));
                let rule = match rule {
                    ReverseRule::Backprop => ReverseRule::Backprop,
                    ReverseRule::Lifted { mu } => ReverseRule::Lifted { mu: f64::from(mu) },
                    ReverseRule::Centred { mu } => ReverseRule::Centred { mu: f64::from(mu) },
                };
                Reference.training_pass(&net, rule, &z.cast(), &x.cast(), &mut plain).unwrap();
                let weights = fast.filters().flat_map(|f| f.weights().to_vec());
                let exact = plain.filters().flat_map(|f| f.weights().to_vec());
                let (mut apart, mut size) = (0.0, 0.0);
                for (fast, exact) in weights.zip(exact) {
                    apart += (f64::from(fast) - exact).powi(2);
                    size += exact.powi(2);
                }
                let what = format!("{architecture:?} {} {rule:?}", net.unrolling);
                assert!(apart <= 0.0025 * size, "{what}: {} apart of {}", apart.sqrt(), size.sqrt());
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn a_training_pass_gives_the_same_bits_for_any_number_of_threads() {
    let architecture = Architecture { depth: 4, features: 8, kernel: 3, channels: 3 };
    let net = learned(architecture);
    let grid = architecture.grid(19, 21).unwrap();
    let (z, x) = (field(3, 7, 3, grid), field(4, 7, 3, grid));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut gradients = Gradients::zeros(&net, 7).with_activations(&net);
        pool.install(|| {
            Cpu::new().training_pass(&net, ReverseRule::Lifted { mu: 0.1 }, &z, &x, &mut gradients)
        })
        .unwrap();
        let theta: Vec<f32> = gradients.theta.iter().flat_map(|t| t.weights().to_vec()).collect();
        (theta, gradients.activation, gradients.loss)
    };
    let one = run(1);
    for threads in [2, 3, 5] {
        assert_eq!(run(threads), one, "{threads} threads");
    }
}

/// What Miri checks: every kernel at the least instruction set, on a picture with ends of rows and blocks. Miri takes a
/// second for what takes a microsecond, so the values are compared elsewhere.
#[test]
fn kernels_stay_in_their_memory_as_miri_sees() {
    if cfg!(miri) {
        // No other thread to wake.
        rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().unwrap();
    }
    let colour = Architecture { depth: 2, features: 2, kernel: 3, channels: 3 };
    let grey = Architecture { depth: 2, features: 1, kernel: 5, channels: 1 };
    let inertial = Network { unrolling: Unrolling::Inertial, border: 1, ..learned(colour) };
    for (net, height, width) in [(inertial, 3, 5), (network(grey), 2, 17)] {
        let architecture = net.architecture();
        let grid = architecture.grid(height, width).unwrap();
        let z = field(7, 1, architecture.channels, grid);
        let u = field(9, 1, architecture.features, grid);
        for (name, values) in results(&Cpu::baseline(), &net, (&z, &z, &u)) {
            assert!(values.iter().all(|v| v.is_finite()), "{name}");
        }
    }
}
