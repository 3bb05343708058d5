//! Every penalty keeps Moreau's identity, Fenchel-Young, optimality, and the derivative rules.

use proxlift::Real;
use proxlift::laws::{
    fenchel_young_mismatch, firm_expansion, gradient_mismatch, max_relative_difference, moreau_mismatch,
    prox_optimality_gap, pullback_mismatch, random_field,
};
use proxlift::prox::{
    BoxClip, GroupL2, Identity, L2Ball, PiecewiseLinear, Prox, Relu, Sigmoid, Simplex, SoftThreshold, Softmax,
};

/// Six planes: one, two, three or six groups fit.
const PLANES: usize = 6;

fn penalties<T: Real>() -> Vec<(&'static str, Box<dyn Prox<T>>)> {
    let t = |values: &[f64]| values.iter().map(|&t| T::of(t)).collect::<Vec<_>>();
    let six = t(&[0.1, 0.0, 0.7, 1.3, 0.4, 2.0]);
    vec![
        ("clip", Box::new(BoxClip::symmetric(t(&[0.6])).unwrap())),
        ("clip per feature", Box::new(BoxClip::symmetric(six.clone()).unwrap())),
        ("interval", Box::new(BoxClip::interval(t(&[-0.2]), t(&[0.9])).unwrap())),
        ("soft", Box::new(SoftThreshold::new(t(&[0.6])).unwrap())),
        ("soft per feature", Box::new(SoftThreshold::new(six.clone()).unwrap())),
        ("ball", Box::new(L2Ball::new(PLANES, PLANES, t(&[1.5])).unwrap())),
        ("ball of pairs", Box::new(L2Ball::new(PLANES, 2, t(&[1.1, 0.0, 0.3])).unwrap())),
        ("group norm", Box::new(GroupL2::new(PLANES, PLANES, t(&[1.5])).unwrap())),
        ("group norm of pairs", Box::new(GroupL2::new(PLANES, 2, t(&[1.1, 0.0, 0.3])).unwrap())),
        ("relu", Box::new(Relu)),
        ("identity", Box::new(Identity)),
        ("simplex", Box::new(Simplex::new(PLANES).unwrap())),
        ("simplex at a contrast", scaled(Simplex::new(PLANES).unwrap())),
        ("softmax", Box::new(Softmax::new(PLANES).unwrap())),
        ("softmax at a contrast", scaled(Softmax::new(PLANES).unwrap())),
        ("sigmoid", Box::new(Sigmoid::default())),
        ("sigmoid at a contrast", scaled(Sigmoid::default())),
        ("learned", Box::new(learned())),
        ("learned clip", Box::new(PiecewiseLinear::clip(six))),
        ("learned clip with knots", Box::new(PiecewiseLinear::clip_with_knots(PLANES, 4, T::of(0.3)))),
    ]
}

fn scaled<T: Real>(mut psi: impl Prox<T> + 'static) -> Box<dyn Prox<T>> {
    psi.scale(T::of(1.7));
    Box::new(psi)
}

/// Activations as training makes them: steep and flat pieces, in the middle and at the end, and knots that meet.
fn learned<T: Real>() -> PiecewiseLinear<T> {
    let knots = [
        [0.2, 0.5, 0.9],
        [0.0, 0.4, 0.4],
        [0.1, 0.7, 1.4],
        [0.3, 0.6, 1.2],
        [0.0, 0.0, 0.8],
        [0.5, 1.0, 2.0],
    ];
    let slopes = [
        [0.9, 0.2, 0.6, 0.1],
        [0.5, 0.7, 0.1, 0.8],
        [1.0, 0.3, 0.0, 0.0],
        [1.0, 1.0, 0.5, 1.0],
        [0.3, 0.9, 0.4, 0.2],
        [0.6, 0.0, 0.4, 0.9],
    ];
    let t = |values: &[f64]| values.iter().map(|&t| T::of(t)).collect::<Vec<_>>();
    PiecewiseLinear::new(3, t(knots.as_flattened()), t(slopes.as_flattened())).unwrap()
}

fn all_laws<T: Real>(tolerance: f64) {
    for (name, psi) in penalties::<T>() {
        let psi = &*psi;
        for (tau, pixels) in [(1.0, 1), (0.3, 3), (2.5, 5), (1.0, 300)] {
            let tau = T::of(tau);
            let v = random_field::<T>(PLANES * pixels, 17 + pixels as u64);
            let moreau = moreau_mismatch(psi, tau, &v);
            assert!(moreau <= tolerance, "Moreau, {name}: {moreau:e}");
            let firm = firm_expansion(psi, tau, &v, 3);
            assert!(firm <= tolerance, "firmly non-expansive, {name}: {firm:e}");
            let young = fenchel_young_mismatch(psi, tau, &v, 5);
            assert!(young <= tolerance, "Fenchel-Young, {name}: {young:e}");
            if pixels <= 5 {
                let gap = prox_optimality_gap(psi, tau, &v, 5);
                assert!(gap <= tolerance, "optimality, {name}: {gap:e}");
            }
        }
    }
}

#[test]
fn laws_hold_in_f64() {
    all_laws::<f64>(1e-13);
}

#[test]
fn laws_hold_in_f32() {
    all_laws::<f32>(2e-5);
}

#[test]
fn derivatives_are_derivatives() {
    for (name, psi) in penalties::<f64>() {
        let psi = &*psi;
        for (tau, pixels) in [(1.0, 1), (0.7, 4), (1.3, 300)] {
            let v = random_field::<f64>(PLANES * pixels, 29);
            let mut u = random_field::<f64>(v.len(), 31);
            psi.prox_in_place(tau, &mut u);
            let mut gradient = vec![f64::NAN; v.len()];
            psi.bregman_gradient(tau, &u, &v, &mut gradient);
            let bregman = |v: &[f64]| psi.bregman(tau, &u, v, &mut vec![0.0; v.len()]);
            let mismatch = gradient_mismatch(bregman, &gradient, &v, 1);
            assert!(mismatch <= 1e-6, "gradient of the Bregman penalty, {name}: {mismatch:e}");
            psi.prox(tau, &v, &mut gradient);
            let q_star = |v: &[f64]| psi.q_star(tau, v, &mut vec![0.0; v.len()]);
            let mismatch = gradient_mismatch(q_star, &gradient, &v, 2);
            assert!(mismatch <= 1e-6, "q* is not the antiderivative of the prox, {name}: {mismatch:e}");
            // A kink within the difference's step of any of many entries would spoil the quotient.
            if pixels <= 4 {
                let mismatch = pullback_mismatch(psi, tau, &v, 3);
                assert!(mismatch <= 1e-6, "pullback, {name}: {mismatch:e}");
            }
        }
    }
}

#[test]
fn partners_are_conjugate() {
    let (v, tau) = (random_field::<f64>(PLANES * 11, 3), 0.4);
    let thresholds = vec![0.1, 0.0, 0.7, 1.3, 0.4, 2.0];
    type Boxed = Box<dyn Prox<f64>>;
    let pairs: [(Boxed, Boxed); 2] = [
        (
            Box::new(BoxClip::symmetric(thresholds.clone()).unwrap()),
            Box::new(SoftThreshold::new(thresholds).unwrap()),
        ),
        (
            Box::new(L2Ball::new(PLANES, 3, vec![0.5, 1.0]).unwrap()),
            Box::new(GroupL2::new(PLANES, 3, vec![0.5, 1.0]).unwrap()),
        ),
    ];
    for (a, b) in &pairs {
        let (mut p, mut w) = (v.clone(), v.clone());
        for (psi, conjugate) in [(a, b), (b, a)] {
            psi.prox_conjugate(tau, &v, &mut p);
            conjugate.prox(tau, &v, &mut w);
            assert!(max_relative_difference(&p, &w) < 1e-14);
            assert_eq!(psi.conjugate_value(&v), conjugate.value(&v));
            assert_eq!(psi.value(&v), conjugate.conjugate_value(&v));
        }
    }
}

#[test]
fn the_bregman_penalty_keeps_its_digits_near_zero() {
    let soft = SoftThreshold::new(vec![0.25f32]).unwrap();
    let v = vec![1000.0f32; 64];
    let mut scratch = vec![0.0; 64];
    // p = 999.75 and u = p + 1/16: B = 64 / 512 exactly, where q(u) and q*(v) are about 3e7 each.
    let u = vec![999.8125f32; 64];
    assert_eq!(soft.bregman(1.0, &u, &v, &mut scratch), 0.125);
    assert_eq!(scratch, vec![999.75f32; 64]);
}

#[test]
fn kinks_belong_to_the_flat_side() {
    let mut out = [f64::NAN; 2];
    BoxClip::symmetric(vec![1.0]).unwrap().pullback(1.0, &[1.0, -1.0], &[5.0, 5.0], &mut out);
    assert_eq!(out, [0.0, 0.0]);
    SoftThreshold::new(vec![0.5]).unwrap().pullback(2.0, &[1.0, -1.0], &[5.0, 5.0], &mut out);
    assert_eq!(out, [0.0, 0.0]);
    Relu.pullback(1.0, &[0.0, -0.0], &[5.0, 5.0], &mut out);
    assert_eq!(out, [0.0, 0.0]);
    L2Ball::new(2, 2, vec![5.0]).unwrap().pullback(1.0, &[3.0, 4.0], &[3.0, 4.0], &mut out);
    assert!(out.iter().all(|out| out.abs() < 1e-15), "nothing leaves along the radius: {out:?}");
}

#[test]
fn nan_stays_visible() {
    for (name, psi) in penalties::<f32>() {
        let mut v = vec![f32::NAN; PLANES];
        psi.prox_in_place(1.0, &mut v);
        assert!(v.iter().all(|v| v.is_nan()), "{name}: {v:?}");
    }
}

/// The l1 norm with a prox that shrinks by half too much.
struct WrongStep(SoftThreshold<f64>);

impl Prox<f64> for WrongStep {
    fn scale(&mut self, factor: f64) {
        self.0.scale(factor);
    }
    fn value(&self, u: &[f64]) -> f64 {
        self.0.value(u)
    }
    fn conjugate_value(&self, w: &[f64]) -> f64 {
        self.0.conjugate_value(w)
    }
    fn prox_in_place(&self, tau: f64, v: &mut [f64]) {
        self.0.prox_in_place(1.5 * tau, v);
    }
    fn pullback(&self, tau: f64, v: &[f64], g: &[f64], out: &mut [f64]) {
        self.0.pullback(0.5 * tau, v, g, out);
    }
}

#[test]
fn the_laws_see_a_wrong_prox() {
    let wrong = WrongStep(SoftThreshold::new(vec![0.6]).unwrap());
    let v = random_field::<f64>(12, 3);
    assert!(moreau_mismatch(&wrong, 1.0, &v) > 1e-3);
    assert!(fenchel_young_mismatch(&wrong, 1.0, &v, 5) > 1e-3);
    assert!(prox_optimality_gap(&wrong, 1.0, &v, 5) > 1e-3);
    assert!(pullback_mismatch(&wrong, 1.0, &v, 5) > 1e-3);
    // A slope above 1 is no prox.
    let steep = PiecewiseLinear::new(1, vec![0.5], vec![1.2, 0.3]).unwrap();
    assert!(firm_expansion(&steep, 1.0, &v, 4) > 1e-3);
}

#[test]
fn clips_each_plane_by_its_own_bounds() {
    let clip = BoxClip::symmetric(vec![1.0, 0.5]).unwrap();
    let mut v = [2.0, -3.0, 0.25, -0.75];
    clip.prox_in_place(7.0, &mut v);
    assert_eq!(v, [1.0, -1.0, 0.25, -0.5]);
    assert_eq!(clip.value(&v), 0.0);
    assert_eq!(clip.value(&[1.1, 0.0, 0.0, 0.0]), f64::INFINITY);
    assert_eq!(clip.conjugate_value(&[2.0, -1.0, 2.0, 0.0]), 4.0);
    assert!(BoxClip::symmetric(vec![1.0f32]).unwrap().value(&[f32::NAN]).is_infinite());
}

#[test]
fn refuses_empty_boxes() {
    assert!(BoxClip::interval(vec![1.0], vec![0.0]).is_err());
    assert!(BoxClip::interval(vec![0.0], vec![f64::INFINITY]).is_err());
    assert!(BoxClip::interval(vec![0.0, 0.0], vec![1.0]).is_err());
    assert!(BoxClip::symmetric(vec![-1.0]).is_err());
}

#[test]
#[should_panic(expected = "3 entries")]
fn panics_when_the_planes_do_not_fit() {
    BoxClip::symmetric(vec![1.0, 0.5]).unwrap().prox_in_place(1.0, &mut [0.0; 3]);
}

#[test]
fn shrinks_each_plane_by_its_own_threshold() {
    let soft = SoftThreshold::new(vec![1.0, 0.5]).unwrap();
    let mut v = [3.0, -1.5, 0.75, -3.0];
    soft.prox_in_place(2.0, &mut v);
    assert_eq!(v, [1.0, 0.0, 0.0, -2.0]);
    assert_eq!(soft.value(&[1.0, -1.0, 2.0, -4.0]), 5.0);
    assert_eq!(soft.conjugate_value(&[1.0, -1.0, 0.5, 0.0]), 0.0);
    assert_eq!(soft.conjugate_value(&[1.0, -1.0, 0.6, 0.0]), f64::INFINITY);
}

#[test]
fn projects_each_pixel_of_each_group() {
    let ball = L2Ball::new(4, 2, vec![1.0, 10.0]).unwrap();
    // Two pixels: (3, 4) and (0.3, 0.4) in the first group, (3, 4) and (0, 20) in the second.
    let mut v = [3.0, 0.3, 4.0, 0.4, 3.0, 0.0, 4.0, 20.0];
    ball.prox_in_place(5.0, &mut v);
    assert!(
        v.iter()
            .zip([0.6, 0.3, 0.8, 0.4, 3.0, 0.0, 4.0, 10.0])
            .all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-15)
    );
    assert_eq!(ball.value(&v), 0.0);
    assert_eq!(ball.value(&[3.0, 0.3, 4.0, 0.4, 3.0, 0.0, 4.0, 20.0]), f64::INFINITY);
    assert!((ball.conjugate_value(&[3.0, 0.3, 4.0, 0.4, 3.0, 0.0, 4.0, 20.0]) - 255.5).abs() < 1e-12);
}

#[test]
fn shrinks_whole_groups() {
    let norm = GroupL2::new(2, 2, vec![0.5]).unwrap();
    let mut v = [3.0, 0.3, 4.0, 0.4];
    assert_eq!(norm.value(&v), 2.75);
    norm.prox_in_place(5.0, &mut v);
    assert_eq!(v, [1.5, 0.0, 2.0, 0.0]);
}

#[test]
fn projects_each_pixel_on_the_simplex() {
    let simplex = Simplex::new(3).unwrap();
    // Two pixels: (0.9, 0.5, -2) and (7, 0, 0).
    let mut v = [0.9, 7.0, 0.5, 0.0, -2.0, 0.0];
    assert_eq!(simplex.conjugate_value(&v), 7.9);
    simplex.prox_in_place(3.0, &mut v);
    assert!(
        v.iter().zip([0.7, 1.0, 0.3, 0.0, 0.0, 0.0]).all(|(a, b): (&f64, f64)| (a - b).abs() < 1e-15),
        "{v:?}"
    );
    assert_eq!(simplex.value(&v), 0.0);
    assert_eq!(simplex.value(&[0.5, 0.6, 0.0]), f64::INFINITY);
    assert!(Simplex::<f64>::new(0).is_err() && Softmax::<f64>::new(0).is_err());
}

#[test]
fn the_bregman_penalties_of_softmax_and_of_the_sigmoid_are_cross_entropies() {
    let (u, v) = ([0.2f64, 0.5, 0.3], [1.0, -0.5, 2.0]);
    let mut p = [0.0; 3];
    let b = Softmax::new(3).unwrap().bregman(1.0, &u, &v, &mut p);
    let sum: f64 = v.iter().map(|v| v.exp()).sum();
    assert!(p.iter().zip(v).all(|(p, v)| (p - v.exp() / sum).abs() < 1e-15));
    let kl: f64 = u.iter().zip(&p).map(|(u, p)| u * (u / p).ln()).sum();
    assert!((b - kl).abs() < 1e-15, "{b} and {kl}");
    let b = Sigmoid::default().bregman(1.0, &u, &v, &mut p);
    let kl = u.iter().zip(&p).map(|(u, p)| u * (u / p).ln() + (1.0 - u) * ((1.0 - u) / (1.0 - p)).ln());
    assert!((b - kl.sum::<f64>()).abs() < 1e-15);
    // A class that softmax gives no number of 32 bits to is unlikely, not impossible.
    let far = Softmax::new(2).unwrap().bregman(1.0, &[0.5f32, 0.5], &[0.0, -200.0], &mut [0.0; 2]);
    assert!((far - (100.0 - 2f32.ln())).abs() < 1e-4, "{far}");
}

#[test]
fn long_and_short_steps_of_the_entropies_are_solved_to_the_last_digits() {
    let softmax = Softmax::new(5).unwrap();
    for (tau, spread) in [(1e-4, 1.0), (0.02, 50.0), (0.5, 300.0), (40.0, 1.0), (1e3, 1e3)] {
        let v: Vec<f64> = random_field::<f64>(5, 9).iter().map(|v| spread * v).collect();
        for psi in [&softmax as &dyn Prox<f64>, &Sigmoid::default()] {
            assert!(moreau_mismatch(psi, tau, &v) < 1e-12, "tau {tau}: {:e}", moreau_mismatch(psi, tau, &v));
            assert!(prox_optimality_gap(psi, tau, &v, 1) < 1e-12, "tau {tau}");
        }
    }
}

#[test]
fn zero_is_no_problem() {
    let norm = GroupL2::new(2, 2, vec![0.0]).unwrap();
    let mut v = [0.0, 1.0, 0.0, 2.0];
    norm.prox_in_place(1.0, &mut v);
    assert_eq!(v, [0.0, 1.0, 0.0, 2.0]);
}

#[test]
fn refuses_groups_that_do_not_fit() {
    for (planes, size, thresholds) in [(3, 2, 1), (0, 1, 1), (2, 0, 1), (4, 2, 3), (4, 2, 4)] {
        assert!(L2Ball::new(planes, size, vec![1.0; thresholds]).is_err());
    }
    assert!(GroupL2::new(4, 2, vec![1.0, f64::NAN]).is_err());
}

#[test]
fn refuses_what_is_no_threshold() {
    for bad in [&[][..], &[-0.1], &[f64::NAN], &[0.1, f64::INFINITY]] {
        assert!(SoftThreshold::new(bad.to_vec()).is_err(), "{bad:?}");
    }
    assert!(SoftThreshold::new(vec![0.0, 0.1]).is_ok());
}
