//! `weft conform` over a device.

use std::process::Command;

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
