//! `proxlift reproduce --only lifting`: the report is whole, what is done is not done again, and bad input gets one sentence.
#![allow(missing_docs)]

mod common;

use common::Desk;
use serde_json::Value;
use std::path::Path;

const TINY: &[&str] = &["reproduce", "--only", "lifting", "--tiny"];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Files with verdicts beside those of the trainings, and words of the sections that show them.
const DUELS: [(&str, &str); 3] = [
    ("parallel.json", "All at once pays in"),
    ("infinite.json", "fixed point, centred, μ 0.1"),
    ("inversion.json", "encoder, total variation"),
];

/// What is in `runs/` beside trainings.
const MEASURED: [&str; 5] =
    ["memory.json", "parallel-times.json", "parallel-losses.json", "infinite.json", "inversion.json"];

/// All duels of such a file, wherever they are.
fn duels(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) if fields.contains_key("verdict") => vec![value],
        Value::Object(fields) => fields.values().flat_map(duels).collect(),
        Value::Array(all) => all.iter().flat_map(duels).collect(),
        _ => Vec::new(),
    }
}

/// Everything but times.
fn scores(path: &Path) -> Vec<(String, String, String)> {
    let cases: Vec<Value> = serde_json::from_str(&read(path)).unwrap();
    let methods = cases.iter().flat_map(|case| {
        let name = format!("{} {}", case["experiment"], case["case"]);
        let methods = case["methods"].as_array().unwrap().iter();
        methods.map(move |m| (name.clone(), m["method"].to_string(), format!("{} {}", m["loss"], m["score"])))
    });
    methods.collect()
}

#[test]
fn the_report_is_whole_and_goes_on_where_it_was_stopped() {
    let desk = Desk::new();
    let (out, err) = desk.succeeds(TINY);
    assert_eq!(out, "lifting-tiny/report.html\n");
    assert!(err.contains("60 digits that the program draws"), "{err}");
    let root = desk.path("lifting-tiny");
    let page = read(&root.join("report.html"));
    let trainings = ["depth", "few", "starts", "arithmetic", "weights", "digits"];
    let others = ["parallel", "infinite", "inversion", "memory", "setup"];
    for word in trainings.into_iter().chain(others) {
        assert!(page.contains(&format!("id=\"{word}\"")), "{word}");
    }
    for word in ["The tiny version", "lifting wins in", "ADMM", "centred, μ 10 to 0.1", "straight-through"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(!page.contains("<script") && !page.contains("src=\"http") && !page.contains("<link"));
    let before = scores(&root.join("verdicts.json"));
    assert!(before.len() > 150, "{}", before.len());
    // Every case has back-propagation, and every number is one.
    assert!(before.iter().all(|(case, _, scores)| scores.contains("mean") || panic!("{case}: {scores}")));
    // So has every duel.
    for (file, what) in DUELS {
        let value = json(&root.join(file));
        let found = duels(&value);
        assert!(found.len() >= 2, "{file}: {found:?}");
        assert!(found.iter().all(|duel| duel["of_first"]["mean"].is_f64()), "{file}: {found:?}");
        assert!(page.contains(what), "{file}: {what}");
    }
    // Some of the work is lost, and one inversion; both are done again to the same numbers, and the rest is not.
    let reported = DUELS.map(|(file, _)| read(&root.join(file)));
    let runs = std::fs::read_dir(root.join("runs")).unwrap().map(|f| f.unwrap().path());
    let runs: Vec<_> = runs.filter(|path| !MEASURED.iter().any(|name| path.ends_with(name))).collect();
    runs.iter().take(5).for_each(|path| std::fs::remove_file(path).unwrap());
    let inversion = root.join("runs/inversion.json");
    // What is kept has a checksum; what an earlier version kept, the value alone, is taken too.
    let mut measured = json(&inversion)["value"].take();
    let whole = measured.clone();
    let name = measured.as_object().unwrap().keys().next().unwrap().clone();
    measured.as_object_mut().unwrap().remove(&name);
    std::fs::write(&inversion, measured.to_string()).unwrap();
    let (_, err) = desk.succeeds(TINY);
    assert!(err.contains(&format!("{} of {} are done already", runs.len() - 5, runs.len())), "{err}");
    assert_eq!(scores(&root.join("verdicts.json")), before);
    assert_eq!(json(&inversion)["value"], whole);
    assert_eq!(DUELS.map(|(file, _)| read(&root.join(file))), reported);
    // What was kept is what is reported.
    measured = whole;
    measured[&name][0]["lifted"]["distance"] = 1234.5.into();
    std::fs::write(&inversion, measured.to_string()).unwrap();
    desk.succeeds(TINY);
    assert!(read(&root.join("report.html")).contains("1234.5"));
}

#[test]
fn what_does_not_go_with_it_is_refused_in_a_sentence() {
    let desk = Desk::new();
    let refused = |more: &[&str], words: &str| desk.refuses(&[TINY, more].concat(), &[words]);
    refused(&["--only", "lifting,figure1"], "a report of its own");
    refused(&["--data", "."], "--data is not for --only lifting");
    refused(&["--batch", "3"], "--batch is not for --only lifting");
    refused(&["--digits", "."], "there is no file train-images-idx3-ubyte");
    let folder = desk.path("mnist");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("train-images-idx3-ubyte"), [0, 0, 8, 3, 0, 0, 0, 9]).unwrap();
    std::fs::write(folder.join("train-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 0]).unwrap();
    refused(&["--digits", "mnist"], "train-images-idx3-ubyte: this IDX file is cut short");
    desk.refuses(&["reproduce", "--tiny", "--digits", "mnist"], &["--digits is for --only lifting"]);
}
