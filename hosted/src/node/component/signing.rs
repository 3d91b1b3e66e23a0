//! The keys that the component signs and judges broadcasts with, where they are signed.

use std::os::fd::{AsFd, OwnedFd};

use weft_core::fabric::Layout;
use weft_core::ids::Peer;
use weft_core::neb::Keys;

use super::Component;
use crate::cluster::{Cluster, Form};
use crate::node::{NodeError, PEERS};
use crate::signing::{PublicKey, SecretKey, session};

/// The keys that a component begins with: the own one, last of the descriptors of its start.
pub(super) fn adopt(
    cluster: &Cluster,
    layout: &Layout,
    fds: &mut Vec<OwnedFd>,
) -> Result<Option<Keys<PEERS>>, NodeError> {
    match cluster.neb.form {
        Form::Unsigned => Ok(None),
        Form::Signed => {
            let granted = fds.pop().ok_or(NodeError::Link("a start without a key"))?;
            let own = SecretKey::adopt(granted.as_fd()).map_err(NodeError::Signing)?;
            let session = session(cluster.name.as_str(), layout.digest());
            Ok(Some(Keys::new(session, own)))
        }
    }
}

impl Component {
    /// What `peer` signs with. One that is known by another key is not believed under this one.
    pub(super) fn learn_key(&mut self, peer: Peer, PublicKey(key): PublicKey) {
        let Some((broadcast, _)) = self.endpoint.broadcast() else { return };
        if let Err(error) = broadcast.learn_key(peer, &key) {
            tracing::warn!(peer = peer.0, %error, "its signatures do not count");
        }
    }
}
