//! Table 1 of the paper: SSIM and PSNR on the test images, beside the paper's own figures.

use super::report::{Material, Section, links};
use super::{folder::cell, runs::Method};
use crate::{html::table, scores::summary};
use maud::html;
use proxlift::evaluation::{Peak, psnr, ssim};
use proxlift::{Denoiser, Result, image::Image};

/// What the paper prints: SSIM, its deviation, PSNR, its deviation.
const PAPER: [(&str, [f64; 4]); 3] = [
    ("noisy", [0.3773, 0.0929, 19.7534, 0.3378]),
    ("LB-FB as printed", [0.6504, 0.0874, 26.3502, 0.4448]),
    ("SGD, the paper's grid", [0.6413, 0.0921, 26.1366, 0.4836]),
];

/// The scores of a method: SSIM and PSNR at the peak of the image, then both at peak 1, a mean over seeds for each image.
type Scores = [Vec<f64>; 4];

pub fn write(all: &Material<'_>) -> Result<Section> {
    let (depth, sigma, clean) = (all.scale.deepest(), all.sigma, all.pictures.test.images());
    let mut rows = vec![("noisy", scores(clean, &[all.noisy.to_vec()])?)];
    for (method, networks) in all.results.networks(depth)? {
        let estimates = networks.into_iter().map(|network| Denoiser::from(network).denoise_all(all.noisy));
        rows.push((Method::label(method), scores(clean, &estimates.collect::<Result<Vec<_>>>()?)?));
    }
    let variation = Denoiser::total_variation().sigma(sigma).denoise_all(all.noisy)?;
    rows.push(("total variation", scores(clean, &[variation])?));

    let names = all.pictures.test_names();
    let lines = rows.iter().flat_map(|(method, scores)| {
        names.iter().enumerate().map(move |(i, image)| {
            let numbers = scores.iter().map(|values| cell(values[i]));
            [(*method).to_string(), image.clone()].into_iter().chain(numbers).collect()
        })
    });
    all.folder.csv(
        "table1.csv",
        "method image ssim_own_peak psnr_own_peak ssim_peak_1 psnr_peak_1",
        lines,
    )?;

    let paper = PAPER.iter().filter_map(|(name, [s, s_std, p, p_std])| {
        let (_, scores) = rows.iter().find(|(method, _)| method == name)?;
        let mean = |i: usize| summary(scores[i].iter().copied());
        Some(vec![
            (*name).to_string(),
            format!("{:.4}", mean(0)),
            format!("{s:.4} ± {s_std:.4}"),
            format!("{:.2}", mean(1)),
            format!("{p:.2} ± {p_std:.2}"),
        ])
    });
    let beyond = rows.iter().map(|(name, scores)| {
        let [_, _, ssim, psnr] = scores.each_ref().map(|values| summary(values.iter().copied()));
        vec![(*name).to_string(), format!("{ssim:.4}"), format!("{psnr:.2}")]
    });
    let head = ["own peak", "SSIM", "SSIM in the paper", "PSNR (dB)", "PSNR in the paper"];
    let body = html! {
        (all.caution())
        p {
            "Mean and standard deviation over the " (clean.len()) " test images, K = " (depth) ", σ = " (sigma)
            ", the network of the last epoch. This table has the paper's convention, with white at the largest value of \
             each clean image; the paper does not say which nine images of BSDS it took, so its own column can only be \
             near."
        }
        (table(&head, &paper.collect::<Vec<_>>()))
        h3 { "Beyond the paper, at peak 1" }
        p { "The usual convention, white is 1, and the other denoisers. Outputs are not clipped." }
        (table(&["peak 1", "SSIM", "PSNR (dB)"], &beyond.collect::<Vec<_>>()))
        p.files.faint { "Behind them, image by image: " (links(&["table1.csv"])) }
    };
    let short =
        "SSIM and PSNR beside the paper's figures; beyond them, total variation, Adam and the lifted preset";
    Ok(Section { id: "table1", title: "Table 1: scores on the test images", short: short.into(), body })
}

/// The scores of the estimates that each seed has of all clean images.
fn scores(clean: &[Image], estimates: &[Vec<Image>]) -> Result<Scores> {
    let scores = |of: fn(&Image, &Image, Peak) -> Result<f64>, peak: Peak| {
        let mean = |(i, clean)| {
            let values = estimates.iter().map(|seed| of(clean, &seed[i], peak));
            Ok(values.collect::<Result<Vec<_>>>()?.iter().sum::<f64>() / estimates.len() as f64)
        };
        clean.iter().enumerate().map(mean).collect::<Result<Vec<f64>>>()
    };
    let own = Peak::CleanMaximum;
    Ok([scores(ssim, own)?, scores(psnr, own)?, scores(ssim, Peak::ONE)?, scores(psnr, Peak::ONE)?])
}
