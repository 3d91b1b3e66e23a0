//! Why a cluster file was refused, and where.
//!
//! Every error names the file, and the line where there is one. Nothing is half read: a file
//! that gives an error gave no cluster. The first fault is reported and no other, since later ones
//! often follow from it.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::dirnet::DirNetWordError;
use super::fabric_kind::FabricKindError;
use super::form::FormError;
use super::limit::LimitError;
use super::membership::MembershipError;
use super::name::ClusterNameError;
use super::task::TaskNameError;
use super::timing::TimingError;
use super::{Cluster, key};
use crate::explain::{Code, Explain};
use crate::shm::WaitError;

/// A file, and a line of it if one is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub origin: PathBuf,
    /// The line, counted from 1.
    pub line: Option<usize>,
}

impl Place {
    /// The line of the byte at `offset`.
    pub(super) fn at(origin: &Path, text: &str, offset: usize) -> Self {
        let before = text.as_bytes().iter().take(offset);
        let line = 1 + before.filter(|&&byte| byte == b'\n').count();
        Self { origin: origin.to_owned(), line: Some(line) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin.display())?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// A word that must be one of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `name`.
    Name(ClusterNameError),
    /// `wait`.
    Wait(WaitError),
    /// `task.name`.
    Task(TaskNameError),
    /// A word of `[dirnet]`.
    DirNet(DirNetWordError),
    /// `fabric`.
    Fabric(FabricKindError),
    /// `neb.form`.
    Form(FormError),
    /// `neb.membership`.
    Membership(MembershipError),
}

impl Choice {
    fn reason(&self) -> &(dyn Explain + 'static) {
        match self {
            Self::Name(source) => source,
            Self::Wait(source) => source,
            Self::Task(source) => source,
            Self::DirNet(source) => source,
            Self::Fabric(source) => source,
            Self::Form(source) => source,
            Self::Membership(source) => source,
        }
    }
}

impl From<ClusterNameError> for Choice {
    fn from(source: ClusterNameError) -> Self {
        Self::Name(source)
    }
}

impl From<WaitError> for Choice {
    fn from(source: WaitError) -> Self {
        Self::Wait(source)
    }
}

impl From<DirNetWordError> for Choice {
    fn from(source: DirNetWordError) -> Self {
        Self::DirNet(source)
    }
}

impl From<TaskNameError> for Choice {
    fn from(source: TaskNameError) -> Self {
        Self::Task(source)
    }
}

impl From<FormError> for Choice {
    fn from(source: FormError) -> Self {
        Self::Form(source)
    }
}

impl From<MembershipError> for Choice {
    fn from(source: MembershipError) -> Self {
        Self::Membership(source)
    }
}

impl From<FabricKindError> for Choice {
    fn from(source: FabricKindError) -> Self {
        Self::Fabric(source)
    }
}

/// Why a cluster is not one that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckError {
    /// A value is outside its limit.
    Limit(LimitError),
    /// The values of the timing break a rule.
    Timing(TimingError),
}

impl CheckError {
    fn reason(&self) -> &(dyn Explain + 'static) {
        match self {
            Self::Limit(source) => source,
            Self::Timing(source) => source,
        }
    }
}

impl From<LimitError> for CheckError {
    fn from(source: LimitError) -> Self {
        Self::Limit(source)
    }
}

impl From<TimingError> for CheckError {
    fn from(source: TimingError) -> Self {
        Self::Timing(source)
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.reason(), f)
    }
}

impl std::error::Error for CheckError {}

impl Explain for CheckError {
    fn code(&self) -> Code {
        self.reason().code()
    }

    fn cure(&self) -> String {
        self.reason().cure()
    }
}

/// Why a cluster file was refused.
#[derive(Debug)]
pub enum ClusterError {
    /// No such file.
    NoFile {
        /// The path given.
        origin: PathBuf,
    },
    /// The file cannot be read.
    Unreadable {
        /// The path given.
        origin: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not UTF-8.
    Binary {
        /// The path given.
        origin: PathBuf,
    },
    /// The file is longer than [`Cluster::FILE_LEN_MAX`].
    TooLong {
        /// The path given.
        origin: PathBuf,
    },
    /// Not TOML, or a key twice.
    Syntax {
        /// Where.
        place: Place,
        /// The parser's words.
        message: String,
    },
    /// A key that must be set is not.
    Missing {
        /// The path given.
        origin: PathBuf,
        /// The key.
        key: &'static str,
    },
    /// An unknown key.
    Unknown {
        /// Where.
        place: Place,
        /// The key's whole path as written.
        key: String,
        /// The key that was probably meant.
        suggestion: Option<&'static str>,
    },
    /// A value of another type.
    WrongType {
        /// Where.
        place: Place,
        /// The key.
        key: &'static str,
        /// The type it must have, with its article.
        expected: &'static str,
        /// The type it has, with its article.
        found: &'static str,
    },
    /// A value outside its limit.
    Limit {
        /// Where.
        place: Place,
        /// Key, value and limit.
        source: LimitError,
    },
    /// The values of the timing break a rule.
    Timing {
        /// Where the value is that was set.
        place: Place,
        /// Rule, both sides and what mends it.
        source: TimingError,
    },
    /// A word that is not one of those allowed.
    Choice {
        /// Where.
        place: Place,
        /// Key, word and choices.
        source: Choice,
    },
}

impl ClusterError {
    pub(super) fn of_read(origin: &Path, source: io::Error) -> Self {
        let origin = origin.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NoFile { origin },
            _ => Self::Unreadable { origin, source },
        }
    }

    pub(super) fn of_syntax(origin: &Path, text: &str, error: &toml::de::Error) -> Self {
        let place = match error.span() {
            Some(span) => Place::at(origin, text, span.start),
            None => Place { origin: origin.to_owned(), line: None },
        };
        Self::Syntax { place, message: error.message().replace('\n', ", ") }
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile { origin } => {
                write!(f, "the cluster file {} does not exist", origin.display())
            }
            Self::Unreadable { origin, source } => {
                write!(f, "the cluster file {} cannot be read: {source}", origin.display())
            }
            Self::Binary { origin } => {
                write!(f, "the cluster file {} is not text", origin.display())
            }
            Self::TooLong { origin } => write!(
                f,
                "the cluster file {} is longer than {} bytes",
                origin.display(),
                Cluster::FILE_LEN_MAX
            ),
            Self::Syntax { place, message } => write!(f, "{place}: {message}"),
            Self::Missing { origin, key } => {
                write!(f, "{}: the key {key} is missing", origin.display())
            }
            Self::Unknown { place, key, .. } => write!(f, "{place}: the key {key:?} is unknown"),
            Self::WrongType { place, key, expected, found } => {
                write!(f, "{place}: {key} is {found}, but must be {expected}")
            }
            Self::Limit { place, source } => write!(f, "{place}: {source}"),
            Self::Timing { place, source } => write!(f, "{place}: {source}"),
            Self::Choice { place, source } => write!(f, "{place}: {}", source.reason()),
        }
    }
}

impl std::error::Error for ClusterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            Self::Limit { source, .. } => Some(source),
            Self::Timing { source, .. } => Some(source),
            Self::Choice { source, .. } => match source {
                Choice::Name(source) => Some(source),
                Choice::Wait(source) => Some(source),
                Choice::Task(source) => Some(source),
                Choice::DirNet(source) => Some(source),
                Choice::Fabric(source) => Some(source),
                Choice::Form(source) => Some(source),
                Choice::Membership(source) => Some(source),
            },
            Self::NoFile { .. }
            | Self::Binary { .. }
            | Self::TooLong { .. }
            | Self::Syntax { .. }
            | Self::Missing { .. }
            | Self::Unknown { .. }
            | Self::WrongType { .. } => None,
        }
    }
}

impl Explain for ClusterError {
    fn code(&self) -> Code {
        match self {
            Self::NoFile { .. } => Code::InputMissing,
            Self::Unreadable { .. } => Code::InputUnreadable,
            Self::Binary { .. } => Code::InputBinary,
            Self::Choice { source, .. } => source.reason().code(),
            Self::TooLong { .. }
            | Self::Syntax { .. }
            | Self::Missing { .. }
            | Self::Unknown { .. }
            | Self::WrongType { .. }
            | Self::Limit { .. }
            | Self::Timing { .. } => Code::ClusterFile,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::NoFile { .. } => {
                "check the path; a cluster on this host needs no file: `weft up --nodes 4`"
                    .to_owned()
            }
            Self::Unreadable { origin, .. } => {
                format!("make {} a regular file that this user may read", origin.display())
            }
            Self::Binary { .. } | Self::TooLong { .. } => {
                "name a TOML file that describes a cluster".to_owned()
            }
            Self::Syntax { .. } => "correct the TOML at this line".to_owned(),
            Self::Missing { key, .. } if *key == key::NAME => {
                "add a line such as: name = \"weft\"".to_owned()
            }
            Self::Missing { key, .. } if *key == key::NODES.path => {
                "add a line such as: nodes = 4".to_owned()
            }
            Self::Missing { key, .. } => {
                format!("add a line such as: {} = \"sleep\"", key::leaf(key))
            }
            Self::Unknown { suggestion: Some(suggestion), .. } => {
                format!("write {suggestion} if that is what you mean")
            }
            Self::Unknown { suggestion: None, key, .. } => {
                format!("remove it; there are {}", key::beside(key).join(", "))
            }
            Self::WrongType { key, expected, .. } => format!("make {key} {expected}"),
            Self::Limit { source, .. } => source.cure(),
            Self::Timing { source, .. } => source.cure(),
            Self::Choice { source, .. } => source.reason().cure(),
        }
    }
}
