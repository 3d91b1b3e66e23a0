//! `weft handover`: makes another node the manager, in order; no node is restarted for it.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::isolate::{LOOK_EVERY, ManagerOrder, is_passing};
use super::output::Output;
use weft::client::ClientError;
use weft::clock::Deadline;
use weft::explain::Code;
use weft::node::control::{DirNetStatus, NodeOrder, NodeState, Refused};

/// How often the order is repeated: a node that stood still does not obey an old one.
const REPEAT_EVERY: Duration = Duration::from_millis(200);

/// Arguments of `weft handover`.
#[derive(Debug, Args)]
pub(super) struct HandoverArguments {
    /// The rank of the node that becomes the manager; without it, the next backup in turn.
    to: Option<u16>,

    #[command(flatten)]
    cluster: ClusterChoice,

    /// How long to wait, in seconds, until it is the manager and every node knows that.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS", allow_negative_numbers = true)]
    wait: f64,
}

/// Has the manager hand over; waits until every node that answers has learned of the next term.
pub(super) fn run(arguments: &HandoverArguments, output: Output) -> Result<(), Failure> {
    let order = ManagerOrder::new(&arguments.cluster, arguments.wait, arguments.to)?;
    order.check_governable()?;
    let (before, _) = order.manager()?;
    let (node, epoch) = Handover { order: &order, to: arguments.to, before }.done()?;
    let done = format!("node {node} is the manager now");
    order.await_all(None, &done, |it| (it.epoch, it.manager) >= (epoch, node), || Ok(()))?;
    let is_changed = node != before;
    let object = json!({
        "ok": true, "node": node, "before": before, "epoch": epoch, "changed": is_changed
    });
    let text = match is_changed {
        true => {
            format!("node {node} is the manager now, in term {epoch}.{node}, after node {before}\n")
        }
        false => format!("node {node} is already the manager, in term {epoch}.{node}\n"),
    };
    output.finish(&object, &text);
    Ok(())
}

struct Handover<'a> {
    order: &'a ManagerOrder,
    to: Option<u16>,
    /// The manager when the command began.
    before: u16,
}

/// Why a node cannot be handed over to.
struct Obstacle {
    cause: String,
    cure: String,
    /// Whether it remains unless an operator does something.
    is_lasting: bool,
}

impl Handover<'_> {
    /// Gives the order until it is carried out; returns the manager and its epoch. Managers may be
    /// lost meanwhile, and the node that is wanted may be on its way back.
    fn done(&self) -> Result<(u16, u32), Failure> {
        let order = self.order;
        let (mut repeats, mut obstacle) = (Deadline::after(Duration::ZERO), None);
        loop {
            let managing = self.latest();
            if let Some((manager, standing)) = managing {
                if self.is_wanted(manager) {
                    return Ok((manager, standing.epoch));
                }
                if repeats.has_passed() {
                    repeats = Deadline::after(REPEAT_EVERY);
                    obstacle = self.give(manager, &standing)?;
                }
            }
            if order.deadline.has_passed() {
                return Err(self.late(obstacle));
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    /// Whether all is done once this node is the manager.
    fn is_wanted(&self, manager: u16) -> bool {
        match self.to {
            Some(to) => manager == to,
            None => manager != self.before,
        }
    }

    /// Of the nodes that say that they are the manager, that of the last term: for a moment, there
    /// are two.
    fn latest(&self) -> Option<(u16, DirNetStatus)> {
        let standings = self.order.running.ranks().filter_map(|rank| {
            self.order.standing(rank).filter(|it| it.role == "manager").map(|it| (rank, it))
        });
        standings.max_by_key(|(rank, it)| (it.epoch, *rank))
    }

    /// Gives the order to the manager; returns why it cannot be carried out now, if it cannot.
    fn give(&self, manager: u16, standing: &DirNetStatus) -> Result<Option<Obstacle>, Failure> {
        let Some(node) = self.to.or_else(|| self.order.backup_after(manager, standing)) else {
            let cause = format!("node {manager} is the manager");
            return Err(ManagerOrder::no_backup(&cause, standing));
        };
        let client = self.order.running.connect_now(manager);
        match client.and_then(|mut client| client.order_node(node, NodeOrder::HandOver)) {
            Ok(()) => Ok(None),
            Err(ClientError::Refused { reason: Refused::Unfit { .. }, .. }) => {
                let obstacle = self.obstacle(node, manager, standing);
                match obstacle.is_lasting {
                    true => Err(Failure::of(Code::Standing, obstacle.cause, obstacle.cure)),
                    false => Ok(Some(obstacle)),
                }
            }
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(Failure::new(error)),
        }
    }

    /// Why the manager does not hand over to `node`.
    fn obstacle(&self, node: u16, manager: u16, standing: &DirNetStatus) -> Obstacle {
        let status = self.order.running.connect_now(node).ok().and_then(|mut it| it.status().ok());
        let state = status.as_ref().map(|it| it.state);
        let role = status.and_then(|it| it.dirnet).map(|it| it.role);
        let is_agent = role.as_deref() == Some("agent");
        let wait = format!("wait until `weft status` shows node {node} as a backup, and try again");
        let (cause, cure, is_lasting) = match state {
            _ if standing.isolated.contains(&node) || state == Some(NodeState::Isolated) => (
                format!("node {node} is isolated"),
                format!("admit it with `weft release {node}` first, or choose another node"),
                true,
            ),
            _ if is_agent => (
                format!("node {node} is an agent, which never manages (`dirnet.roles`)"),
                "choose another node; `weft status` shows which are backups".to_owned(),
                true,
            ),
            Some(NodeState::GivenUp) => (
                format!("the component of node {node} failed too often and was given up"),
                format!("`weft status --why {node}` shows why; or choose another node"),
                true,
            ),
            None => (format!("node {node} does not answer"), wait, false),
            Some(NodeState::Starting | NodeState::Joining) => {
                (format!("node {node} is starting"), wait, false)
            }
            _ if standing.removed.contains(&node) => {
                (format!("node {node} was removed, and has not come back"), wait, false)
            }
            _ if standing.suspects.contains(&node) => {
                (format!("node {manager}, the manager, suspects node {node}"), wait, false)
            }
            Some(NodeState::Running | NodeState::Finished | NodeState::Isolated) => (
                format!(
                    "node {manager}, the manager, has not heard node {node} in its present \
                     incarnation, or has fewer members left than `dirnet.min_alive`"
                ),
                wait,
                false,
            ),
        };
        Obstacle { cause, cure, is_lasting }
    }

    /// The error after the whole wait.
    fn late(&self, obstacle: Option<Obstacle>) -> Failure {
        let (waited, before) = (self.order.waited, self.before);
        if let Some(Obstacle { cause, cure, .. }) = obstacle {
            let cause = format!("{cause}, so node {before} has not handed over within {waited} s");
            return Failure::of(Code::Standing, cause, format!("{cure}; or raise `--wait`"));
        }
        let node = self.to.map_or("another node".to_owned(), |to| format!("node {to}"));
        let cause = format!("{node} has not taken over from node {before} within {waited} s");
        let cure = "run `weft status` to see which node is the manager, then try again; or raise \
                    `--wait`";
        Failure::of(Code::Timeout, cause, cure)
    }
}
