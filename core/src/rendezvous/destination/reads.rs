//! The path read (RZ-10): the destination reads the value where its source keeps it.

use super::super::config::Path;
use super::super::outcome::Received;
use super::super::{RENDEZVOUS_WORK, WORKS_OF_A_PEER, WORKS_OF_A_VALUE};
use super::Destination;
use crate::fabric::{At, Completion, CompletionFlags, Fabric, Op, PostError, Work, WorkId};
use crate::ids::Peer;
use crate::wire::rendezvous::Handle;

impl<const PEERS: usize, const SLOTS: usize> Destination<PEERS, SLOTS> {
    /// Begins reads, for each request and each peer a few at a time; or lends what has room now.
    pub(in super::super) fn read(&mut self, fabric: &mut impl Fabric, first: u16) {
        if self.requests.len() == 0 {
            return;
        }
        let slots = self.config.sizes().slots;
        for slot in self.requests.used().iter_from(first % slots) {
            let Some(request) = self.requests.at(slot) else { continue };
            if request.ended.is_some() || request.grant.is_none() || request.failed {
                continue;
            }
            if request.grant.as_ref().is_some_and(|grant| grant.parts.is_some()) {
                self.ask_parts(slot);
                continue;
            }
            match self.config.sizes().path {
                Path::Read => self.read_for(fabric, slot),
                Path::Write if request.piece.is_none() => self.respond(slot),
                Path::Write => {}
            }
        }
    }

    fn read_for(&mut self, fabric: &mut impl Fabric, slot: u16) {
        let Some(handle) = self.requests.handle_at(slot) else { return };
        let Some(request) = self.requests.at_mut(slot) else { return };
        let source = request.key.source();
        let Some(grant) = request.grant.as_mut().filter(|grant| grant.token.is_none()) else {
            return;
        };
        if request.piece.is_none() {
            // While the pool has no room the request waits for another to be released.
            request.piece = self.pool.lend(grant.bytes);
        }
        let Some(piece) = request.piece else { return };
        let landing = self.pool.offset(piece);
        while grant.posted < grant.bytes
            && request.out < WORKS_OF_A_VALUE
            && self.out[source.index()] < WORKS_OF_A_PEER
        {
            let len = (grant.bytes - grant.posted).min(u64::from(self.config.sizes().piece_len));
            let (done, len) = (grant.posted as u32, len as u32);
            let from = At { region: grant.from.region, offset: grant.from.offset + done };
            let into = At { region: self.regions.landings, offset: landing + done };
            let op = Op::Read { from, into, len };
            let work = Work { id: work_id(handle, source), op, flags: CompletionFlags::empty() };
            match fabric.post(source, work) {
                Ok(()) => {}
                Err(PostError::Full) => return,
                Err(PostError::Gone | PostError::Rejected(_)) => {
                    request.failed = true;
                    break;
                }
            }
            grant.posted += u64::from(len);
            request.out += 1;
            self.out[source.index()] += 1;
        }
        if request.failed {
            self.end(slot, Received::PeerGone);
        }
    }

    /// A read has ended, whatever its outcome.
    pub(in super::super) fn handle_completion(
        &mut self,
        fabric: &impl Fabric,
        completion: &Completion,
    ) {
        let Some((handle, source)) = read_of(completion.id) else { return };
        if let Some(out) = self.out.get_mut(source.index()) {
            *out = out.saturating_sub(1);
        }
        let slot = handle.slot;
        if self.requests.handle_at(slot) != Some(handle) {
            return;
        }
        let Some(request) = self.requests.at_mut(slot) else { return };
        request.out = request.out.saturating_sub(1);
        request.failed |= completion.outcome.is_err();
        let is_read = request.grant.as_ref().is_some_and(|grant| grant.posted == grant.bytes);
        match (request.ended.is_some(), request.failed, request.out) {
            (true, _, 0) => self.return_memory(slot),
            (false, true, _) => self.end(slot, Received::PeerGone),
            (false, false, 0) if is_read => self.land(fabric, slot),
            (true | false, _, _) => {}
        }
    }
}

fn work_id(request: Handle, source: Peer) -> WorkId {
    let handle = u64::from(request.generation) << 16 | u64::from(request.slot);
    WorkId::new(RENDEZVOUS_WORK, u64::from(source.0) << 32 | handle)
}

fn read_of(id: WorkId) -> Option<(Handle, Peer)> {
    let field = |shift: u32| (id.detail() >> shift & 0xffff) as u16;
    let handle = Handle { slot: field(0), generation: field(16) };
    // The source's writes have a bit more.
    let is_read = id.machine() == RENDEZVOUS_WORK && field(48) == 0;
    is_read.then(|| (handle, Peer(field(32))))
}
