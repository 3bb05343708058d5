//! How large the tiles of a picture are.

use proxlift::engine::Tiles;
use proxlift::network::Network;

/// Bytes that the tiles of all workers take together, so that a browser gives them.
const ALL_BYTES: u64 = 700 << 20;

/// Numbers of tiles that are considered.
const MOST_TILES: usize = 400;

/// More work than the least that is worth it for smaller tiles, of which the first are on the screen sooner.
const WORTH: f64 = 1.03;

/// Bytes that a tile takes: so that no worker waits for the others at the end, with little computed twice at the edges.
pub fn tile_bytes(network: &Network<f32>, (height, width): (usize, usize), workers: usize) -> usize {
    let architecture = network.architecture();
    let [height, width] =
        [height, width].map(|side| (side + 2 * network.border).div_ceil(architecture.stride()));
    let whole = Tiles::whole(height, width).bytes(architecture);
    let cuts = (1..=MOST_TILES as u64).map(|parts| {
        let bytes = (whole / parts) as usize;
        let tiles = Tiles::new(architecture, height, width, bytes);
        let rounds = tiles.count().div_ceil(workers);
        let work = rounds as f64 * tiles.pixels() as f64 / tiles.count() as f64;
        (bytes, tiles, work)
    });
    let cuts: Vec<_> = cuts.collect();
    let fits = |tiles: &Tiles| tiles.bytes(architecture) * workers as u64 <= ALL_BYTES;
    let least =
        cuts.iter().filter(|(_, tiles, _)| fits(tiles)).map(|cut| cut.2).fold(f64::INFINITY, f64::min);
    let good = cuts.iter().rev().find(|(_, tiles, work)| fits(tiles) && *work <= WORTH * least);
    good.map_or(ALL_BYTES as usize / workers, |cut| cut.0)
}
