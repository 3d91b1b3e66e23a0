//! A member that several threads share, and the thread that keeps its loop going.
//!
//! ```text
//!   call ── lock ── attempt ── pass ── attempt ─▶ returns        no thread in between
//!              └ spins, yields or sleeps as the cluster file says, until its deadline
//!   loop ── lock ── pass ─▶ wakes the calls that sleep, sets the descriptor
//!              └ rests while calls pass themselves, sleeps on the bell while none does
//! ```
//!
//! The queues are the member's own: mailbox, outboxes, window, events. A call that waits does what
//! the loop does, so that a message takes no way over another thread. The lock is held for one pass
//! at most. A loop that has ended answers every call.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use super::MemberEnded;
use crate::clock::Deadline;
use crate::node::{Component, Flow, NodeError};
use crate::packet::PacketError;
use crate::shm::{IdleStep, Pause, Wait, Waiter};

/// How long the loop rests while calls pass themselves.
const REST: Duration = Duration::from_micros(250);

/// What is behind the lock.
pub(super) struct LockedMember {
    pub(super) component: Box<Component>,
    ended: Option<MemberEnded>,
    /// How many calls sleep.
    sleepers: u32,
    /// Whether there was anything to drain after the last pass.
    was_due: bool,
    /// Whether the descriptor is readable.
    is_readable: bool,
}

/// The member, its loop and its calls.
pub(super) struct SharedMember {
    state: Mutex<LockedMember>,
    woken: Condvar,
    wait: Wait,
    /// How many calls pass, or wait by passing, at the moment.
    passing: AtomicU32,
    /// How many calls have passed.
    passes: AtomicU64,
    /// Readable while there is anything to drain, once it was asked for.
    pub(super) due: OwnedFd,
    is_watched: AtomicBool,
}

impl SharedMember {
    pub(super) fn new(component: Box<Component>) -> Result<Self, NodeError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let due = eventfd(0, flags);
        let due = due.map_err(|errno| PacketError::Os { call: "eventfd", errno })?;
        let wait = component.cluster().wait;
        let state = LockedMember {
            component,
            ended: None,
            sleepers: 0,
            was_due: false,
            is_readable: false,
        };
        Ok(Self {
            state: Mutex::new(state),
            woken: Condvar::new(),
            wait,
            passing: AtomicU32::new(0),
            passes: AtomicU64::new(0),
            due,
            is_watched: AtomicBool::new(false),
        })
    }

    pub(super) fn lock(&self) -> Result<MutexGuard<'_, LockedMember>, MemberEnded> {
        self.state.lock().map_err(|_| MemberEnded::Panicked)
    }

    /// From now on the descriptor follows what there is to drain.
    pub(super) fn watch(&self) {
        if !self.is_watched.swap(true, Ordering::Relaxed)
            && let Ok(mut state) = self.lock()
        {
            self.follow(&mut state);
        }
    }

    /// Makes the descriptor readable if there is anything to drain, and unreadable if not.
    fn follow(&self, state: &mut LockedMember) {
        state.was_due = state.component.is_due();
        let is_due = state.was_due || state.ended.is_some();
        if !self.is_watched.load(Ordering::Relaxed) || is_due == state.is_readable {
            return;
        }
        // Neither can fail: the counter is 0 or 1.
        let moved = if is_due {
            rustix::io::write(&self.due, &1_u64.to_ne_bytes()).is_ok()
        } else {
            rustix::io::read(&self.due, &mut [0; 8]).is_ok()
        };
        debug_assert!(moved, "the counter of the descriptor is 0 or 1");
        state.is_readable = is_due;
    }

    fn end(&self, state: &mut LockedMember, ended: MemberEnded) {
        state.ended.get_or_insert(ended);
        self.follow(state);
        self.woken.notify_all();
    }

    /// One pass of the loop; whether it made progress.
    fn pass(&self, state: &mut LockedMember) -> Result<bool, MemberEnded> {
        if let Some(ended) = &state.ended {
            return Err(ended.clone());
        }
        let ended = match state.component.pass() {
            Ok(Flow::End) => MemberEnded::NodeEnded,
            Ok(flow) => {
                let had = std::mem::replace(&mut state.was_due, state.component.is_due());
                let progress = flow == Flow::Progress || (state.was_due && !had);
                if progress && self.is_watched.load(Ordering::Relaxed) {
                    self.follow(state);
                }
                if state.sleepers > 0 && (progress || state.was_due) {
                    self.woken.notify_all();
                }
                return Ok(progress);
            }
            Err(error) => {
                state.component.report_failure(&error);
                MemberEnded::failed(&error)
            }
        };
        self.end(state, ended.clone());
        Err(ended)
    }

    /// Does `act` now, in the middle of no pass.
    pub(super) fn act<T>(&self, act: impl FnOnce(&mut Component) -> T) -> Result<T, MemberEnded> {
        let mut state = self.lock()?;
        let done = act(&mut state.component);
        if self.is_watched.load(Ordering::Relaxed) {
            self.follow(&mut state);
        }
        Ok(done)
    }

    /// Attempts until one succeeds or `timeout` has passed; none then. Passes after the one that
    /// succeeds, if `behind` says so: what it has staged is on its way.
    pub(super) fn call<T>(
        &self,
        timeout: Duration,
        behind: Behind,
        mut attempt: impl FnMut(&mut Component) -> Option<T>,
    ) -> Result<Option<T>, MemberEnded> {
        let _passing = Passing::begin(self);
        let (mut deadline, mut pause) = (None, Pause::new(self.wait));
        loop {
            let mut state = self.lock()?;
            // What arrived before the end can still be taken.
            if let Some(ended) = state.ended.clone().filter(|_| behind == Behind::Pass) {
                return Err(ended);
            }
            let mut done = attempt(&mut state.component);
            if done.is_none() || behind == Behind::Pass {
                let passed = self.pass(&mut state);
                done = done.or_else(|| attempt(&mut state.component));
                if done.is_none() {
                    passed?;
                }
            }
            if done.is_some() {
                if self.is_watched.load(Ordering::Relaxed) {
                    self.follow(&mut state);
                }
                return Ok(done);
            }
            // Excluded, or ordered to stop: nothing that the call waits for can come.
            if let Some(ended) = MemberEnded::of(&state.component) {
                return Err(ended);
            }
            let deadline = *deadline.get_or_insert_with(|| Deadline::after(timeout));
            if deadline.has_passed() {
                return Ok(None);
            }
            match pause.next() {
                IdleStep::Sleep => {
                    self.sleep(state, deadline)?;
                    pause = Pause::new(self.wait);
                }
                step @ (IdleStep::Spin | IdleStep::Yield) => {
                    // Other calls and the loop need the lock meanwhile.
                    drop(state);
                    step.take();
                }
            }
        }
    }

    /// Sleeps until the loop has news, or until `deadline`.
    fn sleep(
        &self,
        mut state: MutexGuard<'_, LockedMember>,
        deadline: Deadline,
    ) -> Result<(), MemberEnded> {
        state.sleepers += 1;
        self.passing.fetch_sub(1, Ordering::Relaxed);
        let woken = self.woken.wait_timeout(state, deadline.remaining());
        self.passing.fetch_add(1, Ordering::Relaxed);
        let (mut state, _) = woken.map_err(|_| MemberEnded::Panicked)?;
        state.sleepers -= 1;
        Ok(())
    }

    /// The loop, until the member has ended.
    pub(super) fn run(&self, mut waiter: Waiter) {
        let mut seen = 0;
        loop {
            let passes = self.passes.load(Ordering::Relaxed);
            let rests = passes != seen || self.passing.load(Ordering::Relaxed) > 0;
            seen = passes;
            let Ok((progress, timeout)) = self.turn() else { return };
            if progress {
                waiter.progress();
            } else if rests {
                // Calls pass; this is for the case that the system has stopped their threads.
                std::thread::park_timeout(REST.min(timeout));
            } else if let Err(error) = waiter.idle(|| self.is_wanted(), timeout) {
                if let Ok(mut state) = self.lock() {
                    let error = NodeError::from(error);
                    state.component.report_failure(&error);
                    self.end(&mut state, MemberEnded::failed(&error));
                }
                return;
            }
        }
    }

    fn turn(&self) -> Result<(bool, Duration), MemberEnded> {
        let mut state = self.lock()?;
        let progress = self.pass(&mut state)?;
        Ok((progress, state.component.timeout()))
    }

    /// The last look before a sleep: whether there is work, or the member has ended.
    fn is_wanted(&self) -> bool {
        !matches!(self.turn(), Ok((false, _)))
    }
}

/// What a call does once it has succeeded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Behind {
    Return,
    Pass,
}

/// A call that passes.
struct Passing<'a>(&'a SharedMember);

impl<'a> Passing<'a> {
    fn begin(shared: &'a SharedMember) -> Self {
        shared.passing.fetch_add(1, Ordering::Relaxed);
        shared.passes.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.0.passing.fetch_sub(1, Ordering::Relaxed);
    }
}
