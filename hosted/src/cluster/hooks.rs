//! `[hooks]`: commands that the manager's node runs for events of the cluster.
//!
//! The file is checked without looking for the programs: it is the same on every host.
//! [`Hooks::check_programs`] looks for them on this one.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Serialize;

use super::error::ClusterError;
use super::key;
use super::limit::{Limit, LimitError};
use super::section::FileSection;
use crate::explain::{Code, Explain};
use crate::process::{ProgramError, find_program};
use crate::words::words;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// A view, after the joins and removals that led to it.
    View,
    /// An incarnation is a member.
    Joined,
    /// A manager has decided that an incarnation has failed. It stays in the view, and `Removed`
    /// follows: at once with a node, and with the next component where only that has failed.
    Failed,
    /// An incarnation is no member any more.
    Removed,
    /// A node was isolated: no boot of it joins until it is released.
    Isolated,
    /// An operator has released an isolated node.
    Released,
    /// A node is not heard.
    Suspected,
    /// A suspect was heard again.
    Trusted,
    /// A task of a node has started, ended, or hangs.
    Task,
    /// The watcher read too slowly, or was away for too long: suspicions and verdicts are missing.
    Missed,
}

words! {
    Kind,
    "--only",
    "name a kind of event",
    View = "view",
    Joined = "joined",
    Failed = "failed",
    Removed = "removed",
    Isolated = "isolated",
    Released = "released",
    Suspected = "suspected",
    Trusted = "trusted",
    Task = "task",
    Missed = "missed",
}

impl Kind {
    /// The key of its hook; none for [`Self::Missed`], which is no event of the cluster.
    pub(super) const fn key(self) -> Option<&'static str> {
        match self {
            Self::View => Some(key::HOOKS_VIEW),
            Self::Joined => Some(key::HOOKS_JOINED),
            Self::Failed => Some(key::HOOKS_FAILED),
            Self::Removed => Some(key::HOOKS_REMOVED),
            Self::Isolated => Some(key::HOOKS_ISOLATED),
            Self::Released => Some(key::HOOKS_RELEASED),
            Self::Suspected => Some(key::HOOKS_SUSPECTED),
            Self::Trusted => Some(key::HOOKS_TRUSTED),
            Self::Task => Some(key::HOOKS_TASK),
            Self::Missed => None,
        }
    }
}

/// The commands for events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hooks {
    /// `timeout_s`: for how many seconds a command may run, 1 to 3600; then it is killed.
    pub timeout_s: u64,
    /// The command for each kind of event: a program, as a path or a name that is looked up in
    /// `PATH`, and its arguments.
    pub commands: BTreeMap<Kind, Vec<String>>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { timeout_s: 30, commands: BTreeMap::new() }
    }
}

impl Hooks {
    /// The largest number of words in a command.
    pub const WORDS_MAX: usize = 64;

    /// What the documentation shows.
    pub(super) fn example() -> Vec<String> {
        ["logger", "-t", "weft"].map(str::to_owned).to_vec()
    }

    pub(super) fn read(section: &FileSection<'_>) -> Result<Self, ClusterError> {
        let mut hooks = Self::default();
        if let Some(timeout_s) = section.number(&key::HOOKS_TIMEOUT_S)? {
            hooks.timeout_s = timeout_s;
        }
        for kind in Kind::ALL {
            let Some(key) = kind.key() else { continue };
            if let Some(command) = section.texts(key)? {
                hooks.commands.insert(kind, command);
            }
        }
        Ok(hooks)
    }

    pub(super) fn check(&self) -> Result<(), LimitError> {
        key::HOOKS_TIMEOUT_S.limit.admit(key::HOOKS_TIMEOUT_S.path, self.timeout_s)?;
        let mut commands = self.commands.iter().filter_map(|(kind, it)| Some((kind.key()?, it)));
        commands.try_for_each(|(key, command)| check_command(key, command))
    }

    /// Whether the program of each command is an executable file of this host.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_programs(&self) -> Result<(), MissingProgram> {
        self.commands.iter().try_for_each(|(kind, command)| {
            let program = command.first().map_or("", String::as_str);
            MissingProgram::check(format_args!("hooks.{kind}"), program)
        })
    }
}

/// Whether `command`, which `key` names, is a program and its arguments.
pub(super) fn check_command(key: &'static str, command: &[String]) -> Result<(), LimitError> {
    let words = Limit::Words { max: Hooks::WORDS_MAX as u64 };
    let Some((program, args)) = command.split_first() else {
        return Err(words.refuse(key, "empty".to_owned()));
    };
    if command.len() > Hooks::WORDS_MAX {
        return Err(words.refuse(key, format!("{} words", command.len())));
    }
    Limit::Text { min: 1, max: 4095 }.admit_text(key, program)?;
    let arg = Limit::Text { min: 0, max: 4095 };
    args.iter().try_for_each(|text| arg.admit_text(key, text))
}

/// A program that the cluster file names cannot be run here.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {source}")]
pub struct MissingProgram {
    /// The key that names it.
    pub key: String,
    /// The reason.
    pub source: ProgramError,
}

impl MissingProgram {
    /// Whether `program`, which `key` names, is an executable file of this host.
    pub(super) fn check(key: impl Display, program: &str) -> Result<(), Self> {
        let found = find_program(program);
        found.map(drop).map_err(|source| Self { key: key.to_string(), source })
    }
}

impl Explain for MissingProgram {
    fn code(&self) -> Code {
        self.source.code()
    }

    fn cure(&self) -> String {
        self.source.cure()
    }
}
