//! Unsafe code: only where it is allowed, never in core, and never without its reason.

use crate::finding::{Finding, expect_none, lines};
use crate::source::{Source, words};
use crate::tree::Tree;

/// Where unsafe code is allowed: the memory that processes share, processes themselves, raw
/// sockets, the verbs bindings, the border to C, the program's allocator, memory that arrays of
/// Python share, and the program that has no library below it.
const ALLOWED: &[&str] = &[
    "ci/bare-metal/src/ground.rs",
    "driver/src/",
    "driver/sys/src/",
    "hosted/c/src/",
    "hosted/python/src/dlpack.rs",
    "hosted/python/src/message.rs",
    "hosted/python/src/tensor.rs",
    "hosted/python/src/tensor_bytes.rs",
    "hosted/src/allocations.rs",
    "hosted/src/packet/credentials.rs",
    "hosted/src/process/",
    "hosted/src/shm/",
];

fn in_its_place(source: &Source) -> Vec<Finding> {
    let in_core = source.path.starts_with("core/");
    let allowed = ALLOWED.iter().any(|place| source.path.starts_with(place));
    let outside = source.numbered().filter(|(_, line)| in_core || !(allowed || line.is_test));
    outside
        .filter(|(_, line)| words(&line.code, "unsafe").next().is_some())
        .map(|(at, _)| {
            let cure = "use a safe form, or put it where ALLOWED in this rule says";
            source.finding(at, "`unsafe` outside its places".into(), cure)
        })
        .collect()
}

fn forbidden_in_core(source: &Source) -> Vec<Finding> {
    let forbids = source.lines.iter().any(|line| line.code.trim() == "#![forbid(unsafe_code)]");
    if source.path != "core/src/lib.rs" || forbids {
        return Vec::new();
    }
    let what = "core does not forbid unsafe code".into();
    vec![source.finding(0, what, "write #![forbid(unsafe_code)] at its top")]
}

fn with_its_reason(source: &Source) -> Vec<Finding> {
    let opens = |code: &str| {
        words(code, "unsafe").any(|at| {
            let rest = code[at + "unsafe".len()..].trim_start();
            let begins = |word| words(rest, word).next() == Some(0);
            rest.is_empty()
                || rest.starts_with('{')
                || begins("impl")
                // `unsafe fn(` is a type, which promises nothing by itself.
                || (begins("fn") && !rest[2..].trim_start().starts_with('('))
        })
    };
    source
        .numbered()
        .filter(|(at, line)| opens(&line.code) && !has_reason(source, *at))
        .map(|(at, _)| {
            let cure = "write `// SAFETY: why this is sound` right above it";
            source.finding(at, "unsafe code without its reason".into(), cure)
        })
        .collect()
}

/// Whether the statement that contains line `at` has a SAFETY comment on it or right above.
fn has_reason(source: &Source, at: usize) -> bool {
    let says = |comment: &str| comment.contains("SAFETY:") || comment.contains("# Safety");
    for (index, line) in source.lines[..at].iter().enumerate().rev() {
        let code = line.code.trim();
        if says(&line.comment) {
            return true;
        }
        let is_own_line = index + 1 == at;
        let is_attribute = code.starts_with("#[");
        let ends_another = code.is_empty() && line.comment.trim().is_empty()
            || !is_attribute && code.ends_with([';', '{', '}', ',']);
        if !is_own_line && ends_another {
            return false;
        }
    }
    false
}

#[test]
fn unsafe_code_is_in_its_places() {
    expect_none("unsafe code only where it is allowed", &Tree::load().check(in_its_place));
}

#[test]
fn core_forbids_unsafe_code() {
    expect_none("core forbids unsafe code", &Tree::load().check(forbidden_in_core));
}

#[test]
fn unsafe_code_says_why_it_is_sound() {
    expect_none("unsafe code has a SAFETY comment", &Tree::load().check(with_its_reason));
}

#[test]
fn unsafe_code_out_of_place_is_found() {
    let bad = "//! x\nfn f() { unsafe {} }\n#[cfg(test)]\nmod tests { fn f() { unsafe {} } }";
    let check = |path| lines(&in_its_place(&Source::parse(path, bad)));
    assert_eq!(check("hosted/src/node.rs"), [2]);
    assert_eq!(check("hosted/src/shm_not.rs"), [2]);
    assert_eq!(check("core/src/mailbox.rs"), [2, 4]);
    assert_eq!(check("hosted/src/shm/segment.rs"), []);
    assert_eq!(check("hosted/tests/storm.rs"), []);
}

#[test]
fn a_core_that_allows_unsafe_code_is_found() {
    let check = |text| forbidden_in_core(&Source::parse("core/src/lib.rs", text)).len();
    assert_eq!(check("#![no_std]\n// #![forbid(unsafe_code)]"), 1);
    assert_eq!(check("#![no_std]\n#![forbid(unsafe_code)]"), 0);
}

#[test]
fn unsafe_code_without_a_reason_is_found() {
    for bad in [
        "fn f() {\n    unsafe { g() }\n}",
        "// SAFETY: of another\nlet a = 1;\nlet b = unsafe { g() };",
        "// SAFETY: too far away\n\nunsafe impl Send for A {}",
        "/// Frees it.\npub unsafe fn free() {}",
        "let a =\n    unsafe\n{ g() };",
    ] {
        let found = with_its_reason(&Source::parse("hosted/src/shm.rs", bad));
        assert_eq!(found.len(), 1, "{bad}");
    }
}

#[test]
fn unsafe_code_with_a_reason_passes() {
    for good in [
        "// SAFETY: mapped above.\nlet a = unsafe { g() };",
        "// SAFETY: mapped above,\n// and kept so.\nlet a =\n    unsafe { g() };",
        "/// # Safety\n/// Once.\n#[inline]\npub unsafe fn free() {}",
        "let hook: unsafe fn(u8) = g;",
        "#[unsafe(no_mangle)]\nfn f() {}",
        "unsafe { g() } // SAFETY: mapped above.",
    ] {
        let found = with_its_reason(&Source::parse("hosted/src/shm.rs", good));
        assert_eq!(found, [], "{good}");
    }
}
