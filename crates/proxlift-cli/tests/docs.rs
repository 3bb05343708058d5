//! The commands in the documentation are commands of this program: every flag, and every preset.
#![allow(missing_docs)]

use assert_cmd::cargo::cargo_bin_cmd;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Every `proxlift COMMAND ...` in code, up to the end of the line or the code span.
fn commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", " ");
    let mut found = Vec::new();
    // A span may be wrapped; a block is indented and ends with its line.
    let spans = text.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " "));
    let blocks = text.lines().filter(|line| line.starts_with("    ")).map(ToString::to_string);
    for code in spans.chain(blocks) {
        let code = code.split(" # ").next().unwrap_or_default().replace(['"', '[', ']'], " ");
        let words = code.split_whitespace().map(ToString::to_string).collect::<Vec<_>>();
        if words.first().is_some_and(|word| word == "proxlift") && words.len() > 1 {
            found.push(words[1..].to_vec());
        }
    }
    found
}

fn help(command: &str) -> String {
    let output = cargo_bin_cmd!("proxlift").args([command, "--help"]).output().unwrap();
    assert!(output.status.success(), "the documentation has `proxlift {command}`, which is no command");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn documented_flags_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("docs/training.md").exists() {
        return;
    }
    let pages =
        ["README.md", "docs/log.md", "docs/performance.md", "docs/quality.md", "docs/reproduction.md"];
    let pages = pages.into_iter().chain([
        "docs/training.md",
        "docs/extending.md",
        "docs/restoration.md",
        "peers/README.md",
    ]);
    let mut helps = BTreeMap::new();
    let mut flags = 0;
    for page in pages {
        for words in commands(&fs::read_to_string(root.join(page)).unwrap()) {
            let command = &words[0];
            if !command.chars().all(|c| c.is_ascii_lowercase()) {
                continue;
            }
            let help = helps.entry(command.clone()).or_insert_with(|| help(command));
            let known =
                |flag: &str| help.split(|c: char| c.is_whitespace() || c == ',').any(|word| word == flag);
            for (i, word) in words.iter().enumerate().filter(|(_, word)| word.starts_with("--")) {
                let flag = word.split('=').next().unwrap();
                assert!(known(flag), "{page} has `proxlift {}`, but there is no {flag}", words.join(" "));
                if flag == "--preset" {
                    let value = words[i + 1].trim_end_matches([',', ';']);
                    let listed = help.contains(&format!("- {value}:"));
                    assert!(listed, "{page} has --preset {value}, but there is no such preset");
                }
                flags += 1;
            }
        }
    }
    assert!(flags > 30, "only {flags} flags were found: the test no longer reads them");
}

/// Every direct dependency has its reason and its cost.
#[test]
fn every_dependency_has_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(reasons) = fs::read_to_string(root.join("deny.toml")) else { return };
    for folder in ["", "crates/proxlift-python", "crates/proxlift-wasm", "web/bindgen"] {
        let text = fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&text).unwrap();
        let own = manifest.get("dependencies");
        let own = own.or_else(|| manifest["workspace"].get("dependencies")).unwrap().as_table().unwrap();
        for name in own.keys().filter(|name| *name != "proxlift") {
            let line = reasons.lines().find(|line| line.starts_with(&format!("#     {name} ")));
            let told = line.is_some_and(|line| line.split_whitespace().count() > 2);
            assert!(told, "deny.toml does not say why {name} is needed");
        }
    }
}
