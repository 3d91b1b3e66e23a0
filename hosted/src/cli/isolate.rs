//! `weft isolate` and `weft release`: a node is shut out of the cluster, and let in again.

use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::cluster_choice::{ClusterChoice, Running, seconds};
use super::failure::Failure;
use super::output::Output;
use crate::clock::Deadline;
use crate::explain::Code;
use crate::node::control::{DirNetStatus, NodeOrder, NodeState};

/// How often is looked for a manager, and for what has become of an order.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Arguments of both.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The node's rank.
    node: u16,

    #[command(flatten)]
    cluster: ClusterChoice,

    /// How long to wait, in seconds, until it is done.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    wait: f64,
}

/// Has the manager isolate a node; waits until everybody who answers has heard of it.
pub(super) fn isolate(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let order = Order::new(arguments)?;
    let manager = order.manager()?;
    let node = order.node;
    if manager == node {
        let cause = format!("node {node} is the manager, which does not isolate itself");
        let cure = format!("let another follow it: `weft inject kill {node}`, then try again");
        return Err(Failure::of(Code::Standing, cause, cure));
    }
    let was_so = order.standing(manager).is_some_and(|standing| standing.isolated.contains(&node));
    order.give(manager, NodeOrder::Isolate)?;
    order.await_all(|standing| standing.isolated.contains(&node))?;
    let object = json!({
        "ok": true, "node": node, "isolated": true, "manager": manager, "changed": !was_so
    });
    let already = if was_so { "already " } else { "" };
    let text = format!("node {node}: {already}isolated; `weft release {node}` lets it come back\n");
    output.finish(&object, &text);
    Ok(())
}

/// Has the manager release a node; waits until it runs again.
pub(super) fn release(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let order = Order::new(arguments)?;
    let manager = order.manager()?;
    let node = order.node;
    if !order.standing(manager).is_some_and(|standing| standing.isolated.contains(&node)) {
        let cause = format!("node {node} is not isolated");
        return Err(Failure::of(Code::Standing, cause, "see `weft status` who is"));
    }
    order.give(manager, NodeOrder::Release)?;
    order.await_all(|standing| !standing.removed.contains(&node))?;
    let returned = order.running.await_return(node, 0, 1, order.deadline.remaining())?;
    let incarnation = returned.incarnation;
    let object = json!({ "ok": true, "node": node, "isolated": false, "incarnation": incarnation });
    output.finish(&object, &format!("node {node}: released; incarnation {incarnation} runs\n"));
    Ok(())
}

/// An order on its way.
struct Order {
    running: Running,
    node: u16,
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
        Ok(Self { running, node, deadline })
    }

    /// How the component of a node stands, if it answers.
    fn standing(&self, rank: u16) -> Option<DirNetStatus> {
        self.running.connect_now(rank).ok()?.status().ok()?.dirnet
    }

    /// Who says that it is the manager.
    fn manager(&self) -> Result<u16, Failure> {
        self.check_governable()?;
        let manages = |rank: &u16| self.standing(*rank).is_some_and(|it| it.role == "manager");
        self.wait("no node says that it is the manager", || self.running.ranks().find(manages))
    }

    /// Whether there is a node that can be manager, now or soon; without one nobody decides.
    fn check_governable(&self) -> Result<(), Failure> {
        let state = |rank| self.running.connect_now(rank).ok()?.status().ok().map(|it| it.state);
        let states = self.running.ranks().map(|rank| (rank, state(rank)));
        let mut idle = Vec::new();
        for (rank, state) in states {
            match state {
                None => idle.push(format!("node {rank} does not answer")),
                Some(NodeState::Isolated | NodeState::GivenUp) => {
                    let words = state.map_or("", NodeState::words);
                    idle.push(format!("node {rank} is {words}"));
                }
                Some(NodeState::Starting | NodeState::Joining | NodeState::Running) => {
                    return Ok(());
                }
            }
        }
        let cause = format!("no node is left that could decide: {}", idle.join(", "));
        let cure = "wait until another node is back, or start one; or end the cluster with \
                    `weft down` and start it again, which forgets who is isolated";
        Err(Failure::of(Code::Standing, cause, cure))
    }

    fn give(&self, manager: u16, order: NodeOrder) -> Result<(), Failure> {
        let mut client = self.running.connect(manager)?;
        client.order_node(self.node, order).map_err(Failure::new)
    }

    /// Waits until every other node that answers stands so.
    fn await_all(&self, is_so: impl Fn(&DirNetStatus) -> bool) -> Result<(), Failure> {
        let others = || self.running.ranks().filter(|rank| *rank != self.node);
        self.wait("not every node has heard of it yet", || {
            let mut standings = others().filter_map(|rank| self.standing(rank));
            standings.all(|standing| is_so(&standing)).then_some(())
        })
    }

    fn wait<T>(&self, otherwise: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, Failure> {
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            if self.deadline.has_passed() {
                let cure = "look again with `weft status`, or raise `--wait`";
                return Err(Failure::of(Code::Timeout, otherwise, cure));
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    }
}
