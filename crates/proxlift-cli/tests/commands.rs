//! `evaluate`, `inspect`, `bench`, `completions` and the program as a whole.

mod common;

use common::Desk;
use proxlift::image::Channels::Rgb;
use proxlift::image::Image;
use proxlift::image::io::{self, Depth, Picture};
use proxlift::model::Model;
use serde_json::Value;
use std::io::Read;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn evaluate_scores_total_variation_on_the_built_in_set() {
    let desk = Desk::new();
    let (out, err) = desk.succeeds(&["evaluate", "--method", "tv", "--sigma", "0.1", "--json", "--verbose"]);
    assert_eq!(err, "");
    let scores = json(&out);
    let number = |key: &str| scores[key].as_f64().unwrap_or_else(|| panic!("{key} in {scores}"));
    assert_eq!(scores["images"], 12);
    assert_eq!((number("sigma"), scores["seed"].as_u64()), (0.1, Some(0)));
    assert!((number("noisy_psnr") - 20.0).abs() < 0.2);
    assert!(number("psnr") > 25.5 && number("psnr_image_peak") < number("psnr"));
    assert!(number("ssim") > number("noisy_ssim") + 0.2);
    assert!(number("psnr_std") > 0.0 && number("ssim_std") > 0.0);
    assert!(number("seconds") > 0.0 && number("megapixels_per_second") > 0.0);
    assert_eq!(scores["per_image"].as_array().unwrap().len(), 12);
}

#[test]
fn evaluate_repeats_on_any_number_of_threads() {
    let desk = Desk::new();
    desk.model("m.safetensors", 1);
    for choice in [["--method", "tv"], ["--model", "m.safetensors"]] {
        let psnr = |more: &[&str]| {
            let arguments = [&["evaluate", "--json", "--limit", "3"], &choice[..], more].concat();
            json(&desk.succeeds(&arguments).0)["psnr"].as_f64().unwrap()
        };
        assert_eq!(psnr(&["--threads", "1"]), psnr(&["--threads", "3"]));
        assert_ne!(psnr(&["--seed", "1"]), psnr(&["--seed", "2"]));
    }
}

#[test]
fn evaluate_reads_a_colour_folder_as_the_denoiser_needs() {
    let desk = Desk::new();
    desk.picture("set/a.png", Rgb, Depth::Sixteen, true);
    desk.picture("set/deep/b.tif", Rgb, Depth::Float, false);
    desk.text("set/broken.png");
    desk.model("grey.safetensors", 1);
    desk.model("rgb.safetensors", 3);
    let base = ["evaluate", "--data", "set", "--json"];
    let cases: [(&[&str], u64); 4] = [
        (&["--model", "grey.safetensors"], 1),
        (&["--model", "rgb.safetensors"], 3),
        (&["--method", "tv"], 3),
        (&["--method", "tv", "--grey"], 1),
    ];
    for (choice, channels) in cases {
        let (out, err) = desk.succeeds(&[&base, choice].concat());
        assert_eq!(json(&out)["channels"], channels, "{choice:?}");
        assert_eq!((&json(&out)["images"], &json(&out)["skipped"]), (&Value::from(2), &Value::from(1)));
        assert!(err.starts_with("warning: skipped: ") && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn evaluate_takes_a_black_picture_without_a_score_at_its_own_peak() {
    let desk = Desk::new();
    desk.grey("set/a.png");
    let black = Picture::new(Image::zeros(1, 32, 40).unwrap(), Depth::Eight);
    io::write(desk.path("set/black.png"), &black).unwrap();
    let scores = json(
        &desk.succeeds(&["evaluate", "--method", "tv", "--data", "set", "--grey", "--json", "--verbose"]).0,
    );
    let of = |i: usize| &scores["per_image"][i];
    assert!(of(1)["psnr"].is_f64() && of(1)["psnr_image_peak"].is_null(), "{scores}");
    assert_eq!(scores["psnr_image_peak"], of(0)["psnr_image_peak"]);
}

#[test]
fn evaluate_prints_a_table() {
    let desk = Desk::new();
    desk.model("m.safetensors", 1);
    let arguments =
        ["evaluate", "--model", "m.safetensors", "--sigma", "25/255", "--limit", "2", "--verbose", "--clip"];
    let (out, _) = desk.succeeds(&arguments);
    for word in [
        "noisy",
        "denoised",
        "SSIM",
        "sigma 0.0980",
        "output clipped",
        "image-00001",
        "thresholds times 0.980",
    ] {
        assert!(out.contains(word), "{word} in {out}");
    }
    assert!(!desk.succeeds(&[&arguments[..], &["--as-trained"]].concat()).0.contains("thresholds"));
}

#[test]
fn inspect_draws_potentials_where_there_are_any() {
    let desk = Desk::new();
    let (out, _) = desk.succeeds(&["inspect", "convex", "--potential-sheet", "potentials.png"]);
    assert!(out.contains("limit            the proximity operator of a convex function"), "{out}");
    let sheet = io::read(desk.path("potentials.png")).unwrap().image;
    // Curves on white paper.
    let share = |test: &dyn Fn(f32) -> bool| {
        sheet.data().iter().filter(|v| test(**v)).count() as f64 / sheet.data().len() as f64
    };
    assert!(share(&|v| v == 1.0) > 0.2 && share(&|v| v < 0.1) > 0.002);
    desk.refuses(
        &["inspect", "small", "--potential-sheet", "x.png"],
        &["--potential-sheet", "synthesis of its own"],
    );
}

#[test]
fn inspect_shows_numbers_and_filters() {
    let desk = Desk::new();
    desk.model("m.safetensors", 3);
    let (out, _) = desk.succeeds(&["inspect", "m.safetensors", "--filter-sheet", "sheet.png"]);
    for word in [
        "K=4",
        "J=6",
        "RGB",
        "parameters       810",
        "17 x 17",
        "sigma 0.1000",
        "non-expansive",
        "none at all",
    ] {
        assert!(out.contains(word), "{word} in {out}");
    }
    let sheet = io::read(desk.path("sheet.png")).unwrap();
    // 3 x 3 kernels are enlarged 10 times; with frame and gap, filters are 40 pixels apart.
    let sheet = sheet.image;
    assert_eq!(sheet.shape(), (3, 5 * 40 + 8, 6 * 40 + 8));
    let pixel = |c: usize, y: usize, x: usize| 255.0 * sheet.plane(c)[y * sheet.width() + x];
    let (gap, frame) = ((255.0f32 * 0.12).round(), (255.0f32 * 0.75).round());
    for (at, expected) in [(0, gap), (8, frame), (8 + 31, frame), (8 + 32, gap)] {
        assert_eq!(pixel(0, at, 8), expected, "{at}");
    }
    // Layer 2, feature 1, channel 2, tap (1, 2), the middle of its block.
    let model = Model::load(desk.path("m.safetensors")).unwrap();
    let weights = model.network.theta[2].weights();
    let largest = weights.iter().fold(0.0f32, |most, w| most.max(w.abs()));
    let expected = 255.0 * (0.5 + 0.5 * weights[((3 + 2) * 3 + 1) * 3 + 2] / largest);
    assert!((pixel(2, 9 + 2 * 40 + 15, 9 + 40 + 25) - expected).abs() < 0.51);
    let object = json(&desk.succeeds(&["inspect", "m.safetensors", "--json"]).0);
    assert_eq!((&object["format_version"], &object["parameters"]), (&Value::from(1), &Value::from(810)));
    assert_eq!(object["provenance"]["trainer"], "none at all");
    let layers = object["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 5);
    assert!(layers[0]["tau"].is_null() && layers[4]["tau"].is_null());
    for layer in &layers[1..4] {
        let step = layer["step"].as_f64().unwrap();
        assert!(step > 1.7 && step < 2.0, "{layer}");
    }
    let bound = object["lipschitz_bound"].as_f64().unwrap();
    let measured = |key: &str| object["jacobian_norm"][key].as_f64().unwrap();
    assert!(0.0 < measured("median") && measured("median") <= measured("max"), "{object}");
    assert!(measured("max") <= bound && bound > 1.0, "{object}");
    assert!(out.contains("Lipschitz bound") && out.contains("Jacobian norm"), "{out}");
    // At pictures of one's own.
    desk.picture("set/a.png", Rgb, Depth::Eight, false);
    let object = json(&desk.succeeds(&["inspect", "m.safetensors", "--json", "--data", "set"]).0);
    let norms = &object["jacobian_norm"];
    assert_eq!((&norms["images"], &norms["median"]), (&Value::from(1), &norms["max"]));
    assert_eq!(norms["data"], "set");
}

#[test]
fn the_models_built_in_are_listed_shown_and_scored() {
    let desk = Desk::new();
    let (out, _) = desk.succeeds(&["inspect"]);
    let listed = |line: &str, built_in| line.split_whitespace().take(2).eq(built_in);
    for built_in in [["small", "grey"], ["small", "colour"], ["best", "grey"], ["best", "colour"]] {
        assert!(out.lines().any(|line| listed(line, built_in)), "{built_in:?} in {out}");
    }
    for (colour, word) in [(&[][..], "grey"), (&["--colour"], "RGB")] {
        let (out, _) = desk.succeeds(&[&["inspect", "small"], colour].concat());
        assert!(out.contains(word), "{out}");
    }
    desk.picture("set/a.png", Rgb, Depth::Eight, false);
    let scores = json(&desk.succeeds(&["evaluate", "--json", "--data", "set", "--model", "small"]).0);
    assert_eq!((&scores["channels"], &scores["denoiser"]), (&Value::from(3), &Value::from("small")));
    for model in ["small", "best"] {
        let scores = json(&desk.succeeds(&["evaluate", "--json", "--limit", "1", "--model", model]).0);
        assert!(scores["psnr"].as_f64().unwrap() > scores["noisy_psnr"].as_f64().unwrap() + 3.0, "{model}");
    }
    let (out, _) = desk.succeeds(&["evaluate", "--limit", "1"]);
    assert!(out.contains("grey pictures (built-in)"), "{out}");
}

#[test]
fn bench_times_every_trainer_of_the_autoencoder() {
    let flags = ["bench", "--autoencoder", "--json", "--seconds", "0.01", "--threads", "1"];
    let report = json(&Desk::new().succeeds(&flags).0);
    let figures = report["figures"].as_array().unwrap();
    assert!(figures.len() == 4 && report["fma_peak_gflops"].as_f64().unwrap() > 0.0, "{report}");
    for figure in figures {
        let [step, epoch] = ["seconds", "epoch_seconds"].map(|name| figure[name].as_f64().unwrap());
        assert!(step > 0.0 && epoch > step, "{figure}");
    }
}

#[test]
fn bench_prints_its_five_figures() {
    let (out, _) =
        Desk::new().succeeds(&["bench", "--short", "--json", "--seconds", "0.05", "--threads", "1"]);
    let figures = json(&out);
    let keys = [
        "fma_peak_gflops",
        "training_pass_gflops",
        "training_pass_patches_per_second",
        "forward_megapixels_per_second",
        "threads",
    ];
    for key in keys {
        assert!(figures[key].as_f64().unwrap() > 0.0, "{key} in {figures}");
    }
}

#[test]
fn completions_for_every_shell() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (out, _) = desk.succeeds(&["completions", shell]);
        assert!(out.contains("denoise") && out.contains("evaluate"), "{shell}");
    }
}

#[test]
fn every_command_teaches_by_example() {
    let desk = Desk::new();
    for command in ["denoise", "evaluate", "compare", "inspect", "export", "bench", "completions"] {
        let (out, _) = desk.succeeds(&[command, "--help"]);
        assert!(out.contains("Examples:") && out.contains(&format!("proxlift {command}")), "{out}");
    }
    // What is typed after an example is not broken on a screen of 80 columns.
    for command in [
        &["--help"][..],
        &["denoise", "--help"],
        &["evaluate", "--help"],
        &["compare", "--help"],
        &["inspect", "--help"],
        &["export", "--help"],
    ] {
        let (out, _) = desk.succeeds(command);
        let (_, examples) = out.split_once("Examples:").unwrap();
        assert!(examples.lines().all(|line| line.chars().count() <= 80), "{examples}");
    }
    assert!(desk.succeeds(&["--version"]).0.starts_with("proxlift "));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let desk = Desk::new();
    desk.model("m.safetensors", 1);
    let program = assert_cmd::cargo::cargo_bin!("proxlift");
    for arguments in
        [&["completions", "zsh"][..], &["inspect", "m.safetensors", "--json"], &["denoise", "--help"]]
    {
        let mut child = std::process::Command::new(program)
            .current_dir(desk.path("."))
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

/// A disk that is full is nobody's bad input.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_stdout_is_told_with_code_1() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let program = assert_cmd::cargo::cargo_bin!("proxlift");
    let run =
        std::process::Command::new(program).args(["completions", "bash"]).stdout(full).output().unwrap();
    let err = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(1), "{err}");
    assert!(err.starts_with("error: cannot write to standard output") && err.lines().count() == 1, "{err}");
}
