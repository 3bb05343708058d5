//! WebP, through the `image-webp` crate; written without loss.

use super::common::{Header, Source, cut_short};
use super::limits::METADATA;
use super::{Allowance, Channels, Decoded, Depth, Metadata, Raster};
use image_webp::{ColorType, DecodingError, WebPDecoder, WebPEncoder};
use std::io::Write;

pub(super) fn decode(reader: &mut dyn Source, allowance: Allowance) -> Decoded<Raster> {
    let mut decoder = WebPDecoder::new(reader).map_err(why)?;
    decoder.set_memory_limit(METADATA);
    let (width, height) = decoder.dimensions();
    if decoder.is_animated() {
        allowance.first_frame()?;
    }
    // Broken metadata is no reason to refuse good pixels.
    let metadata = Metadata {
        icc: decoder.icc_profile().ok().flatten(),
        exif: decoder.exif_metadata().ok().flatten(),
        xmp: decoder.xmp_metadata().ok().flatten(),
        ..Metadata::default()
    };
    let samples = if decoder.has_alpha() { 4 } else { 3 };
    let header = Header { width, height, samples, depth: Depth::Eight, metadata };
    header.raster(allowance, |bytes| decoder.read_image(bytes).map_err(why))
}

fn why(error: DecodingError) -> String {
    match error {
        DecodingError::IoError(e) => cut_short(&e),
        other => format!("the WebP cannot be decoded: {other}"),
    }
}

pub(super) fn encode(raster: &Raster, file: &mut dyn Write) -> Decoded<()> {
    let metadata = &raster.metadata;
    let mut encoder = WebPEncoder::new(file);
    if let Some(icc) = &metadata.icc {
        encoder.set_icc_profile(icc.clone());
    }
    if let Some(exif) = &metadata.exif {
        encoder.set_exif_metadata(exif.clone());
    }
    // A packet that is there already is left as it is.
    if let Some(xmp) = metadata.xmp.clone().or(metadata.settings.as_deref().map(packet)) {
        encoder.set_xmp_metadata(xmp);
    }
    let colours = match (raster.kind(), raster.has_alpha()) {
        (Channels::Grey, false) => ColorType::L8,
        (Channels::Grey, true) => ColorType::La8,
        (Channels::Rgb, false) => ColorType::Rgb8,
        (Channels::Rgb, true) => ColorType::Rgba8,
    };
    let (width, height) = (raster.width() as u32, raster.height() as u32);
    encoder.encode(&raster.eight(), width, height, colours).map_err(|e| e.to_string())
}

/// An XMP packet that says with what the picture was made.
fn packet(settings: &str) -> Vec<u8> {
    let text = settings.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    format!(
        "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\
         <rdf:Description rdf:about=\"\" xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\" xmp:CreatorTool=\"{text}\"/>\
         </rdf:RDF></x:xmpmeta>"
    )
    .into_bytes()
}
