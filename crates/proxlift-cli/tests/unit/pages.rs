//! What pages are made of.

use crate::compare::sheet::Sheet;
use crate::error_map::error_map;
use crate::html::base64;
use proxlift::image::Image;

#[test]
fn base64_has_the_values_of_the_standard() {
    for (bytes, text) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64(bytes.as_bytes()), text);
    }
}

#[test]
fn no_error_is_white() {
    let image = Image::new(1, 1, 3, vec![0.1, 0.5, 0.9]).unwrap();
    assert!(error_map(&image, &image).unwrap().data().iter().all(|&v| v == 1.0));
    let above = Image::new(1, 1, 3, vec![0.1, 0.5, 9.0]).unwrap();
    let map = error_map(&image, &above).unwrap();
    assert_eq!((map.plane(0)[2], map.plane(2)[2]), (0.8, 0.0));
    // In colour, errors that cancel are none.
    let grey = Image::new(3, 1, 1, vec![0.5; 3]).unwrap();
    let tinted = Image::new(3, 1, 1, vec![0.6, 0.4, 0.5]).unwrap();
    assert!(error_map(&grey, &tinted).unwrap().data().iter().all(|&v| (v - 1.0).abs() < 1e-6));
}

#[test]
fn rows_are_as_even_as_can_be() {
    for (cells, across) in [(3, 3), (6, 6), (7, 4), (8, 4), (13, 5)] {
        assert_eq!(Sheet::new(cells, None, false).across, across, "{cells}");
    }
}
