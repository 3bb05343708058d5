//! The parts of the report.

use super::folder::Folder;
use super::pictures::Pictures;
use super::results::Results;
use super::scale::Scale;
use crate::chart::escape;
use crate::flags::DEFAULT_SIGMA;

/// What the parts are made of.
pub struct Material<'a> {
    /// The sizes.
    pub scale: &'a Scale,
    /// The runs.
    pub results: &'a Results,
    /// The pictures.
    pub pictures: &'a Pictures,
    /// Where files go.
    pub folder: &'a Folder,
}

impl Material<'_> {
    /// The noise that all runs were trained for.
    pub fn sigma(&self) -> f64 {
        self.results.all().first().map_or(DEFAULT_SIGMA, |done| done.run.config.sigma)
    }

    /// What must be said first, as HTML.
    pub fn caution(&self) -> String {
        let text = self.scale.caution();
        text.map_or(String::new(), |text| format!("<p class=\"caution\">{}</p>\n", escape(&text)))
    }
}

/// A part of the report.
#[derive(Clone, Debug)]
pub struct Section {
    /// Where links lead.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// A line for the table of contents.
    pub short: String,
    /// Its body.
    pub html: String,
}
