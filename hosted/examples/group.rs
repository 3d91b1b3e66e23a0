//! Member 0 sends one long message to all others, which read its blocks from its memory.
//!
//! ```sh
//! printf 'name = "g"\nnodes = 4\n[group]\ncount = 1\n' > g.toml
//! weft run g.toml -- target/release/examples/group 300000000
//! ```

use std::error::Error;
use std::time::Duration;

use weft::Member;
use weft::member::{ALL, GroupDelivery, GroupError, Rank};

/// How many bytes are written at a time.
const PIECE: u64 = 1 << 20;
const ROOT: Rank = Rank(0);

/// The byte of the message at `offset`, so that every part can be judged by itself.
fn byte_at(offset: u64) -> u8 {
    (offset ^ offset >> 9).to_le_bytes()[0]
}

fn bytes(from: u64, to: u64) -> Vec<u8> {
    (from..to).map(byte_at).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let len: u64 = std::env::args().nth(1).map_or(Ok(64 << 20), |word| word.parse())?;
    let mut member = Member::join()?;
    if member.rank() == ROOT { send(&mut member, len) } else { receive(&mut member, len) }
}

fn send(member: &mut Member, len: u64) -> Result<(), Box<dyn Error>> {
    while let Err(error) = member.group(ALL)?.begin(0, len) {
        if error != GroupError::Opening {
            return Err(error.into());
        }
        wait(member)?;
    }
    let mut written = 0;
    while written < len {
        let piece = bytes(written, len.min(written + PIECE));
        written += member.group(ALL)?.write(&piece)? as u64;
        wait(member)?;
    }
    // What all have received is stable.
    while member.group(ALL)?.standing(ROOT).is_none_or(|it| it.stable.entries == 0) {
        wait(member)?;
    }
    println!("sent {len} bytes");
    Ok(())
}

fn receive(member: &mut Member, len: u64) -> Result<(), Box<dyn Error>> {
    let mut buffer = Vec::new();
    // A later incarnation goes on where the one before it has received; perhaps that was all.
    while member.group(ALL)?.standing(ROOT).is_none_or(|it| it.released.entries == 0) {
        wait(member)?;
        while let Some(delivery) = member.group(ALL)?.receive(&mut buffer) {
            let GroupDelivery::Part { offset, message_len, .. } = delivery else {
                return Err(format!("{delivery:?}").into());
            };
            if message_len != len || buffer != bytes(offset, offset + buffer.len() as u64) {
                return Err(format!("not what member 0 sent: {delivery:?}").into());
            }
            buffer.clear();
        }
    }
    println!("received {len} bytes, incarnation {}", member.incarnation().0);
    Ok(())
}

fn wait(member: &mut Member) -> Result<(), Box<dyn Error>> {
    member.wait(Duration::from_millis(10))?;
    member.events().for_each(drop);
    if member.is_stopping() { Err("ended before it was done".into()) } else { Ok(()) }
}
