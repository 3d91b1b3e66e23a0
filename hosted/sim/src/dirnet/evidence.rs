//! The alarms and testimonies that observers received, against which the explanations of their
//! verdicts are checked (X-2).
//!
//! ```text
//!  TEIF of node ─▶ observer ─┐
//!  WITNESS, round 7 ─▶ ···   ├─▶ verdict of the observer: at most R + W later, by the answers to
//!  TESTIMONY, round 7 ─▶ ────┘   its last question, as they were
//! ```

use std::collections::BTreeMap;

use weft_core::dirnet::{
    Explanation, Frame, Members, Message, Question, Reject, Rule, Seen, Term, Timing, Verdict,
};
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::Instant;

use super::net::ENDS_MAX;

/// An observer and the node that it judges.
type Judged = (Rank, Rank);

/// The alarms and testimonies that reached each observer.
#[derive(Debug, Default)]
pub(super) struct Witnessed {
    alarms: BTreeMap<Judged, u64>,
    /// The round of the last question to witnesses, and when it was asked.
    rounds: BTreeMap<Judged, (u32, u64)>,
    testimonies: BTreeMap<(Judged, Rank), (u64, Seen)>,
    /// When each node last took over. It may judge the manager before by older evidence: that
    /// manager's loss waits for the turns of the candidates that go first.
    took_over: BTreeMap<Rank, u64>,
    /// The last boot of each node that was ordered to be reset.
    reset_up_to: BTreeMap<Rank, Incarnation>,
    /// When each node was last handed over to, by the term that it claims then.
    handed_over: BTreeMap<(Rank, Option<Term>), u64>,
    /// How often each node was removed, or reset once more in the same boot.
    resets: BTreeMap<Rank, u16>,
}

impl Witnessed {
    /// A node sends `frame` to a component of these.
    pub(super) fn handle_sent(&mut self, now: Instant, to: Members, frame: &Frame) {
        if let Message::HandOver { .. } = frame.message {
            let next = |to| (to, frame.term.claimed_by(to));
            self.handed_over.extend(to.iter().map(|to| (next(to), now.0)));
        }
        if let Message::Witness { question: Question { node, asker, round }, .. } = frame.message
            && asker == frame.sender
        {
            self.rounds.insert((asker, node), (round, now.0));
        }
    }

    /// `at` has handled `frame`. Returns what is wrong with that.
    pub(super) fn handle_frame(
        &mut self,
        now: Instant,
        at: Rank,
        frame: &Frame,
        handled: Result<(), Reject>,
    ) -> Option<String> {
        match frame.message {
            Message::Teif { .. } => {
                self.alarms.insert((at, frame.sender), now.0);
                None
            }
            Message::Testimony { question: Question { node, asker, round }, witness, seen }
                if asker == at && handled == Ok(()) =>
            {
                self.testimonies.insert(((at, node), witness), (now.0, seen));
                let asked = self.rounds.get(&(at, node)).map(|(asked, _)| *asked);
                (asked != Some(round))
                    .then(|| format!("node {at} accepts an answer about {node} to a past question"))
            }
            _ => None,
        }
    }

    /// What is wrong with the explanation of a verdict in a cluster of `nodes` nodes.
    pub(super) fn judge(
        &mut self,
        why: &Explanation,
        nodes: usize,
        timing: &Timing,
    ) -> Option<String> {
        let (pair, decided) = ((why.observer, why.node), why.decided.0);
        let fresh = timing.receive.0 + timing.window.0;
        let what = match why.verdict {
            Verdict::TookOver => {
                self.took_over.insert(why.observer, decided);
                let is_ordered = why.rule == Rule::HandOver;
                is_ordered.then(|| self.judge_handover(why, fresh)).flatten()
            }
            Verdict::AgentDown | Verdict::NodeDown => {
                let takes_over = self.took_over.get(&why.observer) == Some(&decided);
                let turns = if takes_over { nodes as u64 * timing.candidate.0 } else { 0 };
                let alarm = self.judge_alarm(pair, why, fresh + turns);
                alarm.or_else(|| self.judge_testimonies(pair, why, fresh + turns))
            }
            Verdict::Isolated if why.rule == Rule::Intensity => self.judge_intensity(why.node),
            Verdict::Isolated | Verdict::Admitted => None,
        };
        if why.verdict == Verdict::NodeDown {
            *self.resets.entry(why.node).or_default() += 1;
        }
        let is_silent = why.verdict == Verdict::NodeDown && why.rule == Rule::Silence;
        let is_alone = nodes > 2 && why.evidence.testimonies.count() == 0;
        let what = what.or_else(|| (is_silent && is_alone).then(|| "no witness".into()));
        let by = why.rule.name();
        what.map(|what| format!("{} judges {} by {by}: {what}", why.observer, why.node))
    }

    /// A manager orders the reset of boot `boot` of `node`.
    pub(super) fn handle_reset(&mut self, node: Rank, boot: Incarnation) {
        let before = self.reset_up_to.insert(node, boot);
        *self.resets.entry(node).or_default() += u16::from(before >= Some(boot));
    }

    /// A node that a manager isolates for its many resets had them (X-6).
    fn judge_intensity(&self, node: Rank) -> Option<String> {
        let resets = self.resets.get(&node).copied().unwrap_or_default();
        (resets < ENDS_MAX).then(|| format!("it was reset {resets} times"))
    }

    /// Who takes over by an order was given it lately, in the term before.
    fn judge_handover(&self, why: &Explanation, fresh: u64) -> Option<String> {
        match self.handed_over.get(&(why.observer, Some(why.term))) {
            None => Some("no manager of the term before has handed over to it".into()),
            Some(at) if at + fresh < why.decided.0 => Some("the order is old".into()),
            Some(_) => None,
        }
    }

    fn judge_alarm(&self, pair: Judged, why: &Explanation, fresh: u64) -> Option<String> {
        why.evidence.alarm?;
        let decided = why.decided.0;
        match self.alarms.get(&pair) {
            None => Some("it was sent no alarm".into()),
            Some(at) if *at < why.heard.0 => Some("it has heard the node since the alarm".into()),
            Some(at) if at + fresh < decided => Some("the alarm is old".into()),
            Some(_) => None,
        }
    }

    fn judge_testimonies(&self, pair: Judged, why: &Explanation, fresh: u64) -> Option<String> {
        let said = &why.evidence.testimonies;
        if why.verdict == Verdict::NodeDown && !said.met.is_empty() {
            return Some("a witness meets the node".into());
        }
        // Whom a node meets may have changed since it was asked.
        let asked_at = self.rounds.get(&pair).map_or(why.decided.0, |(_, at)| *at);
        if said.count() > 0 && asked_at + fresh < why.decided.0 {
            return Some("the question to its witnesses is old".into());
        }
        for witness in said.met_task.iter().chain(said.met_neither.iter()) {
            let Some((at, seen)) = self.testimonies.get(&(pair, witness)) else {
                return Some(format!("witness {witness} has not answered"));
            };
            if at + fresh < why.decided.0 {
                return Some(format!("the answer of witness {witness} is old"));
            }
            if seen.component || seen.task != said.met_task.contains(witness) {
                return Some(format!("witness {witness} answered otherwise"));
            }
        }
        None
    }
}
