//! Pages and what they are made of: tables, pictures. Everything is inside the one file; text is escaped by `maud`.

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use proxlift::image::io::{Depth, Format, Picture, encode};
use proxlift::{Result, image::Image};

/// A table; the first cell of each row names it.
pub fn table<C: Render>(head: &[&str], rows: &[Vec<C>]) -> Markup {
    html! {
        div.wide { table {
            thead { tr { @for cell in head { th scope="col" { (cell) } } } }
            tbody { @for row in rows {
                tr { @for (i, cell) in row.iter().enumerate() {
                    @if i == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                } }
            } }
        } }
    }
}

/// A picture as it is seen: a PNG of 8 bits.
pub fn as_png(image: Image) -> Result<Vec<u8>> {
    encode(&Picture::new(image, Depth::Eight), Format::Png)
}

/// A PNG as an address that holds it all.
pub fn data_uri(png: &[u8]) -> String {
    format!("data:image/png;base64,{}", base64(png))
}

/// A PNG as an image of the page.
pub fn picture(png: &[u8], alt: &str) -> Markup {
    html! { img src=(data_uri(png)) alt=(alt); }
}

/// Bytes as text (RFC 4648).
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0u32, |word, (i, &b)| word | u32::from(b) << (16 - 8 * i));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// A whole page. `style` is added to the style sheet of all pages.
pub fn document(title: &str, style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content="proxlift";
                title { (title) }
                style { (PreEscaped(include_str!("page.css"))) (PreEscaped(style)) }
            }
            body { h1 { (title) } (body) }
        }
    };
    page.into_string()
}
