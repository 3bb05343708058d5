//! A part of a picture, and a picture with its mirror image around it.

use super::LinearOperator;
use crate::{Real, Result};

/// Where index `i` of a length with mirrored ones around it, `before` of them before it, comes from; the edge is repeated.
fn mirror(i: usize, before: usize, length: usize) -> usize {
    let i = (i as isize - before as isize).rem_euclid(2 * length as isize) as usize;
    i.min(2 * length - 1 - i)
}

/// The picture within a frame `around` it: what a camera sees of a scene that goes on beyond the edges. Its norm is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    channels: usize,
    height: usize,
    width: usize,
    around: usize,
}

impl Window {
    /// Of `(height, width)` pixels, with `around` more on each side.
    /// Fails when there are no pixels.
    pub fn new(channels: usize, (height, width): (usize, usize), around: usize) -> Result<Self> {
        refuse!(channels == 0 || height == 0 || width == 0 => "a window needs pixels");
        Ok(Self { channels, height, width, around })
    }

    /// Rows and columns of the scene.
    pub fn scene(&self) -> (usize, usize) {
        (self.height + 2 * self.around, self.width + 2 * self.around)
    }

    /// Pairs of places in the scene and in the window, where the rows of the window start.
    fn rows(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (high, wide) = self.scene();
        (0..self.channels * self.height).map(move |i| {
            let (c, y) = (i / self.height, i % self.height);
            ((c * high + y + self.around) * wide + self.around, i * self.width)
        })
    }
}

impl<T: Real> LinearOperator<T> for Window {
    fn domain_len(&self) -> usize {
        self.channels * self.scene().0 * self.scene().1
    }

    fn range_len(&self) -> usize {
        self.channels * self.height * self.width
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        for (scene, window) in self.rows() {
            y[window..window + self.width].copy_from_slice(&x[scene..scene + self.width]);
        }
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        x.fill(T::zero());
        for (scene, window) in self.rows() {
            x[scene..scene + self.width].copy_from_slice(&y[window..window + self.width]);
        }
    }
}

/// The picture with `around` more pixels on each side, by reflection: the edge pixel is repeated (NumPy's `symmetric`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mirror {
    window: Window,
}

impl Mirror {
    /// Of `(height, width)` pixels. Fails when there are none.
    pub fn new(channels: usize, size: (usize, usize), around: usize) -> Result<Self> {
        Ok(Self { window: Window::new(channels, size, around)? })
    }

    /// `f(place in the scene, place in the picture it comes from)` for all places.
    fn each(&self, mut f: impl FnMut(usize, usize)) {
        let Window { channels, height, width, around } = self.window;
        let (high, wide) = self.window.scene();
        let columns: Vec<usize> = (0..wide).map(|x| mirror(x, around, width)).collect();
        for (c, y) in (0..channels).flat_map(|c| (0..high).map(move |y| (c, y))) {
            let (to, from) = ((c * high + y) * wide, (c * height + mirror(y, around, height)) * width);
            columns.iter().enumerate().for_each(|(x, column)| f(to + x, from + column));
        }
    }
}

impl<T: Real> LinearOperator<T> for Mirror {
    fn domain_len(&self) -> usize {
        LinearOperator::<T>::range_len(&self.window)
    }

    fn range_len(&self) -> usize {
        LinearOperator::<T>::domain_len(&self.window)
    }

    fn apply(&self, x: &[T], y: &mut [T]) {
        self.each(|to, from| y[to] = x[from]);
    }

    fn adjoint(&self, y: &[T], x: &mut [T]) {
        x.fill(T::zero());
        self.each(|to, from| x[from] += y[to]);
    }
}
