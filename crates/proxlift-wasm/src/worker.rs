//! Tiles of any picture, denoised.

use crate::error::{said, told};
use crate::options::Request;
use proxlift::engine::Cpu;
use proxlift::image::{Channels, Image};
use std::ops::ControlFlow;
use std::sync::Arc;
use wasm_bindgen::prelude::*;

/// Denoises tiles; keeps its memory from one to the next.
#[wasm_bindgen]
#[derive(Default)]
pub struct Worker {
    engine: Option<(usize, Arc<Cpu>)>,
}

#[wasm_bindgen]
impl Worker {
    /// Without memory yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// The pixels that a tile wants, from those that it sees, plane by plane.
    pub fn tile(&mut self, request: &str, seen: Vec<f32>) -> Result<Vec<f32>, JsError> {
        let request: Request = serde_json::from_str(request).map_err(said)?;
        let channels = Channels::from_count(request.channels).ok_or_else(|| said("no such channels"))?;
        let bytes = request.tile_bytes;
        let engine = match self.engine.take() {
            Some((of, engine)) if of == bytes => engine,
            _ => Arc::new(Cpu::new().tile_bytes(bytes)),
        };
        self.engine = Some((bytes, engine.clone()));
        let denoiser = request.options.denoiser()?.engine(engine);
        let ready = denoiser.prepare_settled(channels, &request.settled).map_err(told)?;
        let size = (request.height, request.width);
        let tiles = ready.tiles(channels, size).map_err(told)?;
        let tile = tiles.get(request.index).ok_or_else(|| said("no such tile"))?;
        let seen = Image::new(request.channels, tile.rows.seen.len(), tile.columns.seen.len(), seen);
        let go = &mut |_, _| ControlFlow::Continue(());
        let wanted = ready.denoise_tile(tile, size, seen.map_err(told)?, go).map_err(told)?;
        Ok(wanted.data().to_vec())
    }
}
