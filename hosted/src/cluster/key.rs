//! The keys of the cluster file and their limits, in one place.
//!
//! The reader, the template and [`Cluster::check`](super::Cluster::check) all take the limits
//! from here, so the file that documents a limit cannot disagree with the code that checks it.
//! Defaults live in the `Default` of the structs; this table does not repeat them.

use std::fmt;

use weft_core::endpoint::LANE_SLOTS_MIN;
use weft_core::group::Costs;

use super::group::Group;
use super::limit::Limit;
use super::program::Program;
use super::task::Task;
use super::{Checksum, Cluster, FabricKind, Form, Membership, Profile, TensorPath, Topology};
use crate::shm::Wait;

/// A key with a number behind it.
pub(super) struct Key {
    /// The whole path, as people say it: `mailbox.slots`.
    pub(super) path: &'static str,
    pub(super) limit: Limit,
}

/// What may stand behind a path.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// Keys of its own.
    Table,
    /// Some tables, as many as the key allows.
    Tables(&'static Key),
    /// A number within the key's limit.
    Number(&'static Key),
    /// One of these words.
    Word(fn() -> Vec<&'static str>),
    /// A role for each node.
    Parts,
    /// A name as of a cluster.
    Name,
    /// A text as long as the key's limit says.
    Text(&'static Key),
    /// So many texts.
    Texts(Limit),
    /// Ranks, each once.
    Ranks,
    /// A program and its arguments.
    Command,
    /// Some of these by name.
    Commands,
    /// A length with its unit.
    Length,
    /// Bytes as text.
    Base64,
    /// Where etcd is reached.
    Etcd,
    /// The path of a file.
    File,
}

impl Key {
    const fn new(path: &'static str, limit: Limit) -> Self {
        Self { path, limit }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limit.fmt(f)
    }
}

pub(super) const NAME: &str = "name";
pub(super) const WAIT: &str = "wait";
pub(super) const FABRIC: &str = "fabric";
pub(super) const VERBS: &str = "verbs";
pub(super) const NETWORK: &str = "network";
pub(super) const NETWORK_ADDRESSES: &str = "network.addresses";
pub(super) const NETWORK_DISCOVERY: &str = "network.discovery";
pub(super) const NETWORK_KEY: &str = "network.key";
pub(super) const METRICS: &str = "metrics";
pub(super) const MAILBOX: &str = "mailbox";
pub(super) const MAILBOX_CHECKSUM: &str = "mailbox.checksum";
pub(super) const LANE: &str = "lane";
pub(super) const NEB: &str = "neb";
pub(super) const NEB_FORM: &str = "neb.form";
pub(super) const NEB_MEMBERSHIP: &str = "neb.membership";
pub(super) const GROUP: &str = "group";
pub(super) const GROUP_TOPOLOGY: &str = "group.topology";
pub(super) const GROUPS_NAME: &str = "groups.name";
pub(super) const GROUPS_MEMBERS: &str = "groups.members";
pub(super) const RENDEZVOUS: &str = "rendezvous";
pub(super) const RENDEZVOUS_PATH: &str = "rendezvous.path";
pub(super) const RESTART: &str = "restart";
pub(super) const DIRNET: &str = "dirnet";
pub(super) const DIRNET_PROFILE: &str = "dirnet.profile";
pub(super) const DIRNET_ROLES: &str = "dirnet.roles";
pub(super) const DIRNET_RESET: &str = "dirnet.reset";
pub(super) const DIRNET_TIMING: &str = "dirnet.timing";
pub(super) const COMPONENT: &str = "component";
pub(super) const COMPONENT_STATE: &str = "component.state";
pub(super) const RECOVERY: &str = "recovery";
pub(super) const RECOVERY_IMAGE: &str = "recovery.image";
pub(super) const RECOVERY_CALLS: &str = "recovery.calls";
pub(super) const HOOKS: &str = "hooks";
pub(super) const HOOKS_VIEW: &str = "hooks.view";
pub(super) const HOOKS_JOINED: &str = "hooks.joined";
pub(super) const HOOKS_REMOVED: &str = "hooks.removed";
pub(super) const HOOKS_ISOLATED: &str = "hooks.isolated";
pub(super) const HOOKS_FAILED: &str = "hooks.failed";
pub(super) const HOOKS_RELEASED: &str = "hooks.released";
pub(super) const HOOKS_SUSPECTED: &str = "hooks.suspected";
pub(super) const HOOKS_TRUSTED: &str = "hooks.trusted";
pub(super) const HOOKS_TASK: &str = "hooks.task";
pub(super) const TASK_NAME: &str = "task.name";
pub(super) const TASK_NODES: &str = "task.nodes";
pub(super) const TASK_RESTART: &str = "task.restart";

pub(super) const NODES: Key =
    Key::new("nodes", Limit::Range { min: 2, max: Cluster::NODES_MAX as u64 });
pub(super) const MAILBOX_SLOTS: Key =
    Key::new("mailbox.slots", Limit::PowerOfTwo { min: 16, max: 4096 });
pub(super) const MAILBOX_MESSAGE_LEN: Key =
    Key::new("mailbox.message_len", Limit::Range { min: 8, max: 4000 });
pub(super) const MAILBOX_STALL_AFTER_US: Key =
    Key::new("mailbox.stall_after_us", Limit::Range { min: 100, max: 10_000_000 });
pub(super) const MAILBOX_HOLD_S: Key =
    Key::new("mailbox.hold_s", Limit::Range { min: 0, max: 86_400 });
pub(super) const LANE_SLOTS: Key =
    Key::new("lane.slots", Limit::PowerOfTwo { min: LANE_SLOTS_MIN as u64, max: 1024 });
pub(super) const NEB_SLOTS: Key = Key::new("neb.slots", Limit::PowerOfTwo { min: 64, max: 4096 });
pub(super) const NEB_MESSAGE_LEN: Key =
    Key::new("neb.message_len", Limit::Range { min: 64, max: 4096 });
pub(super) const GROUP_COUNT: Key = Key::new("group.count", Limit::Range { min: 0, max: 1 });
pub(super) const GROUP_ENTRIES_MAX: u64 = 1024;
pub(super) const GROUP_ENTRIES: Key =
    Key::new("group.entries", Limit::PowerOfTwo { min: 8, max: GROUP_ENTRIES_MAX });
pub(super) const GROUP_BLOCKS_MAX: u64 = 64;
pub(super) const GROUP_BLOCKS: Key =
    Key::new("group.blocks", Limit::PowerOfTwo { min: 2, max: GROUP_BLOCKS_MAX });
pub(super) const GROUP_BLOCK_LEN_MAX: u64 = 1 << 20;
pub(super) const GROUP_BLOCK_LEN: Key =
    Key::new("group.block_len", Limit::PowerOfTwo { min: 4096, max: GROUP_BLOCK_LEN_MAX });
pub(super) const GROUP_LATENCY: Key =
    Key::new("group.latency", Limit::Range { min: 1, max: Costs::MAX as u64 });
/// How many `[[groups]]` there may be: all places but that of the group of all nodes.
pub(super) const GROUPS: Key =
    Key::new("groups", Limit::Range { min: 0, max: Group::PLACES_MAX as u64 - 1 });
/// How many `groups.members` there may be.
pub(super) const GROUPS_MEMBERS_COUNT: Key = Key::new(
    GROUPS_MEMBERS,
    Limit::Reasoned { min: 2, max: Cluster::NODES_MAX as u64, why: "the number of members" },
);
pub(super) const RENDEZVOUS_POOL_MIB: Key =
    Key::new("rendezvous.pool_mib", Limit::Range { min: 0, max: 4095 });
pub(super) const RENDEZVOUS_STORE_MIB: Key =
    Key::new("rendezvous.store_mib", Limit::Range { min: 0, max: 1 << 20 });
pub(super) const RESTART_MAX: Key = Key::new("restart.max", Limit::Range { min: 0, max: 10_000 });
pub(super) const RESTART_WITHIN_S: Key =
    Key::new("restart.within_s", Limit::Range { min: 1, max: 86_400 });
pub(super) const DIRNET_MIN_ALIVE: Key =
    Key::new("dirnet.min_alive", Limit::Range { min: 1, max: Cluster::NODES_MAX as u64 });
pub(super) const DIRNET_RESET_MAX: Key =
    Key::new("dirnet.reset.max", Limit::Range { min: 0, max: u8::MAX as u64 });
pub(super) const DIRNET_RESET_WITHIN_S: Key =
    Key::new("dirnet.reset.within_s", Limit::Range { min: 1, max: RESET_WITHIN_S_MAX });
pub(super) const RESET_WITHIN_S_MAX: u64 = 86_400;
pub(super) const TIMING_SEND_US: Key = Key::new("dirnet.timing.send_us", SPAN);
pub(super) const TIMING_RECEIVE_US: Key = Key::new("dirnet.timing.receive_us", SPAN);
pub(super) const TIMING_CLEAR_US: Key = Key::new("dirnet.timing.clear_us", SPAN);
pub(super) const TIMING_ALARM_US: Key = Key::new("dirnet.timing.alarm_us", SPAN);
pub(super) const TIMING_WINDOW_US: Key = Key::new("dirnet.timing.window_us", SPAN);
pub(super) const TIMING_DELAY_US: Key = Key::new("dirnet.timing.delay_us", SPAN);
pub(super) const TIMING_LOSSES: Key =
    Key::new("dirnet.timing.losses", Limit::Range { min: 0, max: 1000 });
pub(super) const TIMING_CANDIDATE_US: Key = Key::new("dirnet.timing.candidate_us", SPAN);
pub(super) const TIMING_JOIN_US: Key = Key::new("dirnet.timing.join_us", SPAN);
pub(super) const TIMING_CLONE_MS: Key = Key::new(
    "dirnet.timing.clone_ms",
    Limit::Reasoned {
        min: 250,
        max: 600_000,
        why: "a process takes about that long to start, and one that is not waited for is reset",
    },
);
pub(super) const TIMING_REBOOT_MS: Key = Key::new(
    "dirnet.timing.reboot_ms",
    Limit::Reasoned {
        min: 1_000,
        max: 600_000,
        why: "a node takes about that long to start, and one that is not waited for is reset again",
    },
);
/// Of a heartbeat, or of what is reckoned in heartbeats, in microseconds.
const SPAN: Limit = Limit::Range { min: 10, max: SPAN_MAX_US };
pub(super) const SPAN_MAX_US: u64 = 60_000_000;
pub(super) const VERBS_DEVICES: Key =
    Key::new("verbs.devices", Limit::Range { min: 0, max: Cluster::NODES_MAX as u64 });
/// Each of `verbs.devices`.
pub(super) const VERBS_DEVICE: Key = Key::new("verbs.devices", Limit::Text { min: 1, max: 63 });
pub(super) const VERBS_TIMEOUT: Key = Key::new("verbs.timeout", Limit::Range { min: 1, max: 31 });
pub(super) const VERBS_RETRY_COUNT: Key =
    Key::new("verbs.retry_count", Limit::Range { min: 0, max: 6 });
pub(super) const VERBS_RNR_RETRY_COUNT: Key =
    Key::new("verbs.rnr_retry_count", Limit::Range { min: 0, max: 6 });
pub(super) const VERBS_RNR_TIMER: Key =
    Key::new("verbs.rnr_timer", Limit::Range { min: 0, max: 31 });
pub(super) const VERBS_DEADLINE_MS: Key =
    Key::new("verbs.deadline_ms", Limit::Range { min: 10, max: 600_000 });
/// The last node has a port of its own, too.
pub(super) const METRICS_PORT: Key = Key::new(
    "metrics.port",
    Limit::Range { min: 0, max: u16::MAX as u64 + 1 - Cluster::NODES_MAX as u64 },
);
/// How many `[[task]]` there may be.
pub(super) const TASKS: Key =
    Key::new("task", Limit::Range { min: 0, max: Cluster::TASKS_MAX as u64 });
pub(super) const TASK_PROGRAM: Key = Key::new("task.program", Limit::Text { min: 1, max: 255 });
pub(super) const TASK_ARGS: Key =
    Key::new("task.args", Limit::Range { min: 0, max: Task::ARGS_MAX as u64 });
/// Each of `task.args`.
pub(super) const TASK_ARG: Key = Key::new("task.args", Limit::Text { min: 0, max: 1023 });
pub(super) const TASK_RESTART_MAX: Key =
    Key::new("task.restart.max", Limit::Range { min: 0, max: 10_000 });
pub(super) const TASK_RESTART_WITHIN_S: Key =
    Key::new("task.restart.within_s", Limit::Range { min: 1, max: 86_400 });
pub(super) const TASK_BEAT_MS: Key =
    Key::new("task.beat_ms", Limit::Range { min: 10, max: 3_600_000 });

pub(super) const RECOVERY_SCRIPT: Key =
    Key::new("recovery.script", Limit::Text { min: 1, max: 4095 });
pub(super) const RECOVERY_ANSWER_MS: Key =
    Key::new("recovery.answer_ms", Limit::Range { min: 10, max: 3_600_000 });
pub(super) const COMPONENT_PROGRAM: Key =
    Key::new("component.program", Limit::Text { min: 1, max: 4095 });
pub(super) const COMPONENT_ARGS: Key =
    Key::new("component.args", Limit::Range { min: 0, max: Program::ARGS_MAX as u64 });
pub(super) const COMPONENT_ENV: Key =
    Key::new("component.env", Limit::Range { min: 0, max: Program::ARGS_MAX as u64 });
pub(super) const COMPONENT_WORKING_S: Key =
    Key::new("component.working_s", Limit::Range { min: 0, max: 86_400 });

pub(super) const HOOKS_TIMEOUT_S: Key =
    Key::new("hooks.timeout_s", Limit::Range { min: 1, max: 3600 });

/// Every path a file may set, tables included, and what may stand there.
pub(super) const ROWS: [(&str, Shape); 97] = [
    (NAME, Shape::Name),
    (NODES.path, Shape::Number(&NODES)),
    (WAIT, Shape::Word(|| Wait::ALL.map(Wait::as_str).to_vec())),
    (MAILBOX, Shape::Table),
    (MAILBOX_SLOTS.path, Shape::Number(&MAILBOX_SLOTS)),
    (MAILBOX_MESSAGE_LEN.path, Shape::Number(&MAILBOX_MESSAGE_LEN)),
    (MAILBOX_STALL_AFTER_US.path, Shape::Number(&MAILBOX_STALL_AFTER_US)),
    (MAILBOX_HOLD_S.path, Shape::Number(&MAILBOX_HOLD_S)),
    (MAILBOX_CHECKSUM, Shape::Word(|| Checksum::ALL.map(Checksum::as_str).to_vec())),
    (LANE, Shape::Table),
    (LANE_SLOTS.path, Shape::Number(&LANE_SLOTS)),
    (NEB, Shape::Table),
    (NEB_SLOTS.path, Shape::Number(&NEB_SLOTS)),
    (NEB_MESSAGE_LEN.path, Shape::Number(&NEB_MESSAGE_LEN)),
    (NEB_FORM, Shape::Word(|| Form::ALL.map(Form::as_str).to_vec())),
    (NEB_MEMBERSHIP, Shape::Word(|| Membership::ALL.map(Membership::as_str).to_vec())),
    (GROUP, Shape::Table),
    (GROUP_COUNT.path, Shape::Number(&GROUP_COUNT)),
    (GROUP_ENTRIES.path, Shape::Number(&GROUP_ENTRIES)),
    (GROUP_BLOCKS.path, Shape::Number(&GROUP_BLOCKS)),
    (GROUP_BLOCK_LEN.path, Shape::Number(&GROUP_BLOCK_LEN)),
    (GROUP_TOPOLOGY, Shape::Word(|| Topology::ALL.map(Topology::as_str).to_vec())),
    (GROUP_LATENCY.path, Shape::Number(&GROUP_LATENCY)),
    (GROUPS.path, Shape::Tables(&GROUPS)),
    (GROUPS_NAME, Shape::Name),
    (GROUPS_MEMBERS, Shape::Ranks),
    (RENDEZVOUS, Shape::Table),
    (RENDEZVOUS_POOL_MIB.path, Shape::Number(&RENDEZVOUS_POOL_MIB)),
    (RENDEZVOUS_STORE_MIB.path, Shape::Number(&RENDEZVOUS_STORE_MIB)),
    (RENDEZVOUS_PATH, Shape::Word(|| TensorPath::ALL.map(TensorPath::as_str).to_vec())),
    (RESTART, Shape::Table),
    (RESTART_MAX.path, Shape::Number(&RESTART_MAX)),
    (RESTART_WITHIN_S.path, Shape::Number(&RESTART_WITHIN_S)),
    (TASKS.path, Shape::Tables(&TASKS)),
    (TASK_NAME, Shape::Name),
    (TASK_PROGRAM.path, Shape::Text(&TASK_PROGRAM)),
    (TASK_ARGS.path, Shape::Texts(TASK_ARGS.limit)),
    (TASK_NODES, Shape::Ranks),
    (TASK_RESTART, Shape::Table),
    (TASK_RESTART_MAX.path, Shape::Number(&TASK_RESTART_MAX)),
    (TASK_RESTART_WITHIN_S.path, Shape::Number(&TASK_RESTART_WITHIN_S)),
    (TASK_BEAT_MS.path, Shape::Number(&TASK_BEAT_MS)),
    (COMPONENT, Shape::Table),
    (COMPONENT_PROGRAM.path, Shape::Text(&COMPONENT_PROGRAM)),
    (COMPONENT_ARGS.path, Shape::Texts(COMPONENT_ARGS.limit)),
    (COMPONENT_ENV.path, Shape::Texts(COMPONENT_ENV.limit)),
    (COMPONENT_STATE, Shape::Length),
    (COMPONENT_WORKING_S.path, Shape::Number(&COMPONENT_WORKING_S)),
    (RECOVERY, Shape::Table),
    (RECOVERY_SCRIPT.path, Shape::Text(&RECOVERY_SCRIPT)),
    (RECOVERY_ANSWER_MS.path, Shape::Number(&RECOVERY_ANSWER_MS)),
    (RECOVERY_IMAGE, Shape::Base64),
    (RECOVERY_CALLS, Shape::Commands),
    (HOOKS, Shape::Table),
    (HOOKS_TIMEOUT_S.path, Shape::Number(&HOOKS_TIMEOUT_S)),
    (HOOKS_VIEW, Shape::Command),
    (HOOKS_JOINED, Shape::Command),
    (HOOKS_REMOVED, Shape::Command),
    (HOOKS_ISOLATED, Shape::Command),
    (HOOKS_FAILED, Shape::Command),
    (HOOKS_RELEASED, Shape::Command),
    (HOOKS_SUSPECTED, Shape::Command),
    (HOOKS_TRUSTED, Shape::Command),
    (HOOKS_TASK, Shape::Command),
    (FABRIC, Shape::Word(|| FabricKind::ALL.map(FabricKind::as_str).to_vec())),
    (VERBS, Shape::Table),
    (VERBS_DEVICES.path, Shape::Texts(VERBS_DEVICES.limit)),
    (VERBS_TIMEOUT.path, Shape::Number(&VERBS_TIMEOUT)),
    (VERBS_RETRY_COUNT.path, Shape::Number(&VERBS_RETRY_COUNT)),
    (VERBS_RNR_RETRY_COUNT.path, Shape::Number(&VERBS_RNR_RETRY_COUNT)),
    (VERBS_RNR_TIMER.path, Shape::Number(&VERBS_RNR_TIMER)),
    (VERBS_DEADLINE_MS.path, Shape::Number(&VERBS_DEADLINE_MS)),
    (NETWORK, Shape::Table),
    (NETWORK_ADDRESSES, Shape::Texts(NODES.limit)),
    (NETWORK_DISCOVERY, Shape::Etcd),
    (NETWORK_KEY, Shape::File),
    (METRICS, Shape::Table),
    (METRICS_PORT.path, Shape::Number(&METRICS_PORT)),
    (DIRNET, Shape::Table),
    (DIRNET_PROFILE, Shape::Word(|| Profile::ALL.map(Profile::as_str).to_vec())),
    (DIRNET_MIN_ALIVE.path, Shape::Number(&DIRNET_MIN_ALIVE)),
    (DIRNET_ROLES, Shape::Parts),
    (DIRNET_RESET, Shape::Table),
    (DIRNET_RESET_MAX.path, Shape::Number(&DIRNET_RESET_MAX)),
    (DIRNET_RESET_WITHIN_S.path, Shape::Number(&DIRNET_RESET_WITHIN_S)),
    (DIRNET_TIMING, Shape::Table),
    (TIMING_SEND_US.path, Shape::Number(&TIMING_SEND_US)),
    (TIMING_RECEIVE_US.path, Shape::Number(&TIMING_RECEIVE_US)),
    (TIMING_CLEAR_US.path, Shape::Number(&TIMING_CLEAR_US)),
    (TIMING_ALARM_US.path, Shape::Number(&TIMING_ALARM_US)),
    (TIMING_WINDOW_US.path, Shape::Number(&TIMING_WINDOW_US)),
    (TIMING_DELAY_US.path, Shape::Number(&TIMING_DELAY_US)),
    (TIMING_LOSSES.path, Shape::Number(&TIMING_LOSSES)),
    (TIMING_CANDIDATE_US.path, Shape::Number(&TIMING_CANDIDATE_US)),
    (TIMING_JOIN_US.path, Shape::Number(&TIMING_JOIN_US)),
    (TIMING_CLONE_MS.path, Shape::Number(&TIMING_CLONE_MS)),
    (TIMING_REBOOT_MS.path, Shape::Number(&TIMING_REBOOT_MS)),
];

/// The paths alone.
pub(super) const PATHS: [&str; ROWS.len()] = {
    let (mut paths, mut at) = ([""; ROWS.len()], 0);
    while at < ROWS.len() {
        paths[at] = ROWS[at].0;
        at += 1;
    }
    paths
};

/// The last part of a path: `slots` of `mailbox.slots`.
pub(super) fn leaf(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(_, leaf)| leaf)
}

/// The path that was probably meant by one that does not exist.
pub(super) fn suggestion(unknown: &str) -> Option<&'static str> {
    // The right word in the wrong table is likelier than a misspelt neighbour: a key written
    // below a table header belongs to that table, which surprises people.
    if let Some(path) = PATHS.into_iter().find(|path| leaf(path) == leaf(unknown)) {
        return Some(path);
    }
    let table = unknown.rsplit_once('.').map(|(table, _)| table);
    let likeness = |path: &str| {
        let near = path.rsplit_once('.').map(|(table, _)| table) == table;
        let min = if near { LIKENESS_MIN } else { LIKENESS_ELSEWHERE_MIN };
        let likeness = strsim::normalized_damerau_levenshtein(leaf(path), leaf(unknown));
        (likeness >= min).then_some((near, likeness))
    };
    // A key of the same table before any other.
    PATHS
        .into_iter()
        .filter_map(|path| Some((likeness(path)?, path)))
        .max_by(|((near, a), _), ((other_near, b), _)| near.cmp(other_near).then(a.total_cmp(b)))
        .map(|(_, path)| path)
}

/// The keys of the table in which an unknown one stands; all, where there is no such table.
pub(super) fn beside(unknown: &str) -> Vec<&'static str> {
    let table = unknown.rsplit_once('.').map(|(table, _)| table);
    let is_beside = |path: &&str| path.rsplit_once('.').map(|(table, _)| table) == table;
    let beside: Vec<_> = PATHS.into_iter().filter(is_beside).collect();
    if beside.is_empty() { PATHS.to_vec() } else { beside }
}

/// How alike a key of the same table must be, and one of another, where it is misplaced as well.
const LIKENESS_MIN: f64 = 0.5;
const LIKENESS_ELSEWHERE_MIN: f64 = 0.75;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_like_no_other_is_told_the_keys_of_its_table() {
        assert_eq!(beside("lane.foo"), ["lane.slots"]);
        assert_eq!(beside("dirnet.timing.foo").len(), 11);
        assert!(beside("foo").contains(&"name") && !beside("foo").contains(&"lane.slots"));
        assert_eq!(beside("no.such.foo").len(), PATHS.len());
    }

    #[test]
    fn suggestions_are_what_was_meant() {
        for (unknown, meant) in [
            ("nmae", Some("name")),
            ("node", Some("nodes")),
            ("slots", Some("mailbox.slots")),
            ("mailbox.wait", Some("wait")),
            ("mailbox.slot", Some("mailbox.slots")),
            ("lane.slot", Some("lane.slots")),
            ("mailbox.mesage_len", Some("mailbox.message_len")),
            ("restart.within", Some("restart.within_s")),
            ("malbox", Some("mailbox")),
            ("hooks.remove", Some("hooks.removed")),
            ("hook", Some("hooks")),
            ("dirnet.send_us", Some("dirnet.timing.send_us")),
            ("dirnet.timing.recieve_us", Some("dirnet.timing.receive_us")),
            ("dirnet.timing.windows_us", Some("dirnet.timing.window_us")),
            ("dirnet.timing.wiat", Some("wait")),
            ("dirnet.timing.foo", None),
            ("colour", None),
        ] {
            assert_eq!(suggestion(unknown), meant, "{unknown}");
        }
    }
}
