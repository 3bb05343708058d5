//! Which pictures are on the sheet.

use crate::test_set::TestSet;
use proxlift::{Error, Result};
use std::path::Path;

#[derive(Clone, Debug, PartialEq)]
pub enum Show {
    Some(usize),
    Named(Vec<String>),
}

/// The most pictures on a sheet.
const MOST: usize = 100;

/// A number, or names with commas between them.
pub fn show(text: &str) -> std::result::Result<Show, String> {
    let few = |count: usize| (1..=MOST).contains(&count);
    match text.parse::<usize>() {
        Ok(count) if few(count) => Ok(Show::Some(count)),
        Ok(_) => Err(format!("a sheet holds 1 to {MOST} pictures")),
        Err(_) => {
            let names: Vec<String> = text.split(',').map(|name| name.trim().to_string()).collect();
            if few(names.len()) && names.iter().all(|name| !name.is_empty()) {
                Ok(Show::Named(names))
            } else {
                Err(format!("give a number, or 1 to {MOST} names, separated by commas"))
            }
        }
    }
}

impl Show {
    /// The numbers of the pictures among the first `count` of the set, in order.
    pub fn of(&self, pictures: &TestSet, count: usize) -> Result<Vec<usize>> {
        let mut chosen = match self {
            Self::Some(wanted) => {
                let wanted = count.min(*wanted);
                (0..wanted).map(|i| i * count / wanted).collect()
            }
            Self::Named(names) => {
                names.iter().map(|name| find(pictures, count, name)).collect::<Result<Vec<_>>>()?
            }
        };
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }
}

/// A picture by its file's name, or by where it lies in the folder, with or without extension.
fn find(pictures: &TestSet, count: usize, name: &str) -> Result<usize> {
    let wanted = Path::new(name);
    let is_it = |i: usize| {
        let (path, inside) = (&pictures.names()[i], pictures.name(i));
        inside == wanted || path.ends_with(wanted) || inside.file_name() == Some(wanted.as_os_str())
    };
    (0..count).find(|&i| is_it(i)).ok_or_else(|| {
        Error::invalid(format!(
            "--show names {name}, but {} has no picture of that name",
            pictures.described()
        ))
    })
}
