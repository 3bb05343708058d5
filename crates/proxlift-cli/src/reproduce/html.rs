//! Pieces of the report: verdicts, figures, the page.

use super::sections::Section;
use crate::html::document;
use maud::{Markup, PreEscaped, Render, html};

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
    pub fn badge(self) -> Markup {
        let class = match self {
            Self::Holds => "yes",
            Self::Mixed => "part",
            Self::DoesNotHold => "no",
            Self::NoData => "none",
        };
        html! { span.badge.(class) { (self.words()) } }
    }
}

/// A table, as HTML.
pub fn table<C: Render>(head: &[&str], rows: &[Vec<C>]) -> String {
    crate::html::table(head, rows).into_string()
}

/// A drawing with what there is to say about it, and links to what is behind it. Both are HTML.
pub fn figure(drawing: &str, caption: &str, files: &[&str]) -> String {
    let figure = html! {
        figure {
            div.wide { (PreEscaped(drawing)) }
            figcaption {
                (PreEscaped(caption)) " "
                span.files {
                    "Behind it: "
                    @for (i, file) in files.iter().enumerate() {
                        @if i > 0 { ", " } a href={ "figures/" (file) } { (file) }
                    }
                }
            }
        }
    };
    figure.into_string()
}

/// The whole page. `intro`, `end` and what sections say are HTML.
pub fn page(title: &str, intro: &str, caution: Option<&str>, sections: &[Section], end: &str) -> String {
    let body = html! {
        (PreEscaped(intro))
        @if let Some(text) = caution { p.caution { (text) } }
        nav aria-label="Contents" {
            ol {
                @for s in sections { li { a href={ "#" (s.id) } { (s.title) } ": " (PreEscaped(&s.short)) } }
                li { a href="#setup" { "How it was made" } }
            }
        }
        @for s in sections { section id=(s.id) { h2 { (s.title) } (PreEscaped(&s.html)) } }
        section id="setup" { h2 { "How it was made" } (PreEscaped(end)) }
    };
    document(title, "", &body)
}
