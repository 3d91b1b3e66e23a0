//! The signed form: keys, and proofs of equivocation.

use super::super::authority::{KeyError, Keys, PublicKey};
use super::super::config::SLOT_LEN_MAX;
use super::super::equivocation::Equivocation;
use super::super::outcome::Conflict;
use super::{Config, Neb, Regions};
use crate::fabric::{Fabric, Memory};
use crate::ids::Peer;
use crate::wire::broadcast::Form;

impl<const PEERS: usize, const DEPTH: usize> Neb<PEERS, DEPTH> {
    /// As [`Neb::attach`], in the signed form.
    ///
    /// # Panics
    /// When the configuration is larger than `PEERS` or `DEPTH`, or its form is not signed.
    #[must_use]
    pub fn attach_signed(
        fabric: &impl Fabric,
        config: Config,
        regions: Regions,
        keys: Keys<PEERS>,
    ) -> Self {
        assert!(config.form() == Form::Signed, "the unsigned form takes no keys");
        let mut neb = Self::resume(fabric, config, regions);
        neb.keys.0 = Some(keys);
        neb
    }

    /// The keys of the signed form.
    #[must_use]
    pub const fn keys(&self) -> Option<&Keys<PEERS>> {
        self.keys.0.as_ref()
    }

    /// Stores `public` as the key of `peer`: see [`Keys::learn`]. The caller must ensure that all
    /// correct members get the same key. Before it is known, a message of `peer` is delivered only
    /// if every voter shows the same.
    ///
    /// # Errors
    /// [`KeyError`]; nothing changed.
    pub fn learn_key(&mut self, peer: Peer, public: &PublicKey) -> Result<(), KeyError> {
        if peer.0 >= self.map.config.peers() {
            return Err(KeyError::UnknownPeer);
        }
        self.keys.0.as_mut().ok_or(KeyError::Unsigned)?.learn(peer, public)?;
        // Messages without a valid signature so far may be signed by this key.
        self.streams[peer.index()].look_again();
        Ok(())
    }

    /// The proof that the origin of `conflict` equivocated, copied into `slots`. `None` if the own
    /// copy is not signed: then either the origin or the replayer lies, which cannot be proven.
    pub fn equivocation<'a>(
        &self,
        fabric: &impl Fabric,
        conflict: Conflict,
        slots: &'a mut [[u8; SLOT_LEN_MAX]; 2],
    ) -> Option<Equivocation<'a>> {
        let keys = self.keys.0.as_ref()?;
        let Conflict { origin, seq, replayer } = conflict;
        let peers = self.map.config.peers();
        if origin.0 >= peers || replayer.0 >= peers {
            return None;
        }
        // The landings of a stream in conflict are not read into again.
        let places = [self.map.replay(origin, seq), self.map.landing(origin, seq, replayer)];
        let stride = self.map.config.stride() as usize;
        for (slot, at) in slots.iter_mut().zip(places) {
            fabric.memory().copy_out(at.region, at.offset, &mut slot[..stride]);
        }
        let [one, other] = slots;
        let proof = Equivocation::of(keys.session, &one[..stride], &other[..stride]).ok()?;
        let public = keys.public.get(origin.index())?.as_ref()?.to_bytes();
        (proof.verify(&public) == Ok((origin, seq))).then_some(proof)
    }
}
