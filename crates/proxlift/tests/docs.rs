//! The documentation points at things that exist: links, files, and the names in `docs/notation.md`.
#![allow(missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

/// The repository, or `None` where the crate was unpacked without it.
fn repository() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("docs/notation.md").exists().then_some(root)
}

fn pages(root: &Path) -> Vec<PathBuf> {
    let in_docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = in_docs.filter(|path| path.extension().is_some_and(|e| e == "md"));
    let others = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/reproduction/README.md"];
    let folders = ["peers/README.md", "reference/README.md"];
    pages.chain(others.into_iter().chain(folders).map(|name| root.join(name))).collect()
}

/// What stands between `open` and `close`, wherever it does within a line.
fn between<'a>(text: &'a str, open: &'a str, close: &'a str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for mut line in text.lines() {
        while let Some((inside, after)) = line.split_once(open).and_then(|(_, rest)| rest.split_once(close)) {
            found.push(inside);
            line = after;
        }
    }
    found
}

#[test]
fn links_lead_somewhere() {
    let Some(root) = repository() else { return };
    let mut links = 0;
    for page in pages(&root) {
        let text = fs::read_to_string(&page).unwrap();
        for link in between(&text, "](", ")").into_iter().filter(|link| !link.starts_with("http")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            assert!(target.exists(), "{} links to {link}", page.display());
            let slug = |line: &str| {
                let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-');
                line.trim_start_matches('#').trim().to_lowercase().chars().filter(kept).collect::<String>()
            };
            let is_heading = |line: &str| line.starts_with('#') && slug(line).replace(' ', "-") == heading;
            let found = || fs::read_to_string(&target).unwrap().lines().any(is_heading);
            assert!(
                heading.is_empty() || found(),
                "{} links to {link}, which has no such heading",
                page.display()
            );
            links += 1;
        }
    }
    assert!(links > 20, "only {links} links were found: the test no longer reads them");
}

#[test]
fn files_that_are_named_exist() {
    let Some(root) = repository() else { return };
    let library = root.join("crates/proxlift");
    let mut files = 0;
    for page in pages(&root) {
        let text = fs::read_to_string(&page).unwrap();
        for name in between(&text, "`", "`")
            .into_iter()
            .filter(|name| name.ends_with(".rs") && !name.contains([' ', '*']))
        {
            let places = ["../..", ".", "src", "tests"].map(|folder| library.join(folder).join(name));
            assert!(places.iter().any(|place| place.exists()), "{} names {name}", page.display());
            files += 1;
        }
    }
    assert!(files > 40, "only {files} files were found: the test no longer reads them");
}

/// All source text of the library, for looking up names.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn names_in_the_notation_are_in_the_code() {
    let Some(root) = repository() else { return };
    let mut code = String::new();
    sources(&root.join("crates/proxlift/src"), &mut code);
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let words: std::collections::HashSet<&str> = code.split(|c| !is_name(c)).collect();
    let notation = fs::read_to_string(root.join("docs/notation.md")).unwrap();
    let mut names = 0;
    // The second column of the tables is the code.
    for cell in
        notation.lines().filter(|line| line.starts_with("| ")).filter_map(|line| line.split(" | ").nth(1))
    {
        for span in between(cell, "`", "`").into_iter().filter(|span| span.is_ascii()) {
            for name in span.split(|c| !is_name(c)).filter(|name| name.len() > 2) {
                assert!(words.contains(name), "docs/notation.md has `{span}`, but the code has no `{name}`");
                names += 1;
            }
        }
    }
    assert!(names > 50, "only {names} names were found: the test no longer reads them");
}

#[test]
fn code_in_the_guide_is_code_that_is_tested() {
    let Some(root) = repository() else { return };
    let mut code = String::new();
    sources(&root.join("crates/proxlift/src"), &mut code);
    sources(&root.join("crates/proxlift/tests/extending"), &mut code);
    let code: Vec<&str> = code.lines().map(str::trim).collect();
    let guide = fs::read_to_string(root.join("docs/extending.md")).unwrap();
    let blocks = guide.split("```rust\n").skip(1);
    let blocks: Vec<Vec<&str>> =
        blocks.map(|rest| rest.lines().map(str::trim).take_while(|line| *line != "```").collect()).collect();
    assert!(blocks.len() >= 4, "only {} blocks were found: the test no longer reads them", blocks.len());
    for block in blocks {
        let found = code.windows(block.len()).any(|window| window == block);
        let block = block.join("\n");
        assert!(found, "docs/extending.md quotes code that is not in the library or its tests:\n{block}");
    }
}
