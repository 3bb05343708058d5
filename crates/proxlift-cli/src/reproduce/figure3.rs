//! Figure 3 of the paper: what denoising looks like, with maps of what is left.

use super::plan::Method;
use super::sections::{Material, Section};
use crate::chart::escape;
use crate::error_map::{FULL, error_map};
use crate::html::{as_png, picture};
use crate::train::data::centre;
use anyhow::Result;
use proxlift::Denoiser;
use proxlift::evaluation::{Peak, psnr};
use serde_json::json;

/// Test images that are shown, and the side of their crops.
const SHOWN: usize = 2;
const SIDE: usize = 160;

/// Draws it and writes what is behind it.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write(all: &Material<'_>) -> Result<Section> {
    let depth = all.scale.deepest();
    let sigma = all.sigma();
    let noisy = all.pictures.noisy(sigma)?;
    let mut denoisers = Vec::new();
    for method in Method::ALL {
        if let Some(model) = all.results.models(method, depth)?.into_iter().next() {
            denoisers.push((method.label(), Denoiser::from(model.network)));
        }
    }
    denoisers.push(("total variation", Denoiser::total_variation().sigma(sigma)));
    let names = all.pictures.test_names();
    let (mut rows, mut data) = (String::new(), Vec::new());
    // The first, and one from the middle: they need not look alike.
    let chosen = [0, all.pictures.test.len() / 2];
    for (number, &i) in chosen.iter().take(SHOWN.min(all.pictures.test.len())).enumerate() {
        let clean = &all.pictures.test.images()[i];
        let mut cells = vec![("clean".to_string(), clean.clone()), ("noisy".to_string(), noisy[i].clone())];
        for (label, denoiser) in &denoisers {
            cells.push(((*label).to_string(), denoiser.denoise(&noisy[i])?));
        }
        let (mut above, mut below) = (String::new(), String::new());
        for (label, image) in &cells {
            let crop = centre(image, SIDE)?;
            let words = label.to_lowercase().replace('\'', "");
            let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
            let slug = words.collect::<Vec<_>>().join("-");
            let png = as_png(crop.clone())?;
            all.folder.figure(&format!("figure3-{}-{slug}.png", number + 1), &png)?;
            let is_clean = label == "clean";
            let score = psnr(clean, image, Peak::ONE)?;
            let said = if is_clean { String::new() } else { format!("<br>{score:.2} dB") };
            above += &format!(
                "<td>{}{}{said}</td>",
                picture(&png, &format!("{}, {label}", names[i])).into_string(),
                escape(label)
            );
            let map = if is_clean {
                String::new()
            } else {
                let png = as_png(error_map(&centre(clean, SIDE)?, &crop)?)?;
                all.folder.figure(&format!("figure3-{}-{slug}-error.png", number + 1), &png)?;
                picture(&png, &format!("error of {label}")).into_string()
            };
            below += &format!("<td>{map}</td>");
            data.push(
                json!({"image": names[i], "what": label, "psnr": if is_clean { None } else { Some(score) }}),
            );
        }
        rows += &format!("<tr>{above}</tr>\n<tr>{below}</tr>\n");
    }
    all.folder.figure("figure3.json", format!("{:#}\n", json!(data)).as_bytes())?;
    let caution = all.caution();
    let html = format!(
        "{caution}<figure><div class=\"wide\"><table class=\"gallery\">{rows}</table></div><figcaption>Crops of {SIDE} x \
         {SIDE} pixels from the middle of two test images, K = {depth}, σ = {sigma}, with PSNR at peak 1 of the whole \
         image. Below each, its error: blue where it is too dark, orange where it is too bright, full colour at ±{FULL}; \
         what has the shape of the image is detail that was lost. <span class=\"files\">Behind it: \
         <a href=\"figures/figure3.json\">figure3.json</a> and the PNG files beside it</span></figcaption></figure>\n"
    );
    Ok(Section {
        id: "figure3",
        title: "Figure 3: visual results",
        short: "clean, noisy and denoised, with maps of the error".into(),
        html,
    })
}
