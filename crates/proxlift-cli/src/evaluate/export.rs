//! The noisy pictures as files, so that other programs can denoise the very same.

use crate::scores::noisy;
use crate::{files::check_free, output, test_set::TestSet};
use proxlift::image::io::{self, Depth, Picture};
use proxlift::{Error, Result};
use rayon::prelude::*;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Writes the first `count` pictures with their noise below `folder`, as float TIFF.
pub fn export(
    pictures: &TestSet,
    count: usize,
    sigma: f64,
    seed: u64,
    folder: &Path,
    overwrite: bool,
) -> Result<()> {
    let paths: Vec<PathBuf> = (0..count)
        .map(|i| {
            let mut path = folder.join(pictures.name(i)).into_os_string();
            path.push(".tif");
            path.into()
        })
        .collect();
    let mut taken = HashMap::new();
    for (i, path) in paths.iter().enumerate() {
        if let Some(other) = taken.insert(path, i) {
            let (a, b) = (&pictures.names()[other], &pictures.names()[i]);
            let reason = format!(
                "both {} and {} would be written there: rename one of them",
                a.display(),
                b.display()
            );
            return Err(Error::file(path, reason));
        }
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(Error::io(parent))?;
        check_free(path, overwrite)?;
    }
    for few in pictures.few_at_a_time(count) {
        let noisy = noisy(&pictures.read(few.clone())?, few.start, sigma, seed)?;
        let files = paths[few].par_iter().zip(noisy);
        files
            .map(|(path, image)| io::write(path, &Picture::new(image, Depth::Float)))
            .collect::<Result<()>>()?;
    }
    output::note(format_args!("wrote {count} noisy pictures to {}", folder.display()));
    Ok(())
}
