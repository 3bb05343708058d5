//! Restoration from data of any kind, of an operator of one's own.

use super::{Degradation, Likelihood, Prior, Progress, Restored, Restorer};
use crate::image::Image;
use crate::{Result, memory};

impl Restorer {
    /// Restores a picture from data of any kind, which came of an [operator](Degradation::Operator) of one's own; from `start`, or from
    /// `A* y`. The noise level is on the scale of the data.
    ///
    /// ```
    /// use proxlift::image::{Channels, Image};
    /// use proxlift::operator::Functions;
    /// use proxlift::restoration::{Degradation, Linear, Prior, Restorer};
    /// use std::ops::ControlFlow;
    /// // The mean of a row, and the row at half its brightness.
    /// let apply = |x: &[f64], y: &mut [f64]| {
    ///     y[0] = x.iter().sum::<f64>() / 4.0;
    ///     y[1..].iter_mut().zip(x).for_each(|(y, x)| *y = 0.5 * x);
    /// };
    /// let adjoint = |y: &[f64], x: &mut [f64]| {
    ///     x.iter_mut().zip(&y[1..]).for_each(|(x, v)| *x = 0.5 * v + y[0] / 4.0);
    /// };
    /// let operator = Linear::new(Functions::new::<f64>((4, 5), apply, adjoint), Channels::Grey, (1, 4))?;
    /// let restorer = Restorer::new(Degradation::Operator(operator)).sigma(0.01).prior(Prior::TotalVariation);
    /// let found = restorer.restore_data(vec![0.5, 0.1, 0.1, 0.4, 0.4], None, &mut |_| ControlFlow::Continue(()))?;
    /// assert!(found.settled && (found.image.data()[0] - 0.2).abs() < 0.05);
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    ///
    /// Fails when the data do not fit the operator, a setting is out of range or missing, or a value is not finite.
    pub fn restore_data(
        &self,
        y: Vec<f32>,
        start: Option<&Image>,
        progress: &mut Progress<'_>,
    ) -> Result<Restored> {
        self.check()?;
        let Degradation::Operator(linear) = &self.degradation else {
            return Err(invalid!("data that are no picture need an operator of one's own"));
        };
        refuse!(y.iter().any(|y| !y.is_finite()) => "a value of the data is not finite");
        if let Likelihood::Gaussian { sigma } = self.likelihood {
            refuse!(!sigma.is_some_and(|sigma| sigma.is_finite() && sigma > 0.0) =>
                "the data need a noise level sigma above zero");
        }
        let (kind, height, width) = linear.shape();
        let pixels = (height * width) as u64;
        memory::check("the restoration of the picture", pixels.saturating_mul(self.bytes(kind)))?;
        memory::or_error(|| {
            let forward = linear.forward(!matches!(self.prior, Prior::Denoiser(_)));
            let (range, found) = (forward.operator.range_len(), y.len());
            refuse!(range != found => "the operator gives {range} numbers, but there are {found} data");
            let start = match start {
                Some(start) => {
                    refuse!(start.shape() != (kind.count(), height, width) =>
                        "the picture to start from has {} x {} pixels or other channels, but the operator takes {width} x {height}",
                        start.width(), start.height());
                    start.check_finite()?;
                    start.data().to_vec()
                }
                None => {
                    let mut back = memory::zeros(forward.operator.domain_len());
                    forward.operator.adjoint(&y, &mut back);
                    back
                }
            };
            self.found(&forward, y, self.likelihood, start, progress)
        })
    }
}
