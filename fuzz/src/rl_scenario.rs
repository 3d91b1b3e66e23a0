//! What an operator wrote as a scenario: errors, or events in order that end in time.

use weft_core::recovery::{Expected, verify};
use weft_rl::Reader;
use weft_rl::scenario::{SCENARIO_US_MAX, read_scenario};

const SCRIPT: &str = "DEFINE 0 = MANAGER\nDEFINE 1-2 = BACKUP\n\
                      TASK 1 = \"camera\" IS NODE 1, TASKID 0\n\
                      TASK 2 = \"spare\" IS NODE 2, TASKID 0\n\
                      WATCHDOG 1 WATCHES T1\nHEARTBEATS EVERY 200 MS\nON ERROR\nRESTART T1\n\
                      END WATCHDOG\n";

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
}
