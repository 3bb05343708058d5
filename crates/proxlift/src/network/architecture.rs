//! The sizes of a network, and what follows from them alone.

use crate::field::phases::{apart, stride_of, together};
use crate::field::{Field, Grid};
use crate::{Real, Result};
use std::ops::Range;

/// The sizes of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Architecture {
    /// `K`: the network has `K - 1` activations between its first and last operator.
    pub depth: usize,
    /// `J`, the features of every layer.
    pub features: usize,
    /// `k`, the side of the square kernels.
    pub kernel: usize,
    /// The planes that a layer sees: the channels of the images, 1 or 3, times the [phases](crate::field::phases) that
    /// they are taken apart into, 4 for convolutions of stride 2.
    pub channels: usize,
}

impl Architecture {
    /// The largest sizes that are accepted, so that no file can ask for memory without end.
    const MOST: Self = Self { depth: 1000, features: 4096, kernel: 31, channels: 12 };

    /// The most weights: the largest built-in network has 62,400.
    const MOST_PARAMETERS: usize = 1 << 24;
    /// The farthest that a network may see: a tile has four times this at least.
    const FARTHEST: usize = 2048;

    /// Checks that the sizes make a network.
    /// Fails when `K < 2`, the kernel is even, the channels are neither 1 nor 3, or a size is absurd.
    pub fn validate(&self) -> Result<()> {
        let Self { depth, features, kernel, channels } = *self;
        let most = Self::MOST;
        refuse!(!(2..=most.depth).contains(&depth) =>
            "the depth K is {depth}, but it must be between 2 and {}", most.depth);
        refuse!(!(1..=most.features).contains(&features) =>
            "the network has {features} features, but it must have between 1 and {}", most.features);
        refuse!(kernel.is_multiple_of(2) || kernel > most.kernel =>
            "the kernel size is {kernel}, but it must be odd and at most {} (3, 5 or 7)", most.kernel);
        refuse!(![1, 3].contains(&self.colours()) =>
            "the network has {channels} channels, but images have 1 (grey) or 3 (RGB), or 4 times as many phases");
        refuse!(self.parameters() > Self::MOST_PARAMETERS =>
            "the network has {} weights, but it must have at most {}", self.parameters(), Self::MOST_PARAMETERS);
        refuse!(self.receptive_radius() > Self::FARTHEST =>
            "the network sees {} pixels far, but it must see at most {}: give fewer layers or smaller kernels",
            self.receptive_radius(), Self::FARTHEST);
        Ok(())
    }

    /// The stride of the convolutions on the image: 1, or 2 where the layers see its phases.
    pub fn stride(&self) -> usize {
        stride_of(self.channels)
    }

    /// The channels of the images.
    pub fn colours(&self) -> usize {
        self.channels / (self.stride() * self.stride())
    }

    /// Weights of one layer, `J C k^2`.
    pub fn layer_parameters(&self) -> usize {
        self.features * self.channels * self.kernel * self.kernel
    }

    /// Weights of all `K + 1` operators.
    pub fn parameters(&self) -> usize {
        (self.depth + 1) * self.layer_parameters()
    }

    /// How far, in pixels of the image, an output pixel sees: `2 K r`, with stride 2 twice as far and one pixel more.
    pub fn receptive_radius(&self) -> usize {
        self.stride() * self.plane_radius() + self.stride() - 1
    }

    /// How far a number of the planes sees: `2 K r`.
    pub fn plane_radius(&self) -> usize {
        2 * self.depth * (self.kernel / 2)
    }

    /// The grid of planes of `height x width` numbers for this network's kernels.
    pub fn grid(&self, height: usize, width: usize) -> Result<Grid> {
        Grid::new(height, width, self.kernel / 2)
    }

    /// Images of `height x width` pixels, planar, as a batch of this network's planes.
    /// Fails when the stride does not divide the sides, or the numbers are not those of whole images.
    pub fn batch<T: Real>(&self, images: &[T], (height, width): (usize, usize)) -> Result<Field<T>> {
        let stride = self.stride();
        refuse!(!height.is_multiple_of(stride) || !width.is_multiple_of(stride) =>
            "images of {width}x{height} pixels cannot be taken apart with stride {stride}: give even sides");
        let grid = self.grid(height / stride, width / stride)?;
        let samples = images.len() / (self.colours() * height * width);
        Field::from_planar(samples, self.channels, grid, &apart(images, (height, width), stride))
    }

    /// The images of a batch, planar: the inverse of [`Architecture::batch`].
    pub fn images<T: Real>(&self, batch: &Field<T>) -> Vec<T> {
        let (height, width) = (batch.grid().height(), batch.grid().width());
        self.images_of(batch, (0..height, 0..width))
    }

    /// The images of these rows and columns of a batch.
    pub fn images_of<T: Real>(
        &self,
        batch: &Field<T>,
        (rows, columns): (Range<usize>, Range<usize>),
    ) -> Vec<T> {
        let size = (rows.len(), columns.len());
        together(batch.crop(rows, columns), size, self.stride()).into_owned()
    }

    /// Floating-point operations of one forward pass per pixel of the image, two per multiply-add.
    pub fn forward_flops(&self) -> usize {
        2 * self.depth * self.convolution_flops()
    }

    /// Floating-point operations of a convolution per pixel of the image.
    fn convolution_flops(&self) -> usize {
        2 * self.layer_parameters() / (self.stride() * self.stride())
    }

    /// Floating-point operations of one training pass per pixel of the image: forward, reverse sweep and all weight gradients.
    pub fn training_flops(&self) -> usize {
        let convolution = self.convolution_flops();
        // Each inner layer: two convolutions forward, two back, two for its gradient.
        // theta_0: forward and gradient; theta_K: forward, back and gradient.
        (6 * (self.depth - 1) + 2 + 3) * convolution
    }
}
