//! The mirrored border around an image and its phases, and putting it together again.
//!
//! ONNX has no padding that repeats the edge pixel and goes on beyond the other edge of a small picture, so rows and
//! columns are gathered: of `n`, place `i` shows `min(j, 2 n - 1 - j)` where `j = i mod 2 n`.

use super::graph::{Attribute, Graph};

/// The axes of rows and of columns.
const AXES: [(usize, &str); 2] = [(2, "rows"), (3, "columns")];

/// What a network sees beside the image.
#[derive(Clone, Copy)]
pub struct Sides {
    /// Mirrored rows and columns on every side.
    pub border: usize,
    /// The stride; where it does not divide a side, a row or column more is mirrored.
    pub stride: usize,
}

impl Sides {
    /// `image` with more rows and columns, taken apart into its phases.
    pub fn pad(self, graph: &mut Graph, image: &str) -> String {
        if self.border == 0 && self.stride == 1 {
            return image.to_string();
        }
        let start = graph.integer("border_start", -(self.border as i64));
        let (border, step) = (graph.integer("border", self.border as i64), graph.integer("step", 1));
        let mut padded = image.to_string();
        for (axis, name) in AXES {
            let called = |what: &str| format!("{name}_{what}");
            let place = [Attribute::Int("start", axis), Attribute::Int("end", axis + 1)];
            let count = graph.node_with("Shape", &[image], &called("shape"), &place);
            let count = graph.node("Squeeze", &[&count], name);
            let mut end = graph.node("Add", &[&count, &border], &called("end"));
            if self.stride > 1 {
                let stride = graph.integer("stride", self.stride as i64);
                let odd = graph.node("Mod", &[&count, &stride], &called("odd"));
                end = graph.node("Add", &[&end, &odd], &called("even_end"));
            }
            let places = graph.node("Range", &[&start, &end, &step], &called("places"));
            let period = graph.node("Add", &[&count, &count], &called("period"));
            let there = graph.node("Mod", &[&places, &period], &called("there"));
            let last = graph.node("Sub", &[&period, &step], &called("last"));
            let back = graph.node("Sub", &[&last, &there], &called("back"));
            let shown = graph.node("Min", &[&there, &back], &called("shown"));
            let attributes = [Attribute::Int("axis", axis)];
            padded = graph.node_with("Gather", &[&padded, &shown], &called("padded"), &attributes);
        }
        if self.stride == 1 {
            return padded;
        }
        graph.node_with("SpaceToDepth", &[&padded], "phases", &[Attribute::Int("blocksize", self.stride)])
    }

    /// What is inside the border, of the size of `image`.
    pub fn crop(self, graph: &mut Graph, padded: &str, image: &str) -> String {
        if self.border == 0 && self.stride == 1 {
            return padded.to_string();
        }
        let (inside, axes) = (self.border as i64, AXES.map(|(axis, _)| axis as i64));
        let starts = graph.integers("crop_starts", &[inside; 2]);
        let axes = graph.integers("crop_axes", &axes);
        if self.stride == 1 {
            let ends = graph.integers("crop_ends", &[-inside; 2]);
            return graph.node("Slice", &[padded, &starts, &ends, &axes], "cropped");
        }
        let blocks = [Attribute::Int("blocksize", self.stride)];
        let together = graph.node_with("DepthToSpace", &[padded], "together", &blocks);
        let sides = [Attribute::Int("start", AXES[0].0), Attribute::Int("end", AXES[1].0 + 1)];
        let size = graph.node_with("Shape", &[image], "size", &sides);
        let ends = graph.node("Add", &[&size, &starts], "crop_ends");
        graph.node("Slice", &[&together, &starts, &ends, &axes], "cropped")
    }
}
