//! Figure 3 of the paper: what denoising looks like, with maps of what is left.

use super::report::{Material, Section, links};
use crate::error_map::{FULL, error_map};
use crate::html::{as_png, picture};
use maud::{Markup, html};
use proxlift::evaluation::{Peak, psnr};
use proxlift::{Denoiser, Result};
use serde_json::json;

const SIDE: usize = 160;

pub fn write(all: &Material<'_>) -> Result<Section> {
    let (depth, sigma, count) = (all.scale.deepest(), all.sigma, all.pictures.test.len());
    let mut denoisers: Vec<(&str, Denoiser)> = Vec::new();
    for (method, networks) in all.results.networks(depth)? {
        denoisers.extend(networks.into_iter().take(1).map(|network| (method.label(), network.into())));
    }
    denoisers.push(("total variation", Denoiser::total_variation().sigma(sigma)));
    let names = all.pictures.test_names();
    let (mut rows, mut data) = (Vec::new(), Vec::new());
    // The first, and one from the middle: they need not look alike.
    for (number, i) in [0, count / 2].into_iter().take(count).enumerate() {
        let (clean, noisy) = (&all.pictures.test.images()[i], &all.noisy[i]);
        let (mut above, mut below): (Vec<Markup>, Vec<Markup>) = (Vec::new(), Vec::new());
        let mut shown = vec![("clean", clean.clone()), ("noisy", noisy.clone())];
        for (label, denoiser) in &denoisers {
            shown.push((label, denoiser.denoise(noisy)?));
        }
        for (label, image) in shown {
            let score = if label == "clean" { None } else { Some(psnr(clean, &image, Peak::ONE)?) };
            data.push(json!({"image": names[i], "what": label, "psnr": score}));
            let crop = image.centre(SIDE);
            let error = score.map(|_| as_png(error_map(&clean.centre(SIDE), &crop)?)).transpose()?;
            let png = as_png(crop)?;
            let file = format!("figure3-{}-{}", number + 1, slug(label));
            all.folder.figure(&format!("{file}.png"), &png)?;
            if let Some(error) = &error {
                all.folder.figure(&format!("{file}-error.png"), error)?;
            }
            above.push(html! {
                (picture(&png, &format!("{}, {label}", names[i]))) (label)
                @if let Some(score) = score { br; (format!("{score:.2} dB")) }
            });
            let map = |png: Vec<u8>| picture(&png, &format!("error of {label}"));
            below.push(error.map_or_else(Markup::default, map));
        }
        rows.extend([above, below]);
    }
    all.folder.json("figure3.json", &data)?;
    let body = html! {
        (all.caution())
        figure {
            div.wide { table.gallery {
                @for row in rows { tr { @for cell in row { td { (cell) } } } }
            } }
            figcaption {
                "Crops of " (SIDE) " x " (SIDE) " pixels from the middle of two test images, K = " (depth) ", σ = "
                (sigma) ", with PSNR at peak 1 of the whole image. Below each, its error: blue where it is too dark, \
                 orange where it is too bright, full colour at ±" (FULL) "; what has the shape of the image is detail \
                 that was lost. "
                span.files { "Behind it: " (links(&["figure3.json"])) " and the PNG files beside it" }
            }
        }
    };
    Ok(Section {
        id: "figure3",
        title: "Figure 3: visual results",
        short: "clean, noisy and denoised, with maps of the error".into(),
        body,
    })
}

/// A label as a part of a file's name.
fn slug(label: &str) -> String {
    let words = label.to_lowercase().replace('\'', "");
    let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}
