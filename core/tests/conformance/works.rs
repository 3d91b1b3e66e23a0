//! Works made into slightly other works.

use weft_core::fabric::{At, Op, Work};

/// The work with bytes of its own, which live as long as the test program.
pub(crate) fn keep(work: Work<'_>) -> Work<'static> {
    let op = match work.op {
        Op::Write { to, bytes } => Op::Write { to, bytes: bytes.to_vec().leak() },
        Op::WriteFrom { to, from, len } => Op::WriteFrom { to, from, len },
        Op::Read { from, into, len } => Op::Read { from, into, len },
        Op::FetchAdd { at, add } => Op::FetchAdd { at, add },
        Op::CompareSwap { at, expected, new } => Op::CompareSwap { at, expected, new },
    };
    Work { op, ..work }
}

/// The work with its target moved.
pub(crate) fn aimed<'a>(op: Op<'a>, aim: impl Fn(At) -> At) -> Op<'a> {
    match op {
        Op::Write { to, bytes } => Op::Write { to: aim(to), bytes },
        Op::WriteFrom { to, from, len } => Op::WriteFrom { to: aim(to), from: aim(from), len },
        Op::Read { from, into, len } => Op::Read { from: aim(from), into: aim(into), len },
        Op::FetchAdd { at, add } => Op::FetchAdd { at: aim(at), add },
        Op::CompareSwap { at, expected, new } => Op::CompareSwap { at: aim(at), expected, new },
    }
}

/// The work with its length changed by `by`; a write from bytes grows by a zero.
pub(crate) fn resized(op: Op<'_>, by: i32) -> Op<'_> {
    match op {
        Op::Write { to, bytes } => {
            let mut bytes = bytes.to_vec();
            bytes.resize(bytes.len().saturating_add_signed(by as isize), 0);
            Op::Write { to, bytes: bytes.leak() }
        }
        Op::WriteFrom { to, from, len } => {
            Op::WriteFrom { to, from, len: len.saturating_add_signed(by) }
        }
        Op::Read { from, into, len } => Op::Read { from, into, len: len.saturating_add_signed(by) },
        Op::FetchAdd { .. } | Op::CompareSwap { .. } => op,
    }
}
