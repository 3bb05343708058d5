//! Files of several pages: read and written one at a time, with all that their directories say.

use proxlift::Image;
use proxlift::image::io::{
    Depth, Limits, Metadata, Pages, Picture, Raster, Resolution, Text, Unit, read, read_raster, write_pages,
};
use std::path::Path;
use tiff::decoder::Decoder;
use tiff::encoder::{Compression, TiffEncoder, colortype};
use tiff::tags::{Predictor, Tag};

fn page(index: usize, channels: usize, depth: Depth) -> Raster {
    let value = |i: usize| ((i * 31 + index * 977) % 4096) as f32 / 4095.0;
    let image = Image::new(channels, 6, 5, (0..channels * 30).map(value).collect()).unwrap();
    Raster::of_picture(&Picture::new(image, depth)).unwrap()
}

fn all(path: &Path) -> Vec<Raster> {
    let mut pages = Pages::open(path, &Limits::default()).unwrap();
    (0..pages.count()).map(|_| pages.next_page().unwrap()).collect()
}

#[test]
fn stacks_keep_every_page_in_every_depth() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.tif");
    for (channels, depth) in
        [(1, Depth::Eight), (1, Depth::Sixteen), (3, Depth::Sixteen), (1, Depth::Float), (3, Depth::Float)]
    {
        let stack: Vec<_> = (0..4).map(|i| page(i, channels, depth)).collect();
        write_pages(&path, 4, &mut |i| Ok(stack[i].clone())).unwrap();
        assert_eq!(all(&path), stack, "{channels} channels, {depth:?}");
        let mut pages = Pages::open(&path, &Limits::default()).unwrap();
        (0..4).for_each(|_| drop(pages.next_page().unwrap()));
        assert!(pages.next_page().is_err(), "there is no fifth page");
        assert_eq!(read_raster(&path, &Limits::default()).unwrap(), stack[0], "the first page alone");
    }
}

#[test]
fn a_stack_that_fails_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.tif");
    std::fs::write(&path, "before").unwrap();
    let result = write_pages(&path, 3, &mut |i| match i {
        2 => Err(proxlift::Error::invalid("the third page is damaged")),
        _ => Ok(page(i, 1, Depth::Eight)),
    });
    assert_eq!(result.unwrap_err().to_string(), "the third page is damaged");
    assert_eq!(std::fs::read(&path).unwrap(), b"before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let png = write_pages(folder.path().join("stack.png"), 3, &mut |i| Ok(page(i, 1, Depth::Eight)));
    assert!(png.unwrap_err().to_string().contains("3 pages; choose tif"));
}

#[test]
fn pages_that_differ_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.tif");
    let refused = |write: &dyn Fn(&mut TiffEncoder<std::fs::File>)| {
        let mut encoder = TiffEncoder::new(std::fs::File::create(&path).unwrap()).unwrap();
        encoder.write_image::<colortype::Gray16>(3, 2, &[0; 6]).unwrap();
        write(&mut encoder);
        Pages::open(&path, &Limits::default()).err().unwrap().to_string()
    };
    let size = refused(&|encoder| encoder.write_image::<colortype::Gray16>(2, 2, &[0; 4]).unwrap());
    assert!(size.contains("page 2 has 2 x 2 16-bit grey pixels, but the first page has 3 x 2"), "{size}");
    let depth = refused(&|encoder| encoder.write_image::<colortype::Gray8>(3, 2, &[0; 6]).unwrap());
    assert!(depth.contains("page 2 has 3 x 2 8-bit"), "{depth}");
    let colour = refused(&|encoder| encoder.write_image::<colortype::RGB16>(3, 2, &[0; 18]).unwrap());
    assert!(colour.contains("RGB pixels"), "{colour}");
}

#[test]
fn limits_hold_for_a_page_not_for_the_stack() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.tif");
    write_pages(&path, 9, &mut |i| Ok(page(i, 1, Depth::Eight))).unwrap();
    let open = |max_pixels, max_bytes| Pages::open(&path, &Limits { max_pixels, max_bytes });
    assert_eq!(open(30, 30).unwrap().count(), 9);
    assert!(open(29, 30).err().unwrap().to_string().contains("limit"));
    assert!(open(30, 29).err().unwrap().to_string().contains("limit"));
}

/// The numbers of some tags of every page.
fn tags(path: &Path, tag: Tag) -> Vec<Option<u16>> {
    let mut decoder = Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut found = vec![decoder.find_tag_unsigned(tag).unwrap()];
    while decoder.more_images() {
        decoder.next_image().unwrap();
        found.push(decoder.find_tag_unsigned(tag).unwrap());
    }
    found
}

#[test]
fn compression_is_that_of_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.tif"), folder.path().join("b.tif"));
    let samples: Vec<u16> = (0..40 * 30).map(|i| (i * 7 % 300) as u16).collect();
    let floats: Vec<f32> = samples.iter().map(|&v| f32::from(v) - 20.5).collect();
    for (compression, number) in
        [(Compression::Uncompressed, 1), (Compression::Lzw, 5), (Compression::Deflate(Default::default()), 8)]
            .into_iter()
            .chain([(Compression::Packbits, 32_773)])
    {
        for predictor in [Predictor::None, Predictor::Horizontal] {
            let file = std::fs::File::create(&path).unwrap();
            let mut encoder =
                TiffEncoder::new(file).unwrap().with_compression(compression).with_predictor(predictor);
            encoder.write_image::<colortype::Gray16>(40, 30, &samples).unwrap();
            encoder.write_image::<colortype::Gray16>(40, 30, &samples).unwrap();
            drop(encoder);
            let before = all(&path);
            write_pages(&copy, 2, &mut |i| Ok(before[i].clone())).unwrap();
            assert_eq!(tags(&copy, Tag::Compression), [Some(number); 2]);
            let is_predicted = predictor == Predictor::Horizontal && matches!(number, 5 | 8);
            assert_eq!(tags(&copy, Tag::Predictor)[0], Some(if is_predicted { 2 } else { 1 }), "{number}");
            let after = all(&copy);
            assert!(
                before
                    .iter()
                    .zip(&after)
                    .all(|(a, b)| a.clone().into_picture().image == b.clone().into_picture().image)
            );
        }
        // Floats that were predicted as integers are predicted as floats.
        let file = std::fs::File::create(&path).unwrap();
        let mut encoder = TiffEncoder::new(file).unwrap().with_compression(compression);
        encoder.write_image::<colortype::RGB32Float>(20, 20, &floats).unwrap();
        drop(encoder);
        let before = all(&path);
        write_pages(&copy, 1, &mut |_| Ok(before[0].clone())).unwrap();
        assert_eq!(all(&copy), before);
    }
}

#[test]
fn everything_that_is_said_of_a_page_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("a.tif"), folder.path().join("b.tif"));
    let file = std::fs::File::create(&path).unwrap();
    let mut encoder = TiffEncoder::new(file).unwrap();
    let description = "ImageJ=1.54f\nslices=2\nunit=\u{b5}m\nmin=0.0\nmax=4095.0\n";
    for index in 0..2_u16 {
        let exif = {
            let mut camera = encoder.extra_directory().unwrap();
            camera
                .write_tag(Tag::from_u16_exhaustive(33_434), tiff::encoder::Rational { n: 1, d: 60 })
                .unwrap();
            camera.write_tag(Tag::from_u16_exhaustive(34_855), 400_u16).unwrap();
            camera.finish_with_offsets().unwrap().offset
        };
        let mut image = encoder.new_image::<colortype::Gray8>(3, 2).unwrap();
        let tags = image.encoder();
        if index == 0 {
            tags.write_tag(Tag::ImageDescription, description.as_bytes()).unwrap();
        }
        tags.write_tag(Tag::Software, "scope 7").unwrap();
        tags.write_tag(Tag::DateTime, "2026:11:17 10:00:00").unwrap();
        tags.write_tag(Tag::Artist, "B. Golgi").unwrap();
        tags.write_tag(Tag::Model, "M1").unwrap();
        tags.write_tag(Tag::XResolution, tiff::encoder::Rational { n: 1_538, d: 100 }).unwrap();
        tags.write_tag(Tag::YResolution, tiff::encoder::Rational { n: 1_538, d: 100 }).unwrap();
        tags.write_tag(Tag::ResolutionUnit, 1_u16).unwrap();
        tags.write_tag(Tag::IccProfile, &[1_u8, 2, 3][..]).unwrap();
        tags.write_tag(Tag::from_u16_exhaustive(700), &b"<x:xmpmeta/>"[..]).unwrap();
        // ImageJ's own, and one that is nobody's.
        tags.write_tag(Tag::from_u16_exhaustive(50_839), &[9_u8; 40][..]).unwrap();
        tags.write_tag(Tag::from_u16_exhaustive(65_001), &[index, 77][..]).unwrap();
        tags.write_tag(Tag::ExifDirectory, exif).unwrap();
        image.write_data(&[0, 1, 2, 3, 4, 5]).unwrap();
    }
    drop(encoder);
    let before = all(&path);
    let metadata = &before[0].metadata;
    assert_eq!(metadata.text("Description").unwrap().value, description.as_bytes());
    assert_eq!(metadata.resolution, Some(Resolution { x: (1_538, 100), y: (1_538, 100), unit: Unit::None }));
    assert_eq!(
        (metadata.icc.as_deref(), metadata.xmp.as_deref()),
        (Some(&[1, 2, 3][..]), Some(&b"<x:xmpmeta/>"[..]))
    );
    assert!(before[1].metadata.text("Description").is_none());
    write_pages(&copy, 2, &mut |i| Ok(before[i].clone())).unwrap();
    assert_eq!(all(&copy), before);
    for number in [50_839, 65_001] {
        let of = |path| {
            let mut decoder = Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
            decoder.next_image().unwrap();
            decoder.get_tag(Tag::from_u16_exhaustive(number)).unwrap()
        };
        assert_eq!(of(&path), of(&copy), "{number}");
    }
    let mut decoder = Decoder::new(std::fs::File::open(&copy).unwrap()).unwrap();
    let pointer = decoder.get_tag(Tag::ExifDirectory).unwrap().into_ifd_pointer().unwrap();
    let camera = decoder.read_directory(pointer).unwrap();
    let iso = decoder.read_directory_tags(&camera).get_tag_unsigned::<u16>(Tag::from_u16_exhaustive(34_855));
    assert_eq!(iso.unwrap(), 400);
}

#[test]
fn settings_go_behind_the_software() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let mut raster = page(0, 1, Depth::Eight);
    for (software, expected) in [(None, "proxlift 9"), (Some("scope 7"), "scope 7; proxlift 9")] {
        raster.metadata = Metadata {
            texts: software.map(|software| Text::new("Software", software)).into_iter().collect(),
            settings: Some("proxlift 9".into()),
            ..Metadata::default()
        };
        write_pages(&path, 1, &mut |_| Ok(raster.clone())).unwrap();
        let text = all(&path)[0].metadata.text("Software").unwrap().string();
        assert_eq!(text, expected);
    }
}

/// ImageJ's stacks of more than 4 GB: one directory, a number of images, and all pixels behind each other.
#[test]
fn stacks_with_one_directory_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("imagej.tif");
    let write = |pages: usize| {
        let mut bytes = b"MM\0\x2a\0\0\0\x08".to_vec();
        let description = format!("ImageJ=1.54f\nimages={pages}\nslices={pages}\n\0");
        let entries: [(u16, u16, u32, u32); 10] = [
            (256, 4, 1, 4),
            (257, 4, 1, 2),
            (258, 3, 1, 16 << 16),
            (259, 3, 1, 1 << 16),
            (262, 3, 1, 1 << 16),
            (270, 2, description.len() as u32, 134),
            (273, 4, 1, 134 + description.len() as u32),
            (277, 3, 1, 1 << 16),
            (278, 3, 1, 2 << 16),
            (279, 4, 1, 16),
        ];
        bytes.extend((entries.len() as u16).to_be_bytes());
        for (tag, kind, count, value) in entries {
            bytes.extend([tag.to_be_bytes(), kind.to_be_bytes()].concat());
            bytes.extend([count.to_be_bytes(), value.to_be_bytes()].concat());
        }
        bytes.extend([0; 4]);
        assert_eq!(bytes.len(), 134);
        bytes.extend(description.as_bytes());
        bytes.extend((0..8 * 3_u16).flat_map(|v| (1_000 * v).to_be_bytes()));
        std::fs::write(&path, bytes).unwrap();
    };
    write(3);
    let pages = all(&path);
    assert_eq!(pages.len(), 3);
    for (i, page) in pages.into_iter().enumerate() {
        assert_eq!(page.metadata.text("Description").is_some(), i == 0);
        let expected: Vec<f32> = (8 * i..8 * i + 8).map(|v| (1_000 * v) as f32 / 65_535.0).collect();
        assert_eq!(page.into_picture().image.data(), expected);
    }
    write(4);
    let error = Pages::open(&path, &Limits::default()).err().unwrap().to_string();
    assert!(error.contains("promises 4 pages, but the file has 3"), "{error}");
    // A page that was taken out of a stack still has its description.
    let one = std::fs::read(&path).unwrap();
    std::fs::write(&path, &one[..one.len() - 2 * 16]).unwrap();
    assert_eq!(all(&path).len(), 1);
}

#[test]
fn other_kinds_of_samples_become_floats_or_eight_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tif");
    let file = || TiffEncoder::new(std::fs::File::create(&path).unwrap()).unwrap();
    let back = || read(&path).unwrap();
    file().write_image::<colortype::GrayI16>(2, 1, &[-300, 7]).unwrap();
    assert_eq!((back().depth, back().image.data()), (Depth::Float, &[-300.0, 7.0][..]));
    file().write_image::<colortype::Gray32>(2, 1, &[70_000, 7]).unwrap();
    assert_eq!((back().depth, back().image.data()), (Depth::Float, &[70_000.0, 7.0][..]));
    file().write_image::<colortype::GrayI32>(1, 1, &[-70_000]).unwrap();
    assert_eq!(back().image.data(), [-70_000.0]);
    file().write_image::<colortype::CMYK8>(1, 1, &[255, 0, 51, 0]).unwrap();
    assert_eq!((back().depth, back().image.data()), (Depth::Eight, &[0.0, 1.0, 0.8][..]));

    // One bit a pixel; then the same with a palette, which the decoder does not know.
    for kind in [1_u16, 3] {
        let mut encoder = file();
        let mut directory = encoder.image_directory().unwrap();
        let offset = directory.write_data(&[0b1010_0000_u8, 0b0110_0000][..]).unwrap() as u32;
        for (tag, value) in [(Tag::ImageWidth, 3_u32), (Tag::ImageLength, 2), (Tag::RowsPerStrip, 2)] {
            directory.write_tag(tag, value).unwrap();
        }
        directory.write_tag(Tag::BitsPerSample, 1_u16).unwrap();
        directory.write_tag(Tag::PhotometricInterpretation, kind).unwrap();
        directory.write_tag(Tag::StripOffsets, offset).unwrap();
        directory.write_tag(Tag::StripByteCounts, 2_u32).unwrap();
        directory.finish().unwrap();
        if kind == 1 {
            assert_eq!((back().depth, back().image.data()), (Depth::Eight, &[1., 0., 1., 0., 1., 1.][..]));
        } else {
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains("palette") && error.contains("convert it to grey or RGB"), "{error}");
        }
    }
}
