//! The bounds of an image and of its evaluation.

/// The length of an image in bytes.
pub const IMAGE_MAX: usize = 32 << 10;
/// The words of an image.
pub const WORDS_MAX: usize = 3_000;
/// The bytes of its string pool.
pub const POOL_MAX: usize = 2 << 10;
/// The bytes of one string.
pub const TEXT_MAX: usize = 64;
/// The tasks of a script: numbers 0 to 255.
pub const TASKS_MAX: usize = 256;
/// The groups of a script: numbers 0 to 31.
pub const GROUPS_MAX: usize = 32;
/// The nodes of a cluster: numbers 0 to 63.
pub const NODES_MAX: usize = 64;
/// The watchdogs of a script: numbers 0 to 63.
pub const WATCHDOGS_MAX: usize = 64;
/// The N-version tasks of a script: numbers 0 to 15.
pub const NVERSIONS_MAX: usize = 16;
/// The versions of one of them.
pub const VERSIONS_MAX: usize = 8;
/// The sets that a section at the top level keeps.
pub const SETS_MAX: usize = 32;
/// The variables, A to Z.
pub const VARIABLES: usize = 26;
/// The numbers on the stack.
pub const STACK_MAX: usize = 32;
/// The places that lie ahead of a word and that jumps before it lead to.
pub const JOINS_MAX: usize = 32;
/// The arguments of a CALL, and the values of a LOG.
pub const ARGS_MAX: usize = 4;
/// The orders of one evaluation, those of DEFAULT excepted (RL-8).
pub const ORDERS_MAX: usize = 64;
/// The lists that wait behind a PAUSE.
pub const PAUSES_MAX: usize = 16;
/// The longest PAUSE, and the longest period of an alpha-count, in ms: one hour.
pub const PAUSE_MS_MAX: u32 = 3_600_000;
/// The interval of heartbeats in µs: 1 ms to half an hour.
pub const BEAT_US: core::ops::RangeInclusive<u32> = 1_000..=1_800_000_000;
/// The sections that held and are named in a trace.
pub const HELD_MAX: usize = 32;
