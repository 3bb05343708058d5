//! The columns of a comparison: the noisy picture, denoisers, and what other programs left in folders.

use crate::{flags::DEFAULT_SIGMA, test_set::TestSet};
use proxlift::image::{Channels, Image, io};
use proxlift::{Denoiser, Error, Result};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// `NAME=PATH`, or a path alone, called as its file is.
#[derive(Clone, Debug)]
pub struct Named {
    name: String,
    pub path: PathBuf,
}

pub fn named(text: &str) -> std::result::Result<Named, String> {
    let path = PathBuf::from(text);
    let named = match text.split_once('=') {
        Some((name, path)) if !Path::new(text).exists() => {
            Named { name: name.trim().to_string(), path: path.into() }
        }
        _ => Named { name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path },
    };
    let empty = named.name.is_empty() || named.path.as_os_str().is_empty();
    if empty { Err("give NAME=PATH".into()) } else { Ok(named) }
}

pub struct Column {
    pub name: String,
    source: Source,
    clip: bool,
}

enum Source {
    Noisy,
    Denoiser(Box<Denoiser>),
    Folder(PathBuf),
}

/// Formats that are looked for in a folder of results, the most precise first.
const EXTENSIONS: [&str; 6] = ["tif", "tiff", "png", "webp", "jpg", "jpeg"];

/// All columns, noisy pictures first, and the noise level: `sigma`, or what the first model was trained for.
pub fn all(
    models: &[(&Named, Denoiser)],
    also: &[Named],
    sigma: Option<f64>,
    channels: Channels,
    clip: bool,
) -> Result<(Vec<Column>, f64)> {
    let trained = models.first().and_then(|(_, first)| first.trained_sigma(channels));
    let sigma = sigma.or(trained).unwrap_or(DEFAULT_SIGMA);
    let column = |name: &str, source| Column { name: name.into(), source, clip };
    let denoiser = |denoiser: Denoiser| Source::Denoiser(Box::new(denoiser.sigma(sigma).clipped(clip)));
    let mut columns =
        vec![column("noisy", Source::Noisy), column("TV", denoiser(Denoiser::total_variation()))];
    columns.extend(models.iter().map(|(named, model)| column(&named.name, denoiser(model.clone()))));
    for Named { name, path } in also {
        if !path.is_dir() {
            return Err(Error::file(path, "--also needs a folder of results, given as NAME=DIR"));
        }
        columns.push(column(name, Source::Folder(path.clone())));
    }
    for (i, Column { name, .. }) in columns.iter().enumerate() {
        if columns[..i].iter().any(|other| other.name == *name) {
            let reason =
                format!("two columns are called {name}: give one of them another name, as NAME=PATH");
            return Err(Error::invalid(reason));
        }
    }
    Ok((columns, sigma))
}

impl Column {
    /// The pictures with numbers `which`, clean and noisy, as this column has them.
    pub fn results(
        &self,
        pictures: &TestSet,
        which: Range<usize>,
        clean: &[Image],
        noisy: &[Image],
    ) -> Result<Vec<Image>> {
        match &self.source {
            Source::Noisy => Ok(noisy.to_vec()),
            Source::Denoiser(denoiser) => denoiser.denoise_all(noisy),
            Source::Folder(folder) => {
                which.zip(clean).map(|(i, clean)| self.read(folder, pictures, i, clean)).collect()
            }
        }
    }

    fn read(&self, folder: &Path, pictures: &TestSet, i: usize, clean: &Image) -> Result<Image> {
        let name = pictures.name(i);
        let with = |extension: &&str| {
            let mut path = folder.join(&name).into_os_string();
            path.push(format!(".{extension}"));
            PathBuf::from(path)
        };
        let Some(path) = EXTENSIONS.iter().map(with).find(|path| path.is_file()) else {
            let reason =
                format!("{} has no result for {1}: add {1}.tif or {1}.png", self.name, name.display());
            return Err(Error::file(folder, reason));
        };
        let mut image = io::read(&path)?.image.into_channels(pictures.channels());
        if image.shape() != clean.shape() {
            let size = |i: &Image| format!("{} x {} pixels", i.width(), i.height());
            let reason = format!("this result has {}, but its clean picture {}", size(&image), size(clean));
            return Err(Error::file(&path, reason));
        }
        if self.clip {
            image.data_mut().iter_mut().for_each(|v| *v = v.clamp(0.0, 1.0));
        }
        Ok(image)
    }
}
