//! The top level of the repository: its entries are those that the design names, and no others.

use std::fs;

use crate::finding::{Finding, expect_none};
use crate::tree::root;

const ALLOWED: &[&str] = &[
    "core",
    "driver",
    "hosted",
    "fuzz",
    "ci",
    "Cargo.toml",
    "Cargo.lock",
    "deny.toml",
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    // Where people look for it who report a flaw.
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "rustfmt.toml",
    // Built, never committed.
    "target",
];

fn strangers(names: &[&str]) -> Vec<Finding> {
    let is_allowed = |name: &str| name.starts_with('.') || ALLOWED.contains(&name);
    names
        .iter()
        .filter(|name| !is_allowed(name))
        .map(|&name| Finding {
            path: name.into(),
            line: 0,
            what: "does not belong at the top level".into(),
            cure: "scripts go to ci, documents into the three at the top, the rest into a crate",
        })
        .collect()
}

#[test]
fn the_top_level_holds_what_the_design_names() {
    let entries = fs::read_dir(root()).expect("the root is readable");
    let names: Vec<String> = entries
        .map(|entry| entry.expect("the root can be listed").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    expect_none("the top level holds only what the design names", &strangers(&names));
}

#[test]
fn a_stranger_at_the_top_level_is_found() {
    let found = strangers(&["core", "scripts", ".gitignore", "NOTES.md", "README.md"]);
    let paths: Vec<&str> = found.iter().map(|finding| finding.path.as_str()).collect();
    assert_eq!(paths, ["scripts", "NOTES.md"]);
}
