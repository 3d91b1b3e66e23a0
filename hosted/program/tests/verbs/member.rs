//! A program as every member, over devices.

use std::time::Duration;

use weft::Member;
use weft::member::{Event, PutError, Rank};

use crate::device::devices;
use crate::place::Place;

/// Set for the processes that `weft run` starts of this test binary.
const IN_RING: &str = "WEFT_TEST_RING";
/// How many numbers go from each member to the next: few, for the machine may be an emulated one.
const COUNT: u64 = 2000;

#[test]
fn m16_the_ring_goes_round_across_a_kill_and_each_other_member_has_its_removal_as_an_event() {
    let Some(devices) = devices() else { return };
    let place = Place::new();
    let devices: Vec<&str> = devices.split(',').collect();
    let text =
        format!("name = \"t\"\nnodes = 3\nfabric = \"verbs\"\n[verbs]\ndevices = {devices:?}\n");
    let file = place.file("cluster.toml", text);
    let program = std::env::current_exe().expect("a program has a path");
    let line =
        format!("run {file} --json -- {} --exact member::ring --nocapture", program.display());
    let run = place.start_changed(&line, "", |command| command.env(IN_RING, "1"));
    run.await_said("0 is half way");
    // The run may end before this command sees node 1 again: the members wait for its removal.
    place.weft("inject kill 1 --name t --wait 0").done();
    let out = run.said("out") + &run.said("err");
    let ended = run.wait().object();
    assert_eq!(ended["ok"], true, "{ended}\n{out}");
    let members = ended["members"].as_array().expect("an array");
    assert_eq!(members.len(), 3, "{ended}");
    assert!(members[1]["incarnations"].as_u64() > Some(1), "{ended}");
}

/// What a member of the ring does; nothing where `weft run` has not started it.
#[test]
fn ring() {
    if std::env::var_os(IN_RING).is_none() {
        return;
    }
    let mut member = Member::join().expect("its node waits for it");
    let (me, size) = (member.rank().0, member.size());
    let (before, next) = (Rank((me + size - 1) % size), Rank((me + 1) % size));
    let (mut sent, mut seen, mut is_half_way, mut killed) = (0, 0, false, None);
    while sent < COUNT || seen < COUNT || member.unput(next) > 0 {
        // The others wait in the middle for the end of member 1, so that it comes before theirs.
        let limit = if me == 1 || killed.is_some() { COUNT } else { COUNT / 2 };
        while sent < limit {
            match member.put(next, &(sent + 1).to_le_bytes()) {
                Ok(()) => sent += 1,
                Err(PutError::Full { .. } | PutError::NotAMember) => break,
                Err(PutError::Finished) => sent = COUNT,
                Err(error) => panic!("{error}"),
            }
        }
        member.wait(Duration::from_millis(10)).expect("its node lives");
        while let Some(message) = member.take() {
            assert_eq!(message.sender.0, before.0);
            let number = u64::from_le_bytes(message.payload.try_into().expect("a number"));
            let receipt = message.receipt;
            let is_next = seen == 0 || number == seen + 1;
            if is_next {
                seen = number;
            }
            // An incarnation that starts late finds the last one.
            if number < COUNT || !is_next {
                member.release(receipt).expect("it was just taken");
            }
        }
        if seen >= COUNT / 2 && !is_half_way {
            is_half_way = true;
            println!("{me} is half way");
        }
        for event in member.events() {
            if let Event::Removed { rank: Rank(1), incarnation, .. } = event {
                killed = Some(incarnation);
            }
        }
        assert!(!member.is_stopping(), "ended before it was done");
    }
    assert!(me == 1 || killed.is_some(), "no event names the incarnation of 1 that was killed");
}
