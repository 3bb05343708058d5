//! The parts of the report.

use super::folder::Folder;
use super::pictures::Pictures;
use super::results::Results;
use super::scale::Scale;
use super::{claims, figure1, figure2, figure3, table1};
use crate::chart::escape;
use crate::flags::DEFAULT_SIGMA;
use anyhow::Result;

/// A part that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Mini-batch stability
    Figure1,
    /// Comparison with SGD
    Figure2,
    /// Visual results
    Figure3,
    /// Scores on the test images
    Table1,
    /// What the paper says, with a verdict
    Claims,
}

impl Part {
    /// All, in the order of the report.
    pub const ALL: [Self; 5] = [Self::Figure1, Self::Figure2, Self::Figure3, Self::Table1, Self::Claims];

    /// Writes its figures and data, and gives its place in the report.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn write(self, all: &Material<'_>) -> Result<Section> {
        match self {
            Self::Figure1 => figure1::write(all),
            Self::Figure2 => figure2::write(all),
            Self::Figure3 => figure3::write(all),
            Self::Table1 => table1::write(all),
            Self::Claims => claims::write(all),
        }
    }
}

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
