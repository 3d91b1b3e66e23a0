//! What is exported of a node's status. A metric is a line here.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::exposition::{Exposition, Label, Seconds};
use weft::node::control::{
    CounterStatus, DirNetStatus, NodeState, NodeStatus, OriginStatus, TaskState, TaskStatus,
    TensorStatus,
};
use weft_core::neb::number_in_epoch;

/// A metric that is one number of the node, what it is, and how it is read.
type Row<T> = (&'static str, &'static str, fn(&T) -> u64);

/// Counted by the supervisor since its start.
const OF_SUPERVISOR: [Row<NodeStatus>; 1] =
    [("weft_restarts", "Components that were started after one had ended.", |it| it.restarts)];

/// As the supervisor sees them now.
const NOW: [Row<NodeStatus>; 7] = [
    ("weft_incarnation", "Incarnation of the component.", |it| it.incarnation.into()),
    ("weft_component_up", "Whether the node has a component.", |it| {
        it.component_pid.is_some().into()
    }),
    ("weft_counters_up", "Whether the component reported its counters.", |it| {
        it.counters.is_some().into()
    }),
    ("weft_peers_running", "Peers that have a running incarnation.", |it| {
        it.peers.iter().filter(|peer| peer.incarnation.is_some()).count() as u64
    }),
    ("weft_peers_joined", "Peers with which messages have gone to and fro.", |it| {
        it.peers.iter().filter(|peer| peer.joined).count() as u64
    }),
    ("weft_links_cut", "Links that are cut by order.", |it| it.cut.len() as u64),
    ("weft_mailbox_holders", "Clients that hold messages of the mailbox, 16 at most.", |it| {
        it.holders.len() as u64
    }),
];

/// As the component's DIR net sees them now.
const OF_DIRNET: [Row<DirNetStatus>; 7] = [
    ("weft_manager", "Whether the node is the manager of the term that it knows.", |it| {
        (it.role == "manager").into()
    }),
    ("weft_term_epoch", "Epoch of the term that the node knows.", |it| it.epoch.into()),
    ("weft_view_members", "Members of the view that the node shows.", |it| {
        it.view.members.len() as u64
    }),
    ("weft_view_stale", "Whether the membership may be another by now.", |it| it.stale.into()),
    ("weft_peers_suspected", "Peers that the node suspects.", |it| it.suspects.len() as u64),
    ("weft_peers_removed", "Peers that were removed and have not come back.", |it| {
        it.removed.len() as u64
    }),
    ("weft_peers_isolated", "Removed peers that stay out until they are released.", |it| {
        it.isolated.len() as u64
    }),
];

/// Counted by the component since its start.
const OF_COMPONENT: [Row<CounterStatus>; 12] = [
    ("weft_puts", "Messages put into other mailboxes.", |it| it.put),
    ("weft_puts_full", "Puts that found a mailbox full; they are tried again.", |it| it.full),
    ("weft_tickets_unknown", "Puts for which the fabric returned an implausible ticket.", |it| {
        it.tickets_unknown
    }),
    ("weft_takes", "Messages taken from the own mailbox.", |it| it.taken),
    ("weft_returns", "Messages that went back because a client held them for too long.", |it| {
        it.returned
    }),
    ("weft_tickets_skipped", "Tickets that no process could still write.", |it| it.skipped),
    ("weft_tickets_questioned", "Inquiries into missing tickets.", |it| it.questioned),
    (
        "weft_checksum_failures",
        "Incomplete or damaged copies of messages; none is delivered.",
        |it| it.checksum_failures,
    ),
    ("weft_senders_forged", "Messages of a sender that may not write; none is delivered.", |it| {
        it.forged
    }),
    ("weft_tickets_forged", "Tickets that a member forged, or a fabric answered wrongly.", |it| {
        it.forged_tickets
    }),
    ("weft_lane_failures", "Damaged control messages.", |it| it.lane_failures),
    ("weft_broadcast_unfit", "Slots of the broadcast memory that hold garbage.", |it| {
        it.broadcast_unfit
    }),
];

/// As this node sees the broadcasts of each origin in its present boot, by their numbers.
const OF_ORIGIN: [Row<OriginStatus>; 4] = [
    ("weft_broadcasts", "Messages that the origin has broadcast.", |it| {
        number_in_epoch(it.broadcast)
    }),
    ("weft_broadcasts_delivered", "Of those, the ones that a client received here.", |it| {
        number_in_epoch(it.delivered)
    }),
    ("weft_broadcasts_settled", "Of those, the ones that every node has received.", |it| {
        number_in_epoch(it.settled)
    }),
    ("weft_broadcast_conflicts", "Messages that differ between nodes; none is delivered.", |it| {
        it.conflicts.into()
    }),
];

/// What the node uses of its rendezvous now.
const OF_TENSORS: [Row<TensorStatus>; 8] = [
    ("weft_tensors_stored", "Tensors in the store of the supervisor.", |it| it.kept as u64),
    ("weft_tensors_stored_bytes", "Bytes of those, and of receives at the most.", |it| {
        it.kept_bytes
    }),
    ("weft_tensors_offered", "Values that are offered to their receivers.", |it| it.offered.into()),
    ("weft_tensors_offered_bytes", "Memory that is lent for those.", |it| it.offered_bytes),
    ("weft_tensor_receives", "Receives that wait or are not released.", |it| it.receives.into()),
    ("weft_tensor_receives_bytes", "Memory that is lent for those.", |it| it.received_bytes),
    ("weft_tensors_quarantined_bytes", "Memory of ended receives with work that is out.", |it| {
        it.quarantined_bytes
    }),
    ("weft_tensor_waiters", "Receives of peers that wait for a value.", |it| it.waiters.into()),
];

/// The tasks under guard, counted since the supervisor's start.
const OF_TASK: [Row<TaskStatus>; 2] = [
    ("weft_task_restarts", "Times that a task was started again.", |it| it.restarts),
    ("weft_task_errors", "Errors that a task has met.", |it| it.errors),
];

/// The metrics of node `rank`; without a status, that it does not answer.
pub(super) fn render(cluster: &dyn Display, rank: u16, node: Option<&NodeStatus>) -> String {
    let mut text = Exposition::new(&[("cluster", cluster), ("node", &rank)]);
    let version = env!("CARGO_PKG_VERSION");
    let mut build = text.family("weft_build", "info", "The program.");
    build.sample("_info", &[("version", &version)], 1);
    let mut up = text.family("weft_up", "gauge", "Whether the node's supervisor answers.");
    up.gauge(&[], u8::from(node.is_some()));
    if let Some(node) = node {
        supervisor(&mut text, node);
        node.dirnet.iter().for_each(|dirnet| of_dirnet(&mut text, dirnet));
        node.counters.iter().for_each(|counters| component(&mut text, counters));
        broadcasts(&mut text, &node.broadcasts);
        node.tensors.iter().for_each(|it| tensors(&mut text, it));
        tasks(&mut text, node);
        ignored(&mut text, node);
    }
    text.finish()
}

fn supervisor(text: &mut Exposition, node: &NodeStatus) {
    let since = node.since_unix_ms;
    let states = NodeState::ALL.map(NodeState::words);
    let mut state = text.family("weft_node_state", "stateset", "The state of the component.");
    state.states(&[], &states, node.state.words());
    for (name, help, read) in OF_SUPERVISOR {
        text.family(name, "counter", help).counter(&[], read(node), Some(since));
    }
    for (name, help, read) in NOW {
        text.family(name, "gauge", help).gauge(&[], read(node));
    }
    let help = "From the end of a component to the next one running.";
    text.family("weft_recovery_seconds", "histogram", help).histogram(&node.recovery, since);
}

fn of_dirnet(text: &mut Exposition, dirnet: &DirNetStatus) {
    for (name, help, read) in OF_DIRNET {
        text.family(name, "gauge", help).gauge(&[], read(dirnet));
    }
}

fn component(text: &mut Exposition, counters: &CounterStatus) {
    let since = counters.since_unix_ms;
    for (name, help, read) in OF_COMPONENT {
        text.family(name, "counter", help).counter(&[], read(counters), Some(since));
    }
    let help = "Messages in the own mailbox that are not released.";
    text.family("weft_mailbox_unreleased", "gauge", help).gauge(&[], counters.owed);
    let help = "The longest that a ticket was missing.";
    let longest = Seconds { ns: counters.longest_stall_us.saturating_mul(1_000) };
    text.family("weft_longest_stall_seconds", "gauge", help).gauge(&[], longest);
    let help = "From the acceptance of a batch of messages until all of it is in the owner's \
                memory, to within a pass of the loop.";
    text.family("weft_put_seconds", "histogram", help).histogram(&counters.put_latency, since);
    let help = "From a broadcast until every node has received it; one at a time is followed.";
    let latency = &counters.broadcast_latency;
    text.family("weft_broadcast_seconds", "histogram", help).histogram(latency, since);
}

fn broadcasts(text: &mut Exposition, origins: &[OriginStatus]) {
    for (name, help, read) in OF_ORIGIN {
        let mut family = text.family(name, "counter", help);
        for row in origins {
            family.counter(&[("origin", &row.origin)], read(row), None);
        }
    }
    let help = "Messages that some node has not received yet.";
    let mut used = text.family("weft_broadcast_window_used", "gauge", help);
    origins.iter().for_each(|row| used.gauge(&[("origin", &row.origin)], row.window.used));
    let help = "The most messages that some node may not have received yet.";
    let mut slots = text.family("weft_broadcast_window_slots", "gauge", help);
    origins.iter().for_each(|row| slots.gauge(&[("origin", &row.origin)], row.window.slots));
}

fn tensors(text: &mut Exposition, tensors: &TensorStatus) {
    for (name, help, read) in OF_TENSORS {
        text.family(name, "gauge", help).gauge(&[], read(tensors));
    }
    let help = "Messages about tensors that came too late or did not fit, and changed nothing.";
    text.family("weft_tensor_rejects", "counter", help).counter(&[], tensors.rejects, None);
}

fn tasks(text: &mut Exposition, node: &NodeStatus) {
    let states = TaskState::ALL.map(TaskState::as_str);
    let mut state = text.family("weft_task_state", "stateset", "The state of a task.");
    for task in &node.tasks {
        state.states(&[("task", &task.name)], &states, task.state.as_str());
    }
    for (name, help, read) in OF_TASK {
        let mut family = text.family(name, "counter", help);
        for task in &node.tasks {
            family.counter(&[("task", &task.name)], read(task), Some(node.since_unix_ms));
        }
    }
    let Some(hooks) = &node.hooks else { return };
    for (name, help, count) in [
        ("weft_hooks_run", "Commands for events that have ended.", hooks.run),
        ("weft_hooks_failed", "Commands for events that failed.", hooks.failed),
        ("weft_hooks_missed", "Events that found too many others waiting.", hooks.missed),
    ] {
        text.family(name, "counter", help).counter(&[], count, Some(node.since_unix_ms));
    }
}

/// What is stale, premature, duplicate, or from a fenced incarnation: normal around starts.
fn ignored(text: &mut Exposition, node: &NodeStatus) {
    let help = "Control messages that were ignored, which is normal around starts.";
    let mut family = text.family("weft_frames_ignored", "counter", help);
    let mut count = |by: &str, counts: &BTreeMap<String, u32>| {
        for (reason, count) in counts {
            let labels: [Label<'_>; 2] = [("by", &by), ("reason", reason)];
            family.counter(&labels, (*count).into(), None);
        }
    };
    node.dirnet.iter().for_each(|dirnet| count("component", &dirnet.refused));
    count("im_alive_task", &node.refused_by_task);
    count("supervisor", &node.refused_by_supervisor);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use weft::node::control::{HookStatus, WindowStatus};

    /// The status of a node with a task, a hook and an origin.
    fn node() -> NodeStatus {
        let origin = OriginStatus {
            origin: 1,
            broadcast: (3 << 44) + 7,
            delivered: (3 << 44) + 6,
            settled: (3 << 44) + 5,
            window: WindowStatus { used: 2, slots: 16 },
            conflicts: 0,
            first_conflict: None,
            damaged: None,
            key: None,
        };
        let task = TaskStatus {
            name: "cam\"era".to_owned(),
            state: TaskState::Finished,
            pid: None,
            restarts: 2,
            errors: 3,
            unrecorded: 0,
            last_errors: Vec::new(),
        };
        let mut node = crate::cli::node_status();
        node.counters = Some(CounterStatus { put: 9, since_unix_ms: 2_000, ..Default::default() });
        node.broadcasts = vec![origin];
        node.tasks = vec![task];
        node.hooks = Some(HookStatus::default());
        node.refused_by_task.insert("stale".to_owned(), 4);
        let tensors = TensorStatus { offered_bytes: 4_096, rejects: 3, ..Default::default() };
        node.tensors = Some(tensors);
        node
    }

    fn samples(text: &str) -> BTreeSet<&str> {
        let is_sample = |line: &&str| !line.starts_with('#');
        text.lines().filter(is_sample).filter_map(|line| Some(line.split_once('{')?.0)).collect()
    }

    #[test]
    fn all_of_a_status_is_exported_once_with_its_labels() {
        let text = render(&"t", 0, Some(&node()));
        for line in [
            "weft_build_info{cluster=\"t\",node=\"0\",version=\"0.1.0\"} 1",
            "weft_up{cluster=\"t\",node=\"0\"} 1",
            "weft_puts_total{cluster=\"t\",node=\"0\"} 9",
            "weft_puts_created{cluster=\"t\",node=\"0\"} 2.000",
            "weft_broadcasts_total{cluster=\"t\",node=\"0\",origin=\"1\"} 7",
            "weft_broadcast_window_slots{cluster=\"t\",node=\"0\",origin=\"1\"} 16",
            "weft_task_errors_total{cluster=\"t\",node=\"0\",task=\"cam\\\"era\"} 3",
            "weft_tensors_offered_bytes{cluster=\"t\",node=\"0\"} 4096",
            "weft_tensor_rejects_total{cluster=\"t\",node=\"0\"} 3",
            "weft_frames_ignored_total{cluster=\"t\",node=\"0\",by=\"im_alive_task\",\
             reason=\"stale\"} 4",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
        }
        let families: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        assert_eq!(families.iter().collect::<BTreeSet<_>>().len(), families.len());
        assert!(text.ends_with("\n# EOF\n"));
    }

    #[test]
    fn a_node_that_does_not_answer_is_down_and_nothing_else() {
        let text = render(&"t", 3, None);
        assert_eq!(samples(&text), ["weft_build_info", "weft_up"].into());
        assert!(text.contains("weft_up{cluster=\"t\",node=\"3\"} 0\n"), "{text}");
    }

    #[test]
    fn the_dashboard_draws_what_is_exported() {
        fn expressions(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => fields.iter().for_each(|(key, value)| match value {
                    Value::String(text) if ["expr", "query"].contains(&key.as_str()) => {
                        found.push(text.clone());
                    }
                    value => expressions(value, found),
                }),
                Value::Array(values) => values.iter().for_each(|it| expressions(it, found)),
                _ => {}
            }
        }
        let dashboard: Value = serde_json::from_str(super::super::DASHBOARD).expect("JSON");
        let mut found = Vec::new();
        expressions(&dashboard, &mut found);
        let text = render(&"t", 0, Some(&node()));
        let (samples, mut drawn) = (samples(&text), BTreeSet::new());
        for expression in &found {
            let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
            let words = expression.split(|letter| !is_name(letter));
            for word in words.filter(|word| word.starts_with("weft_")) {
                assert!(samples.contains(word), "no metric {word}: {expression}");
                drawn.insert(word);
            }
        }
        assert!(drawn.len() > 30, "{drawn:?}");
    }
}
