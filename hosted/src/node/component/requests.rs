//! Requests of clients and orders of operators, as they come over the link.

use std::os::fd::OwnedFd;

use weft_core::ids::Rank;

use super::Component;
use crate::node::NodeError;
use crate::node::casts::CastJob;
use crate::node::chronicle::{self, What};
use crate::node::control::{Fault, MESSAGES_MAX, NodeOrder, Outcome, Refused, Want};
use crate::node::deliveries::DeliverJob;
use crate::node::link::{FromComponent, Ticket};
use crate::node::puts::PutJob;
use crate::node::takes::TakeJob;

impl Component {
    /// Begins what the request wants, or answers it at once.
    pub(super) fn request(
        &mut self,
        ticket: Ticket,
        (what, fds): (Want, Vec<OwnedFd>),
        now_ns: u64,
    ) -> Result<(), NodeError> {
        let deadline =
            |timeout_ms: u64| now_ns.saturating_add(timeout_ms.saturating_mul(1_000_000));
        if self.has_left(&what) {
            return self.answer(ticket, Outcome::Refused(Refused::LeftBroadcasts));
        }
        let answer = match what {
            Want::Put { to, messages, timeout_ms } => {
                let job = PutJob::new(ticket, messages, now_ns, deadline(timeout_ms));
                self.puts.begin(to, job)
            }
            Want::Take { max, timeout_ms } => {
                let max = max.clamp(1, MESSAGES_MAX);
                self.takes.begin(TakeJob { ticket, max, deadline_ns: deadline(timeout_ms) })
            }
            Want::Release { receipts } => {
                let released = self.takes.release(&mut self.endpoint, ticket.client, &receipts);
                Some((ticket, Outcome::Released(released)))
            }
            // The supervisor orders the senders.
            Want::Broadcast { tag, messages, timeout_ms, then: _ } => {
                self.casts.begin(CastJob::new(ticket, tag, messages, deadline(timeout_ms)))
            }
            Want::Deliver { origin, process, after, max, timeout_ms } => {
                let deadline_ns = deadline(timeout_ms);
                let job = DeliverJob { ticket, process, origin, after, max, deadline_ns };
                self.deliveries.begin(&mut self.endpoint, job)
            }
            Want::EndDeliver { after } => {
                let done = self.deliveries.end(&mut self.endpoint, ticket.client, &after);
                Some((ticket, done))
            }
            Want::Group { group, timeout_ms, what } => {
                self.begin_group(ticket, &group, (what, fds), deadline(timeout_ms))
            }
            Want::Tensor { timeout_ms, what } => self.request_tensor(ticket, what, timeout_ms)?,
            Want::Inject(Fault::Equivocate) => Some((ticket, self.equivocate())),
            Want::Inject(fault) => {
                self.faults.handle_fault(now_ns, &fault);
                self.endpoint.fabric().set_cut(self.faults.cut());
                self.endpoint.admitted().iter().for_each(|peer| self.broadcast_again(peer));
                Some((ticket, Outcome::Done))
            }
            Want::Node { node, order } => {
                let mut done = Outcome::Refused(Refused::NotManager);
                self.with_dirnet(|dirnet, ground| {
                    done = dirnet.handle_order(now_ns, Rank(node), order, ground)?;
                    Ok(())
                })?;
                if (order, &done) == (NodeOrder::Release, &Outcome::Done) {
                    let observer = self.endpoint.me().0;
                    let (at_ns, what) = (now_ns, What::Released);
                    let entry = chronicle::Entry { at_ns, observer, node, what };
                    self.tell(&FromComponent::Note(entry))?;
                }
                Some((ticket, done))
            }
            Want::LoadScript { image } => {
                let mut done = Some(Outcome::Refused(Refused::NotManager));
                self.with_dirnet(|dirnet, _| {
                    done = dirnet.begin_reload(now_ns, ticket, image.0);
                    Ok(())
                })?;
                done.map(|what| (ticket, what))
            }
            Want::Vote { task, round, vote } => {
                Some((ticket, self.cast_vote(&task, (round, vote), now_ns)?))
            }
            Want::Status => self.inquire(ticket, now_ns),
            Want::Await { .. }
            | Want::Chronicle { .. }
            | Want::Evidence { .. }
            | Want::Watch { .. }
            | Want::Mask
            | Want::Proof { .. }
            | Want::Report { .. }
            | Want::Beat { .. }
            | Want::Phase { .. }
            | Want::Notices { .. }
            | Want::Guard { .. }
            | Want::Task { .. }
            | Want::Kill
            | Want::KillNode
            | Want::Stop => {
                return Err(NodeError::Link("a request that is the supervisor's"));
            }
        };
        answer.map_or(Ok(()), |(ticket, what)| self.answer(ticket, what))
    }

    /// A client has left: what it holds goes back, and what it waits for is dropped.
    pub(super) fn forget(&mut self, client: u64) -> Result<(), NodeError> {
        self.puts.forget(client);
        self.takes.forget(&mut self.endpoint, client);
        self.casts.forget(client);
        self.deliveries.forget(client);
        self.group_clients.forget(client);
        self.forget_tensors_of(client);
        // It may have left an abort marker to be sent.
        self.serves = true;
        self.tell(&FromComponent::Forgotten { client })
    }
}
