//! Every committed input of every fuzz target, in the ordinary tests: what a fuzzer once found, or
//! began with, holds without a fuzzer.

use std::fs;
use std::path::Path;

#[expect(unreachable_pub, reason = "it is a library elsewhere")]
#[path = "../../fuzz/src/lib.rs"]
mod targets;

const FUZZ: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz");

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("it is listed"))).collect();
    names.sort();
    names
}

#[test]
fn every_committed_input_passes_its_target() {
    for (target, run) in targets::TARGETS {
        let corpus = Path::new(FUZZ).join("corpus").join(target);
        let inputs = names(&corpus);
        assert!(!inputs.is_empty(), "{target} has no inputs");
        for input in inputs {
            // A panic names the input that it was at.
            println!("{target}/{input}");
            run(&fs::read(corpus.join(input)).expect("it is there"));
        }
    }
}

#[test]
fn each_target_has_its_program_its_corpus_and_its_dictionary_and_no_other_has() {
    let targets: Vec<String> = targets::TARGETS.iter().map(|(name, _)| (*name).into()).collect();
    let with = |end: &str| targets.iter().map(|name| format!("{name}{end}")).collect::<Vec<_>>();
    assert_eq!(names(&Path::new(FUZZ).join("corpus")), targets);
    assert_eq!(names(&Path::new(FUZZ).join("dictionaries")), with(".dict"));
    assert_eq!(names(&Path::new(FUZZ).join("fuzz_targets")), with(".rs"));
    let manifest = fs::read_to_string(Path::new(FUZZ).join("Cargo.toml")).expect("it is there");
    for name in targets {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not built");
    }
}
