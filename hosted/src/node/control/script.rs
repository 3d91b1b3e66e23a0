//! The recovery script of a running cluster, as clients see it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::VoteResult;
use crate::explain::Code;

/// A recovery script that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptLoaded {
    /// Identifies the script.
    pub digest: String,
    /// The members that did not use it yet.
    pub late: Vec<u16>,
    /// Whether another one was in force before.
    pub is_new: bool,
}

/// The recovery script, and what this node's component has done with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptStatus {
    /// Identifies the script that the node uses.
    pub digest: String,
    /// Identifies the script that is to replace it, if the node holds one.
    pub next: Option<String>,
    /// Whether another one is in force, which the node lacks: it evaluates none.
    pub is_lacking: bool,
    /// The words of its image.
    pub words: u16,
    /// The tasks that it declares.
    pub tasks: Vec<String>,
    /// Whether this node evaluates it: it manages.
    pub is_acting: bool,
    /// How many evaluations there were in this term.
    pub evaluations: u32,
    /// How many orders it gave in this term.
    pub orders: u64,
    /// The sections that held at the last evaluation.
    pub last_held: Vec<u16>,
    /// How many words ran then.
    pub last_steps: u16,
    /// Orders that found no room, and are given again.
    pub dropped: u32,
    /// The outcome of the last vote that this node knows.
    pub last_vote: Option<VoteResult>,
    /// The N-version tasks, and their rounds, in which versions of this node await an outcome.
    pub open_votes: Vec<(u8, u32)>,
}

/// Why a recovery script is not loaded; the one in force stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScriptRefused {
    /// The cluster has no script that another one could replace.
    NoScript,
    /// Another script is being loaded.
    UnderWay,
    /// The verifier refuses it, for this reason.
    Rejected(String),
    /// It differs from the one in force in what may not change.
    Unlike(String),
    /// These members did not hold it in time.
    Lacking {
        /// The members.
        nodes: Vec<u16>,
    },
}

impl ScriptRefused {
    pub(crate) const fn code(&self) -> Code {
        match self {
            Self::NoScript | Self::Unlike(_) => Code::Script,
            Self::UnderWay => Code::Busy,
            Self::Rejected(_) => Code::Image,
            Self::Lacking { .. } => Code::Timeout,
        }
    }

    pub(crate) fn cure(&self) -> String {
        match self {
            Self::NoScript => "set `recovery.script` in the cluster file, and start it with that",
            Self::UnderWay => {
                "wait for it to end, 15 s at most; `weft rl status` shows what is in force"
            }
            Self::Rejected(_) => "translate it with this version of weft",
            Self::Unlike(_) => {
                "keep roles, timing and the numbers of tasks; to change them, end the cluster and \
                 start it with the script"
            }
            Self::Lacking { .. } => {
                "run `weft status` to see what is wrong there, then load the script again"
            }
        }
        .to_owned()
    }
}

impl fmt::Display for ScriptRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScript => f.write_str("the cluster has no recovery script"),
            Self::UnderWay => f.write_str("another recovery script is being loaded"),
            Self::Rejected(why) => write!(f, "the script's image is refused: {why}"),
            Self::Unlike(why) => write!(f, "a running cluster cannot take this script: {why}"),
            Self::Lacking { nodes } => {
                let nodes: Vec<String> = nodes.iter().map(u16::to_string).collect();
                let nodes = nodes.join(", ");
                write!(f, "node {nodes} did not hold the script within 10 s; the old one stays")
            }
        }
    }
}
