//! The configurations of the broadcast that the explorer walks.
//!
//! ```text
//!   forms      unsigned, signed
//!   members    2, 3, 4
//!   origin 0   correct, one message or two;
//!              two-faced: a message to some, another to others, then the other to the first
//!   last one   correct; or a replayer that shows another message, then the right one, then none
//!   crash      of any member, at any operation
//! ```
//!
//! Three members with two slots and a crash, and four with two slots or a crash, are bounded: reads
//! are handled as they end, and the ring is so long that no member reads progress. [`left_out`],
//! and with it the report, names the configurations that are not walked because they have too many
//! states.
//!
//! A two-faced origin posts everything at once, since a later lie is one that arrives later.
//!
//! Only one origin broadcasts, but in one of the [special] ones: streams of different origins share
//! nothing but the regions of landings and progress, where their places differ, and the order of a
//! pair. Rounds are not limited: every configuration in the report was explored completely.

use weft_core::fabric::At;
use weft_core::ids::{Incarnation, Peer, PeerSet};
use weft_core::neb::{Membership, Retry, Sizes};
use weft_core::time::Duration;
use weft_core::wire::broadcast::Form;

use super::node::payload;
use super::{Broadcasts, special};
use crate::explore::Unexplored;
use crate::protocol::{Fencing, Pace, Small};

/// One step of a running liar: a write to a member, or into its own memory.
#[derive(Clone, Debug, Hash)]
pub(super) struct Lie {
    pub(super) by: Peer,
    pub(super) to: Peer,
    pub(super) at: At,
    pub(super) bytes: Vec<u8>,
}

/// Pauses in the signed form before signatures are verified.
pub(super) const PAUSES: u32 = 3;

/// The origin.
const ORIGIN: Peer = Peer(0);

/// The member that a two-faced origin sends a different message.
const MISLED: Peer = Peer(1);

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
#[derive(Clone, Copy, PartialEq, Eq)]
struct SmallCase {
    form: Form,
    members: u16,
    messages: u32,
    origin: Origin,
    replayer: Replayer,
    crashes: u32,
    pace: Pace,
}

/// All of them.
pub(super) fn all() -> Vec<Small<Broadcasts>> {
    let mut all = special::all();
    all.extend(cases().into_iter().map(SmallCase::small));
    all
}

/// Requested configurations that are not walked: for every number of members, messages and lies, a
/// crash of any member with reads handled at any time.
pub(super) fn left_out() -> Vec<Unexplored> {
    let walked = cases();
    let mut left_out = Vec::new();
    for case in every(&[(2, 1), (2, 2), (3, 1), (3, 2), (4, 1), (4, 2)], 1, Pace::AtWill) {
        if walked.contains(&case) {
            continue;
        }
        let alike =
            |other: &&SmallCase| SmallCase { crashes: 1, pace: Pace::AtWill, ..**other } == case;
        let instead: Vec<_> = walked.iter().filter(alike).map(|case| case.bounds()).collect();
        let name = format!("{}, {}", case.name(), case.bounds());
        let why = format!("too many states for every run; in its place: {}", instead.join("; "));
        left_out.push(Unexplored { name, why });
    }
    left_out
}

/// Members, messages, crashes, and when a read that has ended is handled.
const SIZES: [(u16, u32, u32, Pace); 8] = [
    (2, 1, 1, Pace::AtWill),
    (2, 2, 1, Pace::AtWill),
    (3, 1, 1, Pace::AtWill),
    (3, 2, 0, Pace::AtWill),
    (3, 2, 1, Pace::AtOnce),
    (4, 1, 0, Pace::AtWill),
    (4, 1, 1, Pace::AtOnce),
    (4, 2, 0, Pace::AtOnce),
];

/// Those that are walked.
fn cases() -> Vec<SmallCase> {
    let sizes = SIZES.iter();
    let all = sizes.flat_map(|(members, messages, crashes, pace)| {
        every(&[(*members, *messages)], *crashes, *pace)
    });
    all.collect()
}

/// Both forms and all lies.
fn every(sizes: &[(u16, u32)], crashes: u32, pace: Pace) -> Vec<SmallCase> {
    let mut cases = Vec::new();
    for form in [Form::Unsigned, Form::Signed] {
        for &(members, messages) in sizes {
            for origin in [Origin::Correct, Origin::TwoFaced] {
                for replayer in [Replayer::Correct, Replayer::Lying] {
                    // Of two members none is left to be misled.
                    let lies = origin == Origin::TwoFaced || replayer == Replayer::Lying;
                    if members > 2 || !lies {
                        let case =
                            SmallCase { form, members, messages, origin, replayer, crashes, pace };
                        cases.push(case);
                    }
                }
            }
        }
    }
    cases
}

impl SmallCase {
    fn small(self) -> Small<Broadcasts> {
        let sizes = Sizes {
            peers: self.members,
            slots: self.slots(),
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
        let mut orders: Vec<u32> =
            (0..self.members).map(|peer| rounds(&protocol.script, Peer(peer))).collect();
        if self.origin == Origin::Correct {
            orders[ORIGIN.index()] = self.messages;
        }
        let (crashes, waits) = (self.crashes, self.waits());
        let (alike, pace) = (self.alike(), self.pace);
        let (small, fencing) = (Small::of(self.name(), protocol, orders), Fencing::FencesOnly);
        Small { crashes, waits, alike, pace, fencing, ..small }
    }

    /// Its bounds.
    fn bounds(&self) -> String {
        let crash = if self.crashes == 0 { "no crash" } else { "a crash" };
        let pace = match self.pace {
            Pace::AtWill => "reads handled at any time",
            Pace::AtOnce => "reads handled at once",
        };
        format!("{crash}, {pace}")
    }

    /// W. Where reads are handled at once it is so large that no member reads progress, which has
    /// no effect before a slot is reused.
    const fn slots(self) -> u32 {
        match self.pace {
            Pace::AtWill => 4,
            Pace::AtOnce => 8,
        }
    }

    /// Correct members that receive the same message.
    fn alike(self) -> PeerSet {
        let first = if self.origin == Origin::Correct { MISLED } else { Peer(MISLED.0 + 1) };
        let end = if self.replayer == Replayer::Lying { self.members - 1 } else { self.members };
        let mut alike = PeerSet::EMPTY;
        (first.0..end).map(Peer).for_each(|peer| alike.insert(peer));
        alike
    }

    /// A replayer that shows nothing valid is read again this often before signatures are verified.
    /// In other configurations that happens after all other steps.
    fn waits(self) -> u32 {
        let lies = self.origin == Origin::TwoFaced || self.replayer == Replayer::Lying;
        let is_slow = lies && self.form == Form::Signed;
        if is_slow && self.members == 3 && self.messages == 1 { PAUSES } else { 0 }
    }

    /// One message to the first member, another to the others, then the other to the first too.
    fn faces(self, run: &Broadcasts) -> Vec<Lie> {
        let send = |to, seq, face| {
            let at = run.config.written_at(&run.regions, ORIGIN, seq);
            let bytes = run.sealed((ORIGIN, ORIGIN), seq, &[face]);
            Lie { by: ORIGIN, to, at, bytes }
        };
        let mut lies = Vec::new();
        for seq in 1..=u64::from(self.messages) {
            let face = |peer| if peer == MISLED { b'y' } else { b'n' };
            lies.extend((1..self.members).map(Peer).map(|peer| send(peer, seq, face(peer))));
        }
        lies.push(send(MISLED, 1, b'n'));
        lies
    }

    /// An unsigned other message; then the origin's, if that is known; then nothing.
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
        let slots = if self.messages == 1 { "one slot" } else { "two slots" };
        let pace = match self.pace {
            Pace::AtWill => "",
            Pace::AtOnce => ", reads handled at once",
        };
        let (n, w) = (self.members, self.slots());
        format!("n = {n}, W = {w}, {form}, {slots}{origin}{replayer}{pace}")
    }
}

/// The rounds of liar `by`: one to send its messages, one for each slot that it shows.
pub(super) fn rounds(script: &[Lie], by: Peer) -> u32 {
    let (shown, sent): (Vec<&Lie>, Vec<&Lie>) =
        script.iter().filter(|lie| lie.by == by).partition(|lie| lie.to == by);
    shown.len() as u32 + u32::from(!sent.is_empty())
}
