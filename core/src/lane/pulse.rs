//! The pulse: a cell beside the ring that is overwritten, never queued.
//!
//! What is true now and worthless later, a heartbeat, goes here: the last one written is the only
//! one there is, and a reader that is late finds the latest. The cell is written by the lane's
//! writer alone, with one plain write, and so may tear (F-3): its bytes must carry a check of their
//! own. A new pair begins with a still cell, all zero.

use super::{LANE_WORK, Regions};
use crate::fabric::{At, CompletionFlags, Fabric, Memory, Op, PostError, Work, WorkId};
use crate::ids::Peer;

/// Bytes of a pulse.
pub const PULSE_LEN: usize = 32;

/// Behind the credit, in the first cache line of what a peer writes.
const PULSE_START: u32 = 32;

/// Distinguishes a pulse from the lane's messages among the works of [`LANE_WORK`].
const PULSE_MARK: u64 = 1 << 32;

const _: () = assert!(PULSE_START as usize + PULSE_LEN <= super::SLOTS_START as usize);
const _: () = assert!(crate::wire::CELL_LEN <= PULSE_START as usize);

/// Whether the work of this name was a pulse. No caller waits for one: the next follows by itself.
#[must_use]
pub const fn is_pulse(id: WorkId) -> bool {
    id.detail() & PULSE_MARK != 0
}

impl Regions {
    /// Overwrites the own pulse in the memory of `to`.
    ///
    /// # Errors
    /// [`PostError`]; the one before stays.
    pub fn post_pulse(
        self,
        fabric: &mut impl Fabric,
        to: Peer,
        bytes: &[u8; PULSE_LEN],
    ) -> Result<(), PostError> {
        let op = Op::Write { to: self.pulse_at(fabric.me()), bytes };
        let id = WorkId::new(LANE_WORK, PULSE_MARK | u64::from(to.0));
        // A pulse says that its writer runs. Behind a long read it would say so too late, and no
        // read of this writer reaches its cell.
        let flags = CompletionFlags::QUIET | CompletionFlags::APART;
        fabric.post(to, Work { id, op, flags })
    }

    /// A copy of the pulse that `from` has written here, whole or torn.
    #[must_use]
    pub fn copy_pulse(self, fabric: &impl Fabric, from: Peer) -> [u8; PULSE_LEN] {
        let mut copy = [0; PULSE_LEN];
        let at = self.pulse_at(from);
        fabric.memory().copy_out(at.region, at.offset, &mut copy);
        copy
    }

    /// Stills the pulse of `from`, so that one of an earlier incarnation is not read as new.
    pub fn still_pulse(self, fabric: &impl Fabric, from: Peer) {
        let at = self.pulse_at(from);
        fabric.memory().copy_in(at.region, at.offset, &[0; PULSE_LEN]);
    }

    const fn pulse_at(self, writer: Peer) -> At {
        let written = self.0.of(writer);
        At { offset: written.offset + PULSE_START, ..written }
    }
}
