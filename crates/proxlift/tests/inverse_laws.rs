//! The operators and data terms of inverse problems keep their laws.

use proxlift::Real;
use proxlift::fixed_point::Conjugate;
use proxlift::laws::{
    adjoint_mismatch, fenchel_young_mismatch, firm_expansion, moreau_mismatch, prox_optimality_gap,
    pullback_mismatch, random_field, resolvent_mismatch,
};
use proxlift::operator::{
    Blur, Composed, ConjugateGradients, Downsampling, FiniteDifferences, LinearOperator, Mask, Mirror,
    NormParams, PowerState, Resolvent, Stacked, Window, spectral_norm,
};
use proxlift::prox::{
    AbsoluteDistance, Conjugated, Joined, KullbackLeibler, LeastSquares, PiecewiseLinear, Prox,
    SquaredDistance,
};

/// Without symmetry, so that a flipped kernel is seen.
const KERNEL: [f64; 15] = [0.1, 0.2, 0.0, 0.05, 0.1, 0.3, 0.4, -0.1, 0.0, 0.02, 0.0, 0.1, 0.03, 0.0, 0.1];

fn blur(channels: usize, size: (usize, usize)) -> Blur {
    Blur::new(&KERNEL, (3, 5), channels, size).unwrap()
}

#[test]
fn a_blur_is_the_convolution_that_it_says() {
    for (h, w) in [(3, 5), (8, 7), (7, 8), (6, 10)] {
        let x = random_field::<f64>(2 * h * w, 1);
        let mut y = vec![f64::NAN; x.len()];
        blur(2, (h, w)).apply(&x, &mut y);
        for (c, p) in (0..2).flat_map(|c| (0..h * w).map(move |p| (c, p))) {
            let from = |t: usize| {
                let (ty, tx) = (t / 5, t % 5);
                c * h * w + (p / w + h + 1 - ty) % h * w + (p % w + w + 2 - tx) % w
            };
            let direct: f64 = (0..15).map(|t| KERNEL[t] * x[from(t)]).sum();
            assert!((y[c * h * w + p] - direct).abs() < 1e-13, "{h} x {w}");
        }
    }
}

/// All operators of pictures with sides of 12 and 18 pixels.
fn operators<T: Real>() -> Vec<(&'static str, Box<dyn LinearOperator<T>>)> {
    let size = (12, 18);
    let differences = FiniteDifferences::new(1, 12, 18).unwrap();
    let scene = blur(1, Window::new(1, size, 4).unwrap().scene());
    let seen = Composed::new::<T>(Window::new(1, size, 4).unwrap(), scene.clone()).unwrap();
    let mirrored = Composed::new::<T>(seen.clone(), Mirror::new(1, size, 4).unwrap()).unwrap();
    vec![
        ("blur", Box::new(blur(3, size))),
        ("halved", Box::new(Downsampling::new(2, &KERNEL, (3, 5), 3, size).unwrap())),
        ("a third", Box::new(Downsampling::new(3, &KERNEL, (3, 5), 1, size).unwrap())),
        ("mask", Box::new(Mask::new((0..216).map(|i| i % 3 == 1).collect()).unwrap())),
        ("mosaic", Box::new(Mask::mosaic("GRBG", size).unwrap())),
        ("window", Box::new(Window::new(2, size, 5).unwrap())),
        ("mirror", Box::new(Mirror::new(2, size, 25).unwrap())),
        ("seen", Box::new(seen)),
        ("mirrored", Box::new(mirrored)),
        ("stacked", Box::new(Stacked::new::<T>(blur(1, size), differences).unwrap())),
    ]
}

#[test]
fn adjoints_are_exact() {
    for (name, op) in operators::<f64>() {
        assert!(adjoint_mismatch(&*op, 3) <= 1e-14, "{name}");
    }
    for (name, op) in operators::<f32>() {
        assert!(adjoint_mismatch(&*op, 3) <= 2e-6, "{name}");
    }
}

#[test]
fn norms_are_those_of_the_power_iteration() {
    let size = (12, 18);
    let third = Downsampling::new(3, &KERNEL, (3, 5), 1, size).unwrap();
    let params = NormParams { tolerance: 1e-9, max_iterations: 20_000, min_iterations: 1 };
    let powered = |op: &dyn LinearOperator<f64>| spectral_norm(op, &mut PowerState::new(op, 1), &params).norm;
    assert!((powered(&blur(1, size)) / blur(1, size).norm() - 1.0).abs() < 1e-6);
    assert!((powered(&third) / third.norm() - 1.0).abs() < 1e-6);
}

fn resolvents_solve<T: Real>(tolerance: f64) {
    let size = (12, 18);
    let window = Window::new(1, size, 4).unwrap();
    let scene = blur(1, window.scene());
    let seen = Composed::new::<T>(window, scene.clone()).unwrap();
    let all: Vec<(&str, Box<dyn Resolvent<T>>)> = vec![
        ("blur", Box::new(blur(2, size))),
        ("halved", Box::new(Downsampling::new(2, &KERNEL, (3, 5), 3, size).unwrap())),
        ("a third", Box::new(Downsampling::new(3, &KERNEL, (3, 5), 1, size).unwrap())),
        ("mosaic", Box::new(Mask::mosaic("rggb", size).unwrap())),
        ("by conjugate gradients", Box::new(ConjugateGradients::new::<T>(seen.clone()))),
        ("the same with a neighbour", Box::new(ConjugateGradients::new::<T>(seen).near::<T, _>(scene))),
    ];
    for (name, op) in all {
        for tau in [0.01, 1.0, 30.0] {
            let mismatch = resolvent_mismatch(&*op, T::of(tau), 5);
            let allowed = if name.contains("with") || name.contains("by") { 2e-6f64 } else { tolerance };
            assert!(mismatch <= allowed.max(tolerance), "{name}, tau {tau}: {mismatch:e}");
        }
    }
}

#[test]
fn resolvents_solve_their_equations() {
    resolvents_solve::<f64>(1e-12);
    resolvents_solve::<f32>(1e-4);
}

/// With counts of zero among them.
fn counts<T: Real>(len: usize) -> Vec<T> {
    random_field::<T>(len, 9).into_iter().map(|y| (y * T::of(2.0)).max(T::zero())).collect()
}

fn data_terms<T: Real>(len: usize) -> Vec<(&'static str, Box<dyn Prox<T>>)> {
    let y = random_field::<T>(len, 8);
    let scaled = |mut psi: Box<dyn Prox<T>>| {
        psi.scale(T::of(1.7));
        psi
    };
    let squared = SquaredDistance::new(y.clone(), T::of(2.3)).unwrap();
    let absolute = AbsoluteDistance::new(y.clone(), T::of(0.4)).unwrap();
    let counted = KullbackLeibler::new(counts(len), T::of(1.6)).unwrap();
    let (first, rest) = (len / 2, len - len / 2);
    let joined = Joined::new(
        KullbackLeibler::new(counts(first), T::of(0.7)).unwrap(),
        first,
        SquaredDistance::new(random_field(rest, 7), T::one()).unwrap(),
    );
    vec![
        ("squared", Box::new(squared.clone())),
        ("squared at a contrast", scaled(Box::new(squared))),
        ("absolute", Box::new(absolute.clone())),
        ("absolute at a contrast", scaled(Box::new(absolute))),
        ("counts", Box::new(counted.clone())),
        ("counts at a contrast", scaled(Box::new(counted))),
        ("joined", Box::new(joined)),
        ("conjugated", scaled(Box::new(Conjugated(squared_at(len))))),
        ("of a network", scaled(Box::new(learned(len)))),
    ]
}

fn squared_at<T: Real>(len: usize) -> SquaredDistance<T> {
    SquaredDistance::new(random_field(len, 9), T::of(0.8)).unwrap()
}

/// Two features, each twice.
fn learned<T: Real>(len: usize) -> Conjugate<T> {
    let of = |numbers: &[f64]| numbers.iter().map(|&x| T::of(x)).collect();
    let s = PiecewiseLinear::new(2, of(&[0.1, 0.5, 0.2, 0.3]), of(&[1.0, 0.4, 0.1, 0.3, 0.9, 0.2])).unwrap();
    Conjugate::new(s, T::of(0.7), len / 4)
}

fn laws_hold<T: Real>(name: &str, psi: &dyn Prox<T>, len: usize, tolerance: f64) {
    for tau in [1.0, 0.3, 2.5] {
        let (tau, v) = (T::of(tau), random_field::<T>(len, 17));
        let found = [
            ("Moreau", moreau_mismatch(psi, tau, &v)),
            ("firmly non-expansive", firm_expansion(psi, tau, &v, 3)),
            ("Fenchel-Young", fenchel_young_mismatch(psi, tau, &v, 5)),
            ("optimality", prox_optimality_gap(psi, tau, &v, 6)),
        ];
        for (law, mismatch) in found {
            assert!(mismatch <= tolerance, "{law}, {name}: {mismatch:e}");
        }
    }
}

#[test]
fn data_terms_keep_the_laws() {
    for (name, psi) in data_terms::<f64>(24) {
        laws_hold(name, &*psi, 24, 1e-12);
        let pullback = pullback_mismatch(&*psi, 0.7, &random_field(24, 3), 4);
        assert!(pullback <= 1e-6, "{name}: {pullback:e}");
    }
    for (name, psi) in data_terms::<f32>(24) {
        laws_hold(name, &*psi, 24, 2e-5);
    }
}

#[test]
fn least_squares_keep_the_laws() {
    // A kernel whose spectrum has no zero, so that the conjugate is finite.
    let blur = Blur::new(&[0.1, 0.7, 0.2], (1, 3), 2, (3, 4)).unwrap();
    let mask = Mask::new((0..24).map(|i| i % 5 != 0).collect()).unwrap();
    let third = Downsampling::new(2, &[0.1, 0.7, 0.2], (1, 3), 1, (4, 6)).unwrap();
    let y = random_field::<f64>(24, 2);
    let mut contrast = LeastSquares::new(blur.clone(), y.clone()).unwrap();
    contrast.scale(1.7);
    let all: Vec<(&str, Box<dyn Prox<f64>>)> = vec![
        ("blur", Box::new(LeastSquares::new(blur, y.clone()).unwrap())),
        ("blur at a contrast", Box::new(contrast)),
        ("mask", Box::new(LeastSquares::new(mask, y.clone()).unwrap())),
        ("enlarging", Box::new(LeastSquares::new(third, y[..6].to_vec()).unwrap())),
    ];
    for (name, psi) in all {
        laws_hold(name, &*psi, 24, 1e-7);
        assert!(pullback_mismatch(&*psi, 0.7, &random_field(24, 3), 4) <= 1e-6, "{name}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let told = |result: proxlift::Result<Blur>| result.unwrap_err().to_string();
    assert!(told(Blur::new(&[1.0; 15], (3, 5), 1, (2, 9))).contains("more than the picture"));
    assert!(told(Blur::new(&[], (0, 0), 1, (2, 9))).contains("0 x 0"));
    assert!(told(Blur::new(&[f64::NAN], (1, 1), 1, (2, 9))).contains("finite"));
    assert!(Downsampling::new(2, &[1.0], (1, 1), 1, (3, 4)).unwrap_err().to_string().contains("divide"));
    assert!(Mask::new(vec![false; 3]).unwrap_err().to_string().contains("no known pixel"));
    assert!(Mask::mosaic("rgb", (2, 2)).unwrap_err().to_string().contains("four letters"));
    assert!(KullbackLeibler::new(vec![-1.0f64], 1.0).unwrap_err().to_string().contains("negative"));
    assert!(LeastSquares::new(blur(1, (3, 5)), vec![0.0f64; 3]).unwrap_err().to_string().contains("data"));
}
