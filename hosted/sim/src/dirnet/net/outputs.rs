//! What machines send, and what their receivers make of it.

use weft_core::dirnet::{Members, News, Output, Seat};
use weft_core::ids::Rank;
use weft_core::time::Instant;

use super::{Net, NetFlight};
use crate::dirnet::admission::Up;

impl Net {
    pub(super) fn land_frame(&mut self, flight: NetFlight) {
        let NetFlight::Frame { from, to, seat, is_lane, frame } = flight else { return };
        let now = Instant(self.now);
        let it = self.node(to);
        let stalls = match seat {
            Seat::Component => it.component_stalls.map_or(0, |(_, until)| until),
            Seat::ImAliveTask => it.task_stalls,
        };
        if stalls > now.0 {
            return self.postpone(stalls, flight);
        }
        if is_lane && !it.connects(from, frame.incarnation.boot) {
            return;
        }
        // It sends one thing only to its own task: the order to watch it.
        if seat == Seat::ImAliveTask
            && from == to
            && it.is_component(frame.incarnation)
            && let Some(supervisor) = &mut it.supervisor
        {
            supervisor.starts.handle_watched();
            supervisor.decider.handle_watched();
        }
        let handled = match (seat, &mut it.component, &mut it.task) {
            (Seat::Component, Some(component), _) => {
                component.handle_message(now, Rank(from), &frame)
            }
            (Seat::ImAliveTask, _, Some(task)) => {
                task.handle_message(now, Rank(from), &frame, it.progress)
            }
            _ => return,
        };
        self.ledger.handle_frame(now, Rank(to), &frame, handled);
        let name = frame.message.name();
        self.note(|| format!("{to} hears {name} of {from}: {handled:?}"));
        self.drain(to);
    }

    pub(super) fn land_beat(&mut self, from: u16, to: u16) {
        let now = Instant(self.now);
        let it = self.node(to);
        let beat = it.cells.get(&from).copied();
        if let Some(until) = it.component_stalls_until(now.0) {
            return self.postpone(until, NetFlight::Beat { from, to });
        }
        let Some(beat) = beat.filter(|beat| it.connects(from, beat.incarnation.boot)) else {
            return;
        };
        if let Some(component) = &mut it.component {
            // The component counts refusals; the run continues either way.
            let _ = component.handle_heartbeat(now, Rank(from), &beat);
        }
        self.drain(to);
    }

    pub(super) fn drain(&mut self, node: u16) {
        let count = u16::try_from(self.nodes.len()).unwrap_or(u16::MAX);
        let it = &mut self.nodes[usize::from(node)];
        let mut outputs = Vec::new();
        if let Some(component) = &mut it.component {
            let all = std::iter::from_fn(|| component.poll_output());
            outputs.extend(all.map(|output| (Seat::Component, output)));
            it.progress = component.progress();
            it.saved.save(count, component.database());
        }
        if let Some(task) = &mut it.task {
            let all = std::iter::from_fn(|| task.poll_output());
            outputs.extend(all.map(|output| (Seat::ImAliveTask, output)));
        }
        for (by, output) in outputs {
            let is_beat = matches!(output, Output::Beat { .. });
            if self.node(node).supervisor.is_none() || !is_beat && self.spends(node) {
                return;
            }
            self.perform(node, by, output);
        }
        // A term that was not saved was known to no other node either.
        let it = &self.nodes[usize::from(node)];
        if let Some(component) = &it.component {
            self.ledger.look(self.now, component);
            self.ledger.look_at_view(component, |peer, boot| it.has_fenced(peer, boot));
        }
        self.report_standings(node);
    }

    fn perform(&mut self, node: u16, by: Seat, output: Output) {
        let (now, boot) = (self.now, self.node(node).boot);
        match (&mut self.said.log, &output) {
            (None, _) | (_, Output::Beat { .. }) => {}
            (Some(log), output) => log.push((now, Rank(node), *output)),
        }
        match output {
            Output::Send { to, seat, frame } => {
                self.ledger.evidence.handle_sent(Instant(now), to, &frame);
                if to != Members::only(Rank(node)) {
                    self.last_frame = now;
                }
                for to in to.iter() {
                    let is_lane = by == Seat::Component && seat == by && to.0 != node;
                    let (from, to) = (node, to.0);
                    self.post(from, to, NetFlight::Frame { from, to, seat, is_lane, frame });
                }
            }
            Output::Beat { to, beat } => {
                self.said.beats += 1;
                self.node(to.0).cells.insert(node, beat);
                self.post(node, to.0, NetFlight::Beat { from: node, to: to.0 });
            }
            Output::Keep(term) => self.node(node).kept = Some(term),
            Output::Fence { node: other, boot } => {
                let after = self.draws.between(1, self.setting.fence_max);
                let number = self.node(node).process.as_ref().map_or(0, |it| it.number);
                self.post_at(
                    now + after,
                    NetFlight::Fenced { at: node, number, node: other, boot },
                );
            }
            Output::Reset { node: other, boot } => {
                self.check_fences(node, other, boot);
                self.up(node, Up::Reset(other, boot));
            }
            Output::Spawn { generation } => {
                self.post_at(now + 1, NetFlight::Spawn { at: node, boot, generation });
            }
            Output::Verdict(why) => {
                let name = why.rule.name();
                self.note(|| format!("{node}: {:?} {} {name}", why.verdict, why.node));
                self.ledger.handle_verdict(&why, &self.setting.timing);
            }
            Output::Tell(News::Excluded) => {
                self.ledger.handle_excluded(Rank(node));
                self.report_standings(node);
                self.up(node, Up::Excluded);
            }
            Output::Tell(news) => self.note(|| format!("{node} tells {news:?}")),
            Output::Task { .. } | Output::Vote { .. } => {}
        }
    }
}
