//! Work between its post and its completion.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use weft_core::fabric::{Access, At, CompletionFlags, Failure, Op, Work, WorkId};
use weft_core::ids::{Incarnation, Peer};

/// An operation that owns its bytes.
#[derive(Clone, Debug, Hash)]
pub(super) enum OwnedOp {
    Write { to: At, bytes: Rc<[u8]> },
    WriteFrom { to: At, from: At, len: u32 },
    Read { from: At, into: At, len: u32 },
    FetchAdd { at: At, add: u64 },
    CompareSwap { at: At, expected: u64, new: u64 },
}

impl OwnedOp {
    fn of(op: &Op<'_>) -> Self {
        match *op {
            Op::Write { to, bytes } => Self::Write { to, bytes: bytes.into() },
            Op::WriteFrom { to, from, len } => Self::WriteFrom { to, from, len },
            Op::Read { from, into, len } => Self::Read { from, into, len },
            Op::FetchAdd { at, add } => Self::FetchAdd { at, add },
            Op::CompareSwap { at, expected, new } => Self::CompareSwap { at, expected, new },
        }
    }

    /// Where in the target, and under which right.
    pub(super) fn target(&self) -> (At, Access) {
        match *self {
            Self::Write { to, .. } | Self::WriteFrom { to, .. } => (to, Access::REMOTE_WRITE),
            Self::Read { from, .. } => (from, Access::REMOTE_READ),
            Self::FetchAdd { at, .. } | Self::CompareSwap { at, .. } => (at, Access::REMOTE_ATOMIC),
        }
    }

    pub(super) const fn is_write(&self) -> bool {
        matches!(self, Self::Write { .. } | Self::WriteFrom { .. })
    }

    /// Bytes that may arrive one by one.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Write { bytes, .. } => bytes.len(),
            Self::WriteFrom { len, .. } | Self::Read { len, .. } => *len as usize,
            Self::FetchAdd { .. } | Self::CompareSwap { .. } => 0,
        }
    }
}

impl fmt::Display for OwnedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (At { region, offset }, _) = self.target();
        let at = format_args!("{}+{offset}", region.0);
        match self {
            Self::Write { bytes, .. } => write!(f, "write {} bytes to {at}", bytes.len()),
            Self::WriteFrom { len, .. } => write!(f, "write {len} bytes of a region to {at}"),
            Self::Read { len, .. } => write!(f, "read {len} bytes from {at}"),
            Self::FetchAdd { add, .. } => write!(f, "fetch_add {add} at {at}"),
            Self::CompareSwap { expected, new, .. } => {
                write!(f, "compare_swap {expected:#x} by {new:#x} at {at}")
            }
        }
    }
}

/// How far a flight has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FlightStage {
    Posted,
    /// Some of its bytes may be there.
    Landing,
    Landed(u64),
}

/// One work on its way.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    /// Unique in the run.
    pub(super) number: u64,
    pub(super) from: (Peer, Incarnation),
    pub(super) to: (Peer, Incarnation),
    pub(super) id: WorkId,
    pub(super) quiet: bool,
    /// It asks for no order against earlier reads and atomics.
    pub(super) apart: bool,
    /// It lands before them.
    pub(super) overtakes: bool,
    pub(super) load: OwnedOp,
    pub(super) posted_at: u64,
    pub(super) stage: FlightStage,
    /// The longest time between two pieces of it, when it is torn.
    pub(super) spread: u64,
    /// Posted under a key that no peer gave.
    pub(super) wrong_key: bool,
    /// An atomic that answers -1.
    pub(super) damaged: bool,
}

impl Flight {
    pub(super) fn new(
        number: u64,
        from: (Peer, Incarnation),
        to: (Peer, Incarnation),
        work: &Work<'_>,
        posted_at: u64,
    ) -> Self {
        Self {
            number,
            from,
            to,
            id: work.id,
            quiet: work.flags.contains(CompletionFlags::QUIET),
            apart: work.flags.contains(CompletionFlags::APART),
            overtakes: false,
            load: OwnedOp::of(&work.op),
            posted_at,
            stage: FlightStage::Posted,
            spread: 0,
            wrong_key: false,
            damaged: false,
        }
    }

    pub(super) const fn is_landed(&self) -> bool {
        matches!(self.stage, FlightStage::Landed(_))
    }
}

impl Hash for Flight {
    /// Without its number and its age: two worlds that differ in those alone go on alike.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.from, self.to, self.id, self.quiet, self.apart).hash(state);
        (&self.load, self.stage, self.wrong_key, self.damaged).hash(state);
    }
}

/// All work from one peer to another, in posting order: landed ones first, but for a write that
/// overtook reads and atomics (F-1).
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct PairFlights {
    pub(super) flights: VecDeque<Flight>,
    /// Nothing passes this way.
    pub(super) cut: bool,
}

impl PairFlights {
    /// The next to land: the first that has not, or a write that overtakes it.
    pub(super) fn landing(&self) -> Option<&Flight> {
        self.flights.get(self.next()?)
    }

    pub(super) fn landing_mut(&mut self) -> Option<&mut Flight> {
        let next = self.next()?;
        self.flights.get_mut(next)
    }

    fn next(&self) -> Option<usize> {
        let first = self.flights.iter().position(|flight| !flight.is_landed())?;
        let overtaking = self.overtaking().filter(|at| self.flights[*at].overtakes);
        Some(overtaking.unwrap_or(first))
    }

    /// The write that may land before the reads and atomics in front of it. It is the first write
    /// that has not landed, since it passes no write.
    pub(super) fn overtaking(&self) -> Option<usize> {
        let waits = |flight: &Flight| !flight.is_landed() && flight.load.is_write();
        let at = self.flights.iter().position(waits)?;
        let passes = self.flights.iter().take(at).any(|flight| !flight.is_landed());
        (passes && self.flights[at].apart).then_some(at)
    }

    /// The first, when it has landed: its completion is next.
    pub(super) fn completing(&self) -> Option<&Flight> {
        self.flights.front().filter(|flight| flight.is_landed())
    }
}

/// Why work fails, and the outcome of earlier work that had landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlightLoss {
    /// Landed work completes.
    Reported(Failure),
    /// Landed work fails like the rest.
    Unreported(Failure),
}
