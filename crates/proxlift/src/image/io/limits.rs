//! What is refused before any pixel is decoded.

use super::Decoded;

/// What is refused before any pixel is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most pixels of a page, not counting channels.
    pub max_pixels: u64,
    /// The most memory for the decoded samples of a page, together with the planar image where that is asked for.
    pub max_bytes: u64,
}

impl Default for Limits {
    /// 2^29 pixels (20000 x 20000 fits) and 8 GiB.
    fn default() -> Self {
        Self { max_pixels: 1 << 29, max_bytes: 8 << 30 }
    }
}

/// The limits for reading a file, and what its samples become.
#[derive(Clone, Copy)]
pub(super) struct Allowance {
    pub limits: Limits,
    /// Bytes that a sample takes beside itself: those of a planar image.
    pub beside: u64,
    /// Whether the picture will be written again, so that what will be stored in another way is announced.
    pub announces: bool,
    /// Whether it will be written over its own file, so that nothing of it may be left out.
    pub in_place: bool,
}

/// The most that profiles, texts and other metadata of a picture may take, decompressed.
pub(super) const METADATA: usize = 16 << 20;

impl Allowance {
    /// `samples` a pixel, alpha included, of `bytes` each in the file.
    pub(super) fn check(&self, width: u32, height: u32, samples: u64, bytes: u64) -> Decoded<()> {
        if width == 0 || height == 0 {
            return Err(format!("the header claims {width} x {height} pixels"));
        }
        let pixels = u64::from(width) * u64::from(height);
        let memory = pixels.saturating_mul(samples).saturating_mul(bytes + self.beside);
        if pixels > self.limits.max_pixels {
            return Err(format!(
                "{width} x {height} pixels are more than the limit of {}; raise it if the file is trusted",
                self.limits.max_pixels
            ));
        }
        if memory > self.limits.max_bytes {
            return Err(format!(
                "{width} x {height} pixels need {memory} bytes, more than the limit of {}; raise it if the \
                 file is trusted",
                self.limits.max_bytes
            ));
        }
        crate::memory::check("a picture of this size", memory)
            .map_err(|e| format!("{width} x {height} pixels: {e}"))
    }

    /// Of an animation, only the first frame is read.
    pub(super) fn first_frame(&self) -> Decoded<()> {
        if self.in_place {
            return Err("this is an animation, of which only the first frame would be left: name another file with -o".into());
        }
        self.announce("this is an animation; only its first frame is read");
        Ok(())
    }

    pub(super) fn announce(&self, what: &str) {
        if self.announces {
            tracing::warn!("{what}");
        }
    }

    /// The most bytes, for decoders that have limits of their own.
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.limits.max_bytes).unwrap_or(usize::MAX)
    }
}
