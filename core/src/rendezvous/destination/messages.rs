//! What the destination has to say to its peers.

use super::super::source::Said;
use super::{Destination, Due, Request};
use crate::fabric::{At, Region};
use crate::ids::Peer;
use crate::time::Instant;
use crate::wire::rendezvous::{Flags, HEAD_LEN, Handle, Head, Kind};

impl<const PEERS: usize, const SLOTS: usize> Destination<PEERS, SLOTS> {
    /// A message that `peer` must be sent, in `message`: which, and its length.
    pub(in super::super) fn next_message(
        &self,
        now: Instant,
        peer: Peer,
        message: &mut [u8],
    ) -> Option<(Said, usize)> {
        let mut marked = self.marks.iter().filter_map(|at| Some((at, self.requests.at(at)?)));
        let is_due = |it: &Request| it.due.is_some() && it.key.source() == peer;
        let (slot, request) = marked.find(|(_, request)| is_due(request))?;
        let handle = self.requests.handle_at(slot)?;
        let place = request.place;
        let head = |kind| Head { request: handle, ..Head::new(kind, place.step, (0, 1)) };
        let offer = request.grant.as_ref().map_or(Handle::NONE, |grant| grant.offer);
        let mut len = HEAD_LEN;
        let head = match request.due? {
            Due::Ask => {
                let name = request.key.name();
                len += name.len();
                message.get_mut(HEAD_LEN..len)?.copy_from_slice(name);
                // Rounded up: the source does not give up before this side does.
                let wait = request.deadline.since(now).0.div_ceil(1_000_000);
                let warm = request.piece.map(|piece| (self.landing(piece), self.pool.len(piece)));
                let (at, lent) = warm.unwrap_or((At { region: Region(0), offset: 0 }, 0));
                let is_warm = warm.map_or(Flags::empty(), |_| Flags::WARM);
                let is_part = request.part_of.map_or(Flags::empty(), |_| Flags::PART);
                Head {
                    flags: is_warm.union(is_part),
                    offer: request.part_of.map_or(Handle::NONE, |it| it.offer()),
                    region: at.region.0,
                    offset: at.offset,
                    bytes: u64::from(lent),
                    name_len: name.len() as u16,
                    part: place.part,
                    parts: place.parts,
                    wait_ms: u32::try_from(wait).unwrap_or(u32::MAX),
                    ..head(Kind::TensorRequest)
                }
            }
            Due::Respond => {
                let At { region, offset } = self.landing(request.piece?);
                Head { offer, region: region.0, offset, ..head(Kind::BufferResponse) }
            }
            Due::Cancel if request.is_lent => Head { flags: Flags::WARM, ..head(Kind::Cancel) },
            Due::Cancel => head(Kind::Cancel),
            Due::Idle(status) => Head { offer, status, ..head(Kind::BufferIdle) },
        };
        message[..HEAD_LEN].copy_from_slice(&head.encode());
        Some((Said::Request(slot), len))
    }

    /// That message was sent.
    pub(in super::super) fn note_said(&mut self, slot: u16) {
        if let Some(request) = self.requests.at_mut(slot) {
            self.marks.clear(slot);
            match request.due.take() {
                Some(Due::Ask) => request.is_lent = request.piece.is_some(),
                Some(Due::Respond) => request.is_lent = true,
                Some(Due::Cancel) => request.is_cancelled = true,
                Some(Due::Idle(_)) | None => {}
            }
        }
        self.retire(slot);
    }
}
