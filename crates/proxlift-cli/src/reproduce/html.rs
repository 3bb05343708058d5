//! Pieces of the report: verdicts, figures, the page.

use super::sections::Section;
use crate::chart::escape;
use crate::html::document;
pub use crate::html::table;

/// A verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The data agree.
    Holds,
    /// They agree in part.
    Mixed,
    /// They do not.
    DoesNotHold,
    /// There are none.
    NoData,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Mixed => "mixed",
            Self::DoesNotHold => "does not hold",
            Self::NoData => "no data",
        }
    }

    /// As a badge.
    pub fn badge(self) -> String {
        let class = match self {
            Self::Holds => "yes",
            Self::Mixed => "part",
            Self::DoesNotHold => "no",
            Self::NoData => "none",
        };
        format!("<span class=\"badge {class}\">{}</span>", self.words())
    }
}

/// A drawing with what there is to say about it, and links to what is behind it.
pub fn figure(drawing: &str, caption: &str, files: &[&str]) -> String {
    let links: Vec<String> =
        files.iter().map(|file| format!("<a href=\"figures/{file}\">{file}</a>")).collect();
    format!(
        "<figure><div class=\"wide\">{drawing}</div><figcaption>{caption} <span class=\"files\">Behind it: {}</span>\
         </figcaption></figure>\n",
        links.join(", ")
    )
}

/// The whole page. `intro` is HTML.
pub fn page(title: &str, intro: &str, caution: Option<&str>, sections: &[Section], end: &str) -> String {
    let contents: String = sections
        .iter()
        .map(|s| format!("<li><a href=\"#{}\">{}</a>: {}</li>\n", s.id, escape(s.title), s.short))
        .collect();
    let caution =
        caution.map_or(String::new(), |text| format!("<p class=\"caution\">{}</p>\n", escape(text)));
    let body: String = sections
        .iter()
        .map(|s| format!("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", s.id, escape(s.title), s.html))
        .collect();
    document(
        title,
        &format!(
            "{intro}\n{caution}<nav aria-label=\"Contents\">\n<ol>\n{contents}<li><a href=\"#setup\">How it was made</a></li>\n\
             </ol>\n</nav>\n{body}<section id=\"setup\">\n<h2>How it was made</h2>\n{end}</section>\n"
        ),
    )
}
