//! Damaged files that the command line itself reads: settings in TOML, and what it keeps in the folders of runs.

#[path = "../../../../fuzz/mutate.rs"]
mod mutate;

use crate::files;
use crate::train::{file, folder::Entry, record::Record};
use mutate::Target;
use proxlift::training::Config;
use serde_json::{Value, json};
use std::path::Path;

#[global_allocator]
static COUNTING: mutate::Counting = mutate::Counting;

const ALL: [Target; 4] = [
    Target { name: "toml", share: 2, run: toml, seeds: tomls },
    Target { name: "data.json", share: 1, run: data, seeds: datas },
    Target { name: "history", share: 1, run: history, seeds: histories },
    Target { name: "kept", share: 1, run: kept, seeds: kepts },
];

/// Mutations of all targets together, in a test run of every day.
const USUAL: u64 = 50_000;

#[test]
fn no_mutation_of_any_file_panics_or_takes_long() {
    mutate::attack_all("command-line", &ALL, USUAL);
}

#[test]
fn seeds_are_read() {
    mutate::seeds_are_read(&ALL);
}

/// Settings, to the training that they make, which is not started.
fn toml(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(mut settings) = file::parse(text, Path::new("config.toml")) else { return };
    // Files of this machine are none of a fuzzer's business.
    settings.from = None;
    if let Ok(config) = Config::resolve(&settings) {
        let _ = config.memory(1000);
        file::text(&config).expect("what was read can be written");
    }
}

fn tomls() -> Vec<Vec<u8>> {
    let config = Config::resolve(&Default::default()).expect("nothing given is a training");
    let whole = file::text(&config).expect("it can be written");
    let few = "epochs = 2\ndepth = 4\nsigma = 0.1\nrate = 0.001\nknots = 4\nborder = 2\n";
    vec![whole.into_bytes(), few.as_bytes().to_vec()]
}

fn data(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let (Ok(one), Ok(other)) = (Record::parse(text), Record::parse(DATA)) {
        let _ = (one.differs(&other), other.differs(&one));
    }
}

const DATA: &str = r#"{"data":{"count":2,"crc32":"0badc0de","files":{"a.png":{"bytes":7,"crc32":"00000001"},
    "b/c.png":{"bytes":9,"crc32":"unreadable"}}},"test":{"count":0,"crc32":"00000000","files":{}}}"#;

fn datas() -> Vec<Vec<u8>> {
    assert!(Record::parse(DATA).is_ok());
    vec![DATA.as_bytes().to_vec()]
}

fn history(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read: Result<Vec<Entry>, _> = text.lines().map(serde_json::from_str).collect();
    if let Ok(entries) = read {
        entries.iter().for_each(|entry| drop(serde_json::to_string(entry).expect("it was read")));
    }
}

fn histories() -> Vec<Vec<u8>> {
    let entry = Entry {
        record: Default::default(),
        psnr: Some(27.9),
        ssim: None,
        test_psnr: None,
        test_ssim: Some(0.5),
    };
    let line = serde_json::to_string(&entry).expect("numbers");
    vec![format!("{line}\n{line}\n").into_bytes()]
}

/// What a reproduction goes on from: no damage is accepted that is not named by the checksum.
fn kept(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let found = files::sound(text);
    let known = [value(), json!({"crc32": files::checksum(&value()), "value": value()})];
    let sealed = text.contains("\"crc32\"") && found.is_some();
    assert!(!sealed || known.contains(found.as_ref().expect("it is sound")), "accepted: {text}");
}

fn value() -> Value {
    json!({"fingerprint": "0123", "epochs": [{"epoch": 1, "loss": 0.1, "psnr": null}], "diverged": null})
}

fn kepts() -> Vec<Vec<u8>> {
    vec![json!({"crc32": files::checksum(&value()), "value": value()}).to_string().into_bytes()]
}
