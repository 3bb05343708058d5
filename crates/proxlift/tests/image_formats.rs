//! PGM, PPM, PBM, BMP and FITS.

use proxlift::Image;
use proxlift::image::io::{Depth, Format, Limits, Pages, Picture, Raster, decode, encode, read, write_pages};
use std::path::Path;

fn parsed(bytes: &[u8]) -> Picture {
    decode(bytes, &Limits::default()).unwrap()
}

fn refused(bytes: &[u8]) -> String {
    decode(bytes, &Limits::default()).unwrap_err().to_string()
}

fn picture(channels: usize, depth: Depth, alpha: bool) -> Picture {
    let (height, width, white) = (7, 5, if depth == Depth::Eight { 255 } else { 65_535 });
    let value = |i: usize| (i * i * 7_919 % (white + 1)) as f32 / white as f32;
    let image = Image::new(channels, height, width, (0..channels * 35).map(value).collect()).unwrap();
    let alpha = alpha.then(|| (0..35).map(|i| (i * 7) as f32 / 255.0).collect());
    Picture { alpha, ..Picture::new(image, depth) }
}

#[test]
fn pnm_and_bmp_return_every_bit() {
    for channels in [1, 3] {
        for depth in [Depth::Eight, Depth::Sixteen] {
            let written = picture(channels, depth, false);
            assert_eq!(parsed(&encode(&written, Format::Pnm).unwrap()), written);
        }
        let written = picture(channels, Depth::Eight, false);
        assert_eq!(parsed(&encode(&written, Format::Bmp).unwrap()), written);
    }
    let written = picture(3, Depth::Eight, true);
    assert_eq!(parsed(&encode(&written, Format::Bmp).unwrap()), written);
    let error = encode(&written, Format::Pnm).unwrap_err().to_string();
    assert!(error.contains("transparency"), "{error}");
}

#[test]
fn all_variants_of_pnm_are_read() {
    let data = |bytes: &[u8]| parsed(bytes).image.data().to_vec();
    assert_eq!(data(b"P2 # shop\n2 1\n#x\n4\n1 4\n"), [64.0 / 255.0, 1.0]);
    assert_eq!(data(b"P3\n1 1 255 51 0 255"), [0.2, 0.0, 1.0]);
    assert_eq!(data(b"P1\n3 2\n1 01\n010"), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(data(b"P4\n3 2\n\xa0\x40"), [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(data(b"P5\n2 1\n255\n\x00\xff"), [0.0, 1.0]);
    // 12 bits are kept: the numbers and the white.
    let twelve = b"P5\n# by a camera\n2 1\n4095\n\x0f\xff\x01\x02";
    let picture = parsed(twelve);
    assert_eq!((picture.depth, picture.image.data()[0]), (Depth::Sixteen, 1.0));
    assert_eq!(picture.metadata.text("Comment").unwrap().string(), "by a camera");
    assert_eq!(encode(&picture, Format::Pnm).unwrap(), twelve);
    for (bytes, word) in [
        (&b"P5\n2 1\n70000\n\0\0"[..], "white is 70000"),
        (b"P5\n2 1\n0\n\0\0", "white is 0"),
        (b"P5\n99999999999 1\n255\n", "too large"),
        (b"P5\n4000000000 4000000000\n255\n", "limit"),
        (b"P5\n0 4\n255\n", "0 x 4"),
        (b"P2\n2 1\n255\n1 x", "no number"),
        (b"P2\n2 1\n255\n1", "truncated"),
    ] {
        assert!(refused(bytes).contains(word), "{}", refused(bytes));
    }
}

/// A FITS file with these cards behind the first, and these bytes behind them.
fn fits(cards: &[&str], data: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{:<80}", "SIMPLE  =                    T / it is").into_bytes();
    cards.iter().chain(&["END"]).for_each(|card| bytes.extend(format!("{card:<80}").bytes()));
    bytes.resize(bytes.len().next_multiple_of(2880), b' ');
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(2880), 0);
    bytes
}

const TWO: [&str; 3] =
    ["NAXIS   =                    2", "NAXIS1  =                    2", "NAXIS2  =                    1"];

#[test]
fn every_kind_of_number_of_fits_comes_back() {
    type Case<'a> = (&'a str, &'a [&'a str], Vec<u8>, [f32; 2]);
    let cases: [Case; 7] = [
        ("8", &[], vec![0, 200], [0.0, 200.0]),
        ("16", &[], [-5_i16, 300].iter().flat_map(|v| v.to_be_bytes()).collect(), [-5.0, 300.0]),
        ("16", &["BZERO   =                32768"], vec![0x80, 0, 0x7f, 0xff], [0.0, 65_535.0]),
        (
            "16",
            &["BSCALE  =                  0.5", "BZERO   =               -1.D1"],
            vec![0, 4, 0, 6],
            [-8.0, -7.0],
        ),
        ("32", &[], [-70_000_i32, 9].iter().flat_map(|v| v.to_be_bytes()).collect(), [-70_000.0, 9.0]),
        ("-32", &[], [-1.5_f32, 1e-20].iter().flat_map(|v| v.to_be_bytes()).collect(), [-1.5, 1e-20]),
        ("-64", &[], [-1.5_f64, 0.25].iter().flat_map(|v| v.to_be_bytes()).collect(), [-1.5, 0.25]),
    ];
    for (bits, scaling, data, values) in cases {
        let bits = format!("BITPIX  = {bits:>20} / bits");
        let more = ["OBJECT  = 'M31 / Andromeda'", "COMMENT a night without moon", "DATASUM = '12345'"];
        let cards = [&[&bits[..]], &TWO[..], scaling, &more].concat();
        let bytes = fits(&cards, &data);
        let mut read = parsed(&bytes);
        assert_eq!((read.depth, read.image.data()), (Depth::Float, &values[..]), "{bits} {scaling:?}");
        let again = encode(&read, Format::Fits).unwrap();
        let expected = fits(&[&cards[..cards.len() - 1]].concat(), &data);
        assert!(again == expected, "{bits} {scaling:?}");
        read.metadata.settings =
            Some("proxlift 9: model small, strength 1, and more than one card of text holds".into());
        let history = encode(&read, Format::Fits).unwrap();
        let text = String::from_utf8_lossy(&history[..2880]).to_string();
        assert!(text.contains("HISTORY proxlift 9: model small") && text.contains("HISTORY holds"), "{text}");
        assert_eq!(parsed(&history).image, read.image);
    }
}

#[test]
fn integers_of_fits_are_rounded_and_clipped() {
    let cards = [&["BITPIX  =                   16", "BLANK   =                    7"], &TWO[..]].concat();
    let mut read = parsed(&fits(&cards, &[0, 1, 0, 2]));
    read.image.data_mut().copy_from_slice(&[-2.6, 1e9]);
    assert_eq!(parsed(&encode(&read, Format::Fits).unwrap()).image.data(), [-3.0, 32_767.0]);
    read.image.data_mut().copy_from_slice(&[6.9, 7.2]);
    assert_eq!(parsed(&encode(&read, Format::Fits).unwrap()).image.data(), [8.0, 8.0], "7 means nothing");
}

#[test]
fn fits_without_a_picture_is_refused() {
    let bits = "BITPIX  =                  -32";
    let nan = fits(&[&[bits], &TWO[..]].concat(), &[f32::NAN.to_be_bytes(), [0; 4]].concat());
    assert!(refused(&nan).contains("row 0, column 0"), "{}", refused(&nan));
    let blank = fits(
        &[&["BITPIX  =                    8", "BLANK   =                    9"], &TWO[..]].concat(),
        &[1, 9],
    );
    assert!(refused(&blank).contains("row 0, column 1"), "{}", refused(&blank));
    for (cards, word) in [
        (vec![bits, "NAXIS   =                    0"], "NAXIS = 0"),
        (vec![bits, "NAXIS   =                    1", "NAXIS1  =                    4"], "no image"),
        (vec!["BITPIX  =                   12", TWO[0], TWO[1], TWO[2]], "BITPIX = 12"),
        (vec![bits, TWO[0], TWO[1]], "NAXIS2"),
        (vec![bits, TWO[0], TWO[1], "NAXIS2  =                   -1"], "NAXIS2"),
        (vec![bits, TWO[0], "NAXIS1  =           2000000000", "NAXIS2  =           2000000000"], "limit"),
        (vec![bits, TWO[0], "NAXIS1  =                 9000", "NAXIS2  =                 9000"], "truncated"),
        (vec![bits, TWO[0], TWO[1], TWO[2], "BSCALE  =                  0.0"], "BSCALE = 0"),
    ] {
        let error = refused(&fits(&cards, &[]));
        assert!(error.contains(word), "{word}: {error}");
    }
    let error = encode(&picture(3, Depth::Eight, false), Format::Fits).unwrap_err().to_string();
    assert!(error.contains("choose tif"), "{error}");
}

fn pages(path: &Path) -> Vec<Raster> {
    let mut pages = Pages::open(path, &Limits::default()).unwrap();
    (0..pages.count()).map(|_| pages.next_page().unwrap()).collect()
}

#[test]
fn cubes_are_read_plane_by_plane() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("cube.fits"), folder.path().join("copy.fit"));
    let cards = [
        "BITPIX  =                   16",
        "NAXIS   =                    3",
        "NAXIS1  =                    2",
        "NAXIS2  =                    1",
        "NAXIS3  =                    3",
    ];
    let data: Vec<u8> = [1_i16, 2, -3, -4, 5, 6].iter().flat_map(|v| v.to_be_bytes()).collect();
    std::fs::write(&path, fits(&cards, &data)).unwrap();
    let cube = pages(&path);
    assert_eq!(cube.len(), 3);
    assert_eq!(cube[1].clone().into_picture().image.data(), [-3.0, -4.0]);
    write_pages(&copy, 3, &mut |i| Ok(cube[i].clone())).unwrap();
    assert!(std::fs::read(&copy).unwrap() == std::fs::read(&path).unwrap());
    // As a stack of floats, and back as a cube of its own.
    let stack = folder.path().join("stack.tif");
    write_pages(&stack, 3, &mut |i| Ok(cube[i].clone())).unwrap();
    let floats = pages(&stack);
    write_pages(&copy, 3, &mut |i| Ok(floats[i].clone())).unwrap();
    let again = pages(&copy);
    assert!(
        again
            .iter()
            .zip(&cube)
            .all(|(a, b)| a.clone().into_picture().image == b.clone().into_picture().image)
    );
}

#[test]
fn integers_of_other_formats_are_integers_in_fits() {
    let folder = tempfile::tempdir().unwrap();
    for (depth, bytes) in [(Depth::Eight, 35), (Depth::Sixteen, 70)] {
        let written = picture(1, depth, false);
        let encoded = encode(&written, Format::Fits).unwrap();
        assert_eq!(encoded.len(), 2 * 2880, "{bytes} bytes fit into a block");
        let path = folder.path().join("a.fts");
        std::fs::write(&path, encoded).unwrap();
        let white = if depth == Depth::Eight { 255.0 } else { 65_535.0 };
        let expected: Vec<f32> = written.image.data().iter().map(|v| (v * white).round()).collect();
        assert_eq!(read(&path).unwrap().image.data(), expected);
    }
}
