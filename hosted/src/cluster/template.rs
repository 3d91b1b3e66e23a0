//! The cluster file as people should see it: every key, its meaning and its limit.
//!
//! One text serves as documentation (`Cluster::template`) and as what a running cluster keeps
//! beside its sockets (`Cluster::to_toml`), so the documented form is the one that is parsed
//! every day. It does not keep the comments of the file a cluster was read from.

use std::collections::BTreeMap;

use toml::Value;

use super::key::{
    DIRNET_MIN_ALIVE, DIRNET_RESET_MAX, DIRNET_RESET_WITHIN_S, GROUP_BLOCK_LEN, GROUP_BLOCKS,
    GROUP_ENTRIES, GROUP_LATENCY, GROUPS, HOOKS_TIMEOUT_S, LANE_SLOTS, MAILBOX_HOLD_S,
    MAILBOX_MESSAGE_LEN, MAILBOX_SLOTS, MAILBOX_STALL_AFTER_US, METRICS_PORT, NEB_MESSAGE_LEN,
    NEB_SLOTS, NODES, RECOVERY_ANSWER_MS, RENDEZVOUS_POOL_MIB, RENDEZVOUS_STORE_MIB, RESTART_MAX,
    RESTART_WITHIN_S, TASK_BEAT_MS, VERBS_DEADLINE_MS, VERBS_RETRY_COUNT, VERBS_RNR_RETRY_COUNT,
    VERBS_RNR_TIMER, VERBS_TIMEOUT,
};
use super::program::Program;
use super::task::Task;
use super::timing::TimingRow;
use super::{Cluster, DirNet, Hooks, Kind, NamedGroup, Part, Recovery, Restart, Verbs, key};

fn list(texts: &[String]) -> Value {
    Value::from(texts.to_vec())
}

/// The text of a file that parses to `cluster`.
pub(super) fn render(cluster: &Cluster) -> String {
    let Cluster { name, nodes, wait, fabric, mailbox, lane, restart, .. } = cluster;
    let Cluster { neb, group, rendezvous, dirnet, tasks, component, hooks, .. } = cluster;
    let Cluster { recovery, verbs, network, .. } = cluster;
    let super::Mailbox { message_len, stall_after_us, hold_s, .. } = mailbox;
    let Restart { max, within_s } = restart;
    let Verbs { timeout, retry_count, rnr_retry_count, rnr_timer, deadline_ms, .. } = verbs;
    let key = network.key.as_ref().map_or(String::new(), |path| {
        format!("key = {}\n", Value::from(path.to_string_lossy().into_owned()))
    });
    let discovery = network.discovery.as_ref();
    let discovery = discovery
        .map_or(String::new(), |etcd| format!("discovery = {}\n", Value::from(etcd.as_str())));
    let word = |part: &Part| Value::from(part.as_str());
    let roles = dirnet.roles.as_ref().map_or(String::new(), |roles| {
        format!("roles = {}\n", Value::Array(roles.iter().map(word).collect()))
    });
    let min_alive_set = dirnet.min_alive.map_or(String::new(), |it| format!("min_alive = {it}\n"));
    let mut text = format!(
        r#"# A Weft cluster. Every node is started from the same file.

# Names the cluster on this machine: 1 to {name_len_max} characters of a-z, 0-9, '_' and '-',
# the first a letter or a digit. Must be set.
name = "{name}"

# How many members the cluster has: {NODES}. Fixed while it runs. Must be set.
nodes = {nodes}

# How an idle node waits: "spin" polls without pause (lowest latency, one processor per node),
# "yield" polls and lets others run, "futex" sleeps until it is woken.
wait = "{wait}"

# What carries messages: "shm" between the processes of one host, "verbs" between RDMA devices.
fabric = "{fabric}"

[mailbox]
# Slots in each of the two halves of a node's mailbox: between this many and twice as many
# messages wait before further puts are refused as full; {MAILBOX_SLOTS}.
slots = {mailbox_slots}

# The longest message in bytes: {MAILBOX_MESSAGE_LEN}. Each slot takes this much memory.
message_len = {message_len}

# After how many microseconds the owner of a mailbox questions a ticket whose message has not
# arrived: {MAILBOX_STALL_AFTER_US}. Choose more than the machine's own stalls.
stall_after_us = {stall_after_us}

# For how many seconds a client may hold messages before it releases them: {MAILBOX_HOLD_S}. Then
# they go back and are delivered again. 0 means as long as the client is connected; a client that
# stops reading then blocks the mailbox for all others.
hold_s = {hold_s}

# Checksums of messages: "auto" over verbs, where the bytes of a message arrive in any order,
# "always" in shared memory as well, which finds bytes that its hardware damaged.
checksum = "{mailbox_checksum}"

[lane]
# Messages under way from one node to one other: {LANE_SLOTS}.
slots = {lane_slots}

[neb]
# How many broadcast messages of one node may be outstanding, that is, not yet received by every
# other node: {NEB_SLOTS}.
slots = {neb_slots}

# The longest message in bytes: {NEB_MESSAGE_LEN}. Every node keeps two rings of slots of this
# length for every node.
message_len = {neb_message_len}

# Whether each message carries its node's Ed25519 signature. "unsigned": one faulty node can block
# the others' broadcasts. "signed": it cannot, and `weft neb proof` exports a proof against a node
# that sends different messages to different nodes.
form = "{neb_form}"

# What broadcasts do about a node that the DIR net has removed or whose supervisor has restarted.
# "decided": they go on without it, and it takes part again once all others count its new boot.
# "fixed": they wait until it comes back with its memory. With "decided", set `dirnet.min_alive` to
# a majority, or the two sides of a network partition may go on without each other.
membership = "{neb_membership}"

[group]
# 1 for the group "all", of all nodes, in which members broadcast messages of any length along
# trees; 0 for none, which takes no memory.
count = {group_count}

# How many messages, and how many blocks of long messages, a node may be ahead of the slowest
# member: {GROUP_ENTRIES}; {GROUP_BLOCKS}.
entries = {group_entries}
blocks = {group_blocks}

# Bytes of a block: {GROUP_BLOCK_LEN}.
# Every node keeps `blocks` of these for every node and group.
block_len = {group_block_len}

# Along which trees messages travel: "auto" (what suits the fabric), "serial", "pipe", "binary",
# "fibonacci" or "pipeline". `weft bcast --tree --topology` chooses for the blocks of one file.
topology = "{group_topology}"

# How many messages a member can send while one travels to the next: {GROUP_LATENCY}. The
# ratio of "fibonacci"; `weft bench group --model` measures it.
latency = {group_latency}

{groups}
[rendezvous]
# MiB that every node keeps for tensors that it sends by name, and as many for those that it
# receives: {RENDEZVOUS_POOL_MIB}. 0 for none, which takes no memory. A tensor that is longer than
# the largest power of two in it travels in parts, if it is sealed, as those of `weft send` are.
pool_mib = {rendezvous_pool_mib}

# The most MiB of tensors that a node keeps for `weft send` and `weft recv`, as they are needed:
# {RENDEZVOUS_STORE_MIB}. They outlive the component. Until its tensor is there, a receive takes as
# much of it as the largest power of two in pool_mib. Whatever their length, a node keeps at most
# 128 tensors and receives, 64 of which wait for their receivers.
store_mib = {rendezvous_store_mib}

# Where all nodes are on one host, "hand_over" copies nothing that `weft send` sends or
# `Member::send_sealed` does: the memory itself goes to the receiver. Between hosts its receiver
# reads it. With "read" it is copied so on one host, too, and with "write" its source writes it, in
# either case, into memory that its receiver lends.
path = "{rendezvous_path}"

[restart]
# A node's component that ends is started again at most `max` times ({RESTART_MAX}; 0 means never)
# within `within_s` seconds ({RESTART_WITHIN_S}); at the next end the node gives up.
max = {max}
within_s = {within_s}

[dirnet]
# How long a node may be silent: "host" for processes that share the processors of one host with
# others, "lan" for one host per node, "rdma" for dedicated polling processors.
profile = "{profile}"

# How many members, itself included, a manager must hear to remove a node: {DIRNET_MIN_ALIVE}, and
# at most `nodes`. The default, here {min_alive}, is a majority of three nodes or more: after a
# network partition at most one side removes the nodes of the other, and a side without a majority
# removes none. 1 prefers availability: each side with two nodes or more removes the nodes of the
# other, which lose what they had in memory, acknowledged messages included. In a cluster of two
# the default is 1: a node that dies is replaced, but after a cut of their link each removes the
# other. With 2 they wait for each other instead.
# min_alive = {min_alive}
{min_alive_set}
# The role of each node at the first start: one "manager", which decides; "backup", which may take
# over; "agent", which never does. By default node 0 is the manager and all others are backups.
# roles = ["manager", "backup", "backup", "agent"]
{roles}
[dirnet.reset]
# A node that is down is reset at most `max` times ({DIRNET_RESET_MAX}; 0 means never) within
# `within_s` seconds ({DIRNET_RESET_WITHIN_S}); at the next failure it is isolated until
# `weft release`. `within_s` must be longer than `max` resets take, each `reboot_ms` plus the time
# to the verdict, or a node that never comes back would be reset forever. The default is long
# enough.
max = {reset_max}
within_s = {reset_within_s}

{timing}
[verbs]
# The RDMA device of each node, in the order of ranks; used in turn if there are fewer. None: the
# first device of each host. `weft node --devices` chooses for one host.
devices = {devices}

# How soon a dead peer is detected. The device retransmits a packet `retry_count` times,
# {VERBS_RETRY_COUNT}, each after 4.096 us times 2 to the power of `timeout`, {VERBS_TIMEOUT}, or
# up to four times that. Weft gives up work that is still outstanding after `deadline_ms`,
# {VERBS_DEADLINE_MS}. With these numbers
# {detection}.
timeout = {timeout}
retry_count = {retry_count}
deadline_ms = {deadline_ms}

# How often a peer may answer that it is not ready, {VERBS_RNR_RETRY_COUNT}, and the code of the
# pause that a node asks for then, {VERBS_RNR_TIMER} (12 is 0.64 ms). One-sided work gets no such
# answers.
rnr_retry_count = {rnr_retry_count}
rnr_timer = {rnr_timer}

[network]
# For `weft node` on several hosts: the address of each node, as "HOST:PORT", in the order of ranks.
# None: all nodes run on one host.
addresses = {addresses}
# Or: each node registers its address (`weft node --address HOST:PORT`) with etcd, where the others
# find it. A line such as:
# discovery = "etcd://10.0.0.1:2379,10.0.0.2:2379"
{discovery}# The file with the key that all nodes share; `weft key FILE` makes one. A line such as:
# key = "/etc/weft/cluster.key"
{key}
[metrics]
# Node R serves its counters as OpenMetrics at 127.0.0.1, port `port` + R, to every user of the
# host: {METRICS_PORT}; 0 for none. In any case they are served at a socket in the
# cluster's directory, which `weft metrics` names.
port = {metrics_port}

{component}
{recovery}
{hooks}
{task_help}"#,
        profile = dirnet.profile,
        timing = timing_table(dirnet),
        min_alive = dirnet.min_alive(*nodes),
        reset_max = dirnet.reset.max,
        reset_within_s = dirnet.reset.within_s,
        name_len_max = super::ClusterName::LEN_MAX,
        mailbox_slots = mailbox.slots,
        mailbox_checksum = mailbox.checksum,
        lane_slots = lane.slots,
        neb_slots = neb.slots,
        neb_message_len = neb.message_len,
        neb_form = neb.form,
        neb_membership = neb.membership,
        group_count = group.count,
        group_entries = group.entries,
        group_blocks = group.blocks,
        group_block_len = group.block_len,
        group_topology = group.topology,
        group_latency = group.latency,
        groups = groups_tables(&group.named),
        rendezvous_pool_mib = rendezvous.pool_mib,
        rendezvous_store_mib = rendezvous.store_mib,
        rendezvous_path = rendezvous.path,
        devices = list(&verbs.devices),
        detection = verbs.detection(),
        addresses = list(&network.addresses),
        metrics_port = cluster.metrics.port,
        component = component_table(component.as_ref()),
        recovery = recovery_table(recovery),
        hooks = hooks_table(hooks),
        task_help = task_help(),
    );
    for task in tasks {
        text.push('\n');
        text.push_str(&task_table(task));
    }
    text
}

/// Every value of the timing: those that are set, and in comments those of the profile.
fn timing_table(dirnet: &DirNet) -> String {
    let mut text = r#"[dirnet.timing]
# Single values that replace the profile's own, which are shown in comments. Refused unless
#   clear + delay < alarm
#   receive >= (losses + 1) * send + delay
#   receive + window >= send + 2 * alarm + delay
#   window >= 4 * delay
#   candidate >= (losses + 1) * send + 3 * delay
#   join >= 2 * delay

"#
    .to_owned();
    let base = dirnet.profile.timing();
    for TimingRow { key, means, set, base } in dirnet.timing.rows(&base) {
        let (leaf, limit) = (key::leaf(key.path), key.limit);
        let line = match set {
            Some(value) => format!("{leaf} = {value}"),
            None => format!("# {leaf} = {base}"),
        };
        text.push_str(&format!("# {means}: {limit}.\n{line}\n"));
    }
    text
}

/// What `[[groups]]` are, and those that are set.
fn groups_tables(groups: &[NamedGroup]) -> String {
    let mut text = format!(
        "# Groups of some nodes, {GROUPS}, with the sizes of [group]; `members` are their ranks.\n"
    );
    let table = |NamedGroup { name, members }: &NamedGroup| {
        format!("[[groups]]\nname = \"{name}\"\nmembers = {members:?}\n")
    };
    if groups.is_empty() {
        let example = NamedGroup { name: "pair".to_owned(), members: vec![0, 2] };
        table(&example).lines().for_each(|line| text.push_str(&format!("# {line}\n")));
        text.push('\n');
    }
    groups.iter().for_each(|group| text.push_str(&format!("{}\n", table(group))));
    text
}

/// What `[component]` is, and the one that is set.
fn component_table(component: Option<&Program>) -> String {
    let table = |it: &Program| {
        let program = match it.program.as_str() {
            "" => String::new(),
            program => format!("program = {}\n", Value::from(program)),
        };
        let (args, env) = (list(&it.args), list(&it.env));
        let state = Value::from(it.state_text());
        let working_s = it.working_s;
        format!(
            "[component]\n{program}args = {args}\nenv = {env}\nstate = {state}\n\
             working_s = {working_s}\n"
        )
    };
    let mut text =
        r#"# The program that is the member at every node, instead of `weft component`: it
# calls weft::Member::join. `program` is a path or is looked up in PATH; without it, the command
# line of `weft run` or `weft node` names one. WEFT_RANK, WEFT_SIZE,
# WEFT_NAME, WEFT_INCARNATION and the variables of `env` are set for it. `state` is the length of
# the record that the node keeps for the next incarnation; "0" for none. A step that the program
# announces (Member::working) may last `working_s` seconds, up to 86400; 0 for none.
"#
        .to_owned();
    match component {
        Some(component) => text.push_str(&table(component)),
        None => table(&Program::example()).lines().for_each(|line| {
            text.push_str(&format!("# {line}\n"));
        }),
    }
    text
}

/// What `[recovery]` is, with the script that is set.
fn recovery_table(recovery: &Recovery) -> String {
    let text_of = |text: String| Value::from(text);
    let script = recovery.script.as_ref().map(|it| text_of(it.to_string_lossy().into_owned()));
    let line = match script {
        Some(script) => format!("script = {script}"),
        None => "# script = \"camera.rl\"".to_owned(),
    };
    let image =
        recovery.image_text().map_or(String::new(), |it| format!("image = {}\n", text_of(it)));
    format!(
        r#"[recovery]
# The script that decides how tasks and nodes recover, in the language of `weft rl reference`. A
# relative path begins at the folder of this file. Without it, or for tasks that it does not
# declare, recovery is the built-in one.
{line}
# For how many milliseconds, {RECOVERY_ANSWER_MS}, a failed task that the script declares, or one
# that has reported an error, waits for an order: there may be no manager. Then its node does what
# the script's DEFAULT says, or restarts a task that the script does not declare.
answer_ms = {answer_ms}
# The programs that CALL of the script may run, by name, each as an array of words; the node that
# manages runs them, with the arguments of the CALL behind the words, for 30 s at most:
# calls = {{ page = ["logger", "-t", "weft"] }}
{calls}# The translated script. `weft up` and `weft node` write it into the copy that nodes read:
# image = "V1JMMQ=="
{image}"#,
        answer_ms = recovery.answer_ms,
        calls = calls_line(&recovery.calls),
    )
}

fn calls_line(calls: &BTreeMap<String, Vec<String>>) -> String {
    if calls.is_empty() {
        return String::new();
    }
    let words = |command: &Vec<String>| {
        Value::Array(command.iter().map(|word| Value::from(word.as_str())).collect())
    };
    let calls = calls.iter().map(|(name, command)| (name.clone(), words(command)));
    // A table in one line: what follows stands below [recovery].
    let calls: Vec<String> =
        calls.map(|(name, words)| format!("{} = {words}", Value::from(name))).collect();
    format!("calls = {{ {} }}\n", calls.join(", "))
}

/// What `[hooks]` is, with a command that is commented out for each event that has none.
fn hooks_table(hooks: &Hooks) -> String {
    let mut text = format!(
        r#"[hooks]
# Commands, each a program and its arguments, that the manager's node runs for the events of `weft
# watch`, one after the other. The event is in WEFT_EVENT, WEFT_VIEW, WEFT_TERM, WEFT_RANK,
# WEFT_INCARNATION, WEFT_VERDICT and WEFT_TASK_NAME, and as JSON on standard input. Up to 64 events
# wait. A command that still runs after `timeout_s` seconds, {HOOKS_TIMEOUT_S}, is killed. When a
# manager dies, the next one repeats what was not reported as done: view and term are the same then,
# so a command that must act once compares them.
timeout_s = {timeout_s}
"#,
        timeout_s = hooks.timeout_s,
    );
    for kind in Kind::ALL.into_iter().filter(|kind| kind.key().is_some()) {
        let line = match hooks.commands.get(&kind) {
            Some(command) => format!("{kind} = {}\n", list(command)),
            None => format!("# {kind} = {}\n", list(&Hooks::example())),
        };
        text.push_str(&line);
    }
    text
}

/// What a `[[task]]` is, with one that is commented out.
fn task_help() -> String {
    let mut text = format!(
        r#"# Programs that nodes guard, up to {tasks_max}; `name` and `program` must be set. A
# program that fails or reports an error is restarted at most `max` times within `within_s` seconds,
# then isolated; one that ends with status 0 has finished. `program` is a path or is looked up in
# PATH. Without `nodes`, every node runs it. With `beat_ms`, {TASK_BEAT_MS}, it must call
# weft::task::beat, or run `weft report --beat`, at least that often, or it counts as hung. `max`
# times `beat_ms` must be less than three quarters of `within_s`, so that a program that never beats
# is isolated.
"#,
        tasks_max = Cluster::TASKS_MAX,
    );
    for line in task_table(&Task::example()).lines() {
        text.push_str(&format!("# {line}\n"));
    }
    text
}

fn task_table(task: &Task) -> String {
    let Task { name, program, args, nodes, restart, beat_ms } = task;
    let quoted = |text: &String| Value::from(text.as_str()).to_string();
    let args = args.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "[[task]]\nname = \"{name}\"\nprogram = {}\nargs = [{args}]\n\
         restart = {{ max = {}, within_s = {} }}\n",
        quoted(program),
        restart.max,
        restart.within_s
    );
    if let Some(nodes) = nodes {
        text.push_str(&format!("nodes = {nodes:?}\n"));
    }
    if let Some(beat_ms) = beat_ms {
        text.push_str(&format!("beat_ms = {beat_ms}\n"));
    }
    text
}
