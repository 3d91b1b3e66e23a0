//! One step of a program that is longer than the alarm (M-8).
//!
//! ```text
//!   program ──── working(limit, step) ──── step ─────────────────▶ polls again
//!   thread        └── pass, pass, pass … until the step or its limit ends ──┘
//! ```
//!
//! While the step runs, a thread of the member passes instead of the program: heartbeats, messages
//! and decisions go on, and no peer, task or supervisor needs to know of the limit. After the limit
//! it passes no more, and the member is hung by the rules that hold for all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, Thread};
use std::time::Duration;

use super::{Member, WorkingError};
use crate::clock::Deadline;
use crate::node::{Component, Flow, NodeError};

/// The longest pause between two passes.
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// Ends the thread with the step, also if that panics.
struct Ending<'a> {
    has_ended: &'a AtomicBool,
    thread: Thread,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

impl Member {
    /// Does `step`, which polls nothing, while a thread moves everything on in place of the
    /// program: up to `limit` it does not count as hung, after that it does. What arrives and
    /// happens meanwhile waits to be taken and drained. An order to end waits, too, for 5 s.
    ///
    /// # Errors
    /// [`WorkingError`]; the step was not begun.
    pub fn working<T>(
        &mut self,
        limit: Duration,
        step: impl FnOnce() -> T,
    ) -> Result<T, WorkingError> {
        let program = self.component.cluster().component.as_ref();
        let bound = Duration::from_secs(program.map_or(0, |program| program.working_s));
        // Its node must be able to tell a long step from a hang.
        if limit > bound {
            return Err(WorkingError::TooLong { bound });
        }
        let (deadline, has_ended) = (Deadline::after(limit), AtomicBool::new(false));
        let component = &mut *self.component;
        let (done, passed) = thread::scope(|scope| {
            let passing = Builder::new()
                .name("weft-working".to_owned())
                .spawn_scoped(scope, || pass(component, &has_ended, deadline))
                .map_err(WorkingError::Thread)?;
            let ending = Ending { has_ended: &has_ended, thread: passing.thread().clone() };
            let done = step();
            drop(ending);
            Ok((done, passing.join()))
        })?;
        match passed {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.component.fail(error),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(done)
    }
}

/// Passes until the step has ended, or `deadline`.
fn pass(
    component: &mut Component,
    has_ended: &AtomicBool,
    deadline: Deadline,
) -> Result<(), NodeError> {
    while !has_ended.load(Ordering::Relaxed) && !deadline.has_passed() {
        match component.pass()? {
            // The next poll reports it.
            Flow::End => return Ok(()),
            Flow::Progress => {}
            Flow::Idle => {
                let pause = component.timeout().min(deadline.remaining()).min(PAUSE_MAX);
                thread::park_timeout(pause);
            }
        }
    }
    Ok(())
}
