//! Watching a cluster without being a member (M-12).
//!
//! ```text
//!   node 0 ✗   node 1 ──views, verdicts──▶ Watcher ──▶ view, joined, removed, suspected, …
//!                                            └ asks the next node when this one is gone
//! ```
//!
//! What has joined and what was removed is the difference between two views, so nothing is lost
//! while the watcher goes on to another node: the next view contains what it has missed. Verdicts
//! are known to every node; a removal waits [`VERDICT_TIMEOUT`] for the one that it follows from.
//! Suspicions are noted by the node that has them alone: of those, a watcher sees what the node
//! notes at which it watches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::Serialize;
use weft_core::dirnet::Verdict;

use super::{Client, ClientError, find, millis};
use crate::clock::{Deadline, now_ns};
use crate::cluster::{Cluster, ClusterName};
use crate::node::chronicle::{VerdictNote, What};
use crate::node::control::{MemberStatus, Outcome, ViewStatus, Want, Watched};
use crate::node::evidence::Copied;
use crate::runtime_dir::ClusterDir;

/// How long a removal waits for its verdict.
const VERDICT_TIMEOUT: Duration = Duration::from_millis(200);
/// How long one request waits.
const TURN: Duration = Duration::from_secs(1);
/// How soon a node is asked again when none answers.
const AGAIN: Duration = Duration::from_millis(20);
/// How long a note may be on its way from the node that has noted it.
const NOTE_DELAY_NS: u64 = 1_000_000_000;
/// The most notes that are remembered, so that each is reported once.
const KNOWN_MAX: usize = 4096;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// A view, after the joins and removals that led to it.
    View,
    /// An incarnation is a member.
    Joined,
    /// An incarnation is no member any more.
    Removed,
    /// A node was isolated: no boot of it joins until it is released.
    Isolated,
    /// A node is not heard.
    Suspected,
    /// A suspect was heard again.
    Trusted,
    /// The watcher read too slowly, or was away for too long: suspicions and verdicts are missing.
    Missed,
}

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
    /// The verdict that led to a removal.
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
    /// How many entries are missing.
    #[serde(skip_serializing_if = "is_zero")]
    pub missed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Watches a cluster.
#[derive(Debug)]
pub struct Watcher {
    dir: ClusterDir,
    cluster: Cluster,
    client: Option<Client>,
    /// The node that is watched, or asked next.
    rank: u16,
    /// How many entries that node has sent.
    after: u64,
    view: ViewStatus,
    /// What was noted before is over, or was reported by the node that was watched.
    since_ns: u64,
    known: BTreeSet<(u64, u16)>,
    /// The last verdict about each node that ends an incarnation.
    verdicts: BTreeMap<u16, VerdictNote>,
    queue: VecDeque<WatchEvent>,
    /// Until when a removal waits for its verdict.
    verdict_by: Option<Deadline>,
}

impl Watcher {
    /// Watches the running cluster `name`; waits up to `patience` for one that is being started.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn start(name: &ClusterName, patience: Duration) -> Result<Self, ClientError> {
        let (dir, cluster) = find(name, patience)?;
        Ok(Self {
            dir,
            cluster,
            client: None,
            rank: 0,
            after: 0,
            view: ViewStatus::default(),
            since_ns: now_ns(),
            known: BTreeSet::new(),
            verdicts: BTreeMap::new(),
            queue: VecDeque::new(),
            verdict_by: None,
        })
    }

    /// The next event; none if none comes within `timeout`.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if no node answers any more within `timeout`.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<WatchEvent>, ClientError> {
        let deadline = Deadline::after(timeout);
        loop {
            let waits = self.verdict_by.is_some_and(|by| !by.has_passed());
            if !(waits && self.lacks_verdict()) {
                self.verdict_by = None;
                if let Some(event) = self.queue.pop_front() {
                    return Ok(Some(event));
                }
            }
            let turn = self.verdict_by.map_or(TURN, |by| by.remaining());
            match self.ask(deadline.remaining().min(turn)) {
                Ok(()) => {}
                Err(error) if deadline.has_passed() && self.queue.is_empty() => return Err(error),
                Err(_) => {
                    self.go_on();
                    std::thread::park_timeout(AGAIN.min(deadline.remaining()));
                    continue;
                }
            }
            if deadline.has_passed() && self.queue.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The view that the events so far have led to.
    #[must_use]
    pub const fn view(&self) -> &ViewStatus {
        &self.view
    }

    fn lacks_verdict(&self) -> bool {
        self.queue.iter().any(|it| it.event == Kind::Removed && it.verdict.is_none())
    }

    /// The node is gone: the next one is asked for everything.
    fn go_on(&mut self) {
        self.client = None;
        self.rank = (self.rank + 1) % u16::try_from(self.cluster.nodes).unwrap_or(u16::MAX);
        self.after = 0;
    }

    fn ask(&mut self, timeout: Duration) -> Result<(), ClientError> {
        let client = match &mut self.client {
            Some(client) => client,
            none => {
                none.insert(Client::connect(&self.dir, &self.cluster, self.rank, Duration::ZERO)?)
            }
        };
        let (view, after) = (self.view.number, self.after);
        let want = Want::Watch { view, after, timeout_ms: millis(timeout) };
        // A note may take this long from one node to the other.
        let since_ns = now_ns().saturating_sub(NOTE_DELAY_NS);
        match client.ask(want, timeout)? {
            Outcome::Done => {}
            Outcome::Watched(watched) => self.handle(*watched),
            other => return Err(client.out_of_place(&other)),
        }
        self.since_ns = self.since_ns.max(since_ns);
        Ok(())
    }

    fn handle(&mut self, watched: Watched) {
        let Watched { view, view_at_ns, noted, next, missed } = watched;
        self.after = next;
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
            What::Verdict(note) => {
                let isolates = entry.what.is_verdict(Verdict::Isolated);
                if isolates
                    || entry.what.is_verdict(Verdict::NodeDown)
                    || entry.what.is_verdict(Verdict::AgentDown)
                {
                    self.verdicts.insert(entry.node, note.clone());
                }
                if !isolates {
                    return;
                }
                Kind::Isolated
            }
            _ => return,
        };
        if entry.at_ns >= self.since_ns {
            let event = self.event(kind, Some(entry.node), entry.at_ns);
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
