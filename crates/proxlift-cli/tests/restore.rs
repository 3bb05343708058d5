//! `proxlift restore` from outside.

mod common;

use common::{Desk, clean};
use proxlift::evaluation::{Peak, psnr};
use proxlift::image::io::{self, Depth, Picture};
use proxlift::image::{Channels, Image, noise::add_gaussian};
use proxlift::restoration::{Border, Degradation, Kernel, Restorer};

fn put(desk: &Desk, name: &str, image: &Image) {
    io::write(desk.path(name), &Picture::new(image.clone(), Depth::Sixteen)).unwrap();
}

fn score(desk: &Desk, name: &str, clean: &Image) -> f64 {
    psnr(clean, &io::read(desk.path(name)).unwrap().image, Peak::ONE).unwrap()
}

/// A kernel without symmetry in files of all kinds: they must say the same.
fn kernel_files(desk: &Desk) -> Vec<&'static str> {
    let weights = [0.0f32, 0.2, 0.0, 0.4, 1.0, 0.0, 0.0, 0.4, 0.0];
    put(desk, "k.png", &Image::new(1, 3, 3, weights.to_vec()).unwrap());
    io::write(
        desk.path("k.tif"),
        &Picture::new(Image::new(1, 3, 3, weights.to_vec()).unwrap(), Depth::Float),
    )
    .unwrap();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }";
    let header = format!("{header:<117}\n");
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend_from_slice(header.as_bytes());
    weights.iter().for_each(|w| npy.extend_from_slice(&w.to_le_bytes()));
    std::fs::write(desk.path("k.npy"), npy).unwrap();
    vec!["k.png", "k.tif", "k.npy"]
}

#[test]
fn blurs_are_undone_with_kernels_from_all_files() {
    let (desk, clean) = (Desk::new(), clean(Channels::Grey));
    let files = kernel_files(&desk);
    let kernel = Kernel::open(&desk.path("k.npy")).unwrap();
    let blur = Restorer::new(Degradation::Blur(kernel)).border(Border::Mirrored);
    let seen = add_gaussian(&blur.degrade(&clean).unwrap(), 0.01, 1, 0).unwrap();
    put(&desk, "seen.png", &seen);
    let before = score(&desk, "seen.png", &clean);
    for file in files {
        let flags = ["restore", "seen.png", "--blur", file, "--sigma", "0.01", "--prior", "small"];
        let (out, err) = desk.succeeds(&[&flags[..], &["--overwrite", "--border", "mirrored"]].concat());
        assert!(
            out.is_empty() && err.contains("wrote seen-restored.png") && err.contains("residual"),
            "{err}"
        );
        assert!(score(&desk, "seen-restored.png", &clean) > before + 1.5, "{file}");
    }
    for words in ["gaussian:0.7", "box:3", "motion:3,30"] {
        let flags = ["restore", "seen.png", "--blur", words, "--prior", "tv", "-o", "x.png", "--overwrite"];
        let (_, err) = desk.succeeds(&flags);
        assert!(err.contains("objective") && err.contains("estimated"), "{err}");
    }
}

#[test]
fn gaps_are_filled_and_mosaics_undone() {
    let (desk, clean) = (Desk::new(), clean(Channels::Rgb));
    let (height, width) = (clean.height(), clean.width());
    let missing = |i: usize| i * 7 % 10 < 5;
    let mask = (0..height * width).map(|i| f32::from(missing(i))).collect();
    put(&desk, "mask.png", &Image::new(1, height, width, mask).unwrap());
    let mut seen = clean.clone();
    seen.data_mut()
        .iter_mut()
        .enumerate()
        .filter(|(i, _)| missing(i % (height * width)))
        .for_each(|(_, v)| *v = 1.0);
    put(&desk, "holes.png", &seen);
    let flags = ["restore", "holes.png", "--inpaint", "mask.png", "--prior", "small", "--json"];
    let (out, _) = desk.succeeds(&[&flags[..], &["--before-after", "sheet.png"]].concat());
    let facts: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((facts["width"].as_u64(), facts["estimated"].as_bool()), (Some(width as u64), Some(false)));
    assert!(facts["residual"].as_f64().unwrap() < 0.1 && facts["iterations"].as_u64().unwrap() > 2);
    assert!(
        score(&desk, "holes-restored.png", &clean) > 24.0,
        "{}",
        score(&desk, "holes-restored.png", &clean)
    );
    assert!(desk.path("sheet.png").exists());
    // One value at each pixel, as a camera has it.
    let at = |i: usize| [[0, 1], [1, 2]][i / width % 2][i % width % 2];
    let mosaic = (0..height * width).map(|i| clean.plane(at(i))[i]).collect();
    put(&desk, "raw.png", &Image::new(1, height, width, mosaic).unwrap());
    desk.succeeds(&["restore", "raw.png", "--demosaic", "rggb", "--prior", "small", "-o", "colour.png"]);
    assert!(score(&desk, "colour.png", &clean) > 24.0, "{}", score(&desk, "colour.png", &clean));
}

#[test]
fn pictures_are_enlarged() {
    let (desk, clean) = (Desk::new(), clean(Channels::Grey));
    let small = Restorer::new(Degradation::Small { factor: 2, kernel: Kernel::cubic(2) });
    put(&desk, "small.png", &small.border(Border::Mirrored).degrade(&clean).unwrap());
    let flags =
        ["restore", "small.png", "--upscale", "2", "--sigma", "0", "--prior", "small", "-o", "large.png"];
    desk.succeeds(&[&flags[..], &["--before-after", "sheet.png"]].concat());
    let large = io::read(desk.path("large.png")).unwrap().image;
    assert_eq!(large.shape(), clean.shape());
    assert!(score(&desk, "large.png", &clean) > 22.0, "{}", score(&desk, "large.png", &clean));
}

#[test]
fn what_cannot_be_restored_is_told() {
    let desk = Desk::new();
    desk.grey("a.png");
    put(&desk, "zero.png", &Image::zeros(1, 3, 3).unwrap());
    put(&desk, "white.png", &Image::new(1, 32, 40, vec![1.0; 32 * 40]).unwrap());
    put(&desk, "other.png", &Image::zeros(1, 9, 9).unwrap());
    let float = |name: &str, value: f32| {
        let image = Image::new(1, 1, 2, vec![1.0, value]).unwrap();
        io::write(desk.path(name), &Picture::new(image, Depth::Float)).unwrap();
    };
    float("negative.tif", -0.5);
    desk.text("text.npy");
    let blur = |kernel: &'static str| ["restore", "a.png", "--prior", "tv", "--blur", kernel];
    desk.refuses(&["restore", "a.png"], &["--blur", "--upscale"]);
    desk.refuses(&blur("zero.png"), &["zero.png", "empty"]);
    desk.refuses(&blur("negative.tif"), &["negative.tif", "negative"]);
    desk.refuses(&blur("text.npy"), &["text.npy", "NumPy"]);
    desk.refuses(&blur("missing.npy"), &["missing.npy"]);
    desk.refuses(&blur("box:33"), &["a.png", "more than the picture"]);
    desk.refuses(&blur("gaussian:0"), &["Gaussian"]);
    desk.refuses(&blur("gaussian:x"), &["not a number"]);
    desk.refuses(&blur("motion:7"), &["angle"]);
    desk.refuses(&["restore", "a.png", "--inpaint", "white.png"], &["white.png", "no known pixel"]);
    desk.refuses(&["restore", "a.png", "--inpaint", "other.png"], &["9 x 9", "40 x 32"]);
    desk.refuses(&["restore", "a.png", "--upscale", "5"], &["--upscale"]);
    desk.refuses(&["restore", "a.png", "--demosaic", "rgbg"], &["--demosaic"]);
    desk.refuses(&["restore", "a.png", "--upscale", "2", "--inpaint", "white.png"], &["cannot be used"]);
    desk.refuses(&["restore", "a.png", "--blur", "box:3", "--likelihood", "poisson"], &["--gain"]);
    desk.refuses(&["restore", "a.png", "--blur", "box:3", "--gain", "1"], &["poisson"]);
    desk.refuses(&["restore", "a.png", "--blur", "box:3", "--prior", "none"], &["none"]);
    desk.refuses(&["restore", "a.png", "--blur", "box:3", "--sigma", "-1"], &["sigma"]);
    desk.refuses(&["restore", "a.png", "--blur", "box:3", "-o", "a.png"], &["a.png"]);
    desk.refuses(&["restore", "none.png", "--blur", "box:3"], &["none.png"]);
}

#[test]
fn a_learned_convex_prior_denoises_and_deblurs_to_a_proven_gap() {
    let (desk, clean) = (Desk::new(), clean(Channels::Grey));
    let blur = Restorer::new(Degradation::Blur(Kernel::gaussian(1.0).unwrap())).border(Border::Circular);
    put(&desk, "noisy.png", &add_gaussian(&clean, 0.1, 1, 0).unwrap());
    put(&desk, "seen.png", &add_gaussian(&blur.degrade(&clean).unwrap(), 0.02, 1, 0).unwrap());
    let train = "train --convex --start cosines --kernel 3 --features 8 --depth 4 --knots 3 --lambda 0.06 --count 40 --epochs 1 \
                 --batch 4 --out run -q";
    desk.succeeds(&train.split_whitespace().collect::<Vec<_>>());
    let model = "run/model.safetensors";
    let denoise = ["denoise", "noisy.png", "-o", "clean.png", "--sigma", "0.1", "--overwrite", "--model"];
    let (_, err) = desk.succeeds(&[&denoise[..], &[model, "--tolerance", "1e-4"]].concat());
    assert!(err.contains("iterations to a gap of"), "{err}");
    assert!(score(&desk, "clean.png", &clean) > score(&desk, "noisy.png", &clean) + 3.0);
    let (out, _) = desk.succeeds(&[&denoise[..], &[model, "--tolerance", "1e-3", "--json"]].concat());
    let facts: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    let gap = facts["proof"]["gap"].as_f64().unwrap();
    assert!(gap <= 1e-3 && facts["proof"]["iterations"].as_u64().unwrap() > 1, "{facts}");
    desk.refuses(&[&denoise[..], &["small", "--tolerance", "1e-3"]].concat(), &["layers are all the same"]);

    let prior = format!("convex:{model}");
    let flags = [
        "restore",
        "seen.png",
        "--blur",
        "gaussian:1.0",
        "--sigma",
        "0.02",
        "--border",
        "circular",
        "--json",
    ];
    let (out, _) = desk.succeeds(&[&flags[..], &["--prior", &prior, "--tolerance", "1e-4"]].concat());
    let facts: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    let [gap, objective] = ["gap", "objective"].map(|key| facts[key].as_f64().unwrap());
    assert!(facts["settled"] == true && gap <= 1e-4 * objective && gap >= 0.0, "{facts}");
    assert!(score(&desk, "seen-restored.png", &clean) > score(&desk, "seen.png", &clean) + 0.5);
    let few = ["--prior", &prior, "--tolerance", "0", "--iterations", "30", "-o", "few.png"];
    let (out, _) = desk.succeeds(&[&flags[..], &few].concat());
    let facts: serde_json::Value = serde_json::from_str(out.lines().next().unwrap()).unwrap();
    assert!(facts["iterations"] == 30 && facts["settled"] == false, "{facts}");
    let built_in = ["--prior", "convex", "-o", "built-in.png"];
    desk.succeeds(&[&flags[..], &built_in].concat());
    desk.succeeds(&[&flags[..], &["--prior", "convex", "--strength", "5", "-o", "smooth.png"]].concat());
    assert!(score(&desk, "built-in.png", &clean) > score(&desk, "smooth.png", &clean));
    desk.refuses(
        &[&flags[..], &["--prior", "convex", "--strength", "0", "-o", "x.png"]].concat(),
        &["strength"],
    );
}
