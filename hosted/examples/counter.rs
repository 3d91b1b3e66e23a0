//! Members send numbers to member 0, which adds them up: each counts once, whichever is killed.
//!
//! ```sh
//! weft run -n 4 --state 4KiB -- target/release/examples/counter 100000
//! ```
//!
//! The record of member 0 is the sum, and the last number of each sender in it; that of a sender is
//! the last number known to be in the mailbox of member 0. The next incarnation puts what follows.

use std::error::Error;
use std::time::Duration;

use weft::Member;
use weft::member::{PutError, Rank, SaveError};

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(10_000), |word| word.parse())?;
    let mut member = Member::join()?;
    // Word 0: the sum, or what was sent. Word n: the last number of member n.
    let mut record = vec![0; usize::from(member.size())];
    for (word, bytes) in record.iter_mut().zip(member.saved().unwrap_or_default().chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into()?);
    }
    if member.rank() == Rank(0) {
        add(&mut member, record, count)
    } else {
        send(&mut member, record, count)
    }
}

fn step(member: &mut Member) -> Result<(), Box<dyn Error>> {
    member.wait(Duration::from_millis(10))?;
    member.events().for_each(drop);
    if member.is_stopping() { Err("ended before it was done".into()) } else { Ok(()) }
}

fn save(member: &mut Member, record: &[u64]) -> Result<(), SaveError> {
    member.save(&record.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
}

fn add(member: &mut Member, mut record: Vec<u64>, count: u64) -> Result<(), Box<dyn Error>> {
    while record[1..].iter().any(|last| *last < count) {
        step(member)?;
        while let Some(message) = member.take() {
            let (from, receipt) = (message.sender.index(), message.receipt);
            // Put again by the next incarnation, or before a hole in its last batch: not this one.
            if u64::from_le_bytes(message.payload.try_into()?) == record[from] + 1 {
                record[from] += 1;
                record[0] += record[from];
                save(member, &record)?;
            }
            member.release(receipt)?;
        }
    }
    let expected = (record.len() as u64 - 1) * count * (count + 1) / 2;
    println!("sum {}, expected {expected}", record[0]);
    assert_eq!(record[0], expected, "a number counts twice, or not at all");
    Ok(())
}

fn send(member: &mut Member, mut record: Vec<u64>, count: u64) -> Result<(), Box<dyn Error>> {
    let mut sent = record[0];
    while record[0] < count {
        while sent < count {
            match member.put(Rank(0), &(sent + 1).to_le_bytes()) {
                Ok(()) => sent += 1,
                Err(PutError::Full { .. } | PutError::NotAMember) => break,
                // It has counted all, and this incarnation's predecessor did not save that.
                Err(PutError::Finished) => sent = count,
                Err(error) => return Err(error.into()),
            }
        }
        step(member)?;
        if member.unput(Rank(0)) == 0 {
            record[0] = sent;
            save(member, &record)?;
        }
    }
    Ok(())
}
