//! What stands before the pixels of a JPEG: the parts that its codecs do not tell or write.

use super::metadata::{JpegKept, MOST_XMP_IN_JPEG, Resolution, Text, Unit};

/// What was found in the segments of a JPEG.
#[derive(Default)]
pub(super) struct Segments {
    pub comments: Vec<Text>,
    pub resolution: Option<Resolution>,
    pub xmp: Option<Vec<u8>>,
    pub kept: Option<JpegKept>,
    /// Four colours, that is CMYK in some form.
    pub has_four: bool,
}

/// What XMP begins with in its segment.
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
const IPTC: &[u8] = b"Photoshop 3.0\0";
const COMMENT: u8 = 0xfe;

/// In the order of the file, the places of a block.
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7,
    14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39,
    46, 53, 60, 61, 54, 47, 55, 62, 63,
];

impl Segments {
    /// Reads up to the first scan; what is damaged is left to the decoder.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut found = Self::default();
        let mut tables = [[0_u16; 64]; 4];
        let (mut used, mut iptc) = (None, None);
        let mut rest = bytes.get(2..).unwrap_or_default();
        while let [0xff, marker, after @ ..] = rest {
            let Some((&[high, low], _)) = after.split_first_chunk() else { break };
            let length = usize::from(u16::from_be_bytes([high, low]));
            // Fill bytes before a marker.
            if *marker == 0xff {
                rest = &rest[1..];
                continue;
            }
            let Some(body) = after.get(2..length.max(2)) else { break };
            match marker {
                0xda => break,
                0xdb => quantisation(body, &mut tables),
                // All frames but the tables and extensions among them.
                0xc0..=0xcf if ![0xc4, 0xc8, 0xcc].contains(marker) => {
                    let components = body.get(6..).unwrap_or_default().as_chunks::<3>().0;
                    found.has_four = components.len() == 4;
                    used = Some(components.iter().map(|c| usize::from(c[2] & 3)).collect::<Vec<_>>());
                }
                0xe0 if body.starts_with(b"JFIF\0") => found.resolution = density(body),
                0xe1 => found.xmp = body.strip_prefix(XMP).map(Into::into).or(found.xmp),
                0xed if body.starts_with(IPTC) => iptc = Some(body.to_vec()),
                &COMMENT => found.comments.push(Text::new("Comment", body)),
                _ => {}
            }
            rest = after.get(length.max(2)..).unwrap_or_default();
        }
        if let Some([luma, chroma @ ..]) = used.as_deref() {
            let chroma = if chroma.is_empty() { std::slice::from_ref(luma) } else { chroma };
            let mut table = tables[chroma[0]];
            for &other in chroma {
                table.iter_mut().zip(tables[other]).for_each(|(a, b)| *a = b.min(*a));
            }
            found.kept = Some(JpegKept { tables: Box::new([tables[*luma], table]), iptc });
        }
        found
    }
}

/// The tables of a segment, of 8 or 16 bits.
fn quantisation(mut body: &[u8], tables: &mut [[u16; 64]; 4]) {
    while let [head, rest @ ..] = body {
        let width = if head >> 4 == 0 { 1 } else { 2 };
        let Some(numbers) = rest.get(..64 * width) else { return };
        let number = |i: usize| match width {
            1 => u16::from(numbers[i]),
            _ => u16::from_be_bytes([numbers[2 * i], numbers[2 * i + 1]]),
        };
        let table = &mut tables[usize::from(head & 3)];
        ZIGZAG.iter().enumerate().for_each(|(i, &place)| table[place] = number(i));
        body = &rest[64 * width..];
    }
}

fn density(body: &[u8]) -> Option<Resolution> {
    let &[unit, x1, x0, y1, y0] = body.get(7..)?.first_chunk()?;
    let unit = match unit {
        1 => Unit::Inch,
        2 => Unit::Centimetre,
        _ => Unit::None,
    };
    let (x, y) = (u16::from_be_bytes([x1, x0]).into(), u16::from_be_bytes([y1, y0]).into());
    // One to one without a unit is what is written where nothing is known.
    let says_something = x > 0 && y > 0 && (unit != Unit::None || x != y);
    says_something.then_some(Resolution { x: (x, 1), y: (y, 1), unit })
}

/// A JPEG with comments behind its first segment.
pub(super) fn with_comments(jpeg: &[u8], comments: &[Text]) -> Vec<u8> {
    let first =
        jpeg.get(4..6).map_or(2, |length| 4 + usize::from(u16::from_be_bytes([length[0], length[1]])));
    let (start, rest) = jpeg.split_at(first.min(jpeg.len()));
    let mut bytes = start.to_vec();
    // A segment has 16 bits for its length; a longer text takes several.
    for part in comments.iter().flat_map(|comment| comment.value.chunks(65_533)) {
        bytes.extend([0xff, COMMENT]);
        bytes.extend((part.len() as u16 + 2).to_be_bytes());
        bytes.extend(part);
    }
    bytes.extend(rest);
    bytes
}

/// The body of the segment that holds XMP, if it fits.
pub(super) fn xmp_segment(xmp: &[u8]) -> Option<Vec<u8>> {
    (xmp.len() <= MOST_XMP_IN_JPEG).then(|| [XMP, xmp].concat())
}
