//! The component's part of its node's status.

use std::collections::BTreeMap;

use super::Component;
use crate::clock::now_ns;
use crate::node::control::{CounterStatus, Latency, NodeState, NodeStatus};

impl Component {
    fn broadcast_unfit(&mut self) -> u64 {
        self.endpoint.broadcast().map_or(0, |(broadcast, _)| broadcast.counters().unfit)
    }

    /// What the component knows; the supervisor fills in the rest.
    pub(super) fn status(&mut self) -> NodeStatus {
        let counters = self.endpoint.counters();
        let holders = self.takes.holders(now_ns());
        let left = self.leavers();
        NodeStatus {
            rank: self.endpoint.me().0,
            state: NodeState::Running,
            incarnation: self.endpoint.incarnation().0,
            restarts: 0,
            supervisor_pid: 0,
            since_unix_ms: 0,
            component_pid: None,
            last_recovery_us: None,
            recovery: Latency::default(),
            cut: Vec::new(),
            peers: Vec::new(),
            tasks: Vec::new(),
            hooks: None,
            dirnet: self.dirnet.as_ref().map(|dirnet| dirnet.status(left)),
            counters: Some(CounterStatus {
                since_unix_ms: self.since_unix_ms,
                put: counters.put,
                full: counters.full,
                tickets_unknown: counters.tickets_unknown,
                taken: counters.mailbox.taken,
                owed: self.endpoint.owed(),
                returned: self.takes.returned(),
                skipped: counters.mailbox.skipped,
                questioned: counters.mailbox.questioned,
                checksum_failures: counters.mailbox.checksum_failures,
                forged: counters.mailbox.forged,
                forged_tickets: counters.mailbox.forged_tickets,
                longest_stall_us: counters.mailbox.longest_stall.as_micros(),
                lane_failures: counters.lane_failures,
                broadcast_unfit: self.broadcast_unfit(),
                put_latency: self.own_puts.latency().plus(self.puts.latency()),
                broadcast_latency: *self.casts.followed().latency(),
            }),
            holders,
            form: self.cluster.neb.form,
            broadcasts: self.broadcasts(),
            groups: self.group_statuses(),
            tensors: self.tensor_status(),
            proofs: Vec::new(),
            refused_by_supervisor: BTreeMap::new(),
            refused_by_task: BTreeMap::new(),
        }
    }
}
