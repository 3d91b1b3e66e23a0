//! The supervisor's part in a change of the recovery script (RL-12): it holds the images, brings
//! them to other nodes, and has the tasks follow the script in force.

use weft_core::ids::Peer;

use super::{Supervisor, guarded};
use crate::bootstrap::{Datagram, DatagramPort};
use crate::clock::now_ns;
use crate::node::NodeError;
use crate::node::chronicle::What;
use crate::node::link::ToComponent;
use crate::node::scripts::{NotHeld, ScriptFrame, Scripts};
use crate::payload::Payload;

/// A script that another node has sent is not one that may succeed the one in force.
const SCRIPT_REFUSED: &str = "script-refused";

impl Supervisor {
    /// The component has verified a script that is to replace the one in force.
    pub(super) fn hold_script(&mut self, image: Vec<u8>) {
        if let Err(refused) = self.scripts.hold(image) {
            tracing::error!(?refused, "a script of the own component is not held");
        }
    }

    /// Brings the script with `digest` to these nodes.
    pub(super) fn offer_script(&self, to: &[u16], digest: u64) {
        for bytes in self.scripts.frames(digest) {
            let frame = Datagram { to: DatagramPort::Script, bytes: Payload(bytes) };
            for peer in to.iter().copied().map(Peer) {
                self.post_frame(peer, &frame);
            }
        }
    }

    /// The component lacks the script in force.
    pub(super) fn fetch_script(&self, digest: u64) {
        let frame = Datagram { to: DatagramPort::Script, bytes: Payload(Scripts::ask(digest)) };
        let nodes = u16::try_from(self.cluster.nodes).unwrap_or(u16::MAX);
        (0..nodes).map(Peer).for_each(|peer| self.post_frame(peer, &frame));
    }

    fn post_frame(&self, peer: Peer, frame: &Datagram) {
        if peer.0 != self.rank && !self.cut.has(peer) {
            self.datagrams.send(peer, frame);
        }
    }

    pub(super) fn handle_script_frame(&mut self, peer: Peer, frame: &[u8]) {
        match self.scripts.handle_frame(peer.0, frame) {
            ScriptFrame::Nothing => {}
            ScriptFrame::Wanted(digest) => self.offer_script(&[peer.0], digest),
            ScriptFrame::Image(image) => match self.scripts.hold(image.clone()) {
                Ok(()) => self.tell_script(image),
                Err(refused) => {
                    tracing::warn!(peer = peer.0, ?refused, "a script is refused");
                    self.refusals.count(SCRIPT_REFUSED);
                    let why = match refused {
                        NotHeld::NoScript => "this node has none".to_owned(),
                        NotHeld::Rejected(rejected) => rejected.to_string(),
                        NotHeld::Unlike(unlike) => unlike.to_string(),
                    };
                    let words = format!("the script of node {} is refused: {why}", peer.0);
                    self.note(self.rank, What::Noted { words });
                }
            },
        }
    }

    /// Hands the component the scripts that are held besides the one in force.
    pub(super) fn tell_other_scripts(&mut self) {
        self.scripts.others().to_vec().into_iter().for_each(|image| self.tell_script(image));
    }

    fn tell_script(&mut self, image: Vec<u8>) {
        if self.component.as_ref().is_some_and(|component| component.entered) {
            self.tell(&ToComponent::Script { image: Payload(image) }, &[]);
        }
    }

    /// The component uses the script with `digest`, by decision of a manager, and holds `next`.
    pub(super) fn use_script(&mut self, digest: u64, next: Option<u64>) {
        if !self.scripts.put_in_force(digest, next) {
            return tracing::error!(digest, "the script in force is not held");
        }
        // The next component begins with it.
        self.cluster.recovery.image = self.scripts.in_force().cloned();
        if let Err(error) = self.follow_script() {
            tracing::error!(%error, "the tasks do not follow the script in force");
        }
        let words = format!("recovery script {digest:016x} is in force");
        tracing::info!(rank = self.rank, words);
        self.note(self.rank, What::Noted { words });
    }

    fn follow_script(&mut self) -> Result<(), NodeError> {
        let (cluster, rank) = (&self.cluster, self.rank);
        let script = guarded::script(cluster)?;
        let declared = |index| guarded::declared(cluster, script.as_ref()?, rank, index);
        self.tasks.redeclare(declared, now_ns());
        self.tasks.keep_note();
        Ok(())
    }
}
