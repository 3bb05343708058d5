//! What was done to a picture, in a line for its metadata.

use super::Noise;

/// A line for a result's metadata: the program, what denoised it (`model best`), the noise of the picture, and the strength.
pub fn settings(what: &str, noise: Option<&Noise>, lambda: Option<f64>, strength: f64) -> String {
    let mut line = format!("proxlift {}: {what}", env!("CARGO_PKG_VERSION"));
    match noise {
        Some(noise @ Noise { model: Some(model), .. }) => {
            line += &format!(", noise estimated as {}: {noise}", model.kind);
        }
        Some(noise) => line += &format!(", noise given: {noise}"),
        None => {}
    }
    if let Some(lambda) = lambda {
        line += &format!(", lambda {lambda}");
    }
    line + &format!(", strength {strength}")
}
