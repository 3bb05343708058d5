//! Built-in models: nothing has to be downloaded to denoise.
//!
//! Each comes in two versions, for grey and for colour pictures, but `photo`, which is for colour alone. They are the files of `crates/proxlift/models`, as
//! `proxlift train` wrote them; their provenance says how.

use crate::{Error, Result, image::Channels, model::Model};
use std::{path::Path, sync::OnceLock};

/// A built-in model.
///
/// ```
/// use proxlift::{Denoiser, image::Channels, model::BuiltIn};
/// let model = BuiltIn::Small.model(Channels::Grey);
/// println!("{}, trained for sigma {}", model.network, model.sigma);
/// let denoiser = Denoiser::from(BuiltIn::Small);
/// assert_eq!(denoiser.trained_sigma(Channels::Grey), Some(model.sigma));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// Few layers and features: the fastest.
    Small,
    /// The highest quality.
    Best,
    /// For the noise that cameras leave in photographs, in colour; for grey pictures it is [`BuiltIn::Best`].
    Photo,
    /// The proximity operator of a learned convex function, which is [solved for](crate::Denoiser::tolerance): what it does is
    /// proven. The prior of `restore` that has an optimum.
    Convex,
    /// The same of a weakly convex function, with which what is minimised is still convex: better, and not non-expansive. For
    /// grey pictures; in colour it is [`BuiltIn::Convex`].
    WeaklyConvex,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Small, Self::Best, Self::Photo, Self::Convex, Self::WeaklyConvex];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Best => "best",
            Self::Photo => "photo",
            Self::Convex => "convex",
            Self::WeaklyConvex => "weakly-convex",
        }
    }

    /// The model of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// The model file; in a browser, what the page provided as such.
    #[cfg(not(target_family = "wasm"))]
    pub fn bytes(self, channels: Channels) -> &'static [u8] {
        match (self, channels) {
            (Self::Small, Channels::Grey) => include_bytes!("../../models/grey-small.safetensors"),
            (Self::Small, Channels::Rgb) => include_bytes!("../../models/colour-small.safetensors"),
            (Self::Best | Self::Photo, Channels::Grey) => {
                include_bytes!("../../models/grey-best.safetensors")
            }
            (Self::Best, Channels::Rgb) => include_bytes!("../../models/colour-best.safetensors"),
            (Self::Photo, Channels::Rgb) => include_bytes!("../../models/colour-photo.safetensors"),
            (Self::Convex, Channels::Grey) => include_bytes!("../../models/grey-convex.safetensors"),
            (Self::Convex | Self::WeaklyConvex, Channels::Rgb) => {
                include_bytes!("../../models/colour-convex.safetensors")
            }
            (Self::WeaklyConvex, Channels::Grey) => {
                include_bytes!("../../models/grey-weakly-convex.safetensors")
            }
        }
    }

    /// The model file; in a browser, what the page provided as such.
    #[cfg(target_family = "wasm")]
    pub fn bytes(self, channels: Channels) -> &'static [u8] {
        let file = match (self, channels) {
            (Self::Small, Channels::Grey) => "grey-small",
            (Self::Small, Channels::Rgb) => "colour-small",
            (Self::Best | Self::Photo, Channels::Grey) => "grey-best",
            (Self::Best, Channels::Rgb) => "colour-best",
            (Self::Photo, Channels::Rgb) => "colour-photo",
            (Self::Convex, Channels::Grey) => "grey-convex",
            (Self::Convex | Self::WeaklyConvex, Channels::Rgb) => "colour-convex",
            (Self::WeaklyConvex, Channels::Grey) => "grey-weakly-convex",
        };
        crate::storage::provided(file)
    }

    /// The model for pictures with these channels, read when it is first asked for.
    pub fn model(self, channels: Channels) -> &'static Model {
        static MODELS: [OnceLock<Model>; 10] = [const { OnceLock::new() }; 10];
        let model = &MODELS[2 * self as usize + usize::from(channels == Channels::Rgb)];
        model.get_or_init(|| {
            Model::from_bytes(self.bytes(channels)).expect("a test reads all built-in models")
        })
    }
}

impl Model {
    /// A built-in model for pictures with these channels by its name, or a model file.
    ///
    /// ```
    /// use proxlift::{image::Channels, model::Model};
    /// assert_eq!(Model::open("best", Channels::Rgb)?.network.architecture().channels, 3);
    /// assert!(Model::open("huge", Channels::Rgb).unwrap_err().to_string().contains("small, best, photo, convex and weakly-convex"));
    /// # Ok::<(), proxlift::Error>(())
    /// ```
    pub fn open(name: &str, channels: Channels) -> Result<Self> {
        if let Some(built_in) = BuiltIn::named(name) {
            return Ok(built_in.model(channels).clone());
        }
        if !Path::new(name).exists() {
            let names = BuiltIn::ALL.map(BuiltIn::name).join(", ").replace(", weakly", " and weakly");
            let reason = format!(
                "there is no such file, and no built-in model of that name; the built-in ones are {names}"
            );
            return Err(Error::file(name, reason));
        }
        Self::load(name)
    }
}
