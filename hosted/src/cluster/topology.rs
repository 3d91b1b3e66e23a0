//! Along which trees the messages of a group travel.
//!
//! | topology | entries, and messages as short as those | blocks of long messages |
//! |---|---|---|
//! | `auto` | tree of halves | each member from the root on one host, else the pipeline |
//! | `serial` | root to each member | each member from the root |
//! | `pipe` | member to member | each from the member before it |
//! | `binary` | tree of halves | tree of halves |
//! | `fibonacci` | tree of unequal parts, by `group.latency` | the same |
//! | `pipeline` | tree of halves | the binomial pipeline |
//!
//! All entries of a group travel alike, as the cluster file says: two that came from different
//! predecessors could overtake each other (GT-4). How blocks travel is the choice of their root,
//! for each message.

use serde::{Deserialize, Serialize};
use weft_core::group::{Class, Spread};

use super::FabricKind;
use crate::words::words;

/// Along which trees messages travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// What suits the fabric.
    #[default]
    Auto,
    /// The root serves each member.
    Serial,
    /// Each member serves the next.
    Pipe,
    /// Each member serves the first of each half of its range.
    Binary,
    /// As `Binary`, with parts of unequal size.
    Fibonacci,
    /// Blocks by the binomial pipeline.
    Pipeline,
}

words!(
    Topology,
    "group.topology",
    "set group.topology to \"auto\", or to what `weft bench group --model` prints",
    Auto = "auto",
    Serial = "serial",
    Pipe = "pipe",
    Binary = "binary",
    Fibonacci = "fibonacci",
    Pipeline = "pipeline",
);

impl Topology {
    /// How the ranges of entries are split.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Self::Serial => Class::Serial,
            Self::Pipe => Class::Pipe,
            Self::Auto | Self::Binary | Self::Pipeline => Class::Binary,
            Self::Fibonacci => Class::Fibonacci,
        }
    }

    /// How blocks travel over `fabric`.
    #[must_use]
    pub const fn spread(self, fabric: FabricKind) -> Spread {
        match (self, fabric) {
            // On one host, a block is copied once for each reader, out of the memory of its root.
            (Self::Auto, FabricKind::Shm) | (Self::Serial, _) => Spread::Flat,
            (Self::Auto, FabricKind::Verbs) | (Self::Pipeline, _) => Spread::Pipeline,
            (Self::Pipe, _) => Spread::Pipe,
            (Self::Binary, _) => Spread::Binary,
            (Self::Fibonacci, _) => Spread::Fibonacci,
        }
    }
}
