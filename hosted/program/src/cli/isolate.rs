//! `weft isolate` and `weft release`: fences a node until an operator admits it again.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::cluster_choice::{ClusterChoice, Running, seconds};
use super::failure::Failure;
use super::output::Output;
use weft::client::ClientError;
use weft::clock::Deadline;
use weft::explain::Code;
use weft::node::control::{DirNetStatus, NodeOrder, NodeState, Refused};

/// How often to look for a manager, and for the outcome of an order.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Arguments of both.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The node's rank.
    node: u16,

    #[command(flatten)]
    cluster: ClusterChoice,

    /// How long to wait, in seconds, until it is done.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS", allow_negative_numbers = true)]
    wait: f64,
}

/// Has the manager isolate a node; waits until every node that answers has learned of it.
pub(super) fn isolate(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let order = Order::new(arguments)?;
    let node = order.node;
    let Given { manager, was_isolated } = order.give(NodeOrder::Isolate)?;
    order.await_all(manager, "isolated", |standing| standing.isolated.contains(&node))?;
    let object = json!({
        "ok": true, "node": node, "isolated": true, "manager": manager, "changed": !was_isolated
    });
    let already = if was_isolated { "already " } else { "" };
    let text = format!("node {node}: {already}isolated; `weft release {node}` admits it again\n");
    output.finish(&object, &text);
    Ok(())
}

/// Has the manager release a node; waits until it runs again.
pub(super) fn release(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let order = Order::new(arguments)?;
    let node = order.node;
    let Given { manager, .. } = order.give(NodeOrder::Release)?;
    order.await_all(manager, "released", |standing| !standing.removed.contains(&node))?;
    let returned = order.running.await_return(node, 0, 1, order.deadline.remaining());
    let returned =
        returned.map_err(|failure| failure.behind(&obeyed(node, "released", manager)))?;
    let incarnation = returned.incarnation;
    let object = json!({ "ok": true, "node": node, "isolated": false, "incarnation": incarnation });
    output.finish(&object, &format!("node {node}: released; incarnation {incarnation} runs\n"));
    Ok(())
}

/// The part of an error that confirms the order although its effect did not show in time.
fn obeyed(node: u16, done: &str, manager: u16) -> String {
    format!("node {node} is {done} by node {manager}, the manager; no further order is needed")
}

/// An order that the manager carried out.
struct Given {
    /// The manager.
    manager: u16,
    /// Whether the node was isolated before the order.
    was_isolated: bool,
}

/// An order in progress.
struct Order {
    running: Running,
    node: u16,
    /// How long it may take, in seconds.
    waited: f64,
    deadline: Deadline,
}

impl Order {
    fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let deadline = Deadline::after(seconds("--wait", arguments.wait)?);
        let running = arguments.cluster.find()?;
        let node = arguments.node;
        // A node that does not exist is refused as everywhere.
        if usize::from(node) >= running.cluster.nodes {
            running.connect(node).map(drop)?;
        }
        Ok(Self { running, node, waited: arguments.wait, deadline })
    }

    /// The DIR net status of a node's component, if it answers.
    fn standing(&self, rank: u16) -> Option<DirNetStatus> {
        self.running.connect_now(rank).ok()?.status().ok()?.dirnet
    }

    /// Gives the order to the manager. If the manager is lost or deposed meanwhile, looks for the
    /// next one.
    fn give(&self, order: NodeOrder) -> Result<Given, Failure> {
        self.check_governable()?;
        let mut is_known = false;
        loop {
            let (manager, standing) = self.manager()?;
            if order == NodeOrder::Isolate && manager == self.node {
                return Err(self.not_itself(&standing));
            }
            let was_isolated = standing.isolated.contains(&self.node);
            if order == NodeOrder::Release && !was_isolated {
                if is_known {
                    // The manager that was lost had done it.
                    return Ok(Given { manager, was_isolated: true });
                }
                // A manager that has just taken over learns of isolations from the others.
                if self.is_isolated_for_any() && !self.deadline.has_passed() {
                    std::thread::park_timeout(LOOK_EVERY);
                    continue;
                }
                let cause = format!("node {} is not isolated", self.node);
                return Err(Failure::of(
                    Code::Standing,
                    cause,
                    "run `weft status` to see which nodes are isolated",
                ));
            }
            is_known |= was_isolated;
            let client = self.running.connect_now(manager);
            match client.and_then(|mut client| client.order_node(self.node, order)) {
                Ok(()) => return Ok(Given { manager, was_isolated }),
                Err(error) if is_passing(&error) && !self.deadline.has_passed() => {
                    std::thread::park_timeout(LOOK_EVERY);
                }
                Err(error) => return Err(Failure::new(error)),
            }
        }
    }

    /// Whether a node that answers holds the node for isolated.
    fn is_isolated_for_any(&self) -> bool {
        let mut standings = self.running.ranks().filter_map(|rank| self.standing(rank));
        standings.any(|standing| standing.isolated.contains(&self.node))
    }

    /// The node that says it is the manager, and its status.
    fn manager(&self) -> Result<(u16, DirNetStatus), Failure> {
        let managing = |rank| {
            let standing = self.standing(rank).filter(|standing| standing.role == "manager");
            standing.map(|standing| (rank, standing))
        };
        let waited = self.waited;
        let failed = || {
            let cause =
                format!("no node has acted as manager for {waited} s, so nothing was ordered");
            let cure =
                "run `weft status` to see which nodes run, then try again; or raise `--wait`";
            Failure::of(Code::Timeout, cause, cure)
        };
        self.wait(failed, || self.running.ranks().find_map(managing))
    }

    /// The error where the node is the manager: another has to succeed it first, if there is one.
    fn not_itself(&self, standing: &DirNetStatus) -> Failure {
        let node = self.node;
        let cause = format!("node {node} is the manager, and a manager does not isolate itself");
        let is_backup = |rank: &u16| self.standing(*rank).is_some_and(|it| it.role == "backup");
        if self.running.ranks().any(|rank| rank != node && is_backup(&rank)) {
            let cure = format!(
                "have another node take over with `weft inject kill {node}`, then try again"
            );
            return Failure::of(Code::Standing, cause, cure);
        }
        let cause = format!("{cause}, and no other node could take over now");
        let cure = match &standing.isolated[..] {
            [] => "wait until another manager or backup runs, or start one".to_owned(),
            [other, ..] => format!("admit another node first with `weft release {other}`"),
        };
        Failure::of(Code::Standing, cause, format!("{cure}; or end the cluster: `weft down`"))
    }

    /// Whether there is a node that can be manager, now or soon; without one nothing is decided.
    fn check_governable(&self) -> Result<(), Failure> {
        let state = |rank| self.running.connect_now(rank).ok()?.status().ok().map(|it| it.state);
        let states = self.running.ranks().map(|rank| (rank, state(rank)));
        let (mut idle, mut may_return) = (Vec::new(), false);
        for (rank, state) in states {
            may_return |= state != Some(NodeState::Isolated);
            match state {
                None => idle.push(format!("node {rank} does not answer")),
                Some(NodeState::Isolated | NodeState::GivenUp) => {
                    let words = state.map_or("", NodeState::words);
                    idle.push(format!("node {rank} is {words}"));
                }
                Some(
                    NodeState::Starting
                    | NodeState::Joining
                    | NodeState::Running
                    | NodeState::Finished,
                ) => {
                    return Ok(());
                }
            }
        }
        let cause = format!("no node can decide: {}", idle.join(", "));
        let restart = "end the cluster with `weft down` and start it again, which forgets which \
                       nodes are isolated";
        let cure = match may_return {
            true => format!("wait until another node is back, or start one; or {restart}"),
            // Only a manager releases a node, and an isolated node claims no term.
            false => restart.to_owned(),
        };
        Err(Failure::of(Code::Standing, cause, cure))
    }

    /// Waits until every other node that answers stands so.
    fn await_all(
        &self,
        manager: u16,
        done: &str,
        is_so: impl Fn(&DirNetStatus) -> bool,
    ) -> Result<(), Failure> {
        let others = || self.running.ranks().filter(|rank| *rank != self.node);
        let failed = || {
            let cause = "some nodes have not learned of it yet";
            let cure = "check `weft status` again, or raise `--wait`";
            Failure::of(Code::Timeout, cause, cure).behind(&obeyed(self.node, done, manager))
        };
        self.wait(failed, || {
            let mut standings = others().filter_map(|rank| self.standing(rank));
            standings.all(|standing| is_so(&standing)).then_some(())
        })
    }

    fn wait<T>(
        &self,
        failed: impl Fn() -> Failure,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T, Failure> {
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            if self.deadline.has_passed() {
                return Err(failed());
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    }
}

/// Whether another manager, or the next component of this one, may do what was not done.
fn is_passing(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } => true,
        ClientError::Refused { reason, .. } => {
            matches!(reason, Refused::NotManager | Refused::ComponentLost | Refused::Isolated)
        }
        _ => false,
    }
}
