//! Values of pictures in a file, for sets that do not fit into memory.

use crate::image::{Channels, Image};
use crate::{Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

/// Where the values of a picture are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The member of a team that has them.
    pub home: usize,
    /// Where in its file they start, if they are there.
    pub start: Option<u64>,
}

/// A temporary file of values, which goes with the process.
#[derive(Debug)]
pub(super) struct Spool {
    file: Mutex<File>,
    end: u64,
}

impl Spool {
    pub fn new() -> Result<Self> {
        let file = tempfile::tempfile().map_err(Error::io(std::env::temp_dir()))?;
        Ok(Self { file: Mutex::new(file), end: 0 })
    }

    /// Takes the values of a picture, and tells where they are.
    pub fn take(&mut self, image: &mut Image, channels: Channels) -> Result<u64> {
        let start = self.end;
        let bytes: &[u8] = bytemuck::cast_slice(image.data());
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        file.write_all(bytes).map_err(Error::io(std::env::temp_dir()))?;
        self.end += bytes.len() as u64;
        *image = Image::hollow(channels, image.height(), image.width());
        Ok(start)
    }

    /// Reads the values from number `first` on of the picture that starts there.
    /// Panics when the file cannot be read any more.
    pub fn read(&self, start: u64, first: usize, values: &mut [f32]) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let at = SeekFrom::Start(start + (size_of::<f32>() * first) as u64);
        let read = file.seek(at).and_then(|_| file.read_exact(bytemuck::cast_slice_mut(values)));
        read.unwrap_or_else(|e| panic!("the temporary file of pictures cannot be read: {e}"));
    }
}
