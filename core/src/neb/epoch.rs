//! Epochs: a member whose memory is new, or that was removed, returns with a new epoch (N-14).
//!
//! An epoch is named by the incarnation in which it began. Each has messages of its own numbers, so
//! that no number of an earlier epoch occurs again, whatever other members still hold of it, and no
//! other member, faulty or not, has a say in which numbers are free.

use core::fmt;

use super::config::{Config, Shown};
use super::map::{Map, Regions};
use super::mutants::{OLD_NUMBERS, OLD_VOTES};
use super::window::{read_shown, show, show_in};
use crate::fabric::{Fabric, Memory};
use crate::ids::{Incarnation, Peer};
use crate::sync::{Ordering, fence};
use crate::wire::CELL_LEN;

/// The epoch of a member that was never away.
pub(super) const FIRST: Incarnation = Incarnation(1);

/// An epoch has 2^44 numbers: those of a million messages a second for half a year.
const NUMBER_BITS: u32 = 44;

/// The last incarnation that can begin an epoch.
pub const EPOCH_MAX: Incarnation = Incarnation(1 << (u64::BITS - NUMBER_BITS));

/// The incarnation is later than [`EPOCH_MAX`]: no numbers are left for an epoch that begins in it.
/// Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochError(pub Incarnation);

impl fmt::Display for EpochError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no numbers are left for an epoch that begins in incarnation {}", self.0.0)
    }
}

impl core::error::Error for EpochError {}

/// The number before the first of `epoch`; zero before the first epoch.
///
/// # Errors
/// [`EpochError`].
pub const fn number_before(epoch: Incarnation) -> Result<u64, EpochError> {
    if epoch.0 > EPOCH_MAX.0 {
        return Err(EpochError(epoch));
    }
    Ok((epoch.0.saturating_sub(FIRST.0) as u64) << NUMBER_BITS)
}

/// How far `number` is behind the beginning of its epoch: what people count.
#[must_use]
pub const fn number_in_epoch(number: u64) -> u64 {
    number & ((1 << NUMBER_BITS) - 1)
}

/// As [`number_before`], for an epoch that was checked.
pub(super) fn base(epoch: Incarnation) -> u64 {
    if OLD_NUMBERS.is_planted() { 0 } else { number_before(epoch).unwrap_or(u64::MAX) }
}

/// Makes the memory of this member that of `epoch`, before [`Neb::attach`](super::Neb::attach) and
/// before any peer is admitted. What an earlier epoch has exposed, delivered and counted is erased;
/// the memory of `epoch` itself stays as it is, and so does any memory in the first epoch.
///
/// # Errors
/// [`EpochError`].
pub fn begin_epoch(
    fabric: &impl Fabric,
    config: Config,
    regions: Regions,
    epoch: Incarnation,
) -> Result<(), EpochError> {
    let map = Map { config, regions };
    let (me, peers) = (fabric.me(), config.peers());
    number_before(epoch)?;
    let began = read_shown(fabric, &map, map.progress(), Shown::Counted(me));
    if epoch <= FIRST || u64::from(epoch.0) <= began {
        return Ok(());
    }
    let erased = if OLD_VOTES.is_planted() { 0 } else { peers };
    for origin in (0..erased).map(Peer) {
        for index in 0..u64::from(config.slots()) {
            let at = map.replay(origin, index);
            fabric.memory().store(at.region, at.offset, 0);
        }
    }
    let own = Shown::Counted(me).place(peers);
    for place in (0..=Shown::Open.place(peers).0).map(Peer).filter(|place| *place != own) {
        for turn in [0, 1] {
            let at = Map::cell(map.progress(), place, turn);
            fabric.memory().copy_in(at.region, at.offset, &[0; CELL_LEN]);
        }
    }
    show_both(fabric, &map, Shown::Delivered(me), base(epoch));
    // SYNC: words-publish. Last: an epoch that ends before begins again, and a member that reads
    // the count finds what was erased before.
    fence(Ordering::SeqCst);
    show(fabric, &map, Shown::Counted(me), u64::from(epoch.0));
    Ok(())
}

/// Shows `number` in both cells, that of the present number last: while one is written the other
/// is whole.
pub(super) fn show_both(fabric: &impl Fabric, map: &Map, what: Shown, number: u64) {
    let present = read_shown(fabric, map, map.progress(), what);
    show_in(fabric, map, what, (number, present ^ 1));
    show_in(fabric, map, what, (number, present));
}
