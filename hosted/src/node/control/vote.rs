//! N-version votes and notices, as programs see them (RL-10, RL-3).

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use weft_core::recovery::VoteRefused;
use weft_core::vote::{BallotKind, VoteOutcome};

use crate::explain::Code;

/// The vote of one version: a number, or bytes that agree only with the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// A number.
    Number(i64),
    /// The first eight bytes of a SHA-256, as a number.
    Digest(u64),
}

impl Vote {
    /// The vote for `bytes`.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(bytes).into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        Self::Digest(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    pub(crate) const fn to_ballot(self) -> (BallotKind, i64) {
        match self {
            Self::Number(value) => (BallotKind::Number, value),
            Self::Digest(digest) => (BallotKind::Digest, digest.cast_signed()),
        }
    }

    const fn of_ballot(kind: BallotKind, value: i64) -> Self {
        match kind {
            BallotKind::Number => Self::Number(value),
            BallotKind::Digest => Self::Digest(value.cast_unsigned()),
        }
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Digest(digest) => write!(f, "{digest:016x}"),
        }
    }
}

/// What came of one round of an N-version task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VoteResult {
    /// The number of the N-version task.
    pub nversion: u8,
    /// The round.
    pub round: u32,
    /// What was voted for; none if the versions did not agree.
    pub value: Option<Vote>,
    /// The versions that agree with it.
    pub agreed: Vec<u8>,
    /// The versions that have voted.
    pub voters: Vec<u8>,
}

impl VoteResult {
    pub(crate) fn of(outcome: &VoteOutcome) -> Self {
        let versions = |bits: u8| (1..=8_u8).filter(move |version| bits >> (version - 1) & 1 == 1);
        let value = Vote::of_ballot(outcome.kind, outcome.value);
        Self {
            nversion: outcome.nversion,
            round: outcome.round,
            value: outcome.is_reached().then_some(value),
            agreed: versions(outcome.agreed).collect(),
            voters: versions(outcome.voters).collect(),
        }
    }
}

impl fmt::Display for VoteResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            |versions: &[u8]| versions.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
        let Self { nversion, round, value, agreed, voters } = self;
        write!(f, "N-version task {nversion}, round {round}: ")?;
        match value {
            Some(value) => write!(f, "{value} by versions {}", names(agreed)),
            None => f.write_str("no outcome"),
        }?;
        write!(f, "; voted: {}", names(voters))
    }
}

/// What a recovery script, or the outcome of a vote, has for a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskNotice {
    /// SEND.
    Number {
        /// The epoch of the manager's term.
        epoch: u32,
        /// The evaluation that gave the order.
        evaluation: u32,
        /// The integer.
        value: i32,
    },
    /// WARN.
    Warning {
        /// The epoch of the manager's term.
        epoch: u32,
        /// The evaluation that gave the order.
        evaluation: u32,
        /// The error; 0 for a plain WARN.
        error: i32,
        /// What it is about, as the script names it: `T3`, `G1`, `N2`.
        about: String,
    },
    /// ON SUCCESS, or ON ERROR, of an N-version task.
    Outcome(VoteResult),
}

/// Notices for a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNotices {
    /// The notices, oldest first.
    pub notices: Vec<TaskNotice>,
    /// The number of the last one.
    pub last: u64,
    /// How many older ones were dropped since the task asked: a node keeps 16.
    pub dropped: u64,
}

/// Why a vote is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VoteDenied {
    /// The cluster has no recovery script.
    NoScript,
    /// The script declares the task as no version.
    NoVersion {
        /// The versions of this node.
        versions: Vec<String>,
    },
    /// The version has voted otherwise in this round; that vote stands.
    VotedAlready,
    /// The round is over.
    RoundOver {
        /// The last one that is.
        last: u32,
    },
    /// The outcome of an earlier round is not known yet.
    RoundOpen {
        /// That round.
        open: u32,
    },
    /// The algorithm needs numbers.
    NumbersOnly,
    /// Rounds are numbered from 1.
    RoundZero,
}

impl VoteDenied {
    pub(crate) fn of(refused: VoteRefused, versions: Vec<String>) -> Self {
        match refused {
            VoteRefused::NoVersion => Self::NoVersion { versions },
            VoteRefused::VotedAlready => Self::VotedAlready,
            VoteRefused::RoundOver { last } => Self::RoundOver { last },
            VoteRefused::RoundOpen { open } => Self::RoundOpen { open },
            VoteRefused::NumbersOnly => Self::NumbersOnly,
            VoteRefused::RoundZero => Self::RoundZero,
        }
    }

    pub(crate) const fn code(&self) -> Code {
        match self {
            Self::NoScript => Code::Script,
            Self::NoVersion { .. } => Code::TaskUnknown,
            Self::RoundOpen { .. } => Code::Busy,
            Self::VotedAlready | Self::RoundOver { .. } => Code::Standing,
            Self::NumbersOnly | Self::RoundZero => Code::Usage,
        }
    }

    pub(crate) fn cure(&self) -> String {
        match self {
            Self::NoScript => {
                "set `recovery.script` in the cluster file to a script with N-VERSION".to_owned()
            }
            Self::NoVersion { .. } => {
                "vote for a task that the script declares with `VERSION 1 IS T…`".to_owned()
            }
            Self::VotedAlready => "vote in the next round".to_owned(),
            Self::RoundOver { last } => format!("vote in round {} or later", u64::from(*last) + 1),
            Self::RoundOpen { .. } => "wait for its outcome; `weft rl status` shows it".to_owned(),
            Self::NumbersOnly => {
                "vote with a number, or have the script use MAJORITY, SIMPLE MAJORITY or PLURALITY"
                    .to_owned()
            }
            Self::RoundZero => "number the rounds from 1".to_owned(),
        }
    }
}

impl fmt::Display for VoteDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScript => f.write_str("the cluster has no recovery script, so nothing votes"),
            Self::NoVersion { versions } => {
                f.write_str("the recovery script declares the task as no version")?;
                match &versions[..] {
                    [] => f.write_str("; this node has none"),
                    versions => write!(f, "; this node has {}", versions.join(", ")),
                }
            }
            Self::VotedAlready => f.write_str(
                "the version voted differently in this round before, and that vote stands",
            ),
            Self::RoundOver { last } => write!(f, "round {last} is over, and all before it"),
            Self::RoundOpen { open } => write!(f, "round {open} has no outcome yet"),
            Self::NumbersOnly => {
                f.write_str("the voting algorithm needs numbers, and this vote is a digest")
            }
            Self::RoundZero => f.write_str("there is no round 0"),
        }
    }
}
