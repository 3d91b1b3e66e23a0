//! How a node starts to meet its peers: at this host, or over the network.

use std::sync::Arc;

use weft_core::fabric::Layout;

use crate::bootstrap::{
    Bootstrap, BootstrapEvent, Hello, LocalBootstrap, Meeting, NetworkBootstrap, VERSION,
};
use crate::cluster::{Cluster, FabricKind};
use crate::node::NodeError;
use crate::runtime_dir::ClaimedDir;
use crate::shm::NodeMemory;

/// The node that meets its peers.
pub(super) struct MeetContext<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) home: &'a ClaimedDir,
    pub(super) rank: u16,
    pub(super) layout: &'a Layout,
}

impl MeetContext<'_> {
    /// Starts the bootstrap; its events go to `sink`.
    pub(super) fn begin(
        &self,
        memory: &Arc<NodeMemory>,
        meeting: Option<Meeting>,
        sink: impl Fn(BootstrapEvent) + Send + Sync + 'static,
    ) -> Result<Box<dyn Bootstrap>, NodeError> {
        let (cluster, fabric) = (self.cluster.name.to_string(), self.cluster.fabric);
        let (layout, rank) = (self.cluster.layout_digest(self.layout), self.rank);
        let dirnet = self.cluster.dirnet.digest(self.cluster.nodes);
        // Hosts share no directory in which a number could be kept.
        let instance = if meeting.is_some() { 0 } else { self.home.instance() };
        let version = VERSION;
        let script = self.cluster.recovery.digest();
        let hello = Hello { version, cluster, instance, layout, dirnet, script, fabric, rank };
        if let Some(meeting) = meeting {
            if fabric == FabricKind::Shm {
                return Err(NodeError::NotShared);
            }
            let nodes = self.layout.peers();
            return Ok(Box::new(NetworkBootstrap::start(hello, nodes, meeting, sink)?));
        }
        // Over verbs memory is reached through the devices, and no descriptor of it is granted.
        let granted = (fabric == FabricKind::Shm).then(|| Arc::clone(memory));
        let layout = self.layout.clone();
        Ok(Box::new(LocalBootstrap::start(self.home.dir(), hello, layout, granted, sink)?))
    }
}
