//! Each member broadcasts numbered messages, and delivers those of all others, in order.
//!
//! ```sh
//! weft run -n 4 -- target/release/examples/broadcast 1000
//! ```

use std::error::Error;
use std::time::Duration;

use weft::Member;
use weft::member::BroadcastError;

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(1_000), |word| word.parse())?;
    let mut member = Member::join()?;
    let (me, size) = (usize::from(member.rank().0), usize::from(member.size()));

    let mut sent = 0;
    let mut delivered = vec![0; size];
    delivered[me] = count;
    while sent < count || delivered.iter().any(|last| *last < count) {
        while sent < count {
            match member.broadcast(format!("number {} of {me}", sent + 1).as_bytes()) {
                Ok(seq) => sent = seq,
                // Some member has not delivered what was broadcast before.
                Err(BroadcastError::WindowFull) => break,
                Err(error) => return Err(error.into()),
            }
        }
        member.wait(Duration::from_millis(10))?;
        while let Some(message) = member.deliver() {
            let origin = message.origin.index();
            let expected = format!("number {} of {origin}", delivered[origin] + 1);
            if message.payload != expected.as_bytes() {
                return Err(format!("{expected}: {:?}", message.payload).into());
            }
            delivered[origin] = message.seq;
        }
        for event in member.events() {
            eprintln!("{event:?}");
        }
        if member.is_stopping() {
            return Err("ended before it was done".into());
        }
    }
    println!("delivered {count} messages of each of {} members", size - 1);
    Ok(())
}
