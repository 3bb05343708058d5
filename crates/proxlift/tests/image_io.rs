//! Files written and read back.

use proxlift::image::io::{Depth, Format, Limits, Metadata, Picture, decode, encode, read, write};
use proxlift::image::{Image, symmetry::Symmetry};
use tiff::encoder::{TiffEncoder, colortype};
use tiff::tags::Tag;

/// Every 8-bit value occurs, and for 16 bits values all over the range.
fn picture(channels: usize, alpha: bool, depth: Depth) -> Picture {
    let (h, w) = (23, 37);
    let value = |i: usize| match depth {
        Depth::Eight => ((i * 7) % 256) as f32 / 255.0,
        Depth::Sixteen => ((i * 40_503 + 11) % 65_536) as f32 / 65_535.0,
        Depth::Float => (i as f32 * 0.37).sin() * 1e3 + 1e-7,
    };
    let image = Image::new(channels, h, w, (0..channels * h * w).map(value).collect()).unwrap();
    let alpha = alpha.then(|| (0..h * w).map(|i| value(3 * i + 1)).collect());
    Picture { alpha, ..Picture::new(image, depth) }
}

#[test]
fn lossless_formats_return_every_bit() {
    let folder = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for (extension, depths) in [
        ("png", &[Depth::Eight, Depth::Sixteen][..]),
        ("TIF", &[Depth::Eight, Depth::Sixteen, Depth::Float]),
        ("tiff", &[Depth::Eight, Depth::Sixteen, Depth::Float]),
        ("webp", &[Depth::Eight]),
    ] {
        for &depth in depths {
            for (channels, alpha) in [(1, false), (1, true), (3, false), (3, true)] {
                if extension == "webp" && channels == 1 {
                    continue; // WebP has no grey: see below
                }
                let path = folder.path().join(format!("picture.{extension}"));
                let written = picture(channels, alpha, depth);
                write(&path, &written).unwrap();
                let back = read(&path).unwrap();
                assert!(back == written, "{extension} {depth:?} channels {channels} alpha {alpha}");
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 34);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "temporary files are left behind");
}

#[test]
fn all_sixteen_bit_values_survive() {
    let data = (0..65_536).map(|v| v as f32 / 65_535.0).collect();
    let written = Picture::new(Image::new(1, 256, 256, data).unwrap(), Depth::Sixteen);
    for format in [Format::Png, Format::Tiff] {
        assert!(decode(&encode(&written, format).unwrap(), &Limits::default()).unwrap() == written);
    }
}

#[test]
fn webp_returns_grey_as_equal_planes() {
    let written = picture(1, true, Depth::Eight);
    let back = decode(&encode(&written, Format::WebP).unwrap(), &Limits::default()).unwrap();
    assert_eq!(back.image.channels(), 3);
    (0..3).for_each(|c| assert_eq!(back.image.plane(c), written.image.data()));
    assert_eq!(back.alpha, written.alpha);
}

#[test]
fn jpeg_is_close_and_refuses_alpha() {
    for channels in [1, 3] {
        let data = (0..channels * 64 * 48).map(|i| 0.5 + 0.4 * ((i % 48) as f32 * 0.1).sin()).collect();
        let smooth = Picture::new(Image::new(channels, 64, 48, data).unwrap(), Depth::Eight);
        let back = decode(&encode(&smooth, Format::Jpeg).unwrap(), &Limits::default()).unwrap();
        assert_eq!(back.image.shape(), smooth.image.shape());
        let worst = back.image.data().iter().zip(smooth.image.data()).map(|(a, b)| (a - b).abs());
        assert!(worst.fold(0.0, f32::max) < 0.03);
    }
    let error = encode(&picture(3, true, Depth::Eight), Format::Jpeg).unwrap_err().to_string();
    assert!(error.contains("choose png"), "{error}");
}

#[test]
fn deeper_pictures_are_rounded_and_clipped() {
    let float = Picture::new(Image::new(1, 1, 4, vec![-0.5, 0.25, 1.0, 7.0]).unwrap(), Depth::Float);
    let png = decode(&encode(&float, Format::Png).unwrap(), &Limits::default()).unwrap();
    assert_eq!(png.depth, Depth::Sixteen);
    assert_eq!(png.image.data(), [0.0, 16_384.0 / 65_535.0, 1.0, 1.0]);
    let webp = decode(&encode(&float, Format::WebP).unwrap(), &Limits::default()).unwrap();
    assert_eq!((webp.depth, webp.image.plane(0)), (Depth::Eight, &[0.0, 64.0 / 255.0, 1.0, 1.0][..]));
    let sixteen = Picture { depth: Depth::Sixteen, ..float };
    assert_eq!(
        decode(&encode(&sixteen, Format::Jpeg).unwrap(), &Limits::default()).unwrap().depth,
        Depth::Eight
    );
}

/// A little-endian EXIF block with nothing but an orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let mut bytes = b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0".to_vec();
    bytes.extend([orientation, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn profiles_are_kept() {
    let metadata = Metadata { icc: Some((0..200).collect()), exif: Some(exif(1)), ..Metadata::default() };
    let written = Picture { metadata: metadata.clone(), ..picture(3, false, Depth::Eight) };
    for format in [Format::Png, Format::WebP, Format::Jpeg, Format::Tiff] {
        let back = decode(&encode(&written, format).unwrap(), &Limits::default()).unwrap();
        assert_eq!(back.metadata.icc, metadata.icc, "{format:?}");
        assert_eq!(back.metadata.exif.is_some(), format != Format::Tiff, "{format:?}");
    }
}

#[test]
fn pictures_come_upright() {
    for orientation in 1..=8_u8 {
        let mut sideways = picture(3, true, Depth::Eight);
        sideways.metadata.exif = Some(exif(orientation));
        let back = decode(&encode(&sideways, Format::Png).unwrap(), &Limits::default()).unwrap();
        let turn = Symmetry::from_orientation(orientation.into());
        assert!(back.image == turn.image(&sideways.image), "orientation {orientation}");
        assert_eq!(back.alpha.unwrap().len(), sideways.alpha.unwrap().len());
        assert_eq!(back.metadata.exif, Some(exif(1)), "the orientation must not be applied twice");
    }
    // 6: the camera was turned, row 0 of the file is the right-hand side of the scene.
    let image = Image::new(1, 2, 3, vec![1., 2., 3., 4., 5., 6.]).unwrap();
    let upright = Symmetry::from_orientation(6).image(&image);
    assert_eq!((upright.shape(), upright.data()), ((1, 3, 2), &[4., 1., 5., 2., 6., 3.][..]));
}

#[test]
fn foreign_tiff_layouts_are_read() {
    let limits = Limits::default();
    // 64-bit floats.
    let mut bytes = std::io::Cursor::new(Vec::new());
    TiffEncoder::new(&mut bytes).unwrap().write_image::<colortype::Gray64Float>(2, 1, &[0.25, -1.5]).unwrap();
    let back = decode(bytes.get_ref(), &limits).unwrap();
    assert_eq!((back.depth, back.image.data()), (Depth::Float, &[0.25, -1.5][..]));

    // RGB with one plane after the other.
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut bytes).unwrap();
    let mut directory = encoder.image_directory().unwrap();
    let offsets: Vec<u32> = [[10_u8, 20], [30, 40], [50, 60]]
        .iter()
        .map(|p| directory.write_data(&p[..]).unwrap() as u32)
        .collect();
    directory.write_tag(Tag::ImageWidth, 2_u32).unwrap();
    directory.write_tag(Tag::ImageLength, 1_u32).unwrap();
    directory.write_tag(Tag::BitsPerSample, &[8_u16, 8, 8][..]).unwrap();
    directory.write_tag(Tag::Compression, 1_u16).unwrap();
    directory.write_tag(Tag::PhotometricInterpretation, 2_u16).unwrap();
    directory.write_tag(Tag::SamplesPerPixel, 3_u16).unwrap();
    directory.write_tag(Tag::RowsPerStrip, 1_u32).unwrap();
    directory.write_tag(Tag::StripOffsets, &offsets[..]).unwrap();
    directory.write_tag(Tag::StripByteCounts, &[2_u32, 2, 2][..]).unwrap();
    directory.write_tag(Tag::PlanarConfiguration, 2_u16).unwrap();
    directory.finish().unwrap();
    let back = decode(bytes.get_ref(), &limits).unwrap();
    assert_eq!(back.image.data(), [10., 20., 30., 40., 50., 60.].map(|v: f32| v / 255.0));

    // Integers without an agreed white are on their own scale.
    let mut bytes = std::io::Cursor::new(Vec::new());
    TiffEncoder::new(&mut bytes).unwrap().write_image::<colortype::GrayI16>(1, 1, &[-5]).unwrap();
    let back = decode(bytes.get_ref(), &limits).unwrap();
    assert_eq!((back.depth, back.image.data()), (Depth::Float, &[-5.0][..]));
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("picture.png");
    write(&path, &picture(1, false, Depth::Eight)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = proxlift::image::io::write_atomically(&path, |file| {
        std::io::Write::write_all(file, b"half a file").unwrap();
        Err(proxlift::Error::invalid("the disk is full"))
    });
    assert!(error.unwrap_err().to_string().contains("the disk is full"));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "the temporary file is left behind");
    assert!(write(folder.path().join("none/picture.png"), &picture(1, false, Depth::Eight)).is_err());
    assert!(write(folder.path().join("picture.gif"), &picture(1, false, Depth::Eight)).is_err());
}

#[cfg(unix)]
#[test]
fn files_follow_the_umask() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (ours, plain) = (folder.path().join("ours.png"), folder.path().join("plain"));
    write(&ours, &picture(1, false, Depth::Eight)).unwrap();
    std::fs::write(&plain, "").unwrap();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&ours), mode(&plain));
}
