//! What several sections of the report are made of.

use super::compare::{Duel, Verdict};
use crate::html::table;
use maud::{Markup, html};
use proxlift::Result;
use proxlift::dataset::synthetic::dead_leaves;
use proxlift::image::{Channels, noise::add_gaussian};

/// A verdict in these words.
pub fn badge(verdict: Verdict, words: &str) -> Markup {
    html! { span.badge.(verdict.class()) { (words) } }
}

/// All duels with their verdicts; numbers with so many digits.
pub fn duels(head: [&str; 4], duels: &[Duel], digits: usize) -> Markup {
    let row = |duel: &Duel| {
        vec![
            html! { (duel.about) },
            html! { (duel.of_first.text(digits)) },
            html! { (duel.of_second.text(digits)) },
            badge(duel.verdict, &duel.words()),
        ]
    };
    table(&head, &duels.iter().map(row).collect::<Vec<_>>())
}

/// Where the numbers of a section are.
pub fn behind(file: &str) -> Markup {
    html! { p.files.faint { "Behind it: " a href=(file) { (file) } } }
}

/// Pictures `first, first + 1, ..` of a series, one after the other: noisy and clean.
pub fn pairs(series: u64, first: usize, count: usize, side: usize) -> Result<(Vec<f32>, Vec<f32>)> {
    let (mut noisy, mut clean) = (Vec::new(), Vec::new());
    for i in first as u64..(first + count) as u64 {
        let picture = dead_leaves(series, i, side, side, Channels::Grey)?;
        noisy.extend_from_slice(add_gaussian(&picture, SIGMA, series + 1, i)?.data());
        clean.extend_from_slice(picture.data());
    }
    Ok((noisy, clean))
}

/// The noise on them.
pub const SIGMA: f32 = 0.1;
