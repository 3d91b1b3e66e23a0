//! One run of one case: names every work and holds every completion against F-2.
//!
//! A work's name carries who posted it, to whom, with which flags and as the how-manieth, so a
//! completion that comes twice, under a wrong name, at the wrong endpoint or for a quiet success
//! is found in whichever case it happens.
//!
//! ```text
//!   63     56 55    48 47   40 39   32 31          0
//!   | SALT   | flags  | from  | to    | serial     |
//! ```

mod lives;

use core::fmt::Debug;

use crate::fabric::{
    Completion, CompletionFlags, Fabric, Failure, Op, PostError, Posted, Work, WorkId,
};
use crate::ids::{Incarnation, Peer};

use super::regions::{EVERYONE, layout};
use super::{BATCH, Harness, PEERS, POLLS_MAX, POSTS_MAX};

/// How many polls without a completion count as silence.
const SILENCE: u32 = 64;
/// The works of one case.
const WORKS_MAX: usize = POSTS_MAX as usize + 4096;
const SALT: u64 = 0xC5;

pub(super) type Outcome = Result<u64, Failure>;

/// A completion that passed all checks.
#[derive(Clone, Copy)]
pub(super) struct Done {
    pub(super) serial: u32,
    pub(super) outcome: Outcome,
}

pub(super) struct Trial<'h, H: Harness> {
    harness: &'h mut H,
    rule: &'static str,
    lives: [Incarnation; PEERS],
    alive: [bool; PEERS],
    /// Which peers were lost or fenced: a fence may end a process, which others notice.
    may_end: [bool; PEERS],
    /// Of which peers each endpoint was notified that they are gone.
    notified: [[bool; PEERS]; PEERS],
    /// The first work that could be posted by the present incarnation.
    since: [u32; PEERS],
    posted: u32,
    /// Signalled works that have not completed.
    open: [u32; PEERS],
    finished: [u64; WORKS_MAX.div_ceil(64)],
}

fn name(serial: u32, from: Peer, to: Peer, flags: CompletionFlags) -> WorkId {
    let parties = u64::from(from.0) << 8 | u64::from(to.0);
    WorkId(SALT << 56 | u64::from(flags.bits()) << 48 | parties << 32 | u64::from(serial))
}

impl<'h, H: Harness> Trial<'h, H> {
    #[track_caller]
    pub(super) fn new(harness: &'h mut H, rule: &'static str) -> Self {
        let mut trial = Self {
            harness,
            rule,
            lives: [Incarnation(1); PEERS],
            alive: [true; PEERS],
            may_end: [false; PEERS],
            notified: [[false; PEERS]; PEERS],
            since: [0; PEERS],
            posted: 0,
            open: [0; PEERS],
            finished: [0; WORKS_MAX.div_ceil(64)],
        };
        for peer in EVERYONE {
            let fabric = trial.at(peer);
            let (me, same_layout) = (fabric.me(), *fabric.layout() == layout());
            trial.same("the endpoint's own name", me, peer);
            trial.same("an endpoint over the layout of the suite", same_layout, true);
        }
        trial
    }

    pub(super) fn harness(&mut self) -> &mut H {
        self.harness
    }

    pub(super) fn at(&mut self, peer: Peer) -> &mut H::Fabric {
        self.harness.at(peer)
    }

    #[track_caller]
    pub(super) fn fail(&self, what: &str) -> ! {
        panic!("{}: {what}", self.rule)
    }

    /// F-2 is broken, whatever the case is about.
    #[track_caller]
    fn fail_completion(&self, what: &str) -> ! {
        panic!("F-2, in a case of {}: {what}", self.rule)
    }

    #[track_caller]
    pub(super) fn same<T: Copy + Debug + PartialEq>(&self, what: &str, got: T, want: T) {
        assert!(got == want, "{}: {what}: got {got:?}, want {want:?}", self.rule);
    }

    /// Posts once.
    #[track_caller]
    pub(super) fn try_post(
        &mut self,
        from: Peer,
        to: Peer,
        op: Op<'_>,
        flags: CompletionFlags,
    ) -> Result<u32, PostError> {
        let serial = self.next_serial();
        let id = name(serial, from, to, flags);
        self.at(from).post(to, Work { id, op, flags })?;
        self.posted += 1;
        if !flags.contains(CompletionFlags::QUIET) {
            self.open[from.index()] += 1;
        }
        Ok(serial)
    }

    #[track_caller]
    fn next_serial(&self) -> u32 {
        if self.posted as usize == WORKS_MAX {
            self.fail("the case posts more than it may");
        }
        self.posted
    }

    /// Posts a signalled work, which must be accepted.
    #[track_caller]
    pub(super) fn post(&mut self, from: Peer, to: Peer, op: Op<'_>) -> u32 {
        self.post_with(from, to, op, CompletionFlags::empty())
    }

    /// Posts a work, which must be accepted.
    #[track_caller]
    pub(super) fn post_with(
        &mut self,
        from: Peer,
        to: Peer,
        op: Op<'_>,
        flags: CompletionFlags,
    ) -> u32 {
        match self.try_post(from, to, op, flags) {
            Ok(serial) => serial,
            Err(error) => panic!("{}: {op:?} was not accepted: {error}", self.rule),
        }
    }

    /// Polls `who` once, for at most `count` completions, and hands them on.
    #[track_caller]
    pub(super) fn poll(&mut self, who: Peer, count: usize, mut each: impl FnMut(Done)) -> usize {
        let mut done = [Completion::NONE; BATCH];
        let now = self.harness.now();
        let found = self.at(who).poll(now, &mut done[..count]);
        if found > count {
            self.fail("poll returned more than fits");
        }
        let mut works = 0;
        for completion in &done[..found] {
            if completion.id == WorkId::GONE {
                self.check_gone(who, completion);
            } else {
                each(self.check(who, completion));
                works += 1;
            }
        }
        works
    }

    /// Whether a peer has ended that is reported to `who`, and was not before (F-6).
    #[track_caller]
    fn check_gone(&mut self, who: Peer, completion: &Completion) {
        let &Completion { peer, outcome, .. } = completion;
        let notified = &mut self.notified[who.index()][peer.index()];
        let was_notified = core::mem::replace(notified, true);
        let is_gone = self.may_end[peer.index()] && outcome == Err(Failure::Gone);
        if was_notified || !is_gone {
            self.fail_completion("a peer that runs is reported as gone, or one is twice");
        }
    }

    /// Whether it is the first completion of a work that this incarnation of `who` posted.
    #[track_caller]
    fn check(&mut self, who: Peer, completion: &Completion) -> Done {
        let &Completion { id, peer, outcome } = completion;
        let serial = (id.0 & u64::from(u32::MAX)) as u32;
        let flags = CompletionFlags::from_bits_truncate((id.0 >> 48) as u8);
        let loud = !flags.contains(CompletionFlags::QUIET);
        if id != name(serial, who, peer, flags) {
            self.fail_completion("a completion whose name or peer was never posted");
        }
        if serial >= self.posted || serial < self.since[who.index()] {
            self.fail_completion("a completion of no work of this incarnation of the poster");
        }
        if self.finish(serial) {
            self.fail_completion("a work completed twice");
        }
        if loud {
            self.open[who.index()] -= 1;
        } else if outcome.is_ok() {
            self.fail_completion("a quiet success was reported");
        }
        Done { serial, outcome }
    }

    /// The work `serial` has ended; whether it had before.
    fn finish(&mut self, serial: u32) -> bool {
        let (place, bit) = (serial as usize / 64, 1 << (serial % 64));
        let had_ended = self.finished[place] & bit != 0;
        self.finished[place] |= bit;
        had_ended
    }

    /// Polls `who` until `each` is content.
    #[track_caller]
    pub(super) fn wait(&mut self, who: Peer, what: &str, mut each: impl FnMut(Done) -> bool) {
        let mut content = false;
        for _ in 0..POLLS_MAX {
            self.poll(who, BATCH, |done| content |= each(done));
            if content {
                return;
            }
        }
        self.fail(what);
    }

    /// Polls `who` until all its signalled works have completed.
    #[track_caller]
    pub(super) fn settle(&mut self, who: Peer, mut each: impl FnMut(Done)) {
        for _ in 0..POLLS_MAX {
            if self.open[who.index()] == 0 {
                return;
            }
            self.poll(who, BATCH, &mut each);
        }
        self.fail_completion("a work did not complete");
    }

    /// Settles `who` and returns how `works` ended.
    #[track_caller]
    pub(super) fn outcomes<const N: usize>(
        &mut self,
        who: Peer,
        works: [u32; N],
    ) -> [Option<Outcome>; N] {
        let mut outcomes = [None; N];
        self.settle(who, |done| {
            if let Some(place) = works.iter().position(|&serial| serial == done.serial) {
                outcomes[place] = Some(done.outcome);
            }
        });
        outcomes
    }

    /// Posts a signalled work and waits for its end.
    #[track_caller]
    pub(super) fn run(&mut self, from: Peer, to: Peer, op: Op<'_>) -> Outcome {
        let serial = self.post(from, to, op);
        let [outcome] = self.outcomes(from, [serial]);
        outcome.unwrap_or_else(|| self.fail_completion("the work completed before it was posted"))
    }

    /// As [`Self::run`], where the fabric may answer the post at once.
    #[track_caller]
    pub(super) fn run_now(&mut self, from: Peer, to: Peer, op: Op<'_>) -> Outcome {
        let (serial, flags) = (self.next_serial(), CompletionFlags::empty());
        let id = name(serial, from, to, flags);
        let posted = match self.at(from).post_now(to, Work { id, op, flags }) {
            Ok(posted) => posted,
            Err(error) => panic!("{}: {op:?} was not accepted: {error}", self.rule),
        };
        self.posted += 1;
        match posted {
            Posted::Ended(outcome) => {
                self.finish(serial);
                outcome
            }
            Posted::Pending => {
                self.open[from.index()] += 1;
                let [outcome] = self.outcomes(from, [serial]);
                outcome.unwrap_or_else(|| self.fail_completion("a pending work has ended before"))
            }
        }
    }

    /// Nothing is open at `who`, and nothing more comes.
    #[track_caller]
    pub(super) fn is_silent(&mut self, who: Peer) {
        for _ in 0..SILENCE {
            let found = self.poll(who, BATCH, |_| ());
            self.same("completions of an endpoint with no work", found, 0);
        }
    }

    /// Every case ends here: all its works have completed, and nothing more comes.
    #[track_caller]
    pub(super) fn end(mut self) {
        for peer in EVERYONE {
            if self.is_alive(peer) {
                self.settle(peer, |_| ());
                self.is_silent(peer);
            }
        }
    }
}
