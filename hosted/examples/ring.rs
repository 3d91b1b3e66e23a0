//! Each member puts numbers to the next one in the ring, and takes those of the one before.
//!
//! ```sh
//! weft run -n 4 -- target/release/examples/ring 1000000
//! ```
//!
//! It survives `weft inject kill 1`: the next incarnation starts from the first number again, and
//! its receiver takes only the number that is due. The last number is never released, so that an
//! incarnation that starts late finds it.

use std::error::Error;
use std::time::Duration;

use weft::Member;
use weft::clock::now_ns;
use weft::member::{PutError, Rank};

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(100_000), |word| word.parse())?;
    let mut member = Member::join()?;
    let (me, size) = (member.rank().0, member.size());
    let next = Rank((me + 1) % size);

    let start_ns = now_ns();
    let (mut sent, mut seen) = (0, 0);
    while sent < count || seen < count || member.unput(next) > 0 {
        while sent < count {
            match member.put(next, &(sent + 1).to_le_bytes()) {
                Ok(()) => sent += 1,
                // The batch is on its way, or the next incarnation of `next` is being started.
                Err(PutError::Full { .. } | PutError::NotAMember) => break,
                // It has all numbers, from an earlier incarnation of this member.
                Err(PutError::Finished) => sent = count,
                Err(error) => return Err(error.into()),
            }
        }
        member.wait(Duration::from_millis(10))?;
        while let Some(message) = member.take() {
            let number = u64::from_le_bytes(message.payload.try_into()?);
            let receipt = message.receipt;
            // A sender that was killed in the middle of a batch leaves a hole in it.
            let is_next = seen == 0 || number == seen + 1;
            if is_next {
                seen = number;
            }
            if number < count || !is_next {
                member.release(receipt)?;
            }
        }
        for event in member.events() {
            eprintln!("{event:?}");
        }
        if member.is_stopping() {
            return Err("ended before it was done".into());
        }
    }
    let seconds = (now_ns() - start_ns) as f64 / 1e9;
    println!("{count} messages round in {seconds:.3} s, {:.0} a second", count as f64 / seconds);
    Ok(())
}
