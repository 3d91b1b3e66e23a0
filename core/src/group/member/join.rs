//! Members that come back: whom others count, and from where on one that is fresh takes part
//! (GT-20).
//!
//! ```text
//!   fresh member J                               member A, which stayed
//!   AGREE{fresh, epoch} ────────────────────────▶ J's earlier epoch is closed, here and at all?
//!                                                A counts J: stable does not move before J has
//!                ◀── AGREE{live, epochs} ──────── released what is behind it
//!                ◀── WELCOME{stable, barrier} ──
//!   counts whom those that stayed count; all of
//!   them count just these? each stream begins
//!   behind its welcome
//!   AGREE, WELCOME{since} to all, NEED ────────▶ forwards to it, and takes from it
//! ```
//!
//! From the moment at which all count J, a round that closes a stream waits for its report. Where
//! none has stayed, those that are fresh begin together.

use super::super::closing::{Closing, Ending};
use super::super::mutants::{
    COUNTED_ALONE, JOINED_EARLY, PLEDGE_FORGOTTEN, STALE_WELCOME, STARTS_AT_END, UNSETTLED_COUNTED,
};
use super::super::note::{Position, State};
use super::super::outcome::Counters;
use super::super::seats::Grank;
use super::super::stream::Stream;
use super::{FIRST, Group, Said};
use crate::fabric::Fabric;
use crate::wire::group::{Agree, Head, Welcome};

impl<const PEERS: usize> Group<PEERS> {
    pub(super) fn handle_agree(
        &mut self,
        (from, head): (Grank, Head),
        agree: Agree,
        counters: &mut Counters,
    ) {
        let Agree { list, sizes, live, epochs, heard, fresh } = agree;
        if (list, sizes) != (self.list, self.config.digest()) || head.root != from.0 {
            counters.disagreements += 1;
            return;
        }
        let counted = self.streams[from.index()].note.counted;
        let is_counted = self.members.live & from.bit() != 0 && !self.is_fresh;
        if head.epoch <= self.streams[from.index()].out || is_counted && head.epoch != counted {
            // That epoch is over, or the one before is not known to be.
            counters.foreign_epochs += 1;
            return;
        }
        // Under other members there may be values of one that is removed since: it is said again.
        let said = self.said[from.index()];
        let welcome = said
            .welcome
            .filter(|_| (said.live, said.epochs) == (live, epochs) || STALE_WELCOME.is_planted());
        self.said[from.index()] = Said { epoch: head.epoch, fresh, live, epochs, welcome };
        if self.agreed & from.bit() == 0 {
            self.agreed |= from.bit();
            self.welcome_due |= from.bit();
            self.roots_mut().for_each(|stream| stream.handle_agreed(from));
            self.barrier.handle_agreed(from);
            self.note_open();
        }
        if !heard {
            self.agree_due |= from.bit();
        }
        if self.is_fresh {
            self.follow();
        }
    }

    /// What this member says to one that it counts.
    pub(super) fn welcome(&self, fabric: &impl Fabric) -> Welcome {
        // The others have these values of removed members as well, or will: the receiver, which
        // does not, has no part in their all-gathers.
        let streams = self.streams.iter().take(usize::from(self.members.count));
        let ended = streams.filter(|it| !it.is_led(&self.members) || !it.is_turned());
        let gathered = ended.filter_map(|it| it.last_value(fabric)).map(|(_, tag)| tag).max();
        let own = &self.streams[self.members.me.index()];
        let at = if STARTS_AT_END.is_planted() { own.reusable() } else { own.stable() };
        Welcome {
            entries: at.entries,
            blocks: at.blocks,
            released: self.barrier.released,
            gathers: self.note.calls.sent.max(gathered.unwrap_or(0)),
            since: self.note.since,
        }
    }

    /// The last all-gather that `grank` has no part in, if it has said so.
    pub(super) fn since(&self, grank: Grank) -> Option<u64> {
        if self.streams[grank.index()].note.counted == FIRST {
            return Some(0);
        }
        let said = self.said[grank.index()];
        said.welcome.filter(|_| !said.fresh).map(|welcome| welcome.since)
    }

    /// Counts members that have come back, once no live member needs anything of their earlier
    /// epochs any more, so that all count them within a moment.
    pub(super) fn count_returned(&mut self, fabric: &impl Fabric) {
        let members = self.members;
        let returned = self.agreed & !members.live;
        for grank in (0..members.count).map(Grank).filter(|it| returned & it.bit() != 0) {
            let said = self.said[grank.index()].epoch;
            let stream = &self.streams[grank.index()];
            let Some(closing) = stream.closing.filter(|it| it.is_closed && stream.is_turned())
            else {
                continue;
            };
            let is_settled = closing.is_settled || UNSETTLED_COUNTED.is_planted();
            // Where the others still close an epoch that this member has no part in, they count
            // the former members, and nothing is stable under these and those at a time.
            let are_past = stream.reports.are_past(said - 1, &self.members)
                || UNSETTLED_COUNTED.is_planted()
                || COUNTED_ALONE.is_planted();
            if !is_settled || !are_past {
                continue;
            }
            // First: what this member welcomes it with is what the next incarnation goes on from.
            let window = self.own().window;
            self.own().note.store(fabric, &window);
            let stream = &mut self.streams[grank.index()];
            stream.note.counted = said;
            stream.note.store(fabric, &stream.window);
            self.change(self.members.live | grank.bit());
        }
    }

    /// A fresh member counts whom those count that have stayed. If it hears of none, all that are
    /// not removed begin together.
    pub(super) fn follow(&mut self) {
        let me = self.members.me;
        let others = (0..self.members.count).map(Grank).filter(|grank| *grank != me);
        let mut live = me.bit();
        let (mut stayed, mut awaited) = (0, 0);
        for grank in others {
            let Said { fresh, live: theirs, .. } = self.said[grank.index()];
            if self.agreed & grank.bit() == 0 {
                let Stream { out, note, .. } = &self.streams[grank.index()];
                let is_out = *out > 0 && (*out >= note.pledged || PLEDGE_FORGOTTEN.is_planted());
                awaited |= if is_out { 0 } else { grank.bit() };
            } else if !fresh {
                stayed |= theirs | grank.bit();
            }
        }
        if stayed != 0 {
            live |= stayed;
        } else if awaited == 0 {
            live |= self.agreed;
        }
        let epochs = self.epochs_of(live);
        if (live, epochs) != (self.members.live, self.members.epochs) {
            (self.members.live, self.members.epochs) = (live, epochs);
            self.agree_due |= self.members.all() & !me.bit();
        }
    }

    /// Keeps whom this member is about to say that it counts: one that hears it may begin with it,
    /// so that no others begin without that one before it is removed.
    pub(super) fn pledge(&mut self, fabric: &impl Fabric) {
        let others = self.members.others();
        for grank in (0..self.members.count).map(Grank).filter(|it| others & it.bit() != 0) {
            let epoch = self.said[grank.index()].epoch;
            let stream = &mut self.streams[grank.index()];
            if stream.note.pledged != epoch {
                stream.note.pledged = epoch;
                stream.note.store(fabric, &stream.window);
            }
        }
    }

    /// A fresh member takes part once all that it counts count just these, too.
    pub(super) fn join(&mut self, fabric: &impl Fabric) {
        let (members, me) = (self.members, self.members.me);
        let is_ready = |grank: Grank| {
            let Said { fresh, live, epochs, welcome, .. } = self.said[grank.index()];
            let is_same = (live, epochs) == (members.live, members.epochs);
            (is_same || JOINED_EARLY.is_planted())
                && self.agreed & grank.bit() != 0
                && (fresh || welcome.is_some())
        };
        let mut others =
            (0..members.count).map(Grank).filter(|it| members.others() & it.bit() != 0);
        if members.others() == 0 || !others.all(is_ready) {
            return;
        }
        let (mut released, mut gathers) = (self.barrier.released, 0);
        for grank in (0..members.count).map(Grank).filter(|grank| *grank != me) {
            let Said { fresh, epoch, welcome, .. } = self.said[grank.index()];
            let stream = &mut self.streams[grank.index()];
            if members.live & grank.bit() == 0 {
                // It takes nothing of one that is out by then.
                stream.exclude(fabric);
                continue;
            }
            let welcome = welcome.filter(|_| !fresh).unwrap_or_default();
            let Welcome { entries, blocks, .. } = welcome;
            stream.begin(fabric, epoch, Position { entries, blocks });
            released = released.max(welcome.released);
            gathers = gathers.max(welcome.gathers);
        }
        self.barrier.released = released;
        self.note.begin(fabric, released, gathers);
        self.note_taken();
        // Last: one that ends before that begins again as a fresh one.
        let own = self.own();
        own.note.fresh = false;
        own.note.store(fabric, &own.window);
        self.is_fresh = false;
        self.is_open = true;
        self.change(members.live);
        self.roots_mut().for_each(|stream| stream.need_due = stream.predecessor.is_some());
    }
}

impl<const PEERS: usize> Stream<PEERS> {
    /// Nothing is taken of any epoch of the root that is over.
    fn exclude(&mut self, fabric: &impl Fabric) {
        self.begin(fabric, 0, Position::default());
        self.note.state = State::Closed;
        self.note.store(fabric, &self.window);
        let closing = Closing::closed(Position::default(), Ending::End);
        self.closing = Some(Closing { is_settled: true, ..closing });
    }
}
