//! The layers of core and of the library: imports only point down, and core has no crate below it
//! but `core`.
//!
//! ```text
//!   endpoint                                                      composes the machines
//!   mailbox  neb  group  rendezvous  dirnet  recovery             none imports another
//!   lane                                                          carries their messages
//!   wire  decision  vote
//!   fabric
//!   wheel
//!   ids  time  fmt  checksum  mutant  sync                        vocabulary, shared freely
//! ```
//!
//! A machine that imported another could no longer be read, tested or explored alone. The floors of
//! the library are in [`HOSTED`].

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, leading_ident, line_of, words};
use crate::tree::Tree;

/// The layers of a crate, from the lowest up. Only the modules of the first may import each other.
struct House {
    /// The folder of its sources.
    folder: &'static str,
    floors: &'static [&'static [&'static str]],
}

const CORE: House = House {
    folder: "core/src/",
    floors: &[
        &["ids", "time", "fmt", "checksum", "mutant", "sync"],
        &["wheel"],
        &["fabric"],
        &["wire", "decision", "vote"],
        &["lane"],
        &["mailbox", "neb", "group", "rendezvous", "dirnet", "recovery"],
        &["endpoint", "script"],
    ],
};

const HOSTED: House = House {
    folder: "hosted/src/",
    floors: &[
        &["allocations", "clock", "explain", "payload", "scratch"],
        &["readiness", "regular_file", "words"],
        &["packet", "sealed"],
        &["process"],
        &["shm"],
        &["cluster", "signing", "tensor"],
        &["runtime_dir"],
        &["bootstrap"],
        &["node"],
        &["client", "member"],
        &["launch", "task"],
    ],
};

fn without_std(source: &Source) -> Vec<Finding> {
    let names_library = |code: &str, library: &str| {
        let root = words(code, library).any(|at| {
            let (before, after) = (&code[..at], &code[at + library.len()..]);
            // `core::alloc::Layout` is fine, `::alloc::vec::Vec` is not.
            let is_nested = before.strip_suffix("::").is_some_and(ends_in_ident);
            after.starts_with("::") && !is_nested
        });
        root || words(code, &format!("use {library}")).next().is_some()
    };
    let is_core = source.path.starts_with(CORE.folder);
    source
        .numbered()
        .filter(|(_, line)| is_core && !line.is_test)
        .filter_map(|(at, line)| {
            let has = |what: &&&str| match **what {
                "extern crate" => words(&line.code, what).next().is_some(),
                library => names_library(&line.code, library),
            };
            let what = ["std", "alloc", "extern crate"].iter().find(has)?;
            let cure = "use `core`, a fixed capacity, or move it to hosted";
            Some(source.finding(at, format!("`{what}` in core"), cure))
        })
        .collect()
}

fn ends_in_ident(code: &str) -> bool {
    code.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
}

fn points_down(house: &House, source: &Source) -> Vec<Finding> {
    let Some(inner) =
        source.path.strip_prefix(house.folder).and_then(|path| path.strip_suffix(".rs"))
    else {
        return Vec::new();
    };
    let module = leading_ident(inner);
    if module == "lib" || source.is_test() {
        return Vec::new();
    }
    let Some(floor) = house.floor_of(module) else {
        let what = format!("module {module} stands on no floor");
        return vec![source.finding(0, what, "add it to the floors in hosted/tests/house_rules")];
    };
    let code = source.code();
    house
        .references(&code, inner.trim_end_matches("/mod").split('/').count())
        .into_iter()
        .map(|(at, name)| (line_of(&code, at), name))
        .filter(|(line, name)| !source.lines[line - 1].is_test && *name != module)
        .filter_map(|(line, name)| house.breach(floor, name).map(|why| (line, name, why)))
        .map(|(line, name, (why, cure))| {
            source.finding(line, format!("{module} uses {name}, {why}"), cure)
        })
        .collect()
}

impl House {
    /// Why `floor` must not name `name`, and the cure; none if it may.
    fn breach(&self, floor: usize, name: &str) -> Option<(&'static str, &'static str)> {
        let shares_freely = |other| floor == 0 && other == 0;
        match self.floor_of(name) {
            Some(other) if other < floor || shares_freely(other) => None,
            Some(other) if other == floor => {
                Some(("a module of its own floor", "let the floor above bring the two together"))
            }
            Some(_) => Some(("a module above it", "move what both need to the lower one")),
            None => Some(("which is no module of a floor", "name the module that defines it")),
        }
    }

    fn floor_of(&self, module: &str) -> Option<usize> {
        self.floors.iter().position(|floor| floor.contains(&module))
    }

    /// The names at the crate's root that `code` uses, through `crate::` or through as many
    /// `super::` as its module is deep. Macros are left out: they are at the root wherever they are
    /// defined.
    fn references<'a>(&self, code: &'a str, depth: usize) -> Vec<(usize, &'a str)> {
        let supers = "super::".repeat(depth);
        let from_root = words(code, "crate::").map(|at| at + "crate::".len());
        let from_root = from_root.flat_map(|at| names_at(code, at));
        let from_below = words(code, &supers)
            .filter(|&at| !code[..at].ends_with("super::"))
            .flat_map(|at| names_at(code, at + supers.len()))
            // An inline module is one level deeper, so its `super::` leads only to this file.
            .filter(|(_, name)| self.floor_of(name).is_some());
        from_root.chain(from_below).collect()
    }
}

/// The name at `at`, or the first of each path when a group stands there.
fn names_at(code: &str, at: usize) -> Vec<(usize, &str)> {
    let mut names: Vec<(usize, &str)> = match code[at..].strip_prefix('{') {
        Some(group) => group_heads(group).map(|(head, name)| (at + 1 + head, name)).collect(),
        None if code[at..].starts_with('*') => vec![(at, &code[at..=at])],
        None => vec![(at, leading_ident(&code[at..]))],
    };
    names.retain(|(at, name)| {
        let is_macro = code[at + name.len()..].starts_with('!');
        !is_macro && !["", "super", "self"].contains(name)
    });
    names
}

/// The first name of each member of a `{a::b, c::{d, e}}`, whose opening brace is cut off.
fn group_heads(group: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut depth = 1_usize;
    let mut is_head = true;
    let heads = group.char_indices().map_while(move |(at, letter)| {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        let begins = is_head && !letter.is_whitespace();
        is_head = (is_head && letter.is_whitespace()) || (letter == ',' && depth == 1);
        (depth > 0).then_some((at, begins))
    });
    heads.filter(|(_, begins)| *begins).map(|(at, _)| (at, leading_ident(&group[at..])))
}

#[test]
fn core_has_no_std() {
    expect_none("core uses neither std nor alloc", &Tree::load().check(without_std));
}

#[test]
fn imports_point_down() {
    for house in [&CORE, &HOSTED] {
        let found = Tree::load().check(|source| points_down(house, source));
        expect_none("imports point down, and machines do not import each other", &found);
    }
}

#[test]
fn std_in_core_is_found() {
    let bad = "//! std::fmt\nuse std::fmt;\nextern crate alloc;\nlet a = ::alloc::vec![1];\n\
               use core::alloc::Layout;\nlet b = my_std::f();\nuse {std::io};\nuse alloc as a;\n\
               #[cfg(test)]\nuse std::vec::Vec;\nlet a = \"std::fmt\";";
    let check = |path| lines(&without_std(&Source::parse(path, bad)));
    assert_eq!(check("core/src/mailbox.rs"), [2, 3, 4, 7, 8]);
    assert_eq!(check("core/src/mailbox/tests.rs"), []);
    assert_eq!(check("hosted/src/node.rs"), []);
}

#[test]
fn a_machine_that_imports_another_is_found() {
    for bad in [
        "use crate::neb;",
        "use crate::neb::Slot;",
        "use crate::{\n    fabric::Fabric,\n    neb::{Slot, Vote},\n};",
        "fn f(_: crate::neb::Slot) {}",
        "use super::neb;",
        "use super::{ids::Rank, neb};",
        "use crate::group::Groups;",
        "use crate::endpoint::Endpoint;",
        "use crate::Rank;",
        "use crate::*;",
    ] {
        let found = points_down(&CORE, &Source::parse("core/src/mailbox.rs", bad));
        assert_eq!(found.len(), 1, "{bad}: {found:?}");
    }
}

#[test]
fn the_finding_is_at_the_line_of_the_name() {
    let bad = "use crate::{\n    fabric::{Fabric, Work},\n    ids::Rank,\n    neb,\n};";
    assert_eq!(lines(&points_down(&CORE, &Source::parse("core/src/mailbox.rs", bad))), [4]);
}

#[test]
fn an_import_across_a_deeper_file_is_found() {
    let check = |text| points_down(&CORE, &Source::parse("core/src/mailbox/owner.rs", text)).len();
    assert_eq!(check("use super::super::neb;"), 1);
    assert_eq!(check("use super::neb;"), 0);
}

#[test]
fn imports_that_point_down_pass() {
    for good in [
        "use crate::fabric::{Fabric, Work};",
        "use crate::{ids::Rank, time::Instant, wire};",
        "use crate::mailbox::Owner;",
        "use crate::lane::LaneReader;",
        "crate::trace!(\"taken\");",
        "// crate::neb",
        "mod field {\n    use super::Slot;\n}",
        "#[cfg(test)]\nmod tests {\n    use crate::endpoint::Endpoint;\n}",
    ] {
        assert_eq!(points_down(&CORE, &Source::parse("core/src/mailbox.rs", good)), [], "{good}");
    }
    assert_eq!(points_down(&CORE, &Source::parse("core/src/time.rs", "use crate::fmt;")), []);
}

#[test]
fn an_import_that_points_up_is_found_in_the_library_as_well() {
    let check = |path, text| points_down(&HOSTED, &Source::parse(path, text)).len();
    assert_eq!(
        check("hosted/src/bootstrap/session_message.rs", "use crate::node::control::Payload;"),
        1
    );
    assert_eq!(check("hosted/src/node/reset.rs", "use crate::launch::ToLauncher;"), 1);
    assert_eq!(check("hosted/src/node/reset.rs", "use crate::packet::Socket;"), 0);
}

#[test]
fn a_module_without_a_floor_is_found() {
    assert_eq!(points_down(&CORE, &Source::parse("core/src/sundries.rs", "//! x")).len(), 1);
}
