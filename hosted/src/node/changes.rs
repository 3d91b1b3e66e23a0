//! The events of a cluster, from the views of a node and what was noted.
//!
//! ```text
//!   views ──────────┬─▶ Changes ─▶ view, joined, removed, suspected, …
//!   notes of nodes ─┘
//! ```
//!
//! What has joined and what was removed is the difference between two views, so a view that was
//! missed is contained in the next one. A removal waits [`VERDICT_TIMEOUT`] for the verdict that it
//! follows from.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::Serialize;
use weft_core::dirnet::Verdict;

use super::chronicle::{TaskNote, TaskStep, VerdictNote, What};
use super::control::{MemberStatus, ViewStatus, Watched};
use super::evidence::Copied;
use crate::clock::{Deadline, now_ns};
use crate::cluster::Kind;

/// How long a removal waits for its verdict.
const VERDICT_TIMEOUT: Duration = Duration::from_millis(200);
/// The most notes that are remembered, so that each is reported once.
const KNOWN_MAX: usize = 4096;

/// An event, as `weft watch --json` prints it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WatchEvent {
    /// What happened.
    pub event: Kind,
    /// The number of the view that shows it, or of the last one before it.
    pub view: u64,
    /// The term, as its epoch and its manager.
    pub term: String,
    /// The member; none for a view.
    pub rank: Option<u16>,
    /// Its incarnation, as boot and generation.
    pub incarnation: Option<String>,
    /// The verdict that led to a removal, or what has become of a task.
    pub verdict: Option<String>,
    /// What that rests on.
    pub evidence: Vec<String>,
    /// Whether the incarnation is fenced at the node that is watched.
    pub fenced: bool,
    /// When, by the clock of the host, in nanoseconds.
    pub at: u64,
    /// The members of a view.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberStatus>,
    /// The task that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The node that noted it, or the manager that decided the view.
    #[serde(skip)]
    pub by: u16,
    /// How many entries are missing.
    #[serde(skip_serializing_if = "is_zero")]
    pub missed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What is known of a cluster, and the events that were not taken yet.
#[derive(Debug)]
pub(crate) struct Changes {
    view: ViewStatus,
    /// What was noted before is over, or was reported already.
    since_ns: u64,
    known: BTreeSet<(u64, u16)>,
    /// The last verdict about each node that ends an incarnation.
    verdicts: BTreeMap<u16, VerdictNote>,
    queue: VecDeque<WatchEvent>,
    /// Until when removals wait for their verdicts.
    verdict_by: Option<Deadline>,
}

impl Changes {
    /// Nothing is known; what was noted before now is over.
    pub(crate) fn new() -> Self {
        Self {
            view: ViewStatus::default(),
            since_ns: now_ns(),
            known: BTreeSet::new(),
            verdicts: BTreeMap::new(),
            queue: VecDeque::new(),
            verdict_by: None,
        }
    }

    /// The next event, unless it waits for its verdict.
    pub(crate) fn next(&mut self) -> Option<WatchEvent> {
        let waits = self.verdict_by.is_some_and(|by| !by.has_passed());
        if waits && self.lacks_verdict() {
            return None;
        }
        self.verdict_by = None;
        self.queue.pop_front()
    }

    /// Whether there are events, whether they wait for a verdict or not.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// How long the next event waits for its verdict, if it does.
    pub(crate) fn verdict_wait(&self) -> Option<Duration> {
        self.verdict_by.map(|by| by.remaining())
    }

    /// What was noted before is over, or was reported already.
    pub(crate) fn advance(&mut self, since_ns: u64) {
        self.since_ns = self.since_ns.max(since_ns);
    }

    /// The view that the events so far have led to.
    pub(crate) const fn view(&self) -> &ViewStatus {
        &self.view
    }

    fn lacks_verdict(&self) -> bool {
        self.queue.iter().any(|it| it.event == Kind::Removed && it.verdict.is_none())
    }

    /// Handles what a node has sent.
    pub(crate) fn handle(&mut self, watched: Watched) {
        let Watched { view, view_at_ns, noted, missed, .. } = watched;
        if missed > 0 {
            let event = WatchEvent { missed, ..self.event(Kind::Missed, None, now_ns()) };
            self.queue.push_back(event);
        }
        for copied in noted {
            self.handle_note(copied);
        }
        if self.view.number < view.number {
            self.handle_view(view, view_at_ns);
        }
        let Self { queue, verdicts, .. } = self;
        for event in queue.iter_mut().filter(|it| it.event == Kind::Removed) {
            add_verdict(event, verdicts);
        }
    }

    fn handle_note(&mut self, Copied { entry, noted_ns }: Copied) {
        if !self.known.insert((noted_ns, entry.observer)) {
            return;
        }
        if self.known.len() > KNOWN_MAX {
            self.known.pop_first();
        }
        let kind = match &entry.what {
            What::Suspected => Kind::Suspected,
            What::Restored => Kind::Trusted,
            What::Released => Kind::Released,
            What::Task(_) => Kind::Task,
            What::Verdict(note) => {
                let isolates = entry.what.is_verdict(Verdict::Isolated);
                let ends = entry.what.is_verdict(Verdict::NodeDown)
                    || entry.what.is_verdict(Verdict::AgentDown);
                if !isolates && !ends {
                    return;
                }
                let before = self.verdicts.insert(entry.node, note.clone());
                if isolates {
                    Kind::Isolated
                } else if before.is_none_or(|it| it.incarnation != note.incarnation) {
                    Kind::Failed
                } else {
                    return;
                }
            }
            _ => return,
        };
        if entry.at_ns >= self.since_ns {
            let mut event = self.event(kind, Some(entry.node), entry.at_ns);
            event.by = entry.observer;
            if let What::Task(TaskNote { task, change }) = entry.what {
                (event.task, event.verdict) = (Some(task), Some(change.as_str().to_owned()));
                if let TaskStep::Failed { fault } = change {
                    event.evidence = vec![fault.to_string()];
                }
            }
            if kind == Kind::Failed {
                let note = self.verdicts.get(&entry.node);
                event.incarnation = note.map(|note| note.incarnation.clone());
                add_verdict(&mut event, &self.verdicts);
            }
            self.queue.push_back(event);
        }
    }

    /// What the next view changes, and then itself.
    fn handle_view(&mut self, view: ViewStatus, at_ns: u64) {
        let before = std::mem::replace(&mut self.view, view);
        let (view, is_first) = (self.view.clone(), before.number == 0);
        let lacks = |one: &ViewStatus, member: &MemberStatus| !one.members.contains(member);
        for gone in before.members.iter().filter(|member| lacks(&view, member)) {
            let event = self.event(Kind::Removed, Some(gone.rank), at_ns);
            let incarnation = Some(named(gone));
            self.queue.push_back(WatchEvent { incarnation, fenced: true, ..event });
            self.verdict_by = Some(Deadline::after(VERDICT_TIMEOUT));
        }
        for new in view.members.iter().filter(|member| !is_first && lacks(&before, member)) {
            let event = self.event(Kind::Joined, Some(new.rank), at_ns);
            self.queue.push_back(WatchEvent { incarnation: Some(named(new)), ..event });
        }
        let event = self.event(Kind::View, None, at_ns);
        self.queue.push_back(WatchEvent { members: view.members, ..event });
    }

    fn event(&self, event: Kind, rank: Option<u16>, at: u64) -> WatchEvent {
        let ViewStatus { number, epoch, manager, .. } = self.view;
        WatchEvent {
            event,
            view: number,
            term: format!("{epoch}.{manager}"),
            rank,
            incarnation: None,
            verdict: None,
            evidence: Vec::new(),
            fenced: false,
            at,
            members: Vec::new(),
            task: None,
            by: manager,
            missed: 0,
        }
    }
}

fn named(member: &MemberStatus) -> String {
    format!("{}/{}", member.boot, member.generation)
}

/// Adds the verdict from which a removal follows: the last one about a component of that boot.
fn add_verdict(event: &mut WatchEvent, verdicts: &BTreeMap<u16, VerdictNote>) {
    let boot = |text: &str| text.split('/').next().map(str::to_owned);
    let (None, Some(gone)) = (&event.verdict, event.incarnation.as_deref()) else { return };
    let Some(note) = event.rank.and_then(|rank| verdicts.get(&rank)) else { return };
    if boot(note.incarnation()) != boot(gone) {
        return;
    }
    event.verdict = Some(note.verdict.clone());
    let list = |ranks: &[u16]| ranks.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let met = |ranks: &[u16], what: &str| {
        (!ranks.is_empty()).then(|| format!("met {what} by {}", list(ranks)))
    };
    let mut evidence = vec![format!("rule {}", note.rule)];
    evidence.extend(note.alarm.iter().map(|alarm| format!("alarm: {alarm}")));
    evidence.extend(note.silent_us.map(|us| format!("silent for {} ms", us / 1_000)));
    evidence.extend((!note.asked.is_empty()).then(|| format!("asked {}", list(&note.asked))));
    evidence.extend(met(&note.met_component, ""));
    evidence.extend(met(&note.met_task, "as a task"));
    evidence.extend(
        (!note.met_neither.is_empty()).then(|| format!("not met by {}", list(&note.met_neither))),
    );
    event.evidence = evidence;
}
