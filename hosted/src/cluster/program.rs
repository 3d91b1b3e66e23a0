//! `[component]`: the program that is the member at every node, instead of `weft component`.
//!
//! What is checked here is the definition alone; whether the program exists is found when it is
//! started.

use super::key;
use super::limit::{Limit, LimitError};

/// The program of every node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// `program`: a path, or a name that is looked up in `PATH`; empty if the command line names
    /// it.
    pub program: String,
    /// `args`: its arguments.
    pub args: Vec<String>,
    /// `env`: variables of its environment, as `NAME=VALUE`, beside those of the node.
    pub env: Vec<String>,
    /// `state`: how many bytes its record may have, which outlives the program and not its node;
    /// 0 for none.
    pub state: usize,
    /// `working_s`: how many seconds a step may last that the program announces
    /// ([`Member::working`](crate::Member::working)); 0 for none.
    pub working_s: u64,
}

impl Default for Program {
    /// No program, no record, and steps of a minute.
    fn default() -> Self {
        let (program, args, env) = (String::new(), Vec::new(), Vec::new());
        Self { program, args, env, state: 0, working_s: 60 }
    }
}

impl Program {
    /// The largest number of arguments, and of variables.
    pub const ARGS_MAX: usize = 256;

    /// The largest record in bytes.
    pub const STATE_MAX: usize = 1 << 30;

    /// The variables as names and values.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.env.iter().filter_map(|variable| variable.split_once('='))
    }

    /// What the documentation shows.
    pub(super) fn example() -> Self {
        let words = |words: [&str; 1]| words.map(str::to_owned).to_vec();
        Self {
            program: "target/release/examples/ring".to_owned(),
            args: words(["1000"]),
            env: words(["RUST_BACKTRACE=1"]),
            state: 1 << 20,
            working_s: 60,
        }
    }

    /// Sets `state` to the length that `text` gives, such as "64 KiB".
    ///
    /// # Errors
    /// It is no length, or above [`Self::STATE_MAX`]; nothing changed.
    pub fn set_state(&mut self, text: &str) -> Result<(), LimitError> {
        self.state = Self::state_of(text)?;
        Ok(())
    }

    /// The length that `text` gives: a number of bytes, KiB, MiB or GiB.
    pub(super) fn state_of(text: &str) -> Result<usize, LimitError> {
        const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("", 0)];
        let refuse = || {
            Limit::Bytes { max: Self::STATE_MAX }.refuse(key::COMPONENT_STATE, format!("{text:?}"))
        };
        let unit =
            UNITS.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
        let (number, shift) = unit.ok_or_else(refuse)?;
        let number: usize = number.trim().parse().map_err(|_| refuse())?;
        let bytes = number.checked_mul(1 << shift).filter(|bytes| *bytes <= Self::STATE_MAX);
        bytes.ok_or_else(refuse)
    }

    /// The text for a length: the largest unit without a rest.
    pub(super) fn state_text(&self) -> String {
        match self.state {
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
            bytes => bytes.to_string(),
        }
    }

    pub(super) fn check(&self) -> Result<(), LimitError> {
        if self.state > Self::STATE_MAX {
            let limit = Limit::Bytes { max: Self::STATE_MAX };
            return Err(limit.refuse(key::COMPONENT_STATE, self.state.to_string()));
        }
        key::COMPONENT_WORKING_S.limit.admit(key::COMPONENT_WORKING_S.path, self.working_s)?;
        if !self.program.is_empty() {
            let program = &key::COMPONENT_PROGRAM;
            program.limit.admit_text(program.path, &self.program)?;
        }
        for (key, texts) in [(&key::COMPONENT_ARGS, &self.args), (&key::COMPONENT_ENV, &self.env)] {
            key.limit.admit(key.path, texts.len() as u64)?;
            let text = Limit::Text { min: 0, max: 4095 };
            texts.iter().try_for_each(|it| text.admit_text(key.path, it))?;
        }
        let is_variable = |text: &&String| text.split_once('=').is_some_and(|it| !it.0.is_empty());
        match self.env.iter().find(|text| !is_variable(text)) {
            None => Ok(()),
            Some(text) => Err(Limit::Variable.refuse(key::COMPONENT_ENV.path, format!("{text:?}"))),
        }
    }
}
