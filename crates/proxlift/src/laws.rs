//! The laws that operators, penalties and engines must keep, as public functions.
//!
//! Each returns by how much a law is broken: zero in exact arithmetic, some units of rounding in practice, infinite
//! where a number was not finite. Tests assert thresholds; a new operator or penalty is run through the same ones.
//! All is drawn from the given seed, so that a failure can be seen twice.

use crate::field::{Field, Grid};
use crate::operator::{Filters, LinearOperator, Resolvent};
use crate::real::{dot, norm_squared, sum2};
use crate::{Real, engine::Engine, prox::Prox};
use rand_distr::{Distribution, StandardNormal};

/// Standard normal numbers from a seed: the fields the laws are tried on.
pub fn random_field<T: Real>(len: usize, seed: u64) -> Vec<T> {
    let mut generator = crate::random::seeded(seed);
    let mut draw = || -> f64 { StandardNormal.sample(&mut generator) };
    (0..len).map(|_| T::of(draw())).collect()
}

/// `|<L x, y> - <x, L* y>| / (||L x|| ||y||)` for random `x`, `y`.
pub fn adjoint_mismatch<T: Real>(op: &(impl LinearOperator<T> + ?Sized), seed: u64) -> f64 {
    let x = random_field::<T>(op.domain_len(), seed);
    let y = random_field::<T>(op.range_len(), seed.wrapping_add(1));
    // Poisoned, so that an entry the operator forgets to write is seen.
    let (mut lx, mut ly) = (vec![T::nan(); y.len()], vec![T::nan(); x.len()]);
    op.apply(&x, &mut lx);
    op.adjoint(&y, &mut ly);
    let scale =
        (norm_squared(&lx) * norm_squared(&y)).sqrt().max((norm_squared(&ly) * norm_squared(&x)).sqrt());
    relative((dot(&lx, &y) - dot(&x, &ly)).abs(), scale)
}

/// `||(I + tau A* A) x - b|| / ||b||` for random `b` and `x = (I + tau A* A)^-1 b` as the operator has it.
pub fn resolvent_mismatch<T: Real>(op: &(impl Resolvent<T> + ?Sized), tau: T, seed: u64) -> f64 {
    let b = random_field::<T>(op.domain_len(), seed);
    let (mut x, mut back) = (vec![T::zero(); b.len()], vec![T::nan(); b.len()]);
    let mut between = vec![T::nan(); op.range_len()];
    op.resolve(tau, &b, &mut x);
    op.apply(&x, &mut between);
    op.adjoint(&between, &mut back);
    back.iter_mut().zip(&x).for_each(|(back, &x)| *back = x + tau * *back);
    relative(distance(&back, &b), norm_squared(&b).sqrt())
}

/// An engine's convolution on a batch, `lift` and `residual` at `z = 0`, as the operator that the laws take.
///
/// Batches are planar, `[sample][channel][y][x]`.
pub struct Convolved<'a, T: Real> {
    /// Who computes.
    pub engine: &'a dyn Engine<T>,
    /// The filters of `L`.
    pub theta: &'a Filters<T>,
    /// Samples in the batch.
    pub samples: usize,
    /// The shape of the images.
    pub grid: Grid,
}

impl<T: Real> Convolved<'_, T> {
    fn field(&self, channels: usize, planar: &[T]) -> Field<T> {
        Field::from_planar(self.samples, channels, self.grid, planar).expect("a batch that fits")
    }

    /// The planar numbers of what the engine wrote, all NaN if it wrote into a gap.
    fn read(field: &Field<T>, out: &mut [T]) {
        out.copy_from_slice(&field.to_planar());
        let written = field.data().iter().filter(|x| !x.is_zero()).count();
        if written > out.iter().filter(|x| !x.is_zero()).count() {
            out.fill(T::nan());
        }
    }
}

impl<T: Real> LinearOperator<T> for Convolved<'_, T> {
    fn domain_len(&self) -> usize {
        self.samples * self.theta.channels() * self.grid.pixels()
    }

    fn range_len(&self) -> usize {
        self.samples * self.theta.features() * self.grid.pixels()
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        let mut u = self.field(self.theta.features(), y);
        self.engine.analyse(self.theta, &self.field(self.theta.channels(), x), &mut u);
        Self::read(&u, y);
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        let mut r = self.field(self.theta.channels(), x);
        let zero = Field::zeros(self.samples, self.theta.channels(), self.grid);
        self.engine.residual(self.theta, &self.field(self.theta.features(), y), &zero, &mut r);
        Self::read(&r, x);
    }
}

/// The engine's weight gradient, `scale corr(x, d)` added to some start `g`, against what it is the gradient of:
/// `|<theta, g + scale corr(x, d)> - <theta, g> - scale <d, L x>|` for random `x`, `d`, `g`, relative to the sizes of
/// its terms.
pub fn correlation_mismatch<T: Real>(op: &Convolved<'_, T>, scale: T, seed: u64) -> f64 {
    let (theta, x) = (op.theta.weights(), random_field::<T>(op.domain_len(), seed));
    let d = random_field::<T>(op.range_len(), seed.wrapping_add(1));
    let mut gradient = op.theta.clone();
    gradient.weights_mut().copy_from_slice(&random_field(theta.len(), seed.wrapping_add(2)));
    let start = dot(theta, gradient.weights());
    let mut lx = vec![T::nan(); d.len()];
    op.apply(&x, &mut lx);
    let (image, features) = (op.field(op.theta.channels(), &x), op.field(op.theta.features(), &d));
    op.engine.correlate(scale, &image, &features, &mut gradient);
    let reached = dot(theta, gradient.weights());
    let size = (norm_squared(theta) * norm_squared(gradient.weights())).sqrt();
    let size = size.max(scale.to_double().abs() * (norm_squared(&d) * norm_squared(&lx)).sqrt());
    relative((reached - start - scale.to_double() * dot(&d, &lx)).abs(), size)
}

/// Moreau: `||prox_{tau psi}(v) + tau prox_{psi* / tau}(v / tau) - v|| / ||v||`, and the Fenchel equality
/// `psi(p) + psi*(w) = <p, w>` between the two points, relative to `||p|| ||w||`; the larger of both.
///
/// The second ties the value, the conjugate's value and the prox together.
pub fn moreau_mismatch<T: Real>(psi: &(impl Prox<T> + ?Sized), tau: T, v: &[T]) -> f64 {
    let (mut p, mut w) = (vec![T::nan(); v.len()], vec![T::nan(); v.len()]);
    psi.prox(tau, v, &mut p);
    let scaled: Vec<T> = v.iter().map(|&v| v / tau).collect();
    psi.prox_conjugate(T::one() / tau, &scaled, &mut w);
    let sum: Vec<T> = p.iter().zip(&w).map(|(&p, &w)| p + tau * w).collect();
    let identity = relative(distance(&sum, v), norm_squared(v).sqrt());
    let excess = psi.value(&p).to_double() + psi.conjugate_value(&w).to_double() - dot(&p, &w);
    worst(identity, relative(excess.abs(), (norm_squared(&p) * norm_squared(&w)).sqrt().max(1.0)))
}

/// By how much the prox fails to be firmly non-expansive: the largest `(||p - q||^2 - <p - q, a - b>) / ||a - b||^2` for
/// `p = prox_{tau psi}(a)` and `q = prox_{tau psi}(b)`, with random `b` ever closer to `a`, and with `b` that differ from it
/// in one of the first entries only.
pub fn firm_expansion<T: Real>(psi: &(impl Prox<T> + ?Sized), tau: T, a: &[T], seed: u64) -> f64 {
    const ENTRIES: usize = 32;
    let (mut p, mut q, mut mismatch) = (a.to_vec(), a.to_vec(), 0.0);
    psi.prox_in_place(tau, &mut p);
    let random = random_field::<T>(a.len(), seed);
    for trial in 0..3 * (a.len().min(ENTRIES) + 1) {
        let (only, step) = ((trial / 3).checked_sub(1), T::of(0.25f64.powi(trial as i32 % 3)));
        let moved = |i: usize| match only {
            Some(only) if only != i => T::zero(),
            Some(_) => step * random[i].signum(),
            None => step * random[i],
        };
        let b: Vec<T> = a.iter().enumerate().map(|(i, &a)| a + moved(i)).collect();
        psi.prox(tau, &b, &mut q);
        let along: Vec<T> = a.iter().zip(&b).map(|(&a, &b)| a - b).collect();
        let apart: Vec<T> = p.iter().zip(&q).map(|(&p, &q)| p - q).collect();
        let excess = norm_squared(&apart) - dot(&apart, &along);
        mismatch = worst(mismatch, relative(excess, norm_squared(&along)));
    }
    mismatch
}

/// Fenchel-Young for the Bregman penalty, at `v` and at points `u` of the domain, some drawn from `seed` and some the
/// prox of multiples of `v`, close to its own: the largest of
///
/// - `B(p, v)`, which must vanish at `p = prox_{tau psi}(v)`;
/// - `1/2 ||u - p||^2 - B(u, v)`, which must not be positive (so `B >= 0`, and `B = 0` only at `p`);
/// - `|B(u, v) - (q(u) + q*(v) - <u, v>)|`, the definition,
///
/// relative to `1 + ||u|| ||v|| + ||v||^2`.
pub fn fenchel_young_mismatch<T: Real>(psi: &(impl Prox<T> + ?Sized), tau: T, v: &[T], seed: u64) -> f64 {
    let mut scratch = vec![T::nan(); v.len()];
    let mut p = vec![T::nan(); v.len()];
    psi.prox(tau, v, &mut p);
    let mut mismatch =
        relative(psi.bregman(tau, &p, v, &mut scratch).to_double().abs(), 1.0 + norm_squared(v));
    let q_star = psi.q_star(tau, v, &mut scratch).to_double();
    let random = (0..4).map(|trial| random_field::<T>(v.len(), seed.wrapping_add(trial)));
    let multiples = [0.0, 0.5, 0.9, 1.1, 2.0].map(|s| v.iter().map(|&v| T::of(s) * v).collect());
    for mut u in random.chain(multiples) {
        psi.prox_in_place(tau, &mut u);
        let b = psi.bregman(tau, &u, v, &mut scratch).to_double();
        let scale = 1.0 + (norm_squared(&u) * norm_squared(v)).sqrt() + norm_squared(v);
        let q = 0.5 * norm_squared(&u) + (tau * psi.value(&u)).to_double();
        mismatch = worst(mismatch, relative((b - (q + q_star - dot(&u, v))).abs(), scale));
        mismatch = worst(mismatch, relative(0.5 * distance(&u, &p).powi(2) - b, scale));
    }
    mismatch
}

/// By how much some other point beats `p = prox_{tau psi}(v)` in `1/2 ||u - v||^2 + tau psi(u)`, relative to
/// `1 + ||v||^2`: every entry moved over a grid of its own, and points between `p` and random points of the domain.
///
/// Keep `v` short: the cost is quadratic in its length.
pub fn prox_optimality_gap<T: Real>(psi: &(impl Prox<T> + ?Sized), tau: T, v: &[T], seed: u64) -> f64 {
    let objective = |u: &[T]| 0.5 * distance(u, v).powi(2) + (tau * psi.value(u)).to_double();
    let mut p = vec![T::nan(); v.len()];
    psi.prox(tau, v, &mut p);
    let reached = objective(&p);
    let mut best = f64::INFINITY;
    let mut u = p.clone();
    for i in 0..u.len() {
        for step in 1..=8 {
            let step = T::of(0.25f64.powi(step - 3));
            for moved in [p[i] - step, p[i] + step, T::zero(), v[i]] {
                u[i] = moved;
                best = best.min(objective(&u));
            }
        }
        u[i] = p[i];
    }
    for trial in 0..32 {
        let mut w = random_field::<T>(v.len(), seed.wrapping_add(trial));
        psi.prox_in_place(tau, &mut w);
        for step in 0..6 {
            let step = T::of(0.25f64.powi(step));
            u.iter_mut().zip(p.iter().zip(&w)).for_each(|(u, (&p, &w))| *u = p + step * (w - p));
            best = best.min(objective(&u));
        }
    }
    relative((reached - best).max(0.0) + 0.0 * reached, 1.0 + norm_squared(v))
}

/// The gradient of `f` at `point` against central differences along random directions (and along every axis of a
/// short vector): the largest `|df - <gradient, d>| / (||gradient|| ||d||)`.
///
/// The gradient must be that of a function smooth within `1e-5` of the point (relative to its largest entry or 1).
pub fn gradient_mismatch(f: impl Fn(&[f64]) -> f64, gradient: &[f64], point: &[f64], seed: u64) -> f64 {
    assert_eq!(gradient.len(), point.len(), "the gradient does not fit the point");
    const LONGEST_WITH_AXES: usize = 32;
    let axes = if point.len() <= LONGEST_WITH_AXES { point.len() } else { 0 };
    let size = point.iter().fold(1.0f64, |size, x| size.max(x.abs()));
    let mut mismatch = 0.0;
    for trial in 0..axes + 8 {
        let mut direction = random_field::<f64>(point.len(), seed.wrapping_add(trial as u64));
        if trial < axes {
            direction.fill(0.0);
            direction[trial] = 1.0;
        }
        let length = norm_squared(&direction).sqrt();
        let h = 1e-5 * size / length;
        let at = |s: f64| f(&point.iter().zip(&direction).map(|(x, d)| x + s * d).collect::<Vec<_>>());
        let slope = (at(h) - at(-h)) / (2.0 * h);
        let scale = norm_squared(gradient).sqrt() * length;
        mismatch = worst(mismatch, relative((slope - dot(gradient, &direction)).abs(), scale));
    }
    mismatch
}

/// The pullback of `prox_{tau psi}` at `v` against central differences of `v -> <prox_{tau psi}(v), g>`, `g` random.
///
/// Entries of `v` must stay away from the kinks.
pub fn pullback_mismatch(psi: &(impl Prox<f64> + ?Sized), tau: f64, v: &[f64], seed: u64) -> f64 {
    let g = random_field::<f64>(v.len(), seed);
    let mut pulled = vec![f64::NAN; v.len()];
    psi.pullback(tau, v, &g, &mut pulled);
    let along = |v: &[f64]| {
        let mut p = v.to_vec();
        psi.prox_in_place(tau, &mut p);
        dot(&p, &g)
    };
    gradient_mismatch(along, &pulled, v, seed.wrapping_add(1))
}

/// `max_i |a_i - b_i| / max(max_i |a_i|, max_i |b_i|)`; infinite when the lengths differ or an entry is not finite.
pub fn max_relative_difference<T: Real>(a: &[T], b: &[T]) -> f64 {
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let (mut difference, mut size) = (0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        difference = worst(difference, (*a - *b).abs().to_double());
        size = worst(size, a.abs().max(b.abs()).to_double());
    }
    relative(difference, size)
}

/// How many numbers of `f`'s result differ in a bit between thread pools of the given sizes (from the first of them).
pub fn same_bits_for_threads(f: impl Fn() -> Vec<f32> + Sync, threads: &[usize]) -> usize {
    let mut runs = threads.iter().map(|&threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("a pool of threads").install(&f)
    });
    let Some(first) = runs.next() else { return 0 };
    runs.map(|run| {
        let common = first.iter().zip(&run).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
        common + first.len().abs_diff(run.len())
    })
    .sum()
}

/// `||a - b||`.
fn distance<T: Real>(a: &[T], b: &[T]) -> f64 {
    sum2(a, b, |a, b| (a.to_double() - b.to_double()).powi(2)).sqrt()
}

/// `mismatch / scale`, 0 if nothing is wrong, infinite if something is not a number.
fn relative(mismatch: f64, scale: f64) -> f64 {
    if mismatch.is_nan() || !scale.is_finite() {
        f64::INFINITY
    } else if mismatch <= 0.0 {
        0.0
    } else {
        mismatch / scale
    }
}

/// The larger of two mismatches, where NaN is the largest.
fn worst(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::INFINITY } else { a.max(b) }
}
