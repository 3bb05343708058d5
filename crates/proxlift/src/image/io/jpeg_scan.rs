//! Whether a JPEG has all of its pixels. The decoder fills what is missing with grey and says nothing; here the Huffman codes
//! of all scans are read, without what they mean, and must be there to the last block.

use super::Decoded;
use super::jpeg_bits::{Bits, Missing, Read, Table};

/// The coefficients of a block that are not zero, which later scans of a progressive JPEG depend on.
type Known = u64;

#[derive(Default)]
struct Component {
    id: u8,
    across: usize,
    down: usize,
    /// Blocks in a row of the component alone, and rows of them.
    blocks: (usize, usize),
    /// Blocks in a row with those that only interleaved scans have.
    stride: usize,
    known: Vec<Known>,
    /// Bits that each coefficient still lacks; all of them before its first scan.
    lacks: Vec<u8>,
}

#[derive(Default)]
struct Frame {
    progressive: bool,
    mcus: (usize, usize),
    components: Vec<Component>,
}

/// The most scans: encoders write about ten. Each is gone through block by block, however few bits it has.
const MOST_SCANS: usize = 128;

/// Checks that the picture of `size`, width and height, has all its scans to their end, and tells whether there are scans for
/// all of it: a progressive JPEG that was cut between two lacks fine detail.
pub(super) fn check(bytes: &[u8], size: (usize, usize)) -> Decoded<bool> {
    match scans(bytes, size) {
        Some((number, _)) if number > MOST_SCANS => {
            Err(format!("the JPEG has more than {MOST_SCANS} scans, which no camera or program writes"))
        }
        Some((_, is_fine)) => Ok(is_fine),
        None => Err("the JPEG is damaged: some of its pixels are missing".into()),
    }
}

/// What is left to the decoder.
const UNKNOWN: Option<(usize, bool)> = Some((0, true));

/// How many scans there are, if all are complete, and whether no coefficient lacks a bit; none are counted beyond the most.
/// A JPEG of another kind than the decoder reads is left to it.
fn scans(bytes: &[u8], size: (usize, usize)) -> Option<(usize, bool)> {
    let (mut tables, mut frame, mut restart) = (vec![Table::new(); 8], Frame::default(), 0);
    let (mut at, mut seen) = (2, 0);
    while let Some((marker, body, end)) = segment(bytes, at) {
        at = end;
        match marker {
            0xd9 => return (seen > 0).then(|| (seen, frame.is_fine())),
            0xc4 if !define(body, &mut tables) => return None,
            // One picture: another frame, of any size, is none of it.
            0xc0..=0xc2 if seen > 0 => return None,
            0xc0..=0xc2 => match Frame::of(body, marker == 0xc2, size) {
                Some(read) => frame = read,
                None => return UNKNOWN,
            },
            // Other ways of coding.
            0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => return UNKNOWN,
            0xdd => restart = body.first_chunk().map_or(0, |b| usize::from(u16::from_be_bytes(*b))),
            0xda => {
                let mut bits = Bits::new(bytes, at);
                let Some(scan) = Scan::of(body, &frame, restart) else { return UNKNOWN };
                seen += 1;
                if seen > MOST_SCANS {
                    return Some((seen, true));
                }
                scan.read(&mut frame, &tables, &mut bits).ok()?;
                scan.parts
                    .iter()
                    .for_each(|part| frame.components[part.0].lacks[scan.first..=scan.last].fill(scan.low));
                at = bits.at();
            }
            _ => {}
        }
    }
    None
}

/// The next marker at or behind `at`, what belongs to it, and where that ends.
fn segment(bytes: &[u8], mut at: usize) -> Option<(u8, &[u8], usize)> {
    loop {
        match bytes.get(at..at + 2)? {
            [0xff, 0 | 1 | 0xd0..=0xd8 | 0xff] => at += 1,
            [0xff, 0xd9] => return Some((0xd9, &[], at + 2)),
            [0xff, marker] => {
                let length = usize::from(u16::from_be_bytes(*bytes.get(at + 2..)?.first_chunk()?));
                let body = bytes.get(at + 4..at + 2 + length.max(2))?;
                return Some((*marker, body, at + 2 + length.max(2)));
            }
            _ => at += 1,
        }
    }
}

/// Reads the tables of a segment.
fn define(mut body: &[u8], tables: &mut [Table]) -> bool {
    while let [kind, rest @ ..] = body {
        let Some((lengths, symbols)) = rest.split_at_checked(16) else { return false };
        let count = lengths.iter().map(|&n| usize::from(n)).sum();
        let Some((symbols, rest)) = symbols.split_at_checked(count) else { return false };
        let mut table = vec![(0, 0); 1 << 16];
        let (mut code, mut next) = (0_usize, symbols.iter());
        for (bits, &number) in (1_u8..).zip(lengths) {
            let span = 1 << (16 - bits);
            for &symbol in next.by_ref().take(number.into()) {
                let Some(part) = table.get_mut(code..code + span) else { return false };
                part.fill((bits, symbol));
                code += span;
            }
        }
        tables[usize::from(kind >> 4 & 1) * 4 + usize::from(kind & 3)] = table;
        body = rest;
    }
    true
}

impl Frame {
    /// None if it is of another size, or has more components than the decoder reads.
    fn of(body: &[u8], progressive: bool, claimed: (usize, usize)) -> Option<Self> {
        let [_, h1, h0, w1, w0, count, parts @ ..] = body else { return None };
        let size = |a: u8, b: u8| usize::from(u16::from_be_bytes([a, b]));
        let (height, width) = (size(*h1, *h0), size(*w1, *w0));
        let parts = parts.as_chunks::<3>().0.get(..usize::from(*count))?;
        if (width, height) != claimed || parts.len() > 4 {
            return None;
        }
        let most = |shift: u8| parts.iter().map(|p| usize::from(p[1] >> shift & 15)).max().filter(|&n| n > 0);
        let (across, down) = (most(4)?, most(0)?);
        let mcus = (width.div_ceil(8 * across), height.div_ceil(8 * down));
        let component = |&[id, factors, _]: &[u8; 3]| {
            let (h, v) = (usize::from(factors >> 4), usize::from(factors & 15));
            let blocks = ((width * h).div_ceil(across).div_ceil(8), (height * v).div_ceil(down).div_ceil(8));
            let stride = mcus.0 * h;
            let known = if progressive { crate::memory::zeros(stride * mcus.1 * v) } else { Vec::new() };
            Component { id, across: h, down: v, blocks, stride, known, lacks: vec![u8::MAX; 64] }
        };
        Some(Self { progressive, mcus, components: parts.iter().map(component).collect() })
    }

    fn is_fine(&self) -> bool {
        self.components.iter().all(|component| component.lacks.iter().all(|&bits| bits == 0))
    }
}

/// A scan: which components with which tables, and which coefficients of them.
struct Scan {
    parts: Vec<(usize, usize, usize)>,
    first: usize,
    last: usize,
    refines: bool,
    /// Bits that its coefficients lack afterwards.
    low: u8,
    restart: usize,
}

impl Scan {
    fn of(body: &[u8], frame: &Frame, restart: usize) -> Option<Self> {
        let (&count, rest) = body.split_first()?;
        let (parts, rest) = rest.split_at_checked(2 * usize::from(count))?;
        let [first, last, bits, ..] = *rest else { return None };
        let part = |&[id, tables]: &[u8; 2]| {
            let which = frame.components.iter().position(|component| component.id == id)?;
            Some((which, usize::from(tables >> 4 & 3), 4 + usize::from(tables & 3)))
        };
        let parts = parts.as_chunks::<2>().0.iter().map(part).collect::<Option<Vec<_>>>()?;
        let (first, last) = if frame.progressive { (first.into(), last.into()) } else { (0, 63) };
        let sound = !parts.is_empty() && first <= last && last < 64 && (first == 0 || parts.len() == 1);
        let (refines, low) = if frame.progressive { (bits >> 4 > 0, bits & 15) } else { (false, 0) };
        sound.then_some(Self { parts, first, last, refines, low, restart })
    }

    fn read(&self, frame: &mut Frame, tables: &[Table], bits: &mut Bits<'_>) -> Read<()> {
        let alone = self.parts.len() == 1;
        let (across, down) = if alone { frame.components[self.parts[0].0].blocks } else { frame.mcus };
        let mut run = 0;
        for mcu in 0..across * down {
            if self.restart > 0 && mcu > 0 && mcu.is_multiple_of(self.restart) {
                bits.restart()?;
                run = 0;
            }
            let (x, y) = (mcu % across, mcu / across);
            for &(which, dc, ac) in &self.parts {
                let Component { across: h, down: v, stride, .. } = frame.components[which];
                let (h, v) = if alone { (1, 1) } else { (h, v) };
                for block in 0..h * v {
                    let place = (y * v + block / h) * stride + x * h + block % h;
                    if !frame.progressive {
                        Self::sequential(&tables[dc], &tables[ac], bits)?;
                        continue;
                    }
                    let known = frame.components[which].known.get_mut(place).ok_or(Missing)?;
                    match (self.first, self.refines) {
                        (0, true) => bits.skip(1)?,
                        (0, false) => bits.symbol(&tables[dc]).and_then(|size| bits.skip(size.into()))?,
                        (_, false) => self.begun(&tables[ac], bits, &mut run, known)?,
                        (_, true) => self.refined(&tables[ac], bits, &mut run, known)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn sequential(dc: &Table, ac: &Table, bits: &mut Bits<'_>) -> Read<()> {
        let size = bits.symbol(dc)?;
        bits.skip(size.into())?;
        let mut k = 1;
        while k < 64 {
            match bits.symbol(ac)? {
                0xf0 => k += 16,
                symbol if symbol & 15 == 0 => break,
                symbol => {
                    k += usize::from(symbol >> 4) + 1;
                    bits.skip(u32::from(symbol & 15))?;
                }
            }
        }
        Ok(())
    }

    /// The first scan of some coefficients; `run` counts the blocks that have no more of them.
    fn begun(&self, ac: &Table, bits: &mut Bits<'_>, run: &mut usize, known: &mut Known) -> Read<()> {
        if *run > 0 {
            *run -= 1;
            return Ok(());
        }
        let mut k = self.first;
        while k <= self.last {
            let symbol = bits.symbol(ac)?;
            let (zeros, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
            if size > 0 {
                k += zeros;
                *known |= 1_u64.checked_shl(k as u32).ok_or(Missing)?;
                bits.skip(size)?;
                k += 1;
            } else if zeros == 15 {
                k += 16;
            } else {
                *run = (1 << zeros) - 1 + bits.take(zeros as u32)?;
                break;
            }
        }
        Ok(())
    }

    /// A scan that makes coefficients more precise: those that are not zero have a bit each.
    fn refined(&self, ac: &Table, bits: &mut Bits<'_>, run: &mut usize, known: &mut Known) -> Read<()> {
        let mut k = self.first;
        while *run == 0 && k <= self.last {
            let symbol = bits.symbol(ac)?;
            let (mut zeros, size) = (usize::from(symbol >> 4), symbol & 15);
            if size > 0 {
                bits.skip(1)?;
            } else if zeros < 15 {
                *run = (1 << zeros) + bits.take(zeros as u32)?;
                break;
            }
            while k <= self.last {
                if *known >> k & 1 == 1 {
                    bits.skip(1)?;
                } else if zeros == 0 {
                    break;
                } else {
                    zeros -= 1;
                }
                k += 1;
            }
            if size > 0 && k <= self.last {
                *known |= 1 << k;
            }
            k += 1;
        }
        if *run > 0 {
            for k in k..=self.last {
                bits.skip((*known >> k & 1) as u32)?;
            }
            *run -= 1;
        }
        Ok(())
    }
}
