use super::super::Stack;
use super::*;
use crate::image::Image;
use crate::image::io::{Allowance, Limits, Picture};
use std::borrow::Cow;
use std::io::Cursor;

#[test]
fn four_gigabytes_need_big_offsets() {
    let four = 1_u64 << 32;
    assert!(needs_big(four, false) && needs_big(u64::MAX, true));
    assert!(!needs_big(four - (1 << 27), false));
    assert!(needs_big(four / 4 * 3, true), "compression may make it larger");
    assert!(!needs_big(four / 2, true));
}

#[test]
fn big_files_hold_the_same_pages() {
    let page = |i: usize| {
        let data = (0..12).map(|v| (v * (i + 1)) as f32 / 255.0).collect();
        let mut picture = Picture::new(Image::new(1, 3, 4, data).unwrap(), Depth::Eight);
        picture.metadata.exif = Some(Exif { main: vec![], camera: vec![iso()], gps: vec![iso()] }.block());
        Raster::of_picture(&picture).unwrap()
    };
    fn iso() -> Entry {
        Entry { tag: 34_855, kind: 3, bytes: 400_u16.to_ne_bytes().to_vec() }
    }
    let mut bytes = Cursor::new(Vec::new());
    let encoder = TiffEncoder::<_, TiffKindBig>::new_generic(&mut bytes).unwrap();
    write(encoder, &page(0), 3, &mut |i| Ok(Cow::Owned(page(i)))).unwrap();
    assert_eq!(bytes.get_ref()[2], 43);
    bytes.set_position(0);
    let allowance = Allowance { limits: Limits::default(), beside: 0, announces: true, in_place: false };
    let mut stack = Stack::open(Box::new(bytes), allowance).unwrap();
    assert_eq!(stack.count(), 3);
    (0..3).for_each(|i| assert_eq!(stack.page(i).unwrap(), page(i)));
}
