//! Pictures that are damaged, hostile or hold more than one frame, and colours that are multiplied by alpha.
#![allow(missing_docs)]

use jpeg_encoder::{ColorType, Encoder};
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::Channels;
use proxlift::image::io::{self, Depth, Format, Limits, Pages, Picture, write_raster};
use std::io::Write;

fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(kind);
    hasher.update(data);
    [&(data.len() as u32).to_be_bytes()[..], kind, data, &hasher.finalize().to_be_bytes()].concat()
}

fn picture(kind: Channels) -> Picture {
    Picture::new(dead_leaves(1, 0, 48, 56, kind).unwrap(), Depth::Eight)
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// A profile of a few kilobytes that becomes 3 GB.
#[test]
fn metadata_that_swell_are_not_decompressed() {
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0_u8; 1 << 20];
    (0..300).for_each(|_| deflate.write_all(&zeros).unwrap());
    let profile = [b"bomb\0\0".to_vec(), deflate.finish().unwrap()].concat();
    let png = io::encode(&picture(Channels::Grey), Format::Png).unwrap();
    let bytes = [&png[..33], &chunk(b"iCCP", &profile), &chunk(b"zTXt", &profile), &png[33..]].concat();
    let before = resident();
    let read = io::decode(&bytes, &Limits::default());
    assert!(resident() - before < 100_000, "{} kB", resident() - before);
    if let Ok(read) = read {
        assert!(read.metadata.icc.is_none());
        let whole = io::decode(&png, &Limits::default()).unwrap();
        assert!(read.image == whole.image);
    }
}

/// Cut in its scan, but with its end marker: the decoder would fill the rest with grey.
#[test]
fn a_jpeg_without_all_of_its_pixels_is_refused() {
    for kind in [Channels::Grey, Channels::Rgb] {
        let bytes = io::encode(&picture(kind), Format::Jpeg).unwrap();
        assert!(io::decode(&bytes, &Limits::default()).is_ok());
        let scan = bytes.windows(2).rposition(|w| w == [0xff, 0xda]).unwrap() + 14;
        let mut accepted = Vec::new();
        for end in scan..bytes.len() - 2 {
            let cut = [&bytes[..end], &[0xff, 0xd9]].concat();
            if io::decode(&cut, &Limits::default()).is_ok() {
                accepted.push(bytes.len() - 2 - end);
            }
        }
        // The last bytes may be padding alone.
        assert!(accepted.iter().all(|&missing| missing <= 2), "up to {:?} bytes missing", accepted.first());
    }
}

fn progressive(colours: ColorType, samples: usize) -> Vec<u8> {
    let (mut file, size) = (Vec::new(), (61, 45));
    let pixels: Vec<u8> = (0..size.0 * size.1 * samples).map(|i| ((i * i / 7) % 251) as u8).collect();
    let mut encoder = Encoder::new(&mut file, 85);
    encoder.set_progressive(true);
    encoder.encode(&pixels, size.0 as u16, size.1 as u16, colours).unwrap();
    file
}

/// Where the scans of a JPEG begin.
fn scans(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len() - 1).filter(|&at| bytes[at..at + 2] == [0xff, 0xda]).collect()
}

/// Whether a place is not in the tables between two scans, which are of no use to a picture that ends there.
fn segment(bytes: &[u8], at: usize) -> bool {
    let before = bytes[..at].windows(2).rposition(|w| w[0] == 0xff && (0xc0..0xfe).contains(&w[1]));
    before.is_none_or(|marker| bytes[marker + 1] == 0xda)
}

/// The same for progressive ones, whose scans each hold a part of every block.
#[test]
fn a_progressive_jpeg_is_read_whole_and_refused_cut() {
    for (colours, samples) in [(ColorType::Luma, 1), (ColorType::Rgb, 3)] {
        let bytes = progressive(colours, samples);
        let whole = io::decode(&bytes, &Limits::default()).unwrap().image;
        assert_eq!(whole.shape(), (samples, 45, 61));
        let scans = scans(&bytes);
        assert!(bytes.windows(2).any(|w| w == [0xff, 0xc2]) && scans.len() > 2, "it is progressive");
        let mut accepted = Vec::new();
        for end in scans[0] + 14..bytes.len() - 2 {
            let cut = [&bytes[..end], &[0xff, 0xd9]].concat();
            if io::decode(&cut, &Limits::default()).is_ok() {
                accepted.push(end);
            }
        }
        // Cut between two scans, a picture is whole, only coarser; the last bytes of a scan may be padding alone.
        let ends = |end: usize| scans.iter().any(|&scan| end.abs_diff(scan) < 3) || end + 5 > bytes.len();
        let outside = |end: &usize| !ends(*end) && segment(&bytes, *end);
        assert!(!accepted.iter().any(outside), "{accepted:?} {scans:?}");
    }
}

/// A few bytes a scan go through every block: that must not be repeated without end, nor for a size that is not the
/// picture's.
#[test]
fn a_jpeg_of_many_scans_or_two_sizes_is_refused_at_once() {
    let bytes = progressive(ColorType::Luma, 1);
    let scans = scans(&bytes);
    let (last, end) = (scans[scans.len() - 1], bytes.len() - 2);
    let many = [&bytes[..last], &bytes[last..end].repeat(200), &[0xff, 0xd9]].concat();
    let refused = io::decode(&many, &Limits::default()).unwrap_err().to_string();
    assert!(refused.contains("128 scans"), "{refused}");
    let frame = bytes.windows(2).position(|w| w == [0xff, 0xc2]).unwrap();
    let mut other = bytes[frame..frame + 13].to_vec();
    other[5..9].fill(0xff);
    for at in [frame, scans[0], scans[1]] {
        let two = [&bytes[..at], &other[..], &bytes[at..]].concat();
        let (start, before) = (std::time::Instant::now(), resident());
        let _ = io::decode(&two, &Limits::default());
        assert!(start.elapsed().as_secs_f64() < 1.0 && resident() - before < 100_000);
    }
}

fn animated_png() -> Vec<u8> {
    let bytes = io::encode(&picture(Channels::Grey), Format::Png).unwrap();
    let control = [2_u32.to_be_bytes(), 0_u32.to_be_bytes()].concat();
    [&bytes[..33], &chunk(b"acTL", &control), &bytes[33..]].concat()
}

#[test]
fn an_animation_is_not_opened_to_be_replaced_by_its_first_frame() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("moving.png");
    std::fs::write(&path, animated_png()).unwrap();
    let mut pages = Pages::open(&path, &Limits::default()).unwrap();
    assert!(pages.next_page().is_ok());
    let mut pages = Pages::open_in_place(&path, &Limits::default()).unwrap();
    let refused = pages.next_page().unwrap_err().to_string();
    assert!(refused.contains("only the first frame would be left"), "{refused}");
}

/// `ExtraSamples` of a TIFF.
fn extra_samples(bytes: &[u8]) -> Option<u16> {
    let mut decoder = tiff::decoder::Decoder::new(std::io::Cursor::new(bytes)).unwrap();
    decoder.find_tag_unsigned(tiff::tags::Tag::ExtraSamples).unwrap()
}

#[test]
fn premultiplied_colours_stay_so_in_tiff_and_are_divided_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let mut picture = picture(Channels::Rgb);
    let pixels = picture.image.pixels();
    picture.image.data_mut().fill(64.0 / 255.0);
    picture.alpha = Some((0..pixels).map(|i| [128.0 / 255.0, 1.0, 0.0][i % 3]).collect());
    io::write(&path, &picture).unwrap();
    // The same samples, said to be premultiplied.
    let mut bytes = std::fs::read(&path).unwrap();
    let tag = bytes.windows(8).position(|w| w[..8] == [0x52, 1, 3, 0, 1, 0, 0, 0]).unwrap();
    bytes[tag + 8] = 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(extra_samples(&bytes), Some(1));
    let raster = io::read_raster(&path, &Limits::default()).unwrap();
    write_raster(&path, &raster).unwrap();
    assert_eq!(extra_samples(&std::fs::read(&path).unwrap()), Some(1));
    let png = folder.path().join("a.png");
    write_raster(&png, &raster).unwrap();
    let back = io::read(&png).unwrap();
    let value = |i: usize| (back.image.plane(0)[i] * 255.0).round();
    assert_eq!([value(0), value(1), value(2)], [128.0, 64.0, 64.0]);
    // And a TIFF that is not stays as it was.
    let plain = folder.path().join("b.tif");
    io::write(&plain, &picture).unwrap();
    assert_eq!(extra_samples(&std::fs::read(&plain).unwrap()), Some(2));
}
