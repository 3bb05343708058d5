//! The sheet: for each picture a row of crops, each with its name and scores; as a page, or as one drawing.

use crate::chart::sheet as chart_style;
use crate::error_map::{ABOVE, BELOW, FULL, error_map};
use crate::html::{as_png, data_uri, document, table};
use crate::scores::summary;
use maud::{Markup, PreEscaped, html};
use proxlift::evaluation::{Score, Summary};
use proxlift::{Result, image::Image};

/// The width that crops share if nothing else is told, as the page has it.
const PAGE: usize = 1024;
const ACROSS: usize = 6;
/// The least and the largest crop that is chosen.
const SIDES: (usize, usize) = (128, 256);
/// Between crops, around everything, and what the text under a crop and over a row needs.
const GAP: usize = 8;
const MARGIN: usize = 16;
const CAPTION: usize = 44;
const HEADING: usize = 30;
const CHARACTER: f64 = 7.0;

/// What the page adds to all pages: crops at their size beside each other, two in a row on a phone. The clean picture is
/// the background of each result; a checkbox, which nobody sees, takes the result away.
const STYLE: &str = include_str!("sheet.css");

#[derive(Clone, Debug, serde::Serialize)]
pub struct Means {
    pub name: String,
    #[serde(serialize_with = "mean")]
    pub psnr: Summary,
    #[serde(serialize_with = "mean")]
    pub ssim: Summary,
}

fn mean<S: serde::Serializer>(summary: &Summary, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_f64(summary.mean)
}

impl Means {
    pub fn of(name: &str, scores: &[Score]) -> Self {
        let of = |part: fn(&Score) -> f64| summary(scores.iter().map(part));
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

pub struct Sheet {
    rows: Vec<Row>,
    side: usize,
    pub across: usize,
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
    pub fn add<'a>(
        &mut self,
        name: &str,
        clean: &Image,
        results: impl Iterator<Item = (&'a str, &'a Image, Score)>,
    ) -> Result<()> {
        let truth = clean.centre(self.side);
        let uri = |image: Image| Ok::<_, proxlift::Error>(data_uri(&as_png(image)?));
        let mut cells =
            vec![Cell { name: "clean".into(), score: None, crop: uri(truth.clone())?, error: None }];
        for (name, image, score) in results {
            let crop = image.centre(self.side);
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
        let pitch = self.rows.iter().map(|row| row.width).max().unwrap_or(0).max(SIDES.0 / 2) + GAP;
        let mut y = MARGIN + 16;
        let rows: Vec<Markup> =
            self.rows.iter().enumerate().map(|(n, row)| row.draw(n, (self.across, pitch), &mut y)).collect();
        let (width, height) = (2 * MARGIN + self.across * pitch - GAP, y + MARGIN - GAP);
        let hidden =
            ".chart .cell{cursor:pointer}.chart .cell:hover .result,.chart .cell:focus .result{opacity:0}";
        let svg = html! {
            svg.chart xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (width) " " (height) } width=(width)
                height=(height) font-family="Helvetica, Arial, sans-serif" font-size="13" {
                style { (PreEscaped(chart_style())) (PreEscaped(hidden)) }
                linearGradient id="error" {
                    stop stop-color=(colour(BELOW)) {} stop offset="0.5" stop-color="#fff" {}
                    stop offset="1" stop-color=(colour(ABOVE)) {}
                }
                rect.paper width="100%" height="100%" {}
                text.faint x=(MARGIN) y=(MARGIN + 16) { (about) }
                @for row in &rows { (row) }
            }
        };
        svg.into_string()
    }

    pub fn page(&self, about: &str, means: &[Means]) -> String {
        let best = |of: fn(&Means) -> f64| means.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let (psnr, ssim) = (best(|m| m.psnr.mean), best(|m| m.ssim.mean));
        let rows = means.iter().map(|m| {
            vec![
                html! { (m.name) },
                strong(format!("{:.2}", m.psnr), m.psnr.mean == psnr),
                strong(format!("{:.4}", m.ssim), m.ssim.mean == ssim),
            ]
        });
        let body = html! {
            p { (about) "." }
            (table(&["", "PSNR", "SSIM"], &rows.collect::<Vec<_>>()))
            p.faint { "Mean ± standard deviation over all pictures; PSNR in dB at peak 1." }
            p {
                "Under each crop are PSNR and SSIM of the whole picture, the best PSNR of a row in bold. Click or tap a \
                 result to see the clean picture in its place, and again to come back; with the keyboard, go there \
                 with Tab and press Space."
                @if self.errors {
                    " Under each, its error: blue where it is too dark, orange where it is too bright, full colour at ±"
                    (FULL) "; what has the shape of the picture is detail that was lost."
                }
            }
            @for row in &self.rows { (row.html(self.errors)) }
        };
        document("Denoisers side by side", STYLE, &body)
    }
}

fn strong(text: String, is_it: bool) -> Markup {
    html! { @if is_it { strong { (text) } } @else { (text) } }
}

fn colour(rgb: [f32; 3]) -> String {
    let [r, g, b] = rgb.map(|v| (255.0 * v).round());
    format!("rgb({r},{g},{b})")
}

impl Row {
    fn best(&self) -> f64 {
        self.cells.iter().filter_map(|c| c.score).map(|s| s.psnr).fold(f64::NEG_INFINITY, f64::max)
    }

    fn html(&self, errors: bool) -> Markup {
        let best = self.best();
        let style = format!("--side: {}px; --clean: url({})", self.width, self.cells[0].crop);
        html! {
            h3 { (self.heading) }
            div.cells style=(style) {
                @for cell in &self.cells {
                    figure {
                        @if let Some(score) = cell.score {
                            label {
                                input type="checkbox" aria-label={ "The clean picture in place of " (cell.name) };
                                img src=(cell.crop) alt=(cell.name); span {}
                            }
                            figcaption {
                                b { (cell.name) } br;
                                (strong(format!("{:.2} dB", score.psnr), score.psnr == best)) " " (format!("{:.3}", score.ssim))
                            }
                        } @else {
                            img src=(cell.crop) alt="clean";
                            figcaption { b { (cell.name) } @if errors { (key()) } }
                        }
                        @if let Some(error) = &cell.error { img src=(error) alt={ "error of " (cell.name) }; }
                    }
                }
            }
        }
    }

    /// A row of the drawing, from `y` on; a row has so many cells `across`, `pitch` apart.
    fn draw(&self, number: usize, (across, pitch): (usize, usize), y: &mut usize) -> Markup {
        let best = self.best();
        let (width, height, below) = (self.width, self.height, self.height + CAPTION);
        let errors = self.cells.iter().any(|cell| cell.error.is_some());
        *y += HEADING;
        let top = *y;
        let step = below + if errors { height + 2 * GAP } else { 0 };
        *y += step * self.cells.len().div_ceil(across);
        html! {
            text.faint x=(MARGIN) y=(top - 9) { (self.heading) }
            @for (i, cell) in self.cells.iter().enumerate() {
                // Whoever has the focus, by a click or by Tab, is seen through to the clean picture under it.
                g.cell tabindex="0" transform={ "translate(" (MARGIN + i % across * pitch) " " (top + i / across * step) ")" } {
                    title { (cell.name) }
                    @if i == 0 {
                        image id={ "clean-" (number) } width=(width) height=(height) href=(cell.crop) {}
                    } @else {
                        use href={ "#clean-" (number) } {}
                        image.result width=(width) height=(height) href=(cell.crop) {}
                    }
                    text y=(height + 17) { (fit(&cell.name, pitch - GAP)) }
                    @if let Some(Score { psnr, ssim, .. }) = cell.score {
                        text y=(height + 34) {
                            tspan font-weight=[(psnr == best).then_some("bold")] { (format!("{psnr:.2} dB")) }
                            tspan.faint dx="8" { (format!("{ssim:.3}")) }
                        }
                    }
                    @if let Some(error) = &cell.error {
                        image y=(below) width=(width) height=(height) href=(error) {}
                    } @else if errors {
                        text y=(below + 12) { "error up to ±" (FULL) }
                        rect y=(below + 20) width="112" height="10" fill="url(#error)" {}
                    }
                }
            }
        }
    }
}

/// What the colours of an error mean.
fn key() -> Markup {
    let bar = format!("background: linear-gradient(90deg, {}, #fff, {})", colour(BELOW), colour(ABOVE));
    html! { div.key { "error" i style=(bar) {} span { small { "−" (FULL) } small { "0" } small { "+" (FULL) } } } }
}

/// The name, cut where it would run into its neighbour.
fn fit(name: &str, width: usize) -> String {
    let most = (width as f64 / CHARACTER) as usize;
    if name.chars().count() <= most {
        return name.into();
    }
    name.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
