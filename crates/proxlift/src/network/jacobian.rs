//! The Jacobian of the network at an image, as a linear operator: how much of a small change comes through.
//!
//! With the masks `m_k = s'(v_k)` of the forward pass at `z`,
//!
//! ```text
//! J dz:   du_0 = L_0 dz,   du_k = m_k (du_{k-1} - tau_k L_k (L_k* du_{k-1} - dz)),   dx^ = dz - L_K* du_{K-1}
//! J* y:   b_{K-1} = -L_K y,   d_k = m_k b_k,   b_{k-1} = (I - tau_k L_k L_k*) d_k,
//!         dz = y + sum_k tau_k L_k* d_k + L_0* b_0
//! ```
//!
//! Its norm ([`spectral_norm`](crate::operator::spectral_norm)) is the Lipschitz constant of the network near `z`.

use super::{Architecture, Network};
use crate::engine::{Engine, Field, Grid};
use crate::operator::LinearOperator;
use crate::{Real, Result};

/// The derivative of `x^ = G(z)` at one image. Vectors are planar, `[channel][y][x]`.
pub struct Jacobian<'a, T: Real> {
    engine: &'a dyn Engine<T>,
    network: &'a Network<T>,
    grid: Grid,
    /// How much of a change the activation of layer `k = 1..K-1` lets through, at index `k - 1`.
    masks: Vec<Vec<T>>,
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
        let Architecture { depth, features, .. } = network.architecture();
        let mut u = Field::zeros(1, features, z.grid());
        let (mut v, mut r) = (u.clone(), z.clone());
        let mut masks = Vec::with_capacity(depth - 1);
        engine.lift(&network.theta[0], z, &mut u);
        for k in 1..depth {
            let layer = network.layer(k);
            engine.layer(layer, &u, z, &mut r, &mut v);
            engine.activate(layer, &v, &mut u);
            let planes = v.data().chunks_exact(z.grid().len()).enumerate();
            let slope = |(j, plane): (usize, &[T])| -> Vec<T> {
                plane.iter().map(|&v| layer.activation.slope(j, v)).collect()
            };
            masks.push(planes.flat_map(slope).collect());
        }
        Ok(Self { engine, network, grid: z.grid(), masks })
    }

    fn image(&self, planar: &[T]) -> Field<T> {
        let channels = self.network.architecture().channels;
        Field::from_planar(1, channels, self.grid, planar).expect("a vector as long as the image")
    }

    fn features(&self) -> Field<T> {
        Field::zeros(1, self.network.architecture().features, self.grid)
    }
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
        let dz = self.image(dz);
        let (mut du, mut dv, mut r) = (self.features(), self.features(), dz.clone());
        self.engine.lift(&self.network.theta[0], &dz, &mut du);
        for (i, m) in self.masks.iter().enumerate() {
            self.engine.layer(self.network.layer(i + 1), &du, &dz, &mut r, &mut dv);
            mask(&mut dv, m);
            std::mem::swap(&mut du, &mut dv);
        }
        self.engine.residual(self.network.last(), &du, &dz, &mut r);
        dx.iter_mut().zip(r.to_planar()).for_each(|(dx, r)| *dx = -r);
    }

    fn adjoint(&self, y: &[T], dz: &mut [T]) {
        let image = self.image(y);
        let mut a = image.clone();
        let (mut d, mut back) = (self.features(), self.features());
        dz.copy_from_slice(y);
        self.engine.lift(self.network.last(), &image, &mut d);
        d.data_mut().iter_mut().for_each(|d| *d = -*d);
        for (i, m) in self.masks.iter().enumerate().rev() {
            let layer = self.network.layer(i + 1);
            mask(&mut d, m);
            self.engine.pullback(layer, &d, &mut a, &mut back);
            dz.iter_mut().zip(a.to_planar()).for_each(|(dz, a)| *dz += layer.tau * a);
            std::mem::swap(&mut d, &mut back);
        }
        let zero = Field::zeros(1, image.channels(), self.grid);
        self.engine.residual(&self.network.theta[0], &d, &zero, &mut a);
        dz.iter_mut().zip(a.to_planar()).for_each(|(dz, a)| *dz += a);
    }
}
