//! What a machine of the DIR net wants done.

use super::{Beat, Explanation, Frame, Members, News, Seat, TaskAction, Term};
use crate::ids::{Incarnation, Rank};

/// One thing to do. In the order in which they are handed out; a [`Output::Keep`] is durable
/// before anything after it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Send `frame` over the lanes to this endpoint of each of `to`; the own node is possible.
    Send {
        /// To whom.
        to: Members,
        /// To which endpoint of each.
        seat: Seat,
        /// What.
        frame: Frame,
    },
    /// Overwrite the heartbeat cell there.
    Beat {
        /// In whose memory.
        to: Rank,
        /// With what.
        beat: Beat,
    },
    /// Remember that this term was known, beyond the end of this process and of this node's life:
    /// it is given to the next life's [`Component::new`](super::Component::new).
    Keep(Term),
    /// Shut the node's lives up to `boot` out, then say so with
    /// [`Component::handle_fenced`](super::Component::handle_fenced).
    Fence {
        /// Which node.
        node: Rank,
        /// Its last life that is shut out.
        boot: Incarnation,
    },
    /// Reset the node: every live member has fenced that life. Where nothing can reset a node,
    /// tell the operator (G-33).
    Reset {
        /// Which node.
        node: Rank,
        /// Which life of it.
        boot: Incarnation,
    },
    /// End what is left of the component and start the one of this generation; then say how that
    /// went with [`ImAliveTask::handle_spawned`](super::ImAliveTask::handle_spawned). The
    /// I'm-Alive Task alone asks for this.
    Spawn {
        /// The generation of the new component.
        generation: u32,
    },
    /// Do this with a task of the own node.
    Task {
        /// Which task.
        task: u8,
        /// What.
        action: TaskAction,
    },
    /// A verdict was reached; it is kept as well.
    Verdict(Explanation),
    /// For the operator.
    Tell(News),
}

/// Outputs of one input, at most.
pub(super) const OUTPUTS: usize = 40;

/// What is to be done, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outputs(heapless::Deque<Output, OUTPUTS>);

impl core::hash::Hash for Outputs {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        for output in &self.0 {
            output.hash(state);
        }
    }
}

impl Outputs {
    pub(super) fn push(&mut self, output: Output) {
        let accepted = self.0.push_back(output);
        debug_assert!(accepted.is_ok(), "more outputs than an input can have");
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        self.0.pop_front()
    }

    /// Whether one more deadline may be dealt with before the caller drains.
    pub(super) fn has_room(&self) -> bool {
        self.0.len() <= OUTPUTS / 2
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
