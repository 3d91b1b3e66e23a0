//! The effect of each event about a peer, in any order of sessions and incarnations.

use weft_core::ids::Rank;

use super::*;

const PEER: Peer = Peer(1);

const TERM: Term = Term { epoch: 4, claimant: Rank(0) };

/// A fence after a lost connection, without a decision of a manager.
fn undecided(life: u32) -> ShutOut {
    ShutOut { life: Incarnation(life), decided: None }
}

fn decided(life: u32, epoch: u32, claimant: u16) -> ShutOut {
    let term = Term { epoch, claimant: Rank(claimant) };
    ShutOut { life: Incarnation(life), decided: Some(term) }
}

fn life(incarnation: u32) -> Life {
    let boot = Incarnation(1);
    let process = Pidfd::of_self().ok();
    Life { incarnation: Incarnation(incarnation), boot, process, memory: 1, key: None }
}

/// A peer that was met in session 1 and runs in incarnation 1.
fn living() -> Lives {
    let mut lives = Lives::new(2);
    assert_eq!(lives.handle_met(PEER, 1, Grant(Vec::new())), None);
    assert_eq!(lives.handle_alive(PEER, 1, life(1)), Some(Due::Connect(PEER)));
    lives
}

#[test]
fn a_living_peer_joins_by_its_own_incarnation_only() {
    let mut lives = living();
    lives.handle_joined(PEER, Incarnation(2));
    assert!(!lives.all_joined());
    lives.handle_joined(PEER, Incarnation(1));
    assert!(lives.all_joined());
    lives.handle_own_end();
    assert!(!lives.all_joined());
}

#[test]
fn the_first_key_of_a_peer_stays() {
    let mut lives = living();
    assert_eq!(lives.keys(), []);
    let key = |byte| Some(PublicKey([byte; 32]));
    for (incarnation, heard) in [(2, key(1)), (3, key(2)), (4, None)] {
        lives.handle_alive(PEER, 1, Life { key: heard, ..life(incarnation) });
        assert_eq!(lives.keys(), [(PEER, PublicKey([1; 32]))], "{incarnation}");
    }
    assert_eq!(lives.handle_parted(PEER, 1), Some(Due::Fence(PEER)));
    assert_eq!(lives.keys().len(), 1, "what it has signed stands");
}

#[test]
fn the_first_memory_of_a_peer_is_the_one_that_counts() {
    let mut lives = living();
    assert!(!lives.has_forgotten(PEER));
    for (incarnation, memory, has_forgotten) in [(2, 1, false), (3, 2, true), (4, 2, true)] {
        lives.handle_alive(PEER, 1, Life { memory, ..life(incarnation) });
        assert_eq!(lives.has_forgotten(PEER), has_forgotten, "{incarnation}");
    }
}

#[test]
fn the_end_of_an_earlier_life_says_nothing_of_the_present_one() {
    let mut lives = living();
    assert_eq!(lives.handle_alive(PEER, 1, life(2)), Some(Due::Connect(PEER)));
    assert_eq!(lives.handle_dead(PEER, 1, Incarnation(1)), None);
    assert_eq!(lives.handle_dead(PEER, 1, Incarnation(2)), Some(Due::Fence(PEER)));
    assert_eq!(lives.alive(), []);
}

#[test]
fn stale_news_of_an_earlier_session_are_ignored() {
    let mut lives = living();
    assert_eq!(lives.handle_met(PEER, 2, Grant(Vec::new())), Some(Due::Fence(PEER)));
    assert_eq!(lives.handle_parted(PEER, 1), None);
    assert_eq!(lives.handle_alive(PEER, 1, life(1)), None);
    assert_eq!(lives.handle_alive(PEER, 2, life(2)), Some(Due::Connect(PEER)));
    assert!(lives.is_alive(PEER, 2, Incarnation(2)) && !lives.is_alive(PEER, 1, Incarnation(2)));
    assert_eq!(lives.handle_parted(PEER, 2), Some(Due::Fence(PEER)));
}

#[test]
fn a_fenced_life_that_is_heard_again_is_told_so_until_the_own_component_is_another() {
    let mut lives = living();
    assert_eq!(lives.handle_parted(PEER, 1), Some(Due::Fence(PEER)));
    assert_eq!(lives.handle_met(PEER, 2, Grant(Vec::new())), None);
    let told = lives.handle_alive(PEER, 2, life(1));
    assert_eq!(told, Some(Due::ShutOut(PEER, undecided(1))));
    assert_eq!(lives.alive(), []);
    lives.handle_own_end();
    assert_eq!(lives.handle_alive(PEER, 2, life(1)), Some(Due::Connect(PEER)));
}

#[test]
fn a_life_that_is_cut_off_is_given_up_unless_it_ends_in_time() {
    let mut lives = living();
    lives.handle_lost(PEER, Incarnation(2), 10);
    assert_eq!(lives.handle_time(99), None, "another life's");
    lives.handle_lost(PEER, Incarnation(1), 100);
    lives.handle_lost(PEER, Incarnation(1), 500);
    assert_eq!((lives.handle_time(99), lives.next_deadline_ns()), (None, Some(100)));
    assert_eq!(lives.handle_time(100), Some((PEER, undecided(1))));
    assert_eq!((lives.handle_time(999), lives.alive()), (None, vec![]));

    let mut lives = living();
    lives.handle_lost(PEER, Incarnation(1), 100);
    assert_eq!(lives.handle_alive(PEER, 1, life(2)), Some(Due::Connect(PEER)));
    assert_eq!(lives.handle_time(999), None);
    lives.handle_lost(PEER, Incarnation(2), 100);
    lives.handle_own_end();
    assert_eq!(lives.handle_time(999), None, "the next component has lost nothing");
}

#[test]
fn a_life_that_was_removed_by_decision_stays_out_and_the_next_boot_comes_in() {
    let mut lives = living();
    lives.handle_removed(PEER, Incarnation(1), TERM);
    assert_eq!(lives.alive(), []);
    let shut_out = Some(Due::ShutOut(PEER, decided(7, 4, 0)));
    assert_eq!(lives.handle_alive(PEER, 1, life(7)), shut_out);
    lives.handle_own_end();
    assert_eq!(lives.handle_alive(PEER, 1, life(7)), shut_out);
    let reborn = Life { boot: Incarnation(8), ..life(8) };
    assert_eq!(lives.handle_alive(PEER, 1, reborn), Some(Due::Connect(PEER)));
}

/// It would otherwise be fenced once for each incarnation.
#[test]
fn a_host_that_forgot_its_incarnations_is_told_the_last_at_once() {
    let mut lives = living();
    lives.handle_removed(PEER, Incarnation(9), TERM);
    let told = lives.handle_alive(PEER, 1, life(1));
    assert_eq!(told, Some(Due::ShutOut(PEER, decided(9, 4, 0))));
}

/// Two peers that have fenced each other, and their messages in one session.
#[test]
fn of_two_that_shut_each_other_out_exactly_one_begins_anew() {
    let words = [undecided(1), decided(1, 4, 0), decided(1, 5, 0), decided(1, 5, 1)];
    let (me, peer) = (Peer(0), PEER);
    let holding = |by: Peer, told: ShutOut| {
        let mut lives = Lives::new(2);
        lives.peers[1 - by.index()].told = Some(told);
        lives
    };
    for (at, ours) in words.into_iter().enumerate() {
        for (theirs_at, theirs) in words.into_iter().enumerate() {
            let mine = holding(me, ours).outranks(me, peer, theirs);
            let yours = holding(peer, theirs).outranks(peer, me, ours);
            assert_ne!(mine, yours, "{ours:?} {theirs:?}");
            let is_right = if at == theirs_at { yours } else { mine == (at > theirs_at) };
            assert!(is_right, "{ours:?} {theirs:?}: a decision, a later reign, a higher rank");
        }
    }
}

#[test]
fn who_has_shut_nobody_out_obeys_and_a_new_session_or_life_ends_what_was_told() {
    let (me, theirs) = (Peer(0), undecided(1));
    assert!(!living().outranks(me, PEER, theirs), "it has told the peer nothing");
    let told = || {
        let mut lives = living();
        lives.handle_removed(PEER, Incarnation(1), TERM);
        assert!(matches!(lives.handle_alive(PEER, 1, life(1)), Some(Due::ShutOut(..))));
        assert!(lives.outranks(me, PEER, theirs) && !lives.outranks(me, PEER, decided(1, 5, 0)));
        lives
    };
    let mut lives = told();
    lives.handle_own_end();
    assert!(!lives.outranks(me, PEER, theirs));
    let mut lives = told();
    lives.handle_met(PEER, 2, Grant(Vec::new()));
    assert!(!lives.outranks(me, PEER, theirs));
    let mut lives = told();
    lives.handle_alive(PEER, 1, Life { boot: Incarnation(8), ..life(8) });
    assert!(!lives.outranks(me, PEER, theirs));
}

#[test]
fn an_isolated_peer_is_told_so_in_every_life_until_it_is_released() {
    let mut lives = living();
    assert!(lives.handle_isolated(PEER, Incarnation(1)));
    assert!(!lives.handle_isolated(PEER, Incarnation(1)));
    assert_eq!(lives.alive(), []);
    let reborn = |number| Life { boot: Incarnation(number), ..life(number) };
    lives.handle_own_end();
    let due = Some(Due::Isolate(PEER, Incarnation(1)));
    assert_eq!(lives.handle_alive(PEER, 1, reborn(8)), due);
    assert!(!lives.handle_released(PEER, Incarnation(0)), "an old word");
    assert_eq!(lives.released(PEER), None);
    assert!(lives.handle_released(PEER, Incarnation(1)) && lives.is_met(PEER));
    assert_eq!(lives.released(PEER), Some(Incarnation(1)));
    assert!(!lives.handle_isolated(PEER, Incarnation(1)), "an old word");
    assert_eq!(lives.handle_alive(PEER, 1, reborn(9)), Some(Due::Connect(PEER)));
    assert!(!lives.handle_released(PEER, Incarnation(1)));
}

#[test]
fn a_later_life_is_kept_until_it_ends_itself_or_contradicts() {
    let mut lives = Lives::new(2);
    lives.handle_met(PEER, 1, Grant(Vec::new()));
    let reborn = Life { boot: Incarnation(8), ..life(8) };
    assert_eq!(lives.handle_alive(PEER, 1, reborn), Some(Due::Connect(PEER)));
    assert!(lives.handle_isolated(PEER, Incarnation(7)));
    assert_eq!(lives.alive(), [PEER]);
    assert!(lives.handle_released(PEER, Incarnation(7)));
    assert!(lives.handle_isolated(PEER, Incarnation(8)));
    assert_eq!(lives.alive(), []);
}

/// Other nodes released it, while this node did not know of it.
#[test]
fn a_life_that_began_after_the_isolation_is_let_in_when_that_is_over() {
    let reborn = |number| Life { boot: Incarnation(number), ..life(number) };
    let held = || {
        let mut lives = living();
        lives.handle_isolated(PEER, Incarnation(1));
        let due = Some(Due::Isolate(PEER, Incarnation(1)));
        assert_eq!(lives.handle_alive(PEER, 1, reborn(8)), due);
        lives
    };
    let mut lives = held();
    assert!(lives.handle_released(PEER, Incarnation(7)));
    assert_eq!(lives.handle_let_in(PEER, Incarnation(8)), None, "that life is meant, too");
    assert_eq!(lives.handle_let_in(PEER, Incarnation(7)), Some(Due::Connect(PEER)));
    assert_eq!(lives.handle_let_in(PEER, Incarnation(7)), None);
    let ends: [fn(&mut Lives); 3] = [
        |lives| assert_eq!(lives.handle_dead(PEER, 1, Incarnation(8)), None),
        |lives| assert_eq!(lives.handle_parted(PEER, 1), None),
        |lives| assert_eq!(lives.handle_met(PEER, 2, Grant(Vec::new())), None),
    ];
    for end in ends {
        let mut lives = held();
        end(&mut lives);
        assert!(lives.handle_released(PEER, Incarnation(7)));
        assert_eq!(lives.handle_let_in(PEER, Incarnation(7)), None);
    }
}

/// It has the memory mapped, and may be stopped right before a write into it.
#[test]
fn a_process_of_an_incarnation_that_is_over_is_ended_before_all_count_as_named() {
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let process = Pidfd::from_child(&child).unwrap();
    process.signal(rustix::process::Signal::STOP).unwrap();
    let mut lives = Lives::new(2);
    assert!(lives.end_stragglers());
    lives.handle_met(PEER, 1, Grant(Vec::new()));
    let watched = process.try_clone().ok();
    lives.handle_alive(PEER, 1, Life { process: watched, ..life(1) });
    assert!(lives.end_stragglers(), "it is known, and will be asked");
    lives.handle_parted(PEER, 1);
    lives.handle_own_end();
    while !lives.end_stragglers() {
        let ended = process.wait_dead(std::time::Duration::from_secs(60)).unwrap();
        assert_eq!(ended, crate::process::Liveness::Dead);
    }
    assert!(process.is_dead().unwrap());
    child.wait().unwrap();
}

#[test]
fn a_rank_that_does_not_exist_changes_nothing() {
    let mut lives = living();
    assert_eq!(lives.handle_alive(Peer(7), 0, life(1)), None);
    lives.handle_joined(Peer(7), Incarnation(1));
}
