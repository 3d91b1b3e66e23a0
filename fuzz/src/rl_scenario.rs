//! What an operator wrote as a scenario: errors, or events in order that end in time. A short one
//! is run as well: no order about a task is obeyed twice, and no round has two outcomes.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::dirnet::Timing;
use weft_core::recovery::{Expected, Order, verify};
use weft_rl::Reader;
use weft_rl::scenario::{Deed, SCENARIO_US_MAX, Scenario, read_scenario};
use weft_sim::dirnet::{Happening, ScriptLab};

const SCRIPT: &str = "DEFINE 0 = MANAGER\nDEFINE 1-2 = BACKUP\n\
                      TASK 1 = \"camera\" IS NODE 1, TASKID 0\n\
                      TASK 2 = \"spare\" IS NODE 2, TASKID 0\n\
                      TASK 3 = \"north\" IS NODE 0, TASKID 0\n\
                      TASK 4 = \"south\" IS NODE 1, TASKID 1\n\
                      TASK 5 = \"east\" IS NODE 2, TASKID 1\n\
                      LOGICAL 1 = \"versions\" IS TASK 3, 4, 5 END LOGICAL\n\
                      N-VERSION 1\nVERSION 1 IS T3 TIMEOUT 50 MS\n\
                      VERSION 2 IS T4 TIMEOUT 50 MS\nVERSION 3 IS T5 TIMEOUT 50 MS\n\
                      VOTING ALGORITHM IS MAJORITY\nMETRIC WITHIN 5\nON SUCCESS T2\n\
                      ON ERROR T1\nEND N-VERSION\n\
                      WATCHDOG 1 WATCHES T1\nHEARTBEATS EVERY 200 MS\nON ERROR\nRESTART T1\n\
                      END WATCHDOG\nIF [ FAULTY G1 ] THEN\nRESTART @1\nFI\n";

/// The longest scenario that is run.
const RUN_US_MAX: u64 = 4_000_000;

/// One input.
pub fn run(bytes: &[u8]) {
    let reader: &mut Reader<'_> = &mut |_, _| Err("there is none".into());
    let image = weft_rl::translate("fuzz.rl", SCRIPT, None, reader).image.expect("it is right");
    let expected = Expected { nodes: None, keeps_rules: |_| true };
    let program = verify(&image, &expected).expect("it was translated");
    let reading = read_scenario("fuzz", &String::from_utf8_lossy(bytes), &program);
    // A drawing of each finding must be possible.
    let _drawn = reading.render();
    let Some(scenario) = reading.scenario else {
        return assert!(!reading.diagnostics.is_empty());
    };
    assert!(scenario.deeds.is_sorted_by_key(|(at_us, ..)| *at_us));
    // Nothing is named that lies behind the end, by which the run is bounded.
    let moments = scenario.deeds.iter().map(|(at_us, ..)| *at_us);
    let last = moments.chain(scenario.expectations.iter().map(|it| it.to_us)).max();
    assert!(last.unwrap_or_default() <= scenario.until_us);
    assert!(scenario.until_us <= SCENARIO_US_MAX + 1_000_000);
    if scenario.until_us <= RUN_US_MAX {
        play(&image, &scenario);
    }
}

fn play(image: &[u8], scenario: &Scenario) {
    let mut lab = ScriptLab::settled(image, Timing::LAN, &scenario.waiting, 0);
    let mut deeds = scenario.deeds.iter().peekable();
    let (mut obeyed, mut outcomes) = (BTreeSet::new(), BTreeMap::new());
    while lab.now_us() < scenario.until_us {
        while let Some((_, _, deed)) = deeds.next_if(|(at_us, ..)| *at_us <= lab.now_us()) {
            match *deed {
                Deed::Error(task, kind) => lab.error(task, kind),
                Deed::Silence(task) => lab.silence(task),
                Deed::Phase(task, phase) => lab.report_phase(task, phase),
                Deed::Finish(task) => lab.finish(task),
                Deed::Kill(node) => lab.kill(node),
                Deed::Crash(node) => lab.crash(node),
                Deed::Vote { nversion, version, round, number } => {
                    lab.vote(nversion, version, round, number);
                }
            }
        }
        lab.step();
        for (_, happening) in lab.take_events() {
            match happening {
                Happening::Obeyed(placed) if matches!(placed.order, Order::Task { .. }) => {
                    assert!(obeyed.insert(placed.id), "obeyed twice: {placed:?}");
                }
                Happening::Voted(_, it) => {
                    let result = (it.voters, it.agreed, it.kind, it.value);
                    let first = outcomes.entry((it.nversion, it.round)).or_insert(result);
                    assert_eq!(*first, result, "round {} has two outcomes", it.round);
                }
                _ => {}
            }
        }
    }
}
