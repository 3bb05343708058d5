//! The derivative of a denoiser: what gradients that go through it become.

use super::{Denoiser, method::Work, prepared::limit};
use crate::analysis::Jacobian;
use crate::engine::Engine;
use crate::image::Image;
use crate::network::{Architecture, Network};
use crate::{Result, memory, operator::LinearOperator};

impl Denoiser {
    /// The denoised image, and `J* g` with `J` the Jacobian there: what the gradient `g` of a function of the result is as one
    /// of the noisy image. The noise level is held, also where it is estimated.
    ///
    /// ```
    /// # use proxlift::{Denoiser, dataset::synthetic::dead_leaves, image::{Channels, noise::add_gaussian}};
    /// let clean = dead_leaves(1, 0, 32, 32, Channels::Grey)?;
    /// let noisy = add_gaussian(&clean, 0.1, 1, 0)?;
    /// let (estimate, gradient) = Denoiser::best().sigma(0.1).pull_back(&noisy, &clean)?;
    /// assert_eq!(estimate.shape(), gradient.shape());
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    /// Fails as [`Denoiser::denoise`] does, and for what has no derivative here: total variation, counts, clipped results.
    pub fn pull_back(&self, noisy: &Image, g: &Image) -> Result<(Image, Image)> {
        refuse!(noisy.shape() != g.shape() => "the gradient has another shape than the picture");
        noisy.check_finite()?;
        g.check_finite()?;
        let ready = self.prepare_pixels(noisy)?;
        refuse!(ready.stabiliser.is_some() || self.clip =>
            "only a network has a derivative here, for noise that is the same everywhere and without clipping");
        match &ready.work {
            Work::Nothing => Ok((noisy.clone(), g.clone())),
            Work::Network(network, most) => {
                memory::or_error(|| pull_back(ready.engine, network, *most, noisy, g))
            }
            Work::TotalVariation(_) | Work::Solved(..) => Err(invalid!(
                "only the layers of a network have a derivative here: leave the method or tolerance out, or choose another model than convex"
            )),
        }
    }
}

/// Bytes for two passes that keep every layer, features before and after their activation, and what goes back.
fn needed(network: &Network<f32>, height: usize, width: usize) -> u64 {
    let Architecture { depth, features, channels, .. } = network.architecture();
    let planes = 2 * depth * (2 * features + 2 * channels) + 8 * channels;
    let pixels = height * width / network.architecture().stride().pow(2);
    pixels as u64 * (planes * size_of::<f32>()) as u64
}

fn pull_back(
    engine: &dyn Engine<f32>,
    network: &Network<f32>,
    most: Option<f32>,
    noisy: &Image,
    g: &Image,
) -> Result<(Image, Image)> {
    let (channels, height, width) = noisy.shape();
    let (border, sizes) = (network.border, network.architecture());
    let taken = sizes.colours();
    // Where the stride does not divide a side, one row or column more.
    let after = |side: usize| border + side.next_multiple_of(sizes.stride()) - side;
    let (rows, columns) = ((border, after(height)), (border, after(width)));
    let seen = noisy.mirrored(rows, columns);
    memory::check("the derivative at this picture", needed(network, seen.height(), seen.width()))?;
    let mut padded = Image::zeros(channels, seen.height(), seen.width())?;
    padded.put((border, border), g);
    // Where the change is at its limit, the estimate moves with its pixel.
    let mut limited = Image::zeros(channels, seen.height(), seen.width())?;
    let size = (seen.height(), seen.width());
    let (mut estimate, mut gradient) = (seen.clone(), padded.clone());
    let length = taken * seen.pixels();
    // A network for grey pictures takes the channels of a colour picture one by one.
    for at in (0..seen.data().len()).step_by(length) {
        let part = at..at + length;
        let z = sizes.batch(&seen.data()[part.clone()], size)?;
        let jacobian = Jacobian::at(engine, network, &z)?;
        let (noisy, mut result) = (&seen.data()[part.clone()], jacobian.estimate());
        if let Some(most) = most {
            for (_, at) in part.clone().enumerate().filter(|&(i, _)| (result[i] - noisy[i]).abs() > most) {
                limited.data_mut()[at] = std::mem::take(&mut padded.data_mut()[at]);
            }
            limit(most, noisy, &mut result);
        }
        estimate.data_mut()[part.clone()].copy_from_slice(&result);
        jacobian.adjoint(&padded.data()[part.clone()], &mut gradient.data_mut()[part]);
    }
    gradient.data_mut().iter_mut().zip(limited.data()).for_each(|(g, limited)| *g += limited);
    Ok((estimate.crop(border..border + height, border..border + width), gradient.folded(rows, columns)))
}
