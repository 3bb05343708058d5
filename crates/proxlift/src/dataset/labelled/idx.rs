//! IDX files, such as those of MNIST: two zeros, the type of the numbers, the number of axes, their lengths, the numbers.

use super::Labelled;
use crate::{Error, Result, storage};
use flate2::read::GzDecoder;
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
        let parsed = |path: &Path, axes: usize| {
            let packed = path.extension().is_some_and(|extension| extension == "gz");
            parse(&unpacked(storage::open(path)?, packed).map_err(Error::io(path))?, axes)
                .map_err(|reason| Error::file(path, reason))
        };
        let (pixels, numbers) = (parsed(pictures, 3)?, parsed(labels, 1)?);
        Self::of_idx(&pixels, &numbers).map_err(|e| Error::file(labels, e.to_string()))
    }

    /// The same from the bytes of both files.
    pub fn from_idx_bytes(pictures: &[u8], labels: &[u8], packed: bool) -> Result<Self> {
        let parsed = |bytes: &[u8], axes: usize| {
            let bytes = unpacked(bytes, packed).map_err(|e| Error::invalid(e.to_string()))?;
            parse(&bytes, axes).map_err(Error::invalid)
        };
        Self::of_idx(&parsed(pictures, 3)?, &parsed(labels, 1)?)
    }

    fn of_idx((lengths, pixels): &Parsed, (count, labels): &Parsed) -> Result<Self> {
        refuse!(lengths[0] != count[0] => "{} labels, but there are {} pictures", count[0], lengths[0]);
        let pixels = pixels.iter().map(|&v| f32::from(v) / 255.0).collect();
        Self::new(lengths[1], lengths[2], pixels, labels.iter().map(|&label| label.into()).collect())
    }
}

/// The lengths of the axes, and the bytes.
type Parsed = (Vec<usize>, Vec<u8>);

/// The file for this purpose, under any of the names that it goes by.
fn find(folder: &Path, prefix: &str, what: &str, axes: usize) -> Result<PathBuf> {
    let name = format!("{prefix}-{what}-idx{axes}-ubyte");
    let names = [name.clone(), format!("{name}.gz"), format!("{prefix}-{what}.idx{axes}-ubyte")];
    let found = names.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| Error::file(folder, format!("there is no file {name} or {name}.gz in this folder")))
}

fn unpacked(source: impl Read, packed: bool) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = match packed {
        true => GzDecoder::new(source).take(MOST + 1).read_to_end(&mut bytes),
        false => source.take(MOST + 1).read_to_end(&mut bytes),
    };
    match read? as u64 {
        0..=MOST => Ok(bytes),
        _ => Err(std::io::Error::other(format!("this file holds more than {} MB", MOST >> 20))),
    }
}

fn parse(bytes: &[u8], axes: usize) -> std::result::Result<Parsed, String> {
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
