//! A file with its result.

use crate::cutting::tile_bytes;
use crate::error::{said, told};
use crate::options::Options;
use crate::{notes, view};
use proxlift::denoiser::{Noise, Settled, Tile};
use proxlift::engine::Cpu;
use proxlift::evaluation::mse;
use proxlift::image::io::{Depth, Format, Limits, Pages, Raster, encode_pages};
use proxlift::model::BuiltIn;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use wasm_bindgen::prelude::*;

/// Rows that are compared together.
const BAND: usize = 64;

/// A file with its result; one page of it is open.
#[wasm_bindgen]
pub struct Document {
    name: String,
    bytes: Arc<[u8]>,
    pages: Pages,
    page: usize,
    /// The page as it is in the file.
    noisy: Raster,
    /// What is shown black and white.
    ends: (f32, f32),
    /// Of every page.
    results: Vec<Option<Raster>>,
    clean: Option<Raster>,
    settled: Option<(Options, Settled, Option<Noise>)>,
    tiles: Vec<Tile>,
    built_in: Option<BuiltIn>,
}

#[wasm_bindgen]
impl Document {
    /// Opens a file and its first page.
    #[wasm_bindgen(constructor)]
    pub fn new(name: &str, bytes: Vec<u8>) -> Result<Self, JsError> {
        let bytes: Arc<[u8]> = bytes.into();
        let mut pages = open(name, &bytes)?;
        let noisy = pages.next_page().map_err(|e| reason(name, e))?;
        let (ends, results) = (view::ends(&noisy), vec![None; pages.count()]);
        Ok(Self {
            name: name.into(),
            bytes,
            pages,
            page: 0,
            noisy,
            ends,
            results,
            clean: None,
            settled: None,
            tiles: Vec::new(),
            built_in: None,
        })
    }

    /// What there is to say about the open page, as JSON.
    pub fn describe(&self) -> String {
        let raster = &self.noisy;
        let format = self.pages.format();
        json!({
            "width": raster.width(),
            "height": raster.height(),
            "channels": raster.kind().count(),
            "bits": match raster.depth() { Depth::Eight => 8, Depth::Sixteen => 16, Depth::Float => 32 },
            "alpha": raster.has_alpha(),
            "pages": self.pages.count(),
            "page": self.page,
            "format": format.name(),
            "black": self.ends.0,
            "white": self.ends.1,
            "output": self.output_name(),
            "notes": notes::take(),
        })
        .to_string()
    }

    /// Opens another page.
    #[wasm_bindgen(js_name = openPage)]
    pub fn open_page(&mut self, page: usize) -> Result<(), JsError> {
        if page == self.page {
            return Ok(());
        }
        // Pages are read one after the other.
        let mut next = self.page + 1;
        if page < next {
            self.pages = open(&self.name, &self.bytes)?;
            next = 0;
        }
        for _ in next..=page {
            self.noisy = self.pages.next_page().map_err(|e| reason(&self.name, e))?;
        }
        (self.page, self.ends, self.settled) = (page, view::ends(&self.noisy), None);
        Ok(())
    }

    /// Settles what has to be known before tiles can be denoised, as JSON: the noise, and the tiles.
    pub fn settle(&mut self, options: &str) -> Result<String, JsError> {
        let options = Options::parse(options)?;
        let denoiser = options.denoiser()?;
        let kept = self.settled.take().filter(|(before, ..)| before.settles_as(&options));
        let (settled, noise) = match kept {
            Some((_, settled, noise)) => (settled, noise),
            None => denoiser.settle_noise(&self.noisy).map_err(told)?,
        };
        let size = (self.noisy.height(), self.noisy.width());
        let ready = denoiser.prepare_settled(self.noisy.kind(), &settled).map_err(told)?;
        let bytes = ready.network().map_or(0, |network| tile_bytes(network, size, options.workers.max(1)));
        drop(ready);
        let denoiser = denoiser.engine(Arc::new(Cpu::new().tile_bytes(bytes)));
        let ready = denoiser.prepare_settled(self.noisy.kind(), &settled).map_err(told)?;
        self.tiles = ready.tiles(self.noisy.kind(), size).map_err(told)?;
        self.built_in = ready.built_in;
        let tiles = self.tiles.iter().map(|tile| {
            let (rows, columns) = (&tile.rows.wanted, &tile.columns.wanted);
            [rows.start, columns.start, rows.len(), columns.len()]
        });
        let answer = json!({
            "settled": settled,
            "tileBytes": bytes,
            "noise": noise.as_ref().map(described),
            "model": self.built_in.map_or(options.model.clone(), |model| model.name().into()),
            "channels": self.noisy.kind().count(),
            "height": size.0,
            "width": size.1,
            "tiles": tiles.collect::<Vec<_>>(),
            "whole": ready.network().is_none(),
        });
        let result = &mut self.results[self.page];
        if result.is_none() {
            *result = Some(self.noisy.clone());
        }
        self.settled = Some((options, settled, noise));
        Ok(answer.to_string())
    }

    /// What a tile sees, plane by plane.
    pub fn seen(&self, index: usize) -> Result<Vec<f32>, JsError> {
        let tile = self.tile(index)?;
        Ok(self.noisy.crop(tile.rows.seen.clone(), tile.columns.seen.clone()).data().to_vec())
    }

    /// Takes the pixels of a tile.
    pub fn put(&mut self, index: usize, pixels: Vec<f32>) -> Result<(), JsError> {
        let Tile { rows, columns } = self.tile(index)?.clone();
        let (height, width) = (rows.wanted.len(), columns.wanted.len());
        let image = proxlift::Image::new(self.noisy.kind().count(), height, width, pixels).map_err(told)?;
        let result = self.results[self.page].as_mut().ok_or_else(|| said("nothing is settled yet"))?;
        result.put((rows.wanted.start, columns.wanted.start), &image);
        Ok(())
    }

    /// Says in the metadata of the page's result what was done; to be called when all tiles are put.
    pub fn finish(&mut self) {
        let Some((options, _, noise)) = &self.settled else { return };
        let settings = options.settings(self.built_in, noise.as_ref());
        if let Some(result) = &mut self.results[self.page] {
            result.metadata.settings = Some(settings);
        }
    }

    /// A rectangle of the picture, or of its result, for the screen: RGBA of the size `out_height x out_width`.
    #[allow(clippy::too_many_arguments)]
    pub fn view(
        &self,
        result: bool,
        top: usize,
        left: usize,
        height: usize,
        width: usize,
        out_height: usize,
        out_width: usize,
    ) -> Vec<u8> {
        let result = if result { self.results[self.page].as_ref() } else { None };
        let raster = result.unwrap_or(&self.noisy);
        view::rgba(raster, self.ends, [top, left, height, width], (out_height, out_width))
    }

    /// A rectangle of the noisy picture, plane by plane.
    pub fn crop(&self, top: usize, left: usize, height: usize, width: usize) -> Vec<f32> {
        self.noisy.crop(top..top + height, left..left + width).data().to_vec()
    }

    /// Compares with a clean picture from now on.
    pub fn compare(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), JsError> {
        let clean = open(name, &bytes.into())?.next_page().map_err(|e| reason(name, e))?;
        let shape = |r: &Raster| (r.width(), r.height(), r.kind().count());
        let (ours, theirs) = (shape(&self.noisy), shape(&clean));
        if ours != theirs {
            let told = |(width, height, channels): (usize, usize, usize)| {
                format!("{width} x {height} pixels in {}", if channels == 1 { "grey" } else { "colour" })
            };
            return Err(said(format!("the clean picture has {}, but this one {}", told(theirs), told(ours))));
        }
        self.clean = Some(clean);
        Ok(())
    }

    /// The PSNR of the picture and of its result, where there is a clean one.
    pub fn psnr(&self) -> Result<Vec<f64>, JsError> {
        let Some(clean) = &self.clean else { return Ok(Vec::new()) };
        let (black, white) = self.ends;
        let score = |raster: &Raster| -> Result<f64, JsError> {
            let (height, width, mut sum) = (raster.height(), raster.width(), 0.0);
            for top in (0..height).step_by(BAND) {
                let rows = top..(top + BAND).min(height);
                let error = mse(&clean.crop(rows.clone(), 0..width), &raster.crop(rows.clone(), 0..width));
                sum += error.map_err(told)? * rows.len() as f64;
            }
            Ok(10.0 * (f64::from(white - black).powi(2) * height as f64 / sum).log10())
        };
        [Some(&self.noisy), self.results[self.page].as_ref()].into_iter().flatten().map(score).collect()
    }

    /// The whole file with its results, in its own format.
    pub fn encode(&self) -> Result<Vec<u8>, JsError> {
        let pages: Vec<&Raster> = self.results.iter().flatten().collect();
        if pages.len() != self.results.len() {
            return Err(said("not all pages are denoised yet"));
        }
        encode_pages(self.pages.format(), &pages).map_err(told)
    }
}

impl Document {
    fn tile(&self, index: usize) -> Result<&Tile, JsError> {
        self.tiles.get(index).ok_or_else(|| said("no such tile"))
    }

    /// As the program names its results; the extension is the file's own unless that is another format's.
    fn output_name(&self) -> String {
        let (path, format) = (Path::new(&self.name), self.pages.format());
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let own = path.extension().filter(|_| Format::from_path(path) == Some(format));
        let own = own.map(|extension| extension.to_string_lossy().into_owned());
        let extension = own.unwrap_or_else(|| format.extension(self.noisy.kind()).into());
        format!("{stem}-denoised.{extension}")
    }
}

fn open(name: &str, bytes: &Arc<[u8]>) -> Result<Pages, JsError> {
    Pages::of_bytes(name, bytes.clone(), &Limits::default()).map_err(|e| reason(name, e))
}

/// The sentence without the name, which stands beside it on the page.
fn reason(name: &str, error: proxlift::Error) -> JsError {
    let text = error.to_string();
    said(text.strip_prefix(name).map_or(text.as_str(), |rest| rest.trim_start_matches(": ")))
}

fn described(noise: &Noise) -> Value {
    let mut value = json!({
        "text": noise.to_string(),
        "sigma": noise.sigma,
        "faint": noise.faint,
        "unit": noise.unit(),
    });
    if let Some(model) = &noise.model {
        value["kind"] = json!(model.kind);
        value["spectrum"] = json!(model.spectrum);
        value["variances"] = json!(model.variances);
    }
    value
}
