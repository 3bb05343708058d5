//! Files as version 0.4 wrote them, whose damage no checksum finds.

/// A model or checkpoint with its checksum taken out of the header.
pub fn unsealed(bytes: &[u8]) -> Vec<u8> {
    let length = u64::from_le_bytes(*bytes.first_chunk().expect("a length")) as usize;
    let header = String::from_utf8_lossy(&bytes[8..8 + length]);
    let checksum = r#""checksum":"crc32:00000000","#;
    let start = header.find(&checksum[..18]).expect("a checksum");
    let header = header[..start].to_string() + &header[start + checksum.len()..];
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes[8 + length..]].concat()
}
