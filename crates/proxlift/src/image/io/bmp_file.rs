//! BMP: decoded by `zune-bmp`; written here, since that needs a header only.

use super::common::{Header, Source};
use super::metadata::{Metadata, Resolution, Unit};
use super::samples::Samples;
use super::{Allowance, Channels, Decoded, Depth, Raster};
use std::io::{Read, Write};
use zune_bmp::BmpDecoder;
use zune_bmp::zune_core::bytestream::ZCursor;
use zune_bmp::zune_core::options::DecoderOptions;

const FILE_HEADER: u32 = 14;

pub(super) fn decode(reader: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    let mut bytes = Vec::new();
    reader.take(allowance.limits.max_bytes).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
    let number =
        |at: usize| bytes.get(at..).and_then(|rest| rest.first_chunk()).map(|b| u32::from_le_bytes(*b));
    let bits = number(26).map_or(0, |both| both >> 16);
    // Only the oldest headers have no resolution.
    let has_masks = number(30) != Some(0);
    let is_newer = number(14).is_some_and(|size| size >= 40);
    let metre = (number(38).unwrap_or(0), number(42).unwrap_or(0));
    let says_something = is_newer && metre.0 > 0 && metre.1 > 0;
    let resolution =
        says_something.then_some(Resolution { x: (metre.0, 1), y: (metre.1, 1), unit: Unit::Metre });
    check_length(&bytes, bits, is_newer, number)?;
    let options = DecoderOptions::default().set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = BmpDecoder::new_with_options(ZCursor::new(bytes), options);
    let why = |e| format!("the BMP cannot be decoded: {e:?}");
    decoder.decode_headers().map_err(why)?;
    let (width, height) = decoder.dimensions().ok_or("the BMP has no header")?;
    let samples = decoder.colorspace().map_or(3, |colours| colours.num_components());
    if ![1, 3, 4].contains(&samples) {
        return Err("the BMP has neither grey nor RGB pixels; convert it to 24 bits".into());
    }
    match bits {
        1 | 2 | 4 => allowance.announce(&format!("{bits}-bit pixels are written as 8 or 24 bits")),
        16 => allowance.announce("16-bit pixels are written as 24 bits"),
        _ => {}
    }
    let metadata = Metadata { icc: decoder.icc_profile().cloned(), resolution, ..Metadata::default() };
    let (width, height) = (width as u32, height as u32);
    let header = Header { width, height, samples, depth: Depth::Eight, metadata };
    let raster = header.raster(allowance, |bytes| decoder.decode_into(bytes).map_err(why))?;
    Ok(match raster.samples() {
        Samples::Eight(s) if samples == 3 && bits <= 8 && s.as_chunks::<3>().0.iter().all(is_grey) => {
            only(&raster, Channels::Grey, s.iter().step_by(3).copied().collect())?
        }
        // Without masks, the fourth byte means nothing.
        Samples::Eight(s) if samples == 4 && !has_masks => only(
            &raster,
            Channels::Rgb,
            s.as_chunks::<4>().0.iter().flat_map(|p| [p[0], p[1], p[2]]).collect(),
        )?,
        _ => raster,
    })
}

/// The decoder takes rows that are missing for black, so that truncation is found here.
fn check_length(
    bytes: &[u8],
    bits: u32,
    is_newer: bool,
    number: impl Fn(usize) -> Option<u32>,
) -> Decoded<()> {
    let is_plain = matches!(number(30), Some(0 | 3 | 6)) && is_newer;
    let (Some(start), Some(width), Some(height)) = (number(10), number(18), number(22)) else {
        return Err("the file is truncated".into());
    };
    let row = (u64::from(width) * u64::from(bits)).div_ceil(32).saturating_mul(4);
    let needed = row.saturating_mul(u64::from((height as i32).unsigned_abs())).saturating_add(start.into());
    if is_plain && needed > bytes.len() as u64 {
        return Err("the file is truncated".into());
    }
    Ok(())
}

/// A pixel of a palette of greys.
fn is_grey(&[red, green, blue]: &[u8; 3]) -> bool {
    red == green && green == blue
}

/// The picture with fewer samples a pixel.
fn only(raster: &Raster, channels: Channels, samples: Vec<u8>) -> Decoded<Raster> {
    let size = (raster.height(), raster.width());
    Raster::new(channels, false, size, Samples::Eight(samples), raster.metadata.clone())
}

pub(super) fn encode(raster: &Raster, file: &mut dyn Write) -> Decoded<()> {
    let count = raster.samples_per_pixel();
    let has_alpha = raster.has_alpha();
    // Grey in 8 bits with a palette; colours in 24; alpha makes it 32.
    let bytes: usize = if has_alpha { 4 } else { count };
    let row = (raster.width() * bytes).next_multiple_of(4);
    let info: u32 = if has_alpha { 108 } else { 40 };
    let colours = if bytes == 1 { 256 } else { 0 };
    let start = FILE_HEADER + info + 4 * colours;
    let image = (row * raster.height()) as u32;
    let (x, y) = raster.metadata.resolution.and_then(|r| r.whole(Unit::Metre)).unwrap_or((0, 0));
    let mut header = b"BM".to_vec();
    let mut put = |numbers: &[u32]| header.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
    put(&[start + image, 0, start, info, raster.width() as u32, raster.height() as u32]);
    put(&[1 | (8 * bytes as u32) << 16, if has_alpha { 3 } else { 0 }, image, x, y, colours, 0]);
    if has_alpha {
        // The places of red, green, blue and alpha; then sRGB, of which nothing else needs to be said.
        put(&[0xff_0000, 0xff00, 0xff, 0xff00_0000, 0x7352_4742]);
        put(&[0; 12]);
    }
    put(&(0..colours).map(|i| i * 0x01_0101).collect::<Vec<_>>());
    let mut write = |bytes: &[u8]| file.write_all(bytes).map_err(|e| e.to_string());
    write(&header)?;
    let mut line = vec![0; row];
    for pixels in raster.eight().chunks_exact(raster.width() * count).rev() {
        for (to, pixel) in line.chunks_exact_mut(bytes).zip(pixels.chunks_exact(count)) {
            match *pixel {
                [grey] => to[0] = grey,
                [grey, alpha] => to.copy_from_slice(&[grey, grey, grey, alpha]),
                [r, g, b] => to.copy_from_slice(&[b, g, r]),
                _ => to.copy_from_slice(&[pixel[2], pixel[1], pixel[0], pixel[3]]),
            }
        }
        write(&line)?;
    }
    Ok(())
}
