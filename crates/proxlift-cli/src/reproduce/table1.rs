//! Table 1 of the paper: SSIM and PSNR on the test images, beside the paper's own figures.

use super::folder::cell;
use super::html::table;
use super::plan::Method;
use super::sections::{Material, Section};
use anyhow::Result;
use proxlift::Denoiser;
use proxlift::evaluation::{Peak, Summary, psnr, ssim};
use proxlift::image::Image;

/// What the paper prints: SSIM, its deviation, PSNR, its deviation.
const PAPER: [(&str, [f64; 4]); 3] = [
    ("noisy", [0.3773, 0.0929, 19.7534, 0.3378]),
    ("LB-FB as printed", [0.6504, 0.0874, 26.3502, 0.4448]),
    ("SGD, the paper's grid", [0.6413, 0.0921, 26.1366, 0.4836]),
];

/// The scores of one method: for each test image, the mean over seeds.
struct Row {
    name: String,
    /// SSIM and PSNR at the peak of the image.
    own: Vec<(f64, f64)>,
    /// SSIM and PSNR at peak 1.
    one: Vec<(f64, f64)>,
}

/// Scores, and writes what is behind the table.
///
/// # Errors
/// When a file cannot be read or written.
pub fn write(all: &Material<'_>) -> Result<Section> {
    let depth = all.scale.deepest();
    let sigma = all.sigma();
    let noisy = all.pictures.noisy(sigma)?;
    let clean = all.pictures.test.images();
    let mut rows = vec![row("noisy", clean, std::slice::from_ref(&noisy))?];
    let variation = Denoiser::total_variation().sigma(sigma).denoise_all(&noisy)?;
    for method in Method::ALL {
        let mut estimates = Vec::new();
        for model in all.results.models(method, depth)? {
            estimates.push(Denoiser::from(model.network).denoise_all(&noisy)?);
        }
        if !estimates.is_empty() {
            rows.push(row(method.label(), clean, &estimates)?);
        }
    }
    rows.push(row("total variation", clean, &[variation])?);
    write_csv(all, &rows)?;

    let caution = all.caution();
    let paper: Vec<Vec<String>> = PAPER
        .iter()
        .filter_map(|(name, printed)| Some((rows.iter().find(|row| row.name == *name)?, printed)))
        .map(|(row, printed)| {
            let [s, s_std, p, p_std] = printed;
            vec![
                row.name.clone(),
                format!("{:.4}", summary(&row.own, |v| v.0)),
                format!("{s:.4} ± {s_std:.4}"),
                format!("{:.2}", summary(&row.own, |v| v.1)),
                format!("{p:.2} ± {p_std:.2}"),
            ]
        })
        .collect();
    let beyond: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.name.clone(),
                format!("{:.4}", summary(&row.one, |v| v.0)),
                format!("{:.2}", summary(&row.one, |v| v.1)),
            ]
        })
        .collect();
    let html = format!(
        "{caution}<p>Mean and standard deviation over the {} test images, K = {depth}, σ = {sigma}, the network of the \
         last epoch. This table has the paper's convention, with white at the largest value of each clean image; the \
         paper does not say which nine images of BSDS it took, so its own column can only be near.</p>\n{}\
         <h3>Beyond the paper, at peak 1</h3>\n<p>The usual convention, white is 1, and the other denoisers. Outputs \
         are not clipped.</p>\n{}<p class=\"files faint\">Behind them, image by image: \
         <a href=\"figures/table1.csv\">table1.csv</a></p>\n",
        clean.len(),
        table(&["own peak", "SSIM", "SSIM in the paper", "PSNR (dB)", "PSNR in the paper"], &paper),
        table(&["peak 1", "SSIM", "PSNR (dB)"], &beyond)
    );
    Ok(Section {
        id: "table1",
        title: "Table 1: scores on the test images",
        short:
            "SSIM and PSNR beside the paper's figures; beyond them, total variation, Adam and the lifted preset"
                .into(),
        html,
    })
}

fn row(name: &str, clean: &[Image], estimates: &[Vec<Image>]) -> proxlift::Result<Row> {
    let scores = |peak: Peak| -> proxlift::Result<Vec<(f64, f64)>> {
        let mean =
            |i: usize, of: fn(&Image, &Image, Peak) -> proxlift::Result<f64>| -> proxlift::Result<f64> {
                let values = estimates.iter().map(|seed| of(&clean[i], &seed[i], peak));
                Ok(values.collect::<proxlift::Result<Vec<_>>>()?.iter().sum::<f64>() / estimates.len() as f64)
            };
        (0..clean.len()).map(|i| Ok((mean(i, ssim)?, mean(i, psnr)?))).collect()
    };
    Ok(Row { name: name.into(), own: scores(Peak::CleanMaximum)?, one: scores(Peak::ONE)? })
}

fn summary(scores: &[(f64, f64)], of: impl Fn(&(f64, f64)) -> f64) -> Summary {
    let values: Vec<f64> = scores.iter().map(of).collect();
    Summary::of(&values).unwrap_or(Summary { count: 0, mean: f64::NAN, std: 0.0 })
}

fn write_csv(all: &Material<'_>, rows: &[Row]) -> Result<()> {
    let names = all.pictures.test_names();
    let lines: Vec<Vec<String>> = rows
        .iter()
        .flat_map(|row| {
            names.iter().zip(row.own.iter().zip(&row.one)).map(|(name, (own, one))| {
                let numbers = [own.0, own.1, one.0, one.1].map(|v| cell(Some(v)));
                [row.name.clone(), name.clone()].into_iter().chain(numbers).collect()
            })
        })
        .collect();
    let head = ["method", "image", "ssim_own_peak", "psnr_own_peak", "ssim_peak_1", "psnr_peak_1"];
    Ok(all.folder.csv("table1.csv", &head, &lines)?)
}
