//! The layout of a file: its claim first, few enough lines, and lines narrow enough for two side by
//! side.

use crate::finding::{Finding, expect_none, lines};
use crate::source::Source;
use crate::tree::Tree;

/// The most lines a file may have beside its tests. Aim at 300.
const LINES_MAX: usize = 600;

/// The most characters a line may have.
const COLUMNS_MAX: usize = 100;

fn begins_with_its_claim(source: &Source) -> Vec<Finding> {
    if source.lines.first().is_some_and(|line| line.text.starts_with("//!")) {
        return Vec::new();
    }
    let cure = "begin it with `//!`: what it claims, and a drawing where order matters";
    vec![source.finding(1, "the file does not say what it is".into(), cure)]
}

fn is_short(source: &Source) -> Vec<Finding> {
    let len = source.lines.iter().filter(|line| !line.is_test).count();
    if len <= LINES_MAX {
        return Vec::new();
    }
    let what = format!("{len} lines beside the tests, at most {LINES_MAX}");
    vec![source.finding(LINES_MAX + 1, what, "split it where its second noun appears")]
}

fn is_narrow(source: &Source) -> Vec<Finding> {
    let is_excused = |text: &str| {
        let in_table = text.trim_start().trim_start_matches(['/', '!']).trim_start();
        text.contains("://") || text.trim_start().starts_with("//") && in_table.starts_with('|')
    };
    source
        .numbered()
        .map(|(at, line)| (at, &line.text, line.text.chars().count()))
        .filter(|(_, text, len)| *len > COLUMNS_MAX && !is_excused(text))
        .map(|(at, _, len)| {
            let what = format!("{len} columns, at most {COLUMNS_MAX}");
            source.finding(at, what, "break the line, or name a part of it")
        })
        .collect()
}

#[test]
fn files_begin_with_their_claim() {
    expect_none("a file begins with //!", &Tree::load().check(begins_with_its_claim));
}

#[test]
fn files_are_short() {
    expect_none("a file is short beside its tests", &Tree::load().check(is_short));
}

#[test]
fn lines_are_narrow() {
    expect_none("a line has at most 100 columns", &Tree::load().check(is_narrow));
}

#[test]
fn a_file_without_a_claim_is_found() {
    let check = |text| begins_with_its_claim(&Source::parse("core/src/neb.rs", text)).len();
    assert_eq!(check("// Not this.\n//! Too late."), 1);
    assert_eq!(check(""), 1);
    assert_eq!(check("//! Non-equivocating broadcast."), 0);
}

#[test]
fn a_long_file_is_found() {
    let check = |text: &str| lines(&is_short(&Source::parse("core/src/neb.rs", text)));
    assert_eq!(check(&"let a = 1;\n".repeat(LINES_MAX + 1)), [LINES_MAX + 1]);
    let tested = format!("#[cfg(test)]\nmod tests {{\n{}}}", "let a = 1;\n".repeat(LINES_MAX));
    assert_eq!(check(&format!("{}{tested}", "let a = 1;\n".repeat(LINES_MAX))), []);
}

#[test]
fn a_wide_line_is_found() {
    let wide = "é".repeat(COLUMNS_MAX + 1);
    let bad = format!("{wide}\n// {wide}\n// | {wide} |\n// see https://{wide}\n// short");
    assert_eq!(lines(&is_narrow(&Source::parse("core/src/neb.rs", &bad))), [1, 2]);
}
