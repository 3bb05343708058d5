//! Figure 3 of the paper: what denoising looks like, with maps of what is left.

use super::html::picture;
use super::plan::Method;
use super::sections::{Material, Section};
use crate::chart::escape;
use crate::denoiser::Denoiser;
use crate::train::data::centre;
use anyhow::Result;
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::Image;
use proxlift::image::io::{Depth, Format, Picture, encode};
use serde_json::json;

/// Test images that are shown, and the side of their crops.
const SHOWN: usize = 2;
const SIDE: usize = 160;
/// The error that is drawn in full colour.
const FULL: f32 = 0.2;

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
            denoisers.push((method.label(), Denoiser::from_network(model.network, sigma)));
        }
    }
    denoisers.push(("total variation", Denoiser::total_variation_for(sigma)));
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
            let slug = label.to_lowercase().replace(' ', "-");
            let png = as_png(crop.clone())?;
            all.folder.figure(&format!("figure3-{}-{slug}.png", number + 1), &png)?;
            let is_clean = label == "clean";
            let score = psnr(clean, image, Peak::ONE)?;
            let said = if is_clean { String::new() } else { format!("<br>{score:.2} dB") };
            above += &format!(
                "<td>{}{}{said}</td>",
                picture(&png, &format!("{}, {label}", names[i])),
                escape(label)
            );
            let map = if is_clean {
                String::new()
            } else {
                let png = as_png(error_map(&centre(clean, SIDE)?, &crop)?)?;
                all.folder.figure(&format!("figure3-{}-{slug}-error.png", number + 1), &png)?;
                picture(&png, &format!("error of {label}"))
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

fn as_png(image: Image) -> proxlift::Result<Vec<u8>> {
    encode(&Picture::new(image, Depth::Eight), Format::Png)
}

/// The error in colour: white at zero, blue below, orange above.
fn error_map(clean: &Image, estimate: &Image) -> proxlift::Result<Image> {
    const BELOW: [f32; 3] = [0.0, 0.35, 0.70];
    const ABOVE: [f32; 3] = [0.80, 0.33, 0.0];
    let errors = estimate.plane(0).iter().zip(clean.plane(0)).map(|(e, c)| ((e - c) / FULL).clamp(-1.0, 1.0));
    let errors: Vec<f32> = errors.collect();
    let channel = |c: usize| {
        errors.iter().map(move |&e| {
            let full = if e < 0.0 { BELOW[c] } else { ABOVE[c] };
            1.0 + e.abs() * (full - 1.0)
        })
    };
    let data: Vec<f32> = (0..3).flat_map(channel).collect();
    Image::new(3, clean.height(), clean.width(), data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_is_white() {
        let image = Image::new(1, 1, 3, vec![0.1, 0.5, 0.9]).unwrap();
        assert!(error_map(&image, &image).unwrap().data().iter().all(|&v| v == 1.0));
        let above = Image::new(1, 1, 3, vec![0.1, 0.5, 9.0]).unwrap();
        let map = error_map(&image, &above).unwrap();
        assert_eq!((map.plane(0)[2], map.plane(2)[2]), (0.8, 0.0));
    }
}
