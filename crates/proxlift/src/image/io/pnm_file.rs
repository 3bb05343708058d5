//! PGM, PPM and PBM, by hand: the format is a few numbers before the samples, and crates that read it scale 12-bit
//! pictures without a way back, or do not read the variants in plain text.

use super::common::{Header, Source, cut_short};
use super::metadata::{Kept, Metadata, Native, Text};
use super::samples::Samples;
use super::{Allowance, Channels, Decoded, Depth, Raster};
use std::io::Write;

/// The most that comments may take.
const COMMENTS: usize = 1 << 20;

/// Reads numbers in plain text, and collects the comments between them.
struct Tokens<'a> {
    source: &'a mut dyn Source,
    comments: Vec<Text>,
    length: usize,
}

impl Tokens<'_> {
    fn byte(&mut self) -> Decoded<Option<u8>> {
        let byte = self.source.fill_buf().map_err(|e| e.to_string())?.first().copied();
        self.source.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// The first byte of the next token.
    fn start(&mut self) -> Decoded<u8> {
        loop {
            match self.byte()?.ok_or("the file is truncated")? {
                b'#' => self.comment()?,
                space if space.is_ascii_whitespace() => {}
                byte => return Ok(byte),
            }
        }
    }

    fn comment(&mut self) -> Decoded<()> {
        let mut comment = Vec::new();
        while let Some(byte) = self.byte()?.filter(|&byte| byte != b'\n') {
            if self.length < COMMENTS {
                comment.push(byte);
                self.length += 1;
            }
        }
        self.comments.push(Text::new("Comment", comment.trim_ascii()));
        Ok(())
    }

    /// The next number; one byte behind it is taken, too.
    fn number(&mut self) -> Decoded<u32> {
        let (mut digit, mut number) = (Some(self.start()?), 0_u32);
        loop {
            match digit {
                Some(byte @ b'0'..=b'9') => {
                    let next = number.checked_mul(10).and_then(|n| n.checked_add(u32::from(byte - b'0')));
                    number = next.ok_or("the file is damaged: a number is too large")?;
                }
                Some(b'#') => {
                    self.comment()?;
                    return Ok(number);
                }
                Some(byte) if !byte.is_ascii_whitespace() => {
                    return Err("the file is damaged: there is no number where one should be".into());
                }
                _ => return Ok(number),
            }
            digit = self.byte()?;
        }
    }
}

pub(super) fn decode(source: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    let mut tokens = Tokens { source, comments: Vec::new(), length: 0 };
    tokens.byte()?;
    let variant = tokens.byte()?.unwrap_or_default();
    let (width, height) = (tokens.number()?, tokens.number()?);
    let is_bits = matches!(variant, b'1' | b'4');
    let white = if is_bits { 1 } else { tokens.number()? };
    if !(1..=65_535).contains(&white) {
        return Err(format!("the header claims that white is {white}; it must be 1 to 65535"));
    }
    if is_bits {
        allowance.announce("1-bit samples are written as 8 bits");
    } else if matches!(variant, b'2' | b'3') {
        allowance.announce("samples in plain text are written in binary");
    }
    let depth = if white > 255 { Depth::Sixteen } else { Depth::Eight };
    let native = if matches!(white, 1 | 255 | 65_535) { Kept::Nothing } else { Kept::Pnm(white as u16) };
    let samples = if matches!(variant, b'3' | b'6') { 3 } else { 1 };
    let metadata = Metadata { native: Native(native), ..Metadata::default() };
    let header = Header { width, height, samples, depth, metadata };
    let mut raster = header.raster(allowance, |bytes| match variant {
        b'4' => packed(tokens.source, width as usize, bytes),
        b'5' | b'6' => {
            tokens.source.read_exact(bytes).map_err(|e| cut_short(&e))?;
            scale(bytes, depth, white, u16::from_be_bytes)
        }
        _ => {
            plain(&mut tokens, bytes, depth, variant == b'1')?;
            scale(bytes, depth, white, u16::from_ne_bytes)
        }
    })?;
    raster.metadata.texts = tokens.comments;
    Ok(raster)
}

/// Bits, of which 1 is black.
fn packed(source: &mut dyn Source, width: usize, bytes: &mut [u8]) -> Decoded<()> {
    let mut row = vec![0; width.div_ceil(8)];
    for to in bytes.chunks_exact_mut(width) {
        source.read_exact(&mut row).map_err(|e| cut_short(&e))?;
        to.iter_mut()
            .enumerate()
            .for_each(|(x, to)| *to = if row[x / 8] << (x % 8) & 0x80 > 0 { 0 } else { 255 });
    }
    Ok(())
}

fn plain(tokens: &mut Tokens, bytes: &mut [u8], depth: Depth, is_bits: bool) -> Decoded<()> {
    for sample in bytes.chunks_exact_mut(depth.bytes() as usize) {
        // Bits need no space between them.
        let number = match is_bits {
            true => u32::from(tokens.start()? == b'0'),
            false => tokens.number()?.min(65_535),
        };
        match sample {
            [sample] => *sample = number.min(255) as u8,
            sample => sample.copy_from_slice(&(number as u16).to_ne_bytes()),
        }
    }
    Ok(())
}

/// Samples with another white to the full range of their depth; those above white become white.
fn scale(bytes: &mut [u8], depth: Depth, white: u32, of: impl Fn([u8; 2]) -> u16) -> Decoded<()> {
    if depth == Depth::Eight {
        let scaled = |v: u8| ((u32::from(v).min(white) * 255 + white / 2) / white) as u8;
        bytes.iter_mut().for_each(|v| *v = scaled(*v));
    } else {
        let scaled = |v: u16| ((u32::from(v).min(white) * 65_535 + white / 2) / white) as u16;
        bytes.as_chunks_mut::<2>().0.iter_mut().for_each(|v| *v = scaled(of(*v)).to_ne_bytes());
    }
    Ok(())
}

pub(super) fn encode(raster: &Raster, file: &mut dyn Write) -> Decoded<()> {
    let metadata = &raster.metadata;
    let full: u16 = if matches!(raster.samples(), Samples::Eight(_)) { 255 } else { 65_535 };
    let white = match metadata.native.0 {
        Kept::Pnm(white) if (white > 255) == (full > 255) => white,
        _ => full,
    };
    let variant = if raster.kind() == Channels::Grey { "P5" } else { "P6" };
    let mut header = format!("{variant}\n").into_bytes();
    let comments =
        metadata.texts.iter().filter(|text| text.key == "Comment").map(|text| text.value.as_slice());
    for line in comments.chain(metadata.settings.as_deref().map(str::as_bytes)) {
        let line: Vec<u8> = line.iter().map(|&b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }).collect();
        header.extend([b"# ", &line[..], b"\n"].concat());
    }
    header.extend(format!("{} {}\n{white}\n", raster.width(), raster.height()).as_bytes());
    let mut write = |bytes: &[u8]| file.write_all(bytes).map_err(|e| e.to_string());
    write(&header)?;
    let row = raster.width() * raster.samples_per_pixel();
    let (full, white) = (u32::from(full), u32::from(white));
    let scaled = |v: u32| (v * white + full / 2) / full;
    let sixteen = |v: u16| (scaled(u32::from(v)) as u16).to_be_bytes();
    match raster.samples() {
        Samples::Eight(s) if white == 255 => write(s),
        Samples::Eight(s) => s
            .chunks(row)
            .try_for_each(|row| write(&row.iter().map(|&v| scaled(u32::from(v)) as u8).collect::<Vec<_>>())),
        Samples::Sixteen(s) => {
            s.chunks(row).try_for_each(|row| write(&row.iter().flat_map(|&v| sixteen(v)).collect::<Vec<_>>()))
        }
        Samples::Float(s) => s.chunks(row).try_for_each(|row| {
            let rounded = row.iter().map(|v| (v * 65_535.0).round().clamp(0.0, 65_535.0) as u16);
            write(&rounded.flat_map(sixteen).collect::<Vec<_>>())
        }),
    }
}
