//! Another script for a cluster that runs: which may replace the one in force, and when (RL-12).
//!
//! ```text
//!   begun ─▶ offered to the members that lack it ─▶ all hold it ─▶ decided ─▶ all use it
//!               └─ not within 10 s: nothing has changed               └─ not within 5 s: named
//! ```
//!
//! The manager decides in its term, and the decision is an entry of the database. So a manager that
//! is lost before has changed nothing, and one that comes after goes on with what was decided.

use core::fmt;

use super::{IdSet, Instruction, Program, Role, TimeoutName};
use crate::time::{Duration, Instant};

/// How long the members have to hold a script.
const HOLD: Duration = Duration::from_millis(10_000);
/// How long they have to use it, once that is decided.
const USE: Duration = Duration::from_millis(5_000);
/// After how long a script is offered again to the members that lack it.
const AGAIN: Duration = Duration::from_millis(1_000);

/// What a member has of scripts, by their digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldScript {
    /// The member.
    pub node: u8,
    /// What it has verified last.
    pub held: u64,
    /// What it uses.
    pub used: u64,
}

/// What a reload needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadStep {
    /// Time, or another database.
    Wait,
    /// Hand the script to these members.
    Offer(IdSet),
    /// All members hold it: it is in force from now on.
    Decide,
    /// It is in force; these members do not use it yet.
    Over(IdSet),
    /// It is not in force: these members lack it.
    Failed(IdSet),
}

/// A script that is to replace the one in force, at the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reload {
    digest: u64,
    until: Instant,
    offer_at: Instant,
    is_decided: bool,
}

impl Reload {
    /// Begins to replace the script in force by the one with `digest`.
    #[must_use]
    pub const fn new(digest: u64, now: Instant) -> Self {
        Self { digest, until: now.after(HOLD), offer_at: now, is_decided: false }
    }

    /// The script.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// Looks at what the members have. After [`ReloadStep::Over`] and [`ReloadStep::Failed`] it has
    /// ended.
    pub fn handle_members(
        &mut self,
        now: Instant,
        members: impl Iterator<Item = HeldScript>,
    ) -> ReloadStep {
        let (is_decided, digest) = (self.is_decided, self.digest);
        let has = |it: &HeldScript| digest == if is_decided { it.used } else { it.held };
        let late: IdSet = members.filter(|it| !has(it)).map(|it| it.node).collect();
        let is_over = self.until <= now;
        if is_decided {
            return match late.is_empty() || is_over {
                true => ReloadStep::Over(late),
                false => ReloadStep::Wait,
            };
        }
        if late.is_empty() || super::mutants::LOADED_BEFORE_ALL_HOLD_IT.is_planted() {
            (self.is_decided, self.until) = (true, now.after(USE));
            return ReloadStep::Decide;
        }
        if is_over {
            return ReloadStep::Failed(late);
        }
        if self.offer_at <= now {
            self.offer_at = now.after(AGAIN);
            return ReloadStep::Offer(late);
        }
        ReloadStep::Wait
    }

    /// Shifts its deadlines to an origin of time that lies `by` later.
    pub fn rebase(&mut self, by: Duration) {
        for at in [&mut self.until, &mut self.offer_at] {
            *at = Instant(at.0.saturating_sub(by.0));
        }
    }

    /// When to look again if nothing changes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        if self.is_decided { self.until } else { self.until.min(self.offer_at) }
    }
}

/// What may not change while a cluster runs. The lines are those of the script in force and of the
/// next one, where the images say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unlike {
    /// What differs.
    pub what: Difference,
    /// Where the script in force says it.
    pub line: Option<u16>,
    /// Where the next script says it.
    pub next_line: Option<u16>,
}

/// In what two scripts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The number of nodes.
    Nodes,
    /// The role of a node.
    Role {
        /// The node.
        node: u8,
    },
    /// A value of the timing.
    Timing(TimeoutName),
    /// The node or the place of a task.
    Task {
        /// Its number.
        number: u8,
    },
}

impl fmt::Display for Unlike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Difference::Nodes => f.write_str("it is for another number of nodes")?,
            Difference::Role { node } => write!(f, "the role of node {node} differs")?,
            Difference::Timing(name) => write!(f, "the timing {} differs", name.as_str())?,
            Difference::Task { number } => write!(f, "T{number} is another task")?,
        }
        for (line, of) in [(self.line, "in force"), (self.next_line, "loaded")] {
            if let Some(line) = line {
                write!(f, "; line {line} of the script {of}")?;
            }
        }
        Ok(())
    }
}

impl core::error::Error for Unlike {}

impl Program<'_> {
    /// Whether `next` may replace this script in a cluster that runs.
    ///
    /// # Errors
    /// The first difference that it may not make.
    pub fn check_successor(&self, next: &Program<'_>) -> Result<(), Unlike> {
        let of = |what, is_it: &dyn Fn(Instruction) -> bool| {
            let [line, next_line] = [self, next].map(|program| program.line_of(is_it));
            Err(Unlike { what, line, next_line })
        };
        if self.code().header().nodes != next.code().header().nodes {
            return of(Difference::Nodes, &|_| false);
        }
        let role = |program: &Program<'_>, node| program.role(node).unwrap_or(Role::Agent);
        let nodes = 0..self.code().header().nodes;
        if let Some(node) = nodes.into_iter().find(|at| role(self, *at) != role(next, *at)) {
            let is_it = |it| matches!(it, Instruction::Role { node: at, .. } if at == node);
            return of(Difference::Role { node }, &is_it);
        }
        let differs = |name: &TimeoutName| {
            let us = next.timeouts().us(*name);
            us.is_some() && us != self.timeouts().us(*name)
        };
        if let Some(name) = TimeoutName::ALL.iter().copied().find(differs) {
            let is_it = |it| matches!(it, Instruction::Timeout { name: of, .. } if of == name);
            return of(Difference::Timing(name), &is_it);
        }
        let moved = |task: &u8| {
            let place = next.place_of(*task);
            place.is_some() && place != self.place_of(*task)
        };
        if let Some(number) = self.tasks().iter().find(moved) {
            let is_it = |it| matches!(it, Instruction::Task { task, .. } if task == number);
            return of(Difference::Task { number }, &is_it);
        }
        Ok(())
    }

    fn line_of(&self, is_it: &dyn Fn(Instruction) -> bool) -> Option<u16> {
        let word = (0..self.entry).find(|word| self.instruction(*word).is_some_and(is_it))?;
        // Words that stand for no line of their own have 0.
        self.code().line(word).filter(|line| *line > 0)
    }
}

#[cfg(test)]
pub(in crate::recovery) mod tests {
    use super::super::tests::{ANY_CLUSTER, declarations, header, sealed};
    use super::super::{Header, verify};
    use super::*;
    use std::vec::Vec;

    const fn ms(count: u64) -> Instant {
        Instant(count * 1_000_000)
    }

    /// What members 0, 1 … hold and use.
    fn members<const N: usize>(have: [(u64, u64); N]) -> impl Iterator<Item = HeldScript> {
        (0..).zip(have).map(|(node, (held, used))| HeldScript { node, held, used })
    }

    fn only(node: u8) -> IdSet {
        [node].into_iter().collect()
    }

    #[test]
    pub(in crate::recovery) fn rl12_a_script_is_in_force_once_all_members_hold_it() {
        let mut reload = Reload::new(7, ms(0));
        assert_eq!(
            reload.handle_members(ms(0), members([(7, 3), (3, 3)])),
            ReloadStep::Offer(only(1))
        );
        assert_eq!(reload.handle_members(ms(1), members([(7, 3), (3, 3)])), ReloadStep::Wait);
        assert_eq!(reload.poll_timeout(), ms(1_000));
        assert_eq!(reload.handle_members(ms(2), members([(7, 3), (7, 3)])), ReloadStep::Decide);
        assert_eq!(reload.handle_members(ms(3), members([(7, 7), (7, 3)])), ReloadStep::Wait);
        // One that joins now has neither.
        let late = members([(7, 7), (7, 7), (3, 3)]);
        assert_eq!(reload.handle_members(ms(5_002), late), ReloadStep::Over(only(2)));
        let all = members([(7, 7), (7, 7), (7, 7)]);
        assert_eq!(reload.handle_members(ms(5_003), all), ReloadStep::Over(IdSet::EMPTY));
    }

    #[test]
    fn rl12_a_script_that_a_member_lacks_for_10_s_is_given_up_and_the_member_is_named() {
        let mut reload = Reload::new(7, ms(0));
        for at in (0..10_000).step_by(1_000) {
            let step = reload.handle_members(ms(at), members([(7, 3), (0, 0), (7, 3)]));
            assert_eq!(step, ReloadStep::Offer(only(1)), "at {at} ms");
        }
        let step = reload.handle_members(ms(10_000), members([(7, 3), (0, 0), (7, 3)]));
        assert_eq!(step, ReloadStep::Failed(only(1)));
    }

    /// The usual declarations after `change`, with lines.
    fn script(header: Header, change: impl Fn(&mut Vec<Instruction>)) -> Vec<u8> {
        let mut words = declarations();
        change(&mut words);
        words.push(Instruction::End);
        sealed(header, &words)
    }

    #[test]
    fn rl12_what_may_not_change_in_a_running_cluster_is_named() {
        let base = script(header(), |_| {});
        let base = verify(&base, &ANY_CLUSTER).unwrap();
        let refused = |image: &[u8]| {
            base.check_successor(&verify(image, &ANY_CLUSTER).unwrap()).map_err(|it| it.what)
        };
        assert_eq!(refused(&script(header(), |_| {})), Ok(()));
        let roles = script(header(), |words| {
            words[2] = Instruction::Role { node: 2, role: Role::Backup };
        });
        assert_eq!(refused(&roles), Err(Difference::Role { node: 2 }));
        let moved = script(header(), |words| {
            words[5] = Instruction::Task { task: 5, node: 2, index: 1, name: 0 };
        });
        assert_eq!(refused(&moved), Err(Difference::Task { number: 5 }));
        let timing = script(header(), |words| {
            words.insert(3, Instruction::Timeout { name: TimeoutName::Send, us: 40_000 });
        });
        assert_eq!(refused(&timing), Err(Difference::Timing(TimeoutName::Send)));
        // Numbers that are new, or not declared any more, are free.
        let more = script(Header { tasks: 4, ..header() }, |words| {
            words.insert(6, Instruction::Task { task: 6, node: 0, index: 1, name: 0 });
        });
        assert_eq!(refused(&more), Ok(()));
        let four = script(Header { nodes: 4, ..header() }, |words| {
            words.insert(3, Instruction::Role { node: 3, role: Role::Agent });
        });
        assert_eq!(refused(&four), Err(Difference::Nodes));
    }
}
