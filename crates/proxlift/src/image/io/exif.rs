//! EXIF blocks: directories of tags, laid out as in a small TIFF file.

/// A tag of a directory with its value, in the byte order of this machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub tag: u16,
    /// The number that TIFF has for its type.
    pub kind: u16,
    pub bytes: Vec<u8>,
}

/// The directories of a block that are kept apart from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Exif {
    pub main: Vec<Entry>,
    pub camera: Vec<Entry>,
    pub gps: Vec<Entry>,
}

/// Where the directories of a camera and of GPS are pointed to; that of interoperability is of no use elsewhere.
pub(super) const CAMERA: u16 = 0x8769;
pub(super) const GPS: u16 = 0x8825;
const INTEROPERABILITY: u16 = 0xa005;
const ORIENTATION: u16 = 0x112;
const SHORT: u16 = 3;
const LONG: u16 = 4;

/// Bytes of a type, and of the numbers in it.
pub(super) fn widths(kind: u16) -> Option<(usize, usize)> {
    match kind {
        1 | 2 | 6 | 7 => Some((1, 1)),
        3 | 8 => Some((2, 2)),
        4 | 9 | 11 | 13 => Some((4, 4)),
        5 | 10 => Some((8, 4)),
        12 | 16..=18 => Some((8, 8)),
        _ => None,
    }
}

/// Numbers at places in a block that may lie about them.
struct Block<'a> {
    bytes: &'a [u8],
    big: bool,
}

impl<'a> Block<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let big = match bytes.first_chunk()? {
            b"II\x2a\0" => false,
            b"MM\0\x2a" => true,
            _ => return None,
        };
        Some(Self { bytes, big })
    }

    fn short(&self, at: usize) -> Option<u16> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn long(&self, at: usize) -> Option<u32> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Where the entries of the directory at `at` are.
    fn entries(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let count = usize::from(self.short(at).unwrap_or(0));
        (0..count).map(move |i| at + 2 + 12 * i)
    }

    /// The directory at `at`; entries that lie are left out, and those whose values take more than the block holds.
    fn directory(&self, at: usize) -> Vec<Entry> {
        let mut left = self.bytes.len();
        let fits = move |entry: &Entry| {
            let fits = entry.bytes.len() <= left;
            left -= if fits { entry.bytes.len() } else { 0 };
            fits
        };
        self.entries(at).filter_map(|entry| self.entry(entry)).filter(fits).collect()
    }

    fn entry(&self, at: usize) -> Option<Entry> {
        let (tag, kind) = (self.short(at)?, self.short(at + 2)?);
        let (width, number) = widths(kind)?;
        let length = width.checked_mul(self.long(at + 4)? as usize)?;
        let from = if length <= 4 { at + 8 } else { self.long(at + 8)? as usize };
        let mut bytes = self.bytes.get(from..from.checked_add(length)?)?.to_vec();
        if self.big == cfg!(target_endian = "little") {
            bytes.chunks_exact_mut(number).for_each(<[u8]>::reverse);
        }
        Some(Entry { tag, kind, bytes })
    }
}

impl Exif {
    /// What can be read of a block.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let block = Block::new(bytes)?;
        let mut main = block.directory(block.long(4)? as usize);
        let mut inner = |tag| {
            let at = main.iter().position(|entry| entry.tag == tag)?;
            let pointer = main.remove(at).bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))?;
            Some(block.directory(pointer as usize))
        };
        let mut camera = inner(CAMERA).unwrap_or_default();
        let gps = inner(GPS).unwrap_or_default();
        camera.retain(|entry| entry.tag != INTEROPERABILITY);
        Some(Self { main, camera, gps })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.main.is_empty() && self.camera.is_empty() && self.gps.is_empty()
    }

    /// As a block, in the byte order of this machine.
    pub(super) fn block(&self) -> Vec<u8> {
        let start: &[u8] = if cfg!(target_endian = "little") { b"II\x2a\0" } else { b"MM\0\x2a" };
        let mut bytes = [start, &8_u32.to_ne_bytes()].concat();
        let mut main = self.main.clone();
        // The inner directories come behind the main one, whose length is known.
        let pointers = [(CAMERA, &self.camera), (GPS, &self.gps)].map(|(tag, inner)| (tag, inner.as_slice()));
        let pointers: Vec<_> = pointers.into_iter().filter(|(_, inner)| !inner.is_empty()).collect();
        let pointer = |tag, to: usize| Entry { tag, kind: LONG, bytes: (to as u32).to_ne_bytes().to_vec() };
        main.extend(pointers.iter().map(|&(tag, _)| pointer(tag, 0)));
        let mut end = 8 + length(&main);
        for &(tag, inner) in &pointers {
            if let Some(entry) = main.iter_mut().find(|entry| entry.tag == tag) {
                *entry = pointer(tag, end);
            }
            end += length(inner);
        }
        append(&mut bytes, &main);
        pointers.iter().for_each(|(_, inner)| append(&mut bytes, inner));
        bytes
    }
}

/// Bytes of a directory with its values, each of which starts at an even place.
fn length(entries: &[Entry]) -> usize {
    let outside = entries.iter().map(|entry| entry.bytes.len()).filter(|&length| length > 4);
    6 + 12 * entries.len() + outside.map(|length| length.next_multiple_of(2)).sum::<usize>()
}

fn append(bytes: &mut Vec<u8>, entries: &[Entry]) {
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by_key(|entry| entry.tag);
    let mut values = Vec::new();
    let behind = bytes.len() + 6 + 12 * entries.len();
    bytes.extend((entries.len() as u16).to_ne_bytes());
    for entry in entries {
        let count = entry.bytes.len() / widths(entry.kind).map_or(1, |(width, _)| width);
        bytes.extend([entry.tag.to_ne_bytes(), entry.kind.to_ne_bytes()].concat());
        bytes.extend((count as u32).to_ne_bytes());
        if entry.bytes.len() <= 4 {
            let mut field = entry.bytes.clone();
            field.resize(4, 0);
            bytes.extend(field);
        } else {
            bytes.extend(((behind + values.len()) as u32).to_ne_bytes());
            values.extend_from_slice(&entry.bytes);
            values.resize(values.len().next_multiple_of(2), 0);
        }
    }
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(values);
}

/// The orientation in an EXIF block, which is reset to upright: it must not be applied twice.
pub(super) fn take_orientation(exif: &mut [u8]) -> Option<u16> {
    let block = Block::new(exif)?;
    for entry in block.entries(block.long(4)? as usize) {
        let found = (block.short(entry)?, block.short(entry + 2)?, block.long(entry + 4)?);
        if found == (ORIENTATION, SHORT, 1) {
            let turn = block.short(entry + 8).filter(|turn| (1..=8).contains(turn))?;
            let upright = if block.big { 1_u16.to_be_bytes() } else { 1_u16.to_le_bytes() };
            exif[entry + 8..entry + 10].copy_from_slice(&upright);
            return Some(turn);
        }
    }
    None
}
