//! `proxlift reproduce`: the report is whole, what is done is not done again, and bad input gets one sentence.
#![allow(missing_docs)]

mod common;

use common::Desk;
use serde_json::Value;
use std::path::Path;

/// All of the report, hardly any work.
const TINY: &[&str] = &["reproduce", "--tiny"];
/// Its trainings: by both forms of LB-FB two batch sizes and the fixed batch, and at two depths both forms, three rates of
/// SGD, Adam and the preset `lifted`.
const TRAININGS: usize = 2 * (2 + 1) + 2 * (2 + 3 + 2);
/// What the figures compare: both forms, SGD with the best rate of both grids, Adam and `lifted`.
const METHODS: usize = 6;

fn tiny<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [TINY, more].concat()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap()
}

/// Rows of a CSV file, all as long as its head, with numbers where `numbers` says.
fn csv(path: &Path, numbers: &[&str]) -> usize {
    let mut table = csv::Reader::from_path(path).unwrap();
    let head = table.headers().unwrap().clone();
    // A row of another length than the head is an error.
    let rows: Vec<_> = table.records().map(|row| row.unwrap()).collect();
    for row in &rows {
        for (name, cell) in head.iter().zip(row).filter(|(name, _)| numbers.contains(name)) {
            assert!(cell.parse::<f64>().is_ok_and(f64::is_finite), "{}: {name} is {cell}", path.display());
        }
    }
    rows.len()
}

fn runs(desk: &Desk, out: &str) -> Vec<String> {
    let folders = std::fs::read_dir(desk.path(out).join("runs")).unwrap();
    let mut names: Vec<String> = folders.map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn the_report_is_whole_and_its_data_parse() {
    let desk = Desk::new();
    let (out, err) = desk.succeeds(&tiny(&[]));
    assert_eq!(out, "reproduction-tiny/report.html\n");
    assert!(err.contains(&format!("{TRAININGS} trainings")) && err.contains(" left"), "{err}");
    assert_eq!(runs(&desk, "reproduction-tiny").len(), TRAININGS);
    let root = desk.path("reproduction-tiny");
    let page = read(&root.join("report.html"));
    for word in [
        "id=\"figure1\"",
        "id=\"figure2\"",
        "id=\"figure3\"",
        "id=\"table1\"",
        "id=\"claims\"",
        "id=\"setup\"",
        "prefers-color-scheme: dark",
        "data:image/png;base64,",
        "26.35 ± 0.44",
        "total variation",
        "Seeds: 0;",
    ] {
        assert!(page.contains(word), "{word}");
    }
    // Nothing is fetched from elsewhere, and every drawing says that it is not the whole experiment.
    assert!(!page.contains("<script") && !page.contains("src=\"http") && !page.contains("<link"));
    let drawings = [
        "figure1",
        "figure2",
        "figure2-beyond",
        "figure2-psnr",
        "energy-paper",
        "energy-sweep",
        "robustness",
    ];
    assert_eq!(page.matches("<svg").count(), drawings.len() + 1, "robustness is shown for both forms");
    for svg in drawings {
        assert!(read(&root.join(format!("figures/{svg}.svg"))).contains("Tiny version"), "{svg}");
    }
    for badge in page.split("class=\"badge ").skip(1) {
        assert!(["yes", "part", "no", "none"].iter().any(|kind| badge.starts_with(&format!("{kind}\""))));
    }
    for link in page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let there = match link.strip_prefix('#') {
            Some(id) => page.contains(&format!("id=\"{id}\"")),
            None => root.join(link).is_file(),
        };
        assert!(there, "{link}");
    }

    // LB-FB and SGD train on the same patches.
    let compared = runs(&desk, "reproduction-tiny");
    for name in
        compared.iter().filter(|n| ["paper-k", "sweep-k", "sgd-k"].iter().any(|kind| n.starts_with(kind)))
    {
        let config = read(&root.join("runs").join(name).join("config.toml"));
        for line in ["fresh-noise = false", "fresh-places = false", "augment = false", "batch = 4"] {
            assert!(config.lines().any(|l| l == line), "{line} in {name}");
        }
    }

    let figures = |name: &str| root.join("figures").join(name);
    let course = ["epoch", "seconds", "loss_mean", "loss_min", "loss_max"];
    assert_eq!(csv(&figures("figure1.csv"), &course), 2 * 2 * 3);
    assert_eq!(csv(&figures("figure2.csv"), &course), 2 * METHODS * 4);
    assert_eq!(csv(&figures("figure2-grid.csv"), &["depth", "rate", "final_loss"]), 2 * 3);
    assert_eq!(
        csv(&figures("table1.csv"), &["ssim_own_peak", "psnr_own_peak", "ssim_peak_1", "psnr_peak_1"]),
        2 * (METHODS + 2),
        "and the noisy pictures, and total variation"
    );
    for form in ["paper", "sweep"] {
        assert_eq!(csv(&figures(&format!("energy-{form}.csv")), &["iteration", "energy", "loss"]), 2);
    }
    assert_eq!(csv(&figures("robustness.csv"), &["sigma", "psnr"]), 2 * METHODS);
    assert_eq!(csv(&figures("jacobian.csv"), &["norm"]), 2 * METHODS);
    assert_eq!(json(&figures("figure3.json")).as_array().unwrap().len(), 2 * (METHODS + 3));
    let claims = json(&figures("claims.json"));
    let claims = claims.as_array().unwrap();
    assert_eq!(claims.len(), 2 * 7);
    for claim in claims.iter().filter(|claim| claim["claim"].as_str().unwrap().starts_with("energy")) {
        assert_eq!(claim["numbers"]["rises"], 0, "under backtracking E never rises in a step");
    }
    let report = json(&root.join("report.json"));
    for key in ["commit", "machine", "cores", "trainings_at_a_time", "seeds", "test_images"] {
        assert!(!report[key].is_null(), "{key}");
    }
}

#[test]
fn what_is_done_is_not_done_again() {
    let desk = Desk::new();
    desk.succeeds(&tiny(&["--out", "a"]));
    let histories = |desk: &Desk| -> Vec<_> {
        desk.contents().into_iter().filter(|(path, _)| path.ends_with("history.json")).collect()
    };
    let before = histories(&desk);
    // Times are part of a history: the same bytes say that nothing was trained again.
    let (_, err) = desk.succeeds(&tiny(&["--out", "a", "--threads", "1"]));
    assert!(err.contains(&format!("{TRAININGS} of {TRAININGS} runs are done already")), "{err}");
    assert!(before == histories(&desk));

    // A run that was cut off is done again, to the same network.
    let name = runs(&desk, "a").into_iter().find(|name| name.starts_with("paper-k4")).unwrap();
    let folder = desk.path("a/runs").join(name);
    let model = std::fs::read(folder.join("model.safetensors")).unwrap();
    std::fs::remove_file(folder.join("history.json")).unwrap();
    std::fs::write(folder.join("model.safetensors"), "half").unwrap();
    std::fs::write(folder.join("checkpoint.safetensors"), "half").unwrap();
    let (_, err) = desk.succeeds(&tiny(&["--out", "a"]));
    assert!(err.contains(&format!("{} of {TRAININGS} runs", TRAININGS - 1)), "{err}");
    assert!(std::fs::read(folder.join("model.safetensors")).unwrap() == model);
    assert!(!folder.join("checkpoint.safetensors").exists());

    // Another seed is another run; those of the first one stay.
    let (_, err) = desk.succeeds(&tiny(&["--out", "a", "--seeds", "2"]));
    assert!(err.contains(&format!("{TRAININGS} of {} runs are done already", 2 * TRAININGS)), "{err}");
    assert!(read(&desk.path("a/figures/figure1.svg")).contains("<polygon"), "several seeds have a band");
}

#[test]
fn other_pictures_are_another_experiment_and_lose_nothing() {
    let desk = Desk::new();
    for i in 0..9 {
        desk.grey(&format!("data/{i}.png"));
    }
    for i in 0..5 {
        desk.grey(&format!("test/{i}.png"));
    }
    let only = ["--only", "figure1", "--out", "a"];
    desk.succeeds(&tiny(&only));
    assert_eq!(runs(&desk, "a").len(), 4);
    let (_, err) = desk.succeeds(&tiny(&[&only[..], &["--data", "data", "--test", "test"]].concat()));
    assert!(err.contains("8 pictures of data") && err.contains("2 pictures of test"), "{err}");
    assert_eq!(runs(&desk, "a").len(), 8, "the runs on built-in pictures are still there");
    let names = json(&desk.path("a/report.json"))["test_images"].clone();
    assert_eq!(names, serde_json::json!(["0.png", "2.png"]), "evenly spaced");
    let (_, err) = desk.succeeds(&tiny(&only));
    assert!(err.contains("4 of 4 runs are done already"), "{err}");
}

#[test]
fn parts_train_and_show_only_what_they_need() {
    let desk = Desk::new();
    let (_, err) = desk.succeeds(&tiny(&["--only", "table1,figure1", "-q"]));
    assert_eq!(err, "");
    assert_eq!(runs(&desk, "reproduction-tiny").len(), 4 + 7, "the deepest network only");
    let page = read(&desk.path("reproduction-tiny/report.html"));
    assert!(page.contains("id=\"figure1\"") && page.contains("id=\"table1\""));
    assert!(!page.contains("id=\"figure2\"") && !page.contains("id=\"claims\""));
    let (_, err) = desk.succeeds(&tiny(&["--only", "table1", "--batch", "3"]));
    assert!(err.contains("2 of 7 runs are done already"), "LB-FB and SGD are trained again: {err}");
}

#[test]
fn bad_input_gets_one_sentence() {
    let desk = Desk::new();
    desk.text("texts/a.txt");
    desk.text("file");
    desk.grey("few/a.png");
    desk.text("old/reproduce.json");
    std::fs::write(desk.path("old/reproduce.json"), r#"{"format": 1, "program": "0.0.9"}"#).unwrap();
    let refuses = |more: &[&str], words: &[&str]| desk.refuses(&tiny(&[&["-q"], more].concat()), words);
    refuses(&["--data", "absent"], &["absent"]);
    refuses(&["--data", "texts"], &["texts", "no PNG"]);
    refuses(&["--data", "few"], &["few", "need 8 pictures", "here are 1"]);
    refuses(&["--test", "few"], &["few", "need 2 pictures"]);
    refuses(&["--out", "texts"], &["texts", "not empty"]);
    refuses(&["--out", "file/a"], &["file/a"]);
    refuses(&["--out", "old"], &["old", "0.0.9", "--out"]);
    refuses(&["--only", "figure9"], &["figure9", "figure1"]);
    refuses(&["--seeds", "0"], &["--seeds"]);
    refuses(&["--batch", "0"], &["--batch"]);
    refuses(&["--threads", "0"], &["--threads"]);
}
