//! A new proximity operator: the elastic net.

use proxlift::prox::Prox;
use proxlift::{Error, Real, Result};

/// `psi(u) = a ||u||_1 + b/2 ||u||^2`.
///
/// ```text
/// prox_{tau psi}(v) = sign(v) max(|v| - tau a, 0) / (1 + tau b)
/// psi*(w)           = sum max(|w| - a, 0)^2 / (2 b)
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ElasticNet<T> {
    pub a: T,
    pub b: T,
}

impl<T: Real> Prox<T> for ElasticNet<T> {
    fn validate(&self) -> Result<()> {
        let fine = self.a >= T::zero() && self.a.is_finite() && self.b > T::zero() && self.b.is_finite();
        fine.then_some(()).ok_or_else(|| Error::invalid("the elastic net needs a >= 0 and b > 0"))
    }

    fn scale(&mut self, factor: T) {
        self.a *= factor; // factor^2 psi(u / factor) has factor a, and the same b
    }

    fn value(&self, u: &[T]) -> T {
        T::of(u.iter().map(|&u| (self.a * u.abs() + self.b * u * u / T::of(2.0)).to_double()).sum())
    }

    fn conjugate_value(&self, w: &[T]) -> T {
        let above = |w: &T| (w.abs() - self.a).max(T::zero()).to_double();
        T::of(w.iter().map(|w| above(w).powi(2)).sum::<f64>() / (2.0 * self.b.to_double()))
    }

    fn prox_in_place(&self, tau: T, v: &mut [T]) {
        let t = tau * self.a;
        for v in v {
            *v = (*v - v.max(-t).min(t)) / (T::one() + tau * self.b);
        }
    }

    fn pullback(&self, tau: T, v: &[T], g: &[T], out: &mut [T]) {
        for ((&v, &g), out) in v.iter().zip(g).zip(out) {
            let slope = T::one() / (T::one() + tau * self.b);
            *out = if v.abs() > tau * self.a { slope * g } else { T::zero() };
        }
    }
}

mod tests {
    use super::*;
    use proxlift::laws::{
        fenchel_young_mismatch, moreau_mismatch, prox_optimality_gap, pullback_mismatch, random_field,
    };

    #[test]
    fn the_elastic_net_keeps_the_laws() {
        let psi = ElasticNet { a: 0.4, b: 0.7 };
        psi.validate().unwrap();
        for tau in [0.3, 1.0, 2.5] {
            let v = random_field::<f64>(24, 1);
            assert!(moreau_mismatch(&psi, tau, &v) < 1e-13);
            assert!(fenchel_young_mismatch(&psi, tau, &v, 2) < 1e-13);
            assert!(prox_optimality_gap(&psi, tau, &v, 3) < 1e-13);
            assert!(pullback_mismatch(&psi, tau, &v, 4) < 1e-6);
        }
    }

    #[test]
    fn at_twice_the_contrast_it_does_the_same() {
        let (psi, mut scaled) = (ElasticNet { a: 0.4, b: 0.7 }, ElasticNet { a: 0.4, b: 0.7 });
        scaled.scale(2.0);
        let v = random_field::<f64>(24, 1);
        let (mut once, mut twice) = (v.clone(), v.iter().map(|v| 2.0 * v).collect::<Vec<_>>());
        psi.prox_in_place(1.0, &mut once);
        scaled.prox_in_place(1.0, &mut twice);
        assert!(once.iter().zip(&twice).all(|(once, twice)| (2.0 * once - twice).abs() < 1e-14));
    }
}
