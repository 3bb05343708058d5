//! What files say about their pixels, from each format into itself and into others.

use proxlift::Image;
use proxlift::image::io::{
    Depth, Format, Limits, Metadata, Picture, Resolution, Text, Unit, decode, encode, read, write,
};
use std::sync::{Arc, Mutex};

fn picture(metadata: Metadata) -> Picture {
    let data = (0..3 * 24 * 16).map(|i| ((i * i) % 200) as f32 / 255.0).collect();
    Picture { metadata, ..Picture::new(Image::new(3, 24, 16, data).unwrap(), Depth::Eight) }
}

/// An EXIF block with a camera's model, an exposure and a place.
fn exif() -> Vec<u8> {
    let mut bytes = b"MM\0\x2a\0\0\0\x08\0\x03".to_vec();
    bytes.extend(b"\x01\x10\0\x02\0\0\0\x06\0\0\0\x32"); // Model at 50
    bytes.extend(b"\x87\x69\0\x04\0\0\0\x01\0\0\0\x38"); // the camera at 56
    bytes.extend(b"\x88\x25\0\x04\0\0\0\x01\0\0\0\x52"); // GPS at 82
    bytes.extend(b"\0\0\0\0Leica\0");
    bytes.extend(b"\0\x01\x82\x9a\0\x05\0\0\0\x01\0\0\0\x4a\0\0\0\0\0\0\0\x01\0\0\0\x3c"); // 1/60 s at 74
    bytes.extend(b"\0\x01\0\x01\0\x02\0\0\0\x02N\0\0\0\0\0\0\0");
    bytes
}

fn full() -> Metadata {
    Metadata {
        icc: Some((0..200).collect()),
        exif: Some(exif()),
        xmp: Some(b"<x:xmpmeta>\xc3\xa4</x:xmpmeta>".to_vec()),
        resolution: Some(Resolution { x: (300, 1), y: (150, 1), unit: Unit::Inch }),
        ..Metadata::default()
    }
}

fn through(metadata: Metadata, format: Format) -> Metadata {
    decode(&encode(&picture(metadata), format).unwrap(), &Limits::default()).unwrap().metadata
}

#[test]
fn profiles_exif_xmp_and_resolution_are_kept_in_all_formats_that_can() {
    for format in [Format::Png, Format::Tiff, Format::Jpeg, Format::WebP] {
        let back = through(full(), format);
        assert_eq!((&back.icc, &back.xmp), (&full().icc, &full().xmp), "{format:?}");
        let inch = 0.0254;
        let per_inch = |r: Resolution| {
            let unit = match r.unit {
                Unit::Inch => inch,
                Unit::Centimetre => 0.01,
                _ => 1.0,
            };
            [r.x, r.y].map(|(n, d)| (f64::from(n) / f64::from(d) / unit * inch).round())
        };
        match (format, back.resolution) {
            (Format::WebP, resolution) => assert_eq!(resolution, None),
            (_, resolution) => assert_eq!(per_inch(resolution.unwrap()), [300.0, 150.0], "{format:?}"),
        }
        if format != Format::Tiff {
            assert_eq!(back.exif, full().exif, "{format:?}");
            continue;
        }
        // TIFF spreads EXIF over its own directories, and gathers it again.
        let block = back.exif.unwrap();
        let find = |bytes: &[u8]| block.windows(bytes.len()).any(|window| window == bytes);
        assert!(find(b"Leica\0") && find(&[1_u32.to_ne_bytes(), 60_u32.to_ne_bytes()].concat()));
        assert_eq!(
            through(Metadata { exif: Some(block.clone()), ..full() }, Format::Tiff).exif,
            Some(block.clone())
        );
        assert_eq!(through(Metadata { exif: Some(block.clone()), ..full() }, Format::Png).exif, Some(block));
    }
}

#[test]
fn texts_are_kept_where_they_have_a_place() {
    let texts = vec![
        Text::new("Description", "a cell, 40 \u{b5}m"),
        Text::new("Software", "scope 7"),
        Text::new("Comment", "\u{4e2d}"),
        Text::new("Lens", "40x"),
    ];
    let metadata =
        Metadata { texts: texts.clone(), settings: Some("proxlift 9".into()), ..Metadata::default() };
    let of = |format| through(metadata.clone(), format);
    let said = |metadata: &Metadata, key: &str| metadata.text(key).map(Text::string);
    let png = of(Format::Png);
    for text in &texts {
        let expected = if text.key == "Software" { "scope 7; proxlift 9".into() } else { text.string() };
        assert_eq!(said(&png, &text.key), Some(expected));
    }
    let tiff = of(Format::Tiff);
    assert_eq!(said(&tiff, "Description").unwrap(), "a cell, 40 \u{b5}m");
    assert_eq!(said(&tiff, "Software").unwrap(), "scope 7; proxlift 9");
    let comments: Vec<String> = of(Format::Jpeg).texts.iter().map(Text::string).collect();
    assert_eq!(comments, ["a cell, 40 \u{b5}m", "\u{4e2d}", "proxlift 9"]);
    let pnm: Vec<String> = of(Format::Pnm).texts.iter().map(Text::string).collect();
    assert_eq!(pnm, ["\u{4e2d}", "proxlift 9"]);
    let xmp = String::from_utf8(of(Format::WebP).xmp.unwrap()).unwrap();
    assert!(xmp.contains("CreatorTool=\"proxlift 9\""), "{xmp}");
    assert_eq!(through(Metadata { xmp: full().xmp, ..metadata.clone() }, Format::WebP).xmp, full().xmp);
}

#[test]
fn compressed_and_late_texts_of_a_png_are_read() {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 1, 1);
    encoder.add_ztxt_chunk("Long".into(), "again and ".repeat(50)).unwrap();
    encoder.add_itxt_chunk("Name".into(), "\u{4e2d}".into()).unwrap();
    encoder.set_source_gamma(png::ScaledFloat::new(0.5));
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: 2_000, yppu: 3_000, unit: png::Unit::Meter }));
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[7]).unwrap();
    writer.write_text_chunk(&png::text_metadata::TEXtChunk::new("Late", "behind the pixels")).unwrap();
    writer.finish().unwrap();
    let read = decode(&bytes, &Limits::default()).unwrap();
    let keys: Vec<_> = read.metadata.texts.iter().map(|text| text.key.as_str()).collect();
    assert_eq!(keys, ["Late", "Long", "Name"]);
    let again = encode(&read, Format::Png).unwrap();
    let back = decode(&again, &Limits::default()).unwrap().metadata;
    assert_eq!((&back.native, back.resolution), (&read.metadata.native, read.metadata.resolution));
    assert_eq!(back.resolution, Some(Resolution { x: (2_000, 1), y: (3_000, 1), unit: Unit::Metre }));
    assert!(read.metadata.texts.iter().all(|text| back.texts.contains(text)));
    let info = png::Decoder::new(std::io::Cursor::new(&again)).read_info().unwrap().info().clone();
    assert_eq!(info.gama_chunk.map(|gamma| gamma.into_scaled()), Some(50_000));
}

/// The quantisation tables of a JPEG, in the order of the file.
fn tables(jpeg: &[u8]) -> Vec<Vec<u8>> {
    let starts = jpeg.windows(4).enumerate().filter(|(_, w)| w[..3] == [0xff, 0xdb, 0]);
    starts.map(|(at, _)| jpeg[at + 5..at + 69].to_vec()).collect()
}

#[test]
fn a_jpeg_is_never_stored_more_coarsely_than_its_original() {
    let pixels: Vec<u8> = (0..64 * 64 * 3).map(|i| (i * i % 251) as u8).collect();
    let written = |quality: u8| {
        let mut bytes = Vec::new();
        let encoder = jpeg_encoder::Encoder::new(&mut bytes, quality);
        encoder.encode(&pixels, 64, 64, jpeg_encoder::ColorType::Rgb).unwrap();
        bytes
    };
    let fallback = tables(&encode(&picture(Metadata::default()), Format::Jpeg).unwrap());
    assert_eq!(fallback, tables(&written(95)), "quality 95 where there is no original");
    for quality in [40, 95, 98, 100] {
        let original = written(quality);
        let again = encode(&decode(&original, &Limits::default()).unwrap(), Format::Jpeg).unwrap();
        let (before, after) = (tables(&original), tables(&again));
        assert_eq!((before.len(), after.len()), (2, 2));
        assert!(before.concat().iter().zip(after.concat()).all(|(&a, b)| b <= a), "quality {quality}");
        assert_eq!(before == after, quality >= 95, "quality {quality}");
        // The frame header: three colours, none of them subsampled.
        let frame = again.windows(4).position(|w| w[..2] == [0xff, 0xc0]).unwrap();
        assert_eq!((again[frame + 9], again[frame + 11]), (3, 0x11));
    }
}

/// Collects warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Message(String);
        impl tracing::field::Visit for Message {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn what_is_lost_is_said_in_one_line() {
    let warned = |metadata: Metadata, format| {
        let warnings = Warnings::default();
        tracing::subscriber::with_default(warnings.clone(), || through(metadata, format));
        warnings.0.lock().unwrap().clone()
    };
    for format in [Format::Png, Format::Tiff, Format::Jpeg] {
        assert_eq!(warned(full(), format), [""; 0], "{format:?}");
    }
    assert_eq!(warned(full(), Format::WebP), ["WebP has no place for the resolution: left out"]);
    let bmp = ["BMP has no place for the colour profile, EXIF, XMP: left out"];
    assert_eq!(warned(full(), Format::Bmp), bmp);
    let lens = Metadata { texts: vec![Text::new("Lens", "40x")], ..Metadata::default() };
    assert_eq!(warned(lens, Format::Tiff), ["TIFF has no place for the text \"Lens\": left out"]);
    let long = Metadata { exif: Some(vec![0; 70_000]), ..Metadata::default() };
    assert_eq!(warned(long, Format::Jpeg), ["JPEG has no place for EXIF: left out"]);
}

#[test]
fn a_turned_picture_has_its_resolution_turned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    let mut block = b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    block.extend([6, 0, 0, 0, 0, 0, 0, 0]);
    let resolution = Some(Resolution { x: (100, 1), y: (200, 1), unit: Unit::Metre });
    write(&path, &picture(Metadata { exif: Some(block), resolution, ..Metadata::default() })).unwrap();
    let upright = read(&path).unwrap();
    assert_eq!(upright.image.shape(), (3, 16, 24));
    assert_eq!(upright.metadata.resolution, Some(Resolution { x: (200, 1), y: (100, 1), unit: Unit::Metre }));
}
