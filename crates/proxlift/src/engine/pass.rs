//! The recursion of an unrolled network, forward and in reverse, written once over an engine's primitives.
//!
//! Forward, for `k = 1..K` (see [`Unrolling`](crate::network::Unrolling)):
//!
//! ```text
//! y_{k-1} = u_{k-1} + alpha_k (u_{k-1} - u_{k-2})
//! q_k     = (1 - beta_k)(L_k* y_{k-1} - z) + beta_k r_{k-1},     r_k = bound(q_k)
//! v_k     = y_{k-1} - tau_k L_k (r_k + gamma_k (r_k - r_{k-1}))
//! u_k     = s_k(v_k)                                             x^ = -r_K
//! ```
//!
//! What stands for `s_k` and for `bound` is a [`Nonlinearity`]: the network's own, auxiliary variables that are held (the
//! lifted energy), or slopes (the Jacobian). In reverse, with `back_k` what `u_k` gets from the layers after it and `d_k`
//! what `v_k` gets, which is for the [`Backward`] rule to say,
//!
//! ```text
//! rho_k  = -tau_k L_k* d_k                                       rho_K is given
//! p_k    = (1 - beta_k) slope_k ((1 + gamma_k) rho_k + carried_k)                  what L_k* y_{k-1} gets
//! by_y   = d_k + L_k p_k
//! back_{k-1} = (1 + alpha_k) by_y + inertia_k,                   inertia_{k-1} = -alpha_k by_y
//! ```
//!
//! where `carried` and `inertia` are what `r_{k-1}` and `u_{k-2}` get by being remembered.

use super::{Engine, Gradients, ReverseRule};
use crate::field::Field;
use crate::network::{Architecture, Network};
use crate::{Real, Result};

/// The variables of a batch in all layers.
#[derive(Clone, Debug)]
pub struct Pass<T: Real> {
    /// The noisy images.
    pub z: Field<T>,
    /// `u_0..u_{K-1}`.
    pub u: Vec<Field<T>>,
    /// `v_1..v_{K-1}` at their index; `v[0]` is unused and has no samples.
    pub v: Vec<Field<T>>,
    /// `r_1..r_K` at their index, `r_0 = 0`.
    pub r: Vec<Field<T>>,
    /// `r_k + gamma_k (r_k - r_{k-1})` at their index, where layers extrapolate; else without samples.
    seen: Vec<Field<T>>,
    /// `y_k` at their index, where layer `k + 1` has inertia; else without samples.
    y: Vec<Field<T>>,
}

impl<T: Real> Pass<T> {
    /// Memory for a batch, all but `z` zero.
    ///
    /// # Errors
    /// When the images do not fit the network.
    pub fn new(network: &Network<T>, z: Field<T>) -> Result<Self> {
        network.check_batch(&z)?;
        let Architecture { depth, features, channels, .. } = network.architecture();
        let fields = |channels: usize, wanted: &dyn Fn(usize) -> bool| {
            let samples = |k| if wanted(k) { z.samples() } else { 0 };
            (0..=depth).map(|k| Field::zeros(samples(k), channels, z.grid())).collect::<Vec<_>>()
        };
        let inertial = |k: usize| k < depth && network.momentum(k + 1).inertia != T::zero();
        let extrapolates = |k: usize| k > 0 && network.momentum(k).extrapolation != T::zero();
        Ok(Self {
            u: fields(features, &|k| k < depth),
            v: fields(features, &|k| k > 0 && k < depth),
            r: fields(channels, &|_| true),
            seen: fields(channels, &extrapolates),
            y: fields(features, &inertial),
            z,
        }
        .without_last())
    }

    /// Features end at layer `K - 1`.
    fn without_last(mut self) -> Self {
        self.u.pop();
        self.v.pop();
        self
    }

    /// `K`.
    pub fn depth(&self) -> usize {
        self.u.len()
    }

    /// `y_k`, from which layer `k + 1` starts.
    pub fn y(&self, k: usize) -> &Field<T> {
        chosen(&self.y[k], &self.u[k])
    }

    /// What the convolution of layer `k` sees.
    pub fn seen(&self, k: usize) -> &Field<T> {
        chosen(&self.seen[k], &self.r[k])
    }

    /// Layer `k = 1..K` from `u_{k-1}` on: `r_k`, and `v_k` unless it is the last.
    pub fn layer<E: Engine<T> + ?Sized>(
        &mut self,
        engine: &E,
        network: &Network<T>,
        k: usize,
        nonlinearity: &dyn Nonlinearity<T>,
    ) {
        let (depth, primal) = (self.depth(), network.primal(k));
        let Self { z, u, v, r, seen, y } = self;
        if y[k - 1].samples() > 0 {
            y[k - 1].copy_from(&u[k - 1]);
            y[k - 1].zip(&u[k - 2], |u, before| u + primal.momentum.inertia * (u - before));
        }
        let (theta, y) = (&network.theta[k], chosen(&y[k - 1], &u[k - 1]));
        let (before, now) = r.split_at_mut(k);
        let (before, r) = (&before[k - 1], &mut now[0]);
        if primal.is_plain() && k < depth {
            return engine.layer(network.layer(k), y, z, r, &mut v[k]);
        }
        engine.residual(theta, y, z, r);
        if primal.is_plain() {
            return;
        }
        r.zip(before, |p, before| primal.blend(p, before));
        nonlinearity.image(k, r);
        if k == depth {
            return;
        }
        if seen[k].samples() > 0 {
            seen[k].copy_from(r);
            seen[k].zip(before, |r, before| primal.extrapolate(r, before));
        }
        engine.analyse(theta, chosen(&seen[k], r), &mut v[k]);
        let tau = network.layer(k).tau;
        v[k].zip(y, |v, y| y - tau * v);
    }
}

/// The first if it has samples, else the second.
fn chosen<'a, T: Real>(first: &'a Field<T>, second: &'a Field<T>) -> &'a Field<T> {
    if first.samples() > 0 { first } else { second }
}

/// What stands for the activations of features and images.
pub trait Nonlinearity<T: Real> {
    /// `u_k` from `v_k`.
    fn features(&self, k: usize, v: &Field<T>, u: &mut Field<T>);

    /// `r_k` from `q_k`, in place.
    fn image(&self, k: usize, q: &mut Field<T>);
}

/// The network's own activations.
pub struct Own<'a, T: Real, E: ?Sized> {
    /// Who applies them.
    pub engine: &'a E,
    /// Whose they are.
    pub network: &'a Network<T>,
}

impl<T: Real, E: Engine<T> + ?Sized> Nonlinearity<T> for Own<'_, T, E> {
    fn features(&self, k: usize, v: &Field<T>, u: &mut Field<T>) {
        self.engine.activate(self.network.layer(k), v, u);
    }

    fn image(&self, k: usize, q: &mut Field<T>) {
        bound(self.network, k, q);
    }
}

/// Auxiliary variables that are held: `u` stays what it is.
pub struct Held<'a, T>(pub &'a Network<T>);

impl<T: Real> Nonlinearity<T> for Held<'_, T> {
    fn features(&self, _: usize, _: &Field<T>, _: &mut Field<T>) {}

    fn image(&self, k: usize, q: &mut Field<T>) {
        bound(self.0, k, q);
    }
}

fn bound<T: Real>(network: &Network<T>, k: usize, q: &mut Field<T>) {
    if network.bounded {
        let primal = network.primal(k);
        q.map(|q| primal.bound(q));
    }
}

/// All layers from `z` on.
pub fn forward<T: Real, E: Engine<T> + ?Sized>(
    engine: &E,
    network: &Network<T>,
    pass: &mut Pass<T>,
    nonlinearity: &dyn Nonlinearity<T>,
) {
    engine.analyse(&network.theta[0], &pass.z, &mut pass.u[0]);
    for k in 1..=pass.depth() {
        pass.layer(engine, network, k, nonlinearity);
        if k < pass.depth() {
            nonlinearity.features(k, &pass.v[k], &mut pass.u[k]);
        }
    }
}

/// How errors go through the activations in reverse, and who gets what passes by.
pub trait Backward<T: Real> {
    /// `d_k`, what `v_k` gets, from what `u_k` gets from the layers after it.
    fn features(&mut self, k: usize, pass: &Pass<T>, back: &Field<T>, d: &mut Field<T>);

    /// `theta_k`, `k = 1..K`: `L_k* y_{k-1}` gets `p`, and `-tau_k L_k seen_k` gets `d` where there is one.
    fn operator(&mut self, _k: usize, _pass: &Pass<T>, _d: Option<&Field<T>>, _p: &Field<T>) {}

    /// `theta_0`: `u_0 = L_0 z` gets `back`.
    fn first(&mut self, _pass: &Pass<T>, _back: &Field<T>) {}
}

/// What the reverse recursion carries from layer to layer.
#[derive(Clone, Debug)]
pub struct Carried<T: Real> {
    /// `d_k`.
    pub d: Field<T>,
    /// `back_k`.
    pub back: Field<T>,
    /// On features, what `u_{k-2}` gets by inertia.
    inertia: Field<T>,
    /// What `L_k* y_{k-1}` gets.
    pub p: Field<T>,
    /// What `r_{k-1}` gets by being remembered.
    image: Field<T>,
}

impl<T: Real> Carried<T> {
    /// Memory for the batch of `pass`.
    pub fn new(network: &Network<T>, pass: &Pass<T>) -> Self {
        let (features, image) = (pass.u[0].zeros_like(), pass.z.zeros_like());
        let memory = network.unrolling.memory();
        let inertia = if memory.features {
            features.clone()
        } else {
            Field::zeros(0, features.channels(), features.grid())
        };
        Self { d: features.clone(), back: features, inertia, p: image.clone(), image }
    }
}

/// All layers in reverse, from `rho`, what `r_K` gets.
pub fn reverse<T: Real, E: Engine<T> + ?Sized>(
    engine: &E,
    network: &Network<T>,
    pass: &Pass<T>,
    rho: &Field<T>,
    carried: &mut Carried<T>,
    rule: &mut dyn Backward<T>,
) {
    let depth = pass.depth();
    let plain_images = !network.bounded && !network.unrolling.memory().images;
    let Carried { d, back, inertia, p, image } = carried;
    inertia.map(|_| T::zero());
    image.map(|_| T::zero());
    for k in (1..=depth).rev() {
        let primal = network.primal(k);
        if k < depth {
            rule.features(k, pass, back, d);
            let (layer, tau) = (network.layer(k), network.layer(k).tau);
            if plain_images {
                engine.pullback(layer, d, p, back);
            } else {
                engine.adjoint(layer.theta, d, p);
            }
            p.map(|a| -tau * a);
        } else {
            p.copy_from(rho);
        }
        if !plain_images {
            p.zip_both(image, &pass.r[k], |rho, carried, r| primal.reverse(r, rho, carried));
        }
        rule.operator(k, pass, (k < depth).then_some(&*d), p);
        if k == depth || !plain_images {
            engine.analyse(&network.theta[k], p, back);
        }
        if k < depth && !plain_images {
            back.zip(d, |back, d| d + back);
        }
        if inertia.samples() > 0 {
            let alpha = primal.momentum.inertia;
            let by_y = back.clone();
            back.zip_both(inertia, &by_y, |_, inertia, by_y| {
                ((T::one() + alpha) * by_y + inertia, -alpha * by_y)
            });
        }
    }
    rule.first(pass, back);
}

/// `x^ = G(z)`.
pub(super) fn denoise<T: Real, E: Engine<T> + ?Sized>(
    engine: &E,
    network: &Network<T>,
    z: &Field<T>,
    output: &mut Field<T>,
) {
    network.check_pair(z, output).unwrap_or_else(|e| panic!("{e}"));
    let mut pass = Pass::new(network, z.clone()).expect("a batch that was checked");
    forward(engine, network, &mut pass, &Own { engine, network });
    output.copy_from(&pass.r[pass.depth()]);
    output.map(|r| -r);
}

/// The gradients of the loss, or of `E` anchored at the forward pass.
pub(super) fn train<T: Real, E: Engine<T> + ?Sized>(
    engine: &E,
    network: &Network<T>,
    rule: ReverseRule<T>,
    z: &Field<T>,
    x: &Field<T>,
    gradients: &mut Gradients<T>,
) -> Result<()> {
    network.check_pair(z, x)?;
    gradients.check(network, z.samples())?;
    gradients.clear();
    let mut pass = Pass::new(network, z.clone())?;
    forward(engine, network, &mut pass, &Own { engine, network });
    let e = error(network, &pass, x);
    for (s, loss) in gradients.loss.iter_mut().enumerate() {
        *loss = half_squared(e.sample(s));
    }
    let (mut rho, weight) = (e, rule.loss_weight());
    rho.map(|e| -weight * e);
    let mut carried = Carried::new(network, &pass);
    let moved = pass.u[0].zeros_like();
    let mut collect = Collect { engine, network, rule, gradients, moved };
    reverse(engine, network, &pass, &rho, &mut carried, &mut collect);
    Ok(())
}

/// `e = x^ - x`, zero in the network's border.
pub fn error<T: Real>(network: &Network<T>, pass: &Pass<T>, x: &Field<T>) -> Field<T> {
    let mut e = pass.r[pass.depth()].clone();
    e.zip(x, |r, x| -r - x);
    e.clear_border(network.border);
    e
}

/// `1/2 ||e||^2`.
pub fn half_squared<T: Real>(e: &[T]) -> f64 {
    0.5 * e.iter().map(|e| e.to_double().powi(2)).sum::<f64>()
}

/// Adds what `theta_k` gets to its gradient.
pub fn add_operator<T: Real, E: Engine<T> + ?Sized>(
    (engine, network): (&E, &Network<T>),
    k: usize,
    pass: &Pass<T>,
    (d, p): (Option<&Field<T>>, &Field<T>),
    gradient: &mut crate::operator::Filters<T>,
) {
    if let Some(d) = d {
        engine.correlate(-network.layer(k).tau, pass.seen(k), d, gradient);
    }
    engine.correlate(T::one(), p, pass.y(k - 1), gradient);
}

/// Collects the gradients of a training pass.
struct Collect<'a, T: Real, E: ?Sized> {
    engine: &'a E,
    network: &'a Network<T>,
    rule: ReverseRule<T>,
    gradients: &'a mut Gradients<T>,
    /// `v_k - back_k`.
    moved: Field<T>,
}

impl<T: Real, E: Engine<T> + ?Sized> Backward<T> for Collect<'_, T, E> {
    fn features(&mut self, k: usize, pass: &Pass<T>, back: &Field<T>, d: &mut Field<T>) {
        let (layer, v) = (self.network.layer(k), &pass.v[k]);
        let learned = layer.activation.piecewise().zip(self.gradients.activation.get_mut(k - 1));
        match self.rule {
            ReverseRule::Backprop => {
                self.engine.slope(layer, v, back, d);
                learned.into_iter().for_each(|(s, gradient)| s.add_derivatives(v, back, gradient));
            }
            ReverseRule::Lifted { .. } => {
                self.moved.copy_from(v);
                self.moved.zip(back, |v, back| v - back);
                self.engine.activate(layer, &self.moved, d);
                d.zip(&pass.u[k], |then, now| now - then);
                learned.into_iter().for_each(|(s, gradient)| s.add_gradients(v, &self.moved, gradient));
            }
        }
    }

    fn operator(&mut self, k: usize, pass: &Pass<T>, d: Option<&Field<T>>, p: &Field<T>) {
        add_operator((self.engine, self.network), k, pass, (d, p), &mut self.gradients.theta[k]);
    }

    fn first(&mut self, pass: &Pass<T>, back: &Field<T>) {
        self.engine.correlate(T::one(), &pass.z, back, &mut self.gradients.theta[0]);
    }
}
