//! IDX files, such as those of MNIST: two zeros, the type of the numbers, the number of axes, their lengths, the numbers.

use super::Labelled;
use crate::{Error, Result};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The type that MNIST has: bytes.
const BYTES: u8 = 0x08;

/// The most that is read of a file, unpacked: MNIST's largest has 47 MB.
const MOST: u64 = 1 << 28;

impl Labelled {
    /// The pictures of a folder with MNIST's files, packed by gzip or not: `train-images-idx3-ubyte` and
    /// `train-labels-idx1-ubyte` to train on, those that begin with `t10k` to test with.
    /// Fails when one is missing, cut short or of another kind.
    pub fn from_idx(folder: impl AsRef<Path>) -> Result<(Self, Self)> {
        let set = |prefix: &str| {
            let pictures = find(folder.as_ref(), prefix, "images", 3)?;
            let labels = find(folder.as_ref(), prefix, "labels", 1)?;
            Self::from_idx_files(&pictures, &labels)
        };
        Ok((set("train")?, set("t10k")?))
    }

    /// The pictures of one file with the labels of another.
    pub fn from_idx_files(pictures: &Path, labels: &Path) -> Result<Self> {
        let (lengths, pixels) = read(pictures, 3)?;
        let (count, of_pictures) = read(labels, 1)?;
        if lengths[0] != count[0] {
            let reason =
                format!("{} labels, but {} has {} pictures", count[0], pictures.display(), lengths[0]);
            return Err(Error::file(labels, reason));
        }
        let pixels = pixels.iter().map(|&v| f32::from(v) / 255.0).collect();
        let numbers = of_pictures.iter().map(|&label| usize::from(label)).collect();
        Self::new(lengths[1], lengths[2], pixels, numbers).map_err(|e| Error::file(labels, e.to_string()))
    }
}

/// The file for this purpose, under any of the names that it goes by.
fn find(folder: &Path, prefix: &str, what: &str, axes: usize) -> Result<PathBuf> {
    let name = format!("{prefix}-{what}-idx{axes}-ubyte");
    let names = [name.clone(), format!("{name}.gz"), format!("{prefix}-{what}.idx{axes}-ubyte")];
    let found = names.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| Error::file(folder, format!("there is no file {name} or {name}.gz in this folder")))
}

/// The lengths of the axes, and the bytes.
fn read(path: &Path, axes: usize) -> Result<(Vec<usize>, Vec<u8>)> {
    let file = File::open(path).map_err(Error::io(path))?;
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let source: Box<dyn Read> = if packed { Box::new(GzDecoder::new(file)) } else { Box::new(file) };
    let mut bytes = Vec::new();
    source.take(MOST + 1).read_to_end(&mut bytes).map_err(Error::io(path))?;
    if bytes.len() as u64 > MOST {
        return Err(Error::file(path, format!("this file holds more than {} MB", MOST >> 20)));
    }
    parse(&bytes, axes).map_err(|reason| Error::file(path, reason))
}

fn parse(bytes: &[u8], axes: usize) -> std::result::Result<(Vec<usize>, Vec<u8>), String> {
    let short = || format!("this IDX file is cut short: it has {} bytes", bytes.len());
    let head = bytes.first_chunk::<4>().ok_or_else(short)?;
    if head[..2] != [0, 0] {
        return Err("this is no IDX file: it should begin with two zeros".into());
    }
    if head[2] != BYTES || usize::from(head[3]) != axes {
        let (kind, found) = (head[2], head[3]);
        return Err(format!(
            "this IDX file has numbers of type {kind} along {found} axes: bytes along {axes} are needed"
        ));
    }
    let rest = bytes.get(4..4 + 4 * axes).ok_or_else(short)?;
    let number = |four: &[u8]| four.iter().fold(0, |n, &byte| n << 8 | usize::from(byte));
    let lengths: Vec<usize> = rest.chunks_exact(4).map(number).collect();
    let values = &bytes[4 + 4 * axes..];
    let needed = lengths.iter().try_fold(1_usize, |product, &length| product.checked_mul(length));
    if needed.is_none_or(|needed| needed > values.len()) {
        let lengths = lengths.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
        return Err(format!(
            "this IDX file is cut short: {lengths} bytes should follow, but there are {}",
            values.len()
        ));
    }
    if needed != Some(values.len()) {
        return Err("there is something behind the numbers of this IDX file".into());
    }
    Ok((lengths, values.to_vec()))
}
