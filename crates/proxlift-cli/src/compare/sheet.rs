//! The sheet: for each picture a row of crops, each with its name and scores; as SVG, or as a page around it.

use crate::chart::{escape, sheet as style_sheet};
use crate::error_map::{ABOVE, BELOW, FULL, error_map};
use crate::html::{as_png, data_uri, document, table};
use crate::train::data::centre;
use proxlift::Result;
use proxlift::evaluation::{Score, Summary};
use proxlift::image::Image;
use std::fmt::Write;

/// The width that crops share if nothing else is told, as the page has it.
const PAGE: usize = 1024;
/// The most crops beside each other.
const ACROSS: usize = 6;
/// The least and the largest crop that is chosen.
const SIDES: (usize, usize) = (128, 256);
/// Between crops, around everything, and what the text under a crop and over a row needs.
const GAP: usize = 8;
const MARGIN: usize = 16;
const CAPTION: usize = 44;
const HEADING: usize = 30;
/// The width of a character, about.
const CHARACTER: f64 = 7.0;

/// The mean scores of a column.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Means {
    /// What the column is called.
    pub name: String,
    /// PSNR.
    #[serde(serialize_with = "mean")]
    pub psnr: Summary,
    /// SSIM.
    #[serde(serialize_with = "mean")]
    pub ssim: Summary,
}

fn mean<S: serde::Serializer>(summary: &Summary, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_f64(summary.mean)
}

impl Means {
    /// Those of the column `name`.
    pub fn of(name: &str, scores: &[Score]) -> Self {
        let of = |part: fn(&Score) -> f64| {
            let values: Vec<f64> = scores.iter().map(part).collect();
            Summary::of(&values).unwrap_or(Summary { count: 0, mean: f64::NAN, std: 0.0 })
        };
        Self { name: name.into(), psnr: of(|s| s.psnr), ssim: of(|s| s.ssim) }
    }
}

struct Cell {
    name: String,
    /// None for the clean picture.
    score: Option<Score>,
    /// PNG, as addresses.
    crop: String,
    error: Option<String>,
}

struct Row {
    heading: String,
    /// Of the crops, in pixels.
    width: usize,
    height: usize,
    cells: Vec<Cell>,
}

/// All rows.
pub struct Sheet {
    rows: Vec<Row>,
    side: usize,
    /// Cells beside each other.
    across: usize,
    errors: bool,
}

impl Sheet {
    /// An empty sheet for rows of `cells` crops; with their errors under them if `errors`.
    pub fn new(cells: usize, side: Option<usize>, errors: bool) -> Self {
        // As even as can be: 7 become 4 and 3.
        let across = cells.div_ceil(cells.div_ceil(ACROSS));
        let fitting = ((PAGE - 2 * MARGIN + GAP) / across - GAP).clamp(SIDES.0, SIDES.1);
        Self { rows: Vec::new(), side: side.unwrap_or(fitting), across, errors }
    }

    /// Adds a picture, with what each column made of it.
    ///
    /// # Errors
    /// When a value is not finite.
    pub fn add<'a>(
        &mut self,
        name: &str,
        clean: &Image,
        results: impl Iterator<Item = (&'a str, &'a Image, Score)>,
    ) -> Result<()> {
        let truth = centre(clean, self.side)?;
        let uri = |image: Image| Ok::<_, proxlift::Error>(data_uri(&as_png(image)?));
        let mut cells =
            vec![Cell { name: "clean".into(), score: None, crop: uri(truth.clone())?, error: None }];
        for (name, image, score) in results {
            let crop = centre(image, self.side)?;
            let error = self.errors.then(|| error_map(&truth, &crop).and_then(uri)).transpose()?;
            cells.push(Cell { name: name.into(), score: Some(score), crop: uri(crop)?, error });
        }
        let (width, height) = (truth.width(), truth.height());
        let whole = (clean.width(), clean.height());
        let part = if whole == (width, height) {
            String::new()
        } else {
            format!(", the middle of {} x {}", whole.0, whole.1)
        };
        self.rows.push(Row {
            heading: format!("{name}: {width} x {height} pixels{part}"),
            width,
            height,
            cells,
        });
        Ok(())
    }

    /// The drawing alone; `about` says what is compared.
    pub fn svg(&self, about: &str) -> String {
        self.draw(Some(about))
    }

    /// A page with the drawing, and a table of means.
    pub fn page(&self, about: &str, means: &[Means]) -> String {
        let best = |of: fn(&Means) -> f64| means.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let (psnr, ssim) = (best(|m| m.psnr.mean), best(|m| m.ssim.mean));
        let strong = |text: String, is_best| if is_best { format!("<strong>{text}</strong>") } else { text };
        let rows = means.iter().map(|m| {
            vec![
                escape(&m.name),
                strong(format!("{:.2}", m.psnr), m.psnr.mean == psnr),
                strong(format!("{:.4}", m.ssim), m.ssim.mean == ssim),
            ]
        });
        let errors = if self.errors {
            format!(
                " Under each, its error: blue where it is too dark, orange where it is too bright, full colour at \
                 ±{FULL}; what has the shape of the picture is detail that was lost."
            )
        } else {
            String::new()
        };
        document(
            "Denoisers side by side",
            &format!(
                "<p>{}.</p>\n{}<p class=\"faint\">Mean ± standard deviation over all pictures; PSNR in dB at peak 1.</p>\n\
                 <figure><div class=\"wide\">{}</div><figcaption>PSNR and SSIM are those of the whole picture, the best \
                 PSNR of a row in bold. Hold the pointer on a result to see the clean picture in its place.{errors}\
                 </figcaption></figure>\n",
                escape(about),
                table(&["", "PSNR", "SSIM"], &rows.collect::<Vec<_>>()),
                self.draw(None)
            ),
        )
    }

    fn draw(&self, about: Option<&str>) -> String {
        let pitch = self.rows.iter().map(|row| row.width).max().unwrap_or(0).max(SIDES.0 / 2) + GAP;
        let (mut body, mut y) = (String::new(), MARGIN);
        if let Some(about) = about {
            y += 16;
            let _ = writeln!(body, "<text x=\"{MARGIN}\" y=\"{y}\" class=\"faint\">{}</text>", escape(about));
        }
        for (number, row) in self.rows.iter().enumerate() {
            y += HEADING;
            let _ = writeln!(
                body,
                "<text x=\"{MARGIN}\" y=\"{}\" class=\"faint\">{}</text>",
                y - 9,
                escape(&row.heading)
            );
            row.draw(&mut body, number, (self.across, pitch), &mut y, self.errors);
        }
        let (width, height) = (2 * MARGIN + self.across * pitch - GAP, y + MARGIN - GAP);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" \
             role=\"img\" aria-label=\"Denoisers side by side\">\n<style>{}.chart .cell:hover .result{{opacity:0}}\
             </style>\n<defs><linearGradient id=\"error\"><stop stop-color=\"{}\"/><stop offset=\"0.5\" stop-color=\"#fff\"/>\
             <stop offset=\"1\" stop-color=\"{}\"/></linearGradient></defs>\n<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n{body}</svg>\n",
            style_sheet(),
            colour(BELOW),
            colour(ABOVE)
        )
    }
}

/// As SVG has it.
fn colour(rgb: [f32; 3]) -> String {
    let [r, g, b] = rgb.map(|v| (255.0 * v).round());
    format!("rgb({r},{g},{b})")
}

impl Row {
    fn draw(
        &self,
        svg: &mut String,
        number: usize,
        (across, pitch): (usize, usize),
        y: &mut usize,
        errors: bool,
    ) {
        let best =
            self.cells.iter().filter_map(|c| c.score).map(|s| s.psnr).fold(f64::NEG_INFINITY, f64::max);
        let size = format!("width=\"{}\" height=\"{}\"", self.width, self.height);
        let below = self.height + CAPTION;
        for (line, cells) in self.cells.chunks(across).enumerate() {
            for (column, cell) in cells.iter().enumerate() {
                let name = fit(&cell.name, pitch - GAP);
                let _ = write!(
                    svg,
                    "<g class=\"cell\" transform=\"translate({} {y})\"><title>{}</title>",
                    MARGIN + column * pitch,
                    escape(&cell.name)
                );
                // The clean picture lies under each result, to come forth when the result is made transparent.
                let _ = match line + column {
                    0 => write!(svg, "<image id=\"clean-{number}\" {size} href=\"{}\"/>", cell.crop),
                    _ => write!(
                        svg,
                        "<use href=\"#clean-{number}\"/><image class=\"result\" {size} href=\"{}\"/>",
                        cell.crop
                    ),
                };
                let weight = |is_best| if is_best { " font-weight=\"bold\"" } else { "" };
                let _ = write!(svg, "<text y=\"{}\">{}</text>", self.height + 17, escape(&name));
                if let Some(Score { psnr, ssim, .. }) = cell.score {
                    let _ = write!(
                        svg,
                        "<text y=\"{}\"><tspan{}>{psnr:.2} dB</tspan><tspan class=\"faint\" dx=\"8\">{ssim:.3}</tspan></text>",
                        self.height + 34,
                        weight(psnr == best)
                    );
                }
                if let Some(error) = &cell.error {
                    let _ = write!(svg, "<image y=\"{below}\" {size} href=\"{error}\"/>");
                } else if errors {
                    draw_key(svg, below);
                }
                svg.push_str("</g>\n");
            }
            *y += below + if errors { self.height + 2 * GAP } else { 0 };
        }
    }
}

/// What the colours of an error mean, where the clean picture has none.
fn draw_key(svg: &mut String, y: usize) {
    let (width, bar) = (112, 10);
    let _ = write!(
        svg,
        "<rect y=\"{}\" width=\"{width}\" height=\"{bar}\" fill=\"url(#error)\"/><text y=\"{}\">error</text>\
         <text class=\"faint\" y=\"{2}\">−{FULL}</text><text class=\"faint\" x=\"{3}\" y=\"{2}\" \
         text-anchor=\"middle\">0</text><text class=\"faint\" x=\"{width}\" y=\"{2}\" text-anchor=\"end\">+{FULL}</text>",
        y + 20,
        y + 12,
        y + 44,
        width / 2
    );
}

/// The name, cut where it would run into its neighbour.
fn fit(name: &str, width: usize) -> String {
    let most = (width as f64 / CHARACTER) as usize;
    if name.chars().count() <= most {
        return name.into();
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_even_as_can_be() {
        for (cells, across) in [(3, 3), (6, 6), (7, 4), (8, 4), (13, 5)] {
            assert_eq!(Sheet::new(cells, None, false).across, across, "{cells}");
        }
    }

    #[test]
    fn a_name_that_is_code_stays_a_name() {
        let image = Image::new(1, 20, 20, vec![0.5; 400]).unwrap();
        let mut sheet = Sheet::new(2, None, true);
        let score = Score { psnr: f64::INFINITY, ssim: 1.0, psnr_own_peak: None };
        sheet.add("<a&b>", &image, [("<script>", &image, score)].into_iter()).unwrap();
        let means = [Means::of("<script>", &[score])];
        for text in [sheet.svg("a < b"), sheet.page("a < b", &means)] {
            assert!(!text.contains("<script") && !text.contains("<a&b>") && text.contains("a &lt; b"));
        }
    }
}
