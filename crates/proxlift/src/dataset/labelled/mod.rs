//! Small grey pictures with a class each: digits that are drawn here, or those of IDX files.

mod digits;
mod idx;

use crate::Result;

/// Pictures of one size, one after the other, with a label from 0 to 9 each; black is 0, white 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    height: usize,
    width: usize,
    pixels: Vec<f32>,
    labels: Vec<usize>,
}

impl Labelled {
    /// The classes: digits.
    pub const CLASSES: usize = 10;

    /// Pictures of `height x width` pixels each. Fails when pixels and labels do not fit, or a label is no digit.
    pub fn new(height: usize, width: usize, pixels: Vec<f32>, labels: Vec<usize>) -> Result<Self> {
        refuse!(labels.is_empty() => "there are no labelled pictures");
        refuse!(height * width == 0 || pixels.len() != height * width * labels.len() =>
            "{} labels are given for {} pixels in pictures of {width} x {height}", labels.len(), pixels.len());
        let bad = labels.iter().enumerate().find(|(_, label)| **label >= Self::CLASSES);
        if let Some((i, label)) = bad {
            return Err(invalid!("the label of picture {i} is {label}, but labels go from 0 to 9"));
        }
        Ok(Self { height, width, pixels, labels })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Never: there is at least one.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Rows and columns of a picture.
    pub fn size(&self) -> (usize, usize) {
        (self.height, self.width)
    }

    /// The pixels of picture `i`, row by row.
    pub fn picture(&self, i: usize) -> &[f32] {
        let length = self.height * self.width;
        &self.pixels[i * length..][..length]
    }

    /// The labels of all.
    pub fn labels(&self) -> &[usize] {
        &self.labels
    }

    /// The first pictures, `count` at most.
    #[must_use]
    pub fn first(mut self, count: usize) -> Self {
        self.labels.truncate(count.max(1));
        self.pixels.truncate(self.labels.len() * self.height * self.width);
        self
    }
}
