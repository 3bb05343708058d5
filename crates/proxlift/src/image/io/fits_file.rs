//! FITS images and cubes, by hand: of the crates, the well-kept one (`fitsrs`) only reads, `fitrs` is under the GPL, and
//! the others are young or no longer kept. What is needed here is small: cards of 80 bytes, and big-endian numbers.
//!
//! Values are on their own scale, as in float TIFF: `BZERO + BSCALE * stored`, negative ones too. They are written back
//! with the same `BITPIX`, `BSCALE` and `BZERO` under the same header, with the settings as `HISTORY`. Rows are kept in
//! the order of the file, the first of which is at the bottom on most screens.

use super::common::{Next, Source, Target, cut_short};
use super::metadata::{Kept, Metadata, Native};
use super::samples::Samples;
use super::{Allowance, Channels, Decoded, Raster};
use std::io::{Read, Seek, SeekFrom};

const BLOCK: usize = 2880;
/// The most cards of a header.
const MOST_CARDS: usize = 36 * 10_000;

type Card = [u8; 80];

/// How the values of an image are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    bits: i64,
    width: u32,
    height: u32,
    planes: u64,
    scale: f64,
    zero: f64,
    blank: Option<i64>,
}

/// The value of a card, if it has this keyword.
fn value<'a>(cards: &'a [Card], keyword: &str) -> Option<&'a str> {
    let card = cards
        .iter()
        .find(|card| card[..8].trim_ascii_end() == keyword.as_bytes() && &card[8..10] == b"= ")?;
    let text = std::str::from_utf8(&card[10..]).ok()?;
    Some(text.split('/').next().unwrap_or(text).trim())
}

fn integer(cards: &[Card], keyword: &str) -> Option<i64> {
    value(cards, keyword)?.parse().ok()
}

fn real(cards: &[Card], keyword: &str, otherwise: f64) -> Decoded<f64> {
    let Some(text) = value(cards, keyword) else { return Ok(otherwise) };
    let number = text.replace(['D', 'd'], "E").parse().ok().filter(|v: &f64| v.is_finite());
    number.ok_or_else(|| format!("the header has no number for {keyword}"))
}

impl Layout {
    fn of(cards: &[Card]) -> Decoded<Self> {
        let bits = integer(cards, "BITPIX").ok_or("the header lacks BITPIX")?;
        if ![8, 16, 32, 64, -32, -64].contains(&bits) {
            return Err(format!("the header claims BITPIX = {bits}, which FITS does not have"));
        }
        let axes = integer(cards, "NAXIS").ok_or("the header lacks NAXIS")?;
        if axes < 2 {
            return Err(format!(
                "the first part of the FITS file has no image (NAXIS = {axes}): copy the part that has one into a file \
                 of its own"
            ));
        }
        let side = |i: i64| {
            let side = integer(cards, &format!("NAXIS{i}")).and_then(|n| u32::try_from(n).ok());
            side.ok_or_else(|| format!("the header lacks a length for NAXIS{i}"))
        };
        let mut planes = 1_u64;
        for i in 3..=axes.min(999) {
            planes = planes.saturating_mul(side(i)?.into());
        }
        if planes == 0 {
            return Err("the header claims a cube without planes".into());
        }
        let (scale, zero) = (real(cards, "BSCALE", 1.0)?, real(cards, "BZERO", 0.0)?);
        if scale == 0.0 {
            return Err("the header claims BSCALE = 0, which makes all values equal".into());
        }
        let blank = integer(cards, "BLANK").filter(|_| bits > 0);
        Ok(Self { bits, width: side(1)?, height: side(2)?, planes, scale, zero, blank })
    }

    fn bytes(&self) -> usize {
        self.bits.unsigned_abs() as usize / 8
    }

    /// Bytes of a plane.
    fn plane(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height) * self.bytes() as u64
    }

    /// A value from its bytes; none is NaN.
    fn value(&self, bytes: &[u8]) -> f32 {
        let mut number = [0; 8];
        number[..bytes.len()].copy_from_slice(bytes);
        let stored = i64::from_be_bytes(number) >> (64 - 8 * bytes.len());
        let physical = |stored: f64| (self.zero + self.scale * stored) as f32;
        match self.bits {
            -32 => physical(f32::from_bits(stored as u32).into()),
            -64 => physical(f64::from_bits(stored as u64)),
            _ => {
                let stored = if self.bits == 8 { i64::from(stored as u8) } else { stored };
                if self.blank == Some(stored) { f32::NAN } else { physical(stored as f64) }
            }
        }
    }

    /// Appends a value as it is stored, rounded and clipped where that is an integer.
    fn store(&self, value: f32, bytes: &mut Vec<u8>) {
        let stored = (f64::from(value) - self.zero) / self.scale;
        // A number that stands for none must not arise.
        let whole = |least: i64, most: i64| {
            let number = (stored.round() as i64).clamp(least, most);
            if self.blank == Some(number) {
                if number < most { number + 1 } else { number - 1 }
            } else {
                number
            }
        };
        match self.bits {
            8 => bytes.push(whole(0, 255) as u8),
            16 => bytes.extend((whole(i16::MIN.into(), i16::MAX.into()) as i16).to_be_bytes()),
            32 => bytes.extend((whole(i32::MIN.into(), i32::MAX.into()) as i32).to_be_bytes()),
            64 => bytes.extend(whole(i64::MIN, i64::MAX).to_be_bytes()),
            -32 => bytes.extend((stored as f32).to_be_bytes()),
            _ => bytes.extend(stored.to_be_bytes()),
        }
    }
}

/// A FITS file, of which planes are read one at a time.
pub(super) struct Cube<'a> {
    source: Box<dyn Source + 'a>,
    cards: Vec<Card>,
    layout: Layout,
    start: u64,
}

impl<'a> Cube<'a> {
    pub(super) fn open(mut source: Box<dyn Source + 'a>, allowance: Allowance) -> Decoded<Self> {
        let mut cards = Vec::new();
        let mut block = [0; BLOCK];
        let is_end = |card: &Card| card.trim_ascii_end() == b"END";
        while !cards.iter().rev().take(BLOCK / 80).any(is_end) {
            if cards.len() >= MOST_CARDS {
                return Err("the file is damaged: its header has no end".into());
            }
            source.read_exact(&mut block).map_err(|e| cut_short(&e))?;
            cards.extend(block.as_chunks::<80>().0);
        }
        let start = (cards.len() * 80) as u64;
        cards.truncate(cards.iter().position(is_end).unwrap_or(cards.len()));
        let layout = Layout::of(&cards)?;
        allowance.check(layout.width, layout.height, 1, layout.bytes().max(4) as u64)?;
        let length = source.seek(SeekFrom::End(0)).map_err(|e| e.to_string())?;
        let data = layout.plane().checked_mul(layout.planes).and_then(|data| data.checked_add(start));
        match data {
            Some(end) if end <= length => {
                if length > end.next_multiple_of(BLOCK as u64) {
                    allowance.announce("the extensions behind its first image are left out");
                }
            }
            _ => return Err("the file is truncated".into()),
        }
        if matches!(layout.bits, -64 | 32 | 64) {
            allowance.announce("its values are computed as 32-bit floats");
        }
        Ok(Self { source, cards, layout, start })
    }

    pub(super) fn count(&self) -> usize {
        usize::try_from(self.layout.planes).unwrap_or(usize::MAX)
    }

    pub(super) fn page(&mut self, index: usize) -> Decoded<Raster> {
        let Layout { width, height, .. } = self.layout;
        let at = self.start + self.layout.plane() * index as u64;
        self.source.seek(SeekFrom::Start(at)).map_err(|e| e.to_string())?;
        let size = (height as usize, width as usize);
        let mut values = crate::memory::room(size.0 * size.1);
        let mut row = vec![0; size.1 * self.layout.bytes()];
        for _ in 0..height {
            self.source.read_exact(&mut row).map_err(|e| cut_short(&e))?;
            values.extend(row.chunks_exact(self.layout.bytes()).map(|bytes| self.layout.value(bytes)));
        }
        let native = Native(Kept::Fits(self.cards.clone()));
        let metadata = Metadata { native, ..Metadata::default() };
        Raster::new(Channels::Grey, false, size, Samples::Float(values), metadata)
    }
}

fn card(text: &str) -> Card {
    let mut card = [b' '; 80];
    text.bytes()
        .zip(&mut card)
        .for_each(|(byte, to)| *to = if (b' '..=b'~').contains(&byte) { byte } else { b'?' });
    card
}

/// A text as lines of history, broken at spaces.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 80 => *line += &format!(" {word}"),
            _ => lines.push(format!("HISTORY {word}")),
        }
    }
    lines
}

/// A header for pictures that come from another format.
fn new_header(raster: &Raster, count: usize) -> Vec<Card> {
    let (bits, zero) = match raster.samples() {
        Samples::Eight(_) => (8, 0),
        Samples::Sixteen(_) => (16, 32_768),
        Samples::Float(_) => (-32, 0),
    };
    let mut numbers = vec![("BITPIX", bits), ("NAXIS", if count > 1 { 3 } else { 2 })];
    numbers.extend([("NAXIS1", raster.width() as i64), ("NAXIS2", raster.height() as i64)]);
    numbers.extend((count > 1).then_some(("NAXIS3", count as i64)));
    numbers.extend((zero > 0).then_some(("BZERO", zero)));
    let first = card(&format!("SIMPLE  = {:>20}", "T"));
    let cards = numbers.into_iter().map(|(keyword, number)| card(&format!("{keyword:<8}= {number:>20}")));
    std::iter::once(first).chain(cards).collect()
}

pub(super) fn encode(count: usize, next: &mut Next<'_>, file: &mut dyn Target) -> Decoded<()> {
    let first = next(0)?;
    let size = (first.width() as u32, first.height() as u32, count as u64);
    let kept = match &first.metadata.native.0 {
        Kept::Fits(cards) => Layout::of(cards).ok().map(|layout| (layout, cards.clone())),
        _ => None,
    };
    let kept = kept.filter(|(layout, _)| (layout.width, layout.height, layout.planes) == size);
    let mut cards = kept.map_or_else(|| new_header(&first, count), |(_, cards)| cards);
    let layout = Layout::of(&cards)?;
    // Sums over values that are no longer there.
    cards.retain(|card| ![&b"CHECKSUM"[..], b"DATASUM "].contains(&&card[..8]));
    cards.extend(lines(first.metadata.settings.as_deref().unwrap_or_default()).iter().map(|line| card(line)));
    cards.push(card("END"));
    cards.resize(cards.len().next_multiple_of(BLOCK / 80), [b' '; 80]);
    let mut write = |bytes: &[u8]| file.write_all(bytes).map_err(|e| e.to_string());
    write(cards.as_flattened())?;
    plane(&first, &layout, &mut write)?;
    for index in 1..count {
        plane(&*next(index)?, &layout, &mut write)?;
    }
    let past = (layout.plane() * count as u64 % BLOCK as u64) as usize;
    write(&vec![0; (BLOCK - past) % BLOCK])
}

/// Writes the values of a picture.
fn plane(raster: &Raster, layout: &Layout, write: &mut dyn FnMut(&[u8]) -> Decoded<()>) -> Decoded<()> {
    if (raster.width(), raster.height()) != (layout.width as usize, layout.height as usize) {
        return Err("the pages of a FITS cube must have one size".into());
    }
    let mut bytes = Vec::new();
    for y in 0..raster.height() {
        bytes.clear();
        let row = y * raster.width()..(y + 1) * raster.width();
        match raster.samples() {
            Samples::Eight(s) => s[row].iter().for_each(|&v| layout.store(v.into(), &mut bytes)),
            Samples::Sixteen(s) => s[row].iter().for_each(|&v| layout.store(v.into(), &mut bytes)),
            Samples::Float(s) => s[row].iter().for_each(|&v| layout.store(v, &mut bytes)),
        }
        write(&bytes)?;
    }
    Ok(())
}
