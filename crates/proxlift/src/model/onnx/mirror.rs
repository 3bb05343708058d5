//! The mirrored border around an image, and taking it off again.
//!
//! ONNX has no padding that repeats the edge pixel and goes on beyond the other edge of a small picture, so rows and
//! columns are gathered: of `n`, place `i` shows `min(j, 2 n - 1 - j)` where `j = i mod 2 n`.

use super::graph::{Attribute, Graph};

/// The axes of rows and of columns.
const AXES: [(usize, &str); 2] = [(2, "rows"), (3, "columns")];

/// `image` with `border` more rows and columns on every side.
pub fn pad(graph: &mut Graph, image: &str, border: usize) -> String {
    if border == 0 {
        return image.to_string();
    }
    let start = graph.integer("border_start", -(border as i64));
    let (border, step) = (graph.integer("border", border as i64), graph.integer("step", 1));
    let mut padded = image.to_string();
    for (axis, name) in AXES {
        let called = |what: &str| format!("{name}_{what}");
        let place = [Attribute::Int("start", axis), Attribute::Int("end", axis + 1)];
        let count = graph.node_with("Shape", &[image], &called("shape"), &place);
        let count = graph.node("Squeeze", &[&count], name);
        let end = graph.node("Add", &[&count, &border], &called("end"));
        let places = graph.node("Range", &[&start, &end, &step], &called("places"));
        let period = graph.node("Add", &[&count, &count], &called("period"));
        let there = graph.node("Mod", &[&places, &period], &called("there"));
        let last = graph.node("Sub", &[&period, &step], &called("last"));
        let back = graph.node("Sub", &[&last, &there], &called("back"));
        let shown = graph.node("Min", &[&there, &back], &called("shown"));
        let attributes = [Attribute::Int("axis", axis)];
        padded = graph.node_with("Gather", &[&padded, &shown], &called("padded"), &attributes);
    }
    padded
}

/// What is inside the border.
pub fn crop(graph: &mut Graph, padded: &str, border: usize) -> String {
    if border == 0 {
        return padded.to_string();
    }
    let inside = border as i64;
    let starts = graph.integers("crop_starts", &[inside; 2]);
    let ends = graph.integers("crop_ends", &[-inside; 2]);
    let axes = graph.integers("crop_axes", &AXES.map(|(axis, _)| axis as i64));
    graph.node("Slice", &[padded, &starts, &ends, &axes], "cropped")
}
