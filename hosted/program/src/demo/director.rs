//! The director: strikes while traffic flows, and waits until the cluster has recovered.
//!
//! It waits for what happens, never for a time to pass: for messages of every stream, for the
//! return of whom it struck, for the verdicts in the records of the nodes, and for one manager on
//! whom all agree. A step that does not come is a failure of the demonstration, not of patience.

use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process};
use weft_core::dirnet::Verdict;

use super::act::{Act, NodeSnapshot, Strike};
use super::nodes::Nodes;
use super::script::{self, ScriptSummary};
use super::traffic::DemoTraffic;
use super::tree::TreeBroadcast;
use super::{COLLECTOR, DemoError};
use weft::client::Client;
use weft::clock::now_ns;
use weft::node::chronicle::Entry;
use weft::node::control::{DirNetStatus, Fault};

/// Whose component is killed, and whose hangs.
const KILLED: u16 = 1;
const HUNG: u16 = 2;

pub(super) struct Director {
    pub(super) nodes: Nodes,
    /// What is broadcast along a tree.
    pub(super) text: Arc<[u8]>,
    pub(super) traffic: Arc<DemoTraffic>,
}

impl Director {
    /// Strikes, one strike after another, while the streams flow; and what the recovery script has
    /// done by then.
    pub(super) fn direct(&self) -> Result<(Vec<Act>, ScriptSummary), DemoError> {
        let streams: Vec<u16> = self.nodes.ranks().filter(|rank| *rank != COLLECTOR).collect();
        self.traffic.await_more(&self.nodes, &streams)?;
        let mut acts = Vec::new();
        for strike in Strike::ALL {
            acts.push(self.strike(strike)?);
            // The streams of the struck node continue, too.
            self.traffic.await_more(&self.nodes, &streams)?;
            self.traffic.note_survived();
        }
        let script = self.script(&acts)?;
        self.traffic.note_enough();
        Ok((acts, script))
    }

    /// What the script did about the task, under all managers of the story.
    fn script(&self, acts: &[Act]) -> Result<ScriptSummary, DemoError> {
        let act = acts.iter().find(|act| act.strike == Strike::Task);
        let entries = act.map_or(&[][..], |act| &act.entries);
        let after_ns = entries.last().map_or(0, |entry| entry.at_ns);
        let later = self.nodes.noted_after(after_ns);
        let status = self.nodes.connect(script::GUARD)?.status()?;
        let none = || DemoError::Stopped("the task is gone".to_owned());
        let status = script::status_of(&status).ok_or_else(none)?;
        Ok(ScriptSummary::new(entries, &later, status))
    }

    /// Kills the task, and waits until it was ordered to run again and does.
    fn strike_task(&self, client: &mut Client, before: NodeSnapshot) -> Result<Act, DemoError> {
        let status = client.status()?;
        let pid = script::status_of(&status).and_then(|task| Pid::from_raw(task.pid?));
        let none = || DemoError::Stopped("the task does not run".to_owned());
        let (pid, at_ns) = (pid.ok_or_else(none)?, now_ns());
        let killed = kill_process(pid, Signal::KILL);
        killed.map_err(|error| DemoError::Stopped(format!("kill of process {pid:?}: {error}")))?;
        let entries = self.nodes.await_that("a task that failed is not restarted", || {
            let entries = self.nodes.noted_after(at_ns);
            let has_order = entries.iter().any(|it| script::order_of(it).is_some());
            let is_restarted = entries.iter().any(|it| script::is_restart(&it.what));
            (has_order && is_restarted).then_some(entries)
        })?;
        let back = entries.iter().find(|it| script::is_restart(&it.what));
        let back_ns = back.map_or(at_ns, |entry| entry.at_ns);
        let after = NodeSnapshot::new(&client.status()?, &self.nodes.await_manager()?);
        let (strike, node) = (Strike::Task, client.rank());
        Ok(Act { strike, node, at_ns, back_ns, before, after, entries, tree: None })
    }

    fn strike(&self, strike: Strike) -> Result<Act, DemoError> {
        let aim = || self.aim(strike);
        let (mut client, before) =
            self.nodes.await_that("the next node to fail does not take part", aim)?;
        let node = client.rank();
        let has_group = self.nodes.cluster().group.count > 0;
        let is_forwarder = strike == Strike::Node && has_group;
        let begin = || TreeBroadcast::begin(&self.nodes, node, &self.text, &self.traffic);
        let tree = is_forwarder.then(begin).transpose()?;
        let at_ns = now_ns();
        match strike {
            Strike::Task => return self.strike_task(&mut client, before),
            Strike::Kill => client.kill(),
            Strike::Hang => client.inject(Fault::Hang),
            Strike::Node => client.kill_node(),
        }?;
        let status = self.nodes.await_return(node, before.incarnation + 1)?;
        let back_ns = now_ns();
        let net = self.nodes.await_manager()?;
        let after = NodeSnapshot::new(&status, &net);
        let entries = self.await_admitted(node, at_ns)?;
        let tree = tree.map(TreeBroadcast::end).transpose()?;
        Ok(Act { strike, node, at_ns, back_ns, before, after, entries, tree })
    }

    /// The node to strike, if all take part, and its status. A component that only its supervisor
    /// knows would be missed by no other node.
    fn aim(&self, strike: Strike) -> Option<(Client, NodeSnapshot)> {
        let net = self.nodes.agreed()?;
        let node = match strike {
            Strike::Task => script::GUARD,
            Strike::Kill => KILLED,
            Strike::Hang => HUNG,
            Strike::Node => net.manager,
        };
        let mut client = self.nodes.connect(node).ok()?;
        let status = client.status().ok()?;
        let is_member = status.dirnet.as_ref().is_some_and(DirNetStatus::is_member);
        let is_running = script::status_of(&status).is_none_or(|task| task.pid.is_some());
        (is_member && is_running).then(|| (client, NodeSnapshot::new(&status, &net)))
    }

    /// Waits until a manager has noted that `node` is a member again; what was noted by then.
    fn await_admitted(&self, node: u16, at_ns: u64) -> Result<Vec<Entry>, DemoError> {
        let is_it = |entry: &Entry| entry.node == node && entry.what.is_verdict(Verdict::Admitted);
        self.nodes.await_that("a node that came back is not admitted", || {
            let entries = self.nodes.noted_after(at_ns);
            entries.iter().any(is_it).then_some(entries)
        })
    }
}
