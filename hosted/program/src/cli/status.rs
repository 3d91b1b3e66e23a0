//! `weft status`: every node of a running cluster.

mod why;

use std::collections::BTreeSet;

use clap::Args;
use serde::Serialize;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::group;
use super::output::Output;
use super::survey::{NodeAnswer, Survey};
use super::tensor;
use weft::clock::unix_ms;
use weft::explain::{self, nodes};
use weft::node::chronicle::Entry;
use weft::node::control::{
    DirNetStatus, HookStatus, NodeStatus, OriginStatus, ProofStatus, TaskState, TaskStatus,
    TimingStatus,
};
use weft_core::neb::number_in_epoch;
use why::Why;

/// What the columns mean.
const COLUMNS: &str = "\
Nodes, a line for each. A role is `stale` while the membership may be another by now: the node does
not hear its manager, is a manager that is not heard, or has not carried out a change. The columns
behind `within` are counted by the component, which began so long ago; its next incarnation begins
again.

Broadcasts, a line for each node and each origin that it knows. All columns are message numbers
of that origin:
  seen here  the last that the node has seen, a few past the delivered ones; at the origin, the
             last that it has broadcast; each boot of an origin counts from 1
  delivered  the last that a client received there; at the origin, the same as seen here
  by all     the last that every node has received, as far as this node knows
  window     messages that some node has not received yet, of the most that the origin may have
             outstanding
Groups, a line for each node and each root that has sent: the columns mean the same, except that
`held here` counts the messages whose entry the node has, and only the root knows `by all`.

Tensors, a line for each node, if the cluster has a rendezvous:
  stored       tensors in the store of its supervisor; the bytes are those and what receives that
               wait may bring
  offered      values that wait for their receivers or are on their way, and the memory of their
               pool that is lent for them
  receives     receives that wait, or whose value no one has taken yet, and the memory of their pool
  quarantined  of that memory, the bytes of receives that have ended while reads or writes of them
               are out: given back once no byte can change
  waiters      receives of peers that wait for a value of this node
  rejects      messages of peers that came too late or did not fit, and changed nothing";

/// Arguments of `weft status`.
#[derive(Debug, Args)]
#[command(after_help = COLUMNS)]
pub(super) struct StatusArguments {
    /// Show what was noted about this node: who concluded what, from which evidence, and when.
    #[arg(long, value_name = "RANK")]
    why: Option<u16>,

    /// Show which control messages were ignored, too: some always are around starts.
    #[arg(long, short)]
    verbose: bool,

    #[command(flatten)]
    cluster: ClusterChoice,
}

/// For how long a client holds messages before it wants attention: each reader does for a moment.
const HOLDING_MS: u64 = 3_000;

/// The last verdicts that are shown.
const VERDICTS_SHOWN: usize = 8;

/// The report of `weft status`.
#[derive(Debug, Serialize)]
struct StatusReport {
    #[serde(flatten)]
    survey: Survey,
    /// Oldest first.
    verdicts: Vec<Entry>,
}

pub(super) fn run(arguments: &StatusArguments, output: Output) -> Result<(), Failure> {
    let running = arguments.cluster.find()?;
    if let Some(node) = arguments.why {
        let why = Why::ask(&running, node)?;
        output.finish(&why, &why.render());
        return Ok(());
    }
    let survey = Survey::take(&running);
    let answered = survey.answered().map(|node| node.rank);
    let verdicts = why::verdicts(&running, answered, VERDICTS_SHOWN);
    let report = StatusReport { survey, verdicts };
    let mut text = render(&report, unix_ms());
    if arguments.verbose {
        text.push_str(&refused(&report.survey));
    }
    output.finish(&report, &text);
    Ok(())
}

fn render(report: &StatusReport, now_unix_ms: u64) -> String {
    let status = &report.survey;
    let mut text = format!(
        "cluster {}\n{:>4}  {:<11} {:<14} {:>5} {:>11} {:>8} {:>9}  {:>7}: {:>9} {:>9} {:>6} \
         {:>7}  peers\n",
        status.name,
        "node",
        "state",
        "role",
        "term",
        "incarnation",
        "restarts",
        "pid",
        "within",
        "put",
        "taken",
        "full",
        "skipped",
    );
    for entry in &status.nodes {
        text.push_str(&match entry {
            NodeAnswer::Silent { rank, state, .. } => format!("{rank:>4}  {state}\n"),
            NodeAnswer::Answered(node) => row(node, now_unix_ms),
        });
    }
    let tasks: String = status.tasks().map(|(rank, task)| task_row(rank, task)).collect();
    if !tasks.is_empty() {
        text.push_str(&format!(
            "\n{:>4}  {:<11} {:>11} {:>8} {:>9}  task, last error\n{tasks}",
            "node", "task is", "errors", "restarts", "pid"
        ));
    }
    text.push_str(&broadcasts(status));
    text.push_str(&group::table(status));
    text.push_str(&tensor::table(status));
    let standings = standings(status);
    if !standings.is_empty() {
        text.push_str(&format!("\n{standings}"));
    }
    text.push_str(&timing(status));
    if !report.verdicts.is_empty() {
        text.push_str("\nlast verdicts; details: `weft status --why NODE`\n");
    }
    for Entry { observer, node, what, .. } in &report.verdicts {
        text.push_str(&format!("  node {observer} about node {node}: {what}\n"));
    }
    text
}

/// What wants the operator's attention, each with its cure.
pub(super) fn standings(status: &Survey) -> String {
    let notes = [
        hung,
        holders,
        undecided,
        left_broadcasts,
        isolated,
        isolated_tasks,
        failed_hooks,
        cuts,
        forged_tickets,
        damage,
    ];
    notes.iter().map(|note| note(status)).collect()
}

/// The cure for isolated tasks.
fn isolated_tasks(status: &Survey) -> String {
    let isolated = status.tasks().filter(|(_, task)| task.state == TaskState::Isolated);
    let line = |(rank, task): (u16, &TaskStatus)| {
        let name = &task.name;
        let last = task.last_errors.last();
        let last = last.map_or_else(String::new, |last| format!(", {}", last.fault));
        format!(
            "task {name} of node {rank} is isolated{last}; `weft task start {name} --node {rank}` \
             starts it again\n"
        )
    };
    isolated.map(line).collect()
}

/// The hooks that failed, and where the rest is found.
fn failed_hooks(status: &Survey) -> String {
    let line = |node: &NodeStatus| {
        let hooks = node.hooks.as_ref()?;
        let last = hooks.last_failure.as_ref()?;
        let HookStatus { run, failed, missed, .. } = hooks;
        let rank = node.rank;
        Some(format!(
            "node {rank} has run {}: {failed} failed and {missed} found no room; the last \
             of them: {last}\n",
            explain::count(*run, "hook")
        ))
    };
    status.answered().filter_map(line).collect()
}

/// Which processes hold messages of a mailbox, and when those go back.
fn holders(status: &Survey) -> String {
    let then = match status.cluster.mailbox.hold() {
        Some(hold) => format!("they go back after {} s", hold.as_secs()),
        None => "they go back when it leaves".to_owned(),
    };
    let held = status.answered().flat_map(|node| {
        let long = node.holders.iter().filter(|holder| holder.held_ms >= HOLDING_MS);
        long.map(|holder| format!("node {}: {holder}; {then}\n", node.rank))
    });
    held.collect()
}

/// The cure for supervisors that hang; `weft up` applies it by itself while it runs.
fn hung(status: &Survey) -> String {
    let line = |entry: &NodeAnswer| match entry {
        NodeAnswer::Silent { rank, supervisor_pid: Some(pid), .. } => Some(format!(
            "node {rank} hangs: its supervisor, process {pid}, does not answer; `weft up` replaces \
             it, elsewhere `kill -9 {pid}` ends it and `weft node FILE --rank {rank}` starts it \
             again\n"
        )),
        NodeAnswer::Silent { .. } | NodeAnswer::Answered(_) => None,
    };
    status.nodes.iter().filter_map(line).collect()
}

/// A warning if the manager hears too few members to decide about the others. If no manager
/// answers, the node that hears most members counts.
fn undecided(status: &Survey) -> String {
    let (dirnet, nodes) = (&status.cluster.dirnet, status.cluster.nodes);
    let wanted = dirnet.deciding(nodes);
    let hearing = || status.answered().filter_map(|node| Some((heard(node)?, node)));
    let epoch_of = |node: &NodeStatus| {
        node.dirnet.as_ref().filter(|standing| standing.role == "manager").map(|it| it.epoch)
    };
    let manager = hearing().filter_map(|(heard, node)| Some((epoch_of(node)?, (heard, node))));
    let manager = manager.max_by_key(|(epoch, _)| *epoch).map(|(_, it)| it);
    let judge = manager.or_else(|| hearing().max_by_key(|(heard, _)| *heard));
    let Some((heard, node)) = judge.filter(|(heard, _)| *heard < wanted) else {
        return String::new();
    };
    let removed = node.dirnet.as_ref().map_or(0, |standing| standing.removed.len());
    if heard + removed >= nodes {
        return String::new();
    }
    let why = match usize::from(dirnet.min_alive(nodes)) {
        min_alive if min_alive == wanted => format!("`dirnet.min_alive` is {wanted}"),
        _ => format!("a verdict takes {wanted}"),
    };
    format!(
        "silent nodes are not decided about: node {} hears {heard} of {nodes} nodes, itself \
         included, and {why}\n",
        node.rank
    )
}

/// How many members `node` hears, itself included, if it is a member.
fn heard(node: &NodeStatus) -> Option<usize> {
    let standing = node.dirnet.as_ref().filter(|standing| standing.is_member())?;
    let is_doubted = |rank| standing.suspects.contains(rank) || standing.removed.contains(rank);
    let peers = node.peers.iter().filter(|peer| peer.incarnation.is_some());
    Some(1 + peers.filter(|peer| !is_doubted(&peer.rank)).count())
}

/// The isolated nodes, as known by any node.
fn isolated(status: &Survey) -> String {
    let known = status.answered().filter_map(|node| node.dirnet.as_ref());
    let isolated: BTreeSet<u16> = known.flat_map(|dirnet| dirnet.isolated.clone()).collect();
    let line = |node: &u16| {
        format!(
            "node {node} is isolated; `weft status --why {node}` shows \
             the reason, `weft release {node}` admits it again\n"
        )
    };
    isolated.iter().map(line).collect()
}

/// The links that are cut by order, and the command that restores them.
fn cuts(status: &Survey) -> String {
    let is_cut = |node: &&NodeStatus| !node.cut.is_empty();
    let line = |node: &NodeStatus| {
        format!(
            "\nnode {} does not reach {}, by order; `weft inject heal` restores it\n",
            node.rank,
            nodes(&node.cut)
        )
    };
    status.answered().filter(is_cut).map(line).collect()
}

/// The nodes whose mailbox has forged tickets.
fn forged_tickets(status: &Survey) -> String {
    let line = |node: &NodeStatus| {
        let count = node.counters.filter(|counters| counters.forged_tickets > 0)?.forged_tickets;
        let rank = node.rank;
        Some(format!(
            "the mailbox of node {rank} has {}; see the evidence with `weft status --why {rank}`\n",
            explain::count(count, "forged ticket")
        ))
    };
    status.answered().filter_map(line).collect()
}

/// The nodes whose broadcast memory is damaged.
fn damage(status: &Survey) -> String {
    let damage = status.ranks().flat_map(|origin| status.damage(origin));
    damage.map(|damage| format!("{damage}\n")).collect()
}

/// The control messages that the DIR net ignored, by reason: at a node's component, its I'm-Alive
/// Task, and its supervisor, which had no component to pass them to.
fn refused(status: &Survey) -> String {
    let row = |node: &NodeStatus| {
        let by_component = node.dirnet.iter().flat_map(|dirnet| &dirnet.refused);
        let count = |by: &str, (why, n): (&String, &u32)| format!("{why} {n}{by}");
        let by_component = by_component.map(|it| count("", it));
        let by_task = node.refused_by_task.iter().map(|it| count(" (I'm-Alive Task)", it));
        let by_supervisor = node.refused_by_supervisor.iter().map(|it| count(" (supervisor)", it));
        let counts: Vec<_> = by_component.chain(by_task).chain(by_supervisor).collect();
        (!counts.is_empty()).then(|| format!("{:>4}  {}\n", node.rank, counts.join(", ")))
    };
    let rows: String = status.answered().filter_map(row).collect();
    if rows.is_empty() {
        rows
    } else {
        format!("\nnode  control messages ignored (normal around starts)\n{rows}")
    }
}

/// The timing in force, as reported by the first node that takes part.
fn timing(status: &Survey) -> String {
    let timing = status.answered().find_map(|node| Some(&node.dirnet.as_ref()?.timing));
    timing.map_or_else(String::new, |timing| {
        let TimingStatus { profile, receive_us, window_us, .. } = timing;
        let ms = |us: u64| us as f64 / 1_000.0;
        let (receive, verdict) = (ms(*receive_us), ms(receive_us + window_us));
        format!(
            "\ntiming {profile}: suspected after {receive} ms of silence, removed after \
             {verdict} ms\n"
        )
    })
}

/// The nodes that take no part in broadcasts.
fn left_broadcasts(status: &Survey) -> String {
    let line = |node: &u16| match status.is_waited_for(*node) {
        true => format!("node {node} has lost its broadcast memory, and broadcasts wait for it\n"),
        false => format!("node {node} was removed from broadcasts; the others go on without it\n"),
    };
    status.left_broadcasts().iter().map(line).collect()
}

/// The table of broadcasts: each origin's progress at every node.
fn broadcasts(status: &Survey) -> String {
    let rows = status.answered().flat_map(|node| {
        let is_used = |row: &&OriginStatus| row.broadcast > 0 || row.conflicts > 0;
        node.broadcasts.iter().filter(is_used).map(|row| {
            let is_complaint = status.complaint(node.rank, row.origin).is_some();
            broadcast_row(node.rank, row, if is_complaint { ", not proven" } else { "" })
        })
    });
    let rows: String = rows.collect();
    if rows.is_empty() {
        return rows;
    }
    let (node, origin, seen, delivered) = ("node", "origin", "seen here", "delivered");
    let form = status.answered().next().map(|node| node.form).unwrap_or_default();
    let (by_all, window, conflicts) = ("by all", "window", "conflicts");
    let proofs = status.answered().flat_map(|node| {
        node.proofs.iter().map(|proof| {
            let (rank, ProofStatus { origin, seq }) = (node.rank, proof);
            format!(
                "node {rank} holds a proof that node {origin} sent different messages to \
                 different nodes as number {seq}: `weft neb proof --node {rank} --origin \
                 {origin}`\n"
            )
        })
    });
    let proofs: String = proofs.collect();
    format!(
        "\nbroadcasts, {form}\n{node:>4}  {origin:>6} {seen:>11} {delivered:>11} {by_all:>11} \
         {window:>11} {conflicts:>9}\n{rows}{proofs}"
    )
}

fn broadcast_row(rank: u16, row: &OriginStatus, proof: &str) -> String {
    let OriginStatus { origin, broadcast, delivered, settled, conflicts, first_conflict, .. } = row;
    let window = format!("{}/{}", row.window.used, row.window.slots);
    let [broadcast, delivered, settled] =
        [broadcast, delivered, settled].map(|n| number_in_epoch(*n));
    let conflict = first_conflict.map_or_else(String::new, |first| {
        format!(", the first at {} with node {}{proof}", number_in_epoch(first.seq), first.replayer)
    });
    format!(
        "{rank:>4}  {origin:>6} {broadcast:>11} {delivered:>11} {settled:>11} {window:>11} \
         {conflicts:>9}{conflict}\n"
    )
}

fn task_row(rank: u16, task: &TaskStatus) -> String {
    let last = task
        .last_errors
        .last()
        .map_or_else(String::new, |last| format!(", {} {} s ago", last.fault, last.ago_ms / 1_000));
    let unrecorded = match task.unrecorded {
        0 => String::new(),
        count => format!(", {count} errors never reached the database"),
    };
    format!(
        "{rank:>4}  {:<11} {:>11} {:>8} {:>9}  {}{last}{unrecorded}\n",
        task.state.as_str(),
        task.errors,
        task.restarts,
        pid(task.pid),
        task.name,
    )
}

fn row(node: &NodeStatus, now_unix_ms: u64) -> String {
    let state = node.state.words();
    let within = node.counters.map_or_else(
        || "-".to_owned(),
        |counters| age(now_unix_ms.saturating_sub(counters.since_unix_ms)),
    );
    let counters = node.counters.unwrap_or_default();
    format!(
        "{:>4}  {state:<11} {:<14} {:>5} {:>11} {:>8} {:>9}  {within:>7}: {:>9} {:>9} {:>6} {:>7}  \
         {}\n",
        node.rank,
        role(node),
        term(node),
        node.incarnation,
        node.restarts,
        pid(node.component_pid),
        counters.put,
        counters.taken,
        counters.full,
        counters.skipped,
        peers(node),
    )
}

/// A length of time in its largest unit.
pub(super) fn age(ms: u64) -> String {
    match ms / 1_000 {
        s if s < 100 => format!("{s} s"),
        s if s < 100 * 60 => format!("{} min", s / 60),
        s if s < 100 * 3_600 => format!("{} h", s / 3_600),
        s => format!("{} d", s / 86_400),
    }
}

/// The role in the DIR net, if it takes part, and whether its membership may be another by now.
pub(super) fn role(node: &NodeStatus) -> String {
    let role = |dirnet: &DirNetStatus| match dirnet.stale && dirnet.is_member() {
        true => format!("{}, stale", dirnet.role),
        false => dirnet.role.clone(),
    };
    node.dirnet.as_ref().map_or_else(|| "-".to_owned(), role)
}

/// The term that the node has adopted: its epoch and its manager.
pub(super) fn term(node: &NodeStatus) -> String {
    let term = |dirnet: &DirNetStatus| format!("{}.{}", dirnet.epoch, dirnet.manager);
    node.dirnet.as_ref().map_or_else(|| "-".to_owned(), term)
}

/// A process number, if there is one.
pub(super) fn pid(pid: Option<i32>) -> String {
    pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string())
}

/// The peers of a node: each with its incarnation, `?` before it is greeted, `-` if it does not
/// live; behind it `!` when it is suspected, and `x` when it is not reached by order.
pub(super) fn peers(node: &NodeStatus) -> String {
    let suspects = node.dirnet.as_ref().map(|dirnet| dirnet.suspects.as_slice());
    let peers = node.peers.iter().map(|peer| {
        let suspected = if suspects.unwrap_or_default().contains(&peer.rank) { "!" } else { "" };
        let cut = if node.cut.contains(&peer.rank) { "x" } else { "" };
        let incarnation = match (peer.incarnation, peer.joined) {
            (Some(incarnation), true) => incarnation.to_string(),
            (Some(incarnation), false) => format!("{incarnation}?"),
            (None, _) => "-".to_owned(),
        };
        format!("{}:{incarnation}{suspected}{cut}", peer.rank)
    });
    peers.collect::<Vec<_>>().join(" ")
}
