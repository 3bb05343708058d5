//! The activation of a layer: any prox of [`prox`](crate::prox), `s_k = prox_psi`.
//!
//! The paper's network has the clip in all layers and the shipped ones learned piecewise-linear functions, both of which
//! are [`PiecewiseLinear`]; every other prox can stand in their place. A prox becomes an activation by one line in
//! `activations!` below.

use crate::prox::{
    BoxClip, GroupL2, Identity, L2Ball, PiecewiseLinear, Prox, Relu, Sigmoid, Simplex, SoftThreshold, Softmax,
};
use crate::{Real, Result, field::Field};
use rayon::prelude::*;

macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident($prox:ty)),+ $(,)?) => {
        /// The activation of one layer.
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Activation<T> { $($(#[$doc])* $name($prox)),+ }

        impl<T: Real> Activation<T> {
            /// The prox itself.
            pub fn prox(&self) -> &dyn Prox<T> {
                match self { $(Self::$name(prox) => prox),+ }
            }

            fn prox_mut(&mut self) -> &mut dyn Prox<T> {
                match self { $(Self::$name(prox) => prox),+ }
            }

            /// The same in another precision.
            pub fn cast<U: Real>(&self) -> Activation<U> {
                match self { $(Self::$name(prox) => Activation::$name(prox.cast())),+ }
            }
        }

        $(impl<T> From<$prox> for Activation<T> {
            fn from(prox: $prox) -> Self {
                Self::$name(prox)
            }
        })+
    };
}

activations! {
    /// Piecewise-linear functions, one for each feature: the clip, and what is learned.
    PiecewiseLinear(PiecewiseLinear<T>),
    /// The projection on boxes.
    BoxClip(BoxClip<T>),
    /// Soft-thresholding.
    SoftThreshold(SoftThreshold<T>),
    /// The projection on balls, group by group.
    L2Ball(L2Ball<T>),
    /// Shrinkage of groups.
    GroupL2(GroupL2<T>),
    /// The positive part.
    Relu(Relu),
    /// The projection on the simplex, across the features of each pixel.
    Simplex(Simplex<T>),
    /// Softmax, across the features of each pixel.
    Softmax(Softmax<T>),
    /// The logistic function.
    Sigmoid(Sigmoid<T>),
    /// None.
    Identity(Identity),
}

impl<T: Real> Activation<T> {
    /// The projection of each feature onto `[-lambda_j, lambda_j]`.
    pub fn clip(lambda: Vec<T>) -> Self {
        PiecewiseLinear::clip(lambda).into()
    }

    /// The piecewise-linear functions, if it is made of them: what the fused engine runs and training moves.
    pub fn piecewise(&self) -> Option<&PiecewiseLinear<T>> {
        if let Self::PiecewiseLinear(functions) = self { Some(functions) } else { None }
    }

    /// The same, to be moved.
    pub fn piecewise_mut(&mut self) -> Option<&mut PiecewiseLinear<T>> {
        if let Self::PiecewiseLinear(functions) = self { Some(functions) } else { None }
    }

    /// Whether training moves it: piecewise-linear functions with two knots or more. The paper's clip stays as it is.
    pub fn learns(&self) -> bool {
        self.piecewise().is_some_and(|functions| functions.pieces() > 1)
    }

    /// A Lipschitz constant.
    pub fn steepest(&self) -> T {
        self.piecewise().map_or(T::one(), |functions| functions.steepest().max(-functions.flattest()))
    }

    /// Its least slope, at most 0: below it, it is no prox.
    pub fn flattest(&self) -> T {
        self.piecewise().map_or(T::zero(), PiecewiseLinear::flattest)
    }

    /// Replaces `s` by `factor s(. / factor)`: the activation of images whose contrast is so many times higher.
    pub fn scale(&mut self, factor: T) {
        self.prox_mut().scale(factor);
    }

    /// Checks that it is an activation for so many features.
    pub fn validate(&self, features: usize) -> Result<()> {
        match self {
            // Which of them may fall, the network knows.
            Self::PiecewiseLinear(functions) => functions.check(),
            _ => self.prox().validate(),
        }?;
        let planes = self.prox().planes().unwrap_or(features);
        refuse!(planes != features => "{planes} thresholds given, but {features} features");
        Ok(())
    }

    /// `u = s(v)` for a batch.
    pub fn apply(&self, v: &Field<T>, u: &mut Field<T>) {
        self.by_samples(v, &[], u, |v, _, u| self.prox().prox(T::one(), v, u));
    }

    /// `out = s'(v) g` for a batch: the Jacobian of a prox is symmetric, so this is the step of forward and of reverse
    /// derivatives alike.
    pub fn slope(&self, v: &Field<T>, g: &Field<T>, out: &mut Field<T>) {
        self.by_samples(v, &[g], out, |v, g, out| self.prox().pullback(T::one(), v, &g[0], out));
    }

    /// `B(u, v)` of each sample, in double precision.
    pub fn bregman(&self, u: &Field<T>, v: &Field<T>, penalty: &mut [f64]) {
        penalty.par_iter_mut().enumerate().for_each(|(s, penalty)| {
            *penalty = match self {
                Self::PiecewiseLinear(functions) => {
                    let len = u.grid().len();
                    let values = u.sample(s).iter().zip(v.sample(s)).enumerate();
                    values.map(|(i, (&u, &v))| functions.bregman_at(i / len, u, v)).sum()
                }
                _ => {
                    let (u, v) = (u.sample_to_planar(s), v.sample_to_planar(s));
                    self.prox().bregman(T::one(), &u, &v, &mut vec![T::zero(); u.len()]).to_double()
                }
            };
        });
    }

    /// Calls `f` with the pixels of every sample of `v` and `others`: a prox that moves zero must not see the gaps.
    fn by_samples(
        &self,
        v: &Field<T>,
        others: &[&Field<T>],
        out: &mut Field<T>,
        f: impl Fn(&[T], &[Vec<T>], &mut [T]) + Sync,
    ) {
        let samples: Vec<Vec<T>> = (0..v.samples())
            .into_par_iter()
            .map(|s| {
                let others: Vec<_> = others.iter().map(|other| other.sample_to_planar(s)).collect();
                let v = v.sample_to_planar(s);
                let mut result = v.clone();
                f(&v, &others, &mut result);
                result
            })
            .collect();
        samples.iter().enumerate().for_each(|(s, sample)| out.load_sample(s, sample));
    }
}
