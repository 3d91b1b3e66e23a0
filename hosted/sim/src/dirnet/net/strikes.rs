//! The strikes of a run, as they happen.

use weft_core::dirnet::End;

use super::Net;
use crate::dirnet::strike::{self, NetStrike};

impl Net {
    pub(in crate::dirnet) fn strike(&mut self, number: u32, strike: NetStrike) {
        self.happened.push(number);
        self.note(|| format!("fault {number}: {strike:?}"));
        let (now, unit) = (self.now, self.setting.unit);
        match strike {
            NetStrike::Crash(node) => self.crash(node),
            NetStrike::CrashBetween(node, outputs) => self.node(node).outputs_left = Some(outputs),
            NetStrike::Restart(node) => {
                self.crash(node);
                self.start_node(node);
            }
            NetStrike::Hang(node) => self.hang(node),
            NetStrike::End(node) => {
                let is_killed = self.draws.chance(1, 2);
                self.end_process(node, if is_killed { End::Killed } else { End::Failed });
            }
            NetStrike::Damage(node, damage) => self.node(node).saved.damage(damage),
            NetStrike::StopTimers(node) => self.node(node).has_dead_timers = true,
            NetStrike::Stall(node, ms) => {
                self.stall_component(node, ms);
                self.stall_supervisor(node, ms);
            }
            NetStrike::StallComponent(node, ms) => self.stall_component(node, ms),
            NetStrike::StopSupervisor(node, ms) => {
                self.stall_supervisor(node, ms);
            }
            NetStrike::Cut(from, to, ms) if from != to => self.cut((from, to), ms),
            NetStrike::Cut(..) => {}
            NetStrike::Sever(from, to) => self.sever(from, to),
            NetStrike::RefuseSpawns(node, ms) => self.node(node).refuses_spawns = now + ms * unit,
            NetStrike::Deafen(node, ms) => {
                for other in (0..self.nodes.len() as u16).filter(|other| *other != node) {
                    self.cut((other, node), ms);
                }
            }
            NetStrike::RefuseAllSpawns(ms) => {
                self.nodes.iter_mut().for_each(|it| it.refuses_spawns = now + ms * unit);
            }
            NetStrike::CutSet(ways, ms) => {
                let count = self.nodes.len() as u16;
                for (from, to) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))) {
                    if from != to && ways & strike::way(from, to) != 0 {
                        self.cut((from, to), ms);
                    }
                }
            }
            NetStrike::Lose(node, other) if node != other => self.lose(node, other),
            NetStrike::Lose(..) => {}
            NetStrike::Isolate(by, node) => self.isolate(by, node),
            NetStrike::Release(node) => self.release(node),
            NetStrike::HandOver(by, node) => self.hand_over(by, node),
            NetStrike::Partition(ms) => {
                let count = self.nodes.len() as u16;
                for (one, other) in
                    (0..count / 2).flat_map(|a| (count / 2..count).map(move |b| (a, b)))
                {
                    self.cut((one, other), ms);
                    self.cut((other, one), ms);
                }
            }
        }
    }

    /// A stall ends no earlier one: messages that wait for its end keep their order.
    fn stall_component(&mut self, node: u16, ms: u64) {
        let (now, until) = (self.now, self.now + ms * self.setting.unit);
        let it = self.node(node);
        it.component_stalls = Some(prolonged(it.component_stalls, now, until));
    }

    /// The supervisor stalls, with its I'm-Alive Task.
    fn stall_supervisor(&mut self, node: u16, ms: u64) {
        let (now, until) = (self.now, self.now + ms * self.setting.unit);
        let it = self.node(node);
        it.task_stalls = until.max(it.task_stalls);
        it.supervisor_stalls = Some(prolonged(it.supervisor_stalls, now, until));
    }
}

/// A stall of something that may stall already.
fn prolonged(before: Option<(u64, u64)>, now: u64, until: u64) -> (u64, u64) {
    let (since, end) = before.filter(|(_, end)| now < *end).unwrap_or((now, until));
    (since, until.max(end))
}
