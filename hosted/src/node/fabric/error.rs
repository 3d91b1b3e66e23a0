//! Why a node cannot work over verbs.

use std::fmt;

use crate::explain::{Code, Explain};

/// Why a node cannot work over verbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerbsError {
    /// This build has no driver for it.
    NotBuilt,
    /// The driver, the device, or a peer's end of a pair failed.
    Driver(weft_driver::Error),
}

impl fmt::Display for VerbsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => f.write_str("this build of weft has no verbs"),
            Self::Driver(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for VerbsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotBuilt => None,
            Self::Driver(error) => Some(error),
        }
    }
}

impl Explain for VerbsError {
    fn code(&self) -> Code {
        Code::Rdma
    }

    fn cure(&self) -> String {
        match self {
            Self::NotBuilt => {
                "build it with `cargo build --release --features verbs`; on one host \
                 `--fabric shm` needs none of this"
                    .to_owned()
            }
            Self::Driver(error) => error.cure().to_owned(),
        }
    }
}

impl<E: Into<weft_driver::Error>> From<E> for VerbsError {
    fn from(error: E) -> Self {
        Self::Driver(error.into())
    }
}
