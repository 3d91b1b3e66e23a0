//! `weft conform`: the contract of the fabric, tried on this machine.

use std::process::{Command, Output};

use serde_json::Value;

fn weft(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(arguments).output().unwrap()
}

#[test]
fn every_rule_is_tried_on_shared_memory_and_holds() {
    let run = weft(&["conform", "--rounds", "1", "--json"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let rules = report["rules"].as_array().unwrap();
    let names: Vec<_> = rules.iter().map(|rule| rule["rule"].as_str().unwrap()).collect();
    let mut expected: Vec<_> = (1..=15).map(|number| format!("F-{number}")).collect();
    expected.extend(["memory".to_owned(), "checksum".to_owned()]);
    assert_eq!(names, expected);
    for rule in rules {
        assert!(rule["held"] == true && rule["tries"].as_u64().unwrap() > 0, "{rule}");
        assert!(!rule["seen"].as_str().unwrap().is_empty(), "{rule}");
    }
    assert_eq!((&report["ok"], &report["fabric"]), (&Value::Bool(true), &Value::from("shm")));
}

#[test]
fn each_endpoint_may_have_a_device_of_its_own() {
    let code = |devices: &str| {
        let run = weft(&["conform", "--json", "--device", devices]);
        let error: Value = serde_json::from_slice(&run.stderr).unwrap();
        error["error"]["code"].clone()
    };
    // That there are no such devices is found out later.
    assert_eq!(code("weft-a,weft-b,weft-c,weft-d"), "usage");
    assert_ne!(code("weft-a,weft-b,weft-c"), "usage");
}

#[test]
fn a_fabric_or_a_device_that_is_not_there_is_refused_with_a_cure() {
    for arguments in [
        &["--fabric", "pigeon"][..],
        &["--fabric", "shm", "--device", "rxe0"],
        &["--device", "weft-none"],
        &["--rounds", "0"],
    ] {
        let run = weft(&[&["conform", "--json"], arguments].concat());
        assert!(!run.status.success());
        let error: Value = serde_json::from_slice(&run.stderr).unwrap();
        let cure = error["error"]["cure"].as_str().unwrap();
        assert!(run.stdout.is_empty() && !cure.is_empty(), "{error}");
    }
}
