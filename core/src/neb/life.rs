//! Lives: a member whose memory is new, or that was removed, returns with a new life (N-14).
//!
//! A life is named by the incarnation in which it began. Each has messages of its own numbers, so
//! that no number of an earlier life occurs again, whatever other members still hold of it, and no
//! other member, faulty or not, has a say in which numbers are free.

use core::fmt;

use super::config::Config;
use super::map::{Map, Regions, Shown};
use super::mutants::{OLD_NUMBERS, OLD_VOTES};
use super::window::{read_shown, show, show_in};
use crate::fabric::{Fabric, Memory};
use crate::ids::{Incarnation, Peer};
use crate::sync::{Ordering, fence};
use crate::wire::CELL_LEN;

/// The life of a member that was never away.
pub(super) const FIRST: Incarnation = Incarnation(1);

/// A life has 2^44 numbers: those of a million messages a second for half a year.
const NUMBER_BITS: u32 = 44;

/// The last incarnation that can begin a life.
pub const LIFE_MAX: Incarnation = Incarnation(1 << (u64::BITS - NUMBER_BITS));

/// The incarnation is later than [`LIFE_MAX`]: no numbers are left for a life that begins in it.
/// Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LifeError(pub Incarnation);

impl fmt::Display for LifeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no numbers are left for a life that begins in incarnation {}", self.0.0)
    }
}

impl core::error::Error for LifeError {}

/// The number before the first of `life`; zero before the first life.
///
/// # Errors
/// [`LifeError`].
pub const fn number_before(life: Incarnation) -> Result<u64, LifeError> {
    if life.0 > LIFE_MAX.0 {
        return Err(LifeError(life));
    }
    Ok((life.0.saturating_sub(FIRST.0) as u64) << NUMBER_BITS)
}

/// How far `number` is behind the beginning of its life: what people count.
#[must_use]
pub const fn number_in_life(number: u64) -> u64 {
    number & ((1 << NUMBER_BITS) - 1)
}

/// As [`number_before`], for a life that was checked.
pub(super) fn base(life: Incarnation) -> u64 {
    if OLD_NUMBERS.is_planted() { 0 } else { number_before(life).unwrap_or(u64::MAX) }
}

/// Makes the memory of this member that of `life`, before [`Neb::attach`](super::Neb::attach) and
/// before any peer is admitted. What an earlier life has exposed, delivered and counted is erased;
/// the memory of `life` itself stays as it is, and so does any memory in the first life.
///
/// # Errors
/// [`LifeError`].
pub fn begin_life(
    fabric: &impl Fabric,
    config: Config,
    regions: Regions,
    life: Incarnation,
) -> Result<(), LifeError> {
    let map = Map { config, regions };
    let (me, peers) = (fabric.me(), config.peers());
    number_before(life)?;
    let began = read_shown(fabric, &map, map.progress(), Shown::Counted(me));
    if life <= FIRST || u64::from(life.0) <= began {
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
    show_both(fabric, &map, Shown::Delivered(me), base(life));
    // Last: a life that ends before begins again.
    fence(Ordering::SeqCst);
    show(fabric, &map, Shown::Counted(me), u64::from(life.0));
    Ok(())
}

/// Shows `number` in both cells, that of the present number last: while one is written the other
/// is whole.
pub(super) fn show_both(fabric: &impl Fabric, map: &Map, what: Shown, number: u64) {
    let present = read_shown(fabric, map, map.progress(), what);
    show_in(fabric, map, what, (number, present ^ 1));
    show_in(fabric, map, what, (number, present));
}
