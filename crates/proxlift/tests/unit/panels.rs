//! How rows are cut into blocks.

use super::cuts;

#[test]
fn few_rows_are_left_alone() {
    let threes = [1, 2, 3, 4, 5, 25].map(|rows| cuts(rows, 3, 2));
    assert_eq!(threes, [(0, 0), (0, 2), (3, 3), (0, 4), (3, 5), (21, 25)]);
    let sixes = [1, 3, 6, 16, 17, 32].map(|rows| cuts(rows, 6, 4));
    assert_eq!(sixes, [(0, 0), (0, 0), (6, 6), (12, 16), (12, 16), (24, 32)]);
}
