//! What a training sees, from its folders or painted, with the test set.

use crate::files::short_name;
use crate::test_set::{LEAST_SIDE, check_sides, images};
use proxlift::dataset::{ImageSet, Pairs, PatchNoise, Patches};
use proxlift::image::Channels;
use proxlift::team::Ranks;
use proxlift::training::{Config, Material, Source, Validation};
use proxlift::{Error, Result};

/// The seed of the noise on the test set, that of `proxlift evaluate`.
const TEST_SEED: u64 = 0;

pub struct Data {
    pub patches: Patches,
    /// What chooses the best network.
    pub validation: Validation,
    /// What is scored at the end, unless that is the same.
    test: Option<Validation>,
    /// The training data and the test set, in a line each.
    pub described: String,
    pub test_described: String,
    pub bytes: usize,
}

impl Data {
    /// Loads or paints everything; settles the count of patches in `config`.
    pub fn load(config: &mut Config, ranks: &Ranks) -> Result<Self> {
        let channels = if config.architecture.colours() == 1 { Channels::Grey } else { Channels::Rgb };
        let settings = config.settings.clone();
        let folder = settings.noisy.as_ref().or(settings.data.as_ref());
        let source = match (&settings.noisy, &settings.data) {
            (Some(noisy), Some(partners)) => {
                Source::Pairs(Pairs::from_folders_among(noisy, partners, channels, ranks)?)
            }
            (Some(noisy), None) => Source::Noisy(ImageSet::from_folder_in_memory(noisy, channels, ranks)?),
            (None, Some(folder)) => Source::Clean(ImageSet::from_folder_among(folder, channels, ranks)?),
            (None, None) => Source::BuiltIn,
        };
        let material = config.material(source).map_err(|error| match folder {
            Some(folder) => Error::file(folder, error.to_string()),
            None => error,
        })?;
        let described = describe(config, &material);
        let Material { patches, validation, bytes, .. } = material;
        let (test, test_described) = match (patches.spec().noise, &settings.test) {
            (PatchNoise::White, folder) => {
                let test = images(folder.as_deref(), channels, usize::MAX)?;
                check_sides(&test, LEAST_SIDE, "a test picture")?;
                let of = folder.as_ref().map(|folder| format!("pictures of {}", folder.display()));
                let described = format!("{} {}", test.len(), of.as_deref().unwrap_or("built-in pictures"));
                (Some(Validation::white(&test, usize::MAX, config.sigma, TEST_SEED)?), described)
            }
            (PatchNoise::Own, _) if settings.data.is_none() => {
                (None, format!("{} held-out patches, against others that are noisy too", validation.len()))
            }
            _ => (None, format!("{} held-out pictures", validation.len())),
        };
        Ok(Self { patches, validation, test, described, test_described, bytes })
    }

    /// What is scored at the end.
    pub fn test(&self) -> &Validation {
        self.test.as_ref().unwrap_or(&self.validation)
    }
}

/// The training data in a line.
fn describe(config: &Config, material: &Material) -> String {
    let Material { pictures, held_out, .. } = material;
    match (&config.settings.noisy, &config.settings.data, material.painted) {
        (_, _, Some(side)) => format!("{pictures} built-in pictures of {side} x {side} pixels"),
        (Some(noisy), Some(partners), _) => {
            let (noisy, partners) = (short_name(noisy), short_name(partners));
            format!("{pictures} pairs of {noisy} and {partners}, {held_out} held out")
        }
        (Some(noisy), None, _) => {
            format!("{pictures} noisy pictures of {}, {held_out} held out", short_name(noisy))
        }
        (None, folder, _) => {
            let name = folder.as_deref().map(short_name).unwrap_or_default();
            match pictures {
                1 => format!("1 picture of {name}"),
                _ => format!("{pictures} pictures of {name}, {held_out} held out"),
            }
        }
    }
}
