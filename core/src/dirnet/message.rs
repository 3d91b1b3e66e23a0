//! What components and I'm-Alive Tasks say to each other.

use super::{Life, Term, Version};
use crate::ids::{Incarnation, Rank};

/// Which of a node's two endpoints speaks or is spoken to.
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
    /// The component made no progress for a whole period: its flag stands still.
    NoProgress = 0,
    /// The component's process ended.
    Ended = 1,
    /// No clone could be spawned, or none is left: only a reset helps (G-6).
    SpawnFailed = 2,
    /// The component's timers made no progress for a whole period, and it still hears others.
    TimersStopped = 3,
    /// The node's supervisor stands still. Raised by the component about its own node.
    SupervisorHung = 4,
}

/// How far a life of a node has come. A life only moves down this list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// A member.
    #[default]
    Up = 0,
    /// Removed; a later life may join.
    Down = 1,
    /// Removed; no later life may join before an operator says so.
    Isolated = 2,
    /// Isolated before; a later life may join.
    Released = 3,
}

/// What a second observer met when it looked for a suspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Its component answered.
    pub component: bool,
    /// Its I'm-Alive Task answered.
    pub task: bool,
}

/// What to do with a task of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum TaskAction {
    /// Start it again.
    Restart = 0,
    /// Stop it and do not start it again.
    Isolate = 1,
}

/// One change of a node's own entry of the database (D-35), with absolute values (G-25).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// NEW_STATUS: of the node.
    Status(u8),
    /// NEW_ROLE: the part it plays now.
    Role(u8),
    /// INC_REBOOT: how often it was started.
    Reboots(u32),
    /// NEW_TASK_STATUS.
    TaskStatus {
        /// Which task.
        task: u8,
        /// Its status.
        status: u8,
    },
    /// NEW_TASK_ERROR.
    TaskError {
        /// Which task.
        task: u8,
        /// What went wrong; the application's.
        kind: u16,
        /// When, by the clock of the node.
        at_us: u64,
    },
}

/// A part of the image of one entry of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImagePart {
    /// Whose entry.
    pub node: Rank,
    /// Which part, from 0.
    pub index: u8,
    /// How many parts there are.
    pub count: u8,
    /// CRC-32C of the whole image: parts of different images never join.
    pub checksum: u32,
    /// Its bytes; the last part's tail is zero.
    pub bytes: [u8; ImagePart::LEN],
}

impl ImagePart {
    /// Bytes of a part.
    pub const LEN: usize = 32;
}

/// A message. MIA and TAIA are no messages but [`Beat`](super::Beat)s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// "This entity is faulty": an I'm-Alive Task about its own component, or a component about
    /// its own supervisor.
    Teif {
        /// Which component of the node's life.
        generation: u32,
        /// Why.
        alarm: Alarm,
    },
    /// "Enable your I'm-Alive Task": to a component that was reported and is not suspected.
    Enia,
    /// A component to its own I'm-Alive Task: watch me.
    Rouse,
    /// "Who is the manager?"
    Witm,
    /// "The manager is" the claimant of the frame's term.
    Nmi,
    /// "The node is alive": `life` is a member from now on. To the manager: it was met, and may
    /// not be heard there.
    Niua {
        /// Which node.
        node: Rank,
        /// Which life of it.
        life: Life,
    },
    /// "This node is down": the node's lives up to `life.boot` are removed; fence them.
    Anid {
        /// Which node.
        node: Rank,
        /// Which life of it.
        life: Life,
        /// Down, isolated or released.
        level: Level,
    },
    /// "Spawn": to an I'm-Alive Task, the next component is to be this one.
    Span {
        /// The generation that is to be alive.
        generation: u32,
    },
    /// A change of the sender's own entry, the one after `seq - 1`.
    Db {
        /// Its number in this life.
        seq: u32,
        /// What changed.
        change: Change,
    },
    /// "Send me the entry of `node` if yours is newer."
    RequestDb {
        /// Whose entry.
        node: Rank,
        /// What the sender has.
        have: Version,
    },
    /// A part of an entry that was asked for.
    ReplyDb(ImagePart),
    /// The entry that was asked for is no newer here.
    NothingNewer {
        /// Whose entry.
        node: Rank,
    },
    /// "I have fenced the node's lives up to `boot`."
    Fenced {
        /// Which node.
        node: Rank,
        /// Which life of it.
        boot: Incarnation,
    },
    /// "Look for this suspect yourself".
    Witness {
        /// Which node.
        node: Rank,
        /// Names the question.
        round: u32,
    },
    /// What the second observer met.
    Testimony {
        /// Which node.
        node: Rank,
        /// The question it answers.
        round: u32,
        /// Who answered.
        seen: Seen,
    },
    /// A second observer to both endpoints of a suspect: answer.
    Probe {
        /// Names the question.
        round: u32,
    },
    /// The answer to a probe.
    Alive {
        /// The question it answers.
        round: u32,
    },
    /// The manager about a task of the receiver's node.
    Guard {
        /// Which task.
        task: u8,
        /// What to do with it.
        action: TaskAction,
    },
    /// To the manager: a node that it may not hear knows a higher term.
    Outbid {
        /// Which.
        term: Term,
    },
}

impl Message {
    /// Its name in logs (D-59).
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
            Self::Outbid { .. } => "OUTBID",
        }
    }
}
