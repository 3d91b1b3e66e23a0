//! What a number of the cluster file may be.
//!
//! A limit knows how to check a number and how to say itself, so that an error and the
//! documentation use the same words. Limits are inclusive at both ends. Relations between two
//! keys are no concern of this file: the code that knows both refuses with the resulting limit.

use std::fmt;

use super::key::{self, Shape};
use crate::explain::{Code, Explain};

/// The numbers a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Any number from `min` to `max`.
    Range {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// Any number from `min` to `max`, for a reason that people would not guess.
    Reasoned {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
        /// Why not less.
        why: &'static str,
    },
    /// A power of two from `min` to `max`.
    PowerOfTwo {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A text of `min` to `max` bytes without a zero byte.
    Text {
        /// The fewest bytes.
        min: u64,
        /// The most bytes.
        max: u64,
    },
    /// A host and a port that a node can be met at.
    Address,
    /// Where etcd is reached.
    Etcd,
    /// A name, which is a word of commands, too.
    Name,
    /// Anything that was not given before.
    Once,
    /// A name that no group has without being named.
    OwnName,
    /// A variable of the environment.
    Variable,
    /// A program and its arguments.
    Words {
        /// The most words.
        max: u64,
    },
    /// A length with its unit.
    Bytes {
        /// The longest.
        max: usize,
    },
    /// Bytes as text.
    Base64 {
        /// The most bytes.
        max: usize,
    },
    /// So many of something, no more and no fewer.
    Exactly {
        /// How many.
        count: u64,
        /// Of what, in words that fit the number.
        what: &'static str,
    },
    /// A silence so short that a task that is silent from each start on is isolated.
    Silence {
        /// The longest, in milliseconds.
        max_ms: u64,
        /// How often the task is restarted.
        restarts: u64,
        /// Within how many seconds.
        within_s: u64,
        /// Within how many it would have to be.
        within_s_min: u64,
    },
    /// A window so long that a node that never comes back is isolated in the end.
    ResetWindow {
        /// The shortest, in seconds.
        min_s: u64,
        /// How often the node is reset.
        resets: u64,
        /// How long a reset may take, in milliseconds.
        period_ms: u64,
    },
}

impl Limit {
    /// Checks the value of `key`.
    pub(super) fn admit(self, key: &'static str, value: u64) -> Result<(), LimitError> {
        let admitted = match self {
            Self::Range { min, max }
            | Self::Reasoned { min, max, .. }
            | Self::Text { min, max } => (min..=max).contains(&value),
            Self::Exactly { count, .. } => value == count,
            Self::Silence { max_ms, .. } => value <= max_ms,
            Self::ResetWindow { min_s, .. } => value >= min_s,
            // No number says whether it is one; the key's owner looks at the text.
            Self::Address
            | Self::Etcd
            | Self::Name
            | Self::Once
            | Self::OwnName
            | Self::Variable
            | Self::Words { .. }
            | Self::Bytes { .. }
            | Self::Base64 { .. } => true,
            Self::PowerOfTwo { min, max } => {
                (min..=max).contains(&value) && value.is_power_of_two()
            }
        };
        if admitted { Ok(()) } else { Err(self.refuse(key, value.to_string())) }
    }

    /// Checks the text behind `key`.
    pub(super) fn admit_text(self, key: &'static str, text: &str) -> Result<(), LimitError> {
        let admitted = self.admit(key, text.len() as u64).is_ok() && !text.contains('\0');
        if admitted { Ok(()) } else { Err(self.refuse(key, format!("{text:?}"))) }
    }

    /// The refusal of a value that is no `u64` at all.
    pub(super) fn refuse(self, key: &'static str, value: String) -> LimitError {
        LimitError { key, value, limit: self }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range { min, max } | Self::Reasoned { min, max, .. } => {
                write!(f, "{min} to {max}")
            }
            Self::PowerOfTwo { min, max } => write!(f, "a power of two from {min} to {max}"),
            Self::Text { min, max } => write!(f, "{min} to {max} bytes without a zero byte"),
            Self::Address => f.write_str("HOST:PORT, with a port of 1 to 65535"),
            Self::Etcd => f.write_str("etcd://HOST:PORT, with further ones behind commas"),
            Self::Name => {
                let max = super::ClusterName::LEN_MAX;
                write!(f, "1 to {max} characters of a-z 0-9 _ -, the first a letter or a digit")
            }
            Self::Once => f.write_str("given once only"),
            Self::OwnName => {
                f.write_str("another name: group.count = 1 makes the group of all nodes, \"all\"")
            }
            Self::Variable => f.write_str("NAME=VALUE"),
            Self::Words { max } => write!(f, "a program and its arguments, 1 to {max} words"),
            Self::Bytes { max } => {
                write!(f, "a length up to {} MiB, such as \"64 KiB\"", max >> 20)
            }
            Self::Base64 { max } => write!(f, "up to {max} bytes in base64"),
            Self::Exactly { count: 1, what } => write!(f, "exactly one {what}"),
            Self::Exactly { count, what } => write!(f, "exactly {count} {what}"),
            Self::Silence { max_ms, restarts, within_s, .. } => write!(
                f,
                "at most {max_ms} while task.restart.max is {restarts} and task.restart.within_s \
                 is {within_s}: a task that is silent from each start on would be restarted \
                 forever"
            ),
            Self::ResetWindow { min_s, resets, period_ms } => write!(
                f,
                "at least {min_s} while dirnet.reset.max is {resets} and each reset takes up to \
                 {period_ms} ms: a node that never comes back would be reset forever"
            ),
        }
    }
}

/// A value outside its limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct LimitError {
    /// The key's whole path, such as `mailbox.slots`.
    pub key: &'static str,
    /// The value as it was written.
    pub value: String,
    /// The limit it broke.
    pub limit: Limit,
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, limit } = self;
        match limit {
            Limit::Exactly { .. } => write!(f, "{key} names {value}, but must name {limit}"),
            Limit::Reasoned { why, .. } => {
                write!(f, "{key} is {value}, but must be {limit}: {why}")
            }
            _ => write!(f, "{key} is {value}, but must be {limit}"),
        }
    }
}

impl LimitError {
    /// Whether the value is how many entries the key has, and no number that stands in the file.
    fn counts(&self) -> bool {
        let is_reasoned = matches!(self.limit, Limit::Reasoned { .. });
        key::ROWS.iter().any(|(path, shape)| {
            *path == self.key
                && match shape {
                    Shape::Tables(_) | Shape::Texts(_) | Shape::Commands => true,
                    // A rank has no reason.
                    Shape::Ranks => is_reasoned,
                    _ => false,
                }
        })
    }
}

impl Explain for LimitError {
    fn code(&self) -> Code {
        Code::ClusterFile
    }

    fn cure(&self) -> String {
        match self.limit {
            Limit::Address => format!("write each of {} as {}", self.key, self.limit),
            Limit::Exactly { .. } => format!("let {} name {}", self.key, self.limit),
            Limit::Once => {
                format!("change one of the two: {} may be {} once", self.key, self.value)
            }
            Limit::Silence { within_s_min, .. } => {
                let lower = format!("lower {} or task.restart.max", self.key);
                widen(&key::TASK_RESTART_WITHIN_S, within_s_min, lower)
            }
            Limit::ResetWindow { min_s, .. } => {
                let (max, reboot) = (key::DIRNET_RESET_MAX.path, key::TIMING_REBOOT_MS.path);
                widen(&key::DIRNET_RESET_WITHIN_S, min_s, format!("lower {max} or {reboot}"))
            }
            Limit::Range { .. } | Limit::Reasoned { .. } if self.counts() => {
                format!("give {} {} entries", self.key, self.limit)
            }
            Limit::Range { min, max } | Limit::Reasoned { min, max, .. } => {
                format!("set {} to a number from {min} to {max}", self.key)
            }
            _ => format!("set {} to {}", self.key, self.limit),
        }
    }
}

/// To raise `window` to `min_s`, where it may be so long; or else `lower`.
fn widen(window: &key::Key, min_s: u64, lower: String) -> String {
    match window.limit.admit(window.path, min_s) {
        Ok(()) => format!("raise {} to {min_s} at least, or {lower}", window.path),
        Err(_) => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold_at_both_ends() {
        let range = Limit::Range { min: 2, max: 32 };
        let power = Limit::PowerOfTwo { min: 16, max: 4096 };
        for (limit, value, admitted) in [
            (range, 1, false),
            (range, 2, true),
            (range, 32, true),
            (range, 33, false),
            (power, 8, false),
            (power, 16, true),
            (power, 17, false),
            (power, 4096, true),
            (power, 8192, false),
            (power, 0, false),
        ] {
            assert_eq!(limit.admit("key", value).is_ok(), admitted, "{value} in {limit}");
        }
    }

    #[test]
    fn the_cure_of_a_range_is_a_number_or_so_many_entries() {
        let cure = |key: &key::Key| key.limit.refuse(key.path, "99".to_owned()).cure();
        assert_eq!(cure(&key::NODES), "set nodes to a number from 2 to 32");
        assert_eq!(
            cure(&key::TIMING_CLONE_MS),
            "set dirnet.timing.clone_ms to a number from 250 to 600000"
        );
        assert_eq!(cure(&key::TASKS), "give task 0 to 16 entries");
        assert_eq!(cure(&key::GROUPS_MEMBERS_COUNT), "give groups.members 2 to 32 entries");
        let rank = Limit::Range { min: 0, max: 3 }.refuse(key::GROUPS_MEMBERS, "4".to_owned());
        assert_eq!(rank.cure(), "set groups.members to a number from 0 to 3");
    }

    #[test]
    fn a_refusal_names_key_value_and_limit() {
        let limit = Limit::PowerOfTwo { min: 16, max: 4096 };
        let error = limit.admit("mailbox.slots", 1000).expect_err("1000");
        assert_eq!(
            error.to_string(),
            "mailbox.slots is 1000, but must be a power of two from 16 to 4096"
        );
        assert_eq!(error.cure(), "set mailbox.slots to a power of two from 16 to 4096");
        let limit = Limit::Exactly { count: 1, what: "manager" };
        let error = limit.refuse("dirnet.roles", "2 managers".to_owned());
        assert_eq!(
            error.to_string(),
            "dirnet.roles names 2 managers, but must name exactly one manager"
        );
        assert_eq!(error.cure(), "let dirnet.roles name exactly one manager");
        let error = Limit::Once.refuse("task.nodes", "1".to_owned());
        assert_eq!(error.to_string(), "task.nodes is 1, but must be given once only");
        assert_eq!(error.cure(), "change one of the two: task.nodes may be 1 once");
    }
}
