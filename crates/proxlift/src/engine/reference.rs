//! The plain engine: one loop per formula, to be checked by eye. Every other engine is held to it.

use super::{Engine, Field, Gradients, Reverse, assert_fits};
use crate::network::{Architecture, Layer, Network};
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

    fn lift(&self, theta: &Filters<T>, z: &Field<T>, u: &mut Field<T>) {
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
        self.lift(layer.theta, r, v);
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
            penalty[s] += layer.activation.bregman(j, u, v).to_double();
        });
    }

    fn denoise(&self, network: &Network<T>, z: &Field<T>, output: &mut Field<T>) {
        network.check_pair(z, output).unwrap_or_else(|e| panic!("{e}"));
        let Architecture { depth, features, .. } = network.architecture();
        let mut u = Field::zeros(z.samples(), features, z.grid());
        let (mut v, mut r) = (u.clone(), z.clone());
        self.lift(&network.theta[0], z, &mut u);
        for k in 1..depth {
            self.layer(network.layer(k), &u, z, &mut r, &mut v);
            self.activate(network.layer(k), &v, &mut u);
        }
        self.residual(network.last(), &u, z, output);
        output.data_mut().iter_mut().for_each(|x| *x = -*x);
    }

    fn training_pass(
        &self,
        network: &Network<T>,
        rule: Reverse<T>,
        z: &Field<T>,
        x: &Field<T>,
        gradients: &mut Gradients<T>,
    ) -> Result<()> {
        network.check_pair(z, x)?;
        gradients.check(network, z.samples())?;
        let Architecture { depth, features, .. } = network.architecture();
        for theta in &mut gradients.theta {
            theta.weights_mut().fill(T::zero());
        }
        for (gradient, activation) in gradients.activation.iter_mut().zip(&network.activation) {
            *gradient = activation.zero_gradient();
        }
        let feature_field = || Field::zeros(z.samples(), features, z.grid());
        let image_field = || Field::zeros(z.samples(), z.channels(), z.grid());
        let (mut u, mut v, mut r) = (vec![feature_field()], vec![feature_field()], vec![image_field()]);

        self.lift(&network.theta[0], z, &mut u[0]);
        for k in 1..depth {
            let (mut vk, mut rk, mut uk) = (feature_field(), image_field(), feature_field());
            self.layer(network.layer(k), &u[k - 1], z, &mut rk, &mut vk);
            self.activate(network.layer(k), &vk, &mut uk);
            u.push(uk);
            v.push(vk);
            r.push(rk);
        }
        let mut e = image_field();
        self.residual(network.last(), &u[depth - 1], z, &mut e);
        for (e, &x) in e.data_mut().iter_mut().zip(x.data()) {
            *e = -*e - x;
        }
        for (s, loss) in gradients.loss.iter_mut().enumerate() {
            *loss = 0.5 * e.sample(s).iter().map(|e| e.to_double().powi(2)).sum::<f64>();
        }

        let weight = rule.loss_weight();
        self.correlate(-weight, &e, &u[depth - 1], &mut gradients.theta[depth]);
        let mut back = feature_field();
        self.lift(network.last(), &e, &mut back);
        back.data_mut().iter_mut().for_each(|b| *b = -weight * *b);
        let (mut d, mut a) = (feature_field(), image_field());
        for k in (1..depth).rev() {
            let (layer, s_k) = (network.layer(k), &network.activation[k - 1]);
            for_each_pixel(&v[k], |s, j, y, x| {
                let (iy, ix) = (y as isize, x as isize);
                let (vk, b) = (v[k].at(s, j, iy, ix), back.at(s, j, iy, ix));
                let gradient = gradients.activation.get_mut(k - 1);
                *d.at_mut(s, j, y, x) = match rule {
                    Reverse::Backprop => {
                        gradient.into_iter().for_each(|gradient| s_k.add_derivative(j, vk, b, gradient));
                        s_k.slope(j, vk) * b
                    }
                    Reverse::Lifted { .. } => {
                        gradient.into_iter().for_each(|gradient| s_k.add_gradient(j, vk, vk - b, gradient));
                        s_k.value(j, vk) - s_k.value(j, vk - b)
                    }
                };
            });
            self.pullback(layer, &d, &mut a, &mut back);
            self.correlate(-layer.tau, &r[k], &d, &mut gradients.theta[k]);
            self.correlate(-layer.tau, &a, &u[k - 1], &mut gradients.theta[k]);
        }
        self.correlate(T::one(), z, &back, &mut gradients.theta[0]);
        Ok(())
    }
}
