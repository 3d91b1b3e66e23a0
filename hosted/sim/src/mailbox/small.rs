//! The configurations of mailbox and lane that the explorer walks.
//!
//! ```text
//!   members    2, one writer; 3, two writers; halves of two slots, lanes of two
//!   ends       a crash at any operation, a start of the next incarnation, a removal
//!   fabric     a torn write or read, a lost pair before or after its work has landed, a full queue
//!   writer     puts messages one by one, or a batch; stalls inside a post
//!   epochs     from 0, or from right before their wrap
//! ```
//!
//! Nothing waits for a clock: a ticket is questioned as soon as it is missing. Rounds with an
//! effect are limited, since an owner questions a missing ticket repeatedly.

use weft_core::ids::{Peer, PeerSet};
use weft_core::time::Duration;

use super::{Mailboxes, TrafficMix};
use crate::protocol::{Pace, Small};
use crate::world::Promises;

const OWNER: Peer = Peer(0);
const WRITER: Peer = Peer(1);

/// One configuration: a name, its sizes, and the orders and rounds of each peer.
fn small(name: &str, protocol: Mailboxes, [orders, steps]: [&[u32]; 2]) -> Small<Mailboxes> {
    let name = format!("n = {}, {name}", orders.len());
    let small = Small::of(name, protocol, orders.to_vec());
    Small { steps: Some(steps.to_vec()), crashes: 0, ..small }
}

/// All but the first put into the mailbox of the first.
fn mailbox(peers: u16) -> Mailboxes {
    let mut protocol = Mailboxes::new(peers, 2, Duration(0), 2);
    protocol.traffic = TrafficMix::Mailbox;
    protocol.owners = PeerSet::only(OWNER);
    protocol
}

/// As [`mailbox`], with messages that are put `count` at a time, and again after a loss.
fn batches(peers: u16, count: u64) -> Mailboxes {
    Mailboxes { more: count - 1, repeats: true, ..mailbox(peers) }
}

/// As [`mailbox`], in the last epoch before the wrap.
fn worn(peers: u16) -> Mailboxes {
    Mailboxes { first_epoch: u32::MAX, ..mailbox(peers) }
}

/// All of them, over a fabric that promises nothing more than it must, and over one that promises
/// what shared memory does; a writer that stalls inside a post gets no answer from it.
pub(super) fn all() -> Vec<Small<Mailboxes>> {
    let base: Vec<_> = of_two().into_iter().chain(of_three()).collect();
    let over = |promises, more| {
        let name = move |small: &Small<_>| format!("{}, {more}", small.name);
        move |small: Small<Mailboxes>| Small { name: name(&small), promises, ..small }
    };
    let whole = over(Promises { answers: false, ..Promises::MOST }, "whole words");
    let answered = over(Promises::MOST, "whole words, answered at once");
    // Without a mishap, and a stall is one, no word is seen on its way.
    let is_torn = |small: &Small<_>| small.faults > 0 || small.stalls;
    let whole = base.clone().into_iter().filter(is_torn).map(whole);
    let answered = base.clone().into_iter().filter(|small| !small.stalls).map(answered);
    let promising: Vec<_> = whole.chain(answered).collect();
    // Where words appear whole, batches of one length are packed.
    let packed = of_one_length().into_iter();
    let packed = packed.map(over(Promises { answers: false, ..Promises::MOST }, "whole words"));
    base.into_iter().chain(packed).chain(promising).collect()
}

fn of_two() -> Vec<Small<Mailboxes>> {
    let removable = PeerSet::only(WRITER);
    let stalling = Mailboxes { stalls: true, ..mailbox(2) };
    let lanes = Mailboxes { traffic: TrafficMix::Lanes, ..mailbox(2) };
    vec![
        Small { crashes: 1, starts: 1, ..small("two puts", mailbox(2), [&[0, 2], &[7, 6]]) },
        Small {
            crashes: 1,
            starts: 1,
            ..small("two puts across the wrap", worn(2), [&[0, 2], &[7, 6]])
        },
        Small {
            faults: 1,
            starts: 1,
            ..small("a batch of two", batches(2, 2), [&[0, 1], &[6, 4]])
        },
        Small { refusals: 1, ..small("a batch of three", batches(2, 3), [&[0, 1], &[6, 6]]) },
        Small {
            crashes: 1,
            starts: 1,
            faults: 1,
            pace: Pace::AtOnce,
            ..small("messages of two incarnations, handled at once", mailbox(2), [&[0, 3], &[4, 5]])
        },
        Small { removable, ..small("two puts", mailbox(2), [&[0, 2], &[7, 6]]) },
        Small {
            crashes: 1,
            starts: 1,
            stalls: true,
            ..small("a writer that stalls inside a post", stalling, [&[0, 1], &[6, 3]])
        },
        Small {
            crashes: 1,
            starts: 1,
            refusals: 1,
            ..small("four in a lane", lanes, [&[0, 4], &[6, 6]])
        },
    ]
}

/// Batches of which two messages share a slot, in halves of two slots and of four.
fn of_one_length() -> Vec<Small<Mailboxes>> {
    let alike = |count| Mailboxes { alike: true, ..batches(2, count) };
    let four = Mailboxes { plan: Mailboxes::new(2, 4, Duration(0), 2).plan, ..alike(3) };
    vec![
        Small {
            faults: 1,
            starts: 1,
            ..small("a batch of two of one length", alike(2), [&[0, 1], &[6, 4]])
        },
        Small {
            crashes: 1,
            starts: 1,
            ..small("a batch of three of one length", four, [&[0, 1], &[6, 4]])
        },
    ]
}

fn of_three() -> Vec<Small<Mailboxes>> {
    let removable = PeerSet::only(WRITER);
    // A put takes three rounds: reserve, write, forget the claim.
    let each = || small("two writers", mailbox(3), [&[0, 1, 1], &[2, 3, 3]]);
    let at_once = || {
        let name = "two writers, handled at once";
        Small { pace: Pace::AtOnce, ..small(name, mailbox(3), [&[0, 1, 1], &[3, 3, 3]]) }
    };
    let worn = small("two writers across the wrap", worn(3), [&[0, 1, 1], &[2, 3, 3]]);
    vec![
        Small { crashes: 1, ..each() },
        Small { crashes: 1, starts: 1, ..at_once() },
        Small { faults: 1, starts: 1, ..at_once() },
        Small { removable, ..each() },
        worn,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_and_three_members_see_a_birth_a_mishap_a_removal_and_the_wrap() {
        let kinds: [fn(&Small<Mailboxes>) -> bool; 4] = [
            |small| small.crashes > 0 && small.starts > 0,
            |small| small.faults > 0 && small.starts > 0,
            |small| !small.removable.is_empty(),
            |small| small.protocol.first_epoch == u32::MAX,
        ];
        for members in [2, 3] {
            let all: Vec<_> =
                all().into_iter().filter(|small| small.orders.len() == members).collect();
            assert!(kinds.iter().all(|kind| all.iter().any(kind)), "{members} members");
        }
    }
}
