//! A set of pictures that does not fit into the memory that there is: it streams from a file, to the same bits. A test of its
//! own, since the limit is that of the whole process.
#![allow(missing_docs)]

use proxlift::dataset::{ImageSet, Visit, synthetic::dead_leaves};
use proxlift::image::Channels;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::memory;
use proxlift::team::Ranks;
use proxlift::training::{Config, Settings};
use std::sync::Arc;

#[test]
fn pictures_stream_from_a_file_where_they_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..12 {
        let image = dead_leaves(1, i, 600, 500, Channels::Grey).unwrap();
        io::write(folder.path().join(format!("{i:02}.pgm")), &Picture::new(image, Depth::Eight)).unwrap();
    }
    let config =
        Config::resolve(&Settings { patch: Some(12), count: Some(40), ..Settings::default() }).unwrap();
    let patches = |set: ImageSet| {
        let patches = config.patches(Arc::new(set)).unwrap();
        let mut x = vec![0.0; patches.len() * patches.values()];
        let mut z = x.clone();
        patches.fill(&(0..patches.len()).collect::<Vec<_>>(), Visit::default(), &mut x, &mut z);
        (x, z)
    };
    let read = || ImageSet::from_folder_among(folder.path(), Channels::Grey, Ranks::alone()).unwrap();
    let in_memory = |set: &ImageSet| set.images().iter().filter(|image| !image.data().is_empty()).count();
    let whole = read();
    assert_eq!(in_memory(&whole), 12);
    let whole = patches(whole);
    // 14 MB in single precision, with 10 MB left.
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let used = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let used: u64 = used.trim().trim_end_matches("kB").trim().parse().unwrap();
    memory::limit_to((used << 10) + (10 << 20));
    let streamed = read();
    assert!(streamed.skipped().is_empty() && in_memory(&streamed) < 6, "{}", in_memory(&streamed));
    assert!(patches(streamed) == whole);
}
