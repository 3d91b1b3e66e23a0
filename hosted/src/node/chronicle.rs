//! What happened at a node and why, kept for `weft status --why` and the demonstration.
//!
//! The supervisor keeps the ring, so that it outlives the component that reached the verdicts; what
//! must also outlive the supervisor, other nodes keep too (`evidence`). Times are those of this
//! host's clock, which all of its processes share, so that the chronicles of the nodes of one host
//! can be merged by time.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use weft_core::dirnet::{Alarm, Explanation, Members, News, Rule, Verdict};
use weft_core::ids::Rank;

use super::control::TaskFault;

/// The most entries that are kept.
const ENTRIES: usize = 512;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The time, by the clock of the observer's host, in nanoseconds.
    pub at_ns: u64,
    /// The node that noted it.
    pub observer: u16,
    /// The node that it is about.
    pub node: u16,
    /// The event.
    pub what: What,
}

/// An event that can be noted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A component of the node was started.
    Started {
        /// Its incarnation.
        incarnation: u32,
    },
    /// A component of the node has ended.
    Ended {
        /// Its incarnation.
        incarnation: u32,
        /// Its exit status.
        status: String,
    },
    /// Its component cannot be started, or cannot go on.
    Failed {
        /// The cause.
        cause: String,
        /// The cure.
        cure: String,
    },
    /// Every running peer has greeted its component.
    Running {
        /// Its incarnation.
        incarnation: u32,
    },
    /// The I'm-Alive Task has raised its alarm.
    Alarm {
        /// The reason.
        why: String,
    },
    /// Its component hung before its I'm-Alive Task watched it, and was killed.
    HungEarly {
        /// For how long it made no progress, in milliseconds.
        ms: u64,
    },
    /// Its incarnation or the link to its node has ended, as its supervisor or the kernel reports.
    Gone,
    /// It is not heard of: it is gone, or was silent for too long.
    Suspected,
    /// A suspect was heard of again.
    Restored,
    /// The observer's own loop was late, and extended the deadlines of others by as much.
    Late {
        /// By how many milliseconds.
        ms: u64,
    },
    /// A report for the operator.
    Noted {
        /// Its text.
        words: String,
    },
    /// A verdict was reached.
    Verdict(VerdictNote),
    /// Its boots up to `boot` are fenced here.
    Fenced {
        /// The last fenced boot.
        boot: u32,
    },
    /// The manager ordered its reset.
    ResetOrdered {
        /// The boot that has ended.
        boot: u32,
        /// Whether a device or program can reset it; otherwise the operator must.
        possible: bool,
    },
    /// It sent different messages under one number, or the replayer shows one that it did not send.
    Disputed {
        /// The first such number of its broadcasts.
        seq: u64,
        /// The node that shows another message.
        replayer: u16,
    },
    /// It provably sent different messages under one number.
    Proven {
        /// Under which number of its broadcasts.
        seq: u64,
    },
    /// A member wrote over the reservation word of its mailbox, or answered wrongly.
    Forged {
        /// What showed the last of them.
        tickets: u64,
        /// What showed the last of them.
        evidence: String,
    },
    /// It was removed, and restarts.
    Reborn,
    /// An operator has released it from isolation.
    Released,
    /// The command of a hook has run for an event that concerns it.
    Hook(HookNote),
    /// One of its tasks has started, ended, or hangs.
    Task(TaskNote),
    /// A fault was injected into it, or was healed.
    Injected {
        /// The fault, for people.
        fault: String,
    },
}

/// What has become of a task (M-15).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNote {
    /// The task's name.
    pub task: String,
    /// The change.
    pub change: TaskStep,
}

/// A change of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStep {
    /// Its first process has started.
    Started,
    /// Its next process has started.
    Restarted,
    /// Its process has ended with status 0.
    Finished,
    /// Its process has ended by order, or with its node.
    Stopped,
    /// Its process failed or cannot be started.
    Failed {
        /// The fault.
        fault: TaskFault,
    },
    /// Its process sent no beat in time, and is killed.
    Hung,
    /// It failed too often, and is not started again.
    Isolated,
    /// The process that guarded it for its node ended without a report, and it was ended.
    Lost,
}

impl TaskStep {
    /// The word for scripts.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Restarted => "restarted",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Failed { .. } => "failed",
            Self::Hung => "hung",
            Self::Isolated => "isolated",
            Self::Lost => "lost",
        }
    }
}

impl std::fmt::Display for TaskNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { task, change } = self;
        match change {
            TaskStep::Failed { fault } => write!(f, "task {task} failed: {fault}"),
            change => write!(f, "task {task} {}", change.as_str()),
        }
    }
}

/// The end of a hook's command (M-13).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookNote {
    /// The event, as `[hooks]` names it.
    pub event: String,
    /// The number of its view.
    pub view: u64,
    /// The incarnation that it is about, as boot and generation.
    pub incarnation: Option<String>,
    /// Why the command did not run, or failed.
    pub failure: Option<String>,
}

impl std::fmt::Display for HookNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { event, view, failure, .. } = self;
        match failure {
            None => write!(f, "hook {event} for view {view:#x} has run"),
            Some(failure) => write!(f, "hook {event} for view {view:#x}: {failure}"),
        }
    }
}

/// A verdict and its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictNote {
    /// The verdict.
    pub verdict: String,
    /// The rule that led to it.
    pub rule: String,
    /// The incarnation of the node, as its boot and the number of its component.
    pub incarnation: String,
    /// The term, as its epoch and its manager.
    pub term: String,
    /// The alarm that arrived, if one did.
    pub alarm: Option<String>,
    /// The members that were asked whether they meet the node.
    pub asked: Vec<u16>,
    /// Those that met its component.
    pub met_component: Vec<u16>,
    /// Those that met its I'm-Alive Task alone.
    pub met_task: Vec<u16>,
    /// Those that met neither.
    pub met_neither: Vec<u16>,
    /// How long before the verdict the node was last heard of, in microseconds; none for never.
    pub silent_us: Option<u64>,
}

impl VerdictNote {
    /// The incarnation of the node, as boot and generation.
    #[must_use]
    pub fn incarnation(&self) -> &str {
        &self.incarnation
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Started { incarnation } => write!(f, "component {incarnation} started"),
            Self::Ended { incarnation, status } => {
                write!(f, "component {incarnation} ended: {status}")
            }
            Self::Failed { cause, cure } => write!(f, "component failed: {cause}; {cure}"),
            Self::Running { incarnation } => write!(f, "component {incarnation} greeted by all"),
            Self::Alarm { why } => write!(f, "I'm-Alive Task raises the alarm: {why}"),
            Self::HungEarly { ms } => {
                write!(f, "hung for {ms} ms before its I'm-Alive Task watched it: killed")
            }
            Self::Gone => f.write_str("gone: its process has ended, or the link to its node"),
            Self::Suspected => f.write_str("suspected: not heard"),
            Self::Restored => f.write_str("heard again"),
            Self::Late { ms } => write!(f, "own loop was {ms} ms late"),
            Self::Noted { words } => f.write_str(words),
            Self::Verdict(note) => note.fmt(f),
            Self::Fenced { boot } => write!(f, "fenced, boot {boot}"),
            Self::ResetOrdered { boot, possible: true } => write!(f, "reset ordered, boot {boot}"),
            Self::ResetOrdered { boot, possible: false } => {
                write!(f, "boot {boot} must be reset by the operator")
            }
            Self::Disputed { seq, replayer } => write!(
                f,
                "lies, or node {replayer} does: they show different messages as number {seq}, \
                 which is not delivered"
            ),
            Self::Proven { seq } => {
                write!(f, "sent different messages as number {seq}: proven")
            }
            Self::Forged { tickets, evidence } => write!(
                f,
                "{tickets} forged tickets in its mailbox: {evidence}; a member wrote over the \
                 reservation word, or its fabric answered wrongly"
            ),
            Self::Reborn => f.write_str("was removed, and restarts"),
            Self::Released => f.write_str("released from isolation by order"),
            Self::Hook(note) => note.fmt(f),
            Self::Task(note) => note.fmt(f),
            Self::Injected { fault } => write!(f, "by order: {fault}"),
        }
    }
}

impl std::fmt::Display for VerdictNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by rule {}, term {}", self.verdict, self.rule, self.term)?;
        if self.rule == Rule::Intensity.name() && self.verdict == verdict_words(Verdict::Isolated) {
            f.write_str(": reset as often as `dirnet.reset` allows, and down again")?;
        }
        if let Some(us) = self.silent_us {
            write!(f, ", silent for {} ms", us / 1_000)?;
        }
        if let Some(alarm) = &self.alarm {
            write!(f, ", alarm: {alarm}")?;
        }
        if !self.asked.is_empty() {
            write!(f, ", asked: {}", joined(&self.asked))?;
        }
        let answered = [&self.met_component, &self.met_task, &self.met_neither];
        let words = ["met its component", "met its I'm-Alive Task alone", "met neither"];
        for (nodes, words) in answered.iter().zip(words).filter(|(nodes, _)| !nodes.is_empty()) {
            write!(f, ", {words}: {}", joined(nodes))?;
        }
        let has_answered = |node: &&u16| answered.iter().any(|nodes| nodes.contains(node));
        let silent: Vec<u16> = self.asked.iter().filter(|it| !has_answered(it)).copied().collect();
        if !silent.is_empty() {
            write!(f, ", silent: {}", joined(&silent))?;
        }
        Ok(())
    }
}

fn joined(nodes: &[u16]) -> String {
    nodes.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}

/// The text for an alarm.
pub(super) const fn alarm_words(alarm: Alarm) -> &'static str {
    match alarm {
        Alarm::NoProgress => "no progress, its flag stands still",
        Alarm::Ended => "the process ended",
        Alarm::SpawnFailed => "no clone can be spawned",
        Alarm::TimersStopped => "its timers stopped, it still hears others",
        Alarm::SupervisorHung => "its supervisor stands still, as its component reports",
    }
}

const fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::AgentDown => "component down",
        Verdict::NodeDown => "node down",
        Verdict::Isolated => "isolated",
        Verdict::Admitted => "admitted",
        Verdict::TookOver => "takes over as manager",
    }
}

impl What {
    /// Whether it is this verdict.
    #[must_use]
    pub fn is_verdict(&self, verdict: Verdict) -> bool {
        matches!(self, Self::Verdict(note) if note.verdict == verdict_words(verdict))
    }

    /// Whether it is this alarm.
    #[must_use]
    pub fn is_alarm(&self, alarm: Alarm) -> bool {
        matches!(self, Self::Alarm { why } if why == alarm_words(alarm))
    }

    /// Whether it is this news, which names no node but the one that the entry is about.
    #[must_use]
    pub fn is_news(&self, news: News) -> bool {
        *self == Self::news(news, Rank(0)).1
    }

    /// The entry for the explanation of a verdict.
    pub(super) fn verdict(of: &Explanation) -> Self {
        let ranks = |set: Members| set.iter().map(|rank| rank.0).collect();
        let said = of.evidence.testimonies;
        let heard = (of.heard.0 > 0).then(|| of.decided.since(of.heard).as_micros());
        Self::Verdict(VerdictNote {
            verdict: verdict_words(of.verdict).to_owned(),
            rule: of.rule.name().to_owned(),
            incarnation: of.incarnation.to_string(),
            term: of.term.to_string(),
            alarm: of.evidence.alarm.map(|alarm| alarm_words(alarm).to_owned()),
            asked: ranks(said.asked),
            met_component: ranks(said.met),
            met_task: ranks(said.met_task),
            met_neither: ranks(said.met_neither),
            silent_us: heard,
        })
    }

    /// The entry for `news`, and the node that it is about: `me` where that is the observer.
    pub(super) fn news(news: News, me: Rank) -> (Rank, Self) {
        let noted = |node: Rank, words: &str| (node, Self::Noted { words: words.to_owned() });
        match news {
            News::Suspected(node) => (node, Self::Suspected),
            News::Restored(node) => (node, Self::Restored),
            News::OneWay(node) => noted(node, "not heard here, but met by a second observer"),
            News::Uncorroborated(node) => {
                noted(node, "silent, and not removed: no second observer can be asked")
            }
            News::Absent(node) => noted(node, "was never heard"),
            News::Unanswered(node) => {
                noted(node, "no manager answers its alarm: it starts its next component itself")
            }
            News::Alone(node) => {
                noted(node, "no other component can be reached: it starts its next one itself")
            }
            News::Isolated(node) => {
                let words = format!("isolated until `weft release {node}` admits it again");
                (node, Self::Noted { words })
            }
            News::TooFew => noted(me, "too few members are alive for a decision"),
            News::Unheard => {
                let words = "too few members hear or answer this node: as manager it removes no \
                             node, as backup it claims no term";
                noted(me, words)
            }
            News::Excluded => noted(me, "was removed"),
            News::NoDatabase => noted(me, "no member could send the database"),
            News::NoMoreTerms => noted(me, "the last term has been used"),
            News::Follows(node) => noted(node, "is the manager now"),
            News::Lagged(by) => (me, Self::Late { ms: by.as_micros() / 1_000 }),
            News::TaskIsolated { node, task } => {
                let words = format!("task {task} fails too often and is isolated");
                (node, Self::Noted { words })
            }
        }
    }
}

/// How many entries were displaced by newer ones, by the node that they were about.
#[derive(Debug, Default)]
pub(super) struct Dropped(BTreeMap<u16, u64>);

impl Dropped {
    /// Counts a displaced entry about `node`.
    pub(super) fn note(&mut self, node: u16) {
        *self.0.entry(node).or_default() += 1;
    }

    /// The number of those about `node`, or about all.
    pub(super) fn about(&self, node: Option<u16>) -> u64 {
        let is_meant = |of: &u16| node.is_none_or(|node| *of == node);
        self.0.iter().filter(|(of, _)| is_meant(of)).map(|(_, count)| count).sum()
    }
}

/// The last entries of one node.
#[derive(Debug, Default)]
pub(super) struct Chronicle {
    entries: VecDeque<Entry>,
    dropped: Dropped,
}

impl Chronicle {
    /// Keeps `entry`, and returns it as kept: its time is later than that of all before it, so that
    /// the time names the entry, and a reader that continues after the last one that it has misses
    /// none.
    pub(super) fn note(&mut self, mut entry: Entry) -> &Entry {
        if let Some(last) = self.entries.back() {
            entry.at_ns = entry.at_ns.max(last.at_ns.saturating_add(1));
        }
        tracing::info!(observer = entry.observer, node = entry.node, what = %entry.what, "noted");
        if self.entries.len() == ENTRIES
            && let Some(oldest) = self.entries.pop_front()
        {
            self.dropped.note(oldest.node);
        }
        self.entries.push_back(entry);
        &self.entries[self.entries.len() - 1]
    }

    /// How many entries about `node`, or about all, were displaced.
    pub(super) fn dropped(&self, node: Option<u16>) -> u64 {
        self.dropped.about(node)
    }

    /// The first `max` entries after `after_ns` about `node`, or about all, oldest first.
    pub(super) fn about(&self, node: Option<u16>, after_ns: u64, max: usize) -> Vec<Entry> {
        let is_meant =
            |entry: &&Entry| entry.at_ns > after_ns && node.is_none_or(|node| entry.node == node);
        self.entries.iter().filter(is_meant).take(max).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspected(at_ns: u64, node: u16) -> Entry {
        Entry { at_ns, observer: 0, node, what: What::Suspected }
    }

    #[test]
    fn the_entries_about_a_node_are_told_in_order() {
        let mut chronicle = Chronicle::default();
        for at_ns in 0..3 * ENTRIES as u64 {
            chronicle.note(suspected(at_ns, u16::from(at_ns % 3 == 0)));
        }
        let last = 3 * ENTRIES as u64 - 3;
        let found = chronicle.about(Some(1), last - 6, 2);
        assert_eq!(found, [suspected(last - 3, 1), suspected(last, 1)]);
        assert_eq!(chronicle.about(Some(1), last - 6, 1), found[..1]);
        assert_eq!(chronicle.about(None, 0, usize::MAX).len(), ENTRIES);
        assert_eq!(chronicle.dropped(None), 2 * ENTRIES as u64);
        assert!(chronicle.dropped(Some(1)) > 0 && chronicle.dropped(Some(7)) == 0);
    }

    #[test]
    fn entries_of_one_moment_and_late_ones_are_told_apart_and_in_order() {
        let mut chronicle = Chronicle::default();
        let noted = [7, 7, 3].map(|at_ns| chronicle.note(suspected(at_ns, 1)).at_ns);
        assert_eq!(noted, [7, 8, 9]);
        for (after_ns, at_ns) in [(0, 7), (7, 8), (8, 9)] {
            assert_eq!(chronicle.about(None, after_ns, 1), [suspected(at_ns, 1)]);
        }
    }

    #[test]
    fn an_isolation_for_failures_says_so() {
        let verdict = |verdict: Verdict, rule: Rule| VerdictNote {
            verdict: verdict_words(verdict).to_owned(),
            rule: rule.name().to_owned(),
            incarnation: "4/0".to_owned(),
            term: "2.0".to_owned(),
            alarm: None,
            asked: vec![],
            met_component: vec![],
            met_task: vec![],
            met_neither: vec![],
            silent_us: None,
        };
        let failed = verdict(Verdict::Isolated, Rule::Intensity).to_string();
        let why = "reset as often as `dirnet.reset` allows, and down again";
        assert_eq!(failed, format!("isolated by rule intensity, term 2.0: {why}"));
        let ordered = verdict(Verdict::Isolated, Rule::Operator).to_string();
        assert_eq!(ordered, "isolated by rule operator, term 2.0");
    }

    #[test]
    fn a_verdict_says_what_it_rests_on() {
        let note = VerdictNote {
            verdict: "component down".to_owned(),
            rule: "alarm-in-window".to_owned(),
            incarnation: "3/1".to_owned(),
            term: "2.0".to_owned(),
            alarm: Some(alarm_words(Alarm::NoProgress).to_owned()),
            asked: vec![1, 2, 5],
            met_component: vec![],
            met_task: vec![1],
            met_neither: vec![5],
            silent_us: Some(261_000),
        };
        assert_eq!(
            What::Verdict(note).to_string(),
            "component down by rule alarm-in-window, term 2.0, silent for 261 ms, alarm: no \
             progress, its flag stands still, asked: 1 2 5, met its I'm-Alive Task alone: 1, met \
             neither: 5, silent: 2"
        );
    }
}
