//! Calls into weft-core, one function per module of it.
//!
//! The rule for adding one: pass every input through [`opaque`], else the optimiser computes the
//! call at build time, finds that this one input does not panic, and the gate has seen nothing.
//! Give every result to [`opaque`] too, so that the call is not removed. Return whether the result
//! was the expected one; the program exits with the number of the first that was not.

use weft_core as _;

/// A value the optimiser knows nothing about.
pub(crate) use core::hint::black_box as opaque;

/// The calls in order, each with what it covers. This is the place where new ones go.
const CALLS: &[fn() -> bool] = &[];

/// Makes every call; 0 when all are as expected, else the place of the first that is not, from 1.
pub(crate) fn run() -> u8 {
    let mut place = 0;
    for call in CALLS {
        place += 1;
        if !opaque(call)() {
            return place;
        }
    }
    0
}
