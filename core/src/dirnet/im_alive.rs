//! The I'm-Alive Task: watches its component's progress and raises the alarm (D-54, D-55).
//!
//! ```text
//!            ROUSE                    no progress for A, or it ended
//!   Sleep ──────────▶ Watch ───────────────────────────────▶ Alarm  TEIF to all others,
//!     ▲                 ▲      ROUSE (after an ENIA)            │    repeated with back-off
//!     │                 └───────────────────────────────────────┤
//!     │  the clone sends ROUSE ◀── Recover ◀──── SPAN ──────────┘  or no answer for long
//!     └──────────────────────────────┘
//! ```
//!
//! It runs in the node's supervisor with an endpoint of its own, so it outlives the component and
//! dies with the node: its alarm distinguishes the two failures (D-50).
//!
//! Progress is a set of counters that the component increments and this task reads (G-31). Expiring
//! timers increment the first; messages increment the second, which is for display only. A
//! component that still answers while its timers are dead (D-56) is reported, and the alarm says
//! so: a third counter is incremented by whatever the component receives while its timers are late.
//!
//! A node whose alarms no node answers, because all others are down, spawns a clone itself: the old
//! component is ended first, and this task assigns the generation. It does so at once when its
//! supervisor knows that no node is left that could answer.

use super::output::Outputs;
use super::replay::BEFORE_FIRST;
use super::{
    Alarm, ComponentIncarnation, Frame, Members, Message, News, Output, Profile, Reject, Rejects,
    Seat, Term, ViewTag,
};
use crate::ids::{Incarnation, Rank};
use crate::time::{Duration, Instant};

/// Unanswered alarms before the task spawns a clone by itself.
const ALARMS_UNANSWERED: u32 = 6;
/// The longest wait between two alarms, in periods.
const BACK_OFF_MAX: u32 = 8;

/// What a component has done, in counters that it increments and that are never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The generation of the component.
    pub generation: u32,
    /// How often its timers expired.
    pub timers: u32,
    /// How many messages it has handled (D-4).
    pub messages: u32,
    /// How many messages and heartbeats it has received while its timers were late by more than δ.
    pub heard_late: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Sleep,
    Watch { seen: Progress, due: Instant },
    Alarm { alarm: Alarm, sent: u32, due: Instant },
    Recover { generation: u32 },
}

/// The static configuration of the I'm-Alive Task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Post {
    /// The rank of its node.
    pub me: Rank,
    /// The boot of its node.
    pub boot: Incarnation,
    /// All other nodes.
    pub others: Members,
    /// The timing.
    pub profile: Profile,
}

/// The I'm-Alive Task of one boot of a node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImAliveTask {
    post: Post,
    generation: u32,
    /// The highest term that it has heard of.
    term: Term,
    state: State,
    sequence: u32,
    outputs: Outputs,
    rejects: Rejects,
}

impl ImAliveTask {
    /// The task of a node that has just been started with the component of generation 0.
    #[must_use]
    pub fn new(post: Post) -> Self {
        Self {
            post,
            generation: 0,
            term: Term::default(),
            state: State::Sleep,
            sequence: BEFORE_FIRST,
            outputs: Outputs::default(),
            rejects: Rejects::default(),
        }
    }

    /// The generation of the component that it watches or spawns.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// How often a frame was refused, by reason.
    #[must_use]
    pub const fn rejects(&self) -> &Rejects {
        &self.rejects
    }

    /// Handles a frame from `from`, the sender's rank as the transport knows it; `progress` is the
    /// component's.
    ///
    /// # Errors
    /// [`Reject`]; nothing changed except its count.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_message(
        &mut self,
        now: Instant,
        from: Rank,
        frame: &Frame,
        progress: Progress,
    ) -> Result<(), Reject> {
        assert!(self.outputs.is_empty(), "drain poll_output before the next input");
        let handled = self.hear(now, from, frame, progress);
        if let Err(reason) = handled {
            self.rejects.note(reason);
        }
        handled
    }

    fn hear(
        &mut self,
        now: Instant,
        from: Rank,
        frame: &Frame,
        progress: Progress,
    ) -> Result<(), Reject> {
        let is_own = from == self.post.me && frame.seat == Seat::Component;
        if !is_own && !self.post.others.contains(from) {
            return Err(Reject::UnknownSender);
        }
        if frame.sender != from {
            return Err(Reject::Forged);
        }
        if super::ANYTHING_ROUSES.is_planted() && self.state == State::Sleep {
            self.watch(now, progress);
            return Ok(());
        }
        match frame.message {
            Message::Rouse if is_own => self.rouse(now, frame, progress),
            Message::Span { node, .. } if node != self.post.me => Err(Reject::BadSubject),
            // One that was passed on may come from the time of an earlier boot.
            Message::Span { incarnation, .. }
                if incarnation.boot != self.post.boot
                    && !super::SPANS_OF_ANY_BOOT_COUNT.is_planted() =>
            {
                Err(Reject::OldLife)
            }
            Message::Span { incarnation, .. } => self.spawn(frame.term, incarnation.generation),
            Message::Probe { round } => {
                self.term = self.term.max(frame.term);
                self.send(Members::only(from), Message::Alive { round });
                Ok(())
            }
            // Only these are for it (G-6). The list is exhaustive, so that a new message needs a
            // decision here.
            Message::Rouse => Err(Reject::UnknownSender),
            Message::Teif { .. }
            | Message::Enia
            | Message::Witm
            | Message::Nmi
            | Message::Niua { .. }
            | Message::Anid { .. }
            | Message::Db { .. }
            | Message::RequestDb { .. }
            | Message::ReplyDb(_)
            | Message::NothingNewer { .. }
            | Message::Outbid { .. }
            | Message::HandOver { .. }
            | Message::Fenced { .. }
            | Message::Witness { .. }
            | Message::Testimony { .. }
            | Message::Alive { .. }
            | Message::Guard { .. }
            | Message::Vote(_) => Err(Reject::WrongSeat),
        }
    }

    fn rouse(&mut self, now: Instant, frame: &Frame, progress: Progress) -> Result<(), Reject> {
        if frame.incarnation
            != (ComponentIncarnation { boot: self.post.boot, generation: self.generation })
        {
            return Err(Reject::OldLife);
        }
        self.term = self.term.max(frame.term);
        // An active task ignores it (D-27): its period continues.
        if !matches!(self.state, State::Watch { .. }) {
            self.watch(now, progress);
        }
        Ok(())
    }

    fn watch(&mut self, now: Instant, seen: Progress) {
        self.state = State::Watch { seen, due: now.after(self.period()) };
    }

    fn spawn(&mut self, term: Term, generation: u32) -> Result<(), Reject> {
        if term < self.term {
            return Err(Reject::OldTerm);
        }
        self.term = term;
        if generation > self.generation || super::SPAN_IS_REPEATED.is_planted() {
            self.recover(generation);
            return Ok(());
        }
        match self.state {
            // A manager that took over has not heard of the component that this alarm is about.
            State::Alarm {
                alarm: Alarm::NoProgress | Alarm::TimersStopped | Alarm::Ended, ..
            } => {
                self.recover(self.generation.saturating_add(1));
            }
            // Late or repeated: that component is alive or already being spawned (G-8).
            State::Sleep | State::Watch { .. } | State::Recover { .. } | State::Alarm { .. } => {
                return Err(Reject::OldLife);
            }
        }
        Ok(())
    }

    fn recover(&mut self, generation: u32) {
        self.generation = generation;
        self.state = State::Recover { generation };
        self.outputs.push(Output::Spawn { generation });
    }

    /// Handles the outcome of the last [`Output::Spawn`].
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_spawned(&mut self, now: Instant, spawned: Spawned) {
        assert!(self.outputs.is_empty(), "drain poll_output before the next input");
        if let State::Recover { .. } = self.state {
            match spawned {
                Spawned::Runs => self.state = State::Sleep,
                Spawned::Failed => self.alarm(now, Alarm::SpawnFailed),
            }
        }
    }

    /// The component's process ended: there is no need to wait for its flag.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_ended(&mut self, now: Instant) {
        assert!(self.outputs.is_empty(), "drain poll_output before the next input");
        match self.state {
            // The end of a component that hung is new evidence: there is no need to wait for the
            // next alarm.
            State::Sleep
            | State::Watch { .. }
            | State::Alarm { alarm: Alarm::NoProgress | Alarm::TimersStopped, .. } => {
                self.alarm(now, Alarm::Ended);
            }
            State::Alarm { .. } | State::Recover { .. } => {}
        }
    }

    /// The supervisor reports that no component of any other node is alive, so an alarm that this
    /// node's component has ended will not be answered. A mistake is harmless: a SPAN that comes
    /// after all names the component that is already being spawned. A component that may still be
    /// alive keeps its time.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_alone(&mut self) {
        assert!(self.outputs.is_empty(), "drain poll_output before the next input");
        match self.state {
            State::Alarm { alarm: Alarm::Ended, .. } => self.help_itself(News::Alone(self.post.me)),
            State::Alarm {
                alarm:
                    Alarm::NoProgress
                    | Alarm::TimersStopped
                    | Alarm::SpawnFailed
                    | Alarm::SupervisorHung,
                ..
            }
            | State::Sleep
            | State::Watch { .. }
            | State::Recover { .. } => {}
        }
    }

    fn help_itself(&mut self, why: News) {
        self.outputs.push(Output::Tell(why));
        self.recover(self.generation.saturating_add(1));
    }

    /// Handles expired deadlines; `progress` is the component's at this time.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_timeout(&mut self, now: Instant, progress: Progress) {
        assert!(self.outputs.is_empty(), "drain poll_output before the next input");
        match self.state {
            State::Watch { seen, due } if due <= now => self.tick(now, seen, due, progress),
            State::Alarm { alarm, sent, due } if due <= now => self.repeat(now, alarm, sent),
            State::Sleep | State::Watch { .. } | State::Alarm { .. } | State::Recover { .. } => {}
        }
    }

    fn tick(&mut self, now: Instant, seen: Progress, due: Instant, progress: Progress) {
        let hides = super::MESSAGES_ARE_PROGRESS.is_planted() && seen.messages != progress.messages;
        let is_moving =
            seen.generation != progress.generation || seen.timers != progress.timers || hides;
        // A task that was late itself has not given the component a full period (X-3).
        let was_late = now.since(due) > self.post.profile.timing().send;
        if is_moving || was_late {
            self.watch(now, progress);
        } else if seen.heard_late != progress.heard_late {
            self.alarm(now, Alarm::TimersStopped);
        } else {
            self.alarm(now, Alarm::NoProgress);
        }
    }

    fn alarm(&mut self, now: Instant, alarm: Alarm) {
        self.state = State::Alarm { alarm, sent: 0, due: now };
        self.repeat(now, alarm, 0);
    }

    fn repeat(&mut self, now: Instant, alarm: Alarm, sent: u32) {
        if sent >= ALARMS_UNANSWERED {
            return self.help_itself(News::Unanswered(self.post.me));
        }
        let periods = u64::from((1 << sent.min(3)).min(BACK_OFF_MAX));
        let wait = Duration(self.period().0.saturating_mul(periods));
        let due = if super::ALARM_ONCE.is_planted() { Instant(u64::MAX) } else { now.after(wait) };
        self.state = State::Alarm { alarm, sent: sent.saturating_add(1), due };
        self.send(self.post.others, Message::Teif { generation: self.generation, alarm });
    }

    /// Returns the next output, if any.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop()
    }

    /// When to call [`Self::handle_timeout`] if no other input comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Watch { due, .. } | State::Alarm { due, .. } => Some(due),
            State::Sleep | State::Recover { .. } => None,
        }
    }

    /// Shifts the task to an origin of time that lies `by` later. For model checkers, which treat
    /// two states as equal if they differ only in the time at which they were reached.
    pub fn rebase(&mut self, by: Duration) {
        if let State::Watch { due, .. } | State::Alarm { due, .. } = &mut self.state {
            *due = Instant(due.since(Instant(by.0)).0);
        }
    }

    fn period(&self) -> Duration {
        self.post.profile.timing().alarm
    }

    fn send(&mut self, to: Members, message: Message) {
        self.sequence = self.sequence.wrapping_add(1);
        let frame = Frame {
            sender: self.post.me,
            seat: Seat::ImAliveTask,
            term: self.term,
            incarnation: ComponentIncarnation { boot: self.post.boot, generation: self.generation },
            sequence: self.sequence,
            view: ViewTag::default(),
            message,
        };
        if !to.is_empty() {
            self.outputs.push(Output::Send { to, seat: Seat::Component, frame });
        }
    }
}

/// The outcome of a spawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spawned {
    /// The process was started.
    Runs,
    /// It could not be started, or must not be started again.
    Failed,
}

#[cfg(test)]
pub(super) mod tests;
