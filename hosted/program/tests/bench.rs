//! The benchmark runs, small, so that it does not rot. Nothing is said of its figures but that
//! they are there: time is measured where it is quiet.

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

#[test]
fn every_row_of_two_writers_is_there_with_its_ratio() {
    let output = weft(&[
        "bench",
        "mailbox",
        "--json",
        "--seconds-per-cell",
        "1",
        "--writers",
        "2",
        "--bytes",
        "64",
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let rows = report["rows"].as_array().expect("rows");
    let whats: Vec<_> = rows.iter().map(|row| row["what"].as_str().unwrap_or_default()).collect();
    assert_eq!(whats, ["exchange", "latency", "memcpy", "rate"]);
    for row in rows {
        assert_eq!((row["bytes"].as_u64(), row["writers"].as_u64()), (Some(64), Some(2)));
        for key in ["p50_ns", "p99_ns", "p999_ns", "per_second", "ratio_to_limit"] {
            assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {row}");
        }
    }
    assert_eq!(report["verdicts"].as_array().map(Vec::len), Some(4));
}

#[test]
fn text_shows_medians_ratios_and_the_noise_of_the_host() {
    let output =
        weft(&["bench", "mailbox", "--seconds-per-cell", "1", "--writers", "1", "--bytes", "8"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    for word in ["#bytes", "t_typical[usec]", "99.9%[usec]", "MsgRate[Mpps]", "ratio", "stall"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn counted_work_is_done_at_every_batch_and_length() {
    for (bytes, batch) in [("8", "1"), ("8", "1000"), ("256", "7")] {
        let output = weft(&[
            "bench",
            "counted-work",
            "--messages",
            "5000",
            "--bytes",
            bytes,
            "--batch",
            batch,
        ]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn instructions_of_a_message_and_of_an_idle_poll_are_counted() {
    // One message: each instruction of a build that is not optimized is a step.
    let output = weft(&["bench", "count", "--json", "--messages", "1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let rows = report["rows"].as_array().expect("rows");
    let counted = |what: &str| -> Vec<f64> {
        let rows = rows.iter().filter(|row| row["what"] == what);
        rows.map(|row| row["instructions"].as_f64().expect("a number")).collect()
    };
    let (messages, idle) = (counted("put_take"), counted("poll_idle"));
    assert_eq!((messages.len(), idle.len()), (4, 1), "{report}");
    // A message is put, which an idle poll is not, and 256 bytes are more than 8.
    assert!(0.0 < idle[0] && idle[0] < messages[0] && messages[0] < messages[2], "{report}");
}

#[test]
fn a_killed_writer_is_an_error_and_no_hang() {
    let long = ["bench", "mailbox", "--json", "--seconds-per-cell", "600", "--writers", "1"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(long).stdin(Stdio::null()).stderr(Stdio::piped());
    let bench = command.spawn().expect("the program starts");
    let children = format!("/proc/{0}/task/{0}/children", bench.id());
    let writer = loop {
        let listed = std::fs::read_to_string(&children).expect("it runs");
        if let Some(pid) = listed.split_whitespace().next() {
            break pid.to_owned();
        }
        std::thread::yield_now();
    };
    let killed = Command::new("kill").args(["-9", &writer]).status().expect("kill starts");
    assert!(killed.success());
    let output = bench.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(31), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(last_line(&output.stderr)["error"]["code"], "component_lost");
}

#[test]
fn cells_that_do_not_exist_are_a_usage_error() {
    let output = weft(&["bench", "mailbox", "--json", "--bytes", "9"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(last_line(&output.stderr)["error"]["code"], "usage");
}

#[test]
fn every_keeper_of_timers_is_timed_and_ours_allocates_nothing() {
    let output = weft(&["bench", "wheel", "--json", "--timers", "100", "--turns", "1"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let keepers = if report["with_rivals"] == true { 4 } else { 2 };
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 5 * keepers);
    for row in rows {
        assert!(row["p50_ns"].as_f64().is_some_and(|value| value > 0.0), "{row}");
        let is_ours = row["keeper"] == "weft";
        assert!(!is_ours || row["allocations"] == 0.0, "{row}");
    }
    // A map of a hundred timers splits its nodes sooner or later.
    let map_allocates = |row: &Value| {
        row["keeper"] == "sorted_map" && row["allocations"].as_f64().is_some_and(|one| one > 0.0)
    };
    assert!(rows.iter().any(map_allocates), "allocations are not counted");
}

#[test]
fn a_wheel_that_large_is_a_usage_error() {
    let output = weft(&["bench", "wheel", "--json", "--timers", "1000001"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(last_line(&output.stderr)["error"]["code"], "usage");
}

#[cfg(not(feature = "verbs"))]
#[test]
fn a_program_without_the_driver_says_how_to_get_it() {
    let output = weft(&["bench", "verbs", "--json"]);
    assert_eq!(output.status.code(), Some(43), "{}", String::from_utf8_lossy(&output.stderr));
    let error = &last_line(&output.stderr)["error"];
    assert!(error["cure"].as_str().is_some_and(|cure| cure.contains("verbs")), "{error}");
}

#[test]
fn broadcasts_are_timed_beside_a_hop_and_their_operations_counted() {
    let arguments = ["bench", "neb", "--json", "--messages", "100"];
    let cell = ["--members", "3", "--members", "4", "--bytes", "8", "--bytes", "4096"];
    let output = weft(&[&arguments[..], &cell].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4);
    for row in rows {
        for key in ["p50_ns", "p99_ns", "p999_ns", "hop_p50_ns", "ratio_to_hop", "per_second"] {
            assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {row}");
        }
        let others = row["members"].as_f64().expect("a number") - 1.0;
        // What was torn when it was read is read again.
        let operations = row["operations"].as_f64().expect("a number");
        assert!(operations >= others * others, "{row}");
        // One write carries a batch to each.
        let batched = row["operations_batched"].as_f64().expect("a number");
        assert!(batched > 0.0 && batched < operations && row["batch"] == 16, "{row}");
    }
}

/// Every time is one of an event: it is there, it comes after the one that it follows from, and no
/// verdict is sooner than the profile's patience lets it be.
#[test]
fn detection_is_timed_in_the_order_of_its_events() {
    let arguments =
        ["bench", "detect", "--json", "--runs", "4", "--heartbeats", "2000", "--rounds", "0"];
    let output = weft(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let rows = report["detections"].as_array().expect("detections");
    assert_eq!(rows.len(), 3 * 5 * 2);
    for row in rows {
        let p50 = |what: &str| row[what]["p50_us"].as_u64();
        assert_eq!((row["runs"].as_u64(), row["admitted"].as_u64()), (Some(4), Some(4)), "{row}");
        assert!(p50("suspicion") <= p50("verdict") && p50("verdict") < p50("admission"), "{row}");
        assert_eq!(p50("takeover").is_some(), row["target"] == "manager", "{row}");
        let patience = match row["profile"].as_str() {
            Some("lan") => 400_000 - 40_000,
            Some("rdma") => 550 - 100,
            _ => 1_200_000 - 100_000,
        };
        let is_crash = row["fault"] == "node";
        assert!(!is_crash || p50("verdict").is_some_and(|us| us >= patience), "{row}");
    }
    let detectors = if report["with_rivals"] == true { 2 } else { 1 };
    let accuracy = report["accuracy"].as_array().expect("accuracy");
    assert_eq!(accuracy.len(), 4 * detectors);
    for row in accuracy {
        assert!(row["heartbeats"].as_u64().is_some_and(|count| count >= 2_000), "{row}");
    }
    let few = accuracy.iter().find(|row| row["trouble"] == "few_losses").expect("few losses");
    assert_eq!(few["false_verdicts"], 0);
    assert_eq!(report["traffic"].as_array().map(Vec::len), Some(3));
}

/// Cut links remove no node, a clone comes although its manager does not reach it, and each order
/// has its effect, at real processes.
#[test]
fn each_strike_leads_to_its_own_decision() {
    let mut arguments = vec!["bench", "detect", "--json", "--runs", "1", "--heartbeats", "0"];
    arguments.extend(["--rounds", "1", "--profile", "host", "--fault", "cut_pair"]);
    arguments.extend(["--fault", "kill_under_cut", "--fault", "isolation"]);
    let output = weft(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let rows = report["detections"].as_array().expect("detections");
    let struck: Vec<_> = rows.iter().filter_map(|row| row["fault"].as_str()).collect();
    assert_eq!(struck, ["cut_pair", "cut_pair", "kill_under_cut", "isolation"]);
    for row in rows {
        let counts = [&row["judged"], &row["right"], &row["admitted"]].map(|it| it.as_u64());
        assert_eq!(counts, [Some(1); 3], "{row}");
    }
    let clone = rows.iter().find(|row| row["fault"] == "kill_under_cut").expect("a row");
    // R + W, the longest waits between alarms and between questions, and 4 s for the greeting over
    // the cut link: 5.5 s. A task whose manager cannot order it to start one waits for 10.8 s.
    assert!(clone["admission"]["max_us"].as_u64() < Some(9_000_000), "{clone}");
}

/// Programs that are members exchange numbers, and learn of a node that is gone after its verdict.
#[test]
fn m3_programs_are_timed_beside_the_mailbox_and_after_a_verdict() {
    let arguments = ["bench", "member", "--json", "--rounds", "1", "--seconds", "0.2"];
    let output = weft(&[&arguments[..], &["--faults", "1"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    // No program complains, that of a node which is started again and stopped at once included.
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    let report = last_line(&output.stdout);
    let rows = report["rows"].as_array().expect("rows");
    let whats: Vec<_> = rows.iter().filter_map(|row| row["what"].as_str()).collect();
    let exchanged =
        ["hop_polled", "hop_spawned", "rate_polled", "rate_spawned", "take_save_release"];
    let timed = ["verdict_to_event", "verdict_to_watch", "verdict_to_mask", "join"];
    assert_eq!(whats, [&exchanged[..], &timed[..]].concat());
    for row in rows.iter().filter(|row| exchanged.contains(&row["what"].as_str().unwrap_or(""))) {
        assert!(row["iterations"].as_u64() > Some(1), "a median needs several samples: {row}");
    }
    for row in rows {
        for key in ["p50_ns", "p99_ns", "per_second"] {
            assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {row}");
        }
        let what = row["what"].as_str().unwrap_or_default();
        let ratio = row["ratio_to_mailbox"].as_f64();
        assert_eq!(ratio.is_some_and(|it| it > 0.0), exchanged.contains(&what), "{row}");
    }
    assert_eq!(report["verdicts"].as_array().map(Vec::len), Some(8));
    // It is decided before the page shows it, and a span of no time would be no measurement.
    let mask = rows.iter().find(|row| row["what"] == "verdict_to_mask").expect("a row");
    assert!(mask["min_ns"].as_f64() > Some(1_000.0), "{mask}");
}

/// Rows with their ratios; those of the rival are there where an MPI is installed, and else a line
/// that says how to get one.
#[test]
fn gt6_a_group_is_timed_beside_copies_and_its_schedule_is_counted() {
    let arguments = ["bench", "group", "--json", "--members", "2,3", "--bytes", "8,4K"];
    let output = weft(&[&arguments[..], &["--rounds", "1"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let rows = report["rows"].as_array().expect("rows");
    let what = |row: &Value| row["what"].as_str().unwrap_or_default().to_owned();
    let (mpi, ours): (Vec<_>, Vec<_>) = rows.iter().partition(|row| what(row) == "mpi");
    let has_rival = !mpi.is_empty();
    let rival = report["rival"].as_str().unwrap_or_default();
    assert!(if has_rival { rival.contains("mpicc") } else { rival.contains("install") }, "{rival}");
    let whats: Vec<_> = ours.iter().map(|row| what(row)).collect();
    assert_eq!(whats, ["in_place", "copied_out", "copy", "steps"].repeat(4));
    for row in ours {
        assert!(row["ratio_to_limit"].as_f64().is_some_and(|ratio| ratio > 0.0), "{row}");
        assert_eq!(row["p50_ns"].as_f64().is_some(), what(row) != "steps", "{row}");
        let is_broadcast = ["in_place", "copied_out"].contains(&what(row).as_str());
        assert_eq!(row["ratio_to_rival"].as_f64().is_some(), is_broadcast && has_rival, "{row}");
        if what(row) == "steps" {
            assert_eq!(row["ratio_to_limit"].as_f64(), Some(1.0), "{row}");
        }
    }
}

/// Members as processes have the same rows, and the model names trees for a cluster file.
#[test]
fn gt3_members_are_processes_too_and_the_model_chooses_trees() {
    let arguments = ["bench", "group", "--json", "--processes", "--rounds", "1"];
    let output = weft(&[&arguments[..], &["--members", "3", "--bytes", "8,64K"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    assert_eq!(report["are_processes"], true);
    let rows = report["rows"].as_array().expect("rows");
    let timed = rows.iter().filter(|row| row["what"] == "copied_out");
    assert!(timed.clone().all(|row| row["p50_ns"].as_f64() > Some(0.0)), "{report}");
    assert_eq!(timed.count(), 2);
    let output = weft(&["bench", "group", "--model", "--json", "--rounds", "1", "--members", "3"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let model = last_line(&output.stdout);
    assert!(model["latency"].as_u64().is_some_and(|it| (1..=63).contains(&it)), "{model}");
    for row in model["rows"].as_array().expect("rows") {
        let least = ["serial", "binary", "fibonacci", "pipe"]
            .map(|tree| row[format!("{tree}_ns")].as_f64().unwrap_or(f64::NAN))
            .into_iter()
            .fold(f64::INFINITY, f64::min);
        let chosen = row["chosen"].as_str().expect("a topology");
        assert_eq!(row[format!("{chosen}_ns")].as_f64(), Some(least), "{row}");
    }
}

/// Every row is there with its limit, and its values were checked.
#[test]
fn rz10_each_path_of_a_tensor_is_timed_beside_its_limit() {
    let arguments = ["bench", "rendezvous", "--json", "--bytes", "4K,2M", "--rounds", "1"];
    let output = weft(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let rows = report["rows"].as_array().expect("rows");
    let found: Vec<_> = rows
        .iter()
        .map(|row| (row["what"].as_str().unwrap_or_default(), row["bytes"].as_u64().unwrap_or(0)))
        .collect();
    let alone = [("hop", 8), ("inline", 872), ("posted", 0)];
    let short =
        [("read", 4096), ("write", 4096), ("digest", 4096), ("cancel", 4096), ("handover", 4096)];
    let long = [("parts", 2 << 20), ("handover", 2 << 20)];
    assert_eq!(found, [&alone[..], &short, &long].concat());
    for row in rows {
        for key in ["p50_ns", "p99_ns", "ratio_to_limit"] {
            assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {row}");
        }
        assert!(row["iterations"].as_u64() > Some(1), "{row}");
    }
    assert_eq!(report["verdicts"].as_array().map(Vec::len), Some(9));
}

/// The interpreter orders what the function in Rust does, or there are no rows; a script's restart
/// and a built-in one are timed at real processes.
#[test]
fn recovery_is_timed_beside_rust_and_beside_the_built_in_strategy() {
    let arguments = ["bench", "recovery", "--json", "--rounds", "1", "--restarts", "2"];
    let output = weft(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = last_line(&output.stdout);
    let rows = report["rows"].as_array().expect("rows");
    let whats: Vec<_> = rows.iter().filter_map(|row| row["what"].as_str()).collect();
    let restarts = ["restart_by_script", "restart_built_in"];
    assert_eq!(whats[..4], ["evaluate", "by_hand", "verify", "translate"]);
    assert_eq!(whats[4..], restarts);
    for (row, what) in rows.iter().zip(&whats) {
        for key in ["min_ns", "p50_ns", "p99_ns"] {
            assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key} in {row}");
        }
        let has_rival = !["verify", "translate"].contains(what);
        assert_eq!(row["ratio_to_rival"].as_f64().is_some_and(|it| it > 0.0), has_rival, "{row}");
        assert!(!restarts.contains(what) || row["iterations"] == 2, "{row}");
    }
    // What the aims are about: 1,000 words that are run, 3,000 words, 1,000 lines.
    let size = |at: usize| rows[at]["size"].as_u64().expect("a size");
    assert!((1_000..1_100).contains(&size(0)) && size(2) == 3_000, "{report}");
    assert!((1_000..1_100).contains(&size(3)), "{report}");
    let verdicts = report["verdicts"].as_array().expect("verdicts");
    assert_eq!(verdicts.len(), 7);
    let interpreter = verdicts.iter().find(|it| it["aim"].to_string().contains("24 KiB"));
    assert_eq!(interpreter.expect("a verdict")["reached"], true);
}

#[test]
fn a_length_that_no_group_sends_is_refused() {
    for (option, value) in [("--bytes", "7"), ("--bytes", "4X"), ("--members", "1")] {
        let output = weft(&["bench", "group", option, value]);
        assert!(!output.status.success() && !output.stderr.is_empty(), "{option} {value}");
    }
}
