//! What the source has to say to its peers.

use super::super::config::Path;
use super::{Offer, Phase, Said, Source};
use crate::fabric::{Fabric, Memory};
use crate::ids::Peer;
use crate::wire::rendezvous::{Flags, HEAD_LEN, Handle, Head, Kind, Status};

impl<const PEERS: usize, const SLOTS: usize> Source<PEERS, SLOTS> {
    /// A message that `peer` must be sent, in `message`: which, and its length.
    pub(in super::super) fn next_message(
        &self,
        fabric: &impl Fabric,
        peer: Peer,
        message: &mut [u8],
    ) -> Option<(Said, usize)> {
        let refusals = (0..).zip(self.refusals.get(peer.index())?);
        if let Some((slot, refusal)) =
            refusals.filter_map(|(slot, refusal)| refusal.map(|refusal| (slot, refusal))).next()
        {
            let is_over = matches!(refusal.status, Status::StepOver | Status::Aborted);
            let kind = if is_over { Kind::StepOver } else { Kind::Cancelled };
            let request = Handle { slot, generation: refusal.generation };
            let head = Head { request, status: refusal.status, ..Head::new(kind, 0, (0, 1)) };
            message[..HEAD_LEN].copy_from_slice(&head.encode());
            return Some((Said::Refusal(slot), HEAD_LEN));
        }
        let (slot, offer, request) =
            self.offers.iter().find_map(|(slot, offer)| match offer.phase {
                Phase::Asking { to, request, said: false }
                | Phase::Lent { to, request, said: false }
                    if to == peer =>
                {
                    Some((slot, offer, request))
                }
                _ => None,
            })?;
        let head = self.head_of(slot, offer, request)?;
        message[..HEAD_LEN].copy_from_slice(&head.encode());
        if head.flags != Flags::INLINE {
            return Some((Said::Offer(slot), HEAD_LEN));
        }
        let len = HEAD_LEN + offer.bytes as usize;
        let payload = message.get_mut(HEAD_LEN..len)?;
        fabric.memory().copy_out(self.regions.offers, offer.offset, payload);
        Some((Said::Offer(slot), len))
    }

    /// What is said of a value that is lent: the value itself if it is short, else its address.
    fn head_of(&self, slot: u16, offer: &Offer, request: Handle) -> Option<Head> {
        let place = offer.name.as_ref()?.place;
        let handle = self.offers.handle_at(slot)?;
        let fits = offer.bytes <= u64::from(self.config.sizes().inline);
        let is_inline = offer.shape.is_none() || (fits && offer.token.is_none());
        let is_asking = matches!(offer.phase, Phase::Asking { .. });
        let is_written = self.config.sizes().path == Path::Write && offer.token.is_none();
        let kind = match is_inline || (is_written && !is_asking) {
            true => Kind::TensorWrite,
            false => Kind::BufferRequest,
        };
        let head = Head {
            request,
            offer: handle,
            shape: offer.shape,
            bytes: offer.bytes,
            ..Head::new(kind, place.step, (place.part, place.parts))
        };
        if let Some(token) = offer.token {
            return Some(Head { flags: Flags::SAME_HOST, token, ..head });
        }
        if is_asking {
            return Some(head);
        }
        Some(match (is_inline, offer.shape, offer.digest) {
            (_, None, _) => Head { flags: Flags::DEAD, ..head },
            (true, Some(_), _) => Head { flags: Flags::INLINE, ..head },
            (false, Some(_), digest) => {
                let head = Head {
                    flags: digest.map_or(Flags::empty(), |_| Flags::DIGEST),
                    digest: digest.unwrap_or(0),
                    ..head
                };
                match is_written {
                    true => head,
                    false => {
                        let (region, offset) = (self.regions.offers.0, offer.offset);
                        Head { region, offset, ..head }
                    }
                }
            }
        })
    }

    /// That message was sent.
    pub(in super::super) fn note_said(&mut self, to: Peer, what: Said) {
        match what {
            Said::Offer(slot) => {
                if let Some(offer) = self.offers.at_mut(slot)
                    && let Phase::Lent { said, .. } | Phase::Asking { said, .. } = &mut offer.phase
                {
                    *said = true;
                }
            }
            Said::Refusal(slot) => {
                if let Some(refusals) = self.refusals.get_mut(to.index()) {
                    refusals[usize::from(slot)] = None;
                }
            }
            Said::Request(_) => {}
        }
    }

    pub(in super::super) const fn note_all_said(&mut self, to: Peer) {
        self.due.remove(to);
    }
}
