//! The dependencies: licences and sources of all crates, as `deny.toml` allows them, and no crate
//! in the default build that only benchmarks compare with, nor one with a copyleft licence in it or
//! in the build with RDMA.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use crate::finding::{Finding, expect_none};
use crate::tree::root;

/// The crates that only the feature `rivals` brings.
const RIVALS: &[&str] = &["foca", "hierarchical_hash_wheel_timer", "tokio", "tokio-util"];

/// How the names of copyleft licences begin.
const COPYLEFT: &[&str] = &["AGPL", "CDDL", "EPL", "EUPL", "GPL", "LGPL", "MPL", "OSL"];

/// The licences that `deny.toml` allows.
struct Allowed {
    all: BTreeSet<String>,
    /// Further licences, by crate.
    exceptions: Vec<(String, BTreeSet<String>)>,
}

impl Allowed {
    fn load() -> Self {
        let text = fs::read_to_string(root().join("deny.toml")).expect("it is there");
        let table: toml::Table = text.parse().expect("it is TOML");
        let words = |value: &toml::Value| {
            let words = value["allow"].as_array().expect("a list").iter();
            words.map(|word| word.as_str().expect("a licence").to_owned()).collect()
        };
        let licences = &table["licenses"];
        let exceptions = licences["exceptions"].as_array().expect("a list").iter();
        let exception = |it| (text_of(it, "crate"), words(it));
        Self { all: words(licences), exceptions: exceptions.map(exception).collect() }
    }

    /// The same without copyleft licences.
    fn without_copyleft(mut self) -> Self {
        let exceptions = self.exceptions.iter_mut().map(|(_, licences)| licences);
        for licences in exceptions.chain([&mut self.all]) {
            licences.retain(|it| !COPYLEFT.iter().any(|copyleft| it.starts_with(copyleft)));
        }
        self
    }

    fn permits(&self, name: &str, licence: &str) -> bool {
        let exception = self.exceptions.iter().find(|(it, _)| it == name);
        let is_known =
            |one: &str| self.all.contains(one) || exception.is_some_and(|(_, it)| it.contains(one));
        // The slash is an older form of OR.
        let licence = licence.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        is_met(&licence.split_whitespace().collect::<Vec<_>>(), &is_known)
    }
}

fn text_of(value: &toml::Value, key: &str) -> String {
    value[key].as_str().expect("a text").to_owned()
}

/// Whether an SPDX expression is met: of the parts of an OR any, of an AND all.
fn is_met(words: &[&str], is_known: &dyn Fn(&str) -> bool) -> bool {
    let parts = |operator: &str| {
        let mut depth = 0_i32;
        let outside = |word: &&str| {
            depth += i32::from(*word == "(") - i32::from(*word == ")");
            depth == 0 && *word == operator
        };
        words.split(outside).collect::<Vec<_>>()
    };
    let (any, all) = (parts("OR"), parts("AND"));
    match words {
        _ if any.len() > 1 => any.into_iter().any(|part| is_met(part, is_known)),
        _ if all.len() > 1 => all.into_iter().all(|part| is_met(part, is_known)),
        ["(", inner @ .., ")"] => is_met(inner, is_known),
        one => is_known(&one.join(" ")),
    }
}

/// A crate, as `cargo tree` shows it.
struct Crate {
    name: String,
    version: String,
    /// The source, if it is not the registry; empty otherwise.
    place: String,
    licence: String,
}

impl Crate {
    fn of_line(line: &str) -> Option<Self> {
        let (package, licence) = line.trim_end_matches(" (*)").split_once('|')?;
        let mut words = package.split_whitespace();
        let name = words.next()?.to_owned();
        let version = words.next()?.to_owned();
        let place = words.find(|word| *word != "(proc-macro)").unwrap_or_default();
        Some(Self { name, version, place: place.to_owned(), licence: licence.to_owned() })
    }

    fn breach(&self, allowed: &Allowed) -> Option<Finding> {
        let Self { name, place, licence, .. } = self;
        let (what, cure) = if !allowed.permits(name, licence) {
            let cure = "do without it, or allow the licence in deny.toml and say why";
            (format!("the licence {licence:?} is not allowed"), cure)
        } else if !place.is_empty() && !place.starts_with(&format!("({}", root().display())) {
            (format!("comes from {place}"), "take a release from the registry")
        } else {
            return None;
        };
        Some(Finding { path: "Cargo.lock".into(), line: 0, what: format!("{name}: {what}"), cure })
    }
}

/// The crates of a build for this machine with these features.
fn crates(features: &[&str]) -> Vec<Crate> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--prefix", "none", "--format", "{p}|{l}"]);
    let asked = cargo.args(features).current_dir(root()).output().expect("cargo starts");
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let shown = String::from_utf8(asked.stdout).expect("a text");
    shown.lines().filter_map(Crate::of_line).collect()
}

#[test]
fn every_crate_has_a_licence_and_a_source_that_are_allowed() {
    let (allowed, crates) = (Allowed::load(), crates(&["--workspace", "--all-features"]));
    assert!(RIVALS.iter().all(|rival| crates.iter().any(|it| it.name == *rival)));
    let findings: Vec<_> = crates.iter().filter_map(|it| it.breach(&allowed)).collect();
    expect_none("licences and sources are those of deny.toml", &findings);
}

/// As `bans.skip` has them: an entry that is not needed any more goes, too.
#[test]
fn only_the_crates_that_are_named_come_in_several_versions() {
    let text = fs::read_to_string(root().join("deny.toml")).expect("it is there");
    let table: toml::Table = text.parse().expect("it is TOML");
    assert_eq!(table["bans"]["multiple-versions"].as_str(), Some("deny"));
    let skipped = table["bans"]["skip"].as_array().expect("a list");
    let skipped: BTreeSet<String> = skipped.iter().map(|it| text_of(it, "crate")).collect();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Crate { name, version, .. } in crates(&["--workspace", "--all-features"]) {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let found: BTreeSet<String> = versions.into_keys().collect();
    assert_eq!(found, skipped, "found, and named in deny.toml");
}

#[test]
fn the_default_build_has_no_rival() {
    let crates = crates(&["--workspace"]);
    let found: Vec<_> =
        RIVALS.iter().filter(|it| crates.iter().any(|one| one.name == **it)).collect();
    assert!(found.is_empty(), "{found:?}: only the feature `rivals` may bring them");
}

/// What is distributed: without the tests, whose crates are in no program.
#[test]
fn neither_the_default_build_nor_that_with_rdma_has_copyleft() {
    let allowed = Allowed::load().without_copyleft();
    for features in ["", "weft-program/verbs"] {
        let built = crates(&["--workspace", "--edges", "normal,build", "--features", features]);
        let opens_libibverbs = |it: &Crate| it.name == "rdma-core-sys";
        assert!(features.is_empty() || built.iter().any(opens_libibverbs));
        let findings: Vec<_> = built.iter().filter_map(|it| it.breach(&allowed)).collect();
        expect_none("programs contain no copyleft", &findings);
    }
}

/// A program that joins, or that only speaks to a cluster, depends on `weft` alone.
#[test]
fn the_library_brings_no_command_line_and_few_crates() {
    /// What the library needs now, seven of them for the HTTP of discovery, one for
    /// checksums: raise it only with a
    /// reason in the commit.
    const CRATES_MAX: usize = 79;
    let of_library = ["--package", "weft", "--edges", "normal"];
    let crates = crates(&of_library);
    let names: BTreeSet<&str> = crates.iter().map(|it| it.name.as_str()).collect();
    let strangers = ["clap", "clap_builder", "ratatui", "crossterm", "indicatif", "tokio"];
    let found: Vec<_> =
        strangers.iter().chain(RIVALS).filter(|name| names.contains(**name)).collect();
    assert!(found.is_empty(), "{found:?}: they belong to the packages of the program");
    assert!(names.len() <= CRATES_MAX, "{} crates, at most {CRATES_MAX}: {names:?}", names.len());
}

#[test]
fn a_licence_or_a_source_that_is_not_allowed_is_found() {
    let allowed = Allowed {
        all: ["MIT", "Zlib", "Unicode-3.0"].map(str::to_owned).into(),
        exceptions: vec![("foca".to_owned(), ["MPL-2.0".to_owned()].into())],
    };
    for (licence, is_allowed) in [
        ("MIT", true),
        ("Apache-2.0/MIT", true),
        ("GPL-2.0 OR MIT", true),
        ("GPL-2.0 AND MIT", false),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("(GPL-2.0 OR Apache-2.0) AND (MIT OR Zlib)", false),
        ("MIT WITH some-exception", false),
        ("MPL-2.0", false),
        ("", false),
    ] {
        assert_eq!(allowed.permits("a", licence), is_allowed, "{licence}");
    }
    assert!(allowed.permits("foca", "MPL-2.0"));
    assert!(allowed.permits("foca", "MPL-2.0 OR MIT"));
    for (line, is_allowed) in [
        ("serde_derive v1.0.2 (proc-macro)|MIT", true),
        ("serde v1.0.2|MIT (*)", true),
        (&format!("weft v0.1.0 ({}/hosted)|MIT", root().display()), true),
        ("serde v1.0.2 (https://example.org/serde#1234)|MIT", false),
        ("serde v1.0.2 (/elsewhere/serde)|MIT", false),
        ("serde v1.0.2|", false),
    ] {
        let breach = Crate::of_line(line).expect("a crate").breach(&allowed);
        assert_eq!(breach.is_none(), is_allowed, "{line}: {breach:?}");
    }
    let allowed = allowed.without_copyleft();
    assert!(!allowed.permits("foca", "MPL-2.0"));
    assert!(allowed.permits("foca", "MPL-2.0 OR MIT"));
}
