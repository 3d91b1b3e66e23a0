//! What the promises of a rendezvous are about.

use std::collections::BTreeMap;

use weft_core::ids::{Incarnation, Peer};

use super::node::MeetingEvent;
use super::{MeetingName, Worth};
use crate::protocol::Violation;

/// A value that was sent, and the incarnations that it was delivered to.
#[derive(Clone, Debug, Hash)]
struct SentValue {
    worth: Worth,
    delivered: Vec<Incarnation>,
    consumed: bool,
}

/// What was sent so far, by name and source.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct MeetingLedger {
    sent: BTreeMap<(Vec<u8>, i64), Vec<SentValue>>,
    /// A peer has died: values may be lost with it.
    is_disturbed: bool,
}

fn broken(checker: &'static str, what: String) -> Result<(), Violation> {
    Err(Violation::new(checker, what))
}

impl MeetingLedger {
    pub(super) fn judge(
        &mut self,
        by: (Peer, Incarnation),
        event: &MeetingEvent,
    ) -> Result<(), Violation> {
        match event {
            MeetingEvent::Sent { name, worth } => {
                let sent =
                    SentValue { worth: worth.clone(), delivered: Vec::new(), consumed: false };
                self.of(name).push(sent);
                Ok(())
            }
            MeetingEvent::Delivered { name, worth } => self.deliver(by, name, worth),
            MeetingEvent::Consumed { name, worth } => {
                let mut alike = self.of(name).iter_mut().filter(|sent| sent.worth == *worth);
                let found = alike.find(|sent| !sent.consumed && !sent.delivered.is_empty());
                let Some(sent) = found else {
                    return broken("validity", format!("{by:?}: no one received {event:?}"));
                };
                sent.consumed = true;
                Ok(())
            }
            // A run of seeds may lose or delay any message for longer than a receive waits.
            MeetingEvent::TimedOut { .. } => Ok(()),
            MeetingEvent::Changed { .. } => broken("quiet", format!("{by:?}: {event:?}")),
            MeetingEvent::Odd { .. } => broken("once", format!("{by:?}: {event:?}")),
            MeetingEvent::Revived { .. } => broken("bound", format!("{by:?}: {event:?}")),
        }
    }

    pub(super) const fn note_death(&mut self) {
        self.is_disturbed = true;
    }

    /// A receive timed out when all work had ended: no value of its name was left to be received.
    pub(super) fn check_meeting(&mut self, name: &MeetingName) -> Result<(), Violation> {
        let is_left = |sent: &SentValue| sent.delivered.is_empty();
        if !self.is_disturbed && self.of(name).iter().any(is_left) {
            return broken("validity", format!("no receive of {name:?} met its value"));
        }
        Ok(())
    }

    fn of(&mut self, name: &MeetingName) -> &mut Vec<SentValue> {
        self.sent.entry((name.0.name().to_vec(), name.1)).or_default()
    }

    fn deliver(
        &mut self,
        by: (Peer, Incarnation),
        name: &MeetingName,
        worth: &Worth,
    ) -> Result<(), Violation> {
        let all = self.of(name);
        let Some(_) = all.iter().find(|sent| sent.worth.bytes == worth.bytes) else {
            return broken("match", format!("{by:?}: {worth:?} was not sent as {name:?}"));
        };
        let alike = all.iter_mut().filter(|sent| sent.worth == *worth);
        let mut alike: Vec<_> = alike.collect();
        if alike.is_empty() {
            return broken("typed", format!("{by:?}: {worth:?} was sent otherwise: {name:?}"));
        }
        match alike.iter_mut().find(|sent| !sent.consumed && !sent.delivered.contains(&by.1)) {
            Some(sent) => {
                sent.delivered.push(by.1);
                Ok(())
            }
            None => broken("once", format!("{by:?}: {worth:?} comes again as {name:?}")),
        }
    }
}
