//! `[hooks]` of the cluster file (M-13): the manager's node runs a command for each event.
//!
//! ```text
//!   every node: views, notes ─▶ Changes ─▶ event ─┬ decided here ─▶ HookQueue ─▶ report ─┐
//!                                                 └ elsewhere ─▶ owed                    │
//!                                                     ▲ reported: forgotten              │
//!                                                     └─────────── to all nodes ◀────────┘
//! ```
//!
//! The events are those that a watcher of this node sees. A manager that has died may have left
//! events without a report: its successor runs the commands for those before the first event that
//! it decides itself. An event whose report was lost with the manager is repeated, with its own
//! view and term. Suspicions and events of tasks are not repeated.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};

use super::Supervisor;
use crate::cluster::{self, Kind};
use crate::node::NodeError;
use crate::node::chronicle::{Entry, HookNote, What};
use crate::node::control::{HookStatus, Outcome};
use crate::node::hook::{HookFailure, HookQueue, WAITING_MAX};
use crate::node::supervisor::clients::Watching;
use crate::node::{Changes, WatchEvent};

/// The most reports that wait for the main thread: more than there are events in the queue.
const ENDS_MAX: usize = 2 * WAITING_MAX;
/// The most events without a report, and the most reports without an event, that are kept.
const OWED_MAX: usize = WAITING_MAX;

/// The end of a command: its event, and whether it had success.
type End = (WatchEvent, Result<(), HookFailure>);

/// The hooks of a node; a node of a cluster without hooks has none.
#[derive(Debug)]
pub(super) struct HookRuns {
    me: u16,
    config: cluster::Hooks,
    changes: Changes,
    /// How many entries of the node were taken, as [`Watching::after`].
    after: u64,
    queue: HookQueue,
    ends: Receiver<End>,
    owed: OwedHooks,
    status: HookStatus,
}

impl HookRuns {
    /// The hooks of `config` at node `me`, if it has any.
    pub(super) fn new(config: &cluster::Hooks, me: u16) -> Result<Option<Self>, NodeError> {
        if config.commands.is_empty() {
            return Ok(None);
        }
        let (sender, ends) = sync_channel(ENDS_MAX);
        let report = move |event: &WatchEvent, result| {
            if sender.try_send((event.clone(), result)).is_err() {
                tracing::error!(kind = %event.event, "the end of a hook is not noted");
            }
        };
        Ok(Some(Self {
            me,
            config: config.clone(),
            changes: Changes::new(),
            after: 0,
            queue: HookQueue::start(
                "weft-hooks",
                std::time::Duration::from_secs(config.timeout_s),
                WAITING_MAX,
                report,
            )?,
            ends,
            owed: OwedHooks::default(),
            status: HookStatus::default(),
        }))
    }

    /// What its node's watchers are asked for.
    fn wanted(&self) -> Watching {
        Watching { view: self.changes.view().number, after: self.after, deadline_ns: 0 }
    }

    /// Runs the commands for the events that are known by now; returns what could not be queued.
    fn poll_events(&mut self) -> Vec<End> {
        let mut refused = Vec::new();
        loop {
            let is_first = self.changes.view().number == 0;
            let Some(event) = self.changes.next() else { return refused };
            let is_mine = event.by == self.me;
            if is_mine && matches!(event.event, Kind::View | Kind::Joined | Kind::Removed) {
                for owed in self.owed.take() {
                    refused.extend(self.offer(owed));
                }
            }
            let is_manager = self.changes.view().manager == self.me;
            let (runs, is_repeated) = match event.event {
                Kind::Suspected | Kind::Trusted | Kind::Failed => (is_mine && is_manager, false),
                // Every node notes those of its own tasks.
                Kind::Task => (is_manager, false),
                // A manager that decided it may have died before its command ended.
                _ => (is_mine, true),
            };
            if runs {
                refused.extend(self.offer(event));
            } else if is_repeated && !is_first && self.has(event.event) {
                self.owed.add(event);
            }
        }
    }

    fn has(&self, kind: Kind) -> bool {
        self.config.commands.contains_key(&kind)
    }

    fn offer(&mut self, event: WatchEvent) -> Option<End> {
        let command = self.config.commands.get(&event.event)?;
        match self.queue.offer(command, &event) {
            Ok(()) => None,
            Err(failure) => Some((event, Err(failure))),
        }
    }

    /// Counts the end of a command, and returns what is noted of it.
    fn count(&mut self, (event, result): End) -> (u16, HookNote) {
        let WatchEvent { event: kind, view, rank, incarnation, .. } = event;
        let failure = result.err();
        self.status.run += 1;
        if let Some(failure) = &failure {
            let count = match failure {
                HookFailure::Full => &mut self.status.missed,
                _ => &mut self.status.failed,
            };
            *count += 1;
            tracing::error!(event = %kind, view, %failure, "hook");
            self.status.last_failure = Some(format!("{kind} for view {view:#x}: {failure}"));
        }
        let failure = failure.map(|failure| failure.to_string());
        let note = HookNote { event: kind.to_string(), view, incarnation, failure };
        (rank.unwrap_or(self.me), note)
    }
}

/// The events that other managers have decided, and of whose commands no end was reported.
#[derive(Debug, Default)]
struct OwedHooks {
    events: VecDeque<WatchEvent>,
    /// Reports that came before their event: the node that each is about, and the rest.
    reported: VecDeque<(u16, HookNote)>,
}

impl OwedHooks {
    fn add(&mut self, event: WatchEvent) {
        if self.reported.iter().any(|(node, note)| is_of(*node, note, &event)) {
            return;
        }
        // The oldest: its report was lost longest ago.
        if self.events.len() == OWED_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// The commands run in the order of views: those of earlier views have ended, too.
    fn handle_report(&mut self, node: u16, note: &HookNote) {
        self.events.retain(|event| event.view >= note.view && !is_of(node, note, event));
        if self.reported.len() == OWED_MAX {
            self.reported.pop_front();
        }
        self.reported.push_back((node, note.clone()));
    }

    fn take(&mut self) -> VecDeque<WatchEvent> {
        std::mem::take(&mut self.events)
    }
}

/// Whether `note`, about `node`, reports the command for `event`. Nodes may learn of an incarnation
/// in different views, and never twice.
fn is_of(node: u16, note: &HookNote, event: &WatchEvent) -> bool {
    let is_same = match &event.incarnation {
        Some(_) => note.incarnation == event.incarnation,
        None => note.view == event.view,
    };
    is_same && note.event == event.event.as_str() && event.rank.is_none_or(|rank| rank == node)
}

impl Supervisor {
    /// Runs the hooks for what has happened, and notes what has become of those before.
    pub(super) fn run_hooks(&mut self) {
        let Some(hooks) = &mut self.hooks else { return };
        while let Some(Outcome::Watched(watched)) = self.watch.answer(&hooks.wanted()) {
            hooks.after = watched.next;
            hooks.changes.handle(*watched);
        }
        let mut ends = hooks.poll_events();
        ends.extend(hooks.ends.try_iter());
        let notes: Vec<_> = ends.into_iter().map(|end| hooks.count(end)).collect();
        for (node, note) in notes {
            self.note(node, What::Hook(note));
        }
    }

    /// Another node has noted `entry`: what it has run hooks for is not owed any more.
    pub(super) fn note_hook(&mut self, entry: &Entry) {
        if let (Some(hooks), What::Hook(note)) = (&mut self.hooks, &entry.what) {
            hooks.owed.handle_report(entry.node, note);
        }
    }

    /// The state of the hooks, if there are any.
    pub(super) fn hook_status(&self) -> Option<HookStatus> {
        self.hooks.as_ref().map(|hooks| hooks.status.clone())
    }

    /// Kills the command that runs.
    pub(super) fn stop_hooks(&mut self) {
        if let Some(hooks) = self.hooks.take() {
            hooks.queue.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::control::{MemberStatus, ViewStatus, Watched};

    const NAMES: [(&str, Kind); 2] = [("removed", Kind::Removed), ("view", Kind::View)];

    /// The hooks of node 1 and the command that each kind of event has.
    fn hooks() -> HookRuns {
        let command = |(_, kind)| (kind, vec!["/bin/true".to_owned()]);
        let config = cluster::Hooks { timeout_s: 30, commands: NAMES.map(command).into() };
        HookRuns::new(&config, 1).expect("a thread").expect("it has hooks")
    }

    /// A view of `manager` with these members, each in its first incarnation.
    fn show(hooks: &mut HookRuns, number: u32, manager: u16, members: &[u16]) {
        let member = |rank: &u16| MemberStatus { rank: *rank, boot: 1, generation: 0 };
        let members = members.iter().map(member).collect();
        let view = ViewStatus { number: number.into(), epoch: number, manager, members };
        let (noted, next, missed) = (Vec::new(), 0, 0);
        hooks.changes.handle(Watched { view, view_at_ns: 0, noted, next, missed });
        // No verdict comes, and none is waited for.
        while !hooks.changes.is_empty() {
            assert!(hooks.poll_events().is_empty(), "there is room");
        }
    }

    /// The kinds and views of the events whose commands run.
    fn ran(hooks: &mut HookRuns) -> Vec<(Kind, u64)> {
        let HookRuns { queue, ends, .. } = std::mem::replace(hooks, self::hooks());
        queue.end();
        ends.iter()
            .map(|(event, result)| (event.event, event.view, result))
            .map(|it| {
                assert_eq!(it.2, Ok(()));
                (it.0, it.1)
            })
            .collect()
    }

    #[test]
    fn m13_only_the_manager_that_decides_an_event_runs_its_hook() {
        let mut hooks = hooks();
        show(&mut hooks, 1, 0, &[0, 1, 2]);
        show(&mut hooks, 2, 0, &[0, 1]);
        assert_eq!(ran(&mut hooks), []);
        show(&mut hooks, 1, 1, &[0, 1, 2]);
        show(&mut hooks, 2, 1, &[0, 1]);
        let expected = [(Kind::View, 1), (Kind::Removed, 2), (Kind::View, 2)];
        assert_eq!(ran(&mut hooks), expected);
    }

    #[test]
    fn m13_a_successor_repeats_what_was_not_reported_and_nothing_else() {
        let note = |event: &str, view, incarnation: Option<&str>| HookNote {
            event: event.to_owned(),
            view,
            incarnation: incarnation.map(str::to_owned),
            failure: None,
        };
        let mut hooks = hooks();
        show(&mut hooks, 1, 0, &[0, 1, 2, 3]);
        // This report comes before its event.
        hooks.owed.handle_report(2, &note("removed", 2, Some("1/0")));
        show(&mut hooks, 2, 0, &[0, 1, 3]);
        show(&mut hooks, 3, 0, &[0, 1]);
        hooks.owed.handle_report(0, &note("view", 2, None));
        show(&mut hooks, 4, 1, &[1]);
        let repeated = [(Kind::Removed, 3), (Kind::View, 3)];
        let own = [(Kind::Removed, 4), (Kind::View, 4)];
        assert_eq!(ran(&mut hooks), [repeated, own].concat());
    }
}
