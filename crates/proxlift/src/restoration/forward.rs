//! An operator as it is inverted, and what is estimated around the picture.

use crate::image::Image;
use crate::operator::{LinearOperator, Resolvent};
use crate::{Result, memory};
use std::sync::Arc;

/// A residual of conjugate gradients that no picture shows.
pub(super) const TOLERANCE: f64 = 1e-4;

/// An operator for pictures, shared.
pub(super) type Shared = Arc<dyn Resolvent<f32> + Send + Sync>;

/// The picture and what is estimated around it.
#[derive(Clone)]
pub(super) struct Forward {
    pub operator: Shared,
    pub channels: usize,
    /// Rows and columns of what is estimated.
    pub scene: (usize, usize),
    /// Pixels around the picture that are estimated too.
    pub around: usize,
    /// Whether `(I + tau A* A)^-1` has a closed form.
    pub direct: bool,
}

impl Forward {
    /// The estimate within the edges of the picture.
    pub fn picture(&self, scene: Vec<f32>) -> Result<Image> {
        let whole = Image::new(self.channels, self.scene.0, self.scene.1, scene)?;
        let inside = |side: usize| self.around..side - self.around;
        Ok(if self.around == 0 { whole } else { whole.crop(inside(self.scene.0), inside(self.scene.1)) })
    }

    /// A picture as large as the restored one, with its mirror image around it: the scene to begin with.
    pub fn begin(&self, picture: &Image) -> Vec<f32> {
        picture.mirrored((self.around, self.around), (self.around, self.around)).data().to_vec()
    }

    /// `A x`.
    pub fn apply(&self, x: &[f32]) -> Vec<f32> {
        let mut y = memory::zeros(self.operator.range_len());
        self.operator.apply(x, &mut y);
        y
    }
}
