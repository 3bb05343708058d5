//! stub
/// x
pub struct Model;
/// x
pub struct Provenance;
