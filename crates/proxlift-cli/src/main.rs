//! `proxlift`: flags -> plan -> work.
fn main() {}
