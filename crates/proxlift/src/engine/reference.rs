//! The plain engine: one loop per formula, to be checked by eye. Every other engine is held to it.

use super::{Engine, Gradients, ReverseRule, assert_fits};
use crate::field::Field;
use crate::network::{Architecture, Layer, Network, Primal};
use crate::operator::Filters;
use crate::{Real, Result};

/// Plain loops in `f32` or `f64`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

/// Calls `f(sample, channel, y, x)` for every pixel of `field`.
fn for_each_pixel<T: Real>(field: &Field<T>, mut f: impl FnMut(usize, usize, usize, usize)) {
    for s in 0..field.samples() {
        for c in 0..field.channels() {
            for y in 0..field.grid().height() {
                for x in 0..field.grid().width() {
                    f(s, c, y, x);
                }
            }
        }
    }
}

/// Calls `f(w[j,c,t], c, ty, tx)` for every tap of feature `j`.
fn for_each_tap<T: Real>(theta: &Filters<T>, j: usize, mut f: impl FnMut(usize, usize, isize, isize)) {
    let (k, r) = (theta.size(), theta.radius() as isize);
    for c in 0..theta.channels() {
        for ty in 0..k {
            for tx in 0..k {
                let index = ((j * theta.channels() + c) * k + ty) * k + tx;
                f(index, c, ty as isize - r, tx as isize - r);
            }
        }
    }
}

impl<T: Real> Engine<T> for Reference {
    fn name(&self) -> String {
        "reference".into()
    }

    fn analyse(&self, theta: &Filters<T>, z: &Field<T>, u: &mut Field<T>) {
        assert_fits(theta, &[z], &[u]);
        for_each_pixel(&u.clone(), |s, j, y, x| {
            let mut sum = T::zero();
            for_each_tap(theta, j, |w, c, ty, tx| {
                sum += theta.weights()[w] * z.at(s, c, y as isize + ty, x as isize + tx);
            });
            *u.at_mut(s, j, y, x) = sum;
        });
    }

    fn residual(&self, theta: &Filters<T>, u: &Field<T>, z: &Field<T>, r: &mut Field<T>) {
        assert_fits(theta, &[z, r], &[u]);
        for_each_pixel(z, |s, channel, y, x| {
            let mut sum = -z.at(s, channel, y as isize, x as isize);
            for j in 0..theta.features() {
                for_each_tap(theta, j, |w, c, ty, tx| {
                    if c == channel {
                        sum += theta.weights()[w] * u.at(s, j, y as isize - ty, x as isize - tx);
                    }
                });
            }
            *r.at_mut(s, channel, y, x) = sum;
        });
    }

    fn layer(&self, layer: Layer<'_, T>, u: &Field<T>, z: &Field<T>, r: &mut Field<T>, v: &mut Field<T>) {
        self.residual(layer.theta, u, z, r);
        self.analyse(layer.theta, r, v);
        for (v, &u) in v.data_mut().iter_mut().zip(u.data()) {
            *v = u - layer.tau * *v;
        }
    }

    fn activate(&self, layer: Layer<'_, T>, v: &Field<T>, u: &mut Field<T>) {
        for_each_pixel(v, |s, j, y, x| {
            *u.at_mut(s, j, y, x) = layer.activation.value(j, v.at(s, j, y as isize, x as isize));
        });
    }

    fn pullback(&self, layer: Layer<'_, T>, d: &Field<T>, a: &mut Field<T>, back: &mut Field<T>) {
        let zero = Field::zeros(d.samples(), layer.theta.channels(), d.grid());
        self.layer(layer, d, &zero, a, back);
    }

    fn correlate(&self, scale: T, x: &Field<T>, d: &Field<T>, gradient: &mut Filters<T>) {
        assert_fits(gradient, &[x], &[d]);
        let theta = gradient.clone();
        for_each_pixel(d, |s, j, py, px| {
            let dj = scale * d.at(s, j, py as isize, px as isize);
            for_each_tap(&theta, j, |w, c, ty, tx| {
                gradient.weights_mut()[w] += dj * x.at(s, c, py as isize + ty, px as isize + tx);
            });
        });
    }

    fn bregman(&self, layer: Layer<'_, T>, u: &Field<T>, v: &Field<T>, penalty: &mut [f64]) {
        assert_fits(layer.theta, &[], &[u, v]);
        penalty.fill(0.0);
        for_each_pixel(u, |s, j, y, x| {
            let (u, v) = (u.at(s, j, y as isize, x as isize), v.at(s, j, y as isize, x as isize));
            penalty[s] += layer.activation.bregman(j, u, v);
        });
    }

    fn denoise(&self, network: &Network<T>, z: &Field<T>, output: &mut Field<T>) {
        network.check_pair(z, output).unwrap_or_else(|e| panic!("{e}"));
        let pass = Pass::forward(self, network, z);
        let r = &pass.r[network.theta.len() - 1];
        output.data_mut().iter_mut().zip(r.data()).for_each(|(x, &r)| *x = -r);
    }

    fn training_pass(
        &self,
        network: &Network<T>,
        rule: ReverseRule<T>,
        z: &Field<T>,
        x: &Field<T>,
        gradients: &mut Gradients<T>,
    ) -> Result<()> {
        network.check_pair(z, x)?;
        gradients.check(network, z.samples())?;
        for theta in &mut gradients.theta {
            theta.weights_mut().fill(T::zero());
        }
        for (gradient, activation) in gradients.activation.iter_mut().zip(&network.activation) {
            *gradient = activation.zero_gradient();
        }
        let Pass { y, u, v, q, r, seen } = Pass::forward(self, network, z);
        let depth = network.theta.len() - 1;

        let mut e = z.clone();
        let output = r[depth].data().iter().zip(x.data());
        e.data_mut().iter_mut().zip(output).for_each(|(e, (&r, &x))| *e = -r - x);
        e.clear_border(network.border);
        for (s, loss) in gradients.loss.iter_mut().enumerate() {
            *loss = 0.5 * e.sample(s).iter().map(|e| e.to_double().powi(2)).sum::<f64>();
        }

        // What the convolution's input, L* y and r_{k-1} get; for the output, the first is the loss by r_K.
        let mut rho = e;
        rho.data_mut().iter_mut().for_each(|e| *e *= -rule.loss_weight());
        let (mut to_image, mut carried) = (z.clone(), zeros_like(z));
        reverse_images(network.primal(depth), &q[depth], &rho, &mut to_image, &mut carried);
        self.correlate(T::one(), &to_image, &u[depth - 1], &mut gradients.theta[depth]);
        let mut back = zeros_like(&u[0]);
        self.analyse(network.last(), &to_image, &mut back);

        let (mut d, mut inertia) = (zeros_like(&u[0]), zeros_like(&u[0]));
        for k in (1..depth).rev() {
            let (layer, s_k) = (network.layer(k), &network.activation[k - 1]);
            for_each_pixel(&v[k], |s, j, y, x| {
                let (iy, ix) = (y as isize, x as isize);
                let (vk, b) = (v[k].at(s, j, iy, ix), back.at(s, j, iy, ix));
                let gradient = gradients.activation.get_mut(k - 1);
                *d.at_mut(s, j, y, x) = match rule {
                    ReverseRule::Backprop => {
                        gradient.into_iter().for_each(|gradient| s_k.add_derivative(j, vk, b, gradient));
                        s_k.slope(j, vk) * b
                    }
                    ReverseRule::Lifted { .. } => {
                        gradient.into_iter().for_each(|gradient| s_k.add_gradient(j, vk, vk - b, gradient));
                        s_k.value(j, vk) - s_k.value(j, vk - b)
                    }
                };
            });
            self.residual(layer.theta, &d, &zeros_like(z), &mut rho);
            rho.data_mut().iter_mut().for_each(|rho| *rho *= -layer.tau);
            reverse_images(network.primal(k), &q[k], &rho, &mut to_image, &mut carried);
            self.correlate(-layer.tau, &seen[k], &d, &mut gradients.theta[k]);
            self.correlate(T::one(), &to_image, &y[k - 1], &mut gradients.theta[k]);
            self.analyse(layer.theta, &to_image, &mut back);
            let alpha = network.momentum(k).inertia;
            let all = back.data_mut().iter_mut().zip(d.data()).zip(inertia.data_mut());
            for ((back, &d), inertia) in all {
                let by_y = d + *back;
                *back = (T::one() + alpha) * by_y + *inertia;
                *inertia = -alpha * by_y;
            }
        }
        self.correlate(T::one(), z, &back, &mut gradients.theta[0]);
        Ok(())
    }
}

fn zeros_like<T: Real>(field: &Field<T>) -> Field<T> {
    Field::zeros(field.samples(), field.channels(), field.grid())
}

/// The image part of a layer backwards: from `rho`, and from what `r_k` gets from later layers (`carried`, which is
/// replaced by what `r_{k-1}` gets), to what `L_k* y` gets.
fn reverse_images<T: Real>(
    primal: Primal<T>,
    q: &Field<T>,
    rho: &Field<T>,
    to_image: &mut Field<T>,
    carried: &mut Field<T>,
) {
    let all = to_image.data_mut().iter_mut().zip(carried.data_mut()).zip(q.data()).zip(rho.data());
    for (((to_image, carried), &q), &rho) in all {
        (*to_image, *carried) = primal.reverse(q, rho, *carried);
    }
}

/// All variables of the forward pass, named as in [`Unrolling`](crate::network::Unrolling); `seen` is what the
/// convolution sees, `r_k + gamma_k (r_k - r_{k-1})`. The fields at 0 that have no meaning are zero.
struct Pass<T: Real> {
    y: Vec<Field<T>>,
    u: Vec<Field<T>>,
    v: Vec<Field<T>>,
    q: Vec<Field<T>>,
    r: Vec<Field<T>>,
    seen: Vec<Field<T>>,
}

impl<T: Real> Pass<T> {
    fn forward(engine: &Reference, network: &Network<T>, z: &Field<T>) -> Self {
        let Architecture { depth, features, .. } = network.architecture();
        let blank = Field::zeros(z.samples(), features, z.grid());
        let mut first = blank.clone();
        engine.analyse(&network.theta[0], z, &mut first);
        let (mut y, mut u, mut v) = (vec![first.clone()], vec![first], vec![blank.clone()]);
        let none = zeros_like(z);
        let (mut q, mut r, mut seen) = (vec![none.clone()], vec![none.clone()], vec![none.clone()]);
        for k in 1..=depth {
            let primal = network.primal(k);
            let (mut q_k, mut r_k, mut seen_k) = (none.clone(), none.clone(), none.clone());
            engine.residual(&network.theta[k], &y[k - 1], z, &mut q_k);
            let images = q_k.data_mut().iter_mut().zip(r_k.data_mut()).zip(seen_k.data_mut());
            for (((q, r), seen), &before) in images.zip(r[k - 1].data()) {
                *q = primal.blend(*q, before);
                *r = primal.bound(*q);
                *seen = primal.extrapolate(*r, before);
            }
            if k < depth {
                let (layer, alpha) = (network.layer(k), network.momentum(k + 1).inertia);
                let (mut v_k, mut u_k) = (blank.clone(), blank.clone());
                engine.analyse(layer.theta, &seen_k, &mut v_k);
                v_k.data_mut().iter_mut().zip(y[k - 1].data()).for_each(|(v, &y)| *v = y - layer.tau * *v);
                engine.activate(layer, &v_k, &mut u_k);
                let mut y_k = u_k.clone();
                let pairs = y_k.data_mut().iter_mut().zip(u[k - 1].data());
                pairs.for_each(|(y, &before)| *y += alpha * (*y - before));
                v.push(v_k);
                u.push(u_k);
                y.push(y_k);
            }
            q.push(q_k);
            r.push(r_k);
            seen.push(seen_k);
        }
        Self { y, u, v, q, r, seen }
    }
}
