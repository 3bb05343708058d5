//! Counts for a network that was trained for white noise: each channel through the Anscombe transform and back, with all
//! channels brought to `[0, 1]` in between.

use crate::{Result, image::Image, noise::Anscombe};

/// The transforms of all channels, and the values that become 0 and 1.
pub(super) struct Stabiliser {
    channels: Vec<Anscombe>,
    least: f64,
    range: f64,
}

impl Stabiliser {
    /// For pictures like `sample`.
    pub fn new(channels: Vec<Anscombe>, sample: &Image) -> Self {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for (plane, transform) in sample.data().chunks_exact(sample.pixels()).zip(&channels) {
            let ends = (f32::INFINITY, f32::NEG_INFINITY);
            let ends = plane.iter().fold(ends, |(low, high), &v| (low.min(v), high.max(v)));
            least = least.min(transform.forward(ends.0.into()));
            most = most.max(transform.forward(ends.1.into()));
        }
        Self { channels, least, range: (most - least).max(1.0) }
    }

    /// Gain, offset and read noise of each channel, and the two ends.
    pub fn numbers(&self) -> (Vec<[f64; 3]>, [f64; 2]) {
        (self.channels.iter().map(Anscombe::numbers).collect(), [self.least, self.range])
    }

    /// The one with these numbers.
    pub fn of_numbers(transforms: &[[f64; 3]], [least, range]: [f64; 2]) -> Result<Self> {
        let channels = transforms.iter().map(|&[gain, offset, read]| Anscombe::new(gain, offset, read));
        refuse!(!(least.is_finite() && range.is_finite() && range > 0.0) => "counts have no range");
        Ok(Self { channels: channels.collect::<Result<_>>()?, least, range })
    }

    /// The level of the noise in between.
    pub fn sigma(&self) -> f64 {
        self.range.recip()
    }

    pub fn forward(&self, image: Image) -> Image {
        self.map(image, |transform, v| (transform.forward(v) - self.least) / self.range)
    }

    pub fn inverse(&self, image: Image) -> Image {
        self.map(image, |transform, v| transform.inverse(self.least + self.range * v))
    }

    /// What clean values become on average when noise is added to them.
    pub fn expected(&self, image: Image) -> Image {
        self.map(image, |transform, v| (transform.expected(v) - self.least) / self.range)
    }

    fn map(&self, mut image: Image, f: impl Fn(&Anscombe, f64) -> f64) -> Image {
        let pixels = image.pixels();
        for (plane, transform) in image.data_mut().chunks_exact_mut(pixels).zip(&self.channels) {
            plane.iter_mut().for_each(|v| *v = f(transform, f64::from(*v)) as f32);
        }
        image
    }
}

/// What is known of a camera or a microscope, in the units of the file; what is not given is found in the picture.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// File units for each count.
    pub gain: Option<f64>,
    /// The value of no counts.
    pub offset: Option<f64>,
    /// The standard deviation of the noise at no counts, in file units.
    pub read_noise: Option<f64>,
}

impl Counts {
    /// The transform for a channel, in units where the file's are `unit`; `a + b x` is the variance that was found.
    pub(super) fn transform(&self, unit: f64, a: f64, b: f64) -> Result<Anscombe> {
        let gain = self.gain.map_or(b, |gain| gain * unit);
        let found = if a < 0.0 { -a / gain } else { 0.0 };
        let offset = self.offset.map_or(found, |offset| offset * unit);
        let left = (a + gain * offset).max(0.0).sqrt();
        Anscombe::new(gain, offset, self.read_noise.map_or(left, |read| read * unit))
    }
}
