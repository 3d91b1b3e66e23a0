//! `[recovery]`: the script that decides how the cluster recovers.
//!
//! A person names a script; the program translates it before a node starts and keeps the image in
//! the file that the nodes read. So all of them have the same one, and none needs a translator.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use weft_core::recovery::{Expected, IMAGE_MAX, Program, Rejected, verify};

use super::hooks::{MissingProgram, check_command};
use super::key;
use super::limit::{Limit, LimitError};
use super::section::FileSection;
use super::{ClusterError, Task};

/// A task of a recovery script's image that the cluster does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignTask {
    /// Its number.
    pub number: u8,
    /// Its name in the image.
    pub name: Option<String>,
    /// Its node.
    pub node: u8,
    /// Which of the node's tasks it is.
    pub place: u8,
    /// The cluster's task at that place.
    pub found: Option<String>,
}

impl fmt::Display for ForeignTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, name, node, place, found } = self;
        write!(f, "T{number}")?;
        if let Some(name) = name {
            write!(f, " \"{name}\"")?;
        }
        write!(f, " is task {place} of node {node}, ")?;
        match found {
            Some(found) => write!(f, "where this cluster has {found}"),
            None => f.write_str("where this cluster has none"),
        }
    }
}

/// How the cluster recovers by a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// `script`: the script; a relative path begins at the folder of the cluster file.
    pub script: Option<PathBuf>,
    /// `answer_ms`: for how many milliseconds a task that failed waits for an order, 10 to
    /// 3 600 000; then its node does what the script's DEFAULT says, or restarts a task that the
    /// script does not declare.
    pub answer_ms: u64,
    /// `calls`: the programs that CALL may run, each as words, by the names of the script. The
    /// arguments of a CALL follow them.
    pub calls: BTreeMap<String, Vec<String>>,
    /// `image`: the translated script; `weft up` and `weft node` write it.
    pub image: Option<Vec<u8>>,
}

impl Default for Recovery {
    fn default() -> Self {
        Self { script: None, answer_ms: 5_000, calls: BTreeMap::new(), image: None }
    }
}

impl Recovery {
    /// The most programs that CALL may run.
    pub const CALLS_MAX: u64 = 64;

    pub(super) fn read(section: &FileSection<'_>) -> Result<Self, ClusterError> {
        let script = section.text(key::RECOVERY_SCRIPT.path)?.map(PathBuf::from);
        let mut recovery = Self { script, ..Self::default() };
        if let Some(answer_ms) = section.number(&key::RECOVERY_ANSWER_MS)? {
            recovery.answer_ms = answer_ms;
        }
        recovery.calls = section.commands(key::RECOVERY_CALLS)?;
        if let Some(text) = section.text(key::RECOVERY_IMAGE)? {
            let decoded = BASE64_STANDARD.decode(&text).ok().filter(|it| it.len() <= IMAGE_MAX);
            recovery.image = Some(decoded.ok_or_else(|| {
                let found = format!("{} characters", text.len());
                let limit = Limit::Base64 { max: IMAGE_MAX };
                section.limit(key::RECOVERY_IMAGE, limit.refuse(key::RECOVERY_IMAGE, found))
            })?);
        }
        Ok(recovery)
    }

    pub(super) fn check(&self) -> Result<(), LimitError> {
        let answer = key::RECOVERY_ANSWER_MS;
        answer.limit.admit(answer.path, self.answer_ms)?;
        self.check_calls()?;
        let Some(script) = &self.script else { return Ok(()) };
        let script = script.to_string_lossy();
        key::RECOVERY_SCRIPT.limit.admit_text(key::RECOVERY_SCRIPT.path, &script)
    }

    fn check_calls(&self) -> Result<(), LimitError> {
        let key = key::RECOVERY_CALLS;
        let count = Limit::Range { min: 0, max: Self::CALLS_MAX };
        count.admit(key, self.calls.len() as u64)?;
        for (name, command) in &self.calls {
            Limit::Text { min: 1, max: 32 }.admit_text(key, name)?;
            check_command(key, command)?;
        }
        Ok(())
    }

    /// Whether the program of each call is an executable file of this host.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check_programs(&self) -> Result<(), MissingProgram> {
        self.calls.iter().try_for_each(|(name, command)| {
            let program = command.first().map_or("", String::as_str);
            MissingProgram::check(format_args!("recovery.calls.{name}"), program)
        })
    }

    /// Whether the tasks of the image are those of the cluster: an image that was built for another
    /// one names tasks that are not there.
    ///
    /// # Errors
    /// [`ForeignTask`], the first that is another one.
    pub fn check_tasks(&self, tasks: &[Task]) -> Result<(), ForeignTask> {
        let Ok(Some(program)) = self.program(None) else { return Ok(()) };
        for number in program.tasks().iter() {
            let Some((node, place)) = program.place_of(number) else { continue };
            let mut own = tasks.iter().filter(|task| task.runs_on(node.into()));
            let found = own.nth(place.into()).map(|task| task.name.to_string());
            let name = program.name_of(number);
            if found.is_none() || name.is_some() && name != found.as_deref() {
                let name = name.map(str::to_owned);
                return Err(ForeignTask { number, name, node, place, found });
            }
        }
        Ok(())
    }

    /// The image as text.
    pub(super) fn image_text(&self) -> Option<String> {
        self.image.as_ref().map(|image| BASE64_STANDARD.encode(image))
    }

    /// Identifies the script; 0 for none. The same on every host.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.program(None).ok().flatten().map_or(0, |program| program.code().header().source)
    }

    /// The verified script, if there is one, for a cluster of `nodes`.
    ///
    /// # Errors
    /// [`Rejected`].
    pub fn program(&self, nodes: Option<usize>) -> Result<Option<Program<'_>>, Rejected> {
        let nodes = nodes.map(|nodes| u8::try_from(nodes).unwrap_or(u8::MAX));
        // Its timing is the cluster file's since it was translated, and was checked with it.
        let expected = Expected { nodes, keeps_rules: |_| true };
        self.image.as_deref().map(|image| verify(image, &expected)).transpose()
    }
}
