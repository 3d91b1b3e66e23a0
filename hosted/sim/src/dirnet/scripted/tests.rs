//! Scripts over nodes that fail, managers among them, and ways that lose and delay orders.
//!
//! | checker | promise |
//! |---|---|
//! | `obeyed-once` | no order takes effect twice, and no error is answered by two orders (RL-3) |
//! | `term` | a task obeys no manager whose successor it has obeyed |
//! | `answered` | once faults are over, no declared task has an unanswered error |
//! | `vote` | no round of an N-version task has two outcomes (RL-10) |
//! | `bound` | an evaluation runs at most as many steps as there are words (RL-8) |

mod voted;

use std::collections::BTreeMap;

use weft_core::dirnet::Verdict;
use weft_core::ids::Term;
use weft_core::recovery::{Expected, ORDERS_MAX, verify};

use super::*;
use crate::draws::{Draws, Purpose};

const DECLARED: &str = "DEFINE 0 = MANAGER\nDEFINE 1-3 = BACKUP\n\
                        TASK 0 = \"a\" IS NODE 0, TASKID 0\nTASK 1 = \"b\" IS NODE 1, TASKID 0\n\
                        TASK 2 = \"c\" IS NODE 2, TASKID 0\nTASK 3 = \"d\" IS NODE 3, TASKID 0\n";

/// Each answers errors only, so every order that is obeyed must answer one more.
const SCRIPTS: &[&str] = &[
    "IF [ FAULTY T* ] THEN\nRESTART @1\nFI\n",
    "DEFAULT = RESTART\n",
    "DEFAULT = NOTHING\n",
    "DEFAULT = BUILTIN\n",
    "IF [ FAULTY T* AND RUNNING N0 ] THEN\nREMOVE 1 @1 FROM ERRORLIST\nFI\n",
];

fn image(script: &str) -> Vec<u8> {
    let text = format!("{DECLARED}{script}");
    let reader: &mut weft_rl::Reader<'_> = &mut |_, _| Err("there is none".into());
    let translation = weft_rl::translate("test.rl", &text, None, reader);
    let drawn = translation.render();
    translation.image.expect(&drawn)
}

/// What is checked as it happens.
#[derive(Default)]
struct Checked {
    /// Of each task, the term and the mark of the last order that was obeyed.
    obeyed: BTreeMap<u8, (Term, u32)>,
    outdated: u32,
    terms: Vec<Term>,
    isolated: Vec<Rank>,
    verdicts: Vec<(Verdict, Rank, &'static str)>,
}

impl Checked {
    fn look(&mut self, words: u16, happening: &Happening) -> Result<(), String> {
        match happening {
            Happening::Evaluated(_, trace) => {
                if trace.steps > words || usize::from(trace.orders) > ORDERS_MAX {
                    return Err(format!("bound: {trace:?}"));
                }
                if !self.terms.contains(&trace.term) {
                    self.terms.push(trace.term);
                }
            }
            Happening::Obeyed(placed) => {
                let (Order::Task { task, mark, .. }
                | Order::Answer { task, mark }
                | Order::Builtin { task, mark }) = placed.order
                else {
                    return Ok(());
                };
                let before = self.obeyed.insert(task, (placed.id.term, mark));
                let (term, answered) = before.unwrap_or_default();
                if mark <= answered {
                    return Err(format!("obeyed-once: {placed:?} behind {answered}"));
                }
                if placed.id.term < term {
                    return Err(format!("term: {placed:?} behind {term:?}"));
                }
            }
            Happening::Outdated(_) => self.outdated += 1,
            Happening::Verdict(why) => {
                if why.verdict == Verdict::Isolated {
                    self.isolated.push(why.node);
                }
                self.verdicts.push((why.verdict, why.node, why.rule.name()));
            }
            Happening::Ordered(_)
            | Happening::Task(..)
            | Happening::Voted(..)
            | Happening::Notified(..)
            | Happening::NotVoted(..) => {}
        }
        Ok(())
    }
}

/// Kills a node, unless that could isolate it or leave too few to reset the others.
fn kill(lab: &mut ScriptLab<'_>, kills: &mut [u32; 4], node: u8) {
    let down = lab.boots.iter().filter(|boot| boot.is_none()).count();
    let count = &mut kills[usize::from(node)];
    if down == 0 && *count < 3 {
        *count += 1;
        lab.kill(node);
    }
}

/// As an operator does: a manager that dies between a removal and the reset leaves the node down,
/// and the next one does not reset it.
fn start_what_is_down(lab: &mut ScriptLab<'_>, checked: &Checked) {
    let down = lab.boots.iter().zip(0..).filter(|(boot, _)| boot.is_none());
    let nodes: Vec<u16> = down.map(|(_, node)| node).collect();
    for node in nodes.into_iter().filter(|node| !checked.isolated.contains(&Rank(*node))) {
        lab.net.strike(0, Strike::Restart(node));
    }
}

/// Eight seconds of faults, and as long as it takes until all is well.
fn run(program: &Program<'_>, seed: u64) -> Result<Checked, String> {
    let mut lab = ScriptLab::settled(program, Timing::LAN, &[], seed);
    let mut draws = Draws::new(seed, Purpose::Faults);
    let (late_max, lost) = (draws.pick(&[1, 50, 1_500]) * MS, draws.pick(&[0, 100, 500]));
    lab.rough = Some(Rough { draws: Draws::new(seed, Purpose::Schedule), late_max, lost });
    let mut checked = Checked::default();
    let mut kills = [0; 4];
    // A node is sent an order at a time, and a slow link takes 1.5 s for each: up to 20 of them.
    while lab.now_us() < 40_000_000 {
        if lab.now_us() < 8_000_000 && draws.chance(1, 150) {
            let whom = draws.below(4) as u8;
            match draws.below(12) {
                0 => kill(&mut lab, &mut kills, whom),
                // The manager fails between error and order, or between order and answer.
                1 => {
                    (0..4).for_each(|task| lab.error(task, 9));
                    (0..draws.below(12)).for_each(|_| lab.step());
                    let manager = lab.acting.keys().next().map_or(whom, |node| *node as u8);
                    kill(&mut lab, &mut kills, manager);
                }
                2 => lab.crash(whom),
                _ => lab.error(whom, 7),
            }
        }
        if lab.now_us() == 14_000_000 {
            start_what_is_down(&mut lab, &checked);
        }
        lab.step();
        for (_, happening) in lab.take_events() {
            checked.look(program.code().header().words, &happening)?;
        }
    }
    // A node that was isolated stays down, and its tasks with it.
    let stays = |node: u8| checked.isolated.contains(&Rank(node.into()));
    let mut nodes = lab.boots.iter().zip(0..);
    if let Some((_, node)) = nodes.find(|(boot, node)| boot.is_none() && !stays(*node)) {
        return Err(format!("answered: node {node} has not come back: {:?}", checked.verdicts));
    }
    let now = Instant(lab.net.now);
    let is_faulty =
        |(_, task): &(&u8, &GuardedTask)| task.fact(now).is_faulty() && !stays(task.node());
    match lab.tasks.iter().find(is_faulty) {
        Some((number, task)) => Err(format!("answered: T{number} {:?}", task.fact(now))),
        None => Ok(checked),
    }
}

#[test]
fn rl3_every_promise_of_scripts_is_kept_for_many_seeds() {
    let expected = Expected { nodes: None, keeps_rules: |_| true };
    let (mut outdated, mut successions, mut wrong) = (0, 0, Vec::new());
    for seed in 0..20 {
        let image = image(SCRIPTS[seed as usize % SCRIPTS.len()]);
        let program = verify(&image, &expected).expect("it was translated");
        match run(&program, seed) {
            Ok(checked) => {
                outdated += checked.outdated;
                successions += checked.terms.len() - 1;
            }
            Err(what) => wrong.push(format!("seed {seed}: {what}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Otherwise nothing of it was put to the test.
    assert!(outdated > 0 && successions > 0, "{outdated} outdated, {successions} successions");
}
