//! The Jacobian of the network at an image, as a linear operator: how much of a small change comes through.
//!
//! It is the network's own [recursion](crate::engine::pass) with `z` replaced by its change `dz` and every activation, of
//! the features and of a bounded image, by its slope at the forward pass; the adjoint is the same in reverse. For dual
//! forward-backward, with the slopes `m_k = s_k'(v_k)`,
//!
//! ```text
//! J dz:   du_0 = L_0 dz,   du_k = m_k (du_{k-1} - tau_k L_k (L_k* du_{k-1} - dz)),   dx^ = dz - L_K* du_{K-1}
//! J* y:   b_{K-1} = -L_K y,   d_k = m_k b_k,   b_{k-1} = (I - tau_k L_k L_k*) d_k,
//!         dz = y + sum_k tau_k L_k* d_k + L_0* b_0
//! ```
//!
//! Its norm ([`spectral_norm`](crate::operator::spectral_norm)) is the Lipschitz constant of the network near `z`.

use crate::engine::pass::{self, Backward, Carried, Nonlinearity, Own, Pass};
use crate::{Real, Result, engine::Engine, field::Field, network::Network, operator::LinearOperator};

/// The derivative of `x^ = G(z)` at one image. Vectors are planar, `[channel][y][x]`.
pub struct Jacobian<'a, T: Real> {
    engine: &'a dyn Engine<T>,
    network: &'a Network<T>,
    /// The forward pass at the image.
    at: Pass<T>,
}

impl<'a, T: Real> Jacobian<'a, T> {
    /// The Jacobian at the image `z`, a batch of one. Panics when the batch has more than one image.
    pub fn at(engine: &'a dyn Engine<T>, network: &'a Network<T>, z: &Field<T>) -> Result<Self> {
        assert_eq!(z.samples(), 1, "a Jacobian is taken at one image");
        let mut at = Pass::new(network, z.clone())?;
        pass::forward(engine, network, &mut at, &Own { engine, network });
        Ok(Self { engine, network, at })
    }

    /// `x^ = G(z)` at the image.
    pub fn estimate(&self) -> Vec<T> {
        let mut estimate = self.images(&self.at.r[self.at.depth()]);
        estimate.iter_mut().for_each(|r| *r = -*r);
        estimate
    }

    fn image(&self, planar: &[T]) -> Field<T> {
        let (sizes, grid) = (self.network.architecture(), self.at.z.grid());
        let size = (grid.height() * sizes.stride(), grid.width() * sizes.stride());
        sizes.batch(planar, size).expect("a vector as long as the image")
    }

    fn images(&self, planes: &Field<T>) -> Vec<T> {
        self.network.architecture().images(planes)
    }
}

/// Slopes for activations.
impl<T: Real> Nonlinearity<T> for Jacobian<'_, T> {
    fn features(&self, k: usize, v: &Field<T>, u: &mut Field<T>) {
        self.engine.slope(self.network.layer(k), &self.at.v[k], v, u);
    }

    fn image(&self, k: usize, q: &mut Field<T>) {
        let primal = self.network.primal(k);
        q.zip(&self.at.r[k], |q, r| primal.slope(r) * q);
    }
}

/// The reverse recursion with these slopes; whatever `z` enters goes to `to_z`.
struct Adjoint<'a, T: Real> {
    jacobian: &'a Jacobian<'a, T>,
    to_z: Field<T>,
}

impl<T: Real> Backward<T> for Adjoint<'_, T> {
    fn features(&mut self, k: usize, _pass: &Pass<T>, back: &Field<T>, d: &mut Field<T>) {
        self.jacobian.features(k, back, d);
    }

    fn operator(&mut self, _k: usize, _pass: &Pass<T>, _d: Option<&Field<T>>, p: &Field<T>) {
        self.to_z.zip(p, |to_z, p| to_z - p);
    }

    fn first(&mut self, _pass: &Pass<T>, back: &Field<T>) {
        let mut x = self.to_z.zeros_like();
        self.jacobian.engine.adjoint(&self.jacobian.network.theta[0], back, &mut x);
        self.to_z.zip(&x, |to_z, x| to_z + x);
    }
}

impl<T: Real> LinearOperator<T> for Jacobian<'_, T> {
    fn domain_len(&self) -> usize {
        self.at.z.channels() * self.at.z.grid().pixels()
    }

    fn range_len(&self) -> usize {
        self.domain_len()
    }

    fn apply(&self, dz: &[T], dx: &mut [T]) {
        let mut change = Pass::new(self.network, self.image(dz)).expect("an image of the same size");
        pass::forward(self.engine, self.network, &mut change, self);
        let r = &change.r[change.depth()];
        dx.iter_mut().zip(self.images(r)).for_each(|(dx, r)| *dx = -r);
    }

    fn adjoint(&self, y: &[T], dz: &mut [T]) {
        let y = self.image(y);
        let mut adjoint = Adjoint { jacobian: self, to_z: y.zeros_like() };
        let mut carried = Carried::new(self.network, &self.at);
        pass::reverse(self.engine, self.network, &self.at, (-T::one(), &y), &mut carried, &mut adjoint);
        dz.copy_from_slice(&self.images(&adjoint.to_z));
    }
}
