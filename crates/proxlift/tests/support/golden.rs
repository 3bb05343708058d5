//! Golden files of `reference/golden.py`.

use proxlift::{Real, laws};
use safetensors::SafeTensors;
use serde_json::Value;

/// Tensors in double precision, and how they were made.
pub struct Golden {
    name: String,
    bytes: Vec<u8>,
    pub config: Value,
}

impl Golden {
    pub fn read(name: &str) -> Self {
        let path = format!("{}/tests/data/golden_{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let config = serde_json::from_str(&header.metadata().as_ref().unwrap()["config"]).unwrap();
        Self { name: name.into(), bytes, config }
    }

    pub fn count(&self, name: &str) -> usize {
        self.config[name].as_u64().unwrap_or_else(|| panic!("no {name}")) as usize
    }

    pub fn shape(&self, name: &str) -> Vec<usize> {
        SafeTensors::deserialize(&self.bytes).unwrap().tensor(name).unwrap().shape().to_vec()
    }

    pub fn tensor<T: Real>(&self, name: &str) -> Vec<T> {
        let file = SafeTensors::deserialize(&self.bytes).unwrap();
        let view = file.tensor(name).unwrap_or_else(|e| panic!("{name}: {e}"));
        let values = view.data().as_chunks::<8>().0;
        values.iter().map(|bytes| T::of(f64::from_le_bytes(*bytes))).collect()
    }

    #[track_caller]
    pub fn check<T: Real>(&self, name: &str, ours: &[T], tolerance: f64) {
        let golden = self.tensor::<f64>(name);
        let ours: Vec<f64> = ours.iter().map(|x| x.to_double()).collect();
        let mismatch = laws::max_relative_difference(&ours, &golden);
        assert!(mismatch <= tolerance, "{} {name}: off by {mismatch:e}", self.name);
    }
}
