//! The messages between components and I'm-Alive Tasks.

use super::{ComponentIncarnation, Members, Term, Version};
use crate::ids::{Incarnation, OrderId, Rank};
use crate::vote::VoteMessage;

/// One of a node's two endpoints, as sender or receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Seat {
    /// The component.
    Component = 0,
    /// The I'm-Alive Task, which outlives it.
    ImAliveTask = 1,
}

/// Why an I'm-Alive Task raises its alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Alarm {
    /// The component made no progress for a whole period: its flag was not cleared.
    NoProgress = 0,
    /// The component's process ended.
    Ended = 1,
    /// No clone could be spawned, or none is left: only a reset helps (G-6).
    SpawnFailed = 2,
    /// The component's timers made no progress for a whole period, but it still receives messages.
    TimersStopped = 3,
    /// The node's supervisor hangs. Raised by the component about its own node.
    SupervisorHung = 4,
}

/// The state of an incarnation of a node. An incarnation only moves down this list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// A member.
    #[default]
    Up = 0,
    /// Removed; a later incarnation may join.
    Down = 1,
    /// Removed; no later incarnation may join before an operator releases the node.
    Isolated = 2,
    /// Isolated before; a later incarnation may join.
    Released = 3,
}

/// What a second observer found when it probed a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Its component answered.
    pub component: bool,
    /// Its I'm-Alive Task answered.
    pub task: bool,
}

/// The question whether others reach a suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// The suspect.
    pub node: Rank,
    /// The member that asks.
    pub asker: Rank,
    /// The round, counted by the asker.
    pub round: u32,
}

/// An action on a user's task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TaskAction {
    /// Restart it.
    Restart = 0,
    /// Stop it and do not restart it.
    Isolate = 1,
    /// Start it unless it runs.
    Start = 2,
    /// Stop it.
    Stop = 3,
    /// It is isolated no longer.
    Release = 4,
    /// Nothing: its errors are answered, and that is all.
    Answer = 5,
    /// Forget its restarts, its α-count and its errors.
    Clear = 6,
    /// Hand it an integer, which stands in place of the errors that were answered.
    Send = 7,
    /// Hand it a notice: an error, and the entity in place of the errors that it answers.
    Warn = 8,
}

/// What a recovery script's order says about itself, beside the term in which it was given: its
/// identity, and the errors that it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScriptOrder {
    /// The number of the evaluation in its term.
    pub evaluation: u32,
    /// Its index in the evaluation.
    pub index: u16,
    /// How many errors of the task were answered as far as the manager knew.
    pub seen: u32,
    /// How many are answered by it.
    pub mark: u32,
}

/// A recovery script that a manager has put in force, by its digest; grows with each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptVersion {
    /// The term in which it was decided.
    pub term: Term,
    /// Its number in the term, from 1; 0 for none.
    pub number: u16,
    /// Identifies the script.
    pub digest: u64,
}

/// One change of a node's own entry of the database (D-35), with absolute values (G-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// NEW_STATUS: the status of the node.
    Status(u8),
    /// NEW_ROLE: the present role of the node.
    Role(u8),
    /// INC_REBOOT: how often the node was started.
    Reboots(u32),
    /// NEW_TASK_STATUS.
    TaskStatus {
        /// The index of the task.
        task: u8,
        /// Its status.
        status: u8,
    },
    /// The task has reported its phase.
    TaskPhase {
        /// The index of the task.
        task: u8,
        /// The phase, defined by the application.
        phase: u8,
    },
    /// NEW_TASK_ERROR.
    TaskError {
        /// The index of the task.
        task: u8,
        /// The kind of error, defined by the application.
        kind: u16,
        /// When it occurred, in microseconds of the node's own clock.
        at_us: u64,
        /// The α-count after it, where a recovery script says how the task's errors count.
        alpha: Option<u16>,
    },
    /// An order of a recovery script about a task was judged, or its errors were answered without.
    TaskAnswered {
        /// The index of the task.
        task: u8,
        /// How many of its errors are answered.
        mark: u16,
        /// The last order about a task of the node that was judged.
        judged: OrderId,
        /// Whether its α-count begins again.
        is_cleared: bool,
    },
    /// The node has verified the recovery script with this digest.
    ScriptHeld(u64),
    /// The node uses the recovery script that a manager has put in force.
    ScriptUsed(ScriptVersion),
}

/// A part of the image of one entry of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImagePart {
    /// The node whose entry it is.
    pub node: Rank,
    /// The index of the part, from 0.
    pub index: u8,
    /// How many parts there are.
    pub count: u8,
    /// CRC-32C of the whole image: parts of different images are never combined.
    pub checksum: u32,
    /// The bytes of the part; the last part is padded with zeros.
    pub bytes: [u8; ImagePart::LEN],
}

impl ImagePart {
    /// Bytes of a part.
    pub const LEN: usize = 32;
}

/// A message. MIA and TAIA are not messages but [`Beat`](super::Beat)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// "This entity is faulty": sent by an I'm-Alive Task about its own component, or by a
    /// component about its own supervisor.
    Teif {
        /// The generation of the component.
        generation: u32,
        /// The reason.
        alarm: Alarm,
    },
    /// "Enable your I'm-Alive Task": sent to a component that was reported and is not suspected.
    Enia,
    /// Sent by a component to its own I'm-Alive Task: start to watch this component.
    Rouse,
    /// "Who is the manager?"
    Witm,
    /// The manager is the claimant of the frame's term.
    Nmi,
    /// "The node is alive": `incarnation` is a member from now on. Sent to the manager, it
    /// reports a node that the sender hears and the manager may not.
    Niua {
        /// The node.
        node: Rank,
        /// Its incarnation.
        incarnation: ComponentIncarnation,
    },
    /// "This node is down": the node's boots up to `incarnation.boot` are removed; fence them.
    Anid {
        /// The node.
        node: Rank,
        /// Its incarnation.
        incarnation: ComponentIncarnation,
        /// Down, isolated or released.
        level: Level,
    },
    /// "Spawn": asks the I'm-Alive Task of `node` for this component. A member that receives it
    /// from its manager passes it on to that task, which may be the one of a later boot by then.
    Span {
        /// The node.
        node: Rank,
        /// The component that must run.
        incarnation: ComponentIncarnation,
    },
    /// A change of the sender's own entry, which follows change `seq - 1`.
    Db {
        /// The number of the change in this incarnation.
        seq: u32,
        /// The change.
        change: Change,
    },
    /// "Send me the entry of `node` if yours is newer."
    RequestDb {
        /// The node whose entry is requested.
        node: Rank,
        /// The version that the sender has.
        have: Version,
    },
    /// A part of a requested entry.
    ReplyDb(ImagePart),
    /// The requested entry is not newer here.
    NothingNewer {
        /// The node whose entry was requested.
        node: Rank,
    },
    /// "The node's incarnations up to `boot` are fenced here." A member that receives it from
    /// another one passes it on to its manager, which that one may not reach.
    Fenced {
        /// The node.
        node: Rank,
        /// The last boot that is fenced.
        boot: Incarnation,
        /// Who has fenced it.
        by: Rank,
        /// The incarnation that has: a fence lasts no longer.
        incarnation: ComponentIncarnation,
    },
    /// Asks the receiver to probe a suspect itself.
    Witness {
        /// The question.
        question: Question,
        /// Members that may not hear the asker: the receiver passes the question on to them.
        unheard: Members,
    },
    /// The second observer's answer, sent to the asker by the way that the question took.
    Testimony {
        /// The question that it answers.
        question: Question,
        /// The second observer.
        witness: Rank,
        /// Which endpoints of the suspect answered.
        seen: Seen,
    },
    /// Sent by a second observer to both endpoints of a suspect, which must answer.
    Probe {
        /// The number of the probe.
        round: u32,
    },
    /// The answer to a probe.
    Alive {
        /// The number of the probe that it answers.
        round: u32,
    },
    /// An order of the manager about a task of the receiver's node.
    Guard {
        /// The index of the task.
        task: u8,
        /// What to do with the task.
        action: TaskAction,
        /// The recovery script's order, if it is one.
        order: Option<ScriptOrder>,
    },
    /// A message of an N-version vote, which the caller's machines answer.
    Vote(VoteMessage),
    /// Reports to the manager that a node which it may not hear knows a higher term.
    Outbid {
        /// The higher term.
        term: Term,
    },
    /// The manager hands over: the receiver claims the next term.
    HandOver {
        /// The receiver's incarnation.
        incarnation: ComponentIncarnation,
        /// The number of the receiver's last heartbeat that the manager has heard.
        echo: u32,
    },
}

impl Message {
    /// Whether a frame with this message has room for the tag of a view.
    pub(super) const fn has_room_for_view(&self) -> bool {
        !matches!(self, Self::RequestDb { .. } | Self::ReplyDb(_))
    }

    /// The message's name in logs (D-59).
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Teif { .. } => "TEIF",
            Self::Enia => "ENIA",
            Self::Rouse => "ROUSE",
            Self::Witm => "WITM",
            Self::Nmi => "NMI",
            Self::Niua { .. } => "NIUA",
            Self::Anid { .. } => "ANID",
            Self::Span { .. } => "SPAN",
            Self::Db { .. } => "DB",
            Self::RequestDb { .. } => "REQUEST_DB",
            Self::ReplyDb(_) => "REPLY_DB",
            Self::NothingNewer { .. } => "NOTHING_NEWER",
            Self::Fenced { .. } => "FENCED",
            Self::Witness { .. } => "WITNESS",
            Self::Testimony { .. } => "TESTIMONY",
            Self::Probe { .. } => "PROBE",
            Self::Alive { .. } => "ALIVE",
            Self::Guard { .. } => "GUARD",
            Self::Vote(VoteMessage::Vote(_)) => "VOTE",
            Self::Vote(VoteMessage::Outcome(_)) => "OUTCOME",
            Self::Vote(VoteMessage::Voted { .. }) => "VOTED",
            Self::Outbid { .. } => "OUTBID",
            Self::HandOver { .. } => "HANDOVER",
        }
    }
}
