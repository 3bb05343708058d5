//! The architecture, held: modules beside each other depend on each other in one direction only.
//!
//! Read from the `use` lines and the paths in the sources, with re-exports followed to the file that has the item. What a
//! module takes from the ones above it, or from those inside it, is its own affair; code of tests does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Module = Vec<String>;

/// The sources of a crate by module, without comments and tests.
fn modules(root: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(root.to_path_buf(), Module::new())];
    while let Some((folder, module)) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_string();
            let inside: Module = module.iter().cloned().chain([name.clone()]).collect();
            if path.is_dir() {
                folders.push((path, inside));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let own =
                    if ["mod", "lib", "main"].contains(&name.as_str()) { module.clone() } else { inside };
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap();
                let code = text.lines().map(|line| line.split("//").next().unwrap());
                found.insert(own, code.collect::<Vec<_>>().join("\n"));
            }
        }
    }
    found
}

/// All paths of a `use` tree such as `a::{b, c::{d, e as f}}`.
fn expand(tree: &str, before: &str, paths: &mut Vec<String>) {
    let mut depth = 0;
    let mut start = 0;
    let ends = tree.char_indices().chain([(tree.len(), ',')]);
    for (i, c) in ends {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let item = tree[start..i].trim();
                start = (i + 1).min(tree.len());
                match item.split_once('{') {
                    Some((prefix, rest)) => {
                        let rest = rest.trim_end().strip_suffix('}').unwrap_or(rest);
                        expand(rest, &format!("{before}{}", prefix.trim()), paths);
                    }
                    None if !item.is_empty() => {
                        paths.push(format!("{before}{}", item.split(" as ").next().unwrap().trim()));
                    }
                    None => {}
                }
            }
            _ => {}
        }
    }
}

/// The paths of `use` statements, those that are published apart, and the paths inside the code.
fn paths(code: &str) -> (Vec<String>, Vec<String>) {
    let (mut used, mut published) = (Vec::new(), Vec::new());
    for statement in code.split(';') {
        let Some(at) = statement.rfind("use ").filter(|at| {
            let line = statement[..*at].rsplit(['\n', '}', '{']).next().unwrap().trim();
            line.is_empty() || line.starts_with("pub")
        }) else {
            continue;
        };
        let is_public = statement[..at].trim_end().ends_with("pub");
        let tree = statement[at + 4..].replace('\n', " ");
        expand(&tree, "", if is_public { &mut published } else { &mut used });
    }
    for root in ["crate::", "super::"] {
        let inline = code.match_indices(root).map(|(at, _)| {
            let end = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
            code[at..].split(end).next().unwrap().trim_end_matches(':').to_string()
        });
        used.extend(inline);
    }
    (used, published)
}

/// Where a path of `module` leads: the module that has the item.
fn resolve(
    path: &str,
    module: &Module,
    all: &BTreeMap<Module, String>,
    published: &BTreeMap<Module, BTreeMap<String, Module>>,
) -> Option<Module> {
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut at = match *parts.peek()? {
        "crate" => {
            parts.next();
            Module::new()
        }
        "super" => {
            let mut at = module.clone();
            while parts.peek() == Some(&"super") {
                parts.next();
                at.pop()?;
            }
            at
        }
        first => {
            let inside: Module = module.iter().cloned().chain([first.to_string()]).collect();
            all.contains_key(&inside).then(|| module.clone())?
        }
    };
    for part in parts {
        let inside: Module = at.iter().cloned().chain([part.to_string()]).collect();
        if all.contains_key(&inside) {
            at = inside;
        } else if let Some(source) = published.get(&at).and_then(|names| names.get(part)) {
            at = source.clone();
        } else {
            break;
        }
    }
    Some(at)
}

/// Which modules beside each other use which, as pairs of full names.
fn edges(root: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let all = modules(root);
    let mut published: BTreeMap<Module, BTreeMap<String, Module>> = BTreeMap::new();
    for (module, code) in &all {
        for path in paths(code).1 {
            let name = path.rsplit("::").next().unwrap().to_string();
            if let Some(source) = resolve(&path, module, &all, &BTreeMap::new()) {
                published.entry(module.clone()).or_default().insert(name, source);
            }
        }
    }
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, code) in &all {
        let (used, republished) = paths(code);
        for path in used.iter().chain(&republished) {
            let Some(target) = resolve(path, module, &all, &published) else { continue };
            let common = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if common < module.len() && common < target.len() {
                let name = |m: &Module| m[..=common].join("::");
                edges.entry(name(module)).or_default().insert(name(&target));
            }
        }
    }
    edges
}

/// A way from a module back to itself.
fn cycle(edges: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn walk(
        at: &str,
        edges: &BTreeMap<String, BTreeSet<String>>,
        way: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = way.iter().position(|module| module == at) {
            return Some(way[start..].iter().cloned().chain([at.to_string()]).collect());
        }
        if done.contains(at) {
            return None;
        }
        way.push(at.to_string());
        let found = edges.get(at).into_iter().flatten().find_map(|next| walk(next, edges, way, done));
        way.pop();
        done.insert(at.to_string());
        found
    }
    let mut done = BTreeSet::new();
    edges.keys().find_map(|start| walk(start, edges, &mut Vec::new(), &mut done))
}

#[test]
fn modules_depend_on_each_other_in_one_direction() {
    for crate_root in ["../proxlift/src", "src"] {
        let edges = edges(&Path::new(env!("CARGO_MANIFEST_DIR")).join(crate_root));
        assert!(edges.len() > 10, "{crate_root}: hardly any modules were read");
        assert_eq!(cycle(&edges), None, "{crate_root}");
    }
}

#[test]
fn the_network_does_not_know_what_computes_it() {
    let edges = edges(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../proxlift/src"));
    let used = |module: &str| edges.get(module).cloned().unwrap_or_default();
    assert!(used("engine").contains("network") && used("network").contains("prox"));
    for (below, above) in
        [("network", "engine"), ("prox", "network"), ("engine", "training"), ("field", "network")]
    {
        assert!(!used(below).contains(above), "{below} uses {above}");
    }
}

#[test]
fn a_cycle_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    file("lib.rs", "pub mod a; pub mod b;\npub use b::{self, Thing as Other};\n");
    file("a.rs", "use crate::{\n    b::{Thing},\n};\n// use crate::c;\n");
    file("b.rs", "pub struct Thing;\n#[cfg(test)]\nuse crate::a::X;\n");
    assert_eq!(cycle(&edges(folder.path())), None);
    file("b.rs", "pub struct Thing;\nfn f() { super::a::g() }\n");
    assert_eq!(cycle(&edges(folder.path())), Some(["a", "b", "a"].map(String::from).to_vec()));
}
