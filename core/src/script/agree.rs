//! Which script is in force, and how the manager replaces it (RL-12).
//!
//! ```text
//!   manager: begun ─▶ offered ─▶ all entries say "held" ─▶ "used", in its term
//!                                                              │ the database
//!   every member: the latest "used" of all entries ◀───────────┘
//! ```

use core::fmt;

use heapless::Vec;

use super::ScriptMember;
use crate::dirnet::{Change, Component, Role, ScriptVersion};
use crate::ids::Rank;
use crate::recovery::{HeldScript, IdSet, Reload, ReloadStep};
use crate::time::{Duration, Instant};

/// How often a node asks for the script in force that it lacks.
const ASK_EVERY: Duration = Duration::from_millis(1_000);

/// What a member needs from its caller about scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptStep {
    /// Hand the script that is held besides to these nodes. What is lost is offered again.
    Offer {
        /// The nodes.
        to: IdSet,
        /// The script.
        digest: u64,
    },
    /// A script that is held is in force: use its image, and declare its tasks.
    Use {
        /// The script.
        digest: u64,
    },
    /// This script is in force and not here: ask the other nodes for it.
    Want {
        /// The script.
        digest: u64,
    },
    /// A change of the node's own entry, for [`Component::handle_change`].
    Change(Change),
    /// What [`ScriptMember::begin_reload`] has begun has ended.
    Ended {
        /// The script.
        digest: u64,
        /// How.
        end: ReloadEnd,
    },
}

/// How a reload has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadEnd {
    /// The script is in force; these members do not use it yet.
    InForce(IdSet),
    /// It is not: these members lack it.
    Lacking(IdSet),
    /// This node does not manage any more. If it was decided before, the next manager goes on.
    NotManager,
}

/// Why a reload is not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadRefused {
    /// Only the manager replaces the script.
    NotManager,
    /// Another one is under way.
    UnderWay,
}

impl fmt::Display for ReloadRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotManager => "this node does not manage; ask the manager",
            Self::UnderWay => "another script is being loaded; wait for its end",
        })
    }
}

impl core::error::Error for ReloadRefused {}

impl<const NODES: usize, const NUMBERS: usize> ScriptMember<NODES, NUMBERS> {
    /// Whether this node may replace the script now.
    ///
    /// # Errors
    /// [`ReloadRefused`].
    pub fn may_reload<const TASKS: usize>(
        &self,
        machine: &Component<NODES, TASKS>,
    ) -> Result<(), ReloadRefused> {
        match (machine.role(), &self.reload) {
            (Role::Manager, None) => Ok(()),
            (Role::Manager, Some(_)) => Err(ReloadRefused::UnderWay),
            _ => Err(ReloadRefused::NotManager),
        }
    }

    /// Begins to replace the script in force by the one with `digest`, which the caller holds and
    /// has checked. Returns false if that one is in force already. [`ScriptStep::Ended`] says what
    /// came of it.
    ///
    /// # Errors
    /// [`ReloadRefused`]; nothing changed.
    pub fn begin_reload<const TASKS: usize>(
        &mut self,
        machine: &Component<NODES, TASKS>,
        digest: u64,
        now: Instant,
    ) -> Result<bool, ReloadRefused> {
        self.may_reload(machine)?;
        if digest == self.used && self.lacking.is_none() {
            return Ok(false);
        }
        (self.next, self.reload) = (Some(digest), Some(Reload::new(digest, now)));
        Ok(true)
    }

    /// The node holds the script with `digest`, verified. One that is to come next is not dropped
    /// for the one in force that the node lacked: others may rely on its being held. While it
    /// replaces the script itself, a manager holds no other.
    pub fn hold(&mut self, digest: u64) {
        if self.lacking == Some(digest) {
            self.has_arrived = true;
        } else if self.reload.is_none() && digest != self.used {
            self.next = Some(digest);
        }
    }

    /// What is to be done about scripts now: [`ScriptStep::Use`] before changes of the entry.
    pub fn agree<const TASKS: usize>(
        &mut self,
        machine: &Component<NODES, TASKS>,
        now: Instant,
    ) -> Vec<ScriptStep, 4> {
        let mut steps = Vec::new();
        // There is room for one of each kind, and for two changes.
        let mut push = |step| _ = steps.push(step);
        let mut in_force = self.in_force(machine);
        if let Some(mut reload) = self.reload.take() {
            let digest = reload.digest();
            match self.step_reload(&mut reload, machine, now) {
                Ok(step) => {
                    self.reload = Some(reload);
                    match step {
                        ReloadStep::Offer(to) => push(ScriptStep::Offer { to, digest }),
                        ReloadStep::Decide => in_force = decided(in_force, digest, machine),
                        _ => {}
                    }
                }
                Err(end) => {
                    if matches!(end, ReloadEnd::Lacking(_)) {
                        // What they might still say they hold must not be decided any more.
                        self.next = None;
                    }
                    push(ScriptStep::Ended { digest, end });
                }
            }
        }
        let is_used = self.follow(in_force, now, &mut push);
        let held = self.next.unwrap_or(self.used);
        let Some(own) = machine.database().record(self.me) else { return steps };
        if own.script_held != held {
            push(ScriptStep::Change(Change::ScriptHeld(held)));
        }
        if is_used && own.script_used < in_force {
            push(ScriptStep::Change(Change::ScriptUsed(in_force)));
        }
        steps
    }

    /// Uses the script in force, or asks for it; returns whether it is used.
    fn follow(
        &mut self,
        in_force: ScriptVersion,
        now: Instant,
        push: &mut impl FnMut(ScriptStep),
    ) -> bool {
        let digest = in_force.digest;
        if in_force.number > 0 && digest != self.used {
            let has_arrived = self.lacking == Some(digest) && self.has_arrived;
            if has_arrived || self.next.take_if(|next| *next == digest).is_some() {
                self.used = digest;
                self.acting.iter_mut().for_each(|acting| acting.replace_script());
                // The next evaluation is due, whatever the database is.
                (self.is_broken, self.digest) = (false, 0);
                push(ScriptStep::Use { digest });
            } else if self.ask_at <= now {
                self.ask_at = now.after(ASK_EVERY);
                push(ScriptStep::Want { digest });
            }
        }
        let lacking = (in_force.number > 0 && digest != self.used).then_some(digest);
        self.has_arrived &= lacking == self.lacking;
        self.lacking = lacking;
        lacking.is_none()
    }

    fn step_reload<const TASKS: usize>(
        &self,
        reload: &mut Reload,
        machine: &Component<NODES, TASKS>,
        now: Instant,
    ) -> Result<ReloadStep, ReloadEnd> {
        if machine.role() != Role::Manager {
            return Err(ReloadEnd::NotManager);
        }
        match reload.handle_members(now, self.members(machine)) {
            ReloadStep::Over(late) => Err(ReloadEnd::InForce(late)),
            ReloadStep::Failed(lacking) => Err(ReloadEnd::Lacking(lacking)),
            step => Ok(step),
        }
    }

    /// The latest script that any node says was put in force; number 0 for the one that the cluster
    /// began with.
    #[must_use]
    pub fn in_force<const TASKS: usize>(&self, machine: &Component<NODES, TASKS>) -> ScriptVersion {
        let records = (0..self.nodes).filter_map(|node| machine.database().record(Rank(node)));
        records.map(|record| record.script_used).max().unwrap_or_default()
    }

    /// What the members hold and use. What an earlier incarnation said does not count.
    fn members<'a, const TASKS: usize>(
        &self,
        machine: &'a Component<NODES, TASKS>,
    ) -> impl Iterator<Item = HeldScript> + use<'a, NODES, NUMBERS, TASKS> {
        let database = machine.database();
        let nodes = u8::try_from(self.nodes).unwrap_or(u8::MAX);
        (0..nodes).filter_map(move |node| {
            let rank = Rank(node.into());
            let standing = database.standing(rank);
            let record = database.record(rank).filter(|it| it.incarnation == standing.incarnation);
            let says = record.map_or((0, 0), |it| (it.script_held, it.script_used.digest));
            standing.is_up().then_some(HeldScript { node, held: says.0, used: says.1 })
        })
    }
}

/// The version that the manager puts in force now.
fn decided<const NODES: usize, const TASKS: usize>(
    last: ScriptVersion,
    digest: u64,
    machine: &Component<NODES, TASKS>,
) -> ScriptVersion {
    let term = machine.term();
    let number = if last.term == term { last.number.saturating_add(1) } else { 1 };
    ScriptVersion { term, number, digest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirnet::{
        ComponentIncarnation, Config, Kept, Limits, Part, Profile, RestartLimit, Term, Timing,
    };
    use crate::ids::Incarnation;
    use crate::recovery::{Depth, Expected, Header, Instruction, seal, verify};

    type Machine = Component<4, 1>;

    fn machine() -> Machine {
        machine_of(&[Part::Manager, Part::Backup])
    }

    fn machine_of(parts: &[Part]) -> Machine {
        let profile = Profile::new(Timing::LAN).unwrap();
        let limit = RestartLimit { max: 3, within: Duration(100_000 * 1_000_000) };
        let limits = Limits { restarts: limit, resets: limit };
        let config = Config::new(Rank(0), parts, profile, 1, limits).unwrap();
        let incarnation = ComponentIncarnation { boot: Incarnation(1), generation: 0 };
        Machine::new(Instant(0), config, incarnation, 1, Kept::default())
    }

    fn apply(machine: &mut Machine, change: Change) {
        while machine.poll_output().is_some() {}
        machine.handle_change(Instant(0), change).unwrap();
        while machine.poll_output().is_some() {}
    }

    fn put_in_force(machine: &mut Machine, number: u16, digest: u64) {
        let term = Term { epoch: 1, claimant: Rank(0) };
        apply(machine, Change::ScriptUsed(ScriptVersion { term, number, digest }));
    }

    /// A manager may have decided by what this node said that it holds.
    #[test]
    fn rl12_the_next_script_is_kept_while_the_one_in_force_is_fetched() {
        let (mut machine, mut member) = (machine(), ScriptMember::<4, 4>::new(Rank(0), 2, 1));
        put_in_force(&mut machine, 1, 3);
        member.hold(2);
        let steps = member.agree(&machine, Instant(0));
        assert!(steps.contains(&ScriptStep::Want { digest: 3 }));
        assert!(steps.contains(&ScriptStep::Change(Change::ScriptHeld(2))));
        assert!(!member.is_due(&machine, Instant(0)), "it lacks the script in force");
        assert_eq!(member.poll_timeout(), Some(Instant(ASK_EVERY.0)));
        member.hold(3);
        assert_eq!((member.next(), member.lacking()), (Some(2), Some(3)));
        let steps = member.agree(&machine, Instant(0));
        assert_eq!(steps.first(), Some(&ScriptStep::Use { digest: 3 }));
        // What arrives twice is nothing new.
        member.hold(3);
        assert_eq!((member.used(), member.next(), member.lacking()), (3, Some(2), None));
        put_in_force(&mut machine, 2, 2);
        let steps = member.agree(&machine, Instant(0));
        assert_eq!(steps.first(), Some(&ScriptStep::Use { digest: 2 }));
        assert_eq!((member.used(), member.next()), (2, None));
    }

    /// What arrived for another script that was in force is not used for this one.
    #[test]
    fn rl12_a_script_is_used_only_once_it_has_arrived_itself() {
        let (mut machine, mut member) = (machine(), ScriptMember::<4, 4>::new(Rank(0), 2, 1));
        put_in_force(&mut machine, 1, 3);
        member.agree(&machine, Instant(0));
        member.hold(3);
        put_in_force(&mut machine, 2, 4);
        let steps = member.agree(&machine, Instant(0));
        assert!(!steps.iter().any(|step| matches!(step, ScriptStep::Use { .. })), "{steps:?}");
        assert_eq!((member.used(), member.lacking()), (1, Some(4)));
        member.agree(&machine, Instant(0));
        assert_eq!(member.used(), 1, "nor later");
    }

    /// The only node of its cluster, once it manages.
    fn manager() -> (Machine, Instant) {
        let (mut machine, mut now) = (machine_of(&[Part::Manager]), Instant(0));
        let mut turns = 0..100;
        while machine.role() != Role::Manager {
            assert!(turns.next().is_some(), "it never manages");
            while machine.poll_output().is_some() {}
            now = machine.poll_timeout().expect("it does not wait for others");
            machine.handle_timeout(now);
        }
        (machine, now)
    }

    #[test]
    fn rl12_a_manager_puts_another_script_in_force() {
        let ((mut machine, now), mut member) =
            (manager(), ScriptMember::<4, 4>::new(Rank(0), 1, 1));
        assert_eq!(member.begin_reload(&machine, 1, now), Ok(false), "it is in force");
        assert_eq!(member.begin_reload(&machine, 2, now), Ok(true));
        let mut ended = None;
        for _ in 0..5 {
            for step in member.agree(&machine, now) {
                while machine.poll_output().is_some() {}
                match step {
                    ScriptStep::Change(change) => machine.handle_change(now, change).unwrap(),
                    ScriptStep::Ended { digest, end } => ended = Some((digest, end)),
                    _ => {}
                }
            }
        }
        assert_eq!(ended, Some((2, ReloadEnd::InForce(IdSet::EMPTY))));
        assert_eq!((member.used(), member.next()), (2, None));
    }

    /// One task, and a list that goes on 20 ms later.
    fn image() -> std::vec::Vec<u8> {
        let words = [
            Instruction::Role { node: 0, role: crate::recovery::Role::Manager },
            Instruction::Task { task: 0, node: 0, index: 0, name: 0 },
            Instruction::Code,
            Instruction::Section { number: 1, depth: Depth::Top, end: 8 },
            Instruction::Push(1),
            Instruction::JumpIfFalse(8),
            Instruction::Pause { ms: 20, end: 8 },
            Instruction::Log { text: 0, values: 0 },
            Instruction::End,
        ];
        let counts = Header { tasks: 1, nodes: 1, ..Header::default() };
        let header = Header { words: words.len() as u16, pool_len: 2, ..counts };
        let mut image = header.to_bytes().to_vec();
        words.iter().for_each(|word| image.extend(word.encode().to_bytes()));
        image.extend(b"\x01t");
        seal(&mut image);
        image
    }

    #[test]
    fn rl1_a_manager_evaluates_what_is_new_and_what_a_pause_has_left() {
        let ((machine, now), mut member) = (manager(), ScriptMember::<4, 4>::new(Rank(0), 1, 1));
        let image = image();
        let program = verify(&image, &Expected { nodes: None, keeps_rules: |_| true }).unwrap();
        assert!(member.is_due(&machine, now));
        assert!(member.evaluate(&program, &machine, now).unwrap().is_some());
        assert!(!member.is_due(&machine, now), "there is no news");
        let due = now.after(Duration::from_millis(20));
        assert_eq!(member.poll_timeout(), Some(due));
        assert!(member.is_due(&machine, due));
        let picture = member.picture(&program, &machine, due);
        assert_eq!(picture.tasks[0].error_at, Instant(0), "it has had no error");
    }
}
