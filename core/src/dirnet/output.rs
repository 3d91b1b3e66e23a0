//! The outputs of the DIR net's machines: what the caller has to do.

use super::{
    Beat, ComponentIncarnation, Explanation, Frame, Members, News, ScriptOrder, Seat, TaskAction,
    Term,
};
use crate::ids::{Incarnation, Rank};
use crate::vote::VoteMessage;

/// One thing to do. Outputs are carried out in the order in which they are handed out; a
/// [`Output::Keep`] must be durable before anything after it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Send `frame` over the lanes to this endpoint of each of `to`, which may include this node.
    Send {
        /// The receivers.
        to: Members,
        /// The endpoint of each receiver.
        seat: Seat,
        /// The frame.
        frame: Frame,
    },
    /// Overwrite this node's heartbeat cell in a peer's memory.
    Beat {
        /// The peer.
        to: Rank,
        /// The heartbeat.
        beat: Beat,
    },
    /// Save that this term was known, beyond the end of this process and of this node's boot: the
    /// next incarnation receives it in [`Component::new`](super::Component::new).
    Keep(Term),
    /// Fence the node's incarnations up to `boot`, then confirm with
    /// [`Component::handle_fenced`](super::Component::handle_fenced).
    Fence {
        /// The node to fence.
        node: Rank,
        /// The last boot that is fenced.
        boot: Incarnation,
    },
    /// Reset the node: every live member has fenced that boot. If there is no means to reset a
    /// node, notify the operator (G-33).
    Reset {
        /// The node to reset.
        node: Rank,
        /// The boot that the reset ends.
        boot: Incarnation,
    },
    /// End what is left of the component and start the one of this generation; then report the
    /// outcome to [`ImAliveTask::handle_spawned`](super::ImAliveTask::handle_spawned). Only the
    /// I'm-Alive Task requests this.
    Spawn {
        /// The generation of the new component.
        generation: u32,
    },
    /// Carry out an action on a task of this node.
    Task {
        /// The index of the task.
        task: u8,
        /// The action.
        action: TaskAction,
        /// The recovery script's order, if it is one, and the term in which it was given.
        order: Option<(Term, ScriptOrder)>,
    },
    /// A message of an N-version vote has come from the component of a member, in the present term.
    Vote {
        /// The member.
        from: Rank,
        /// Its component.
        incarnation: ComponentIncarnation,
        /// The message.
        message: VoteMessage,
    },
    /// A verdict was reached; the component keeps it as well.
    Verdict(Explanation),
    /// Report an event to the operator.
    Tell(News),
}

/// The maximum number of outputs of one input.
pub(super) const OUTPUTS: usize = 40;

/// The pending outputs, oldest first.
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

    /// Whether one more deadline may be handled before the caller drains.
    pub(super) fn has_room(&self) -> bool {
        self.0.len() <= OUTPUTS / 2
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
