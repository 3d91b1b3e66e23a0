//! `weft group`: the groups of a running cluster.

use std::collections::BTreeSet;
use std::thread;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::cluster_choice::{ClusterChoice, seconds};
use super::failure::Failure;
use super::output::Output;
use super::survey::Survey;
use weft::client::{Client, ClientError};
use weft::clock::Deadline;
use weft::cluster::NamedGroup;
use weft::explain::{self, Code, Explain as _, nodes};
use weft::node::control::{GroupPart, GroupStatus, GroupWindow, RootStatus};

/// Arguments of `weft group`.
#[derive(Debug, Args)]
pub(super) struct GroupArguments {
    #[command(subcommand)]
    what: GroupCommand,
}

#[derive(Debug, Subcommand)]
enum GroupCommand {
    /// Show each group: its members, and how far the messages of each have come.
    Ls(GroupLsArguments),
    /// Enter a barrier for members, and wait until all live members of the group have entered it.
    Barrier(Barrier),
}

/// Arguments of `weft group ls`.
#[derive(Debug, Args)]
struct GroupLsArguments {
    #[command(flatten)]
    cluster: ClusterChoice,
}

/// Arguments of `weft group barrier`.
#[derive(Debug, Args)]
struct Barrier {
    /// The group.
    #[arg(value_name = "GROUP")]
    group: String,

    /// Enter it for this member only; without it, for all members that are live. An entry outlives
    /// the timeout: enter again to wait for the same barrier.
    #[arg(long, value_name = "RANK")]
    node: Option<u16>,

    /// Give up after this many seconds.
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: f64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &GroupArguments, output: Output) -> Result<(), Failure> {
    match &arguments.what {
        GroupCommand::Ls(arguments) => list(arguments, output),
        GroupCommand::Barrier(arguments) => barrier(arguments, output),
    }
}

fn list(arguments: &GroupLsArguments, output: Output) -> Result<(), Failure> {
    let survey = Survey::take(&arguments.cluster.find()?);
    let groups = groups(&survey);
    let none = "no groups: set group.count to 1 in the cluster file, or add [[groups]]\n";
    let text = if groups.is_empty() { none.to_owned() } else { table(&survey) };
    output.finish(&json!({ "ok": true, "name": survey.name, "groups": groups }), &text);
    Ok(())
}

/// A group of the cluster file.
#[derive(Debug, Serialize)]
struct Listed<'a> {
    name: String,
    members: Vec<u16>,
    /// As any member reports.
    removed: BTreeSet<u16>,
    nodes: Vec<GroupProgress<'a>>,
}

/// What one member reports.
#[derive(Debug, Serialize)]
struct GroupProgress<'a> {
    node: u16,
    standing: GroupPart,
    roots: &'a [RootStatus],
}

fn groups(survey: &Survey) -> Vec<Listed<'_>> {
    let listed = |group: NamedGroup| {
        let is_part =
            |it: &&GroupStatus| it.name == group.name && it.standing != GroupPart::NotAMember;
        let reported = survey
            .answered()
            .filter_map(|node| Some((node.rank, node.groups.iter().find(is_part)?)));
        let reported: Vec<_> = reported.collect();
        Listed {
            removed: reported.iter().flat_map(|(_, it)| it.removed.iter().copied()).collect(),
            nodes: reported
                .iter()
                .map(|(node, it)| GroupProgress {
                    node: *node,
                    standing: it.standing,
                    roots: &it.roots,
                })
                .collect(),
            name: group.name,
            members: group.members,
        }
    };
    let cluster = &survey.cluster;
    cluster.group.groups(cluster.nodes).into_iter().map(listed).collect()
}

/// The groups for people: members and standing, and how far each root's messages have come.
pub(super) fn table(survey: &Survey) -> String {
    groups(survey).iter().map(lines).collect()
}

fn lines(group: &Listed<'_>) -> String {
    let with = |standing| {
        let nodes = group.nodes.iter().filter(|part| part.standing == standing);
        nodes.map(|part| part.node).collect::<Vec<_>>()
    };
    let mut text = format!("\ngroup {} of {}: ", group.name, nodes(&group.members));
    match &with(GroupPart::Opening)[..] {
        [] if group.nodes.is_empty() => text.push_str("no member answers"),
        [] => text.push_str(GroupPart::Open.words()),
        opening => text.push_str(&format!("{} at {}", GroupPart::Opening.words(), nodes(opening))),
    }
    let unopened = with(GroupPart::Unopened);
    if !unopened.is_empty() {
        text.push_str(&format!(", without {}, {}", nodes(&unopened), GroupPart::Unopened.words()));
    }
    let removed: Vec<_> =
        group.removed.iter().copied().filter(|it| !unopened.contains(it)).collect();
    if !removed.is_empty() {
        text.push_str(&format!(", without {}, by removal", nodes(&removed)));
    }
    text.push('\n');
    let rows = group.nodes.iter().flat_map(|part| {
        let used = part.roots.iter().filter(|root| root.held > 0);
        used.map(|root| row(part.node, root))
    });
    let rows: String = rows.collect();
    if !rows.is_empty() {
        let titles = ["held here", "delivered", "by all", "window", "hindmost"];
        let [held, delivered, by_all, window, hindmost] = titles;
        text.push_str(&format!(
            "node  {:>6} {held:>11} {delivered:>11} {by_all:>11} {window:>13} {hindmost:>8}\n",
            "root"
        ));
        text.push_str(&rows);
    }
    text
}

fn row(node: u16, root: &RootStatus) -> String {
    let RootStatus { root, held, delivered, by_all, window } = root;
    let or_none = |word: Option<String>| word.unwrap_or_else(|| "-".to_owned());
    let by_all = or_none(by_all.map(|seq| seq.to_string()));
    // Messages, then blocks, of how many there is room for.
    let room = |it: &GroupWindow| {
        format!("{}/{} {}/{}", it.entries, it.entries_max, it.blocks, it.blocks_max)
    };
    let hindmost = window.filter(|it| it.entries > 0).and_then(|it| it.hindmost);
    let (room, hindmost) = (window.as_ref().map(room), hindmost.map(|rank| rank.to_string()));
    let (room, hindmost) = (or_none(room), or_none(hindmost));
    format!(
        "{node:>4}  {root:>6} {held:>11} {delivered:>11} {by_all:>11} {room:>13} {hindmost:>8}\n"
    )
}

fn barrier(arguments: &Barrier, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let running = arguments.cluster.find()?;
    let name = arguments.group.as_str();
    let groups = running.cluster.group.groups(running.cluster.nodes);
    let group = groups.iter().find(|group| group.name == name);
    let (nodes, are_all) = match (arguments.node, group) {
        (Some(node), _) => (vec![node], false),
        (None, Some(group)) => (group.members.clone(), true),
        (None, None) => (vec![0], false),
    };
    let deadline = Deadline::after(timeout);
    let connected = nodes.into_iter().map(|node| (node, running.try_connect(node)));
    // The others would leave without one that has come back, and is not counted yet.
    let open = |client: &mut Client| client.group_open(name, deadline.remaining());
    let members = at_all(connected.collect(), are_all, open)?;
    let members = members.into_iter().map(|(node, client, ())| (node, Ok(client)));
    let enter = |client: &mut Client| client.group_barrier(name, deadline.remaining());
    let passed = at_all(members.collect(), are_all, enter)?;
    let nodes: Vec<_> = passed.iter().map(|(node, ..)| *node).collect();
    let number = passed.first().map_or(0, |(.., number)| *number);
    let object = json!({ "ok": true, "group": name, "nodes": nodes, "barrier": number });
    output.finish(
        &object,
        &format!("barrier {number} of group {name} passed by {}\n", explain::nodes(&nodes)),
    );
    Ok(())
}

/// Asks all of `members` at once. Where others decide without one that is not live (`are_all`), its
/// refusal does not count, unless no other is left.
fn at_all<T: Send>(
    members: Vec<(u16, Result<Client, ClientError>)>,
    are_all: bool,
    ask: impl Fn(&mut Client) -> Result<T, ClientError> + Sync,
) -> Result<Vec<(u16, Client, T)>, Failure> {
    let ask = &ask;
    let asked: Vec<_> = thread::scope(|scope| {
        let asking = members.into_iter().map(|(node, client)| {
            scope.spawn(move || {
                let mut client = client?;
                ask(&mut client).map(|answer| (node, client, answer))
            })
        });
        let asking: Vec<_> = asking.collect();
        asking.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let (mut answers, mut refusal) = (Vec::new(), None);
    for asked in asked {
        let is_not_live = |error: &ClientError| {
            matches!(error.code(), Code::Standing | Code::Isolated | Code::NodeUnreachable)
        };
        match asked {
            Ok(answer) => answers.push(answer),
            Err(error) if are_all && is_not_live(&error) => refusal = Some(error),
            Err(error) => return Err(Failure::new(error)),
        }
    }
    match refusal.filter(|_| answers.is_empty()) {
        Some(error) => Err(Failure::new(error)),
        None => Ok(answers),
    }
}
