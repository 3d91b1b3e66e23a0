//! Messages put and taken within one process, for counting instructions below valgrind.
//!
//! ```text
//!   RUSTFLAGS=--cfg=rustix_use_libc cargo build --release --target-dir target/valgrind
//!   valgrind --tool=callgrind --toggle-collect='weft::bench::count::put_and_take*' \
//!       --callgrind-out-file=/dev/null \
//!       target/valgrind/release/weft bench count --messages 20000 [--batch 1]
//! ```
//!
//! The last line, `Collected`, is all instructions of `--messages` messages, from the caller's
//! bytes to the release at the owner, checks of the benchmark's own included. The flag is there
//! because rustix looks for the kernel's vdso, which valgrind hides.

use weft_core::ids::Peer;

use super::cell::Cell;
use super::crew::{OWNER, meet, take_seat};
use super::error::BenchError;
use super::parcel::{self, DATA};
use super::seat::Seat;
use weft::shm::{NodeMemory, Wait};

const WRITER: Peer = Peer(1);

/// Puts and takes `messages` messages of `bytes` bytes, `batch` at a time or as many as one put
/// carries; returns how many at a time.
///
/// # Errors
/// [`BenchError`].
pub fn count_work(bytes: usize, messages: u64, batch: Option<u32>) -> Result<u32, BenchError> {
    let plan = Cell { bytes, writers: 1 }.plan()?;
    let layout = plan.layout();
    let memory = [OWNER, WRITER].map(|peer| NodeMemory::create(&format!("weft-{peer}"), layout));
    let [owners, writers] = memory;
    let (owners, writers) = (owners?, writers?);
    let seat = |me, memory: &NodeMemory| {
        take_seat(&plan, me, &memory.grant_owner()?, Wait::Spin, Vec::new())
    };
    let (mut owner, mut writer) = (seat(OWNER, &owners)?, seat(WRITER, &writers)?);
    meet(&mut owner, layout, WRITER, &writers.grant(layout, OWNER)?, None)?;
    meet(&mut writer, layout, OWNER, &owners.grant(layout, WRITER)?, None)?;
    let most = plan.mailbox().batch();
    let batch = batch.unwrap_or(most).clamp(1, most);
    put_and_take(&mut owner, &mut writer, &mut vec![0; bytes], messages, batch)?;
    Ok(batch)
}

/// Everything that is counted.
#[inline(never)]
fn put_and_take(
    owner: &mut Seat,
    writer: &mut Seat,
    payload: &mut [u8],
    messages: u64,
    batch: u32,
) -> Result<(), BenchError> {
    let (mut put, mut taken) = (0, 0);
    while taken < messages {
        for _ in 0..batch {
            parcel::write(payload, put);
            writer.endpoint.stage(OWNER, DATA, payload)?;
            put += 1;
        }
        writer.flush(OWNER)?;
        owner.endpoint.poll(owner.vigil.now());
        while taken < put {
            let due = taken;
            let len = payload.len();
            let found =
                owner.take(|message| parcel::expect(message.sender, message.payload, len, due))?;
            match found {
                Some(()) => taken += 1,
                // A batch may be split by the end of a half.
                None => {
                    owner.endpoint.poll(owner.vigil.now());
                }
            }
        }
    }
    Ok(())
}
