//! Files of several pages, read and written one page at a time: a stack takes no more memory than a page.

use super::common::{Next, Source, Target};
use super::{Allowance, Decoded, Format, Limits, Raster, format_to_write, write_atomically};
use super::{bmp_file, fits_file, jpeg_file, png_file, pnm_file, tiff_file, webp_file};
use crate::image::Channels;
use crate::{Error, Result, memory, storage};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, BufWriter, Cursor, Read, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file whose pages are counted, of the same size and depth each, and small enough.
pub(super) struct Opened<'a> {
    kind: Kind<'a>,
    allowance: Allowance,
}

enum Kind<'a> {
    Tiff(Box<tiff_file::Stack<'a>>),
    Fits(fits_file::Cube<'a>),
    One(Format, Box<dyn Source + 'a>),
}

/// A damaged file must not end the program, even where a decoder panics on it.
fn guarded<T>(decode: impl FnOnce() -> Decoded<T>) -> Decoded<T> {
    let decode = || memory::or_error(|| Ok(decode())).map_err(|e| e.to_string())?;
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err("the file is damaged: its decoder failed".into()))
}

impl<'a> Opened<'a> {
    pub(super) fn new(mut source: Box<dyn Source + 'a>, allowance: Allowance) -> Decoded<Self> {
        let start = source.fill_buf().map_err(|e| e.to_string())?;
        if start.is_empty() {
            return Err("the file is empty".into());
        }
        let format =
            Format::from_content(start).ok_or_else(|| format!("this is not a {} image", Format::READ))?;
        let kind = guarded(|| {
            Ok(match format {
                Format::Tiff => Kind::Tiff(Box::new(tiff_file::Stack::open(source, allowance)?)),
                Format::Fits => Kind::Fits(fits_file::Cube::open(source, allowance)?),
                _ => Kind::One(format, source),
            })
        })?;
        Ok(Self { kind, allowance })
    }

    pub(super) fn count(&self) -> usize {
        match &self.kind {
            Kind::Tiff(stack) => stack.count(),
            Kind::Fits(cube) => cube.count(),
            Kind::One(..) => 1,
        }
    }

    pub(super) fn page(&mut self, index: usize) -> Decoded<Raster> {
        let allowance = self.allowance;
        guarded(|| match &mut self.kind {
            Kind::Tiff(stack) => stack.page(index),
            Kind::Fits(cube) => cube.page(index),
            Kind::One(format, source) => match format {
                Format::Png => png_file::decode(source, allowance),
                Format::Jpeg => jpeg_file::decode(source, allowance),
                Format::WebP => webp_file::decode(source, allowance),
                Format::Pnm => pnm_file::decode(source, allowance),
                Format::Bmp => bmp_file::decode(source, allowance),
                Format::Tiff | Format::Fits => Err("this format has pages".into()),
            },
        })
    }

    /// The only page, or the first with a warning.
    pub(super) fn first(&mut self) -> Decoded<Raster> {
        if self.count() > 1 {
            tracing::warn!("this file has several pages; only the first is read");
        }
        self.page(0)
    }
}

/// The pages of a TIFF stack or a FITS cube, read one after the other; other files have one.
///
/// ```no_run
/// use proxlift::image::io::{Limits, Pages, write_pages};
/// # let denoiser = proxlift::Denoiser::best();
/// let mut pages = Pages::open("stack.tif", &Limits::default())?;
/// write_pages("clean.tif", pages.count(), &mut |_| {
///     let mut page = pages.next_page()?;
///     denoiser.denoise_raster(&mut page, &mut |_, _| std::ops::ControlFlow::Continue(()))?;
///     Ok(page)
/// })?;
/// # Ok::<(), proxlift::Error>(())
/// ```
pub struct Pages {
    path: PathBuf,
    opened: Opened<'static>,
    next: usize,
}

impl Pages {
    /// Opens a file. Fails when its pages differ in size or depth, or are larger than `limits` allow. What the picture
    /// will be written in another way, such as a palette, is announced.
    pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::of(path, Box::new(BufReader::new(storage::open(path)?)), limits, false)
    }

    /// Opens a file that its result will replace. Fails also when something of it would be lost: the frames of an
    /// animation but the first.
    pub fn open_in_place(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        Self::of(path, Box::new(BufReader::new(storage::open(path)?)), limits, true)
    }

    /// Reads a stream to its end, into a temporary file; `name` stands for it in errors.
    pub fn spool(name: impl AsRef<Path>, stream: &mut impl Read, limits: &Limits) -> Result<Self> {
        let name = name.as_ref();
        let mut file = tempfile::tempfile().map_err(Error::io(name))?;
        std::io::copy(stream, &mut file).map_err(Error::io(name))?;
        file.rewind().map_err(Error::io(name))?;
        Self::of(name, Box::new(BufReader::new(file)), limits, false)
    }

    /// Opens a file that is already in memory, and may be shared; `name` stands for it in errors.
    pub fn of_bytes(name: impl AsRef<Path>, bytes: Arc<[u8]>, limits: &Limits) -> Result<Self> {
        Self::of(name.as_ref(), Box::new(Cursor::new(bytes)), limits, false)
    }

    fn of(path: &Path, source: Box<dyn Source>, limits: &Limits, in_place: bool) -> Result<Self> {
        let allowance = Allowance { limits: *limits, beside: 0, announces: true, in_place };
        let opened = Opened::new(source, allowance).map_err(|reason| Error::file(path, reason))?;
        Ok(Self { path: path.to_path_buf(), opened, next: 0 })
    }

    /// The format of the file.
    pub fn format(&self) -> Format {
        match self.opened.kind {
            Kind::Tiff(_) => Format::Tiff,
            Kind::Fits(_) => Format::Fits,
            Kind::One(format, _) => format,
        }
    }

    /// How many pages there are.
    pub fn count(&self) -> usize {
        self.opened.count()
    }

    /// The next page. Fails when it is damaged, and behind the last.
    pub fn next_page(&mut self) -> Result<Raster> {
        let (index, count) = (self.next, self.count());
        self.next += 1;
        let page =
            if index < count { self.opened.page(index) } else { Err("there are no more pages".into()) };
        page.map_err(|reason| {
            let reason = if count > 1 { format!("page {}: {reason}", index + 1) } else { reason };
            Error::file(&self.path, reason)
        })
    }
}

/// Writes a file of `count` pages in the format of its extension, whole or not at all. `page` gives each when it is to be
/// written; all have the size of the first.
pub fn write_pages(
    path: impl AsRef<Path>,
    count: usize,
    page: &mut dyn FnMut(usize) -> Result<Raster>,
) -> Result<()> {
    let path = path.as_ref();
    let format = format_to_write(path)?;
    write_atomically(path, |file| asked(format, count, page, file, |reason| Error::file(path, reason)))
}

/// [`write_pages`] into memory, in a format of one's choice.
///
/// ```
/// # use proxlift::{dataset::synthetic::dead_leaves, image::Channels};
/// # use proxlift::image::io::{Depth, Format, Limits, Pages, Picture, Raster, encode_pages};
/// # let page = Raster::of_picture(&Picture::new(dead_leaves(1, 0, 16, 16, Channels::Grey)?, Depth::Sixteen))?;
/// let bytes = encode_pages(Format::Tiff, &[&page, &page])?;
/// let mut pages = Pages::of_bytes("stack.tif", bytes.into(), &Limits::default())?;
/// assert_eq!((pages.format(), pages.count()), (Format::Tiff, 2));
/// # let again = pages.next_page()?;
/// # assert_eq!(again.crop(0..16, 0..16), page.crop(0..16, 0..16));
/// # Ok::<(), proxlift::Error>(())
/// ```
pub fn encode_pages(format: Format, pages: &[&Raster]) -> Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    encode_to(format, pages.len(), &mut |index| Ok(Cow::Borrowed(pages[index])), &mut bytes)
        .map_err(Error::invalid)?;
    Ok(bytes.into_inner())
}

/// [`write_pages`] into a temporary file without a name, to be read from its start: for streams.
pub fn spool_pages(
    format: Format,
    count: usize,
    page: &mut dyn FnMut(usize) -> Result<Raster>,
) -> Result<File> {
    let failed = |e: std::io::Error| Error::invalid(format!("cannot write a temporary file: {e}"));
    let mut file = tempfile::tempfile().map_err(failed)?;
    asked(format, count, page, &mut file, Error::invalid)?;
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// Encodes pages that may fail with errors of their own.
fn asked(
    format: Format,
    count: usize,
    page: &mut dyn FnMut(usize) -> Result<Raster>,
    file: &mut dyn Target,
    named: impl FnOnce(String) -> Error,
) -> Result<()> {
    let mut failure = None;
    let mut next = |index| {
        page(index).map(Cow::Owned).map_err(|error| {
            failure = Some(error);
            String::new()
        })
    };
    let result = encode_to(format, count, &mut next, file);
    match failure {
        Some(error) => Err(error),
        None => result.map_err(named),
    }
}

/// Encodes pages, saying once what is lost.
pub(super) fn encode_to<'a>(
    format: Format,
    count: usize,
    next: &mut (dyn FnMut(usize) -> Decoded<Cow<'a, Raster>> + '_),
    file: &mut dyn Target,
) -> Decoded<()> {
    if count == 0 {
        return Err("there is no page to write".into());
    }
    if count > 1 && !format.has_pages() {
        return Err(format!("{} holds one picture, but there are {count} pages; choose tif", format.name()));
    }
    let mut checked = |index| {
        let mut page = next(index)?;
        check_writable(format, &page)?;
        if format != Format::Tiff && page.has_premultiplied_colours() {
            page.to_mut().divide_by_alpha();
        }
        if index == 0 {
            format.announce_depth(page.depth());
            page.metadata.announce_lost(format);
        }
        Ok(page)
    };
    let next: &mut Next<'_> = &mut checked;
    let mut file = BufWriter::new(file);
    match format {
        Format::Png => png_file::encode(&*next(0)?, &mut file)?,
        Format::Jpeg => jpeg_file::encode(&*next(0)?, &mut file)?,
        Format::Tiff => tiff_file::encode(count, next, &mut file)?,
        Format::WebP => webp_file::encode(&*next(0)?, &mut file)?,
        Format::Pnm => pnm_file::encode(&*next(0)?, &mut file)?,
        Format::Bmp => bmp_file::encode(&*next(0)?, &mut file)?,
        Format::Fits => fits_file::encode(count, next, &mut file)?,
    }
    file.flush().map_err(|e| e.to_string())
}

/// Refuses what cannot be stored.
pub(super) fn check_writable(format: Format, raster: &Raster) -> Decoded<()> {
    raster.check_finite()?;
    let (width, height) = (raster.width(), raster.height());
    if raster.has_alpha() && matches!(format, Format::Jpeg | Format::Pnm | Format::Fits) {
        return Err(format!("{} cannot hold transparency; choose png, tif or webp", format.name()));
    }
    if raster.kind() == Channels::Rgb && format == Format::Fits {
        return Err("FITS holds grey pictures here, not colours; choose tif".into());
    }
    let side = match format {
        Format::Jpeg => 65_535,
        Format::WebP => 16_384,
        Format::Png | Format::Tiff | Format::Pnm | Format::Bmp | Format::Fits => i32::MAX as usize,
    };
    if width.max(height) > side {
        return Err(format!("{width} x {height} pixels do not fit this format; choose png or tif"));
    }
    if format == Format::Bmp && (width as u64 * 4) * height as u64 > u64::from(u32::MAX) - 1024 {
        return Err("BMP holds 4 GB at most; choose png or tif".into());
    }
    Ok(())
}
