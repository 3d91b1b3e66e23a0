//! Synchronisation of the replicated database: changes, gossip, REQUEST_DB (G-23 to G-26).
//!
//! A change is sent to all members as it happens. A gap in the numbers or a differing digest in the
//! manager's heartbeat shows what was lost. It is then requested entry by entry from one member
//! and, if that does not answer in time, from the next in the ring, until one answers or all were
//! asked. The next request continues in the ring where the last one ended: a manager that does not
//! hear this node admits it only when a member that both hear introduces it (NIUA), which may be
//! any member.

use super::{ASSEMBLIES, Component, News, Role, State};
use crate::dirnet::record::ChangeError;
use crate::dirnet::{
    Assembly, Change, Frame, ImagePart, Members, Message, Reject, Seat, TaskError, Version,
};
use crate::ids::Rank;
use crate::time::Instant;

/// A request for the database in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Request {
    source: Rank,
    /// The entry that is awaited.
    node: Rank,
    due: Instant,
    tried: Members,
}

/// Whether this node's own entry holds what its earlier incarnations recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Past {
    /// It does, or there was nothing to hold.
    #[default]
    Settled,
    /// Other members may know what this component does not.
    Missing,
}

/// Synchronisation in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sync {
    pub(super) past: Past,
    request: Option<Request>,
    /// The member asked last in place of a source that did not answer.
    stand_in: Option<Rank>,
    /// The nodes that still have to be sent this node's own entry, at the start.
    gossip: Members,
    /// Nodes that an earlier component knew to be isolated: fenced again, one after the other.
    pub(super) refences: Members,
    /// The manager's digest and this node's own, when they last differed.
    differed: Option<(u32, u32)>,
}

impl Sync {
    pub(super) fn due(&self) -> Option<Instant> {
        self.request.map(|request| request.due)
    }

    pub(super) fn due_mut(&mut self) -> Option<&mut Instant> {
        self.request.as_mut().map(|request| &mut request.due)
    }

    /// Whether a piece of work is waiting to be done as soon as possible.
    pub(super) const fn is_gossiping(&self) -> bool {
        !self.gossip.is_empty() || !self.refences.is_empty()
    }
}

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// Records a change on this node and sends it to all others. An error whose task, kind and time
    /// equal those of a recorded one is the same error, reported again: it changes nothing. So a
    /// reporter that does not know which of its reports an earlier component saved may repeat the
    /// latest ones, no more than are kept ([`ERRORS`](crate::dirnet::ERRORS)).
    ///
    /// # Errors
    /// [`Reject::NoSuchTask`]; nothing changed.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_change(&mut self, now: Instant, change: Change) -> Result<(), Reject> {
        self.begin(now);
        if self.is_kept(change) && !crate::dirnet::ERRORS_ARE_REPEATED.is_planted() {
            return Ok(());
        }
        let changed = self.change_own(change).then_some(()).ok_or(Reject::NoSuchTask);
        if let (Ok(()), Change::TaskError { task, at_us, .. }) = (changed, change) {
            self.recover_task(now, self.me(), task, at_us);
        }
        self.count(changed)
    }

    /// Whether it is an error that this node's own entry already holds.
    fn is_kept(&self, change: Change) -> bool {
        let Change::TaskError { task, kind, at_us, .. } = change else { return false };
        let own = self.db.record(self.me());
        own.is_some_and(|own| own.errors().any(|kept| kept == TaskError { task, kind, at_us }))
    }

    /// Changes this node's own entry and sends the change to the others; returns whether it was
    /// possible.
    pub(super) fn change_own(&mut self, change: Change) -> bool {
        let (me, incarnation) = (self.me(), self.incarnation);
        let seq = self.db.version(me).seq.wrapping_add(1);
        let is_changed = self.db.apply(me, incarnation, seq, change).is_ok();
        if is_changed {
            let members = self.members();
            self.send(members, Seat::Component, Message::Db { seq, change });
        }
        is_changed
    }

    pub(super) fn handle_db(
        &mut self,
        now: Instant,
        frame: &Frame,
        seq: u32,
        change: Change,
    ) -> Result<(), Reject> {
        let from = frame.sender;
        match self.db.apply(from, frame.incarnation, seq, change) {
            Ok(()) => {
                if let Change::TaskError { task, at_us, .. } = change {
                    self.recover_task(now, from, task, at_us);
                }
                Ok(())
            }
            Err(ChangeError::Repeated) => Err(Reject::Repeated),
            Err(ChangeError::NoSuchTask) => Err(Reject::NoSuchTask),
            Err(ChangeError::Gap) => {
                let have = self.db.version(from);
                let question = Message::RequestDb { node: from, have };
                self.send(Members::only(from), Seat::Component, question);
                Err(Reject::Gap)
            }
        }
    }

    /// Starts sending this node's own entry to all others in turn, the next in the ring first
    /// (G-24).
    pub(super) fn begin_gossip(&mut self) {
        self.sync.gossip = self.config.others();
    }

    pub(super) fn gossip(&mut self) {
        let me = self.me();
        let next = self.config.ring_after(me).find(|node| self.sync.gossip.contains(*node));
        if let Some(next) = next {
            self.sync.gossip.remove(next);
            self.send_entry(next, me);
        }
    }

    fn send_entry(&mut self, to: Rank, node: Rank) {
        let Some(image) = self.db.image(node) else { return };
        for part in image.parts(node) {
            self.send(Members::only(to), Seat::Component, Message::ReplyDb(part));
        }
    }

    /// Compares the digest in the manager's heartbeat; one that differs twice starts a request.
    pub(super) fn compare(&mut self, now: Instant, from: Rank, digest: u32) {
        if self.role() != Role::Backup || from != self.term.claimant {
            return;
        }
        let mine = self.digest();
        if digest == mine {
            self.sync.differed = None;
        } else if self.sync.differed.replace((digest, mine)) == Some((digest, mine))
            && self.sync.request.is_none()
        {
            self.ask_for_database(now, from);
        }
    }

    /// The digest in a heartbeat: of the database, and of the last view that is known.
    pub(super) fn digest(&self) -> u32 {
        self.db.digest() ^ self.view_tag().folded()
    }

    /// Requests every entry, first from `source`.
    pub(super) fn ask_for_database(&mut self, now: Instant, source: Rank) {
        self.sync.differed = None;
        if source != self.me() {
            self.request(now, source, Rank(0), Members::NONE);
        }
    }

    fn request(&mut self, now: Instant, source: Rank, node: Rank, tried: Members) {
        let due = now.after(self.timing().join);
        self.sync.request = Some(Request { source, node, due, tried });
        let have = match self.sync.past {
            // Any known incarnation of it is worth sending.
            Past::Missing
                if node == self.me() && !crate::dirnet::OWN_PAST_IS_NOT_ASKED_FOR.is_planted() =>
            {
                Version::default()
            }
            Past::Missing | Past::Settled => self.db.version(node),
        };
        let question = Message::RequestDb { node, have };
        self.send(Members::only(source), Seat::Component, question);
    }

    /// The source has not answered in time: asks the next one (G-23).
    pub(super) fn request_over(&mut self, now: Instant) {
        let Some(Request { source, node, mut tried, .. }) = self.sync.request.take() else {
            return;
        };
        if crate::dirnet::MISSING_DATABASE_IS_FINE.is_planted() {
            return;
        }
        tried.insert(source);
        // A node that was never heard from may not have heard from this one either.
        tried.insert(self.me());
        let last = self.sync.stand_in.filter(|_| !crate::dirnet::ONE_STANDS_IN.is_planted());
        let mut ring = self.config.ring_after(last.unwrap_or(self.me()));
        match ring.find(|other| !self.is_removed(*other) && !tried.contains(*other)) {
            Some(next) => {
                self.sync.stand_in = Some(next);
                self.request(now, next, node, tried);
            }
            None => self.tell(News::NoDatabase),
        }
    }

    pub(super) fn handle_request_db(
        &mut self,
        _now: Instant,
        from: Rank,
        node: Rank,
        have: Version,
    ) -> Result<(), Reject> {
        if node.0 >= self.config.nodes() {
            return Err(Reject::BadSubject);
        }
        let mine = self.db.version(node);
        if have.lacks(mine) {
            self.send_entry(from, node);
        } else {
            let nothing = Message::NothingNewer { node };
            self.send(Members::only(from), Seat::Component, nothing);
        }
        if mine.lacks(have) {
            let question = Message::RequestDb { node, have: mine };
            self.send(Members::only(from), Seat::Component, question);
        }
        Ok(())
    }

    pub(super) fn handle_nothing_newer(
        &mut self,
        now: Instant,
        from: Rank,
        node: Rank,
    ) -> Result<(), Reject> {
        if self.is_awaited(from, node) {
            if node == self.me() {
                self.sync.past = Past::Settled;
            }
            self.next_entry(now);
            Ok(())
        } else {
            Err(Reject::Late)
        }
    }

    pub(super) fn handle_reply_db(
        &mut self,
        now: Instant,
        from: Rank,
        part: &ImagePart,
    ) -> Result<(), Reject> {
        let node = part.node;
        if node.0 >= self.config.nodes() {
            return Err(Reject::BadSubject);
        }
        let continues = |assembly: &Assembly| assembly.continues(part);
        let index = self.assemblies.iter().position(continues);
        let index = index.unwrap_or(usize::from(node.0) % ASSEMBLIES);
        let assembled = self.assemblies[index].add(part).map_err(Reject::from)?;
        let Some((standing, record)) = assembled else { return Ok(()) };
        // No other node may write this node's own entry, unless this node has lost it and asks.
        if node != self.me() {
            self.db.merge(node, &record);
        } else if self.is_awaited(from, node) {
            self.learn_past(&record);
        }
        self.stand(now, node, standing);
        if !matches!(self.state, State::Excluded) && self.is_awaited(from, node) {
            self.next_entry(now);
        }
        Ok(())
    }

    fn is_awaited(&self, from: Rank, node: Rank) -> bool {
        self.sync.request.is_some_and(|request| request.source == from && request.node == node)
    }

    fn next_entry(&mut self, now: Instant) {
        let Some(Request { source, node, tried, .. }) = self.sync.request.take() else { return };
        let next = Rank(node.0 + 1);
        if next.0 < self.config.nodes() {
            self.request(now, source, next, tried);
        }
    }
}
