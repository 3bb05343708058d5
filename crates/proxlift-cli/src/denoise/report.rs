//! What was done to each picture and why, as a table.

use super::done::Done;
use std::path::Path;

/// The most lines: a folder of any size takes the same memory.
pub(super) const MOST: usize = 1000;

/// The longest name that has a line for itself and its facts.
const WIDEST: usize = 40;

/// A line of the table.
pub(super) struct Row {
    name: String,
    size: String,
    noise: String,
    model: String,
    seconds: String,
}

impl Row {
    pub fn new(input: &Path, done: &Done) -> Self {
        let [width, height] = ["width", "height"].map(|key| &done.facts[key]);
        let pages = if done.pages > 1 { format!(" x {}", done.pages) } else { String::new() };
        Self {
            name: input.display().to_string(),
            size: format!("{width} x {height}{pages}"),
            noise: done.noise_for_people(),
            model: done.model.clone(),
            seconds: format!("{:.2}", done.facts["seconds"].as_f64().unwrap_or(0.0)),
        }
    }

    pub fn failed(input: &Path) -> Self {
        let nothing = || "-".to_string();
        let name = input.display().to_string();
        Self { name, size: nothing(), noise: "not denoised".into(), model: nothing(), seconds: nothing() }
    }
}

/// The lines of the table, in the order of the names.
pub(super) fn table(mut rows: Vec<Row>) -> Vec<String> {
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    let head = ["picture", "size", "noise", "model", "seconds"].map(String::from);
    let mut cells = vec![head];
    cells.extend(rows.into_iter().map(|row| [short(&row.name), row.size, row.noise, row.model, row.seconds]));
    let wide = |i: usize| cells.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let wide: [usize; 5] = std::array::from_fn(wide);
    let line = |[name, size, noise, model, seconds]: &[String; 5]| {
        let [a, b, c, d, e] = wide;
        format!("{name:<a$}  {size:<b$}  {noise:<c$}  {model:<d$}  {seconds:>e$}")
    };
    cells.iter().map(line).collect()
}

/// The end of a long name.
fn short(name: &str) -> String {
    let letters = name.chars().count();
    if letters <= WIDEST {
        return name.to_string();
    }
    format!("…{}", name.chars().skip(letters - WIDEST + 1).collect::<String>())
}
