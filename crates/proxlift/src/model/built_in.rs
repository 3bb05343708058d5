//! Trained models within the library: nothing has to be downloaded to denoise.
//!
//! Each is there for grey and for colour pictures. They are files of `crates/proxlift/models`, as `proxlift train`
//! wrote them; their provenance tells how.

use crate::Result;
use crate::image::Channels;
use crate::model::Model;

/// A trained model within the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltIn {
    /// Few layers and features: the fastest.
    Small,
    /// The best that there is.
    Best,
}

impl BuiltIn {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Small, Self::Best];

    /// The name that users give.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Best => "best",
        }
    }

    /// The model of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// The file.
    pub fn bytes(self, channels: Channels) -> &'static [u8] {
        match (self, channels) {
            (Self::Small, Channels::Grey) => include_bytes!("../../models/grey-small.safetensors"),
            (Self::Small, Channels::Rgb) => include_bytes!("../../models/colour-small.safetensors"),
            (Self::Best, Channels::Grey) => include_bytes!("../../models/grey-best.safetensors"),
            (Self::Best, Channels::Rgb) => include_bytes!("../../models/colour-best.safetensors"),
        }
    }

    /// The model for pictures with these channels.
    ///
    /// # Errors
    /// When the file within the library is damaged.
    pub fn load(self, channels: Channels) -> Result<Model> {
        Model::from_bytes(self.bytes(channels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_for_its_pictures_and_knows_its_noise() {
        for embedded in BuiltIn::ALL {
            assert_eq!(BuiltIn::named(embedded.name()), Some(embedded));
            for channels in [Channels::Grey, Channels::Rgb] {
                let model = embedded.load(channels).unwrap();
                assert_eq!(model.network.architecture().channels, channels.count());
                assert!(model.sigma > 0.0, "{embedded:?} {channels:?}");
            }
        }
        assert_eq!(BuiltIn::named("huge"), None);
    }
}
