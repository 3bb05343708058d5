//! The page: two pictures of many on top of each other, and a divider between them.

use crate::html::{as_png, data_uri, document, table};
use maud::{Markup, PreEscaped, html};
use proxlift::{Result, evaluation::Score, image::Image};

pub const TITLE: &str = "proxlift demo";

/// One state of the picture.
pub struct Shot {
    /// What was done to it.
    pub name: String,
    pub image: Image,
    /// What it scores, unless it is the clean one.
    pub score: Option<Score>,
    /// The time it took.
    pub seconds: Option<f64>,
}

impl Shot {
    pub fn new(name: &str, image: Image, score: Option<Score>, seconds: Option<f64>) -> Self {
        Self { name: name.into(), image, score, seconds }
    }
}

/// All of them: the first is shown on the left of the divider, number `first` on the right.
pub struct Page<'a> {
    pub shots: &'a [Shot],
    pub first: usize,
    /// Width and height.
    pub size: (usize, usize),
    pub sigma: f64,
}

impl Page<'_> {
    pub fn html(&self) -> Result<String> {
        let pictures = self.shots.iter().map(|shot| Ok(data_uri(&as_png(shot.image.clone())?)));
        let pictures = pictures.collect::<Result<Vec<String>>>()?;
        let (width, height) = self.size;
        let level = format!("{:.3} ({:.0}/255)", self.sigma, 255.0 * self.sigma);
        let body = html! {
            p {
                "A scene that the program painted, " (width) " x " (height) " pixels; white Gaussian noise of level "
                (level) " was added, and removed again."
            }
            div.controls {
                (self.choice("left", "Left", 0)) (self.choice("right", "Right", self.first))
                div role="group" aria-label="Size" {
                    button type="button" data-zoom="0" aria-pressed="true" { "Fit" }
                    button type="button" data-zoom="1" aria-pressed="false" { "1:1" }
                    button type="button" data-zoom="2" aria-pressed="false" { "2x" }
                }
            }
            div.frame {
                div #view {
                    div #stage data-width=(width) style={ "aspect-ratio: " (width) " / " (height) } {
                        @for (shot, picture) in self.shots.iter().zip(&pictures) {
                            img src=(picture) alt=(shot.name) draggable="false";
                        }
                        div #divider role="slider" tabindex="0" aria-label="Divider" aria-valuemin="0"
                            aria-valuemax="100" aria-valuenow="50" {}
                    }
                }
                output #left-name {} output #right-name {}
            }
            p.faint { "Drag the divider, tap where it should go, or move it with the arrow keys." }
            (table(&["", "PSNR (dB)", "SSIM", "seconds"], &self.rows()))
            p { "Your own picture: " code { "proxlift denoise photo.png" } }
            script { (PreEscaped(include_str!("page.js"))) }
        };
        Ok(document(TITLE, include_str!("page.css"), &body))
    }

    fn choice(&self, id: &str, label: &str, chosen: usize) -> Markup {
        html! {
            label { (label) " "
                select id=(id) {
                    @for (i, shot) in self.shots.iter().enumerate() {
                        @let score = shot.score.map_or(String::new(), |score| format!(", {:.2} dB", score.psnr));
                        option value=(i) selected[i == chosen] { (shot.name) (score) }
                    }
                }
            }
        }
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let row = |shot: &Shot| {
            let Score { psnr, ssim, .. } = shot.score?;
            let seconds = shot.seconds.map_or(String::new(), |s| format!("{s:.2}"));
            Some(vec![shot.name.clone(), format!("{psnr:.2}"), format!("{ssim:.4}"), seconds])
        };
        self.shots.iter().filter_map(row).collect()
    }
}
