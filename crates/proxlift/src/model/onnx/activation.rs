//! The activation of a layer as nodes.
//!
//! ```text
//! s(t) = c t + sum_m a_m clip(t, l_m) = c t + sum_m (a_m l_m) clip(t / l_m, 1)
//! ```
//!
//! So learned activations are a convolution of each feature with `1 / l_m`, a clip with the same bounds everywhere, and
//! a convolution with `a_m l_m`: three nodes for any number of knots, and two more where `c` is not zero.

use super::LEAST;
use super::graph::{Attribute, Graph};
use crate::network::Activation;
use crate::prox::{L2Ball, PiecewiseLinear, Simplex};

/// `u_k` from `v_k`.
pub fn activate(graph: &mut Graph, activation: &Activation<f32>, features: usize, k: usize) -> String {
    let (v, u) = (format!("v_{k}"), format!("u_{k}"));
    match activation {
        Activation::Identity(_) => v,
        Activation::Relu(_) => graph.node("Relu", &[&v], &u),
        Activation::BoxClip(boxes) => {
            let (lo, hi): (Vec<f32>, Vec<f32>) = boxes.bounds().unzip();
            clip(graph, (&lo, &hi), k, &u)
        }
        Activation::SoftThreshold(shrinkage) => {
            let thresholds = shrinkage.thresholds();
            let clipped = clip(graph, (&negative(thresholds), thresholds), k, &format!("clipped_{k}"));
            graph.node("Sub", &[&v, &clipped], &u)
        }
        Activation::L2Ball(ball) => project(graph, ball, features, k, &u),
        Activation::GroupL2(shrinkage) => {
            let projected = project(graph, shrinkage.ball(), features, k, &format!("projected_{k}"));
            graph.node("Sub", &[&v, &projected], &u)
        }
        Activation::Simplex(simplex) => simplex_projection(graph, simplex, features, k, &u),
        Activation::Softmax(softmax) => {
            smooth(graph, ("Softmax", &[Attribute::Int("axis", 1)]), softmax.sum(), k, &u)
        }
        Activation::Sigmoid(sigmoid) => smooth(graph, ("Sigmoid", &[]), sigmoid.height(), k, &u),
        Activation::PiecewiseLinear(functions) if functions.is_clip() => {
            clip(graph, (&negative(functions.knots()), functions.knots()), k, &u)
        }
        Activation::PiecewiseLinear(functions) => piecewise(graph, functions, k, &u),
    }
}

fn negative(values: &[f32]) -> Vec<f32> {
    values.iter().map(|v| -v).collect()
}

/// One node where all features have the same bounds, else two.
fn clip(graph: &mut Graph, (lo, hi): (&[f32], &[f32]), k: usize, out: &str) -> String {
    let (v, low, high) = (format!("v_{k}"), format!("low_{k}"), format!("high_{k}"));
    if lo.iter().all(|l| *l == lo[0]) && hi.iter().all(|h| *h == hi[0]) {
        let (low, high) = (graph.number(&low, lo[0]), graph.number(&high, hi[0]));
        return graph.node("Clip", &[&v, &low, &high], out);
    }
    let (low, high) = (graph.by_feature(&low, lo), graph.by_feature(&high, hi));
    let below = graph.node("Min", &[&v, &high], &format!("below_{k}"));
    graph.node("Max", &[&below, &low], out)
}

fn piecewise(graph: &mut Graph, functions: &PiecewiseLinear<f32>, k: usize, out: &str) -> String {
    let (features, pieces) = (functions.features(), functions.pieces());
    let (mut inverses, mut heights, mut last) = (Vec::new(), Vec::new(), Vec::new());
    for j in 0..features {
        let (c, clips) = functions.clips(j);
        last.push(c);
        for (a, l) in clips {
            inverses.push(if l < LEAST { 0.0 } else { 1.0 / l });
            heights.push(a * l);
        }
    }
    let v = format!("v_{k}");
    let inverses = graph.floats(&format!("inverse_knots_{k}"), &[features * pieces, 1, 1, 1], &inverses);
    let heights = graph.floats(&format!("heights_{k}"), &[features, pieces, 1, 1], &heights);
    let (low, high) = (graph.number("minus_one", -1.0), graph.number("one", 1.0));
    let each = [Attribute::Int("group", features), Attribute::Ints("kernel_shape", &[1, 1])];
    let ramps = graph.node_with("Conv", &[&v, &inverses], &format!("ramps_{k}"), &each);
    let clips = graph.node("Clip", &[&ramps, &low, &high], &format!("clips_{k}"));
    if last.iter().all(|c| *c == 0.0) {
        return graph.node_with("Conv", &[&clips, &heights], out, &each);
    }
    let inner = graph.node_with("Conv", &[&clips, &heights], &format!("inner_{k}"), &each);
    let last = graph.by_feature(&format!("last_slopes_{k}"), &last);
    let outer = graph.node("Mul", &[&v, &last], &format!("outer_{k}"));
    graph.node("Add", &[&inner, &outer], out)
}

/// `v_G min(1, lambda_G / ||v_G||)`, group by group.
fn project(graph: &mut Graph, ball: &L2Ball<f32>, features: usize, k: usize, out: &str) -> String {
    let (size, radii) = ball.radii();
    let groups = features / size;
    let each = [Attribute::Int("group", groups), Attribute::Ints("kernel_shape", &[1, 1])];
    let v = format!("v_{k}");
    let ones = vec![1.0; features];
    let sum = graph.floats("group_sum", &[groups, size, 1, 1], &ones);
    let spread = graph.floats("group_spread", &[features, 1, 1, 1], &ones);
    let least: Vec<f32> = radii.iter().map(|r| r.max(LEAST)).collect();
    let (radii, least) = (
        graph.by_feature(&format!("radii_{k}"), radii),
        graph.by_feature(&format!("least_norms_{k}"), &least),
    );
    let squares = graph.node("Mul", &[&v, &v], &format!("squares_{k}"));
    let sums = graph.node_with("Conv", &[&squares, &sum], &format!("sums_{k}"), &each);
    let norms = graph.node("Sqrt", &[&sums], &format!("norms_{k}"));
    let norms = graph.node("Max", &[&norms, &least], &format!("norms_outside_{k}"));
    let factors = graph.node("Div", &[&radii, &norms], &format!("group_factors_{k}"));
    let factors = graph.node_with("Conv", &[&factors, &spread], &format!("factors_{k}"), &each);
    graph.node("Mul", &[&v, &factors], out)
}

/// `c s(v / c)`.
fn smooth(graph: &mut Graph, (s, how): (&str, &[Attribute<'_>]), c: f32, k: usize, out: &str) -> String {
    let v = format!("v_{k}");
    if c == 1.0 {
        return graph.node_with(s, &[&v], out, how);
    }
    let (contrast, least) = (
        graph.number(&format!("contrast_{k}"), c),
        graph.number(&format!("least_contrast_{k}"), c.max(LEAST)),
    );
    let scaled = graph.node("Div", &[&v, &least], &format!("scaled_{k}"));
    let unscaled = graph.node_with(s, &[&scaled], &format!("unscaled_{k}"), how);
    graph.node("Mul", &[&unscaled, &contrast], out)
}

/// `max(v - nu, 0)`, where `nu` is the largest of all `(v_1 + .. + v_m - c) / m`, with `v` in falling order.
fn simplex_projection(
    graph: &mut Graph,
    simplex: &Simplex<f32>,
    features: usize,
    k: usize,
    out: &str,
) -> String {
    let (v, axis) = (format!("v_{k}"), Attribute::Int("axis", 1));
    let (all, along) =
        (graph.integers("all_features", &[features as i64]), graph.integer("along_features", 1));
    let axes = graph.integers("axis_of_features", &[1]);
    let sum = graph.number(&format!("sum_{k}"), simplex.sum());
    let counts: Vec<f32> = (1..=features).map(|m| m as f32).collect();
    let counts = graph.by_feature("counts", &counts);
    let falling = graph.node_with("TopK", &[&v, &all], &format!("falling_{k}"), &[axis]);
    graph.0.node.last_mut().into_iter().for_each(|node| node.output.push(format!("order_{k}")));
    let sums = graph.node("CumSum", &[&falling, &along], &format!("sums_{k}"));
    let excess = graph.node("Sub", &[&sums, &sum], &format!("excess_{k}"));
    let levels = graph.node("Div", &[&excess, &counts], &format!("levels_{k}"));
    let level = graph.node("ReduceMax", &[&levels, &axes], &format!("level_{k}"));
    let beyond = graph.node("Sub", &[&v, &level], &format!("beyond_{k}"));
    graph.node("Relu", &[&beyond], out)
}
