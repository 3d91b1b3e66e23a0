//! `weft conform` over a device.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::device;

#[test]
fn every_rule_holds_over_a_device_and_its_word_on_order_is_shown() {
    let Some(devices) = device::devices() else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let run = command.args(["conform", "--device", &devices, "--rounds", "1", "--json"]).output();
    let run = run.unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&report["fabric"], &report["ok"]), (&Value::from("verbs"), &Value::Bool(true)));
    let rules = report["rules"].as_array().unwrap();
    let placement = rules.iter().find(|rule| rule["rule"] == "F-3").unwrap();
    assert!(placement["seen"].as_str().unwrap().contains("ibv_query_qp_data_in_order says"));
    for rule in rules {
        assert!(rule["held"] == true && rule["tries"].as_u64().unwrap() > 0, "{rule}");
    }
}

/// Runs a line of the shell, as root of the virtual machine.
fn shell(line: &str) {
    let status = Command::new("sh").args(["-ec", line]).status();
    assert!(status.expect("a shell runs").success(), "{line}");
}

#[test]
fn a_device_that_vanishes_under_the_examination_ends_it_with_its_name() {
    // Elsewhere devices are not ours to make.
    let Some(_) = device::devices_to_hurt() else { return };
    shell(
        "ip link add netv mtu 4200 type dummy && ip address add 198.18.7.1/24 dev netv
         ip link set netv up && rdma link add rxev type rxe netdev netv",
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    let command = command.args(["conform", "--device", "rxev", "--rounds", "1000"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut said = BufReader::new(run.stderr.take().expect("it is piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("it says how far it is");
    assert!(line.starts_with("rules: "), "{line}");
    // This waits until no endpoint has it open.
    shell("timeout 60 rdma link delete rxev && ip link delete netv");
    said.read_to_string(&mut line).expect("it ends");
    assert_eq!(run.wait().expect("it was started").code(), Some(43), "{line}");
    assert!(line.contains("the device became unusable before or while `"), "{line}");
    assert!(line.contains("there is no RDMA device called \"rxev\""), "{line}");
}
