//! What a liar does: any work it likes, wherever the layout gives it the right to.

use weft_core::fabric::{Access, RegionSpec};
use weft_core::fabric::{At, Completion, CompletionFlags, INLINE_LEN, Op, Region, Work, WorkId};
use weft_core::ids::{Incarnation, Peer};

use super::fault::SimFault;
use super::protocol::{HistoryEvent, Protocol};
use super::run::Run;
use super::world::{DueEvent, RunnerTimer};

/// The name of all of a liar's works.
const LIE: WorkId = WorkId(u64::MAX);

impl<P: Protocol> Run<P> {
    /// The liar's turn.
    pub(super) fn lie(&mut self, peer: Peer, incarnation: Incarnation) {
        if !self.world.is_alive(peer)
            || self.world.incarnation(peer) != incarnation
            || self.calm.is_some()
        {
            return;
        }
        let mut done = [Completion::NONE; 16];
        while self.world.poll(peer, &mut done) > 0 {}
        if let Some(strike) = self.world.faults().strikes(SimFault::Lie) {
            let others: Vec<Peer> = self.world.peers().filter(|&other| other != peer).collect();
            let to = self.lies.pick(&others);
            self.world.note(|| format!("fault {}: {peer} lies to {to}", strike.number));
            self.judge(peer, HistoryEvent::Lied(to));
            self.lie_to(peer, to);
        }
        let after = self.lies.between(1_000, 60_000);
        self.world.schedule(after, DueEvent::Timer(RunnerTimer::Lie { peer, incarnation }));
    }

    fn lie_to(&mut self, liar: Peer, to: Peer) {
        if !self.world.is_open(liar, to) && self.world.is_alive(to) {
            // A refusal means that it was found out; what it posts bounces.
            let incarnation = self.world.incarnation(to);
            let _ = self.world.admit(liar, to, incarnation);
        }
        let is_forgery = self.protocol.lies_by_forgery_alone() || self.lies.chance(1, 2);
        if is_forgery
            && let Some(forgery) = self.protocol.forge(&mut self.lies, liar, to, &self.world)
        {
            self.write(liar, to, forgery.at, &forgery.bytes);
            if let Some(then) = &forgery.then {
                self.write(liar, to, forgery.at, then);
            }
            return;
        }
        let layout = self.world.layout().clone();
        let regions = (0u8..).map(Region).zip(layout.regions().iter().copied());
        let own: Vec<(Region, RegionSpec)> =
            regions.filter(|(_, spec)| spec.peers.contains(liar)).collect();
        if own.is_empty() {
            return;
        }
        let (region, spec) = self.lies.pick(&own);
        if spec.access.contains(Access::REMOTE_WRITE) {
            let at = self.lies.below(u64::from(spec.len)) as u32;
            let room = (spec.len - at).min(INLINE_LEN as u32);
            let len = self.lies.between(1, u64::from(room.min(64))) as usize;
            let at = At { region, offset: at };
            let mut bytes = self.world.memory(to).peek(at, len);
            self.spoil(&mut bytes);
            self.write(liar, to, at, &bytes);
        } else if spec.access.contains(Access::REMOTE_ATOMIC) {
            let word = self.lies.below(u64::from(spec.len / 8)) as u32 * 8;
            let shift = self.lies.below(64);
            let add = self.lies.word() >> shift;
            self.submit(liar, to, Op::FetchAdd { at: At { region, offset: word }, add });
        }
    }

    /// Turns what is there into something else, a little or altogether.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        if self.lies.chance(1, 2) {
            *bytes = self.lies.bytes(bytes.len());
        } else {
            let at = self.lies.index(bytes.len());
            bytes[at] ^= 1 << self.lies.below(8);
        }
    }

    fn write(&mut self, liar: Peer, to: Peer, at: At, bytes: &[u8]) {
        let region = self.world.layout().spec(at.region);
        if let Ok(word) = bytes.try_into()
            && region.is_some_and(|spec| spec.access.contains(Access::REMOTE_ATOMIC))
        {
            return self.submit(liar, to, Op::FetchAdd { at, add: u64::from_le_bytes(word) });
        }
        self.submit(liar, to, Op::Write { to: at, bytes });
    }

    fn submit(&mut self, liar: Peer, to: Peer, op: Op<'_>) {
        // What the fabric refuses was no lie.
        let _ = self.world.post(liar, to, &Work { id: LIE, op, flags: CompletionFlags::QUIET });
    }
}
