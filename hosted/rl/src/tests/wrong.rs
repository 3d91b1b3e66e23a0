//! Scripts that are wrong, each with its code, its place and its help.

use super::{Translation, translated};

const HEAD: &str = "DEFINE 0 = MANAGER\nTASK 3 = \"a\" IS NODE 0, TASKID 0\n";

fn codes(translation: &Translation) -> Vec<&'static str> {
    translation.diagnostics.iter().map(|it| it.code.as_str()).collect()
}

/// Each script behind [`HEAD`], with its only code.
const WRONG: &[(&str, &str)] = &[
    ("IFF [ FAULTY T3 ] THEN\n", "RL0202"),
    ("§", "RL0101"),
    ("LOGICAL 1 = \"x IS TASK 3", "RL0102"),
    ("CONST A = 2147483648", "RL0103"),
    ("ALPHACOUNT T3 IS THRESHOLD = 3.1234, FACTOR = 0.5 END", "RL0103"),
    ("CONST ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG = 1", "RL0105"),
    ("DEFINE 1 BACKUP", "RL0201"),
    ("IF [ FAULTY T3 THEN\nWARN T3\nFI", "RL0203"),
    ("IF [ FAULTY T3 ] THEN\nWARN T3", "RL0203"),
    ("LOGICAL 1 = \"x\" IS TASK 3", "RL0203"),
    ("IF [ FAULTY T3 AND FIRED T3 OR FAULTY T* ] THEN\nWARN T3\nFI", "RL0207"),
    ("MIA_SEND = 40", "RL0208"),
    ("IF [ FAULTY T{camera} ] THEN\nWARN T3\nFI", "RL0301"),
    ("IF [ FAULTY T4 ] THEN\nWARN T3\nFI", "RL0302"),
    ("IF [ DOWN N3 ] THEN\nWARN T3\nFI", "RL0302"),
    ("TASK 3 = \"b\" IS NODE 0, TASKID 1", "RL0303"),
    ("CONST A = 1\nCONST A = 2", "RL0303"),
    ("DEFINE 0 = AGENT", "RL0303"),
    ("INCLUDE \"missing.rl\"", "RL0304"),
    ("LOGICAL 32 = \"x\" IS TASK 3 END LOGICAL", "RL0401"),
    ("TASK 256 = \"b\" IS NODE 0, TASKID 1", "RL0401"),
    ("ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 1.5 END", "RL0401"),
    ("ALPHACOUNT T3 IS THRESHOLD = 300, FACTOR = 0.5 END", "RL0401"),
    ("WATCHDOG 1 WATCHES T3\nHEARTBEATS EVERY 500 US\nON ERROR\nEND WATCHDOG", "RL0401"),
    ("IF [ FIRED N0 ] THEN\nWARN T3\nFI", "RL0402"),
    ("IF [ FAULTY T3 ] THEN\nREBOOT T3\nFI", "RL0403"),
    ("IF [ FAULTY T3 ] THEN\nSTART N0\nFI", "RL0403"),
    ("IF [ FAULTY T3 OR FAULTY T* ] THEN\nSTOP @3\nFI", "RL0404"),
    ("IF [ NOT FAULTY T* ] THEN\nSTOP @1\nFI", "RL0405"),
    ("IF [ FAULTY T3 ] THEN\nSTOP ~1\nFI", "RL0406"),
    ("IF [ DOWN N* ] THEN\nRELEASE $1\nFI", "RL0407"),
    ("IF [ FAULTY * ] THEN\nWARN T3\nFI", "RL0408"),
    ("IF [ FAULTY T* ] THEN\nPAUSE 2 S\nSTOP @1\nFI", "RL0409"),
    ("DEFINE 1 = MANAGER", "RL0410"),
    ("IF [ TRANSIENT T3 ] THEN\nWARN T3\nFI", "RL0411"),
    ("N-VERSION 1\nVERSION 1 IS T3\nVOTING ALGORITHM IS MAJORITY\nEND N-VERSION", "RL0413"),
    ("IF [ DEADLOCKED T3 T3 ] THEN\nWARN T3\nFI", "RL0414"),
    ("IF [ FAULTY T3 ] THEN\nLET zz = 1\nFI", "RL0417"),
    ("N-VERSION 1\nMETRIC \"fn\"\nEND N-VERSION", "RL0418"),
    ("TASK 4 IS \"b\" ON NODE 0", "RL0502"),
    ("IF [ FAULTY T3 ] THEN\nSEND 2147483648 T3\nFI", "RL0103"),
    ("NPROCS = 1\nDEFINE 1 = BACKUP", "RL0501"),
];

#[test]
fn every_wrong_script_has_its_code_its_place_and_its_help() {
    for (text, wanted) in WRONG {
        let translation = translated(&format!("{HEAD}{text}\n"));
        assert!(translation.image.is_none(), "{text}");
        let codes = codes(&translation);
        assert!(codes.first() == Some(wanted), "{text}: {codes:?}\n{}", translation.render());
        assert!(translation.diagnostics.iter().all(|it| !it.help.is_empty()), "{text}");
    }
}

#[test]
fn a_text_that_is_no_script_is_refused() {
    for text in ["", "\n\n", "\u{FEFF}", "a\0b", &"#".repeat(70 << 10)] {
        assert_eq!(codes(&translated(text)), ["RL0104"]);
    }
    assert_eq!(codes(&translated("DEFINE 0 = BACKUP")), ["RL0410"]);
}

#[test]
fn both_readings_of_a_mixture_are_shown() {
    let text = format!("{HEAD}IF [ FAULTY T3 AND PRESENT N0 OR FIRED T3 ] THEN\nWARN T3\nFI\n");
    let help = &translated(&text).diagnostics[0].help;
    assert!(help.contains("`(FAULTY T3 AND PRESENT N0) OR FIRED T3`"), "{help}");
    assert!(help.contains("`FAULTY T3 AND (PRESENT N0 OR FIRED T3)`"), "{help}");
}

#[test]
fn a_script_that_includes_itself_is_refused() {
    let mut reader = |_: &str, _: &str| Ok(("a.rl".to_owned(), "INCLUDE \"a.rl\"".to_owned()));
    let translation = crate::translate("a.rl", "INCLUDE \"a.rl\"", None, &mut reader);
    assert_eq!(codes(&translation), ["RL0304"]);
}

#[test]
fn nine_nested_sections_are_refused() {
    let open = "IF [ FAULTY T3 ] THEN\n".repeat(9);
    let text = format!("{HEAD}{open}WARN T3\n{}", "FI\n".repeat(9));
    assert_eq!(codes(&translated(&text)).first(), Some(&"RL0206"));
}

#[test]
fn a_line_of_five_thousand_terms_is_refused() {
    for (first, next) in [("FIRED T3", " OR FIRED T3"), ("1", "+1"), ("1", "*1")] {
        let line = format!("{first}{}", next.repeat(5_000));
        let end = if first == "1" { " > 0" } else { "" };
        let text = format!("{HEAD}IF [ {line}{end} ] THEN\nWARN T3\nFI\n");
        assert_eq!(codes(&translated(&text)).first(), Some(&"RL0206"));
    }
}

#[test]
fn tabs_line_ends_and_a_byte_order_mark_change_nothing() {
    let plain = format!("{HEAD}IF [ FAULTY T3 ] THEN\n  WARN T3\nFI");
    let other = format!("\u{FEFF}{}\r\n", plain.replace("  ", "\t").replace('\n', "\r\n"));
    for text in [&plain, &other] {
        assert!(translated(text).image.is_some(), "{}", translated(text).render());
    }
}
