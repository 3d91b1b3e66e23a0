//! What a process that was killed has left running: found again, and ended by whoever comes next.
//!
//! ```text
//!   remains file     mark                      in the environment of every child, and of theirs
//!                    leader start ┐
//!                    leader start ┘            the process groups of the children
//! ```
//!
//! A process is ended only if it is known to be one of them, whatever its number was used for
//! since: it carries the mark, which is drawn at random and which children inherit; or it is in
//! a group that was noted, while the leader of that group still has the start time that was noted,
//! or while somebody in the group carries the mark. For as long as a group has a member, its number
//! is given to no other process. What has overwritten or cleared its environment **and** has
//! survived all of its group that has not, or has left the group, is not found.
//!
//! A file is replaced as a whole, so a kill leaves the old one or the new one.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use rustix::process::getpid;
use rustix::rand::{GetRandomFlags, getrandom};

use super::{Liveness, Pid, Pidfd, ProcessError};
use crate::clock::Deadline;

const MARK_LEN: usize = 16;

/// One process group: the number of its leader, and when that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    leader: i32,
    start: u64,
}

/// How children of this process are known after its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remains {
    mark: String,
    groups: Vec<Group>,
}

impl Remains {
    /// The variable that carries the mark in the environment of children.
    pub const VARIABLE: &str = "WEFT_MARK";

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

    /// Notes the groups of these leaders, children that were not reaped yet, instead of those
    /// before.
    pub fn note_groups(&mut self, leaders: impl Iterator<Item = Pid>) {
        let group = |leader: Pid| {
            let leader = leader.as_raw_nonzero().get();
            Some(Group { leader, start: Seen::look(leader)?.start })
        };
        self.groups = leaders.filter_map(group).collect();
    }

    /// What is in the file at `path`; none if there is no such file.
    ///
    /// # Errors
    /// It cannot be read, or holds something else.
    pub fn load(path: &Path) -> io::Result<Option<Self>> {
        match fs::read_to_string(path) {
            Ok(text) => {
                let what = || format!("{} holds no processes", path.display());
                let parsed = Self::parse(&text);
                parsed.map(Some).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, what()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file at `path`.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut text = format!("{}\n", self.mark);
        for Group { leader, start } in &self.groups {
            let _ = writeln!(text, "{leader} {start}");
        }
        let draft = path.with_extension("draft");
        fs::write(&draft, text)?;
        fs::rename(&draft, path)
    }

    /// Kills all that is left, and waits for its end; how many they were.
    ///
    /// # Errors
    /// One of them lives after so long.
    pub fn end(&self, patience: Duration) -> Result<usize, StillRuns> {
        let deadline = Deadline::after(patience);
        let mut count = 0;
        loop {
            let found = self.find();
            let Some((first, _)) = found.first() else { return Ok(count) };
            let first = *first;
            for (_, process) in &found {
                // One that ends meanwhile is what was wanted; another user's is seen below.
                let _ = process.kill();
            }
            let is_dead = |(_, process): &&(i32, Pidfd)| {
                matches!(process.wait_dead(deadline.remaining()), Ok(Liveness::Dead))
            };
            count += found.iter().filter(is_dead).count();
            if deadline.has_passed() {
                return Err(StillRuns { process: first });
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mark = lines.next()?;
        let is_mark = mark.len() == 2 * MARK_LEN && mark.bytes().all(|it| it.is_ascii_hexdigit());
        let group = |line: &str| {
            let (leader, start) = line.split_once(' ')?;
            Some(Group { leader: leader.parse().ok()?, start: start.parse().ok()? })
        };
        let groups = lines.map(group).collect::<Option<_>>()?;
        is_mark.then(|| Self { mark: mark.to_owned(), groups })
    }

    /// Every process that lives and is known to be one of them.
    fn find(&self) -> Vec<(i32, Pidfd)> {
        let own = getpid().as_raw_nonzero().get();
        let entry = format!("{}={}", Self::VARIABLE, self.mark);
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        let numbers = entries.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
        let seen: Vec<(i32, Seen, bool)> =
            numbers.filter_map(|pid| Some((pid, Seen::look(pid)?, carries(pid, &entry)))).collect();
        let is_ours = |group: &Group| {
            seen.iter().any(|(pid, it, is_marked)| {
                let is_leader = *pid == group.leader && it.start == group.start;
                it.group == group.leader && (*is_marked || is_leader)
            })
        };
        let groups: Vec<i32> =
            self.groups.iter().filter(|it| is_ours(it)).map(|it| it.leader).collect();
        seen.into_iter()
            .filter(|(pid, it, is_marked)| {
                *pid != own && !it.is_dead && (*is_marked || groups.contains(&it.group))
            })
            .filter_map(|(pid, before, _)| {
                let process = Pidfd::open(Pid::from_raw(pid)?).ok()?;
                // Looked at again, now that no reuse of the number can come in between.
                (Seen::look(pid)? == before).then_some((pid, process))
            })
            .collect()
    }
}

/// A process as /proc shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    is_dead: bool,
    group: i32,
    /// In ticks since the host was started.
    start: u64,
}

impl Seen {
    fn look(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in parentheses, may hold anything.
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        let start = fields.nth(16)?.parse().ok()?;
        Some(Self { is_dead: matches!(state, "Z" | "X"), group, start })
    }
}

/// Whether the process has this entry in its environment.
fn carries(pid: i32, entry: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|it| it == entry.as_bytes())
}

/// A process that was left does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillRuns {
    /// Its number.
    pub process: i32,
}

impl std::fmt::Display for StillRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} of an earlier life of the node does not end", self.process)
    }
}

impl std::error::Error for StillRuns {}

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

    /// Saved and loaded, as whoever comes next has it.
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
            fs::write(&path, text).unwrap();
            let error = Remains::load(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{text}");
        }
    }
}
