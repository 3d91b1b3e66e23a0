//! Scripts that are translated, and probably not meant so.

use super::translated;

const HEAD: &str = "DEFINE 0 = MANAGER\nDEFINE 1 = BACKUP\nDEFAULT = BUILTIN\n\
                    TASK 3 = \"a\" IS NODE 0, TASKID 0\nTASK 4 = \"b\" IS NODE 1, TASKID 0\n";

/// Each script behind [`HEAD`], with the codes and lines of its warnings.
const LINTED: &[(&str, &[(&str, usize)])] = &[
    ("CONST A = 1", &[("RL0901", 6)]),
    ("CONST A = 1\nIF [ ERRN(T3) > {a} ] THEN\nWARN T4\nFI", &[]),
    ("LOGICAL 1 = \"g\" IS TASK 3, 4 END LOGICAL", &[("RL0901", 6)]),
    ("LOGICAL 1 = \"g\" IS TASK 3, 4 END LOGICAL\nIF [ FAULTY G* ] THEN\nWARN T3\nFI", &[]),
    ("LOGICAL 1 = \"g\" IS TASK 3 END LOGICAL\nIF [ FAULTY T* ] THEN\nSTOP G$1\nFI", &[]),
    ("ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 END", &[("RL0901", 6)]),
    (
        "ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 END\n\
         IF [ ALPHA(T3) > 2.0 ] THEN\nWARN T4\nFI",
        &[],
    ),
    (
        "IF [ FAULTY T3 AND RUNNING T4 ] THEN\nWARN T4\n\
         ELIF [ FAULTY T3 AND RUNNING T{b} ] THEN\nRESTART T3\nFI",
        &[("RL0902", 8)],
    ),
    ("IF [ FAULTY T3 ] THEN\nWARN T4\nELIF [ FAULTY T4 ] THEN\nWARN T3\nFI", &[]),
    ("IF [ ERRN(T3) > 1 ] THEN\nWARN T4\nELIF [ ERRN(T3) > 2 ] THEN\nWARN T3\nFI", &[]),
    ("IF [ 1 > 2 ] THEN\nWARN T4\nELSE\nWARN T3\nFI", &[("RL0902", 6)]),
    ("IF [ 2 > 1 ] THEN\nWARN T4\nELSE\nWARN T3\nFI", &[("RL0902", 9)]),
    ("IF [ FAULTY T3 ] THEN\nRESTART T3\nSTOP T{a}\nFI", &[("RL0903", 8)]),
    ("IF [ FAULTY T* ] THEN\nRESTART @1\nSTOP @1\nFI", &[("RL0903", 8)]),
    ("IF [ FAULTY T3 ] THEN\nRESTART T3\nPAUSE 2 S\nSTOP T3\nFI", &[]),
    ("IF [ FAULTY T3 ] THEN\nRESTART T3\nSTOP T4\nFI", &[]),
    ("IF [ FAULTY T3 ] THEN\nRESTART T3\nIF [ FAULTY T4 ] THEN\nSTOP T3\nFI\nFI", &[("RL0903", 9)]),
    ("IF [ FAULTY T3 ] THEN\nFI", &[("RL0909", 6)]),
    ("IF [ FAULTY T3 ] THEN\nWARN T4\nELSE\nFI", &[("RL0909", 8)]),
    ("WATCHDOG 1 WATCHES T3\nHEARTBEATS EVERY 2 S\nON ERROR\nEND WATCHDOG", &[("RL0909", 6)]),
    ("IF [ FIRED T3 ] THEN\nWARN T4\nFI", &[("RL0908", 6)]),
    (
        "WATCHDOG 1 WATCHES T3\nHEARTBEATS EVERY 2 S\nON ERROR\nRESTART T3\nEND WATCHDOG\n\
         IF [ FIRED T* ] THEN\nWARN T4\nFI",
        &[],
    ),
    ("IF [ PHASE(T3) == 256 ] THEN\nWARN T4\nFI", &[("RL0908", 6)]),
    ("IF [ 70000 == ERRT(T3) ] THEN\nWARN T4\nFI", &[("RL0908", 6)]),
    ("IF [ ERRN(T3) < 0 ] THEN\nWARN T4\nFI", &[("RL0908", 6)]),
    ("IF [ 255 >= PHASE(T3) ] THEN\nWARN T4\nFI", &[("RL0908", 6)]),
    ("IF [ PHASE(T3) == 255 AND ERRN(T3) > 0 ] THEN\nWARN T4\nFI", &[]),
    ("DEFINE 4 = BACKUP", &[("RL0907", 6)]),
    ("IF [ FAULTY T3 ] THEN\nISOLATE N0\nFI", &[("RL0910", 7)]),
    ("IF [ FAULTY T3 ] THEN\nSTOP N0\nISOLATE N1\nFI", &[("RL0910", 7)]),
    ("IF [ FAULTY T3 ] THEN\nRESTART N0\nFI", &[("RL0906", 7)]),
    ("IF [ FAULTY T* ] THEN\nRESTART @1\nIF [ FAULTY N* ] THEN\nISOLATE @1\nFI\nFI", &[]),
];

fn found(text: &str) -> Vec<(&'static str, usize)> {
    let translation = translated(text);
    assert!(translation.image.is_some(), "{text}\n{}", translation.render());
    let line = |span| translation.sources.line_column(span).0;
    translation.diagnostics.iter().map(|it| (it.code.as_str(), line(&it.span))).collect()
}

#[test]
fn what_is_probably_not_meant_is_a_warning_at_its_place() {
    for (text, wanted) in LINTED {
        assert_eq!(found(&format!("{HEAD}{text}\n")), *wanted, "{text}");
    }
}

#[test]
fn errors_that_neither_a_section_nor_a_default_answers_are_a_warning() {
    let head = HEAD.replace("DEFAULT = BUILTIN\n", "");
    for (text, wanted) in [
        ("IF [ FAULTY T3 ] THEN\nRESTART T3\nFI", &[("RL0905", 4)][..]),
        ("IF [ FAULTY T3 ] THEN\nRESTART T3\nWARN T4\nFI", &[("RL0905", 4)]),
        ("IF [ FAULTY T* ] THEN\nRESTART @1\nFI", &[]),
        ("IF [ FAULTY T3 ] THEN\nREMOVE ANY N1 FROM ERRORLIST\nFI", &[("RL0905", 3)]),
        ("IF [ FAULTY T* ] THEN\nISOLATE $1\nFI", &[]),
        ("IF [ FAULTY T3 ] THEN\nRESTART T3\nSTOP N1\nFI", &[]),
        ("IF [ FAULTY T3 ] THEN\nRESTART T3\nCLEAR T4\nFI", &[]),
    ] {
        assert_eq!(found(&format!("{head}{text}\n")), *wanted, "{text}");
    }
}
