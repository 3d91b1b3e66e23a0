//! Why a cluster file was refused, and where.
//!
//! Every error names the file, and the line where there is one. Nothing is half read: a file
//! that gives an error gave no cluster. The first fault is reported and no other, since later ones
//! often follow from it.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::limit::LimitError;
use super::name::ClusterNameError;
use super::task::TaskNameError;
use super::timing::TimingError;
use super::{Cluster, explained, key};
use crate::explain::{Code, Explain};
use crate::words::WordError;

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
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Choice {
    /// `name`.
    #[error(transparent)]
    Name(#[from] ClusterNameError),
    /// `task.name`.
    #[error(transparent)]
    Task(#[from] TaskNameError),
    /// A word of a few.
    #[error(transparent)]
    Word(#[from] WordError),
}

impl Choice {
    fn reason(&self) -> &(dyn Explain + 'static) {
        match self {
            Self::Name(source) => source,
            Self::Task(source) => source,
            Self::Word(source) => source,
        }
    }
}

/// Why a cluster is not one that can be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// A value is outside its limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The values of the timing break a rule.
    #[error(transparent)]
    Timing(#[from] TimingError),
}

impl CheckError {
    fn reason(&self) -> &(dyn Explain + 'static) {
        match self {
            Self::Limit(source) => source,
            Self::Timing(source) => source,
        }
    }
}

impl Explain for CheckError {
    fn code(&self) -> Code {
        self.reason().code()
    }

    fn cure(&self) -> String {
        self.reason().cure()
    }
}

/// Why a cluster file was refused.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No such file.
    #[error("the cluster file {origin} does not exist")]
    NoFile {
        /// The path given.
        origin: PathBuf,
    },
    /// The file cannot be read.
    #[error("the cluster file {origin} cannot be read: {source}")]
    Unreadable {
        /// The path given.
        origin: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not UTF-8.
    #[error("the cluster file {origin} is not text")]
    Binary {
        /// The path given.
        origin: PathBuf,
    },
    /// The file is longer than [`Cluster::FILE_LEN_MAX`].
    #[error("the cluster file {origin} is longer than {} bytes", Cluster::FILE_LEN_MAX)]
    TooLong {
        /// The path given.
        origin: PathBuf,
    },
    /// Not TOML, or a key twice.
    #[error("{place}: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// The parser's words.
        message: String,
    },
    /// A key that must be set is not.
    #[error("{origin}: the key {key} is missing")]
    Missing {
        /// The path given.
        origin: PathBuf,
        /// The key.
        key: &'static str,
    },
    /// An unknown key.
    #[error("{place}: the key {key:?} is unknown")]
    Unknown {
        /// Where.
        place: Place,
        /// The key's whole path as written.
        key: String,
        /// The key that was probably meant.
        suggestion: Option<&'static str>,
    },
    /// A value of another type.
    #[error("{place}: {key} is {found}, but must be {expected}")]
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
    #[error("{place}: {source}")]
    Limit {
        /// Where.
        place: Place,
        /// Key, value and limit.
        source: LimitError,
    },
    /// The values of the timing break a rule.
    #[error("{place}: {source}")]
    Timing {
        /// Where the value is that was set.
        place: Place,
        /// Rule, both sides and what mends it.
        source: TimingError,
    },
    /// A word that is not one of those allowed.
    #[error("{place}: {source}")]
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
            Self::Missing { key, .. } => {
                let explained = explained::one(key).ok();
                match explained.and_then(|it| it.default.or(it.example)) {
                    Some(value) => {
                        format!("add a line such as: {} = {value}", key::leaf(key))
                    }
                    None => format!("add it; `weft config explain {key}` says what it may be"),
                }
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
