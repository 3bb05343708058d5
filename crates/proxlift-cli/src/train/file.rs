//! Settings in TOML files: the same names as the flags.

use proxlift::training::{Config, Settings};
use proxlift::{Error, Result};
use std::path::Path;

pub fn load(path: &Path) -> Result<Settings> {
    parse(&proxlift::storage::read_text(path)?, path)
}

/// The settings of a text, which is that of the file at `path`.
pub fn parse(text: &str, path: &Path) -> Result<Settings> {
    let wrong = |error: toml::de::Error| {
        let line =
            error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let said = error.message().replace("unknown field", "unknown key");
        let said = match said.split_once(", expected one of") {
            Some((said, _)) if said.starts_with("unknown key") => {
                format!("{said}: the keys are the long flags of `proxlift train --help`")
            }
            _ => said,
        };
        Error::file(path, format!("line {line}: {said}"))
    };
    // Read twice: once for the line of a mistake, once by names, which may be those of an older version.
    toml::from_str::<Settings>(text).map_err(wrong)?;
    Settings::from_map(toml::from_str(text).map_err(wrong)?).map_err(|e| Error::file(path, e.to_string()))
}

/// The file that repeats a training.
pub fn text(config: &Config) -> Result<String> {
    let text = toml::to_string(&config.settings)
        .map_err(|e| Error::invalid(format!("the settings cannot be written as TOML: {e}")))?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!("# proxlift {version}; `proxlift train --config` with this file repeats the run.\n{text}"))
}

/// Whether version 0.1 wrote the file, which named settings and their fingerprint in another way.
pub fn is_of_version_0_1(path: &Path) -> bool {
    proxlift::storage::read_text(path).is_ok_and(|text| text.starts_with("# proxlift 0.1."))
}
