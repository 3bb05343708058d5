//! What is trained for the report, and how it is judged.

use super::claims::batches::kendall;
use super::runs::{Part, runs};
use super::scale::FULL;
use clap::ValueEnum;

#[test]
fn every_run_of_the_paper_is_there_once() {
    let all = runs(&FULL, Part::value_variants(), 2).unwrap();
    assert_eq!(all.len(), 2 * (2 * 7 + 2 + 3 * (2 + 6 + 8 + 2)));
    let names: std::collections::HashSet<_> = all.iter().map(|run| &run.name).collect();
    assert_eq!(names.len(), all.len());
}

#[test]
fn kendall_is_one_for_the_same_order() {
    assert_eq!(kendall(&[1.0, 2.0, 3.0], &[5.0, 6.0, 9.0]), Some(1.0));
    assert_eq!(kendall(&[1.0, 2.0, 3.0], &[9.0, 6.0, 5.0]), Some(-1.0));
    assert_eq!(kendall(&[1.0], &[2.0]), None);
}
