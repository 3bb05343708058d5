//! What a file says about its pixels, and what each format has a place for.

use super::Format;
use super::exif::Entry;

/// What a file says about its pixels. What a format has a place for is kept, also from one format to another; what is
/// left out is announced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    /// The ICC colour profile.
    pub icc: Option<Vec<u8>>,
    /// The EXIF block, its orientation already applied and reset.
    pub exif: Option<Vec<u8>>,
    /// The XMP packet.
    pub xmp: Option<Vec<u8>>,
    /// Pixels in a unit of length.
    pub resolution: Option<Resolution>,
    /// Remarks.
    pub texts: Vec<Text>,
    /// What was done to the picture, in a line: written into the file where its format has a place, and read back as one
    /// of the texts.
    pub settings: Option<String>,
    /// What only the picture's own format has a place for.
    pub native: Native,
}

/// A remark under the keyword that PNG has for it, such as `Description`, `Software` or `Comment`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// What it is about.
    pub key: String,
    /// As stored: mostly UTF-8, but files hold Latin-1 and worse.
    pub value: Vec<u8>,
}

impl Text {
    /// A remark about `key`.
    pub fn new(key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), value: value.into() }
    }

    /// The value as text; bytes that are not UTF-8 are taken for Latin-1.
    pub fn string(&self) -> String {
        match std::str::from_utf8(&self.value) {
            Ok(text) => text.into(),
            Err(_) => self.value.iter().map(|&byte| char::from(byte)).collect(),
        }
    }
}

/// The unit of length of a [`Resolution`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Not said: only the ratio of both numbers has a meaning, or the software that wrote them knows.
    None,
    /// 0.0254 metres.
    Inch,
    /// 0.01 metres.
    Centimetre,
    /// One metre.
    Metre,
}

/// Pixels in a unit of length, as fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Along a row: numerator and denominator.
    pub x: (u32, u32),
    /// Along a column.
    pub y: (u32, u32),
    /// Of what length.
    pub unit: Unit,
}

impl Resolution {
    /// In whole pixels of `unit`, if there are any and the numbers fit.
    pub(super) fn whole(&self, unit: Unit) -> Option<(u32, u32)> {
        let metres = |unit| match unit {
            Unit::None => None,
            Unit::Inch => Some(0.0254),
            Unit::Centimetre => Some(0.01),
            Unit::Metre => Some(1.0),
        };
        let factor = match (metres(self.unit), metres(unit)) {
            (Some(from), Some(to)) => to / from,
            (None, None) => 1.0,
            _ => return None,
        };
        let whole = |(above, below): (u32, u32)| {
            let number = (f64::from(above) / f64::from(below) * factor).round();
            (number >= 1.0 && number <= f64::from(u32::MAX)).then_some(number as u32)
        };
        Some((whole(self.x)?, whole(self.y)?))
    }

    /// As TIFF has it, which knows no metres.
    pub(super) fn in_tiff(self) -> Option<Self> {
        if self.unit != Unit::Metre {
            return Some(self);
        }
        let centimetres = |(above, below): (u32, u32)| {
            Some((above, below.checked_mul(100)?)).filter(|&(_, below)| below > 0)
        };
        Some(Self { x: centimetres(self.x)?, y: centimetres(self.y)?, unit: Unit::Centimetre })
    }

    /// As JPEG has it: 16-bit numbers.
    pub(super) fn in_jpeg(self) -> Option<((u16, u16), Unit)> {
        let unit = if self.unit == Unit::Metre { Unit::Inch } else { self.unit };
        let (x, y) = self.whole(unit)?;
        Some(((x.try_into().ok()?, y.try_into().ok()?), unit))
    }
}

/// What only one format has a place for; kept from a file to its result of the same format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Native(pub(super) Kept);

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Kept {
    #[default]
    Nothing,
    Tiff(TiffKept),
    Png(PngKept),
    Jpeg(JpegKept),
    /// The number that means white.
    Pnm(u16),
    /// The header, in cards of 80 bytes.
    Fits(Vec<[u8; 80]>),
}

/// How samples were stored, and the tags that are not about that.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TiffKept {
    pub compression: u16,
    pub predictor: u16,
    pub tags: Vec<Entry>,
    /// Whether colours are stored as their product with alpha.
    pub premultiplied: bool,
}

impl Default for TiffKept {
    /// Neither compressed nor predicted.
    fn default() -> Self {
        Self { compression: 1, predictor: 1, tags: Vec::new(), premultiplied: false }
    }
}

/// What the numbers of the pixels mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PngKept {
    pub gamma: Option<png::ScaledFloat>,
    pub chromaticities: Option<png::SourceChromaticities>,
    pub srgb: Option<png::SrgbRenderingIntent>,
}

/// The coarseness with which luma and chroma were stored, and the IPTC segment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct JpegKept {
    pub tables: Box<[[u16; 64]; 2]>,
    pub iptc: Option<Vec<u8>>,
}

/// The most of EXIF and of XMP in one segment of a JPEG.
pub(super) const MOST_EXIF_IN_JPEG: usize = 65_527;
pub(super) const MOST_XMP_IN_JPEG: usize = 65_502;

/// The texts for which TIFF has tags. A comment goes where a description would, if there is none.
pub(super) const TIFF_TEXTS: [(&str, u16); 7] = [
    ("Title", 269),
    ("Description", 270),
    ("Software", 305),
    ("DateTime", 306),
    ("Author", 315),
    ("HostComputer", 316),
    ("Copyright", 33_432),
];

impl Metadata {
    /// The text of a keyword.
    pub fn text(&self, key: &str) -> Option<&Text> {
        self.texts.iter().find(|text| text.key == key)
    }

    /// The texts, with the settings behind what is said of the software.
    pub(super) fn texts_with_settings(&self) -> Vec<Text> {
        let mut texts = self.texts.clone();
        let Some(settings) = &self.settings else { return texts };
        match texts.iter_mut().find(|text| text.key == "Software") {
            Some(software) if software.value.ends_with(settings.as_bytes()) => {}
            Some(software) => software.value.extend(format!("; {settings}").as_bytes()),
            None => texts.push(Text::new("Software", settings.as_str())),
        }
        texts
    }

    /// Says in a line what `format` has no place for.
    pub(super) fn announce_lost(&self, format: Format) {
        use Format::{Bmp, Fits, Jpeg, Png, Pnm, Tiff, WebP};
        let mut lost = Vec::new();
        let mut note = |is_lost: bool, what: &str| {
            if is_lost {
                lost.push(what.to_string());
            }
        };
        note(self.icc.is_some() && matches!(format, Pnm | Bmp | Fits), "the colour profile");
        let fits = |block: &Option<Vec<u8>>, most| match (block, format) {
            (None, _) | (_, Png | Tiff | WebP) => true,
            (Some(block), Jpeg) => block.len() <= most,
            (Some(_), _) => false,
        };
        note(!fits(&self.exif, MOST_EXIF_IN_JPEG), "EXIF");
        note(!fits(&self.xmp, MOST_XMP_IN_JPEG), "XMP");
        if let Some(resolution) = &self.resolution {
            let kept = match format {
                Png => resolution.whole(Unit::Metre).or(resolution.whole(Unit::None)).is_some(),
                Bmp => resolution.whole(Unit::Metre).is_some(),
                Tiff => resolution.in_tiff().is_some(),
                Jpeg => resolution.in_jpeg().is_some(),
                WebP | Pnm | Fits => false,
            };
            note(!kept, "the resolution");
        }
        for text in &self.texts {
            let kept = match format {
                Png => true,
                Tiff => {
                    TIFF_TEXTS.iter().any(|(key, _)| *key == text.key)
                        || text.key == "Comment" && self.text("Description").is_none()
                }
                Jpeg => ["Comment", "Description"].contains(&text.key.as_str()),
                Pnm => text.key == "Comment",
                WebP | Bmp | Fits => false,
            };
            note(!kept, &format!("the text {:?}", text.key));
        }
        match &self.native.0 {
            Kept::Tiff(kept) => note(format != Tiff && !kept.tags.is_empty(), "further TIFF tags"),
            Kept::Png(PngKept { gamma, chromaticities, srgb: None }) => {
                note(
                    format != Png && (gamma.is_some() || chromaticities.is_some()),
                    "gamma and chromaticities",
                );
            }
            Kept::Jpeg(kept) => note(format != Jpeg && kept.iptc.is_some(), "IPTC"),
            Kept::Fits(_) => note(format != Fits, "the FITS header"),
            Kept::Nothing | Kept::Pnm(_) | Kept::Png(_) => {}
        }
        if !lost.is_empty() {
            tracing::warn!("{} has no place for {}: left out", format.name(), lost.join(", "));
        }
    }
}
