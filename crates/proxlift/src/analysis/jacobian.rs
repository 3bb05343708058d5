//! The Jacobian of the network at an image, as a linear operator: how much of a small change comes through.
//!
//! The same steps as [`Unrolling`](crate::network::Unrolling) has, with `z` replaced by its change `dz` and every activation, of
//! the features and of a bounded image, by its slope at the forward pass; the adjoint goes through them backwards. For
//! dual forward-backward, with the slopes `m_k = s_k'(v_k)`,
//!
//! ```text
//! J dz:   du_0 = L_0 dz,   du_k = m_k (du_{k-1} - tau_k L_k (L_k* du_{k-1} - dz)),   dx^ = dz - L_K* du_{K-1}
//! J* y:   b_{K-1} = -L_K y,   d_k = m_k b_k,   b_{k-1} = (I - tau_k L_k L_k*) d_k,
//!         dz = y + sum_k tau_k L_k* d_k + L_0* b_0
//! ```
//!
//! Its norm ([`spectral_norm`](crate::operator::spectral_norm)) is the Lipschitz constant of the network near `z`.

use crate::engine::Engine;
use crate::field::{Field, Grid};
use crate::network::{Momentum, Network};
use crate::operator::LinearOperator;
use crate::{Real, Result};

/// The derivative of `x^ = G(z)` at one image. Vectors are planar, `[channel][y][x]`.
pub struct Jacobian<'a, T: Real> {
    engine: &'a dyn Engine<T>,
    network: &'a Network<T>,
    grid: Grid,
    /// How much of a change the activation of layer `k = 1..K-1` lets through, at index `k - 1`.
    slopes: Vec<Vec<T>>,
    /// Of the image in layer `k = 1..K`, likewise.
    bounds: Vec<Vec<T>>,
}

impl<'a, T: Real> Jacobian<'a, T> {
    /// The Jacobian at the image `z`, a batch of one.
    ///
    /// # Errors
    /// When the image does not fit the network.
    ///
    /// # Panics
    /// When the batch has more than one image.
    pub fn at(engine: &'a dyn Engine<T>, network: &'a Network<T>, z: &Field<T>) -> Result<Self> {
        network.check_batch(z)?;
        assert_eq!(z.samples(), 1, "a Jacobian is taken at one image");
        let mut jacobian = Self { engine, network, grid: z.grid(), slopes: Vec::new(), bounds: Vec::new() };
        let (mut slopes, mut bounds) = (Vec::new(), Vec::new());
        let activate = |k: usize, v: &mut Field<T>| {
            let activation = &network.activation[k - 1];
            let planes = v.data().chunks_exact(z.grid().len()).enumerate();
            let slope = |(j, plane): (usize, &[T])| -> Vec<T> {
                plane.iter().map(|&v| activation.slope(j, v)).collect()
            };
            slopes.push(planes.flat_map(slope).collect());
            let values = v.clone();
            engine.activate(network.layer(k), &values, v);
        };
        let bound = |k: usize, q: &mut Field<T>| {
            let primal = network.primal(k);
            bounds.push(q.data().iter().map(|&q| primal.slope(q)).collect());
            q.data_mut().iter_mut().for_each(|q| *q = primal.bound(*q));
        };
        jacobian.forward(z, activate, bound);
        (jacobian.slopes, jacobian.bounds) = (slopes, bounds);
        Ok(jacobian)
    }

    fn image(&self, planar: &[T]) -> Field<T> {
        let channels = self.network.architecture().channels;
        Field::from_planar(1, channels, self.grid, planar).expect("a vector as long as the image")
    }

    fn features(&self) -> Field<T> {
        Field::zeros(1, self.network.architecture().features, self.grid)
    }

    /// The network's steps with these activations in place of its own; returns `r_K`.
    fn forward(
        &self,
        z: &Field<T>,
        mut activate: impl FnMut(usize, &mut Field<T>),
        mut bound: impl FnMut(usize, &mut Field<T>),
    ) -> Field<T> {
        let network = self.network;
        let depth = network.theta.len() - 1;
        let (mut u, mut v) = (self.features(), self.features());
        self.engine.analyse(&network.theta[0], z, &mut u);
        let (mut y, mut before, mut r) = (u.clone(), Field::zeros(1, z.channels(), self.grid), z.clone());
        for k in 1..=depth {
            let primal = network.primal(k);
            self.engine.residual(&network.theta[k], &y, z, &mut r);
            combine(&mut r, &before, |p, before| primal.blend(p, before));
            bound(k, &mut r);
            if k == depth {
                break;
            }
            combine(&mut before, &r, |before, r| primal.extrapolate(r, before));
            self.engine.analyse(&network.theta[k], &before, &mut v);
            std::mem::swap(&mut before, &mut r);
            let tau = network.tau[k - 1];
            combine(&mut v, &y, |v, y| y - tau * v);
            activate(k, &mut v);
            let alpha = network.momentum(k + 1).inertia;
            y.data_mut().copy_from_slice(v.data());
            combine(&mut y, &u, |y, u| y + alpha * (y - u));
            std::mem::swap(&mut u, &mut v);
        }
        r
    }
}

/// `a <- f(a, b)`.
fn combine<T: Real>(a: &mut Field<T>, b: &Field<T>, f: impl Fn(T, T) -> T) {
    a.data_mut().iter_mut().zip(b.data()).for_each(|(a, &b)| *a = f(*a, b));
}

/// `a <- m a`.
fn mask<T: Real>(a: &mut Field<T>, m: &[T]) {
    a.data_mut().iter_mut().zip(m).for_each(|(a, &m)| *a *= m);
}

impl<T: Real> LinearOperator<T> for Jacobian<'_, T> {
    fn domain_len(&self) -> usize {
        self.network.architecture().channels * self.grid.pixels()
    }

    fn range_len(&self) -> usize {
        self.domain_len()
    }

    fn apply(&self, dz: &[T], dx: &mut [T]) {
        let activate = |k: usize, v: &mut Field<T>| mask(v, &self.slopes[k - 1]);
        let bound = |k: usize, q: &mut Field<T>| mask(q, &self.bounds[k - 1]);
        let r = self.forward(&self.image(dz), activate, bound);
        dx.iter_mut().zip(r.to_planar()).for_each(|(dx, r)| *dx = -r);
    }

    fn adjoint(&self, y: &[T], dz: &mut [T]) {
        let depth = self.network.theta.len() - 1;
        let zero = Field::zeros(1, self.network.architecture().channels, self.grid);
        let (mut rho, mut carried, mut to_z) = (self.image(y), zero.clone(), zero.clone());
        rho.data_mut().iter_mut().for_each(|rho| *rho = -*rho);
        let (mut d, mut back, mut inertia) = (self.features(), self.features(), self.features());
        for k in (1..=depth).rev() {
            if k < depth {
                mask(&mut d, &self.slopes[k - 1]);
                self.engine.residual(&self.network.theta[k], &d, &zero, &mut rho);
                let tau = self.network.tau[k - 1];
                rho.data_mut().iter_mut().for_each(|rho| *rho *= -tau);
            }
            let Momentum { inertia: alpha, memory, extrapolation } = self.network.momentum(k);
            let all = rho.data_mut().iter_mut().zip(carried.data_mut()).zip(&self.bounds[k - 1]);
            for ((rho, carried), &slope) in all {
                let through = slope * ((T::one() + extrapolation) * *rho + *carried);
                *carried = memory * through - extrapolation * *rho;
                *rho = (T::one() - memory) * through;
            }
            combine(&mut to_z, &rho, |to_z, rho| to_z - rho);
            self.engine.analyse(&self.network.theta[k], &rho, &mut back);
            combine(&mut d, &back, |d, back| d + back);
            let all = d.data_mut().iter_mut().zip(inertia.data_mut());
            for (d, inertia) in all {
                (*d, *inertia) = ((T::one() + alpha) * *d + *inertia, -alpha * *d);
            }
        }
        self.engine.residual(&self.network.theta[0], &d, &zero, &mut rho);
        combine(&mut to_z, &rho, |to_z, rho| to_z + rho);
        dz.copy_from_slice(&to_z.to_planar());
    }
}
