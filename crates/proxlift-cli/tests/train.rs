//! `proxlift train`: what a run leaves behind, and how its settings come together.
#![allow(missing_docs)]

mod common;

use common::Desk;
use proxlift::dataset::{PatchNoise, synthetic::dead_leaves};
use proxlift::image::noise::add_gaussian;
use proxlift::image::{Channels, io};
use proxlift::model::{BuiltIn, Model};
use proxlift::training::Settings;

/// A network and a training that take no time.
const TINY: &[&str] = &[
    "train",
    "--depth",
    "3",
    "--features",
    "4",
    "--count",
    "16",
    "--patch",
    "12",
    "--epochs",
    "3",
    "--batch",
    "5",
];

fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [TINY, more].concat()
}

fn read(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.path(name)).unwrap()
}

#[test]
fn a_run_leaves_a_whole_folder() {
    let desk = Desk::new();
    let (out, err) = desk.succeeds(&tiny(&[]));
    for word in ["noisy", "total variation", "best (built in)", "network", "PSNR", "SSIM"] {
        assert!(out.contains(word), "{out}");
    }
    for word in [
        "K=3, J=4",
        "144 parameters",
        "16 patches",
        "memory",
        "time",
        "runs/lb-1/model.safetensors",
        "--from best",
    ] {
        assert!(err.contains(word), "{word}: {err}");
    }
    let model = Model::load(desk.path("runs/lb-1/model.safetensors")).unwrap();
    assert_eq!(model.sigma, 0.1);
    for name in ["trainer", "data", "epochs", "seed", "settings", "program"] {
        assert!(model.provenance.contains_key(name), "{name}");
    }
    assert!(desk.path("runs/lb-1/last.safetensors").is_file());
    assert!(desk.path("runs/lb-1/checkpoint/latest.safetensors").is_file());
    let history = read(&desk, "runs/lb-1/history.jsonl");
    assert_eq!(history.lines().count(), 3);
    for line in history.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(entry["loss"].as_f64().unwrap() > 0.0 && entry["psnr"].as_f64().unwrap() > 10.0, "{line}");
    }
    let sheet = io::read(desk.path("runs/lb-1/before-after.png")).unwrap().image;
    assert_eq!((sheet.width(), sheet.height()), (3 * 128 + 8, 3 * 128 + 8));
    assert!(read(&desk, "runs/lb-1/training.svg").contains("PSNR on held-out pictures"));
    let result: serde_json::Value = serde_json::from_str(&read(&desk, "runs/lb-1/result.json")).unwrap();
    for (denoiser, least) in [("noisy", 19.0), ("total_variation", 20.0), ("best_built_in", 25.0)] {
        assert!(result["scores"][denoiser]["psnr"].as_f64().unwrap() > least, "{denoiser}: {result}");
    }

    let (_, err) = desk.succeeds(&tiny(&["--quiet"]));
    assert_eq!(err, "");
    assert!(desk.path("runs/lb-2/result.json").is_file(), "the next free number");
}

#[test]
fn the_written_settings_repeat_the_run_and_flags_win_over_files() {
    let desk = Desk::new();
    desk.succeeds(&tiny(&["--preset", "adam", "--seed", "4", "--out", "a"]));
    desk.succeeds(&["train", "--config", "a/config.toml", "--out", "b", "--threads", "1"]);
    let last = |run: &str| std::fs::read(desk.path(run).join("last.safetensors")).unwrap();
    assert!(last("a") == last("b"));
    let without_threads = |run: &str| {
        read(&desk, run).lines().filter(|l| !l.starts_with("threads")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(without_threads("a/config.toml"), without_threads("b/config.toml"));

    std::fs::write(desk.path("mine.toml"), "preset = 'backtracking'\nepochs = 1\nfeatures = 2\nmu = 1\n")
        .unwrap();
    desk.succeeds(&tiny(&["--config", "mine.toml", "--fresh-noise", "--augment=false", "--out", "c"]));
    let config = read(&desk, "c/config.toml");
    for line in
        ["epochs = 3", "features = 4", "rate = \"backtracking\"", "fresh-noise = true", "augment = false"]
    {
        assert!(config.lines().any(|l| l == line), "{line}: {config}");
    }
}

#[test]
fn folders_of_pictures_are_trained_and_scored_on() {
    let desk = Desk::new();
    for i in 0..3 {
        desk.grey(&format!("data/{i}.png"));
    }
    desk.grey("test/0.png");
    let (out, err) =
        desk.succeeds(&tiny(&["--data", "data", "--test", "test", "--channels", "3", "--out", "a"]));
    assert!(err.contains("2 pictures of data, 1 held out") && out.contains("On 1 pictures of"), "{out}{err}");
    let (_, err) = desk.succeeds(&tiny(&["--data", "test", "--out", "b", "--evaluate-every", "9"]));
    assert!(err.contains("warning: one picture"), "{err}");
}

#[test]
fn persistent_u_says_its_memory() {
    let desk = Desk::new();
    let sizes =
        ["train", "--depth=9", "--features=32", "--count=16", "--patch=12", "--epochs=1", "--batch=5"];
    let (_, err) = desk.succeeds(&[&sizes[..], &["--u", "persistent"]].concat());
    // 16 samples, 8 layers, 32 features, 12 x 12 pixels, 4 bytes: 2.4 MB.
    assert!(err.contains("of it 2 MB for persistent u"), "{err}");
}

#[test]
fn the_history_holds_the_blocks_of_the_energy_and_the_test_set_when_asked() {
    let desk = Desk::new();
    desk.grey("test/0.png");
    let more = ["--preset", "paper", "--test", "test", "--test-every", "2", "--out", "a"];
    desk.succeeds(&tiny(&more));
    for (i, line) in read(&desk, "a/history.jsonl").lines().enumerate() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let blocks: Vec<f64> =
            entry["blocks"].as_array().unwrap().iter().map(|block| block.as_f64().unwrap()).collect();
        assert_eq!(blocks.len(), 3, "two penalties and the loss: {line}");
        let energy = entry["energy"].as_f64().unwrap();
        assert!((blocks.iter().sum::<f64>() - energy).abs() < 1e-9 * energy, "{line}");
        let asked = entry["test_psnr"].is_number() && entry["test_ssim"].is_number();
        assert_eq!(asked, i == 1, "{line}");
    }
}

#[test]
fn a_training_goes_on_from_a_model_of_its_kind_whatever_its_border() {
    let desk = Desk::new();
    desk.succeeds(&tiny(&["--out", "first"]));
    let start = desk.path("first/last.safetensors");
    let start = start.to_str().unwrap();
    desk.succeeds(&tiny(&["--from", start, "--border", "2", "--rate", "1e-7", "--out", "second"]));
    let [first, second] = ["first", "second"]
        .map(|run| Model::load(desk.path(&format!("{run}/last.safetensors"))).unwrap().network);
    assert_eq!((first.border, second.border), (0, 2));
    for (a, b) in first.theta.iter().zip(&second.theta) {
        let close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-4;
        assert!(a.weights().iter().zip(b.weights()).all(close), "a step of 1e-7 leaves the filters in place");
    }
    desk.refuses(&["train", "--from", start, "--features", "6"], &["features 4", "--features is 6"]);
}

#[test]
fn built_in_models_are_known_by_name() {
    let desk = Desk::new();
    desk.grey("test/0.png");
    let short = ["train", "--count=4", "--epochs=1", "--rate=1e-7", "--test=test", "--out"];
    for (channels, more) in [(Channels::Grey, &[][..]), (Channels::Rgb, &["--channels", "3"])] {
        let out = format!("{channels:?}");
        desk.succeeds(&[&short[..], &[&out, "--from", "small"], more].concat());
        let tuned = Model::load(desk.path(&out).join("last.safetensors")).unwrap();
        let built_in = BuiltIn::Small.model(channels);
        assert_eq!(
            (tuned.network.architecture(), tuned.sigma),
            (built_in.network.architecture(), built_in.sigma)
        );
        let pairs = tuned.network.theta.iter().zip(&built_in.network.theta);
        let mut weights = pairs.flat_map(|(a, b)| a.weights().iter().zip(b.weights()));
        assert!(weights.all(|(a, b)| (a - b).abs() < 1e-4), "a rate of 1e-7 leaves the filters in place");
        desk.succeeds(&[
            "train",
            "--config",
            &format!("{out}/config.toml"),
            "--out",
            &format!("{out}-again"),
        ]);
    }
    desk.refuses(&["train", "--from", "small", "--depth", "7"], &["depth 8", "--depth is 7"]);
    desk.refuses(&["train", "--from", "huge"], &["huge", "small, best, photo, convex and weakly-convex"]);
}

#[test]
fn pairs_and_noisy_pictures_alone_train() {
    let desk = Desk::new();
    for folder in ["noisy", "clean"] {
        std::fs::create_dir(desk.path(folder)).unwrap();
    }
    for i in 0..4 {
        let clean = dead_leaves(9, i, 80, 80, Channels::Grey).unwrap();
        let noisy = add_gaussian(&clean, 0.08, 1, i).unwrap();
        for (folder, image) in [("clean", clean), ("noisy", noisy)] {
            let path = desk.path(folder).join(format!("{i}.png"));
            io::write(path, &io::Picture::new(image, io::Depth::Sixteen)).unwrap();
        }
    }
    for (out, data) in [("pairs", &["--data", "clean"][..]), ("alone", &[])] {
        let more = [&["--noisy", "noisy", "--from", "small", "--out", out], data].concat();
        let short = ["train", "--count=8", "--epochs=1", "--rate=1e-6", "--json"];
        let (result, _) = desk.succeeds(&[&short[..], &more].concat());
        let result: serde_json::Value = serde_json::from_str(&result).unwrap();
        assert!(result["test"].as_str().unwrap().contains("held-out"), "{result}");
        let score = |name: &str| result["scores"][name]["psnr"].as_f64().unwrap();
        assert!(score("network") > score("noisy") + 0.5, "{result}");
        let model = Model::load(desk.path(out).join("model.safetensors")).unwrap();
        assert_eq!(model.noise, PatchNoise::Own);
        let name = format!("{out}/model.safetensors");
        desk.succeeds(&["denoise", "noisy/0.png", "-o", &format!("{out}.png"), "--model", &name]);
        assert!(desk.succeeds(&["inspect", &name]).0.contains("own noise"));
    }
}

#[test]
fn programs_get_one_json_object() {
    let desk = Desk::new();
    let (out, err) =
        desk.succeeds(&tiny(&["--json", "--preset", "sgd", "--rate-grid", "1e-6,1e-3", "--out", "a"]));
    let result: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&result["folder"], &result["model"]), (&"a".into(), &"a/model.safetensors".into()));
    assert!(
        result["best_epoch"].as_u64().unwrap() <= 3 && result["training_seconds"].as_f64().unwrap() > 0.0
    );
    assert!(result["scores"]["network"]["psnr"].as_f64().unwrap() > 10.0, "{out}");
    assert!(err.contains("chosen"), "the table of rates is a note: {err}");
    let (out, _) = desk.succeeds(&tiny(&["--json", "--stop-after", "1", "--out", "b"]));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&out).unwrap()["stopped_after"], 1);
}

#[test]
fn short_help_has_the_few_flags_that_people_need_and_long_help_all() {
    let desk = Desk::new();
    let (short, _) = desk.succeeds(&["train", "-h"]);
    let (long, _) = desk.succeeds(&["train", "--help"]);
    // Descriptions are further in, and may begin a line with a flag.
    let flags = |text: &str| text.lines().filter(|line| line.starts_with("      --")).count();
    assert_eq!((flags(&short), flags(&long)), (12 + 3, Settings::list().len() + 8));
    for setting in Settings::list() {
        assert_eq!(
            short.contains(&format!("--{} <", setting.name())),
            setting.is_common(),
            "{}",
            setting.field
        );
    }
    for line in short.lines().chain(long.lines()).filter(|line| line.starts_with("  proxlift")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_lipschitz_constant_is_proven_from_the_file() {
    let desk = Desk::new();
    for (most, firmly) in [("1", true), ("1.5", false)] {
        let out = format!("runs/{most}");
        desk.succeeds(&tiny(&["--lipschitz", most, "--knots", "3", "--out", &out]));
        for name in ["model.safetensors", "last.safetensors"] {
            let model = format!("{out}/{name}");
            let (json, _) = desk.succeeds(&["inspect", &model, "--json"]);
            let facts: serde_json::Value = serde_json::from_str(&json).unwrap();
            let bound = facts["lipschitz_bound"].as_f64().unwrap();
            assert!(bound <= most.parse().unwrap() && bound >= 1.0, "{json}");
            assert_eq!(facts["firmly_non_expansive"], firmly, "{json}");
        }
        let (text, _) = desk.succeeds(&["inspect", &format!("{out}/model.safetensors")]);
        assert_eq!(
            text.contains("1.00, proven for pictures of any size: firmly non-expansive"),
            firmly,
            "{text}"
        );
        // It goes on from there.
        desk.succeeds(&tiny(&[
            "--lipschitz",
            most,
            "--from",
            &format!("{out}/model.safetensors"),
            "--out",
            &format!("{out}-more"),
        ]));
    }
    desk.refuses(
        &tiny(&["--lipschitz", "2", "--from", "runs/1/model.safetensors"]),
        &["--lipschitz", "dual-forward-backward"],
    );
    desk.refuses(
        &["train", "--lipschitz", "1", "--from", "small"],
        &["--lipschitz", "averaged-dual-forward-backward"],
    );
}
