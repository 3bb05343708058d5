//! What several processes do together comes to what one does.
#![allow(missing_docs)]

mod common;

use common::{TINY, many, paint, succeeds};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Trains by so many processes; the network in the end.
fn trained(desk: &Path, processes: usize, out: &str, more: &[&str]) -> Vec<u8> {
    let out_flag = format!("--out={out}");
    succeeds(many(desk, processes, &[TINY, &["--epochs=3", &out_flag], more].concat()));
    fs::read(desk.join(out).join("last.safetensors")).unwrap()
}

#[test]
fn pictures_that_do_not_fit_into_memory_stream_from_disk() {
    let desk = tempfile::tempdir().unwrap();
    // 78 MB in single precision, where 60 may be used.
    paint(&desk.path().join("pictures"), 1, 24, 900);
    let whole = trained(desk.path(), 1, "whole", &["--data=pictures"]);
    for processes in [1, 2] {
        let out = format!("by-{processes}");
        let streamed = trained(desk.path(), processes, &out, &["--data=pictures", "--memory=60M"]);
        assert!(streamed == whole, "by {processes}");
    }
}

#[test]
fn a_convex_regulariser_is_trained_to_the_same_bits() {
    let desk = tempfile::tempdir().unwrap();
    let one = trained(desk.path(), 1, "one", &["--convex", "--batch=5"]);
    assert!(trained(desk.path(), 2, "two", &["--convex", "--batch=5"]) == one);
}

#[test]
fn noisy_pictures_and_pairs_are_trained_to_the_same_bits() {
    let desk = tempfile::tempdir().unwrap();
    for (name, seed) in [("noisy", 1), ("clean", 2)] {
        paint(&desk.path().join(name), seed, 6, 48);
    }
    for (i, flags) in [&["--noisy=noisy"][..], &["--noisy=noisy", "--data=clean"]].into_iter().enumerate() {
        let one = trained(desk.path(), 1, &format!("one-{i}"), flags);
        assert!(trained(desk.path(), 3, &format!("three-{i}"), flags) == one, "{flags:?}");
    }
}

#[test]
fn layers_over_processes_come_to_the_same_losses() {
    let desk = tempfile::tempdir().unwrap();
    let measured = |processes: usize| -> Vec<Value> {
        let flags = ["-q", "layers", "--depths=4", "--rounds=1", "--seeds=1", "--seconds=0", "--json"];
        serde_json::from_str(&succeeds(many(desk.path(), processes, &flags)).0).unwrap()
    };
    let (one, three) = (measured(1), measured(3));
    assert_eq!((one.len(), three.len()), (2, 2));
    for (one, three) in one.iter().zip(&three) {
        let losses = &one["after_equal_iterations"];
        assert_eq!(losses, &three["after_equal_iterations"]);
        let number = |value: &Value| value["mean"].as_f64().unwrap();
        assert!(number(&losses[1]) < number(&one["loss_at_start"]) && number(&losses[1]) > 0.0);
        assert!(three["times"]["parallel"][1].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_sweep_is_spread_ends_with_a_table_and_repeats_nothing() {
    let desk = tempfile::tempdir().unwrap();
    let grid = "[fixed]\ndepth = 3\nfeatures = 4\npatch = 12\ncount = 20\nepochs = 2\n[grid]\nrate = [1e-3, 1e-2]\nseed = [1, 2]\n";
    fs::write(desk.path().join("grid.toml"), grid).unwrap();
    let flags = ["sweep", "grid.toml", "--threads=1", "--out=sweep"];
    let (table, said) = succeeds(many(desk.path(), 2, &flags));
    assert!(said.contains("4 trainings in sweep, 0 of them done"), "{said}");
    let rows = fs::read_to_string(desk.path().join("sweep/sweep.csv")).unwrap();
    assert_eq!(rows.lines().count(), 5, "{rows}");
    assert!(fs::read_to_string(desk.path().join("sweep/sweep.svg")).unwrap().contains("4 trainings"));
    let model = |run: &str| fs::read(desk.path().join(run).join("last.safetensors")).unwrap();
    let alone = ["--epochs=2", "--rate=1e-2", "--seed=2", "--out=alone"];
    succeeds(many(desk.path(), 1, &[TINY, &alone].concat()));
    assert!(model("sweep/rate-0.01_seed-2") == model("alone"));
    let (again, said) = succeeds(many(desk.path(), 3, &flags));
    assert!(said.contains("4 of them done") && again == table, "{said}{again}");
}

#[test]
fn a_reproduction_is_spread_and_comes_to_the_same_report() {
    let desk = tempfile::tempdir().unwrap();
    let losses = |out: &str| -> Vec<Value> {
        let runs = fs::read_dir(desk.path().join(out).join("runs")).unwrap();
        let mut runs: Vec<_> = runs.map(|run| run.unwrap().path()).collect();
        runs.sort();
        let read = |run: &Path| -> Value {
            let text = fs::read_to_string(run.join("history.json")).unwrap();
            let found: Value = serde_json::from_str(&text).unwrap();
            found["value"]["epochs"].as_array().unwrap().iter().map(|epoch| epoch["loss"].clone()).collect()
        };
        runs.iter().map(|run| read(run)).collect()
    };
    for (processes, out) in [(1, "one"), (2, "two")] {
        let (page, _) = succeeds(many(desk.path(), processes, &["reproduce", "--tiny", "--out", out]));
        assert_eq!(page, format!("{out}/report.html\n"));
    }
    assert_eq!(losses("one").len(), 20);
    assert_eq!(losses("one"), losses("two"));
    let (_, said) = succeeds(many(desk.path(), 2, &["reproduce", "--tiny", "--out=two"]));
    assert!(said.contains("20 of 20 runs are done already"), "{said}");
    let (_, said) =
        succeeds(many(desk.path(), 2, &["reproduce", "--tiny", "--only=lifting", "--out=lifting"]));
    assert!(said.contains("the trainings are done"), "{said}");
}
