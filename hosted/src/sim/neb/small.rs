//! The configurations of the broadcast that the explorer walks.
//!
//! ```text
//!   forms      unsigned, signed
//!   members    2, 3, 4
//!   origin 0   correct, one message or two;
//!              with two faces: one thing to some, another to others, then the other to the first
//!   last one   correct; or a replayer that shows another message, then the right one, then none
//!   crash      of anybody, at any operation: 2 members, and 3 with one message
//! ```
//!
//! Only one origin broadcasts: streams of different origins touch at nothing but the landings and
//! the progress, whose places they do not share. Rounds are not counted: what a configuration
//! says was walked was walked to its end.

use weft_core::fabric::At;
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::neb::{Membership, Retry, Sizes};
use weft_core::time::Duration;
use weft_core::wire::broadcast::Form;

use super::Broadcasts;
use super::node::payload;
use crate::sim::protocol::Small;

/// What a liar that runs does: a write to somebody, or into its own memory.
#[derive(Clone, Debug, Hash)]
pub(super) struct Lie {
    pub(super) by: Peer,
    pub(super) to: Peer,
    pub(super) at: At,
    pub(super) bytes: Vec<u8>,
}

/// Pauses in the signed form: as many as come before signatures are looked at.
const PAUSES: u32 = 3;

/// Who broadcasts.
const ORIGIN: Peer = Peer(0);

/// What the origin does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Correct,
    TwoFaced,
}

/// What the last member does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replayer {
    Correct,
    Lying,
}

/// One configuration, but for its name.
#[derive(Clone, Copy)]
struct Case {
    form: Form,
    members: u16,
    messages: u32,
    origin: Origin,
    replayer: Replayer,
    crashes: u32,
}

/// All of them.
pub(super) fn all() -> Vec<Small<Broadcasts>> {
    cases().into_iter().map(Case::small).collect()
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for form in [Form::Unsigned, Form::Signed] {
        for (members, messages, crashes) in [(2, 1, 1), (2, 2, 1), (3, 1, 1), (3, 2, 0), (4, 1, 0)]
        {
            for origin in [Origin::Correct, Origin::TwoFaced] {
                for replayer in [Replayer::Correct, Replayer::Lying] {
                    // Of two members nobody is left to be misled.
                    let lies = origin == Origin::TwoFaced || replayer == Replayer::Lying;
                    if members > 2 || !lies {
                        cases.push(Case { form, members, messages, origin, replayer, crashes });
                    }
                }
            }
        }
    }
    cases
}

impl Case {
    fn small(self) -> Small<Broadcasts> {
        let sizes = Sizes {
            peers: self.members,
            slots: 4,
            depth: 2,
            message_len: 16,
            form: self.form,
            membership: Membership::Fixed,
            retry: Retry { after: Duration(1), after_max: Duration(1) },
        };
        let last = Peer(self.members - 1);
        let mut liars = PeerSet::EMPTY;
        if self.origin == Origin::TwoFaced {
            liars.insert(ORIGIN);
        }
        if self.replayer == Replayer::Lying {
            liars.insert(last);
        }
        let mut protocol = Broadcasts::new(sizes, liars, PeerSet::EMPTY);
        if self.origin == Origin::TwoFaced {
            protocol.script.extend(self.faces(&protocol));
        }
        if self.replayer == Replayer::Lying {
            protocol.script.extend(self.shown(&protocol));
        }
        let mut orders: Vec<u32> = (0..self.members)
            .map(|peer| protocol.script.iter().filter(|lie| lie.by == Peer(peer)).count() as u32)
            .collect();
        if self.origin == Origin::Correct {
            orders[ORIGIN.index()] = self.messages;
        }
        let (crashes, waits) = (self.crashes, self.waits());
        Small { name: self.name(), protocol, orders, steps: None, crashes, waits }
    }

    /// Who says nothing, or nothing that counts, is asked again before signatures are looked at:
    /// after so many pauses they are. Elsewhere that happens once everything else has.
    fn waits(self) -> u32 {
        let lies = self.origin == Origin::TwoFaced || self.replayer == Replayer::Lying;
        let is_slow = lies && self.form == Form::Signed;
        if is_slow && self.members == 3 && self.messages == 1 { PAUSES } else { 0 }
    }

    /// One thing to every second member, another to the others; then the first is told that too.
    fn faces(self, run: &Broadcasts) -> Vec<Lie> {
        let tell = |to, seq, face| {
            let at = run.config.written_at(&run.regions, ORIGIN, seq);
            let bytes = run.sealed((ORIGIN, ORIGIN), seq, &[face]);
            Lie { by: ORIGIN, to, at, bytes }
        };
        let mut lies = Vec::new();
        for seq in 1..=u64::from(self.messages) {
            let face = |peer: u16| if peer % 2 == 1 { b'y' } else { b'n' };
            lies.extend((1..self.members).map(|peer| tell(Peer(peer), seq, face(peer))));
        }
        lies.push(tell(Peer(1), 1, b'n'));
        lies
    }

    /// Another message, under nobody's signature; then what the origin says, if that is known;
    /// then nothing.
    fn shown(self, run: &Broadcasts) -> Vec<Lie> {
        let last = Peer(self.members - 1);
        let at = run.config.exposed_at(&run.regions, ORIGIN, 1);
        let right = match self.origin {
            Origin::Correct => payload(ORIGIN, Incarnation(1), 0),
            Origin::TwoFaced => vec![b'n'],
        };
        let shown = [
            run.sealed((ORIGIN, last), 1, b"forged"),
            run.sealed((ORIGIN, ORIGIN), 1, &right),
            vec![0; 8],
        ];
        shown.into_iter().map(|bytes| Lie { by: last, to: last, at, bytes }).collect()
    }

    fn name(self) -> String {
        let form = match self.form {
            Form::Unsigned => "unsigned",
            Form::Signed => "signed",
        };
        let origin = match self.origin {
            Origin::Correct => "",
            Origin::TwoFaced => ", two-faced origin",
        };
        let replayer = match self.replayer {
            Replayer::Correct => "",
            Replayer::Lying => ", lying replayer",
        };
        let crashes = if self.crashes > 0 { ", a crash" } else { "" };
        let slots = if self.messages == 1 { "one slot" } else { "two slots" };
        format!("{form}, n = {}, {slots}{origin}{replayer}{crashes}", self.members)
    }
}
