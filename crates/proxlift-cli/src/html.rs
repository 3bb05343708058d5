//! Pieces of HTML: tables, pictures, pages. Everything is inside the one file.

use crate::chart::escape;
use proxlift::Result;
use proxlift::image::Image;
use proxlift::image::io::{Depth, Format, Picture, encode};

/// A table; the first cell of each row names it. Cells are HTML.
pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |row: &[String], tag: &str| {
        let scope = |i: usize| if i == 0 { format!("<th scope=\"{tag}\">") } else { "<td>".into() };
        let end = |i: usize| if i == 0 { "</th>" } else { "</td>" };
        row.iter().enumerate().map(|(i, c)| format!("{}{c}{}", scope(i), end(i))).collect::<String>()
    };
    let head: String = head.iter().map(|c| format!("<th scope=\"col\">{c}</th>")).collect();
    let body: String = rows.iter().map(|row| format!("<tr>{}</tr>\n", cells(row, "row"))).collect();
    format!(
        "<div class=\"wide\"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody></table></div>\n"
    )
}

/// A picture as it is seen: a PNG of 8 bits.
///
/// # Errors
/// When a value is not finite.
pub fn as_png(image: Image) -> Result<Vec<u8>> {
    encode(&Picture::new(image, Depth::Eight), Format::Png)
}

/// A PNG as an address that holds it all.
pub fn data_uri(png: &[u8]) -> String {
    format!("data:image/png;base64,{}", base64(png))
}

/// A PNG as an image of the page.
pub fn picture(png: &[u8], alt: &str) -> String {
    format!("<img src=\"{}\" alt=\"{}\">", data_uri(png), escape(alt))
}

/// Bytes as text (RFC 4648).
fn base64(bytes: &[u8]) -> String {
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

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1f2328; --faint: #59636e; --paper: #fff; --line: #d8dee4; --soft: #f5f7f9;
  --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --faint: #a4acb8; --paper: #14161a; --line: #363b45;
  --soft: #1b1e24; --link: #7cb7f2; } }
body { margin: 0 auto; max-width: 68rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; }
h1 { line-height: 1.2; margin-bottom: .3rem; } h2 { margin-top: 3rem; border-top: 1px solid var(--line);
  padding-top: 1.5rem; } h3 { margin-top: 2rem; }
p, li, figcaption { max-width: 46rem; } a { color: var(--link); } .faint, figcaption { color: var(--faint); }
figure { margin: 1.5rem 0; } figcaption { font-size: .92rem; margin-top: .5rem; } .files { white-space: normal; }
.wide { overflow-x: auto; } .wide svg { max-width: 100%; height: auto; border: 1px solid var(--line);
  border-radius: 6px; } .wide img { max-width: 100%; border-radius: 4px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .94rem; margin: 1rem 0; }
th, td { padding: .35rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child { text-align: left; } thead th { background: var(--soft); } tbody th { font-weight: 600; white-space: nowrap; }
.caution { border-left: 4px solid #b45309; background: var(--soft); padding: .6rem 1rem; margin: 1rem 0; }
.badge { display: inline-block; border-radius: 1rem; padding: .05rem .7rem; font-size: .85rem; font-weight: 600;
  white-space: nowrap; color: #fff; } .yes { background: #1a7f4b; } .part { background: #9a6700; }
.no { background: #b3261e; } .none { background: #59636e; }
nav ol { padding-left: 1.3rem; } .gallery { border-spacing: 6px; border-collapse: separate; }
.gallery td, .gallery th { border: 0; padding: 0 .2rem; text-align: center; font-weight: 500; vertical-align: top; }
.gallery th:first-child { text-align: center; } .gallery img { width: 150px; height: auto; display: block;
  image-rendering: auto; } .gallery thead th { background: none; }
code { background: var(--soft); padding: .1rem .3rem; border-radius: 3px; }
";

/// A whole page. `body` is HTML, what follows the title.
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_values_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
