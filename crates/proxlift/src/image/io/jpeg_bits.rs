//! The bits of a JPEG's scans, and the codes in them.

/// A code of up to 16 bits: for every 16 bits that may come, its length and its symbol.
pub(super) type Table = Vec<(u8, u8)>;

/// The end of a file, a marker, or a code that is none, where there should be pixels.
pub(super) struct Missing;

pub(super) type Read<T> = Result<T, Missing>;

/// The bits between two markers.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
    held: u64,
    count: u32,
    /// How many of them were invented, behind the end.
    invented: u32,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at, held: 0, count: 0, invented: 0 }
    }

    /// Where the next byte is.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn fill(&mut self) {
        while self.count <= 48 {
            let byte = match (self.bytes.get(self.at), self.bytes.get(self.at + 1)) {
                (Some(0xff), Some(0)) => {
                    self.at += 2;
                    0xff
                }
                (None, _) | (Some(0xff), _) => {
                    self.invented += 8;
                    0
                }
                (Some(&byte), _) => {
                    self.at += 1;
                    byte
                }
            };
            self.held = self.held << 8 | u64::from(byte);
            self.count += 8;
        }
    }

    /// The next bits, at most 16.
    pub(super) fn take(&mut self, number: u32) -> Read<usize> {
        self.fill();
        let value = self.held >> (self.count - number) & ((1 << number) - 1);
        self.count -= number;
        if self.count < self.invented { Err(Missing) } else { Ok(value as usize) }
    }

    pub(super) fn skip(&mut self, number: u32) -> Read<()> {
        self.take(number.min(16)).map(drop)
    }

    pub(super) fn symbol(&mut self, table: &Table) -> Read<u8> {
        self.fill();
        let next = self.held >> (self.count - 16) & 0xffff;
        let (length, symbol) = *table.get(next as usize).ok_or(Missing)?;
        if length == 0 {
            return Err(Missing);
        }
        self.take(length.into())?;
        Ok(symbol)
    }

    /// Goes on behind the restart marker that must be next.
    pub(super) fn restart(&mut self) -> Read<()> {
        while self.bytes.get(self.at..self.at + 2).is_some_and(|next| next == [0xff, 0xff]) {
            self.at += 1;
        }
        if !matches!(self.bytes.get(self.at..self.at + 2), Some([0xff, 0xd0..=0xd7])) {
            return Err(Missing);
        }
        (self.at, self.held, self.count, self.invented) = (self.at + 2, 0, 0, 0);
        Ok(())
    }
}
