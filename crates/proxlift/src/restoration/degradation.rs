//! What was done to a picture, as an operator.

use super::forward::{Forward, Shared, TOLERANCE};
use super::{Kernel, Linear};
use crate::Result;
use crate::image::{Channels, Image};
use crate::named::named;
use crate::operator::{Blur, Composed, ConjugateGradients, Downsampling, Mask, Mirror, Window};
use std::sync::Arc;

/// A residual of conjugate gradients that no proof will see.
const EXACT: f64 = 1e-6;

/// What was done to a picture.
#[derive(Clone, Debug)]
pub enum Degradation {
    /// It was blurred.
    Blur(Kernel),
    /// Pixels are missing: those where the mask, row by row, is false.
    Missing {
        /// Which pixels are known.
        known: Vec<bool>,
        /// Rows and columns.
        size: (usize, usize),
    },
    /// It was blurred, and every `factor`-th pixel of every `factor`-th row was kept.
    Small {
        /// Whole and at least 2.
        factor: usize,
        /// The blur; [`Kernel::cubic`] is that of most programs.
        kernel: Kernel,
    },
    /// Each pixel has one colour, in the order of four letters such as `rggb`.
    Mosaic(String),
    /// It went through an operator of one's own.
    Operator(Linear),
}

named! {
    /// What is beyond the edges of a blurred picture.
    pub enum Border ("border") {
        /// The other edge.
        Circular = "circular",
        /// The mirror image.
        Mirrored = "mirrored",
        /// Nobody knows: the scene goes on, and is estimated too.
        Unknown = "unknown",
    }
}

impl Degradation {
    /// The kernel, where there is one.
    fn kernel(&self) -> Option<&Kernel> {
        match self {
            Self::Blur(kernel) | Self::Small { kernel, .. } => Some(kernel),
            Self::Missing { .. } | Self::Mosaic(_) | Self::Operator(_) => None,
        }
    }

    /// How many times as many rows and columns the restored picture has.
    pub fn factor(&self) -> usize {
        if let Self::Small { factor, .. } = self { *factor } else { 1 }
    }

    /// How far a pixel of the restored picture is spread.
    pub(super) fn reach(&self) -> usize {
        self.kernel().map_or(0, Kernel::radius)
    }

    /// Whether some pixels were not seen at all.
    pub(super) fn leaves_gaps(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Mosaic(_))
    }

    /// Refuses a mask of another size than the picture.
    pub(super) fn check(&self, seen: &Image) -> Result<()> {
        let (height, width) = (seen.height(), seen.width());
        if let Self::Missing { known, size: (rows, columns) } = self {
            refuse!((*rows, *columns) != (height, width) || known.len() != rows * columns =>
                "the mask has {columns} x {rows} pixels, but the picture has {width} x {height}");
        }
        Ok(())
    }

    /// The operator for a picture like `seen`, with an inverse that is `exact` but for rounding or as good as eyes can see.
    /// Fails where the two do not fit.
    pub(super) fn forward(&self, seen: &Image, border: Border, exact: bool) -> Result<Forward> {
        let (channels, height, width) = seen.shape();
        let size = (self.factor() * height, self.factor() * width);
        let plain = |operator: Shared| Forward { operator, channels, scene: size, around: 0, direct: true };
        match self {
            Self::Missing { known, .. } => {
                self.check(seen)?;
                Ok(plain(Arc::new(Mask::new(known.repeat(channels))?)))
            }
            Self::Mosaic(pattern) => {
                refuse!(seen.kind() != Channels::Rgb => "a mosaic is that of a colour picture");
                Ok(plain(Arc::new(Mask::mosaic(pattern, size)?)))
            }
            Self::Operator(linear) => Ok(linear.forward(exact)),
            Self::Blur(_) | Self::Small { .. } => self.blurred(channels, size, border, exact),
        }
    }

    fn blurred(&self, channels: usize, size: (usize, usize), border: Border, exact: bool) -> Result<Forward> {
        let tolerance = if exact { EXACT } else { TOLERANCE };
        let (Some(kernel), factor) = (self.kernel(), self.factor()) else {
            return Err(invalid!("there is no kernel"));
        };
        let (rows, columns) = kernel.size();
        refuse!(rows > size.0 || columns > size.1 =>
            "the kernel has {columns} x {rows} pixels, more than the picture with its {} x {}", size.1, size.0);
        let circular = |size| -> Result<Shared> {
            Ok(if factor == 1 {
                Arc::new(Blur::new(kernel.weights(), kernel.size(), channels, size)?)
            } else {
                Arc::new(Downsampling::new(factor, kernel.weights(), kernel.size(), channels, size)?)
            })
        };
        if border == Border::Circular {
            return Ok(Forward { operator: circular(size)?, channels, scene: size, around: 0, direct: true });
        }
        // What the kernel reaches, a whole number of small pixels.
        let reach = kernel.radius().div_ceil(factor);
        let around = reach * factor;
        let window = Window::new(channels, (size.0 / factor, size.1 / factor), reach)?;
        let scene = (size.0 + 2 * around, size.1 + 2 * around);
        let whole = circular(scene)?;
        let seen = Composed::new::<f32>(window, whole.clone())?;
        if border == Border::Unknown {
            let mut solver = ConjugateGradients::new::<f32>(seen).near::<f32, _>(whole);
            solver.tolerance = tolerance;
            return Ok(Forward { operator: Arc::new(solver), channels, scene, around, direct: false });
        }
        let mirrored = Composed::new::<f32>(seen, Mirror::new(channels, size, around)?)?;
        let mut solver = ConjugateGradients::new::<f32>(mirrored).near::<f32, _>(circular(size)?);
        solver.tolerance = tolerance;
        Ok(Forward { operator: Arc::new(solver), channels, scene: size, around: 0, direct: false })
    }
}
