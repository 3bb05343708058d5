//! The network opened: what every layer makes of a part of a picture.

use crate::error::{said, told};
use crate::options::Request;
use proxlift::engine::Cpu;
use proxlift::engine::pass::{Own, Pass, forward};
use proxlift::field::phases::together;
use proxlift::image::{Channels, Image};
use proxlift::network::Network;
use serde_json::json;
use wasm_bindgen::prelude::*;

/// Points of an activation's curve.
const POINTS: usize = 97;

/// All layers of a network on a part of a picture.
#[wasm_bindgen]
pub struct Layers {
    network: Network<f32>,
    pass: Pass<f32>,
    size: (usize, usize),
}

#[wasm_bindgen]
impl Layers {
    /// The part has the height and width of the request, and even sides.
    #[wasm_bindgen(constructor)]
    pub fn new(request: &str, part: Vec<f32>) -> Result<Self, JsError> {
        let request: Request = serde_json::from_str(request).map_err(said)?;
        let channels = Channels::from_count(request.channels).ok_or_else(|| said("no such channels"))?;
        let engine = Cpu::new();
        let denoiser = request.options.denoiser()?;
        let ready = denoiser.prepare_settled(channels, &request.settled).map_err(told)?;
        let network = ready.network().ok_or_else(|| {
            said("there is no network at work here: choose a model, and a picture with noise")
        })?;
        let size = (request.height, request.width);
        let part = Image::new(request.channels, size.0, size.1, part).map_err(told)?;
        let seen = ready.seen_by_network(&part);
        let z = network.architecture().batch(seen.data(), (seen.height(), seen.width())).map_err(told)?;
        let mut pass = Pass::new(network, z).map_err(told)?;
        forward(&engine, network, &mut pass, &Own { engine: &engine, network });
        Ok(Self { network: network.clone(), pass, size })
    }

    /// The sizes, as JSON.
    pub fn describe(&self) -> String {
        let sizes = self.network.architecture();
        json!({
            "depth": sizes.depth,
            "features": sizes.features,
            "side": sizes.stride() * sizes.kernel,
            "stride": sizes.stride(),
            "colours": sizes.colours(),
            "parameters": self.network.parameters(),
            "height": self.size.0,
            "width": self.size.1,
            "points": POINTS,
            "steps": self.network.tau,
        })
        .to_string()
    }

    /// The estimate after `k` layers in RGBA; after none, the noisy picture.
    pub fn estimate(&self, k: usize) -> Vec<u8> {
        let (sizes, border) = (self.network.architecture(), self.network.plane_border());
        let (field, sign) = if k == 0 { (&self.pass.z, 1.0) } else { (&self.pass.r[k], -1.0) };
        let (height, width) = (self.size.0 / sizes.stride(), self.size.1 / sizes.stride());
        let data = sizes.images_of(field, (border..border + height, border..border + width));
        rgba(&data, data.len() / (self.size.0 * self.size.1), |v| sign * v)
    }

    /// All dual variables after layer `k = 0..K-1`: one byte a pixel, feature by feature; 128 is zero.
    pub fn duals(&self, k: usize) -> Vec<u8> {
        let (border, stride) = (self.network.plane_border(), self.network.architecture().stride());
        let (height, width) = (self.size.0 / stride, self.size.1 / stride);
        // Of a grey network on a colour picture, the first channel.
        let data = self.pass.u[k].crop(border..border + height, border..border + width);
        let data = &data[..self.network.architecture().features * height * width];
        let most = largest(data);
        data.iter().map(|v| (128.0 + 127.0 * v / most) as u8).collect()
    }

    /// The filters of layer `k = 0..K` in RGBA, one after the other; middle grey is zero.
    pub fn filters(&self, k: usize) -> Vec<u8> {
        let (sizes, theta) = (self.network.architecture(), &self.network.theta[k]);
        let weights = together(theta.weights(), (sizes.kernel, sizes.kernel), sizes.stride());
        let most = largest(&weights);
        let each = sizes.colours() * (sizes.stride() * sizes.kernel).pow(2);
        let draw = |filter: &[f32]| rgba(filter, sizes.colours(), |w| 0.5 + 0.5 * w / most);
        weights.chunks_exact(each).flat_map(draw).collect()
    }

    /// The activations of layer `k = 1..K-1`, feature by feature, at evenly spaced points from minus to plus the last
    /// number; nothing else where they are not functions of one number.
    pub fn activations(&self, k: usize) -> Vec<f32> {
        let Some(functions) = self.network.layer(k).activation.piecewise() else { return Vec::new() };
        let most = 1.2 * largest(functions.knots());
        let place = |i: usize| most * (2.0 * i as f32 / (POINTS - 1) as f32 - 1.0);
        let values =
            (0..functions.features()).flat_map(|j| (0..POINTS).map(move |i| functions.at(j, place(i))));
        values.chain([most]).collect()
    }
}

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(f32::MIN_POSITIVE, |most, v| most.max(v.abs()))
}

fn rgba(planes: &[f32], channels: usize, value: impl Fn(f32) -> f32) -> Vec<u8> {
    let pixels = planes.len() / channels;
    let byte = |c: usize, i: usize| (255.0 * value(planes[c * pixels + i]) + 0.5) as u8;
    let last = channels - 1;
    (0..pixels).flat_map(|i| [byte(0, i), byte(last / 2, i), byte(last, i), 255]).collect()
}
