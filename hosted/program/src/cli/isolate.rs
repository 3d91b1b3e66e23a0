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
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Arguments of both.
#[derive(Debug, Args)]
pub(super) struct IsolateArguments {
    /// The node's rank.
    node: u16,

    #[command(flatten)]
    cluster: ClusterChoice,

    /// How long to wait, in seconds, until it is done.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS", allow_negative_numbers = true)]
    wait: f64,
}

/// Has the manager isolate a node; waits until every node that answers has learned of it.
pub(super) fn isolate(arguments: &IsolateArguments, output: Output) -> Result<(), Failure> {
    let node = arguments.node;
    let order = ManagerOrder::new(&arguments.cluster, arguments.wait, Some(node))?;
    let Given { manager, was_isolated } = order.give(node, NodeOrder::Isolate)?;
    let done = obeyed(node, "isolated", manager);
    let is_isolated = |standing: &DirNetStatus| standing.isolated.contains(&node);
    order.await_all(Some(node), &done, is_isolated, || {
        let cause = format!("node {node} was isolated, and released since by another order");
        let cure = format!("if it is to stay out, run `weft isolate {node}` again");
        order.check_manager(manager, is_isolated, &cause, &cure)
    })?;
    let object = json!({
        "ok": true, "node": node, "isolated": true, "manager": manager, "changed": !was_isolated
    });
    let already = if was_isolated { "already " } else { "" };
    let text = format!("node {node}: {already}isolated; `weft release {node}` admits it again\n");
    output.finish(&object, &text);
    Ok(())
}

/// Has the manager release a node; waits until it runs again.
pub(super) fn release(arguments: &IsolateArguments, output: Output) -> Result<(), Failure> {
    let node = arguments.node;
    let order = ManagerOrder::new(&arguments.cluster, arguments.wait, Some(node))?;
    let Given { manager, .. } = order.give(node, NodeOrder::Release)?;
    let done = obeyed(node, "released", manager);
    order.await_all(
        Some(node),
        &done,
        |it| !it.removed.contains(&node),
        || {
            let cause = format!("node {node} was released, and isolated since by another order");
            let cure = format!("if it is to come back, run `weft release {node}` again");
            order.check_manager(manager, |it| !it.isolated.contains(&node), &cause, &cure)
        },
    )?;
    let returned = order.running.await_return(node, 0, 1, order.deadline.remaining());
    let returned = returned.map_err(|failure| failure.behind(&done))?;
    let incarnation = returned.incarnation;
    let object = json!({ "ok": true, "node": node, "isolated": false, "incarnation": incarnation });
    output.finish(&object, &format!("node {node}: released; incarnation {incarnation} runs\n"));
    Ok(())
}

/// The part of an error that confirms the order although its effect did not show in time.
fn obeyed(node: u16, done: &str, manager: u16) -> String {
    format!("node {manager}, the manager, has {done} node {node}")
}

/// An order that the manager carried out.
struct Given {
    /// The manager.
    manager: u16,
    /// Whether the node was isolated before the order.
    was_isolated: bool,
}

/// An order to the manager in progress.
pub(super) struct ManagerOrder {
    pub(super) running: Running,
    /// How long it may take, in seconds.
    pub(super) waited: f64,
    pub(super) deadline: Deadline,
}

impl ManagerOrder {
    /// An order about `node`, if one is named.
    pub(super) fn new(
        cluster: &ClusterChoice,
        waited: f64,
        node: Option<u16>,
    ) -> Result<Self, Failure> {
        let deadline = Deadline::after(seconds("--wait", waited)?);
        let running = cluster.find()?;
        // A node that does not exist is refused as everywhere.
        if let Some(node) = node
            && usize::from(node) >= running.cluster.nodes
        {
            running.connect(node).map(drop)?;
        }
        Ok(Self { running, waited, deadline })
    }

    /// The DIR net status of a node's component, if it answers.
    pub(super) fn standing(&self, rank: u16) -> Option<DirNetStatus> {
        self.running.connect_now(rank).ok()?.status().ok()?.dirnet
    }

    /// Gives the order to the manager. If the manager is lost or deposed meanwhile, looks for the
    /// next one.
    fn give(&self, node: u16, order: NodeOrder) -> Result<Given, Failure> {
        self.check_governable()?;
        let mut is_known = false;
        loop {
            let (manager, standing) = self.manager()?;
            if order == NodeOrder::Isolate && manager == node {
                return Err(self.not_itself(node, &standing));
            }
            let was_isolated = standing.isolated.contains(&node);
            if order == NodeOrder::Release && !was_isolated {
                if is_known {
                    // The manager that was lost had done it.
                    return Ok(Given { manager, was_isolated: true });
                }
                // A manager that has just taken over learns of isolations from the others.
                if self.is_isolated_for_any(node) && !self.deadline.has_passed() {
                    std::thread::park_timeout(LOOK_EVERY);
                    continue;
                }
                let cause = format!("node {node} is not isolated");
                return Err(Failure::of(
                    Code::Standing,
                    cause,
                    "run `weft status` to see which nodes are isolated",
                ));
            }
            is_known |= was_isolated;
            let client = self.running.connect_now(manager);
            match client.and_then(|mut client| client.order_node(node, order)) {
                Ok(()) => return Ok(Given { manager, was_isolated }),
                Err(error) if is_passing(&error) && !self.deadline.has_passed() => {
                    std::thread::park_timeout(LOOK_EVERY);
                }
                Err(error) => return Err(Failure::new(error)),
            }
        }
    }

    /// Whether a node that answers holds the node for isolated.
    fn is_isolated_for_any(&self, node: u16) -> bool {
        let mut standings = self.running.ranks().filter_map(|rank| self.standing(rank));
        standings.any(|standing| standing.isolated.contains(&node))
    }

    /// The node that says it is the manager, and its status.
    pub(super) fn manager(&self) -> Result<(u16, DirNetStatus), Failure> {
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

    /// The next backup in turn after node `manager`, whose status this is.
    pub(super) fn backup_after(&self, manager: u16, standing: &DirNetStatus) -> Option<u16> {
        let is_backup = |rank: &u16| {
            let is_heard = !standing.suspects.contains(rank) && !standing.removed.contains(rank);
            is_heard && self.standing(*rank).is_some_and(|it| it.role == "backup")
        };
        let turns = self.running.ranks().filter(|rank| *rank > manager);
        turns.chain(self.running.ranks().filter(|rank| *rank < manager)).find(is_backup)
    }

    /// The error where the node is the manager: another has to succeed it first, if there is one.
    fn not_itself(&self, node: u16, standing: &DirNetStatus) -> Failure {
        let cause = format!("node {node} is the manager, and a manager does not isolate itself");
        if self.backup_after(node, standing).is_some() {
            let cure = "make another node the manager with `weft handover`, then try again";
            return Failure::of(Code::Standing, cause, cure);
        }
        Self::no_backup(&cause, standing)
    }

    /// The error where the manager, whose status this is, needs a backup and has none.
    pub(super) fn no_backup(cause: &str, standing: &DirNetStatus) -> Failure {
        let cause = format!("{cause}, and no other node could take over now");
        let cure = match &standing.isolated[..] {
            [] => "wait until another manager or backup runs, or start one".to_owned(),
            [other, ..] => format!("admit another node first with `weft release {other}`"),
        };
        Failure::of(Code::Standing, cause, format!("{cure}; or end the cluster: `weft down`"))
    }

    /// Whether there is a node that can be manager, now or soon; without one nothing is decided.
    pub(super) fn check_governable(&self) -> Result<(), Failure> {
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

    /// Whether what the manager did still holds there: it answers behind its orders, so another one
    /// has undone what no longer does.
    fn check_manager(
        &self,
        manager: u16,
        is_so: impl Fn(&DirNetStatus) -> bool,
        cause: &str,
        cure: &str,
    ) -> Result<(), Failure> {
        match self.standing(manager).filter(|it| it.role == "manager") {
            Some(standing) if !is_so(&standing) => Err(Failure::of(Code::Standing, cause, cure)),
            Some(_) | None => Ok(()),
        }
    }

    /// Waits until every node that answers, but `except`, stands so, or `go_on` says why none will
    /// any more; `done` says what was done.
    pub(super) fn await_all(
        &self,
        except: Option<u16>,
        done: &str,
        is_so: impl Fn(&DirNetStatus) -> bool,
        go_on: impl Fn() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let others = || self.running.ranks().filter(|rank| Some(*rank) != except);
        let failed = || {
            let cause = "some nodes have not heard of it in time";
            let cure = "do not order it again: `weft status` shows whether they have by now; or \
                        raise `--wait`";
            Failure::of(Code::Timeout, cause, cure).behind(done)
        };
        self.wait(failed, || {
            let mut standings = others().filter_map(|rank| self.standing(rank));
            if standings.all(|standing| is_so(&standing)) {
                return Some(Ok(()));
            }
            go_on().err().map(Err)
        })?
    }

    pub(super) fn wait<T>(
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
pub(super) fn is_passing(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } => true,
        ClientError::Refused { reason, .. } => {
            matches!(reason, Refused::NotManager | Refused::ComponentLost | Refused::Isolated)
        }
        _ => false,
    }
}
