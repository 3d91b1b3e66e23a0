//! Scripts that are wrong, each with its code, its place and its help.

use weft_core::dirnet::Timing;
use weft_core::recovery::{Role, Timeouts};

use super::{ClusterTask, Surroundings, Translation, translated};

const HEAD: &str = "DEFINE 0 = MANAGER\nDEFINE 1 = BACKUP\nTASK 3 = \"a\" IS NODE 0, TASKID 0\n";

fn codes(translation: &Translation) -> Vec<&'static str> {
    translation.diagnostics.iter().map(|it| it.code.as_str()).collect()
}

/// Each script behind [`HEAD`], with its first code. What is drawn for it is in `wrong.txt`.
const WRONG: &[(&str, &str)] = &[
    ("§", "RL0101"),
    ("IF [ FAULTY T3 ] THEN\nSTOP T3;\nFI", "RL0101"),
    ("LOGICAL 1 = \"x IS TASK 3", "RL0102"),
    (
        "LOGICAL 1 = \"a name of more than sixty-four bytes, which no string has room for\" \
         IS TASK 3 END LOGICAL",
        "RL0102",
    ),
    ("CONST A = 2147483648", "RL0103"),
    ("ALPHACOUNT T3 IS THRESHOLD = 3.1234, FACTOR = 0.5 END", "RL0103"),
    ("IF [ FAULTY T3 ] THEN\nSEND 2147483648 T3\nFI", "RL0103"),
    ("CONST ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG = 1", "RL0105"),
    ("TASK 4 = \"\" IS NODE 1, TASKID 0", "RL0105"),
    ("TASK 4 = \"a b\" IS NODE 1, TASKID 0", "RL0105"),
    ("TASK 4 = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" IS NODE 1, TASKID 0", "RL0105"),
    ("LOGICAL 1 = \"\" IS TASK 3 END LOGICAL", "RL0105"),
    ("IF [ FAULTY T3 ] THEN\nLOG \"a\tb\"\nFI", "RL0102"),
    ("IF [ FAULTY T3 ] THEN\nLOG \"abc\nRESTART T3\nFI", "RL0102"),
    ("IF [ FAULTY T3 \\ AND FAULTY T3 ] THEN\nRESTART T3\nFI", "RL0101"),
    ("DEFINE 3-2 = BACKUP", "RL0401"),
    ("DEFAULT = RESTAR", "RL0201"),
    ("IF [ FAULTY T3 ] THEN\nERR T3\nFI", "RL0201"),
    ("IF [ FAULTY T3 ] THEN\nLET\nFI", "RL0201"),
    ("IF [ DOWM N1 ] THEN\nRESTART T3\nFI", "RL0202"),
    ("IF [ FAULTY T3 ] THEN\nREBOT N1\nFI", "RL0202"),
    ("IF [ FAULTY T3 ] THEN\nPAUSE 2 SEC\nFI", "RL0208"),
    ("IF [ FAULTY T3 ] THEN\nSTOP T3\nELSE\nSTOP T3\nELSE\nSTOP T3\nFI", "RL0203"),
    ("LOGICAL 1 = \"x\" IS TASK 3\nIF [ FAULTY T3 ] THEN\nRESTART T3\nFI", "RL0203"),
    ("DEFINE 1 BACKUP", "RL0201"),
    ("DEFAULT = MAYBE", "RL0201"),
    ("DEFINE 1- = AGENT", "RL0201"),
    ("IF [ ] THEN\nWARN T3\nFI", "RL0201"),
    ("IF FAULTY T3 THEN\nWARN T3\nFI", "RL0201"),
    ("IF [ FAULTY T3 ]\nWARN T3\nFI", "RL0201"),
    ("IF [ FAULTY T3 ] THEN\nWARN T3 T3\nFI", "RL0201"),
    ("IF [ ERRN(T3) 4 ] THEN\nWARN T3\nFI", "RL0201"),
    ("IF [ ERRN T3 > 4 ] THEN\nWARN T3\nFI", "RL0201"),
    ("IF [ FAULTY ] THEN\nWARN T3\nFI", "RL0201"),
    ("IF [ FAULTY T3 AND ] THEN\nWARN T3\nFI", "RL0201"),
    ("IF [ FAULTY T3 ] THEN\nREMOVE ANY T3\nFI", "RL0201"),
    ("IF [ FAULTY T3 ] THEN\nERR 4 T3\nFI", "RL0201"),
    ("IF [ FAULTY T3 ] THEN\nLOG camera\nFI", "RL0201"),
    ("NUMTASKS 1", "RL0201"),
    ("WATCHDOG 1 WATCHES N0\nHEARTBEATS EVERY 2 S\nON ERROR\nEND WATCHDOG", "RL0201"),
    ("LOGICAL 1 = \"x\" IS TASK 3 END GROUP", "RL0201"),
    ("IFF [ FAULTY T3 ] THEN\n", "RL0202"),
    ("WATCHDG 1 WATCHES T3", "RL0202"),
    ("MIA_SENT = 40 MS", "RL0202"),
    ("RESTART T3", "RL0202"),
    ("FI", "RL0202"),
    ("DEFINE 1 = BAKUP", "RL0202"),
    ("IF [ FAULTY T3 ] THEN\nRESTRAT T3\nFI", "RL0202"),
    ("IF [ FUALTY T3 ] THEN\nWARN T3\nFI", "RL0202"),
    ("N-VERSION 1\nVERSION 1 IS T3\nVOTING ALGORITHM IS LOTTERY\nEND N-VERSION", "RL0202"),
    ("N-VERSION 1\nQUORUM 2\nEND N-VERSION", "RL0202"),
    ("IF [ FAULTY T3 THEN\nWARN T3\nFI", "RL0203"),
    ("IF [ FAULTY T3 ] THEN\nWARN T3", "RL0203"),
    ("IF [ FAULTY T3 ] THEN\nWARN T3\nTASK 4 = \"b\" IS NODE 1, TASKID 0", "RL0203"),
    ("IF [ (FAULTY T3 ] THEN\nWARN T3\nFI", "RL0201"),
    ("LOGICAL 1 = \"x\" IS TASK 3", "RL0203"),
    ("WATCHDOG 1 WATCHES T3\nHEARTBEATS EVERY 2 S\nON ERROR\nRESTART T3", "RL0203"),
    ("N-VERSION 1\nVERSION 1 IS T3", "RL0203"),
    ("IF [ FAULTY T3 AND FIRED T3 OR FAULTY T* ] THEN\nWARN T3\nFI", "RL0207"),
    ("IF [ FIRED T3 OR FAULTY T* AND FAULTY T3 ] THEN\nWARN T3\nFI", "RL0207"),
    ("MIA_SEND = 40", "RL0208"),
    ("IF [ FAULTY T3 ] THEN\nPAUSE 2\nFI", "RL0208"),
    ("ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 EVERY 10 H END", "RL0208"),
    ("IF [ FAULTY T{camera} ] THEN\nWARN T3\nFI", "RL0301"),
    ("CONST LIMIT = 4\nIF [ ERRN(T3) > {LIMT} ] THEN\nWARN T3\nFI", "RL0301"),
    ("IF [ FAULTY T4 ] THEN\nWARN T3\nFI", "RL0302"),
    ("IF [ FAULTY T3 ] THEN\nSTOP G1\nFI", "RL0302"),
    ("IF [ DOWN N3 ] THEN\nWARN T3\nFI", "RL0302"),
    ("LOGICAL 1 = \"x\" IS TASK 3, 7 END LOGICAL", "RL0302"),
    ("ALPHACOUNT T9 IS THRESHOLD = 3.0, FACTOR = 0.5 END", "RL0302"),
    ("TASK 3 = \"b\" IS NODE 0, TASKID 1", "RL0303"),
    ("TASK 4 = \"b\" IS NODE 0, TASKID 0", "RL0303"),
    ("CONST A = 1\nCONST A = 2", "RL0303"),
    ("DEFINE 0 = AGENT", "RL0303"),
    ("DEFAULT = KILL\nDEFAULT = RESTART", "RL0303"),
    ("LOGICAL 1 = \"x\" IS TASK 3, 3 END LOGICAL", "RL0303"),
    ("LOGICAL 1 = \"x\" IS TASK 3 END LOGICAL\nLOGICAL 1 = \"y\" IS TASK 3 END LOGICAL", "RL0303"),
    (
        "WATCHDOG 1 WATCHES T3\nHEARTBEATS EVERY 2 S\nON ERROR\nEND WATCHDOG\n\
         WATCHDOG 2 WATCHES T3\nHEARTBEATS EVERY 2 S\nON ERROR\nEND WATCHDOG",
        "RL0303",
    ),
    (
        "ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 END\n\
         ALPHACOUNT T3 IS THRESHOLD = 2.0, FACTOR = 0.5 END",
        "RL0303",
    ),
    (
        "N-VERSION 1\nVERSION 1 IS T3\nVERSION 2 IS T3\nVOTING ALGORITHM IS MAJORITY\n\
         END N-VERSION",
        "RL0303",
    ),
    ("TASK 4 = \"A\" IS NODE 1, TASKID 0", "RL0303"),
    ("LOGICAL 1 = \"x\" IS TASK 3 END LOGICAL\nLOGICAL 2 = \"x\" IS TASK 3 END LOGICAL", "RL0303"),
    (
        "TASK 4 = \"b\" IS NODE 1, TASKID 0\nN-VERSION 1\nVERSION 1 IS T3\nVERSION 1 IS T4\n\
         VOTING ALGORITHM IS MAJORITY\nEND N-VERSION",
        "RL0303",
    ),
    (
        "TASK 4 = \"b\" IS NODE 1, TASKID 0\nN-VERSION 1\nVERSION 1 IS T3\nVERSION 2 IS T4\n\
         VOTING ALGORITHM IS MAJORITY\nVOTING ALGORITHM IS MEDIAN\nEND N-VERSION",
        "RL0303",
    ),
    (
        "TASK 4 = \"b\" IS NODE 1, TASKID 0\nN-VERSION 1\nVERSION 1 IS T3\nVERSION 2 IS T4\n\
         METRIC WITHIN 5\nMETRIC WITHIN 6\nVOTING ALGORITHM IS MAJORITY\nEND N-VERSION",
        "RL0303",
    ),
    (
        "TASK 4 = \"b\" IS NODE 1, TASKID 0\nN-VERSION 1\nVERSION 1 IS T3\nVERSION 2 IS T4\n\
         ON ERROR T3\nON ERROR T4\nVOTING ALGORITHM IS MAJORITY\nEND N-VERSION",
        "RL0303",
    ),
    ("CONST a = 3\nIF [ FAULTY T{a} ] THEN\nRESTART T3\nFI", "RL0305"),
    ("TASK [4,5] = \"b\" IS NODE 1, TASKID 0\nIF [ FAULTY T{b} ] THEN\nRESTART T3\nFI", "RL0305"),
    ("INCLUDE \"missing.rl\"", "RL0304"),
    ("LOGICAL 32 = \"x\" IS TASK 3 END LOGICAL", "RL0401"),
    ("TASK 256 = \"b\" IS NODE 0, TASKID 1", "RL0401"),
    ("TASK [9,4] = \"b\" IS NODE 0, TASKID 1", "RL0401"),
    ("ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 1.5 END", "RL0401"),
    ("ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 1.001 END", "RL0401"),
    ("ALPHACOUNT T3 IS THRESHOLD = 300, FACTOR = 0.5 END", "RL0401"),
    ("ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 EVERY 2 US END", "RL0401"),
    ("WATCHDOG 1 WATCHES T3\nHEARTBEATS EVERY 500 US\nON ERROR\nEND WATCHDOG", "RL0401"),
    ("WATCHDOG 64 WATCHES T3\nHEARTBEATS EVERY 2 S\nON ERROR\nEND WATCHDOG", "RL0401"),
    ("IF [ FAULTY T3 ] THEN\nPAUSE 4000 S\nFI", "RL0401"),
    ("IF [ FAULTY T3 ] THEN\nLOG \"x\" 1 2 3 4 5\nFI", "RL0401"),
    ("IF [ FAULTY T300 ] THEN\nWARN T3\nFI", "RL0302"),
    ("MIA_SEND = 0 MS", "RL0401"),
    ("IF [ FIRED N0 ] THEN\nWARN T3\nFI", "RL0402"),
    ("IF [ REBOOTED T3 ] THEN\nWARN T3\nFI", "RL0402"),
    ("IF [ PHASE(N0) > 1 ] THEN\nWARN T3\nFI", "RL0402"),
    ("IF [ FAULTY T3 ] THEN\nREBOOT T3\nFI", "RL0403"),
    ("IF [ FAULTY T3 ] THEN\nSTART N0\nFI", "RL0403"),
    ("IF [ FAULTY T3 OR FAULTY T* ] THEN\nSTOP @3\nFI", "RL0404"),
    ("IF [ FAULTY T3 ] THEN\nSTOP @0\nFI", "RL0404"),
    ("IF [ ERRN(T3) > 3 ] THEN\nSTOP @@\nFI", "RL0404"),
    ("IF [ NOT FAULTY T* ] THEN\nSTOP @1\nFI", "RL0405"),
    ("IF [ FAULTY T3 ] THEN\nSTOP ~1\nFI", "RL0406"),
    ("IF [ DOWN N* ] THEN\nRELEASE $1\nFI", "RL0407"),
    ("IF [ NOT FAULTY T* ] THEN\nSTOP ~1\nFI", "RL0405"),
    ("IF [ FAULTY T* ] THEN\nSTOP T$1\nFI", "RL0407"),
    ("IF [ FAULTY * ] THEN\nWARN T3\nFI", "RL0408"),
    ("IF [ FAULTY T3 ] THEN\nSTOP T*\nFI", "RL0408"),
    ("IF [ FAULTY T* ] THEN\nPAUSE 2 S\nSTOP @1\nFI", "RL0409"),
    ("IF [ FAULTY T* ] THEN\nPAUSE 2 S\nSEND ERRN(T3) T3\nFI", "RL0409"),
    ("DEFINE 2 = MANAGER", "RL0410"),
    ("DEFINE 2-3 = MANAGER", "RL0410"),
    ("IF [ TRANSIENT T* ] THEN\nWARN T3\nFI", "RL0411"),
    ("IF [ TRANSIENT T3 ] THEN\nWARN T3\nFI", "RL0411"),
    ("IF [ ALPHA(T3) > 2.5 ] THEN\nWARN T3\nFI", "RL0411"),
    ("N-VERSION 1\nVERSION 1 IS T3\nVOTING ALGORITHM IS MAJORITY\nEND N-VERSION", "RL0413"),
    (
        "TASK 4 = \"b\" IS NODE 1, TASKID 0\nN-VERSION 1\nVERSION 1 IS T3\nVERSION 7 IS T4\n\
         VOTING ALGORITHM IS MAJORITY\nEND N-VERSION",
        "RL0413",
    ),
    ("IF [ DEADLOCKED T3 T3 ] THEN\nWARN T3\nFI", "RL0414"),
    ("IF [ FAULTY T3 ] THEN\nLET zz = 1\nFI", "RL0417"),
    ("IF [ VAL(7) > 1 ] THEN\nWARN T3\nFI", "RL0417"),
    ("N-VERSION 1\nMETRIC \"fn\"\nEND N-VERSION", "RL0418"),
    ("IF [ ERRN(T3) > 1.5 ] THEN\nWARN T3\nFI", "RL0103"),
    ("IF [ FAULTY T3 ] THEN\nLOG \"x\" 1.5\nFI", "RL0103"),
    (
        "ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 END\n\
         IF [ ALPHA(T3) >= 300 ] THEN\nWARN T3\nFI",
        "RL0401",
    ),
    ("IF [ FAULTY T3 ] THEN\nERR 70000 T3 WARN T3\nFI", "RL0401"),
    ("IF [ FAULTY T3 ] THEN\nERR -1 T3 WARN T3\nFI", "RL0401"),
    ("IF [ FAULTY T3 ] THEN\nREMOVE 0 T3 FROM ERRORLIST\nFI", "RL0401"),
    ("IF [ FAULTY T3 ] THEN\nREMOVE -1 T3 FROM ERRORLIST\nFI", "RL0401"),
    ("IF [ ERRN(T*) > ERRN(N*) ] THEN\nWARN T3\nFI", "RL0408"),
    (
        "ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 END\n\
         IF [ ALPHA(T3) * 2 > 4 ] THEN\nWARN T3\nFI",
        "RL0419",
    ),
    (
        "ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 END\n\
         IF [ FAULTY T3 ] THEN\nLET A = ALPHA(T3)\nFI",
        "RL0419",
    ),
    (
        "ALPHACOUNT T3 IS THRESHOLD = 3.0, FACTOR = 0.5 END\n\
         IF [ FAULTY T3 ] THEN\nLOG \"alpha\" ALPHA(T3)\nFI",
        "RL0419",
    ),
    ("IF [ FAULTY T3 ] THEN\nSEND 1 / 0 T3\nFI", "RL0420"),
    ("IF [ FAULTY T3 ] THEN\nLET B = 2147483647 + 1\nFI", "RL0420"),
    ("IF [ VAL(A) / (2 - 2) > 1 ] THEN\nWARN T3\nFI", "RL0420"),
    ("NPROCS = 1", "RL0501"),
    ("DEFINE 2-40 = BACKUP", "RL0501"),
    ("DEFINE 2-100 = BACKUP", "RL0501"),
    ("TASK 4 = \"b\" IS NODE 2, TASKID 0", "RL0501"),
    ("TASK 4 = \"b\" IS NODE 9, TASKID 0\nLOGICAL 1 = \"x\" IS TASK 4 END LOGICAL", "RL0501"),
    ("TASK 4 IS \"b\" ON NODE 0", "RL0502"),
    ("MIA_SEND = 40 MS\nTAIA_SEND = 50 MS", "RL0504"),
    ("MIA_RECV = 50 MS", "RL0504"),
];

/// Scripts that are wrong for a cluster of three nodes, whole, with their first code.
const UNFIT: &[(&str, &str)] = &[
    ("NPROCS = 4", "RL0501"),
    ("DEFINE 0 = MANAGER\nDEFINE 3 = AGENT", "RL0501"),
    ("TASK 3 IS \"camera\" ON NODE 7", "RL0501"),
    ("NUMTASKS 1 = 2", "RL0502"),
    ("TASK 3 = \"camera\" IS NODE 1, TASKID 1", "RL0502"),
    ("TASK 3 IS \"lidar\" ON NODE 1", "RL0502"),
    ("TASK 3 IS \"camera\" ON NODE 0", "RL0502"),
    ("TASK 3 = \"camera\" IS NODE 0, TASKID 0", "RL0502"),
    ("TASK 3 = \"lidar\" IS NODE 1, TASKID 0", "RL0502"),
    ("TASK 3 = \"camra\" IS NODE 1, TASKID 0", "RL0502"),
    ("DEFINE 1 = MANAGER", "RL0503"),
    ("MIA_SEND = 9 S", "RL0504"),
    ("TEIF = 1 US", "RL0504"),
    ("TASK 3 IS \"camera\" ON NODE 1\nIF [ FAULTY T3 ] THEN\nCALL page(1)\nFI", "RL0505"),
    (
        "TASK 4 IS \"lidar\" ON NODE 2\nWATCHDOG 1 WATCHES T4\nHEARTBEATS EVERY 2 S\nON ERROR\n\
         END WATCHDOG",
        "RL0506",
    ),
];

fn cluster() -> Surroundings {
    let task = |name: &str, node, has_beat| ClusterTask {
        name: name.to_owned(),
        nodes: vec![node],
        has_beat,
    };
    Surroundings {
        nodes: 3,
        roles: Some(vec![Role::Manager, Role::Backup, Role::Agent]),
        tasks: vec![task("camera", 1, false), task("lidar", 2, true)],
        timing: Timing::LAN,
        set: Timeouts::default(),
        calls: vec!["notify".to_owned()],
    }
}

/// What is drawn for a script; an error if a finding lacks what it must have.
fn draw(text: &str, wanted: &str, translation: &Translation) -> Result<String, String> {
    let found = &translation.diagnostics;
    let title: String = text.chars().take(160).collect();
    let drawn = format!("#### {}\n{}", title.escape_debug(), translation.render());
    let is_whole = found.iter().all(|it| !it.help.is_empty() && !it.message.is_empty());
    // A mistake in one place is one finding, and at most one that follows from it.
    let is_right = codes(translation).first() == Some(&wanted) && found.len() <= 2;
    let is_refused = translation.image.is_none();
    if is_whole && is_right && is_refused { Ok(drawn) } else { Err(format!("{wanted} {drawn}")) }
}

/// Set `RL_BLESS=1` to write what is drawn now, and read the difference.
#[test]
fn every_wrong_script_has_its_code_its_place_and_its_help() {
    let cluster = cluster();
    let bare = WRONG
        .iter()
        .map(|(text, wanted)| draw(text, wanted, &translated(&format!("{HEAD}{text}\n"))));
    let fitted = UNFIT.iter().map(|(text, wanted)| {
        let reader: &mut crate::Reader<'_> = &mut |_, _| Err("there is none".into());
        draw(text, wanted, &crate::translate("test.rl", text, Some(&cluster), reader))
    });
    let unlisted = unlisted();
    let whole = unlisted.iter().map(|(text, wanted)| draw(text, wanted, &translated(text)));
    let (drawn, wrong): (Vec<_>, Vec<_>) = bare.chain(fitted).chain(whole).partition(Result::is_ok);
    assert!(wrong.is_empty(), "{}", wrong.into_iter().filter_map(Result::err).collect::<String>());
    let drawn: String = drawn.into_iter().flatten().collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests/wrong.txt");
    if std::env::var_os("RL_BLESS").is_some() {
        std::fs::write(path, &drawn).expect("the drawings are written");
    }
    let kept = include_str!("wrong.txt");
    let first = kept.lines().zip(drawn.lines()).find(|(kept, drawn)| kept != drawn);
    assert_eq!(first, None, "a drawing is another one than in wrong.txt");
    assert_eq!(kept.len(), drawn.len());
    assert!(WRONG.len() + UNFIT.len() >= 80);
}

#[test]
fn a_script_that_fits_its_cluster_is_translated() {
    let text = "TASK 3 IS \"camera\" ON NODE 1\nIF [ FAULTY T{camera} ] THEN\nCALL notify(1)\nFI";
    let reader: &mut crate::Reader<'_> = &mut |_, _| Err("there is none".into());
    let translation = crate::translate("test.rl", text, Some(&cluster()), reader);
    assert!(translation.image.is_some(), "{}", translation.render());
}

/// Texts that are too long to be listed, or no script at all, each whole and with its first code.
fn unlisted() -> [(String, &'static str); 13] {
    let nested = "IF [ FAULTY T3 ] THEN\n".repeat(9);
    let texts: String = (100..200).map(|it| format!("LOG \"{it} {}\"\n", "x".repeat(30))).collect();
    let terms = format!("IF [ FIRED T3{} ] THEN\nWARN T3\nFI", " OR FIRED T3".repeat(5_000));
    [
        ("DEFINE 0 = MANAGER".to_owned(), "RL0501"),
        (format!("{HEAD}\\"), "RL0101"),
        (String::new(), "RL0104"),
        ("\n\n".to_owned(), "RL0104"),
        ("\u{FEFF}".to_owned(), "RL0104"),
        ("a\0b".to_owned(), "RL0104"),
        ("#".repeat(70 << 10), "RL0104"),
        ("DEFINE 0 = BACKUP".to_owned(), "RL0410"),
        (format!("{HEAD}{nested}WARN T3\n{}", "FI\n".repeat(9)), "RL0206"),
        (format!("{HEAD}{terms}\n"), "RL0206"),
        (format!("{HEAD}IF [ FAULTY T3 ] THEN\n{}FI\n", "WARN T3\n".repeat(3_000)), "RL0415"),
        (format!("{HEAD}IF [ FAULTY T3 ] THEN\n{texts}FI\n"), "RL0415"),
        (format!("{HEAD}TASK [250,257] = \"b\" IS NODE 0, TASKID 1"), "RL0401"),
    ]
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
fn inclusion_ends() {
    // Each file includes the next one: the fifth is one too deep.
    let mut depth = 0;
    let mut deeper = |_: &str, _: &str| {
        depth += 1;
        Ok((format!("{depth}.rl"), "INCLUDE \"next.rl\"".to_owned()))
    };
    let translation = crate::translate("0.rl", "INCLUDE \"next.rl\"", None, &mut deeper);
    assert_eq!(codes(&translation), ["RL0304"]);
    assert_eq!(translation.sources.files().len(), 5);

    // Each file includes two others, in four levels: more files than are read.
    let mut read = 0;
    let mut wide = |_: &str, _: &str| {
        read += 1;
        Ok((
            format!("{read}.rl"),
            "INCLUDE \"a\"\n".repeat(if read % 8 == 0 { 0 } else { 100 }) + "#",
        ))
    };
    let translation = crate::translate("0.rl", "INCLUDE \"a\"", None, &mut wide);
    assert!(codes(&translation).contains(&"RL0304"));
    assert!(translation.sources.files().len() <= crate::parse::FILES_MAX);
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
