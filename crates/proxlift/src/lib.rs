//! An image denoiser for the CPU: unfolded proximal networks, run and trained.
//!
//! Denoise a picture with the built-in model; the noise level is estimated:
//!
//! ```
//! # fn main() -> proxlift::Result<()> {
//! # let folder = std::env::temp_dir().join(format!("proxlift-crate-page-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let (noisy, clean) = (folder.join("noisy.png"), folder.join("clean.png"));
//! # let scene = proxlift::dataset::synthetic::dead_leaves(1, 0, 64, 64, proxlift::image::Channels::Grey)?;
//! # let scene = proxlift::image::noise::add_gaussian(&scene, 0.1, 1, 0)?;
//! # proxlift::image::io::write(&noisy, &proxlift::image::io::Picture::new(scene, proxlift::image::io::Depth::Eight))?;
//! use proxlift::{Denoiser, image::io};
//!
//! let mut picture = io::read(&noisy)?;
//! picture.image = Denoiser::best().denoise(&picture.image)?;
//! io::write(&clean, &picture)?;
//! # assert_ne!(std::fs::read(&noisy).unwrap(), std::fs::read(&clean).unwrap());
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! [`Denoiser`] also takes a given noise level, a model of your own, total variation, and pictures of any size.
//!
//! Train a network, here a tiny one on procedural pictures, and use it:
//!
//! ```
//! # fn main() -> proxlift::Result<()> {
//! # let folder = std::env::temp_dir().join(format!("proxlift-crate-page-model-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let path = folder.join("mine.safetensors");
//! use proxlift::dataset::ImageSet;
//! use proxlift::training::{Config, EpochRecord, Session, Settings};
//! use proxlift::{Denoiser, engine, image::Channels};
//!
//! let images = ImageSet::embedded_train(20, 64, Channels::Grey, 0)?; // or ImageSet::from_folder("photos", ...)
//! let settings = Settings { depth: Some(4), features: Some(8), epochs: Some(3), ..Settings::default() };
//! let config = Config::resolve(&Settings { count: Some(80), ..settings })?; // the rest is the preset's
//! let patches = config.patches(images.into())?;
//!
//! let mut session = Session::new(&config, config.network()?, &patches)?;
//! session.run(&*engine::standard(), &mut |epoch: &EpochRecord| println!("epoch {}: loss {}", epoch.epoch, epoch.loss))?;
//! session.model("20 procedural pictures").save(&path)?;
//! let denoiser = Denoiser::open(path.to_str().unwrap())?;
//! # let clean = proxlift::dataset::synthetic::dead_leaves(2, 0, 64, 64, Channels::Grey)?;
//! # let noisy = proxlift::image::noise::add_gaussian(&clean, 0.1, 1, 0)?;
//! # use proxlift::evaluation::{Peak, psnr};
//! # assert!(psnr(&clean, &denoiser.denoise(&noisy)?, Peak::ONE)? > psnr(&clean, &noisy, Peak::ONE)?);
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! The flow of the library is the order of its modules:
//!
//! ```text
//! image -> dataset -> network(operator, prox) -> engine -> training -> evaluation
//! ```
//!
//! `docs/notation.md` in the repository maps every symbol of the paper (Wang, Benning and Repetti, MLSP 2024) to its name
//! here, and `docs/extending.md` shows how to add a proximity operator, an unrolled algorithm, a trainer or an engine.

#[macro_use]
pub mod error;

pub mod analysis;
pub mod dataset;
pub mod denoiser;
pub mod engine;
pub mod evaluation;
pub mod field;
pub mod fixed_point;
pub mod image;
pub mod laws;
pub mod lifting;
mod matrix;
pub mod memory;
pub mod model;
pub mod named;
pub mod network;
pub mod noise;
pub mod operator;
pub mod prox;
pub mod random;
pub mod real;
pub mod restoration;
pub mod solver;
pub mod storage;
pub mod team;
pub mod training;

pub use denoiser::Denoiser;
pub use error::{Error, Result};
pub use image::Image;
pub use real::Real;
