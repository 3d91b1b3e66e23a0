//! The source files of the workspace and their modules.
//!
//! Also a rule: every file is reached from a crate root by `mod`. A file that is not reached is
//! neither compiled nor tested, and decays unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::finding::{Finding, expect_none};
use crate::source::{Source, leading_ident, words};

/// Folders without sources of the project.
const SKIPPED: &[&str] = &["target", "corpus", "artifacts", "coverage"];

/// The files of the workspace, by path from its root.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    sources: BTreeMap<String, Source>,
    /// Files that a manifest or a `#[path]` attribute names.
    named: BTreeSet<String>,
}

/// A declared module: the file that declares it, its name, and whether for tests only.
struct Declaration<'a> {
    by: &'a str,
    name: String,
    is_test: bool,
}

/// The folder that holds the workspace's manifest.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("hosted has a parent").into()
}

impl Tree {
    /// The workspace as it is on disk.
    pub(crate) fn load() -> Self {
        let mut texts = Vec::new();
        read_folder(&root(), "", &mut texts);
        let texts: Vec<(&str, &str)> =
            texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let tree = Self::from_texts(&texts);
        assert!(tree.sources.contains_key("core/src/lib.rs"), "this is not the house's root");
        tree
    }

    /// A tree of the given files: Rust sources and manifests.
    pub(crate) fn from_texts(texts: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for &(path, text) in texts {
            if path.ends_with("Cargo.toml") {
                tree.named.extend(named_paths(path, text, "path = \""));
            } else {
                tree.named.extend(named_paths(path, text, "#[path = \""));
                tree.sources.insert(path.into(), Source::parse(path, text));
            }
        }
        tree.spread_tests();
        tree
    }

    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.sources.values()
    }

    /// The findings of a rule in all sources.
    pub(crate) fn check(&self, rule: impl Fn(&Source) -> Vec<Finding>) -> Vec<Finding> {
        self.sources().flat_map(rule).collect()
    }

    fn declarations(&self) -> Vec<Declaration<'_>> {
        let mut all = Vec::new();
        for source in self.sources() {
            for (_, line) in source.numbered() {
                for at in words(&line.code, "mod ") {
                    let name = leading_ident(&line.code[at + 4..]);
                    if line.code[at + 4 + name.len()..].trim_start().starts_with(';') {
                        let is_test = line.is_test;
                        all.push(Declaration { by: &source.path, name: name.into(), is_test });
                    }
                }
            }
        }
        all
    }

    /// Marks the files as tests whose `mod` line is one.
    fn spread_tests(&mut self) {
        loop {
            let declarations = self.declarations();
            let tests = declarations.iter().filter(|declared| declared.is_test);
            let fresh: Vec<String> = tests
                .flat_map(Declaration::files)
                .filter(|path| self.sources.get(path).is_some_and(|source| !source.is_test()))
                .collect();
            if fresh.is_empty() {
                return;
            }
            for path in fresh {
                self.sources.get_mut(&path).expect("filtered above").mark_as_test();
            }
        }
    }
}

impl Declaration<'_> {
    /// The two places where the module's file may be.
    fn files(&self) -> [String; 2] {
        let (folder, file) = self.by.rsplit_once('/').unwrap_or(("", self.by));
        let folder = if is_root(self.by) || file == "mod.rs" {
            folder.to_owned()
        } else {
            format!("{folder}/{}", file.trim_end_matches(".rs"))
        };
        [format!("{folder}/{}.rs", self.name), format!("{folder}/{}/mod.rs", self.name)]
    }
}

/// Whether cargo finds the file by its path, as the root of a crate.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let holds_roots = |name: &str| ["tests", "examples", "benches", "fuzz_targets"].contains(&name);
    match parts[..] {
        [.., "build.rs" | "lib.rs"] | [.., "src", "main.rs"] | [.., "src", "bin", _] => true,
        // Below `src` a folder called `tests` holds modules.
        [ref above @ .., folder, _] if holds_roots(folder) => !above.contains(&"src"),
        [ref above @ .., folder, _, "main.rs"] if holds_roots(folder) => !above.contains(&"src"),
        _ => false,
    }
}

/// The files that `text` names after `marker`, as paths from the workspace's root.
fn named_paths(path: &str, text: &str, marker: &str) -> Vec<String> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    text.match_indices(marker)
        .filter_map(|(at, _)| text[at + marker.len()..].split('"').next())
        .filter(|named| named.ends_with(".rs"))
        .map(|named| format!("{folder}/{named}").trim_start_matches('/').to_owned())
        .collect()
}

fn read_folder(folder: &Path, prefix: &str, texts: &mut Vec<(String, String)>) {
    let entries = fs::read_dir(folder).expect("a folder of the workspace is readable");
    for entry in entries {
        let entry = entry.expect("a folder of the workspace can be listed");
        let name = entry.file_name().into_string().expect("names in the house are UTF-8");
        let kind = entry.file_type().expect("an entry has a type");
        let path = format!("{prefix}{name}");
        if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
            read_folder(&entry.path(), &format!("{path}/"), texts);
        } else if kind.is_file() && (name.ends_with(".rs") || name == "Cargo.toml") {
            let text = fs::read_to_string(entry.path()).expect("a source file is UTF-8");
            texts.push((path, text));
        }
    }
}

fn orphans(tree: &Tree) -> Vec<Finding> {
    let declarations = tree.declarations();
    let mut reached: BTreeSet<String> = tree.named.clone();
    reached.extend(tree.sources.keys().filter(|path| is_root(path)).cloned());
    loop {
        let from_reached = declarations.iter().filter(|declared| reached.contains(declared.by));
        let fresh: Vec<String> = from_reached
            .flat_map(Declaration::files)
            .filter(|path| tree.sources.contains_key(path) && !reached.contains(path))
            .collect();
        if fresh.is_empty() {
            break;
        }
        reached.extend(fresh);
    }
    tree.sources()
        .filter(|source| !reached.contains(&source.path))
        .map(|source| {
            let what = "no `mod` line leads to this file, so it is not compiled".into();
            source.finding(0, what, "declare it in its parent module, or delete it")
        })
        .collect()
}

#[test]
fn every_file_is_part_of_a_crate() {
    expect_none("every source file is reached by `mod`", &orphans(&Tree::load()));
}

#[test]
fn an_orphan_is_found() {
    let tree = Tree::from_texts(&[
        ("core/src/lib.rs", "pub mod mailbox;\n// mod lane;"),
        ("core/src/mailbox.rs", "mod owner;"),
        ("core/src/mailbox/owner.rs", ""),
        ("core/src/mailbox/writer.rs", ""),
        ("core/src/lane.rs", ""),
    ]);
    let found: Vec<String> = orphans(&tree).into_iter().map(|finding| finding.path).collect();
    assert_eq!(found, ["core/src/lane.rs", "core/src/mailbox/writer.rs"]);
}

#[test]
fn files_that_cargo_finds_or_a_manifest_names_are_no_orphans() {
    let tree = Tree::from_texts(&[
        ("hosted/Cargo.toml", "path = \"odd/place.rs\""),
        ("hosted/odd/place.rs", ""),
        ("hosted/build.rs", ""),
        ("hosted/src/main.rs", ""),
        ("hosted/src/bin/other.rs", ""),
        ("hosted/tests/storm.rs", "mod common;"),
        ("hosted/tests/common/mod.rs", "mod deep;"),
        ("hosted/tests/common/deep.rs", ""),
        ("hosted/tests/rules/main.rs", "mod one;"),
        ("hosted/tests/rules/one.rs", ""),
        ("fuzz/fuzz_targets/slot.rs", ""),
    ]);
    assert_eq!(orphans(&tree), []);
}

#[test]
fn a_file_declared_for_tests_is_a_test_with_all_below_it() {
    let tree = Tree::from_texts(&[
        ("core/src/lib.rs", "#[cfg(test)]\nmod model;\nmod plain;"),
        ("core/src/model.rs", "mod queue;"),
        ("core/src/model/queue.rs", "fn f() {}"),
        ("core/src/plain.rs", "fn f() {}"),
    ]);
    let tests: Vec<&str> = tree
        .sources()
        .filter(|source| source.is_test())
        .map(|source| source.path.as_str())
        .collect();
    assert_eq!(tests, ["core/src/model.rs", "core/src/model/queue.rs"]);
}
