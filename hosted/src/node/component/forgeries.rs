//! Forged tickets in the chronicle: the first is noted at once, later ones together.

use crate::node::NodeEndpoint;
use crate::node::chronicle::{Entry, What};
use crate::node::link::FromComponent;

/// The shortest time between two notes: a faulty member must not fill the chronicle.
const EVERY_NS: u64 = 10_000_000_000;

/// How many forged tickets were noted.
#[derive(Debug, Default)]
pub(super) struct Forgeries {
    noted: u64,
    next_at_ns: u64,
}

impl Forgeries {
    /// The message for the chronicle, if tickets were forged since the last note.
    #[inline]
    pub(super) fn look(&mut self, endpoint: &NodeEndpoint, now_ns: u64) -> Option<FromComponent> {
        let counters = endpoint.mailbox_counters();
        if counters.forged_tickets == self.noted || now_ns < self.next_at_ns {
            return None;
        }
        let tickets = counters.forged_tickets - self.noted;
        self.noted = counters.forged_tickets;
        self.next_at_ns = now_ns + EVERY_NS;
        let evidence = counters.forgery?.to_string();
        let me = endpoint.me().0;
        let what = What::Forged { tickets, evidence };
        Some(FromComponent::Note(Entry { at_ns: now_ns, observer: me, node: me, what }))
    }
}
