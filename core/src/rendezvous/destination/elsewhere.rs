//! Values that the host of both ends hands over, outside of the fabric (RZ-18).

use super::super::outcome::{HandOver, Received, RequestId, UnknownRequest};
use super::{Destination, Request};

impl<const PEERS: usize, const SLOTS: usize> Destination<PEERS, SLOTS> {
    /// The next value that the host hands over, once; it need not be fetched twice.
    pub(in super::super) fn poll_hand_over(&mut self) -> Option<HandOver> {
        if !self.may_fetch {
            return None;
        }
        let is_next = |request: &Request| {
            let grant = request.grant.as_ref().filter(|_| request.ended.is_none());
            grant.is_some_and(|grant| grant.token.is_some() && !grant.fetched)
        };
        let Some((slot, _)) = self.requests.iter().find(|(_, request)| is_next(request)) else {
            self.may_fetch = false;
            return None;
        };
        let id = RequestId(self.requests.handle_at(slot)?);
        let request = self.requests.at_mut(slot)?;
        let (source, grant) = (request.key.source(), request.grant.as_mut()?);
        grant.fetched = true;
        Some(HandOver { request: id, source, token: grant.token?, shape: grant.shape? })
    }

    /// The caller has what it was to fetch, or cannot have it.
    pub(in super::super) fn handle_handed_over(
        &mut self,
        request: RequestId,
        is_there: bool,
    ) -> Result<(), UnknownRequest> {
        let fetched = self.requests.get(request.0).map_err(|_| UnknownRequest)?;
        let is_open = fetched.ended.is_none();
        if !is_open || fetched.grant.as_ref().is_none_or(|grant| !grant.fetched) {
            return Err(UnknownRequest);
        }
        let outcome = if is_there { Received::Value } else { Received::NotHandedOver };
        self.end(request.0.slot, outcome);
        Ok(())
    }
}
