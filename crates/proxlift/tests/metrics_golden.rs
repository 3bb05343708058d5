//! PSNR and SSIM against scikit-image (`reference/ssim.py`), and their edge cases.

use proxlift::evaluation::{Peak, Summary, mse, psnr, ssim};
use proxlift::image::Image;
use serde_json::Value;

/// The formula of `reference/ssim.py`.
fn images(channels: usize, height: usize, width: usize, level: f64, seed: u32) -> (Image, Image) {
    let mut state = seed;
    let (mut clean, mut noisy) = (Vec::new(), Vec::new());
    for i in 0..channels * height * width {
        let (c, y, x) = (i / (height * width), i / width % height, i % width);
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = f64::from(state) / 4_294_967_296.0 - 0.5;
        let wave = (0.21 * x as f64 + 0.5 * c as f64).sin() * (0.13 * y as f64).cos();
        let value = 0.5 + 0.3 * wave + 0.1 * ((x / 7 + y / 5) % 2) as f64;
        clean.push(value as f32);
        noisy.push((value + level * noise) as f32);
    }
    let image = |data| Image::new(channels, height, width, data).unwrap();
    (image(clean), image(noisy))
}

#[test]
fn scores_agree_with_scikit_image() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("data/ssim.json")).unwrap();
    assert_eq!(cases.len(), 6);
    for case in &cases {
        let size = |key: &str| case[key].as_u64().unwrap() as usize;
        let (clean, noisy) = images(
            size("channels"),
            size("height"),
            size("width"),
            case["level"].as_f64().unwrap(),
            size("seed") as u32,
        );
        let near = |got: f64, key: &str, tolerance: f64| {
            let want = case[key].as_f64().unwrap();
            assert!((got - want).abs() < tolerance, "{key}: {got}, scikit-image {want}, in {case}");
        };
        near(ssim(&clean, &noisy, Peak::ONE).unwrap(), "ssim", 1e-6);
        near(psnr(&clean, &noisy, Peak::ONE).unwrap(), "psnr", 1e-4);
        near(psnr(&clean, &noisy, Peak::CleanMaximum).unwrap(), "psnr_clean_maximum", 1e-4);
    }
}

#[test]
fn identical_images_are_perfect() {
    let (clean, _) = images(3, 20, 30, 0.0, 1);
    assert_eq!(psnr(&clean, &clean, Peak::ONE).unwrap(), f64::INFINITY);
    assert!((ssim(&clean, &clean, Peak::ONE).unwrap() - 1.0).abs() < 1e-12);
}

#[test]
fn a_known_error_has_a_known_score() {
    let clean = Image::new(1, 2, 2, vec![0.0, 0.5, 0.25, 0.0]).unwrap();
    let estimate = Image::new(1, 2, 2, vec![0.1, 0.6, 0.35, 0.1]).unwrap();
    assert!((mse(&clean, &estimate).unwrap() - 0.01).abs() < 1e-8);
    assert!((psnr(&clean, &estimate, Peak::ONE).unwrap() - 20.0).abs() < 1e-5);
    assert!((psnr(&clean, &estimate, Peak::CleanMaximum).unwrap() - 13.9794).abs() < 1e-4);
}

#[test]
fn what_cannot_be_scored_is_refused() {
    let (small, other) = (Image::zeros(1, 10, 50).unwrap(), Image::zeros(1, 50, 10).unwrap());
    assert!(ssim(&small, &small, Peak::ONE).unwrap_err().to_string().contains("11 x 11"));
    assert!(psnr(&small, &other, Peak::ONE).unwrap_err().to_string().contains("one shape"));
    assert!(psnr(&small, &small, Peak::CleanMaximum).unwrap_err().to_string().contains("positive"));
    assert!(Summary::of(&[]).is_err());
}

#[test]
fn scores_do_not_depend_on_threads() {
    let (clean, noisy) = images(3, 301, 257, 0.4, 9);
    let score = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (p, s) = (psnr(&clean, &noisy, Peak::ONE), ssim(&clean, &noisy, Peak::ONE));
            (p.unwrap().to_bits(), s.unwrap().to_bits())
        })
    };
    assert_eq!(score(1), score(2));
}

#[test]
fn summaries_have_mean_and_deviation() {
    let summary = Summary::of(&[26.0, 28.0, 30.0]).unwrap();
    assert_eq!((summary.count, summary.mean, summary.std), (3, 28.0, 2.0));
    assert_eq!(Summary::of(&[5.0]).unwrap().std, 0.0);
    assert_eq!(format!("{summary} {summary:.1}"), "28.00 ± 2.00 28.0 ± 2.0");
}
