//! `proxlift denoise` on stacks and cubes, and what it says and keeps of files.

mod common;

use common::Desk;
use proxlift::image::Channels::{Grey, Rgb};
use proxlift::image::io::{self, Depth, Format, Limits, Pages, Picture, Raster, Text};
use std::path::Path;

fn raster(desk: &Desk, channels: proxlift::image::Channels, depth: Depth) -> Raster {
    let path = desk.picture("page.tif", channels, depth, false);
    let raster = io::read_raster(&path, &Limits::default()).unwrap();
    std::fs::remove_file(path).unwrap();
    raster
}

/// A stack of noisy pages, of which the second is the negative of the others.
fn stack(desk: &Desk, name: &str, depth: Depth) -> Vec<Raster> {
    let third = raster(desk, Grey, depth);
    let mut picture = third.clone().into_picture();
    picture.image.data_mut().iter_mut().for_each(|v| *v = 1.0 - *v);
    let mut first = third.clone();
    first.metadata.texts = vec![Text::new("Description", "ImageJ=1.54f\nimages=3\nslices=3\nunit=micron\n")];
    let second = Raster::of_picture(&picture).unwrap();
    let pages = vec![first, second, third];
    io::write_pages(desk.path(name), 3, &mut |i| Ok(pages[i].clone())).unwrap();
    pages
}

fn pages(path: &Path) -> Vec<Raster> {
    let mut pages = Pages::open(path, &Limits::default()).unwrap();
    (0..pages.count()).map(|_| pages.next_page().unwrap()).collect()
}

fn image(raster: &Raster) -> proxlift::Image {
    raster.clone().into_picture().image
}

#[test]
fn every_page_of_a_stack_is_denoised_as_a_picture_would_be() {
    let desk = Desk::new();
    for depth in [Depth::Eight, Depth::Sixteen, Depth::Float] {
        let before = stack(&desk, "stack.tif", depth);
        let (out, err) =
            desk.succeeds(&["denoise", "stack.tif", "--model", "small", "--json", "--overwrite"]);
        let facts: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&facts["pages"], &facts["width"]), (&3.into(), &40.into()));
        assert!((facts["sigma"].as_f64().unwrap() - 0.1).abs() < 0.03, "{facts}");
        assert!(
            err.starts_with("wrote stack-denoised.tif, 3 pages, in ") && err.contains("estimated"),
            "{err}"
        );
        let after = pages(&desk.path("stack-denoised.tif"));
        assert_eq!(after.len(), 3);
        for (i, (before, after)) in before.iter().zip(&after).enumerate() {
            io::write_raster(desk.path("one.tif"), before).unwrap();
            desk.succeeds(&["denoise", "one.tif", "--model", "small", "--overwrite"]);
            let alone = io::read_raster(desk.path("one-denoised.tif"), &Limits::default()).unwrap();
            assert_eq!((after.depth(), image(after)), (depth, image(&alone)), "page {i}");
            assert_ne!(image(after), image(before));
        }
        let said = |i: usize, key: &str| after[i].metadata.text(key).map(Text::string);
        assert_eq!(said(0, "Description").unwrap(), "ImageJ=1.54f\nimages=3\nslices=3\nunit=micron\n");
        assert_eq!(said(1, "Description"), None);
        let software = said(1, "Software").unwrap();
        let start = concat!("proxlift ", env!("CARGO_PKG_VERSION"), ": model small, noise estimated as ");
        assert!(software.starts_with(start) && software.ends_with(", strength 1"), "{software}");
    }
}

#[test]
fn stacks_go_through_pipes() {
    let desk = Desk::new();
    stack(&desk, "stack.tif", Depth::Sixteen);
    desk.succeeds(&["denoise", "stack.tif", "--method", "tv"]);
    let bytes = std::fs::read(desk.path("stack.tif")).unwrap();
    let run = desk.command(&["denoise", "-", "--method", "tv"]).write_stdin(bytes).output().unwrap();
    assert!(run.status.success());
    assert!(
        run.stdout == std::fs::read(desk.path("stack-denoised.tif")).unwrap(),
        "the same bytes as in a file"
    );
}

#[test]
fn bad_stacks_leave_nothing_behind() {
    let desk = Desk::new();
    let (small, other) = (raster(&desk, Grey, Depth::Eight), raster(&desk, Grey, Depth::Sixteen));
    let odd = [small.clone(), small.clone(), other];
    io::write_pages(desk.path("odd.tif"), 3, &mut |i| Ok(odd[i].clone())).unwrap();
    desk.refuses(&["denoise", "odd.tif"], &["odd.tif", "page 3 has 40 x 32 16-bit", "first page", "8-bit"]);
    stack(&desk, "stack.tif", Depth::Eight);
    desk.refuses(&["denoise", "stack.tif", "-o", "a.png"], &["a.png", "3 pages", "-o out.tif"]);
    // Cut off behind the second page, and with a directory that points to nowhere.
    let bytes = std::fs::read(desk.path("stack.tif")).unwrap();
    std::fs::write(desk.path("cut.tif"), &bytes[..bytes.len() - 40]).unwrap();
    desk.refuses(&["denoise", "cut.tif"], &["cut.tif"]);
    // NaN on the last page, when two are done already.
    let mut floats = io::encode(&Picture::new(image(&small), Depth::Float), Format::Fits).unwrap();
    let end = 2880 + 4 * 40 * 32;
    floats[end - 4..end].copy_from_slice(&f32::NAN.to_be_bytes());
    std::fs::write(desk.path("nan.fits"), floats).unwrap();
    desk.refuses(&["denoise", "nan.fits"], &["nan.fits", "row 31, column 39", "NaN"]);
}

#[test]
fn negative_numbers_are_as_good_as_others() {
    let desk = Desk::new();
    let mut picture = io::read(desk.picture("a.tif", Grey, Depth::Float, false)).unwrap();
    picture.image.data_mut().iter_mut().for_each(|v| *v = (*v - 0.5) * 1000.0);
    io::write(desk.path("a.fits"), &picture).unwrap();
    let (_, err) = desk.succeeds(&["denoise", "a.fits", "--model", "small", "--sigma", "100"]);
    assert!(err.starts_with("wrote "), "{err}");
    let after = io::read(desk.path("a-denoised.fits")).unwrap().image;
    picture.image.data_mut().iter_mut().for_each(|v| *v += 1000.0);
    io::write(desk.path("b.fits"), &picture).unwrap();
    desk.succeeds(&["denoise", "b.fits", "--model", "small", "--sigma", "100"]);
    let above = io::read(desk.path("b-denoised.fits")).unwrap().image;
    assert!(after.data().iter().any(|&v| v < 0.0) && above.data().iter().all(|&v| v > 0.0));
    assert!(after.data().iter().zip(above.data()).all(|(a, b)| (a + 1000.0 - b).abs() < 50.0));
}

#[test]
fn float_keeps_what_rounding_would_lose() {
    let desk = Desk::new();
    for (name, depth, white) in [("a.png", Depth::Eight, 255.0), ("b.tif", Depth::Sixteen, 65_535.0)] {
        desk.picture(name, Grey, depth, false);
        desk.succeeds(&["denoise", name, "-o", "f.tif", "--model", "small", "--float", "--overwrite"]);
        desk.succeeds(&["denoise", name, "-o", "i.tif", "--model", "small", "--overwrite"]);
        let (float, rounded) = (io::read(desk.path("f.tif")).unwrap(), io::read(desk.path("i.tif")).unwrap());
        assert_eq!((float.depth, rounded.depth), (Depth::Float, depth));
        assert!(float.image.data().iter().any(|v| v.fract() != 0.0));
        let clipped = float.image.data().iter().map(|v| v.round().clamp(0.0, white));
        let stored = rounded.image.data().iter().map(|v| (v * white).round());
        assert!(clipped.zip(stored).all(|(a, b)| (a - b).abs() <= 1.0), "{name}");
    }
    desk.refuses(&["denoise", "a.png", "--float"], &["--float is for TIFF", "-o out.tif"]);
}

#[test]
fn what_is_stored_in_another_way_is_announced() {
    let desk = Desk::new();
    let write = |name: &str, write: &dyn Fn(std::fs::File)| {
        write(std::fs::File::create(desk.path(name)).unwrap());
        desk.succeeds(&["denoise", name, "--method", "tv", "-q", "--overwrite"]).1
    };
    let palette = write("p.png", &|file| {
        let mut encoder = png::Encoder::new(file, 2, 2);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(vec![0, 0, 0, 9, 9, 200]);
        encoder.write_header().unwrap().write_image_data(&[0, 1, 1, 0]).unwrap();
    });
    assert_eq!(palette, "warning: p.png: the colours of its palette are written as RGB\n");
    use tiff::encoder::{TiffEncoder, colortype};
    let double = write("d.tif", &|file| {
        let mut encoder = TiffEncoder::new(file).unwrap();
        (0..3).for_each(|_| encoder.write_image::<colortype::Gray64Float>(2, 1, &[0.1, 0.2]).unwrap());
    });
    assert_eq!(double, "warning: d.tif: 64-bit floats are rounded to 32-bit floats\n");
    let signed = write("s.tif", &|file| {
        TiffEncoder::new(file).unwrap().write_image::<colortype::GrayI16>(2, 1, &[-7, 9]).unwrap();
    });
    assert_eq!(signed, "warning: s.tif: 16-bit signed integers are written as 32-bit floats\n");
    let ink = write("c.tif", &|file| {
        TiffEncoder::new(file).unwrap().write_image::<colortype::CMYK8>(1, 1, &[1, 2, 3, 4]).unwrap();
    });
    assert!(ink.starts_with("warning: c.tif: CMYK is converted to RGB") && ink.lines().count() == 1, "{ink}");
}

#[test]
fn every_format_goes_through_pipes_and_says_its_settings() {
    let desk = Desk::new();
    desk.picture("in.tif", Grey, Depth::Sixteen, false);
    let input = std::fs::read(desk.path("in.tif")).unwrap();
    for format in ["png", "jpg", "tif", "webp", "pgm", "ppm", "bmp", "fits"] {
        let arguments = ["denoise", "-", "--format", format, "--method", "tv", "--sigma", "0.1"];
        let run = || desk.command(&arguments).write_stdin(input.clone()).output().unwrap();
        let (first, second) = (run(), run());
        assert!(first.status.success(), "{format}: {}", String::from_utf8_lossy(&first.stderr));
        assert!(first.stdout == second.stdout, "{format}: the same bytes each time");
        assert_eq!(io::decode(&first.stdout, &Limits::default()).unwrap().image.shape().1, 32, "{format}");
        let text = String::from_utf8_lossy(&first.stdout).replace("HISTORY ", " ").replace("  ", "");
        let settings = concat!("proxlift ", env!("CARGO_PKG_VERSION"), ": method tv, noise given: sigma 0.1");
        assert_eq!(text.contains(settings), format != "bmp", "{format}");
    }
    let refused = desk.command(&["denoise", "-", "--format", "gif"]).write_stdin(input).output().unwrap();
    assert!(String::from_utf8_lossy(&refused.stderr).contains("bmp or fits"));
    desk.picture("c.png", Rgb, Depth::Eight, false);
    desk.refuses(&["denoise", "c.png", "-o", "c.fits"], &["c.fits", "choose tif"]);
}
