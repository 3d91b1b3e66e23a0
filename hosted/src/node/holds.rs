//! The messages that clients took from the mailbox and have not released.
//!
//! ```text
//!   taken ──▶ held by one client ──▶ released by that client
//!                    └─ it leaves, or has held the message for `hold`: the message goes back
//! ```
//!
//! A decider; receipts are opaque. A message has one holder. One that went back is delivered again,
//! under its receipt, to the client that asks next, and only that client can release it: a late
//! release by an earlier holder names a receipt that it does not hold, and changes nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::control::HolderStatus;

/// A message that a client holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    receipt: u64,
    since_ns: u64,
}

/// The messages that clients hold.
#[derive(Debug)]
pub(super) struct Holds {
    /// How long a client may hold a message; none for as long as it is connected.
    hold_ns: Option<u64>,
    /// In the order in which they were taken.
    by_client: BTreeMap<u64, VecDeque<Held>>,
    returned: u64,
}

impl Holds {
    pub(super) fn new(hold: Option<Duration>) -> Self {
        let ns = |hold: Duration| u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX);
        Self { hold_ns: hold.map(ns), by_client: BTreeMap::new(), returned: 0 }
    }

    /// Records that `client` took the messages of these receipts, which no client held.
    pub(super) fn hold(
        &mut self,
        client: u64,
        receipts: impl IntoIterator<Item = u64>,
        now_ns: u64,
    ) {
        let held = self.by_client.entry(client).or_default();
        held.extend(receipts.into_iter().map(|receipt| Held { receipt, since_ns: now_ns }));
    }

    /// Removes those of `receipts` that `client` holds, and returns them.
    pub(super) fn release(&mut self, client: u64, receipts: &[u64]) -> Vec<u64> {
        let Some(held) = self.by_client.get_mut(&client) else { return Vec::new() };
        let named: BTreeSet<u64> = receipts.iter().copied().collect();
        let mut released = Vec::new();
        held.retain(|it| {
            let is_named = named.contains(&it.receipt);
            if is_named {
                released.push(it.receipt);
            }
            !is_named
        });
        self.by_client.retain(|_, held| !held.is_empty());
        released
    }

    /// The client has left: what it held goes back.
    pub(super) fn forget(&mut self, client: u64) -> Vec<u64> {
        let held = self.by_client.remove(&client).unwrap_or_default();
        held.into_iter().map(|it| it.receipt).collect()
    }

    /// Removes what was held for too long by `now_ns`, and returns it: it goes back.
    pub(super) fn expire(&mut self, now_ns: u64) -> Vec<u64> {
        let Some(hold_ns) = self.hold_ns else { return Vec::new() };
        let mut expired = Vec::new();
        for (client, held) in &mut self.by_client {
            let is_late = |it: &Held| it.since_ns.saturating_add(hold_ns) <= now_ns;
            let late = held.iter().take_while(|it| is_late(it)).count();
            expired.extend(held.drain(..late).map(|it| it.receipt));
            if late > 0 {
                tracing::warn!(client, late, "held for too long: goes back into the mailbox");
            }
        }
        self.by_client.retain(|_, held| !held.is_empty());
        self.returned += expired.len() as u64;
        expired
    }

    /// When the next message goes back.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        let first_ns =
            self.by_client.values().filter_map(|held| held.front()).map(|it| it.since_ns);
        Some(first_ns.min()?.saturating_add(self.hold_ns?))
    }

    /// How many messages went back because they were held for too long.
    pub(super) const fn returned(&self) -> u64 {
        self.returned
    }

    /// The clients that hold messages, the one that has held one for longest first; at most
    /// [`HolderStatus::COUNT_MAX`]. The supervisor adds their processes.
    pub(super) fn holders(&self, now_ns: u64) -> Vec<HolderStatus> {
        let holder = |(client, held): (&u64, &VecDeque<Held>)| {
            let held_ns = now_ns.saturating_sub(held.front()?.since_ns);
            Some(HolderStatus {
                client: *client,
                process: None,
                program: None,
                messages: held.len(),
                held_ms: held_ns / 1_000_000,
            })
        };
        let mut holders: Vec<_> = self.by_client.iter().filter_map(holder).collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.held_ms));
        holders.truncate(HolderStatus::COUNT_MAX);
        holders
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOLD_NS: u64 = 1_000_000_000;

    fn holds() -> Holds {
        Holds::new(Some(Duration::from_nanos(HOLD_NS)))
    }

    #[test]
    fn a_late_release_does_not_touch_what_another_client_holds_by_then() {
        let mut holds = holds();
        holds.hold(1, [7, 8], 0);
        assert_eq!(holds.expire(HOLD_NS - 1), [0; 0]);
        assert_eq!(holds.expire(HOLD_NS), [7, 8]);
        holds.hold(2, [7], HOLD_NS);
        assert_eq!(holds.release(1, &[7, 8]), [0; 0], "late");
        assert_eq!(holds.release(2, &[7]), [7]);
        assert_eq!((holds.returned(), holds.next_deadline_ns()), (2, None));
    }

    #[test]
    fn only_what_is_late_goes_back_and_the_rest_has_its_own_deadline() {
        let mut holds = holds();
        holds.hold(1, [1, 2], 0);
        holds.hold(1, [3], 400);
        assert_eq!(holds.release(1, &[1]), [1]);
        assert_eq!(holds.expire(HOLD_NS), [2]);
        assert_eq!(holds.next_deadline_ns(), Some(HOLD_NS + 400));
        assert_eq!(holds.forget(1), [3]);
    }

    #[test]
    fn without_a_limit_only_the_end_of_the_client_gives_back() {
        let mut holds = Holds::new(None);
        holds.hold(1, [1], 0);
        assert_eq!((holds.expire(u64::MAX), holds.next_deadline_ns()), (Vec::new(), None));
        assert_eq!(holds.forget(1), [1]);
    }

    #[test]
    fn who_holds_for_longest_is_named_first() {
        let mut holds = holds();
        holds.hold(1, [1], 5_000_000);
        holds.hold(2, [2, 3], 1_000_000);
        let holder = |client, messages, held_ms| HolderStatus {
            client,
            process: None,
            program: None,
            messages,
            held_ms,
        };
        assert_eq!(holds.holders(9_000_000), [holder(2, 2, 8), holder(1, 1, 4)]);
    }

    /// A random operation on a mailbox with 16 messages and 3 clients.
    #[derive(Clone, Debug)]
    enum Step {
        Take {
            client: u64,
            count: usize,
        },
        /// Any of the receipts that the client ever got.
        Release {
            client: u64,
            receipts: Vec<u64>,
        },
        Leave {
            client: u64,
        },
        Pass {
            ns: u64,
        },
    }

    fn any_step() -> impl Strategy<Value = Step> {
        let client = 0..3_u64;
        let receipts = prop::collection::vec(0..16_u64, 0..6);
        prop_oneof![
            (client.clone(), 1..6_usize).prop_map(|(client, count)| Step::Take { client, count }),
            (client.clone(), receipts)
                .prop_map(|(client, receipts)| Step::Release { client, receipts }),
            client.prop_map(|client| Step::Leave { client }),
            (0..=HOLD_NS).prop_map(|ns| Step::Pass { ns }),
        ]
    }

    /// The reference model of the mailbox: each message with its holder and the time when it was
    /// taken.
    #[derive(Default)]
    struct Model {
        queue: BTreeSet<u64>,
        held: BTreeMap<u64, (u64, u64)>,
        released: BTreeSet<u64>,
    }

    impl Model {
        fn give_back(&mut self, receipts: Vec<u64>) {
            for receipt in receipts {
                assert!(self.held.remove(&receipt).is_some() && self.queue.insert(receipt));
            }
        }

        fn run(&mut self, holds: &mut Holds, step: Step, now_ns: u64) {
            match step {
                Step::Take { client, count } => {
                    let taken: Vec<u64> = self.queue.iter().copied().take(count).collect();
                    holds.hold(client, taken.iter().copied(), now_ns);
                    for receipt in taken {
                        self.queue.remove(&receipt);
                        self.held.insert(receipt, (client, now_ns));
                    }
                }
                Step::Release { client, receipts } => {
                    for receipt in holds.release(client, &receipts) {
                        let holder = self.held.remove(&receipt).map(|(client, _)| client);
                        assert_eq!(holder, Some(client), "released by a client that held it");
                        assert!(self.released.insert(receipt), "released once");
                    }
                    let left = |receipt| self.held.get(receipt).is_some_and(|it| it.0 == client);
                    assert!(!receipts.iter().any(left), "all that it holds are released");
                }
                Step::Leave { client } => self.give_back(holds.forget(client)),
                Step::Pass { .. } => {}
            }
        }
    }

    proptest! {
        #[test]
        fn every_message_is_queued_held_by_one_client_or_released_once(
            steps in prop::collection::vec(any_step(), 0..200),
        ) {
            let mut model = Model { queue: (0..16).collect(), ..Model::default() };
            let (mut holds, mut now_ns) = (holds(), 0);
            for step in steps {
                if let Step::Pass { ns } = step {
                    now_ns += ns;
                }
                model.run(&mut holds, step, now_ns);
                model.give_back(holds.expire(now_ns));
                prop_assert_eq!(model.queue.len() + model.held.len() + model.released.len(), 16);
                let first_ns = model.held.values().map(|(_, since_ns)| *since_ns).min();
                prop_assert!(first_ns.is_none_or(|first_ns| now_ns < first_ns + HOLD_NS));
                prop_assert_eq!(holds.next_deadline_ns(), first_ns.map(|ns| ns + HOLD_NS));
                let held: usize = holds.holders(now_ns).iter().map(|it| it.messages).sum();
                prop_assert_eq!(held, model.held.len());
            }
        }
    }
}
