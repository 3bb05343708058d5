//! The training pass: forward, then in reverse with every gradient collected on the way.

use super::{Backward, Carried, Own, Pass, forward, reverse};
use crate::engine::{Engine, Gradients, ReverseRule};
use crate::{Real, Result, field::Field, network::Network, operator::Filters};

/// The gradients of the loss, or of `E` anchored at the forward pass.
pub(crate) fn train<T: Real, E: Engine<T> + ?Sized>(
    engine: &E,
    network: &Network<T>,
    rule: ReverseRule<T>,
    z: &Field<T>,
    x: &Field<T>,
    gradients: &mut Gradients<T>,
) -> Result<()> {
    network.check_pair(z, x)?;
    gradients.check(network, z.samples())?;
    refuse!(engine.ranks().size() > 1 && !gradients.activation.is_empty() =>
        "activations that are learned beside others that are not are trained by one process only");
    gradients.clear();
    let mut pass = Pass::new(network, z.clone())?;
    forward(engine, network, &mut pass, &Own { engine, network });
    let mut e = x.zeros_like();
    error(network, &pass, x, &mut e);
    let (length, numbers) = (e.sample_len(), e.grid().pixels_inside(network.plane_border()) * e.channels());
    for (e, loss) in e.data_mut().chunks_exact_mut(length).zip(&mut gradients.loss) {
        *loss = half_squared(e);
        weigh(gradients.of.weight(*loss, numbers), e);
    }
    let mut carried = Carried::new(network, &pass);
    let moved = pass.u[0].zeros_like();
    let opposite = moved.clone();
    let mut collect = Collect { engine, network, rule, gradients, moved, opposite };
    reverse(engine, network, &pass, (-rule.loss_weight(), &e), &mut carried, &mut collect);
    Ok(())
}

/// `e = x^ - x`, zero in the network's border.
pub fn error<T: Real>(network: &Network<T>, pass: &Pass<T>, x: &Field<T>, e: &mut Field<T>) {
    e.copy_from(&pass.r[pass.depth()]);
    e.zip(x, |r, x| -r - x);
    e.clear_border(network.plane_border());
}

/// `1/2 ||e||^2`.
pub fn half_squared<T: Real>(e: &[T]) -> f64 {
    0.5 * e.iter().map(|e| e.to_double().powi(2)).sum::<f64>()
}

/// Multiplies the error of a sample by its weight.
pub fn weigh<T: Real>(weight: f64, e: &mut [T]) {
    if weight != 1.0 {
        let weight = T::of(weight);
        e.iter_mut().for_each(|e| *e *= weight);
    }
}

/// Adds what `theta_k` gets to its gradient, and what its synthesis gets to that of the synthesis, if it has its own.
pub fn add_operator<T: Real, E: Engine<T> + ?Sized>(
    (engine, network): (&E, &Network<T>),
    k: usize,
    pass: &Pass<T>,
    (d, p): (Option<&Field<T>>, &Field<T>),
    (gradient, synthesis): (&mut Filters<T>, Option<&mut Filters<T>>),
) {
    if let Some(d) = d {
        engine.correlate(-network.layer(k).tau, pass.seen(k), d, gradient);
    }
    engine.correlate(T::one(), p, pass.y(k - 1), synthesis.unwrap_or(gradient));
}

struct Collect<'a, T: Real, E: ?Sized> {
    engine: &'a E,
    network: &'a Network<T>,
    rule: ReverseRule<T>,
    gradients: &'a mut Gradients<T>,
    /// `v_k - back_k`.
    moved: Field<T>,
    /// `v_k + back_k`, then `s` of it: for centred secants.
    opposite: Field<T>,
}

impl<T: Real, E: Engine<T> + ?Sized> Backward<T> for Collect<'_, T, E> {
    fn features(&mut self, k: usize, pass: &Pass<T>, back: &Field<T>, d: &mut Field<T>) {
        let (layer, v) = (self.network.layer(k), &pass.v[k]);
        let learned = layer.activation.piecewise().zip(self.gradients.activation.get_mut(k - 1));
        match self.rule {
            ReverseRule::Backprop => {
                layer.activation.slope(v, back, d);
                learned.into_iter().for_each(|(s, gradient)| s.add_derivatives(v, back, gradient));
            }
            ReverseRule::Lifted { .. } => {
                self.moved.copy_from(v);
                self.moved.zip(back, |v, back| v - back);
                self.engine.activate(layer, &self.moved, d);
                d.zip(&pass.u[k], |then, now| now - then);
                learned.into_iter().for_each(|(s, gradient)| s.add_gradients(v, &self.moved, gradient));
            }
            ReverseRule::Centred { .. } => {
                let (below, above) = (&mut self.moved, &mut self.opposite);
                below.copy_from(v);
                below.zip(back, |v, back| v - back);
                above.copy_from(v);
                above.zip(back, |v, back| v + back);
                if let Some((s, gradient)) = learned {
                    // Nothing else was added: every layer is visited once.
                    s.add_gradients(above, below, gradient);
                    gradient.scale(T::of(0.5));
                }
                self.engine.activate(layer, above, d);
                above.copy_from(d);
                self.engine.activate(layer, below, d);
                d.zip(above, |below, above| T::of(0.5) * (above - below));
            }
        }
    }

    fn operator(&mut self, k: usize, pass: &Pass<T>, d: Option<&Field<T>>, p: &Field<T>) {
        let Gradients { theta, synthesis, .. } = &mut *self.gradients;
        let gradients = (&mut theta[k], synthesis.get_mut(k - 1));
        add_operator((self.engine, self.network), k, pass, (d, p), gradients);
    }

    fn first(&mut self, pass: &Pass<T>, back: &Field<T>) {
        self.engine.correlate(T::one(), &pass.z, back, &mut self.gradients.theta[0]);
    }
}
