//! Scripts that are right: the reference, the format, and what an image keeps.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::drawn::{DECLARATIONS, sections};
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
        assert_eq!(words(&once), words(&example));
    }
}

/// Counts, words and strings of what `text` is translated to: neither the lines nor the digest of
/// the source.
pub(super) fn words(text: &str) -> Vec<u8> {
    let translation = translated(text);
    let Some(image) = translation.image else { panic!("{text}\n{}", translation.render()) };
    let header = *weft_core::recovery::Rcode::new_checked(&image).unwrap().header();
    let end = image.len() - 2 * usize::from(header.lines);
    [&image[8..18], &image[32..end]].concat()
}

fn decompiled(text: &str) -> String {
    let image = translated(text).image.unwrap();
    let expected = weft_core::recovery::Expected { nodes: None, keeps_rules: |_| true };
    let program = weft_core::recovery::verify(&image, &expected).unwrap();
    crate::decompile(&program).unwrap_or_else(|| panic!("{text}\n{}", crate::dump(&program)))
}

/// The scripts of the examples, of the reference, and the one with each guard and action.
fn whole_scripts() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recovery");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let scripts = paths.filter(|path| path.extension().is_some_and(|it| it == "rl"));
    let read = scripts.map(|path| std::fs::read_to_string(path).unwrap());
    read.chain(examples()).chain([include_str!("all.rl").to_owned()]).collect()
}

#[test]
fn an_image_gives_a_script_that_is_translated_to_the_same_words() {
    for text in whole_scripts() {
        let again = decompiled(&text);
        assert_eq!(words(&again), words(&text), "{again}");
        assert_eq!(format(&again).unwrap(), again);
    }
}

#[test]
fn drawn_scripts_are_formatted_and_decompiled_to_the_same_words() {
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let checked = TestRunner::new(config).run(&sections(), |text| {
        let text = format!("{DECLARATIONS}{text}");
        if translated(&text).image.is_some() {
            let wanted = words(&text);
            prop_assert_eq!(words(&format(&text).unwrap()), wanted.clone());
            prop_assert_eq!(words(&decompiled(&text)), wanted);
        }
        Ok(())
    });
    checked.unwrap();
}

/// An alpha-count is in 256ths, what stands beside it is not.
#[test]
fn a_whole_number_beside_an_alpha_count_is_scaled() {
    let head = "DEFINE 0 = MANAGER\nDEFINE 1 = BACKUP\nTASK 3 = \"a\" IS NODE 1, TASKID 2\n\
                CONST TWO = 2\nALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 END\n";
    for two in ["2", "2.0", "{TWO}", "1 + 1"] {
        let text = format!("{head}IF [ ALPHA(T3) >= {two} ] THEN\nWARN T3\nFI\n");
        let image = translated(&text).image.unwrap();
        let expected = weft_core::recovery::Expected { nodes: None, keeps_rules: |_| true };
        let program = weft_core::recovery::verify(&image, &expected).unwrap();
        let words = crate::dump(&program);
        let pushed = words.lines().find(|line| line.contains("PUSH")).unwrap();
        assert!(pushed.ends_with("PUSH     512"), "{two}: {words}");
    }
}

/// What a script could say in two ways, and where one arm ends and the next begins.
#[test]
fn shapes_of_guards_and_arms_survive() {
    let head = "DEFINE 0 = MANAGER\nDEFINE 1 = BACKUP\nTASK [3,5] = \"w\" IS NODE 1, TASKID 2\n\
                ALPHACOUNT T3 IS THRESHOLD = 255.9, FACTOR = 0.004 EVERY 1 MS END\n\
                ALPHACOUNT T4 IS THRESHOLD = 0.01, FACTOR = 1 END\n\
                ALPHACOUNT T5 IS THRESHOLD = 2, FACTOR = 0 END\n";
    let chain = |term: &str, by: &str, end: &str| {
        format!("({0}{1}){1}{end}", term, format!("{by}{term}").repeat(62))
    };
    for section in [
        "IF [ FAULTY T3 ] THEN\nELSE\nFI",
        "IF [ FAULTY T3 ] THEN\nELIF [ FAULTY T4 ] THEN\nELSE\nLET A = 1\nFI",
        "IF [ FAULTY T3 ] THEN\nIF [ FAULTY T4 ] THEN\nWARN T3\nELSE\nFI\nFI",
        "IF [ FAULTY T3 ] THEN\nIF [ FAULTY T4 ] THEN\nELSE\nFI\nELSE\n\
         IF [ FAULTY T5 ] THEN\nFI\nFI",
        "IF [ ERRN(T*) > ERRN(T3) + 1 OR ERRN(T3) > 1 OR ERRN(N*) == 2 ] THEN\nWARN T3\nFI",
        "IF [ NOT ERRN(G*) > 1 AND NOT (FAULTY T3 OR NOT NOT FAULTY T*) ] THEN\nWARN T3\nFI",
        "IF [ ALPHA(T*) >= 2 AND 2.004 < ALPHA(T3) AND ALPHA(T3) < VAL(A) * 256 ] \
         THEN\nWARN T3\nFI",
        "IF [ ALPHA(T3) > ALPHA(T4) OR (1 + 2) * 3 - (4 - -VAL(B)) == --1 ] THEN\nWARN T3\nFI",
        "IF [ FAULTY T3 ] THEN\nPAUSE 2 S\nLOG \"a\" 1, -VAL(A)\nPAUSE 1 MS\nERR 1 N1 WARN T3\nFI",
        "IF [ FIRED T3 ] THEN\nFI\nWATCHDOG 1 WATCHES T3\nHEARTBEATS EVERY 1001 US\n\
         ON ERROR\nEND WATCHDOG",
        &format!("IF [ FIRED T3 ] THEN\n{}FI", "IF [ FIRED T3 ] THEN\nWARN T3\nFI\n".repeat(600)),
        &format!("IF [ {} ] THEN\nWARN T3\nFI", chain("FIRED T3", " OR ", " OR FAULTY T3")),
        &format!(
            "IF [ {}FIRED T3{} ] THEN\nWARN T3\nFI",
            "(".repeat(20),
            format!("{})", " OR FIRED T3".repeat(60)).repeat(20)
        ),
        &format!("IF [ {} > 2 ] THEN\nWARN T3\nFI", chain("VAL(A)", " + ", " + 1")),
    ] {
        let text = format!("{head}{section}\n");
        assert_eq!(words(&decompiled(&text)), words(&text), "{}", decompiled(&text));
        assert_eq!(words(&format(&text).unwrap()), words(&text), "{}", format(&text).unwrap());
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

/// The verifier takes any number of NOTs in a row; what is walked by recursion must be bounded.
#[test]
fn an_image_whose_guard_is_too_deep_gives_no_script() {
    use weft_core::recovery::{Depth, Expected, Header, Instruction, Role, Word, seal, verify};
    for depth in [1_490, 2_900] {
        let end = 3 + 2 + depth + 1;
        let mut words = vec![
            Instruction::Role { node: 0, role: Role::Manager },
            Instruction::Role { node: 1, role: Role::Backup },
            Instruction::Code,
            Instruction::Section { number: 1, depth: Depth::Top, end },
            Instruction::Push(0),
        ];
        words.extend((0..depth).map(|_| Instruction::Not));
        words.extend([Instruction::JumpIfFalse(end), Instruction::End]);
        let header = Header { words: end + 1, nodes: 2, ..Header::default() };
        let words = words.iter().flat_map(|word| Word::to_bytes(word.encode()));
        let mut image: Vec<u8> = header.to_bytes().into_iter().chain(words).collect();
        seal(&mut image);
        let expected = Expected { nodes: None, keeps_rules: |_| true };
        assert_eq!(crate::decompile(&verify(&image, &expected).unwrap()), None);
    }
}
