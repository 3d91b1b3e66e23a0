//! `weft.h` is what cbindgen makes of this crate. `HEADER=write cargo test -p weft-c --test header`
//! writes it.

use std::fs;
use std::path::Path;

const PARTS: [&str; 14] = [
    "code",
    "error",
    "lifecycle",
    "membership",
    "event",
    "mailbox",
    "batch",
    "broadcast",
    "group",
    "tensor",
    "state",
    "task",
    "mask",
    "watch",
];

#[test]
fn the_committed_header_is_that_of_the_sources() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_dir.join("cbindgen.toml"));
    let mut sources = cbindgen::Builder::new().with_config(config.expect("it is a configuration"));
    // In the order in which a program needs them; cbindgen follows no `mod` of these.
    for part in PARTS {
        sources = sources.with_src(crate_dir.join("src").join(part).with_extension("rs"));
    }
    let mut made = Vec::new();
    sources.generate().expect("the sources are read").write(&mut made);
    let made = String::from_utf8(made).expect("it is text");
    let path = crate_dir.join("weft.h");
    if std::env::var_os("HEADER").is_some_and(|it| it == "write") {
        fs::write(&path, &made).expect("it can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(committed.lines()).position(|(made, kept)| made != kept);
    assert!(
        made == committed,
        "weft.h is not that of the sources, from line {} on: write it with \
         `HEADER=write cargo test -p weft-c --test header`",
        differs.unwrap_or(committed.lines().count()) + 1
    );
}

#[test]
fn no_module_with_functions_of_c_is_left_out() {
    let sources = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    for file in sources.expect("the sources are there") {
        let path = file.expect("they can be listed").path();
        let text = fs::read_to_string(&path).expect("it is text");
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        assert_eq!(text.contains("no_mangle") || stem == "code", PARTS.contains(&stem), "{stem}");
    }
}

/// But for those without a pointer.
#[test]
fn each_function_of_the_header_is_passed_null_by_a_test() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file| fs::read_to_string(crate_dir.join(file)).expect("it is text");
    let (header, tests) = (read("weft.h"), read("tests/refusals.c"));
    let declared = |line: &str| {
        let name = line.split('(').next()?.rsplit([' ', '*']).next()?;
        (line.starts_with("weft_code ") || line.starts_with("const ")).then(|| name.to_owned())
    };
    let names: Vec<String> = header.lines().filter_map(declared).collect();
    assert!(names.len() > 50, "{names:?}");
    for name in names.iter().filter(|it| *it != "weft_version" && *it != "weft_code_name") {
        let is_passed = tests.contains(&format!("NULL_IN({name}(")) || name == "weft_last_error";
        assert!(is_passed, "pass null to {name} in tests/refusals.c");
    }
}
