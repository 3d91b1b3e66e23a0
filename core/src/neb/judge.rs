//! Judging what was read of another member's replay against the own copy (N-5).
//!
//! The judge sees private copies: the own one, and the landing, which only one own read at a time
//! writes. The first word of the other copy says what it claims to be. Empty, or older than the own
//! copy, is a vote, torn or not: a correct replayer that shows such a word had not finished
//! exposing when the read was posted, and so reads this member's copy later. Any other copy counts
//! only if its checksum holds or its bytes equal a copy whose checksum holds, and if it names what
//! was asked for (N-12): the origin, a number that belongs in this slot, and that number's pass. A
//! correct replayer shows nothing else there, whichever member signed it, so a slot that names
//! anything else is the replayer's fault and counts as empty.

use super::config::{Config, SLOT_LEN_MAX};
use super::exposed::Exposed;
use super::map::Map;
use super::mutants::{ANY_NUMBER, ANY_ORIGIN, ANY_PASS, SKIP_CHECKSUM};
use super::own_copy::OwnCopy;
use crate::fabric::{Fabric, Memory};
use crate::ids::Peer;
use crate::wire::broadcast::{Header, Stamp, seq_of};

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Empty, or an earlier message.
    Nothing,
    /// A whole slot that no correct replayer shows there: of another origin, of a number that
    /// belongs elsewhere, or of a pass that is not that number's.
    Misplaced,
    /// The same bytes.
    Same,
    /// Another message under the same number.
    Different,
    /// In the signed form: another or a later message without its origin's signature.
    Forged,
    /// A later message that belongs in the same slot.
    Newer,
    /// Not a message: torn, garbage, or longer than the read.
    Torn,
    /// The read failed.
    Failed,
    /// Another message than what stands in the own replay region, which is no message any more.
    Unfit,
}

/// Judges the landing of a read of the replay of `exposed` by `replayer`. No other work writes the
/// landing, so two cases are decided in place: an older slot by its first word, the same slot by
/// one comparison. Anything else is copied into `theirs` and judged there.
pub(super) fn judge_landed(
    fabric: &impl Fabric,
    map: &Map,
    (exposed, replayer): (&Exposed, Peer),
    (copy, theirs): (&mut OwnCopy, &mut [u8; SLOT_LEN_MAX]),
) -> Reading {
    let Stamp { origin, seq, .. } = exposed.stamp();
    let (at, memory) = (map.landing(origin, seq, replayer), fabric.memory());
    let seen = memory.load(at.region, at.offset);
    if seen < seq {
        return Reading::Nothing;
    }
    let own = copy.recall(fabric, map, exposed);
    if seen == seq && memory.holds(at.region, at.offset + 8, &own[8..]) {
        return Reading::Same;
    }
    let theirs = &mut theirs[..map.config.stride() as usize];
    memory.copy_out(at.region, at.offset, theirs);
    let stamp = exposed.stamp();
    match judge(&map.config, stamp, (own, theirs), |bytes| fabric.crc32c(bytes)) {
        // A copy that was damaged after it was exposed is no evidence against another one.
        Reading::Different if copy.recall_whole(fabric, map, exposed).is_none() => Reading::Unfit,
        reading => reading,
    }
}

/// Judges `theirs`, at least as long as `own`, which is the whole message named by `asked`.
fn judge(
    config: &Config,
    asked: Stamp,
    (own, theirs): (&[u8], &mut [u8]),
    checksum: impl Fn(&[u8]) -> u32,
) -> Reading {
    let seen = seq_of(theirs);
    if seen < asked.seq {
        return Reading::Nothing;
    }
    // The first word is equal here, or judged below.
    if seen == asked.seq && theirs[8..own.len()] == own[8..] {
        return Reading::Same;
    }
    let opened = if SKIP_CHECKSUM.is_planted() {
        Header::peek(theirs)
    } else {
        Header::open(theirs, checksum)
    };
    let Ok(header) = opened else { return Reading::Torn };
    if !belongs(config, asked, &header.stamp) {
        return Reading::Misplaced;
    }
    match seen == asked.seq {
        // One message has many valid signatures.
        true if is_same_message(own, theirs) => Reading::Same,
        true => Reading::Different,
        false => Reading::Newer,
    }
}

/// Whether a correct replayer may show a slot with the stamp `shown` where it was asked for the one
/// with the stamp `asked`: of the same origin, in the same place, on the pass of its number.
fn belongs(config: &Config, asked: Stamp, shown: &Stamp) -> bool {
    let due = config.stamp(asked.origin, shown.seq);
    (shown.origin == due.origin || ANY_ORIGIN.is_planted())
        && (shown.generation == due.generation || ANY_PASS.is_planted())
        && (config.index(shown.seq) == config.index(asked.seq) || ANY_NUMBER.is_planted())
}

/// Whether two slots differ at most in signature and checksum.
fn is_same_message(own: &[u8], theirs: &[u8]) -> bool {
    match (Header::peek(own), Header::peek(theirs)) {
        (Ok(one), Ok(other)) => {
            one == other && own.get(one.payload()) == theirs.get(other.payload())
        }
        (Ok(_) | Err(_), _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Membership, Retry, Sizes};
    use super::*;
    use crate::ids::Peer;
    use crate::time::Duration;
    use crate::wire::broadcast::{Form, HEADER_LEN, Stamp, seal};
    use crate::wire::crc32c;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Four slots a ring.
    fn config() -> Config {
        let retry = Retry { after: Duration(1), after_max: Duration(1) };
        let (form, membership) = (Form::Unsigned, Membership::Fixed);
        let (peers, slots, depth, message_len) = (4, 4, 2, 24);
        Config::new(Sizes { peers, slots, depth, message_len, form, membership, retry }).unwrap()
    }

    fn slot(seq: u64, payload: &[u8]) -> Vec<u8> {
        stamped(config().stamp(Peer(1), seq), payload)
    }

    fn stamped(stamp: Stamp, payload: &[u8]) -> Vec<u8> {
        let header = Header { stamp, len: payload.len() as u16, tag: 9, form: Form::Unsigned };
        let mut slot = std::vec![0; header.used()];
        header.write(&mut slot);
        slot[HEADER_LEN..].copy_from_slice(payload);
        seal(&mut slot, crc32c);
        slot
    }

    /// Reads as many bytes of `theirs` as `own` has, or a whole slot.
    fn judged(own: &[u8], theirs: &[u8], extent: usize) -> Reading {
        let mut copy = theirs.to_vec();
        copy.resize(64, 0);
        copy.truncate(extent.max(own.len()));
        judge(&config(), config().stamp(Peer(1), seq_of(own)), (own, &mut copy), crc32c)
    }

    #[test]
    fn each_reading_is_recognized() {
        let own = slot(5, b"truth");
        let cases = [
            (slot(0, b""), Reading::Nothing),
            (std::vec![0; 37], Reading::Nothing),
            (slot(4, b"earlier"), Reading::Nothing),
            (slot(5, b"truth"), Reading::Same),
            (slot(5, b"trutH"), Reading::Different),
            (slot(5, b"true"), Reading::Different),
            (slot(9, b"later"), Reading::Newer),
        ];
        for (theirs, expected) in cases {
            assert_eq!(judged(&own, &theirs, 0), expected, "{theirs:?}");
        }
    }

    #[test]
    fn a_longer_message_is_judged_when_it_was_read_whole() {
        let (own, theirs) = (slot(5, b"short"), slot(5, b"much longer"));
        assert_eq!(judged(&own, &theirs, 0), Reading::Torn);
        assert_eq!(judged(&own, &theirs, 64), Reading::Different);
    }

    /// N-12: for any payload, and whichever member signed it.
    #[test]
    fn a_slot_of_another_origin_pass_or_place_is_misplaced() {
        let own = slot(5, b"truth");
        let due = config().stamp(Peer(1), 5);
        let cases = [
            Stamp { origin: Peer(3), ..due },
            Stamp { generation: due.generation + 1, ..due },
            config().stamp(Peer(1), 6),
            Stamp { origin: Peer(2), ..config().stamp(Peer(1), 9) },
            Stamp { generation: due.generation, ..config().stamp(Peer(1), 9) },
        ];
        for stamp in cases {
            for payload in [b"truth", b"trutH"] {
                let reading = judged(&own, &stamped(stamp, payload), 0);
                assert_eq!(reading, Reading::Misplaced, "{stamp:?}");
            }
        }
    }

    proptest! {
        /// Trap T3: no mixture of two messages is a third one.
        #[test]
        fn a_torn_slot_is_never_blamed(arrived: u64, before in 0u64..8) {
            let (own, old) = (slot(5, b"truth"), slot(before, b"other"));
            let torn: Vec<u8> = (0..own.len())
                .map(|at| if arrived >> (at % 64) & 1 == 1 { own[at] } else { old[at] })
                .collect();
            let reading = judged(&own, &torn, 0);
            let whole = torn == own || torn == old;
            prop_assert!(whole || matches!(reading, Reading::Nothing | Reading::Torn));
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 64..65)) {
            let _ = judged(&slot(5, b"truth"), &bytes, 64);
        }
    }
}
