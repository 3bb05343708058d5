//! How a page stores its samples, and how they become those of a raster.

use super::super::{Decoded, Depth, samples::Samples};
use super::{Source, why};
use ::tiff::ColorType;
use ::tiff::decoder::{Decoder, DecodingResult, DecodingSampleType};
use ::tiff::tags::{PlanarConfiguration, Tag};
use std::fmt;

/// What all pages of a file have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Layout {
    pub width: u32,
    pub height: u32,
    /// Samples of a pixel of the raster, alpha included.
    pub samples: usize,
    pub turn: u16,
    /// The depth, if samples are read just as they are.
    pub direct: Option<Depth>,
    colours: Colours,
    bits: u8,
    kind: DecodingSampleType,
    is_planar: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Colours {
    Plain,
    Cmyk,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let what = match (self.colours, self.samples) {
            (Colours::Cmyk, _) => "CMYK",
            (_, 1 | 2) => "grey",
            _ => "RGB",
        };
        let kind = match self.kind {
            DecodingSampleType::F16 | DecodingSampleType::F32 | DecodingSampleType::F64 => "-bit float",
            DecodingSampleType::I8
            | DecodingSampleType::I16
            | DecodingSampleType::I32
            | DecodingSampleType::I64 => "-bit signed",
            _ => "-bit",
        };
        let alpha = if self.samples.is_multiple_of(2) { " with alpha" } else { "" };
        write!(f, "{} x {} {}{kind} {what} pixels{alpha}", self.width, self.height, self.bits)
    }
}

impl Layout {
    /// That of the page that the decoder is at.
    pub(super) fn of(decoder: &mut Decoder<Box<dyn Source + '_>>) -> Decoded<Self> {
        let (width, height) = decoder.dimensions().map_err(why)?;
        // The decoder knows no palettes.
        if decoder.find_tag_unsigned(Tag::PhotometricInterpretation).ok().flatten() == Some(3_u16) {
            return Err("TIFF with a palette cannot be read; convert it to grey or RGB".into());
        }
        let colour = decoder.colortype().map_err(|e| format!("{}; convert it to grey or RGB", why(e)))?;
        let (samples, colours) = match colour {
            ColorType::Gray(_) => (1, Colours::Plain),
            ColorType::GrayA(_) | ColorType::Multiband { num_samples: 2, .. } => (2, Colours::Plain),
            ColorType::RGB(_) => (3, Colours::Plain),
            ColorType::RGBA(_) => (4, Colours::Plain),
            ColorType::CMYK(_) => (3, Colours::Cmyk),
            other => return Err(format!("{other:?} TIFF is not supported; convert it to grey or RGB")),
        };
        let bits = colour.bit_depth();
        let fits = match (colours, samples) {
            (Colours::Plain, 1) => matches!(bits, 1 | 2 | 4 | 8 | 16 | 32 | 64),
            (Colours::Plain, _) => matches!(bits, 8 | 16 | 32 | 64),
            (Colours::Cmyk, _) => matches!(bits, 8 | 16),
        };
        if !fits {
            return Err(format!("{bits}-bit {colour:?} TIFF is not supported; convert it to 8 or 16 bits"));
        }
        let planes = decoder.find_tag_unsigned(Tag::PlanarConfiguration).map_err(why)?.unwrap_or(1_u16);
        let is_planar = planes == PlanarConfiguration::Planar.to_u16() && samples > 1;
        let turn = decoder.find_tag_unsigned(Tag::Orientation).ok().flatten().unwrap_or(1);
        let layout = decoder.image_buffer_layout().map_err(why)?;
        let kind =
            layout.sample_type.ok_or("the TIFF has samples of an unknown type; convert it to 16 bits")?;
        let direct = match kind {
            _ if is_planar || colours != Colours::Plain || bits < 8 => None,
            DecodingSampleType::U8 => Some(Depth::Eight),
            DecodingSampleType::U16 => Some(Depth::Sixteen),
            DecodingSampleType::F32 => Some(Depth::Float),
            _ => None,
        };
        Ok(Self { width, height, samples, turn, direct, colours, bits, kind, is_planar })
    }

    /// Bytes of a sample, as stored or as read, whichever takes more.
    pub(super) fn bytes(&self) -> u64 {
        match self.direct {
            Some(depth) => depth.bytes(),
            None if self.colours != Colours::Plain => 4,
            None => u64::from(self.bits / 8).max(4),
        }
    }

    pub(super) fn samples_in_all(&self) -> usize {
        self.samples * self.width as usize * self.height as usize
    }

    /// The colour profile is about other colours than those that are read.
    pub(super) fn has_other_colours(&self) -> bool {
        self.colours == Colours::Cmyk
    }

    /// What is written in another way than it was read.
    pub(super) fn remarks(&self) -> Vec<String> {
        let bits = self.bits;
        let mut remarks = Vec::new();
        match self.colours {
            Colours::Cmyk => {
                remarks
                    .push("CMYK is converted to RGB by the plain formula, without its colour profile".into());
            }
            Colours::Plain if bits < 8 => remarks.push(format!("{bits}-bit samples are written as 8 bits")),
            Colours::Plain => {}
        }
        use DecodingSampleType::{F16, F64, I8, I16, I32, I64, U32, U64};
        match self.kind {
            F16 => remarks.push("16-bit floats are written as 32-bit floats".into()),
            F64 => remarks.push("64-bit floats are rounded to 32-bit floats".into()),
            I8 | I16 => remarks.push(format!("{bits}-bit signed integers are written as 32-bit floats")),
            U32 | U64 | I32 | I64 => remarks.push(format!(
                "{bits}-bit integers are written as 32-bit floats, rounded where they are above 16777216"
            )),
            _ => {}
        }
        remarks
    }

    /// The samples of the page that the decoder is at, pixel by pixel.
    pub(super) fn samples(&self, decoder: &mut Decoder<Box<dyn Source + '_>>) -> Decoded<Samples> {
        if let Some(depth) = self.direct {
            let mut samples = Samples::zeros(depth, self.samples_in_all())?;
            decoder.read_image_bytes(samples.bytes_mut()).map_err(why)?;
            return Ok(samples);
        }
        let mut stored = DecodingResult::U8(Vec::new());
        decoder.read_image_to_buffer(&mut stored).map_err(why)?;
        let planes = if self.is_planar { self.planes() } else { 1 };
        match (self.colours, stored) {
            (Colours::Cmyk, DecodingResult::U8(v)) => {
                Ok(Samples::Eight(without_black(&woven(&v, planes, u32::from), 255, |v| v as u8)))
            }
            (Colours::Cmyk, DecodingResult::U16(v)) => {
                Ok(Samples::Sixteen(without_black(&woven(&v, planes, u32::from), 65_535, |v| v as u16)))
            }
            (Colours::Plain, DecodingResult::U8(v)) if self.bits < 8 => {
                Ok(Samples::Eight(self.unpacked(&v, 255 / ((1_u16 << self.bits) - 1) as u8)))
            }
            (_, stored) => converted(stored, planes),
        }
    }

    fn planes(&self) -> usize {
        if self.colours == Colours::Cmyk { 4 } else { self.samples }
    }

    /// One number a byte, times `unit`, from rows of packed bits.
    fn unpacked(&self, packed: &[u8], unit: u8) -> Vec<u8> {
        let (bits, width) = (usize::from(self.bits), self.width as usize);
        let mask = ((1_u16 << bits) - 1) as u8;
        let rows = packed.chunks_exact((width * bits).div_ceil(8));
        let value = |row: &[u8], x: usize| row[x * bits / 8] >> (8 - bits - x * bits % 8) & mask;
        rows.flat_map(|row| (0..width).map(move |x| value(row, x) * unit)).collect()
    }
}

/// RGB from CMYK.
fn without_black<T>(samples: &[u32], white: u64, of: impl Fn(u64) -> T) -> Vec<T> {
    let mut colours = crate::memory::room(samples.len() / 4 * 3);
    for pixel in samples.as_chunks::<4>().0 {
        let light = |c: usize| white - u64::from(pixel[c]);
        colours.extend((0..3).map(|c| of((light(c) * light(3) + white / 2) / white)));
    }
    colours
}

/// Samples of a depth that is kept, pixel by pixel, from those of `planes` planes.
fn converted(samples: DecodingResult, planes: usize) -> Decoded<Samples> {
    Ok(match samples {
        DecodingResult::U8(v) => Samples::Eight(woven(&v, planes, |v| v)),
        DecodingResult::U16(v) => Samples::Sixteen(woven(&v, planes, |v| v)),
        DecodingResult::F32(v) => Samples::Float(woven(&v, planes, |v| v)),
        DecodingResult::F64(v) => Samples::Float(woven(&v, planes, |v| v as f32)),
        DecodingResult::F16(v) => Samples::Float(woven(&v, planes, |v| v.to_f32())),
        DecodingResult::I8(v) => Samples::Float(woven(&v, planes, f32::from)),
        DecodingResult::I16(v) => Samples::Float(woven(&v, planes, f32::from)),
        DecodingResult::I32(v) => Samples::Float(woven(&v, planes, |v| v as f32)),
        DecodingResult::U32(v) => Samples::Float(woven(&v, planes, |v| v as f32)),
        DecodingResult::I64(v) => Samples::Float(woven(&v, planes, |v| v as f32)),
        DecodingResult::U64(v) => Samples::Float(woven(&v, planes, |v| v as f32)),
    })
}

/// One sample of each plane after the other.
fn woven<T: Copy, U>(samples: &[T], planes: usize, value: impl Fn(T) -> U) -> Vec<U> {
    let pixels = samples.len() / planes;
    (0..pixels * planes).map(|i| value(samples[i % planes * pixels + i / planes])).collect()
}
