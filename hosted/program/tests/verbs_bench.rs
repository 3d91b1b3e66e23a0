//! The benchmark over RDMA runs, small, so that it does not rot. Nothing is said of its figures
//! but that they are there. Where there is no device it says so and passes; with `REQUIRE_RXE=1`
//! it fails.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn weft(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}

fn last_line(output: &[u8]) -> Value {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn has_device() -> bool {
    let found = weft_driver::Device::names();
    let is_required = std::env::var_os("REQUIRE_RXE").is_some_and(|value| value == "1");
    assert!(found.is_ok() || !is_required, "{found:?}");
    if found.is_err() {
        eprintln!("skipped: there is no RDMA device here");
    }
    found.is_ok()
}

#[test]
fn every_row_has_its_rival_its_ratio_and_its_verdict() {
    if !has_device() {
        return;
    }
    let output = weft(&["bench", "verbs", "--json", "--rounds", "1", "--iterations", "20"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let rows = report["rows"].as_array().expect("rows");
    let whats: Vec<_> = rows.iter().map(|row| row["what"].as_str().unwrap_or_default()).collect();
    for what in ["write", "read", "fetch_add", "bandwidth", "mailbox", "broadcast"] {
        assert!(whats.contains(&what), "{what} in {whats:?}");
    }
    for row in rows {
        for key in ["ours_best", "ours", "rival_best", "rivals", "ratio", "ratio_of_best", "aim"] {
            assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {row}");
        }
        assert!(row["reached"].is_boolean(), "{row}");
        for key in ["best", "typical", "ratio"] {
            let is_there = row["bare"][key].as_f64().is_some_and(|value| value > 0.0);
            assert_eq!(is_there, row["what"] == "broadcast", "{key} in {row}");
        }
    }
    assert!(report["reached"].is_boolean());
    let fences = report["fences"].as_array().expect("fences");
    assert_eq!(fences.len(), 6, "three ways over two lengths");
    for fence in fences {
        for key in ["grant", "revoke_best", "revoke"] {
            assert!(fence[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {fence}");
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_an_error_with_a_cure() {
    let output = weft(&["bench", "verbs", "--json", "--device", "weft-none"]);
    assert_eq!(output.status.code(), Some(43), "{}", String::from_utf8_lossy(&output.stderr));
    let error = &last_line(&output.stderr)["error"];
    assert_eq!(error["code"], "rdma");
    assert!(error["cure"].as_str().is_some_and(|cure| !cure.is_empty()), "{error}");
}
