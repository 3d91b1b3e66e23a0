//! Scripts under the simulator: drawn, evaluated by managers that fail, over ways that lose and
//! repeat, and replaced while they are in force.
//!
//! | checker | promise |
//! |---|---|
//! | `obeyed-once` | no order is obeyed twice, and no error is answered by two orders (RL-3) |
//! | `answered` | a manager that is there answers each error; none is left unanswered (RL-3, RL-5) |
//! | `term` | who manages evaluates, and no task obeys a manager whose successor it has obeyed |
//! | `frozen` | the sections that hold are those that hold on the picture (RL-2) |
//! | `bound` | an evaluation gives at most 64 orders (RL-8); steps are bounded by the machine |
//! | `intensity` | restarts by order count in the task's intensity (RL-5) |
//! | `alpha` | all replicas have the alpha-count that the owner of a task computed (RL-7) |
//! | `one-script` | a script is in force once all members hold it, and then all use it (RL-12) |
//! | `vote` | no round of an N-version task has two outcomes, and no vote waits on (RL-10) |
//! | `progress` | once faults are over all are members again |
//!
//! What the DIR net promises holds, too. What a run leaves out: orders about nodes, groups, nested
//! sections, arithmetic and PAUSE, which the differential test of the translator draws.

use std::panic::{AssertUnwindSafe, catch_unwind};

use weft_core::dirnet::{Role, Timing};
use weft_core::time::Instant;

use super::ScriptLab;
use super::checks::Checks;
use super::drawn::DrawnScript;
use crate::dirnet::net::Setting;
use crate::dirnet::strike::{MS, NetStrike};
use crate::draws::{Draws, Purpose};
use crate::fault::Keep;
use crate::panics;
use crate::protocol::Violation;
use crate::run::{RunOutcome, RunPlan};

/// How long things happen, and within what all must be well then.
const STORM_MS: u64 = 6_000;
const CALM_MS: u64 = 40_000;
/// How often each node may fail, and its component, so that none is isolated for that.
const KILLS_MAX: u32 = 2;
const ENDS_MAX: u32 = 2;
/// Scripts of a run, each of which is loaded once at most. Another one is the last.
const SCRIPTS: usize = 4;

/// What happens in a run.
#[derive(Clone, Copy, Debug)]
enum ScriptedEvent {
    /// A task reports so many errors.
    Error(u8, u64),
    /// The watched task sends no heartbeat.
    Silence,
    Kill(u16),
    /// The node of the manager fails.
    KillManager,
    /// A component ends.
    End(u16),
    /// That of the manager.
    EndManager,
    Stall(u16, u64),
    /// No message gets from one node to another for so long.
    Cut(u16, u16, u64),
    /// All versions vote.
    Vote(u64),
    /// An operator loads that script.
    Load(usize),
}

/// A run under way.
struct ScriptedRun {
    lab: ScriptLab,
    scripts: Vec<DrawnScript>,
    deeds: Vec<(u64, u32, ScriptedEvent)>,
    checks: Checks,
    happened: Vec<u32>,
    kills: Vec<u32>,
    ends: Vec<u32>,
    is_voting: bool,
}

/// Runs `plan` to its end.
#[must_use]
pub(crate) fn run(plan: &RunPlan) -> RunOutcome {
    let mut run = ScriptedRun::new(plan);
    let panic = panics::quietly(|| catch_unwind(AssertUnwindSafe(|| run.go())));
    let violation = match panic {
        Err(message) => Some(Violation::new("panic", message)),
        Ok(done) => done.err(),
    };
    run.outcome(violation)
}

impl ScriptedRun {
    fn new(plan: &RunPlan) -> Self {
        let mut draws = Draws::new(plan.seed, Purpose::Setup);
        let nodes = draws.between(2, 4) as u8;
        let is_voting = draws.chance(1, 3);
        let mut script = |source| {
            let sections = draws.between(0, 3) as u16;
            DrawnScript::draw(&mut draws, nodes, source, is_voting, sections)
        };
        let mut scripts: Vec<_> = (1..=SCRIPTS as u64).map(&mut script).collect();
        // Without sections, which may order without end.
        scripts.push(DrawnScript::draw(&mut draws, nodes, 9, is_voting, 0));
        let majority = u16::from(nodes) / 2 + 1;
        let setting = Setting {
            lost: draws.pick(&[0, 0, 20, 100]),
            repeated: draws.pick(&[0, 0, 50]),
            // Of two managers each decides rounds of its own, so votes need a majority (RL-10).
            min_alive: if is_voting { majority } else { draws.pick(&[1, majority]) },
            lost_in_a_row_max: 2,
            ..Setting::fair(nodes.into(), Timing::LAN, draws.pick(&[2, 2, 8]) * MS)
        };
        let mut lab = ScriptLab::set_up(&scripts[0].image, &setting, &[nodes], plan.seed);
        lab.net.trace = plan.trace.clone();
        let deeds = deeds(&mut Draws::new(plan.seed, Purpose::Faults), nodes, is_voting);
        let is_kept = |number: &u32| match &plan.keep {
            Keep::All => true,
            Keep::Only(numbers) => numbers.contains(number),
        };
        let numbered = deeds.into_iter().zip(0..).map(|((at, deed), number)| (at, number, deed));
        Self {
            checks: Checks::new(scripts[0].digest),
            deeds: numbered.filter(|(_, number, _)| is_kept(number)).collect(),
            lab,
            scripts,
            happened: Vec::new(),
            kills: vec![0; usize::from(nodes)],
            ends: vec![0; usize::from(nodes)],
            is_voting,
        }
    }

    fn go(&mut self) -> Result<(), Violation> {
        let mut deeds = std::mem::take(&mut self.deeds).into_iter().peekable();
        for ms in 0..STORM_MS {
            while let Some((_, number, deed)) = deeds.next_if(|(at, ..)| *at <= ms) {
                self.happened.push(number);
                self.lab.net.note(|| format!("fault {number}: {deed:?}"));
                self.act(deed);
            }
            self.step()?;
        }
        self.lab.net.calm_down();
        let mut kept = 0;
        for ms in 0..CALM_MS {
            self.step()?;
            if !self.load_last(ms) {
                continue;
            }
            while let Some((_, what)) = self.checks.missing(&self.lab, kept) {
                if what.is_some() {
                    break;
                }
                kept += 1;
            }
            if self.checks.missing(&self.lab, kept).is_none() {
                return Ok(());
            }
        }
        let missing = self.checks.missing(&self.lab, kept);
        let broken = |(checker, what): (_, Option<String>)| {
            Violation::new(checker, what.unwrap_or_default())
        };
        missing.map_or(Ok(()), |missing| Err(broken(missing)))
    }

    /// An operator has the last script loaded, again where that was refused; returns whether it is
    /// in force.
    fn load_last(&mut self, ms: u64) -> bool {
        let last = &self.scripts[SCRIPTS];
        let is_in_force = self.checks.is_in_force(last.digest);
        if !is_in_force && ms.is_multiple_of(500) {
            // Refused while no node manages, and while another one is under way.
            _ = self.lab.reload(&last.image);
        }
        is_in_force
    }

    fn step(&mut self) -> Result<(), Violation> {
        self.lab.step();
        self.checks.look(&mut self.lab, &self.scripts)
    }

    fn act(&mut self, deed: ScriptedEvent) {
        let lab = &mut self.lab;
        match deed {
            ScriptedEvent::Error(task, count) => (0..count).for_each(|_| lab.error(task, 7)),
            ScriptedEvent::Silence => lab.silence(self.kills.len() as u8 - 1),
            ScriptedEvent::Kill(node) => self.kill(node),
            ScriptedEvent::KillManager => {
                self.manager().into_iter().for_each(|node| self.kill(node));
            }
            ScriptedEvent::End(node) => self.end(node),
            ScriptedEvent::EndManager => self.manager().into_iter().for_each(|node| self.end(node)),
            ScriptedEvent::Stall(node, ms) => lab.net.strike(0, NetStrike::Stall(node, ms)),
            ScriptedEvent::Cut(from, to, ms) => lab.net.strike(0, NetStrike::Cut(from, to, ms)),
            ScriptedEvent::Vote(number) => self.vote(number),
            // Refused while no node manages, and while another one is under way.
            ScriptedEvent::Load(script) => drop(lab.reload(&self.scripts[script].image)),
        }
    }

    fn manager(&self) -> Option<u16> {
        let mut components = self.lab.net.components();
        components.find(|it| it.role() == Role::Manager).map(|it| it.me().0)
    }

    /// One node is down at a time: otherwise none may be left that knows of a removal.
    fn kill(&mut self, node: u16) {
        let count = &mut self.kills[usize::from(node)];
        if *count < KILLS_MAX && self.lab.net.missing().is_none() {
            *count += 1;
            self.lab.net.strike(0, NetStrike::Crash(node));
        }
    }

    fn end(&mut self, node: u16) {
        let count = &mut self.ends[usize::from(node)];
        if *count < ENDS_MAX && self.lab.net.component_of(node).is_some() {
            *count += 1;
            self.lab.net.strike(0, NetStrike::End(node));
        }
    }

    /// All versions vote on what comes after the last round that their nodes know.
    fn vote(&mut self, number: u64) {
        for version in 1..=self.kills.len() as u8 {
            if !self.is_voting || number >> (2 * version) & 3 == 0 {
                continue;
            }
            let votes = self.lab.votes.get(&u16::from(version - 1));
            let round = votes.map_or(1, |votes| votes.last_over(1) + 1);
            self.lab.vote(1, version, round, (number >> (8 + version) & 1) as i64);
        }
    }

    fn outcome(mut self, violation: Option<Violation>) -> RunOutcome {
        if let Some(violation) = &violation {
            self.lab.net.note(|| format!("VIOLATION of {violation}"));
        }
        RunOutcome {
            violation,
            faults: self.happened,
            orders: 0,
            events: self.lab.net.events,
            took: Instant(self.lab.net.now),
            trace: self.lab.net.trace.take(),
        }
    }
}

/// What happens, by its time in ms.
fn deeds(draws: &mut Draws, nodes: u8, is_voting: bool) -> Vec<(u64, ScriptedEvent)> {
    let mut deeds = Vec::new();
    let mut loads = 1;
    for _ in 0..draws.between(5, 60) {
        let at = draws.below(STORM_MS);
        let node = |draws: &mut Draws| draws.below(nodes.into()) as u16;
        let deed = match draws.below(24) {
            0 => ScriptedEvent::Silence,
            1 => ScriptedEvent::Kill(node(draws)),
            // The manager fails between error and order, or between order and answer.
            2 | 3 => {
                let after = draws.below(14);
                deeds.push((at + after, ScriptedEvent::KillManager));
                ScriptedEvent::Error(draws.below(u64::from(nodes) + 1) as u8, 1)
            }
            4 => ScriptedEvent::End(node(draws)),
            5 => {
                deeds.push((at + draws.below(14), ScriptedEvent::EndManager));
                ScriptedEvent::Error(draws.below(u64::from(nodes) + 1) as u8, 1)
            }
            6 => ScriptedEvent::Stall(node(draws), draws.between(1, 400)),
            7 => ScriptedEvent::Cut(node(draws), node(draws), draws.between(1, 600)),
            8..=10 if is_voting => {
                // Within the few milliseconds that an outcome takes.
                if draws.chance(1, 3) {
                    deeds.push((at + draws.below(14), ScriptedEvent::KillManager));
                }
                ScriptedEvent::Vote(draws.word())
            }
            11 | 12 if loads < SCRIPTS => {
                loads += 1;
                if draws.chance(1, 3) {
                    deeds.push((at + draws.below(14), ScriptedEvent::KillManager));
                }
                ScriptedEvent::Load(loads - 1)
            }
            _ => ScriptedEvent::Error(
                draws.below(u64::from(nodes) + 1) as u8,
                draws.pick(&[1, 1, 1, 3]),
            ),
        };
        deeds.push((at, deed));
    }
    deeds.sort_by_key(|(at, _)| *at);
    deeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rl3_every_promise_of_scripts_is_kept_for_many_seeds() {
        let mut wrong = Vec::new();
        let (mut outdated, mut terms, mut reloaded, mut rounds) = (0, 0, 0, 0);
        for seed in 0..40 {
            let mut run = ScriptedRun::new(&RunPlan::of(seed));
            wrong.extend(run.go().err().map(|broken| format!("seed {seed}: {broken}")));
            outdated += run.checks.outdated;
            terms += run.checks.terms.len() - 1;
            reloaded += run.checks.reloaded;
            rounds += run.checks.rounds();
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        // Otherwise nothing of it was put to the test.
        assert!(outdated > 0 && terms > 10, "{outdated} outdated, {terms} successions");
        assert!(reloaded > 10 && rounds > 10, "{reloaded} reloads, {rounds} rounds");
    }
}
