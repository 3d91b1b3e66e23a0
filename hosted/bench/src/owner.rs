//! The owner's part of what is measured through the mailbox.

use weft_core::ids::Peer;
use weft_core::mailbox::Message;

use super::cell::Cell;
use super::error::BenchError;
use super::figure::Samples;
use super::parcel::{self, DATA, END, PING};
use super::seat::BenchSeat;
use weft::clock::now_ns;

/// Pings that go back and forth before they are counted.
const WARM_UP: u64 = 16;
/// Messages taken between two polls.
const BURST: u64 = 128;
/// Messages that share one sample of the rate.
const WINDOW: u64 = 1024;

/// The ping under way to one writer.
struct PendingPing {
    number: u64,
    sent_ns: u64,
}

/// Goes back and forth with all writers at once for `span_ns`.
pub(super) fn latency(
    seat: &mut BenchSeat,
    cell: Cell,
    span_ns: u64,
    samples: &mut Samples,
) -> Result<(), BenchError> {
    let begun = now_ns();
    let mut payload = vec![0; cell.bytes];
    let mut turns = Vec::new();
    for writer in 1..=cell.writers {
        parcel::write(&mut payload, 0);
        turns.push(PendingPing { number: 0, sent_ns: now_ns() });
        seat.put(Peer(writer), PING, &payload)?;
    }
    let mut open = turns.len();
    while open > 0 {
        let ((writer, kind), receipt) = seat.await_message(|message| {
            let due = turns[message.sender.index() - 1].number;
            parcel::expect(message.sender, message.payload, cell.bytes, due)?;
            Ok((message.sender, message.kind))
        })?;
        if kind == END {
            open -= 1;
            seat.release(receipt);
            continue;
        }
        let turn = &mut turns[writer.index() - 1];
        let PendingPing { number, sent_ns } = *turn;
        parcel::write(&mut payload, number + 1);
        let goes_on = sent_ns - begun < span_ns || number < WARM_UP;
        let kind = if goes_on { PING } else { END };
        seat.put(writer, kind, &payload)?;
        // Behind the next ping, as in the bare exchange: from one to the next is a round trip.
        let now = seat.vigil.tick().0;
        seat.release(receipt);
        *turn = PendingPing { number: number + 1, sent_ns: now };
        if number >= WARM_UP {
            samples.push(now - sent_ns, 2);
        }
    }
    Ok(())
}

/// What came in one go.
pub(super) struct TakenMessages {
    /// Messages taken and released.
    pub(super) taken: u64,
    /// How long it took.
    pub(super) span_ns: u64,
}

/// Takes from all writers for `span_ns` from the first message on, then all that is still under
/// way; every message of every writer must come once and in its order.
pub(super) fn rate(
    seat: &mut BenchSeat,
    cell: Cell,
    span_ns: u64,
    samples: &mut Samples,
) -> Result<TakenMessages, BenchError> {
    let mut due = vec![0_u64; usize::from(cell.writers)];
    let mut open = due.len();
    let mut taken = 0;
    let mut begun_ns = None;
    let mut window = (0, 0);
    let mut intake = None;
    while open > 0 {
        seat.poll()?;
        let before = taken;
        while taken - before < BURST {
            let writing = open;
            let found = seat.take_run(|message| {
                let Message { sender, kind, payload, .. } = *message;
                let due = &mut due[sender.index() - 1];
                let number = *due;
                *due += 1;
                if kind == DATA && parcel::holds(payload, cell.bytes, number) {
                    return Ok(());
                }
                open -= 1;
                expect_end(sender, kind, payload, (cell.bytes, number))
            })?;
            taken += found - (writing - open) as u64;
            if found == 0 {
                break;
            }
        }
        if taken == before {
            seat.vigil.idle()?;
            continue;
        }
        let now = seat.vigil.tick().0;
        let begun = *begun_ns.get_or_insert_with(|| {
            window = (taken, now);
            now
        });
        if intake.is_some() {
            continue;
        }
        if taken - window.0 >= WINDOW {
            samples.push(now - window.1, taken - window.0);
            window = (taken, now);
        }
        if now - begun >= span_ns {
            if taken > window.0 {
                samples.push(now - window.1, taken - window.0);
            }
            intake = Some(TakenMessages { taken, span_ns: now - begun });
            stop(seat, cell)?;
        }
    }
    intake.ok_or(BenchError::OutOfStep("a writer ended by itself"))
}

/// Refuses a message that is not the last one, of `len` bytes, of `writer`. Apart, and of values in
/// registers, or the loop over a run is longer for every message.
#[cold]
#[inline(never)]
fn expect_end(
    writer: Peer,
    kind: u16,
    payload: &[u8],
    (len, number): (usize, u64),
) -> Result<(), BenchError> {
    parcel::expect(writer, payload, len, number)?;
    if kind == END { Ok(()) } else { Err(BenchError::OutOfStep("a message of another phase")) }
}

fn stop(seat: &mut BenchSeat, cell: Cell) -> Result<(), BenchError> {
    let mut payload = vec![0; cell.bytes];
    parcel::write(&mut payload, 0);
    (1..=cell.writers).try_for_each(|writer| seat.put(Peer(writer), END, &payload))
}
