//! Files that are broken, lie about their size, or are no images: an error each, never a panic.

use proxlift::image::Image;
use proxlift::image::io::{
    Depth, Format, Limits, Pages, Picture, Raster, Text, decode, encode, read, read_raster, write,
    write_pages,
};
use tiff::encoder::{TiffEncoder, colortype};

fn picture(format: Format) -> Picture {
    let channels = if format == Format::Fits { 1 } else { 3 };
    let data = (0..channels * 40 * 30).map(|i| ((i * i * 89 / 7) % 256) as f32 / 255.0).collect();
    Picture::new(Image::new(channels, 40, 30, data).unwrap(), Depth::Eight)
}

const FORMATS: [Format; 7] =
    [Format::Png, Format::Jpeg, Format::Tiff, Format::WebP, Format::Pnm, Format::Bmp, Format::Fits];

#[test]
fn truncation_at_any_length_is_an_error() {
    for format in FORMATS {
        let whole = encode(&picture(format), format).unwrap();
        decode(&whole, &Limits::default()).unwrap();
        // What ends a file without carrying pixels: the end chunk of PNG, the padding of WebP and FITS.
        let needed = match format {
            Format::Png => whole.len() - 12,
            Format::WebP => whole.len() - 1,
            Format::Fits => 2880 + 40 * 30,
            Format::Jpeg | Format::Tiff | Format::Pnm | Format::Bmp => whole.len(),
        };
        for length in (0..needed).step_by(7).chain(needed.saturating_sub(20)..needed) {
            let result = decode(&whole[..length], &Limits::default());
            assert!(result.is_err(), "{format:?} cut to {length} of {} bytes was read", whole.len());
        }
    }
}

#[test]
fn flipped_bytes_never_panic() {
    for format in FORMATS {
        let whole = encode(&picture(format), format).unwrap();
        for at in (0..whole.len()).step_by(1 + whole.len() / 400) {
            for value in [0, 0xff, whole[at] ^ 0x10] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                // Some damage cannot be noticed; what is read must then be usable.
                if let Ok(read) = decode(&bytes, &Limits { max_pixels: 1 << 20, max_bytes: 1 << 26 }) {
                    read.image.check_finite().unwrap();
                }
            }
        }
    }
}

#[test]
fn flipped_bytes_of_a_stack_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stack.tif");
    let mut page = Raster::of_picture(&picture(Format::Fits)).unwrap();
    page.metadata.texts = vec![Text::new("Description", "ImageJ=1.54f\nimages=3\n")];
    page.metadata.exif = Some(b"II\x2a\0\x08\0\0\0\x01\0\x10\x01\x02\0\x02\0\0\0M\0\0\0\0\0\0\0".to_vec());
    write_pages(&path, 3, &mut |_| Ok(page.clone())).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let limits = Limits { max_pixels: 1 << 20, max_bytes: 1 << 26 };
    for at in (0..whole.len()).filter(|at| at % 1200 < 8 || whole[at.saturating_sub(8)..*at].contains(&1)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        std::fs::write(&path, bytes).unwrap();
        if let Ok(mut pages) = Pages::open(&path, &limits) {
            (0..pages.count().min(4)).for_each(|_| drop(pages.next_page()));
        }
    }
}

/// A PNG header for `width` x `height` pixels, with a right checksum and without pixels.
fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut chunk = b"IHDR".to_vec();
    chunk.extend(width.to_be_bytes());
    chunk.extend(height.to_be_bytes());
    chunk.extend([8, 0, 0, 0, 0]);
    let mut crc = !0_u32;
    for &byte in &chunk {
        crc ^= u32::from(byte);
        (0..8).for_each(|_| crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()));
    }
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    bytes.extend(chunk);
    bytes.extend((!crc).to_be_bytes());
    bytes.extend(b"\0\0\0\0IDAT\x35\xaf\x06\x1e");
    bytes
}

#[test]
fn huge_headers_are_refused_before_decoding() {
    let error = decode(&png_header(2_000_000_000, 2_000_000_000), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("limit"), "{error}");
    let error =
        decode(&png_header(100, 100), &Limits { max_pixels: 9_999, ..Limits::default() }).unwrap_err();
    assert!(error.to_string().contains("10") && error.to_string().contains("limit"), "{error}");
    let error =
        decode(&png_header(100, 100), &Limits { max_bytes: 49_999, ..Limits::default() }).unwrap_err();
    assert!(error.to_string().contains("50000 bytes"), "{error}");
    // Allowed by the limits, and then found to have no pixels.
    let error = decode(&png_header(20_000, 20_000), &Limits::default()).unwrap_err();
    assert!(!error.to_string().contains("limit"), "{error}");
    assert!(decode(&png_header(0, 5), &Limits::default()).is_err());
    // A raster needs no planar image beside it, and the limit does not count one.
    let path = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&path, png_header(100, 100)).unwrap();
    let refused =
        |max_bytes| read_raster(&path, &Limits { max_bytes, ..Limits::default() }).unwrap_err().to_string();
    assert!(refused(9_999).contains("10000 bytes"), "{}", refused(9_999));
    assert!(!refused(1 << 20).contains("limit"), "{}", refused(1 << 20));
}

#[test]
fn other_files_are_named_and_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("empty.png", &b""[..]),
        ("text.jpg", b"Dear all, please find attached"),
        ("zeros.tif", &[0; 5000]),
        ("header.webp", b"RIFF\xff\xff\xff\xffWEBPVP8X"),
        ("loop.tif", b"II\x2a\0\x08\0\0\0\0\0\x08\0\0\0"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    assert!(read(folder.path()).is_err());
    assert!(read(folder.path().join("missing.png")).unwrap_err().to_string().contains("missing.png"));
}

#[test]
fn nan_and_infinity_are_refused() {
    for bad in [f32::NAN, f32::INFINITY] {
        let mut bytes = std::io::Cursor::new(Vec::new());
        TiffEncoder::new(&mut bytes)
            .unwrap()
            .write_image::<colortype::Gray32Float>(3, 1, &[0.0, bad, 1.0])
            .unwrap();
        let error = decode(bytes.get_ref(), &Limits::default()).unwrap_err().to_string();
        assert!(error.contains("row 0, column 1"), "{error}");

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.tif");
        let image = Image::new(1, 1, 1, vec![bad]).unwrap();
        assert!(write(&path, &Picture::new(image, Depth::Float)).is_err());
        assert!(!path.exists());
    }
}
