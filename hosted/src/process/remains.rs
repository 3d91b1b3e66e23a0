//! Processes that a killed supervisor left running: the next owner finds and ends them.
//!
//! ```text
//!   remains file     mark                      in the environment of every child, and of theirs
//!                    leader start ┐
//!                    leader start ┘            the process groups of the children
//! ```
//!
//! A process is one of them if it carries the mark, which is drawn at random and which children
//! inherit, or if it is in a group that was noted. What has overwritten or cleared its environment
//! **and** has survived all of its group that has not, or has left the group, is not found.
//!
//! If the file is damaged, the environment of each task shows which node it belongs to.

use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

use super::descendants::{Descendants, ProcessGroup};
use super::{Pid, ProcessError, StillRuns};
use crate::sealed;

const MARK_LEN: usize = 16;

/// How children of this process are known after its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    mark: String,
    groups: Vec<ProcessGroup>,
}

impl Remains {
    /// The variable that carries the mark in the environment of children.
    pub const VARIABLE: &str = "WEFT_MARK";
    /// The variable that holds the name of the task that a child is.
    pub const VARIABLE_TASK: &str = "WEFT_TASK";
    /// The variable that holds the path of its node's control socket.
    pub const VARIABLE_CONTROL: &str = "WEFT_CONTROL";

    /// No child yet, and a mark that no process has.
    ///
    /// # Errors
    /// [`ProcessError::Os`].
    pub fn draw() -> Result<Self, ProcessError> {
        let mut bytes = [0; MARK_LEN];
        getrandom(&mut bytes[..], GetRandomFlags::empty())
            .map_err(ProcessError::os("getrandom"))?;
        let mut mark = String::new();
        for byte in bytes {
            // A string takes whatever is written to it.
            let _ = write!(mark, "{byte:02x}");
        }
        Ok(Self { mark, groups: Vec::new() })
    }

    /// The mark, for children to be started with.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Those that carry this mark; none if it is not a mark.
    #[must_use]
    pub fn of_mark(mark: &str) -> Option<Self> {
        Self::parse(mark).filter(|remains| remains.mark == mark)
    }

    /// Notes the groups of these leaders, children that were not reaped yet, instead of those
    /// before.
    pub fn note_groups(&mut self, leaders: impl Iterator<Item = Pid>) {
        self.groups = leaders.filter_map(ProcessGroup::of).collect();
    }

    /// What is in the file at `path`; none if there is no such file.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        let Some(content) = sealed::load(path)? else { return Ok(None) };
        let parsed = std::str::from_utf8(&content).ok().and_then(Self::parse);
        let what = || format!("{} holds no processes", path.display());
        parsed.map(Some).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, what()))
    }

    /// Replaces the file at `path`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut text = format!("{}\n", self.mark);
        for ProcessGroup { leader, start } in &self.groups {
            let _ = writeln!(text, "{leader} {start}");
        }
        sealed::save(path, text.as_bytes())
    }

    /// Kills all processes left by the incarnation whose file is at `path` and waits for their end;
    /// returns how many they were. If the file is damaged, or absent as before a first incarnation,
    /// the path of the node's control socket shows whose a process is.
    ///
    /// # Errors
    /// One of them still runs after `patience`.
    pub fn end_left(path: &Path, control: &Path, patience: Duration) -> Result<usize, StillRuns> {
        match Self::load(path) {
            Ok(None) => Self::end_of_node(control, patience),
            Ok(Some(remains)) => remains.end(patience),
            Err(error) => {
                tracing::error!(%error, "tasks that are left are found by their environment");
                Self::end_of_node(control, patience)
            }
        }
    }

    /// Kills all that is left, and waits for its end; how many they were.
    ///
    /// # Errors
    /// One of them still runs after `patience`.
    pub fn end(&self, patience: Duration) -> Result<usize, StillRuns> {
        Descendants::with(Self::VARIABLE, &self.mark).or_in(&self.groups).end(patience)
    }

    /// As [`Self::end`], but only what the task of this name has started, in whatever group.
    ///
    /// # Errors
    /// One of them still runs after `patience`.
    pub fn end_task(&self, name: &str, patience: Duration) -> Result<usize, StillRuns> {
        Descendants::with(Self::VARIABLE, &self.mark).and(Self::VARIABLE_TASK, name).end(patience)
    }

    /// Kills every task, with all that it has started, of any incarnation of the node whose control
    /// socket is at this path: used if the file of the last one cannot be read.
    ///
    /// # Errors
    /// One of them still runs after `patience`.
    fn end_of_node(control: &Path, patience: Duration) -> Result<usize, StillRuns> {
        let all = Descendants::with(Self::VARIABLE_CONTROL, control).and_any(Self::VARIABLE_TASK);
        all.end(patience)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mark = lines.next()?;
        let is_mark = mark.len() == 2 * MARK_LEN && mark.bytes().all(|it| it.is_ascii_hexdigit());
        let group = |line: &str| {
            let (leader, start) = line.split_once(' ')?;
            Some(ProcessGroup { leader: leader.parse().ok()?, start: start.parse().ok()? })
        };
        let groups = lines.map(group).collect::<Option<_>>()?;
        is_mark.then(|| Self { mark: mark.to_owned(), groups })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::scratch::Scratch;

    const SOON: Duration = Duration::from_secs(20);

    /// A shell that leads a group of its own, and says so once it and what it starts run.
    fn shell(script: &str, change: impl FnOnce(&mut Command) -> &mut Command) -> (Child, Pid) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0).stdout(Stdio::piped());
        let mut child = change(&mut command).spawn().unwrap();
        let mut line = [0; 1];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let pid = Pid::from_child(&child);
        (child, pid)
    }

    fn marked(remains: &Remains) -> impl FnOnce(&mut Command) -> &mut Command {
        let mark = remains.mark().to_owned();
        |command| command.env(Remains::VARIABLE, mark)
    }

    /// Saved and loaded, as the next owner reads it.
    fn inherited(remains: &Remains) -> Remains {
        let scratch = Scratch::new();
        let path = scratch.path().join("node-0.remains");
        assert_eq!(Remains::load(&path).unwrap(), None);
        Remains::draw().unwrap().save(&path).unwrap();
        remains.save(&path).unwrap();
        let loaded = Remains::load(&path).unwrap().unwrap();
        assert_eq!(&loaded, remains);
        loaded
    }

    #[test]
    fn children_of_a_child_that_is_gone_are_ended_by_their_mark_in_whatever_group() {
        let remains = Remains::draw().unwrap();
        let script = "setsid sleep 600 & sleep 600 & echo; exit 0";
        let (mut child, _) = shell(script, marked(&remains));
        child.wait().unwrap();
        assert_eq!(inherited(&remains).end(SOON), Ok(2));
        assert_eq!(remains.end(SOON), Ok(0));
    }

    #[test]
    fn a_group_is_ended_whole_while_its_leader_or_a_mark_shows_whose_it_is() {
        let mut remains = Remains::draw().unwrap();
        let script = "env -u WEFT_MARK sleep 600 & echo; sleep 600";
        let (mut led, leader) = shell(script, |command| command);
        remains.note_groups([leader].into_iter());
        assert_eq!(inherited(&remains).end(SOON), Ok(3));
        led.wait().unwrap();

        let script = "env -u WEFT_MARK sleep 600 & sleep 600 & echo; exit 0";
        let (mut child, leader) = shell(script, marked(&remains));
        remains.note_groups([leader].into_iter());
        child.wait().unwrap();
        assert_eq!(inherited(&remains).end(SOON), Ok(2));
    }

    #[test]
    fn what_one_task_has_started_is_ended_and_what_another_has_is_not() {
        let remains = Remains::draw().unwrap();
        let started = |name: &'static str| {
            let marked = marked(&remains);
            shell("setsid sleep 600 & echo; exit 0", move |command| {
                marked(command).env(Remains::VARIABLE_TASK, name)
            })
        };
        for name in ["job", "jobs"] {
            started(name).0.wait().unwrap();
        }
        assert_eq!(remains.end_task("jo", SOON), Ok(0));
        assert_eq!(remains.end_task("job", SOON), Ok(1));
        assert_eq!(remains.end(SOON), Ok(1));
    }

    #[test]
    fn tasks_of_a_node_are_known_by_its_socket_without_a_file() {
        let scratch = Scratch::new();
        let [own, other] = [1, 12].map(|rank| scratch.path().join(format!("node-{rank}.sock")));
        let script = "setsid sleep 600 & sleep 600 & echo; exit 0";
        let started = |control: &Path, task: Option<&str>| {
            let (mut child, _) = shell(script, |command| {
                let command = command.env(Remains::VARIABLE_CONTROL, control);
                task.into_iter().fold(command, |it, task| it.env(Remains::VARIABLE_TASK, task))
            });
            child.wait().unwrap();
        };
        started(&own, Some("job"));
        started(&other, Some("job"));
        started(&own, None);
        assert_eq!(Remains::end_of_node(&own, SOON), Ok(2));
        assert_eq!(Remains::end_of_node(&own, SOON), Ok(0));
        assert_eq!(Remains::end_of_node(&other, SOON), Ok(2));
        // A process that has the socket without a task's name is not a task.
        assert_eq!(Descendants::with(Remains::VARIABLE_CONTROL, &own).end(SOON), Ok(2));
    }

    #[test]
    fn a_number_that_another_process_has_by_now_is_left_alone() {
        let mut remains = Remains::draw().unwrap();
        let (mut stranger, leader) = shell("echo; exec sleep 600", |command| command);
        remains.note_groups([leader].into_iter());
        remains.groups[0].start -= 1;
        assert_eq!(inherited(&remains).end(SOON), Ok(0));
        assert!(stranger.try_wait().unwrap().is_none(), "it lives");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_file_that_holds_something_else_is_refused() {
        let scratch = Scratch::new();
        let path = scratch.path().join("node-0.remains");
        let mark = "0".repeat(2 * MARK_LEN);
        for text in ["", "12 13\n", &format!("{mark}\n1\n"), &format!("{mark}\nx 1\n")] {
            sealed::save(&path, text.as_bytes()).unwrap();
            let error = Remains::load(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{text}");
        }
    }
}
