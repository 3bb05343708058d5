//! TIFF, through the `tiff` crate: stacks of pages, grey and RGB, alpha, planar or not.
//!
//! Samples of 8 and 16 bits and 32-bit floats are kept; others are read as 32-bit floats or, below 8 bits, as 8 bits.

mod compress;
mod directory;
mod layout;
mod tags;
mod write;

pub(super) use write::encode;

use super::common::{Source, cut_short};
use super::limits::METADATA;
use super::{Allowance, Channels, Decoded, Depth, Raster, samples::Samples};
use ::tiff::TiffError;
use ::tiff::decoder::{Decoder, Limits as TiffLimits};
use ::tiff::tags::{ByteOrder, CompressionMethod, IfdPointer, Tag};
use layout::Layout;
use std::io::{Read, Seek, SeekFrom};

/// The most that the values of all tags of a page may take: descriptions of large stacks have megabytes.
const TAGS: usize = METADATA;

/// A TIFF file, of which pages are read one at a time.
pub(super) struct Stack<'a> {
    decoder: Decoder<Box<dyn Source + 'a>>,
    layout: Layout,
    count: usize,
    /// Where the first page is, if the others follow it without directories of their own.
    contiguous: Option<u64>,
}

impl<'a> Stack<'a> {
    /// Looks at the directories of all pages, and refuses those that differ from the first.
    pub(super) fn open(source: Box<dyn Source + 'a>, allowance: Allowance) -> Decoded<Self> {
        let mut source = source;
        directory::check_texts(&mut source)?;
        let mut within = TiffLimits::default();
        within.decoding_buffer_size = allowance.bytes();
        within.intermediate_buffer_size = within.decoding_buffer_size;
        within.ifd_value_size = TAGS;
        let mut decoder = Decoder::new(source).map_err(why)?.with_limits(within);
        let layout = Layout::of(&mut decoder)?;
        allowance.check(layout.width, layout.height, layout.samples as u64, layout.bytes())?;
        let mut stack = Self { decoder, layout, count: 1, contiguous: None };
        if !stack.decoder.more_images() {
            stack.find_contiguous()?;
        } else if allowance.announces {
            stack.check_pages()?;
        } else {
            // Only the first page is wanted.
            stack.count = 2;
        }
        stack.layout.remarks().iter().for_each(|remark| allowance.announce(remark));
        Ok(stack)
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn check_pages(&mut self) -> Decoded<()> {
        while self.decoder.more_images() {
            self.decoder.next_image().map_err(|e| format!("page {}: {}", self.count + 1, why(e)))?;
            self.count += 1;
            let page = Layout::of(&mut self.decoder).map_err(|e| format!("page {}: {e}", self.count))?;
            if page != self.layout {
                return Err(format!(
                    "page {} has {page}, but the first page has {}; split the file, or remove such pages",
                    self.count, self.layout
                ));
            }
        }
        Ok(())
    }

    /// ImageJ writes stacks of more than 4 GB with one directory only: the number of pages is in the description, and
    /// they follow each other.
    fn find_contiguous(&mut self) -> Decoded<()> {
        // A length that no description has would make the decoder complain on its own account.
        let Some(pointer) = self.decoder.ifd_pointer() else { return Ok(()) };
        let directory = self.decoder.read_directory(IfdPointer(pointer.0)).map_err(why)?;
        let length = directory.get(Tag::ImageDescription).map_or(0, |entry| entry.count());
        if length == 0 || length > TAGS as u64 {
            return Ok(());
        }
        let Ok(description) = self.decoder.get_tag_ascii_string(Tag::ImageDescription) else { return Ok(()) };
        let images = description.lines().find_map(|line| line.strip_prefix("images=")?.trim().parse().ok());
        let Some(images) = images.filter(|&n: &usize| n > 1 && description.starts_with("ImageJ=")) else {
            return Ok(());
        };
        let compression = self.decoder.find_tag_unsigned(Tag::Compression).map_err(why)?.unwrap_or(1_u16);
        let depth =
            self.layout.direct.ok_or("its pages cannot be found: save it with one directory a page")?;
        if compression != CompressionMethod::None.to_u16() || self.layout.turn != 1 {
            return Ok(());
        }
        let offsets = self.decoder.get_tag_u64_vec(Tag::StripOffsets).map_err(why)?;
        let first = *offsets.first().ok_or("the file is damaged: it has no pixels")?;
        let page = self.layout.samples_in_all() as u64 * depth.bytes();
        let end = self.decoder.inner().seek(SeekFrom::End(0)).map_err(|e| e.to_string())?;
        let held = end.saturating_sub(first) / page;
        if held < 2 {
            // A page that was taken out of a stack with its description.
            return Ok(());
        }
        if held < images as u64 {
            return Err(format!("the description promises {images} pages, but the file has {held}"));
        }
        (self.count, self.contiguous) = (images, Some(first));
        Ok(())
    }

    /// The page `index`; its size is known to be allowed.
    pub(super) fn page(&mut self, index: usize) -> Decoded<Raster> {
        let samples = match self.contiguous {
            Some(first) => self.follower(first, index)?,
            None => {
                self.decoder.seek_to_image(index).map_err(why)?;
                self.layout.samples(&mut self.decoder)?
            }
        };
        let mut metadata = tags::metadata(&mut self.decoder, &self.layout);
        if self.contiguous.is_some() && index > 0 {
            metadata.texts.retain(|text| text.key != "Description");
        }
        let Layout { samples: count, width, height, turn, .. } = self.layout;
        let channels = if count > 2 { Channels::Rgb } else { Channels::Grey };
        let size = (height as usize, width as usize);
        Ok(Raster::new(channels, count % 2 == 0, size, samples, metadata)?.upright(turn))
    }

    /// A page that has no directory.
    fn follower(&mut self, first: u64, index: usize) -> Decoded<Samples> {
        let depth = self.layout.direct.unwrap_or(Depth::Eight);
        let mut samples = Samples::zeros(depth, self.layout.samples_in_all())?;
        let order = self.decoder.byte_order();
        let at = first + index as u64 * samples.bytes().len() as u64;
        let source = self.decoder.inner();
        source.seek(SeekFrom::Start(at)).map_err(|e| e.to_string())?;
        source.read_exact(samples.bytes_mut()).map_err(|e| cut_short(&e))?;
        if order != ByteOrder::native() {
            samples.bytes_mut().chunks_exact_mut(depth.bytes() as usize).for_each(<[u8]>::reverse);
        }
        Ok(samples)
    }
}

fn why(error: TiffError) -> String {
    match error {
        TiffError::IoError(e) => cut_short(&e),
        other => other.to_string(),
    }
}
