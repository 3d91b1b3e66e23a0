//! Scripts that are right: the reference, the format, and what an image keeps.

use super::{REFERENCE, format, translated};

fn examples() -> Vec<String> {
    let blocks = REFERENCE.split("```rl\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_example_of_the_reference_is_translated() {
    let examples = examples();
    assert!(examples.len() >= 2);
    for example in examples {
        let translation = translated(&example);
        assert!(translation.image.is_some(), "{}", translation.render());
    }
}

#[test]
fn a_formatted_script_is_formatted_and_means_the_same() {
    for example in examples() {
        let once = format(&example).unwrap();
        assert_eq!(format(&once).unwrap(), once);
        assert_eq!(once.matches('#').count(), example.matches('#').count());
        let words = |text: &str| {
            let image = translated(text).image.unwrap();
            // Neither the lines nor the digest of the source, only words and strings.
            let header = *weft_core::recovery::Rcode::new_checked(&image).unwrap().header();
            let end = image.len() - 2 * usize::from(header.lines);
            image[32..end].to_vec()
        };
        assert_eq!(words(&once), words(&example));
    }
}

#[test]
fn keywords_are_written_in_any_case() {
    let text = "define 0 = manager\ndefine 1 = backup\ntask 3 = \"a\" is node 0, taskid 0\n\
                if [ faulty t* ] then\nrestart @1\nfi";
    assert!(translated(text).image.is_some());
    let wanted = "DEFINE 0 = MANAGER\nDEFINE 1 = BACKUP\nTASK 3 = \"a\" IS NODE 0, TASKID 0\n\n\
                  IF [ FAULTY T* ] THEN\n    RESTART @1\nFI\n";
    assert_eq!(format(text).unwrap(), wanted);
}

#[test]
fn every_script_of_the_examples_is_translated_and_in_its_form() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recovery");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rl") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let translation = translated(&text);
        assert!(translation.image.is_some(), "{path:?}\n{}", translation.render());
        assert_eq!(translation.render(), "", "{path:?} has a warning");
        assert_eq!(format(&text).unwrap(), text, "{path:?}");
        count += 1;
    }
    assert!(count >= 4);
}

/// Each guard and each action of the reference, in the form that `weft rl fmt` gives it.
#[test]
fn every_guard_and_action_is_translated() {
    let text = include_str!("all.rl");
    let translation = translated(text);
    assert!(translation.image.is_some(), "{}", translation.render());
    assert_eq!(format(text).unwrap(), text);
}
