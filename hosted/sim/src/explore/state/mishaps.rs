//! What may go wrong beside crashes: full queues, pairs that are lost, peers that are removed.

use weft_core::ids::Peer;

use super::ExploredState;
use crate::explore::Move;
use crate::protocol::{Protocol, Supervision};
use crate::world::Choice;

impl<P: Protocol> ExploredState<P> {
    /// A round of the loop of `peer`, in which one of its posts is refused.
    pub(super) fn refuse(&self, peer: Peer, next: &mut Vec<(Move, Self)>) {
        if self.refusals == 0 {
            return;
        }
        for post in 0.. {
            let (last, mut state) = self.after(Move::Refuse(peer, post), |state| {
                state.refusals -= 1;
                state.world.refuse(Some(post));
                state.world.memory(peer).fuse.set(None);
                state.step(peer);
            });
            if state.world.refuse(None).is_some() {
                return;
            }
            if let Some(steps) = &mut state.steps {
                steps[peer.index()] = steps[peer.index()].saturating_sub(1);
            }
            next.push((last, state));
        }
    }

    /// The pair that `choice` loses is lost, and its living target is restarted for it, where a
    /// next incarnation may begin.
    pub(super) fn lose_for_the_target(&self, choice: Choice) -> Option<(Move, Self)> {
        let (Choice::Lose(_, target) | Choice::LandLost(_, target)) = choice else { return None };
        let by_oracle = self.protocol.supervision() == Supervision::ByOracle;
        (by_oracle && self.starts > 0 && self.world.is_alive(target)).then(|| {
            self.after(Move::Loss(choice, target), |state| {
                state.faults -= 1;
                state.choose_and_restart(choice, Some(target));
            })
        })
    }

    /// One that may be removed is: from now on the others fence it, and it may end at any time.
    pub(super) fn remove(&self, next: &mut Vec<(Move, Self)>) {
        if self.struck.is_some() {
            return;
        }
        for peer in self.removable.iter().filter(|&peer| self.world.is_alive(peer)) {
            next.push(self.after(Move::Remove(peer), |state| {
                state.removable.remove(peer);
                state.removed.insert(peer);
            }));
        }
    }

    /// Those that were removed end, and every other peer has fenced them.
    pub(super) fn end_removed(&mut self) {
        for peer in self.removed.iter() {
            self.die(peer);
        }
        for (by, peer) in self.unfenced() {
            if self.removed.contains(peer) {
                self.fence(by, peer);
            }
        }
    }
}
