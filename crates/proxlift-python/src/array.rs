//! NumPy arrays as pictures: of any strides, read where they lie.

use numpy::ndarray::{ArrayView3, ArrayViewMut3, ArrayViewMut4, Axis, s};
use numpy::{Element, PyReadonlyArray4, PyReadwriteArray4};
use proxlift::denoiser::Pixels;
use proxlift::image::{Channels, Image};
use pyo3::prelude::*;
use std::ops::Range;

/// A type of numbers that pictures have.
pub trait Sample: Element + Copy {
    /// What white is divided by.
    const UNIT: f64;
    /// Where white is 1; floats as they are.
    fn value(self) -> f32;
}

macro_rules! samples {
    ($($type:ty, $unit:expr, $value:expr);+) => {
        $(impl Sample for $type {
            const UNIT: f64 = $unit;
            fn value(self) -> f32 {
                $value(self)
            }
        })+
    };
}
samples! {
    u8, 1.0 / 255.0, |v: u8| f32::from(v) / 255.0;
    u16, 1.0 / 65_535.0, |v: u16| f32::from(v) / 65_535.0;
    f32, 1.0, |v: f32| v;
    f64, 1.0, |v: f64| v as f32
}

/// Pictures `[picture][channel][row][column]`.
#[derive(FromPyObject)]
pub enum Input<'py> {
    Single(PyReadonlyArray4<'py, f32>),
    Double(PyReadonlyArray4<'py, f64>),
    Eight(PyReadonlyArray4<'py, u8>),
    Sixteen(PyReadonlyArray4<'py, u16>),
}

/// `$body` with `$array` a view of the numbers, whatever their type.
macro_rules! each {
    ($input:expr, $array:ident => $body:expr) => {
        match $input {
            $crate::array::Input::Eight(array) => {
                let $array = array.as_array();
                $body
            }
            $crate::array::Input::Sixteen(array) => {
                let $array = array.as_array();
                $body
            }
            $crate::array::Input::Single(array) => {
                let $array = array.as_array();
                $body
            }
            $crate::array::Input::Double(array) => {
                let $array = array.as_array();
                $body
            }
        }
    };
}
pub(crate) use each;

/// Results in the same order.
#[derive(FromPyObject)]
pub enum Output<'py> {
    Single(PyReadwriteArray4<'py, f32>),
    Double(PyReadwriteArray4<'py, f64>),
}

/// One picture of an array.
pub struct Page<'a, T>(pub ArrayView3<'a, T>);

impl<T: Sample> Pixels for Page<'_, T> {
    fn kind(&self) -> Channels {
        Channels::from_count(self.0.dim().0).expect("Python gives 1 or 3 channels")
    }

    fn size(&self) -> (usize, usize) {
        (self.0.dim().1, self.0.dim().2)
    }

    fn unit(&self) -> f64 {
        T::UNIT
    }

    fn crop(&self, rows: Range<usize>, columns: Range<usize>) -> Image {
        let part = self.0.slice(s![.., rows, columns]);
        let (channels, height, width) = part.dim();
        let mut data = Vec::with_capacity(part.len());
        for row in part.rows() {
            match row.as_slice() {
                Some(row) => data.extend(row.iter().map(|v| v.value())),
                None => data.extend(row.iter().map(|v| v.value())),
            }
        }
        Image::new(channels, height, width, data).expect("a part has pixels")
    }
}

/// A picture of the result.
pub enum PageMut<'a> {
    Single(ArrayViewMut3<'a, f32>),
    Double(ArrayViewMut3<'a, f64>),
}

impl PageMut<'_> {
    pub fn put(&mut self, (y, x): (usize, usize), image: &Image) {
        match self {
            Self::Single(page) => put(page, (y, x), image, |v| v),
            Self::Double(page) => put(page, (y, x), image, f64::from),
        }
    }
}

fn put<T: Copy>(
    page: &mut ArrayViewMut3<'_, T>,
    (y, x): (usize, usize),
    image: &Image,
    value: impl Fn(f32) -> T,
) {
    let mut part = page.slice_mut(s![.., y..y + image.height(), x..x + image.width()]);
    let rows = part.rows_mut().into_iter().zip(image.data().chunks_exact(image.width()));
    for (mut to, from) in rows {
        match to.as_slice_mut() {
            Some(to) => to.iter_mut().zip(from).for_each(|(to, &v)| *to = value(v)),
            None => to.iter_mut().zip(from).for_each(|(to, &v)| *to = value(v)),
        }
    }
}

impl Output<'_> {
    /// All pictures of the result.
    pub fn pages(&mut self) -> Vec<PageMut<'_>> {
        match self {
            Self::Single(array) => pages(array.as_array_mut()).map(PageMut::Single).collect(),
            Self::Double(array) => pages(array.as_array_mut()).map(PageMut::Double).collect(),
        }
    }

    pub fn shape(&self) -> Vec<usize> {
        match self {
            Self::Single(array) => array.as_array().shape().to_vec(),
            Self::Double(array) => array.as_array().shape().to_vec(),
        }
    }
}

fn pages<T>(array: ArrayViewMut4<'_, T>) -> impl Iterator<Item = ArrayViewMut3<'_, T>> {
    let mut rest = Some(array);
    std::iter::from_fn(move || {
        let array = rest.take().filter(|array| !array.is_empty())?;
        let (page, others) = array.split_at(Axis(0), 1);
        rest = Some(others);
        Some(page.index_axis_move(Axis(0), 0))
    })
}
