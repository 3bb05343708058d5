//! A network as named arrays: what model files and checkpoints hold.
//!
//! | name | shape | |
//! |---|---|---|
//! | `theta_0` .. `theta_K` | `[J, C, k, k]` | the filters |
//! | `synthesis_1` .. `synthesis_{K-1}` | the same | those of the synthesis, where layers have their own |
//! | `tau` | `[K - 1]` | the steps |
//! | `lambda` | `[J]` | the thresholds, where every layer has the same clip |
//! | `knots_1` .. `knots_{K-1}`, `slopes_1` .. | `[J, M]`, `[J, M + 1]` | else, piecewise-linear activations |
//!
//! Where a layer has another prox, the activations of all are JSON in the metadata instead.

use super::{Activation, Architecture, Network};
use crate::{Error, Result, operator::Filters, prox::PiecewiseLinear};

/// A shape and the numbers.
pub(crate) type Shaped = (Vec<usize>, Vec<f32>);

/// A name, a shape and the numbers.
pub(crate) type Tensor<'a> = (String, Vec<usize>, &'a [f32]);

impl Network<f32> {
    /// Whether every layer has the same clip, as in the paper.
    pub(crate) fn has_one_clip(&self) -> bool {
        let clip = |s: &Activation<f32>| s.piecewise().is_some_and(|functions| functions.is_clip());
        self.activation.iter().all(|s| clip(s) && *s == self.activation[0])
    }

    pub(crate) fn tensors(&self) -> Vec<Tensor<'_>> {
        let Architecture { features, kernel, channels, .. } = self.architecture();
        let shape = || vec![features, channels, kernel, kernel];
        let theta = self.theta.iter().enumerate();
        let mut tensors: Vec<Tensor<'_>> =
            theta.map(|(k, theta)| (format!("theta_{k}"), shape(), theta.weights())).collect();
        let synthesis = self.synthesis.iter().enumerate();
        tensors
            .extend(synthesis.map(|(k, theta)| (format!("synthesis_{}", k + 1), shape(), theta.weights())));
        tensors.push(("tau".into(), vec![self.tau.len()], &self.tau));
        let all = self.activation.iter().map(Activation::piecewise).collect::<Option<Vec<_>>>();
        for (k, functions) in all.into_iter().flatten().enumerate() {
            if self.has_one_clip() {
                tensors.push(("lambda".into(), vec![features], functions.knots()));
                break;
            }
            let pieces = functions.pieces();
            tensors.push((format!("knots_{}", k + 1), vec![features, pieces], functions.knots()));
            tensors.push((format!("slopes_{}", k + 1), vec![features, pieces + 1], functions.slopes()));
        }
        tensors
    }

    /// All activations as JSON, where arrays do not hold them.
    pub(crate) fn activations_as_json(&self) -> Option<String> {
        let arrays = self.activation.iter().all(|s| s.piecewise().is_some());
        if arrays { None } else { serde_json::to_string(&self.activation).ok() }
    }

    /// The network of these arrays, and how many of them it took; `tensor` gives one by its name, if there is one, and
    /// `activations` are those that the metadata hold.
    pub(crate) fn from_tensors(
        architecture: Architecture,
        activations: Option<&str>,
        mut tensor: impl FnMut(&str) -> Result<Option<Shaped>>,
    ) -> Result<(Self, usize)> {
        let Architecture { depth, features, kernel, channels } = architecture;
        let mut taken = 0;
        let mut take = |name: &str| {
            let values = tensor(name)?;
            taken += usize::from(values.is_some());
            Ok::<_, Error>(values)
        };
        fn needed(values: Option<Shaped>, name: &str, shape: &[usize]) -> Result<Vec<f32>> {
            let (found, values) = values.ok_or_else(|| invalid!("it lacks the tensor {name}"))?;
            refuse!(found != shape =>
                "the tensor {name} has the shape {found:?}, but the architecture needs {shape:?}");
            Ok(values)
        }
        let filters = |values, name: &str| {
            let weights = needed(values, name, &[features, channels, kernel, kernel])?;
            Filters::new(features, channels, kernel, weights)
        };
        let mut named = |name: String| filters(take(&name)?, &name);
        let theta = (0..=depth).map(|k| named(format!("theta_{k}"))).collect::<Result<Vec<_>>>()?;
        let mut synthesis = Vec::new();
        if let first @ Some(_) = take("synthesis_1")? {
            synthesis.push(filters(first, "synthesis_1")?);
            for k in 2..depth {
                let name = format!("synthesis_{k}");
                synthesis.push(filters(take(&name)?, &name)?);
            }
        }
        let tau = needed(take("tau")?, "tau", &[depth - 1])?;
        let mut network = match (activations, take("lambda")?) {
            (Some(json), _) => {
                let activation = serde_json::from_str(json)
                    .map_err(|e| invalid!("the activations cannot be read: {e}"))?;
                Self::with_activations(theta, tau, activation)?
            }
            (None, lambda @ Some(_)) => Self::new(theta, tau, needed(lambda, "lambda", &[features])?)?,
            (None, None) => {
                let activation = (1..depth).map(|k| {
                    let (knots, slopes) = (format!("knots_{k}"), format!("slopes_{k}"));
                    let values = take(&knots)?;
                    let pieces = values.as_ref().map_or(0, |(_, values)| values.len() / features);
                    let knots = needed(values, &knots, &[features, pieces])?;
                    let slopes = needed(take(&slopes)?, &slopes, &[features, pieces + 1])?;
                    PiecewiseLinear::redescending(pieces, knots, slopes).map(Activation::from)
                });
                let activation = activation.collect::<Result<Vec<_>>>()?;
                Self::with_activations(theta, tau, activation)?
            }
        };
        network.synthesis = synthesis;
        network.validate()?;
        Ok((network, taken))
    }
}
