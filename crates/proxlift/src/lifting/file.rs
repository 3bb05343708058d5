//! Networks in files: safetensors, in the precision of the network.
//!
//! | | |
//! |---|---|
//! | metadata `format`, `version` | `proxlift-lifting`, 1 |
//! | metadata `loss` | its name |
//! | metadata `layers` | the sizes of every [`Kind`], in JSON |
//! | metadata `activations` | those between them, in JSON, with their numbers |
//! | tensors `layer_k_i` | block `i` of the parameters of layer `k`, F32 or F64 |

use super::maps::with_parameters;
use super::{Kind, Loss, Network};
use crate::image::io::write_atomically;
use crate::model::tensors::{Header, Metadata, Numbers, doubles, singles, write_tensors};
use crate::network::Activation;
use crate::{Error, Real, Result, storage};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::io::Write;
use std::path::Path;

const FORMAT: &str = "proxlift-lifting";
const VERSION: u32 = 1;

/// A larger file is not read into memory.
const MAX_BYTES: u64 = 4 << 30;

impl<T: Real> Network<T> {
    /// Writes the network to `path`: to a temporary file beside it, then renamed.
    /// Fails when a layer is of a kind of your own, or the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, bytes) = (path.as_ref(), self.to_bytes()?);
        write_atomically(path, |file| file.write_all(&bytes).map_err(Error::io(path)))
    }

    /// Reads a network of either precision and checks every part of it.
    /// Fails when the file cannot be read, is truncated, foreign, of a newer version, or inconsistent.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = storage::read(path, MAX_BYTES, "a network of proxlift")?;
        Self::from_bytes(&bytes).map_err(|e| Error::file(path, e.to_string()))
    }

    /// The sizes of all layers. Fails when one is of a kind of your own.
    fn kinds(&self) -> Result<Vec<Kind>> {
        let kinds = self.layers().iter().enumerate().map(|(k, layer)| {
            layer.kind().ok_or_else(|| {
                invalid!(
                    "layer {k} ({}) is of a kind that files do not know: give it a `kind`",
                    layer.describe()
                )
            })
        });
        kinds.collect()
    }

    /// The same in another precision. Fails when a layer is of a kind of your own.
    pub fn cast<U: Real>(&self) -> Result<Network<U>> {
        let cast = |block: &[T]| block.iter().map(|w| U::of(w.to_double())).collect();
        let layers = self.kinds()?.into_iter().zip(self.layers());
        let layers = layers
            .map(|(kind, layer)| with_parameters(kind, layer.parameters().into_iter().map(cast).collect()));
        let activations = self.activations().iter().map(Activation::cast).collect();
        Network::assemble(layers.collect::<Result<_>>()?, activations, self.loss)
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let activations: Vec<Activation<f64>> = self.activations().iter().map(Activation::cast).collect();
        let metadata = Metadata::from([
            ("format".to_string(), FORMAT.to_string()),
            ("version".to_string(), VERSION.to_string()),
            ("loss".to_string(), serde_json::json!(self.loss).to_string()),
            ("layers".to_string(), serde_json::json!(self.kinds()?).to_string()),
            ("activations".to_string(), serde_json::json!(activations).to_string()),
        ]);
        let blocks: Vec<_> = self.layers().iter().map(|layer| (layer.rows(), layer.parameters())).collect();
        let named = blocks.iter().enumerate().flat_map(|(k, (rows, blocks))| {
            blocks.iter().enumerate().map(move |(i, block)| {
                let matrix = block.len() > *rows && block.len().is_multiple_of(*rows);
                let shape = if matrix { vec![*rows, block.len() / rows] } else { vec![block.len()] };
                (format!("layer_{k}_{i}"), shape, block)
            })
        });
        let mut bytes = Vec::new();
        let wide = size_of::<T>() == size_of::<f64>();
        let numbers: Vec<(String, Vec<usize>, Vec<f64>)> = named
            .map(|(name, shape, block)| (name, shape, block.iter().map(|w| w.to_double()).collect()))
            .collect();
        let narrow: Vec<Vec<f32>> = numbers.iter().map(|n| n.2.iter().map(|&w| w as f32).collect()).collect();
        let tensors: Vec<_> = numbers
            .iter()
            .zip(&narrow)
            .map(|((name, shape, double), single)| {
                let numbers = if wide { Numbers::Doubles(double) } else { Numbers::Single(single) };
                (name.clone(), shape.clone(), numbers)
            })
            .collect();
        write_tensors(&mut bytes, &metadata, &tensors)
            .map_err(|e| invalid!("the network cannot be written: {e}"))?;
        Ok(bytes)
    }

    /// A network from the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let foreign = "this is not a network of proxlift's `lifting`; give a file that `Network::save` wrote";
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|e| invalid!("{foreign} (it is truncated or no safetensors file: {e})"))?;
        let header =
            Header::read(bytes, "network", FORMAT, VERSION)?.ok_or_else(|| Error::invalid(foreign))?;
        let loss: Loss = header.parse("loss")?;
        let kinds: Vec<Kind> = header.parse("layers")?;
        let activations: Vec<Activation<f64>> = header.parse("activations")?;
        let mut taken = 0;
        let layers = kinds.into_iter().enumerate().map(|(k, kind)| {
            let views = (0..).map_while(|i| tensors.tensor(&format!("layer_{k}_{i}")).ok());
            let blocks = views.map(|view| numbers(&view)).collect::<Result<Vec<Vec<T>>>>()?;
            taken += blocks.len();
            with_parameters(kind, blocks).map_err(|e| invalid!("layer {k} cannot be read: {e}"))
        });
        let layers = layers.collect::<Result<Vec<_>>>()?;
        refuse!(tensors.len() != taken => "the network holds {} tensors, but its layers have {taken}", tensors.len());
        Self::assemble(layers, activations.iter().map(Activation::cast).collect(), loss)
            .map_err(|e| invalid!("the network is inconsistent: {e}"))
    }
}

fn numbers<T: Real>(view: &TensorView<'_>) -> Result<Vec<T>> {
    match view.dtype() {
        Dtype::F32 => Ok(singles(view).1.into_iter().map(|w| T::of(f64::from(w))).collect()),
        Dtype::F64 => Ok(doubles(view).into_iter().map(T::of).collect()),
        other => Err(invalid!("a tensor is {other:?}, but F32 or F64 is needed")),
    }
}
