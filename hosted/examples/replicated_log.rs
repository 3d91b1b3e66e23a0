//! A log that every member keeps, in one order: each member broadcasts its entries, and the log
//! takes one entry of each origin a round. It survives `kill -9` of any member.
//!
//! ```sh
//! weft run -n 3 --state 1MiB -- target/release/examples/replicated_log 1000
//! ```
//!
//! What a broadcast promises is the order of each origin, and one message under each number; the
//! order among origins is made here, by rounds. A round waits for all origins, so the log goes on
//! when the next incarnation of a killed member does. It ends when a node is removed: then the rest
//! must agree on the last round, which is not shown here.

use std::error::Error;
use std::time::Duration;

use weft::Member;
use weft::member::{BroadcastError, Rank};

/// The entries of each origin, in its order, and the record that says the same.
#[derive(Default)]
struct Log {
    entries: Vec<Vec<String>>,
    record: String,
}

impl Log {
    fn append(&mut self, origin: usize, entry: &str) {
        self.entries[origin].push(entry.to_owned());
        self.record += &format!("{origin} {entry}\n");
    }
}

/// Takes up what was saved, and what the incarnation before delivered or broadcast after that.
fn restore(member: &mut Member) -> Result<Log, Box<dyn Error>> {
    let mut log = Log::default();
    log.entries.resize_with(member.size().into(), Vec::new);
    for line in String::from_utf8(member.saved().unwrap_or_default())?.lines() {
        let (origin, entry) = line.split_once(' ').ok_or("a line has an origin")?;
        log.append(origin.parse()?, entry);
    }
    for origin in 0..member.size() {
        let at = usize::from(origin);
        while let Some(next) = member.delivered(Rank(origin), log.entries[at].len() as u64 + 1) {
            log.append(at, str::from_utf8(next.payload)?);
        }
    }
    member.save(log.record.as_bytes())?;
    Ok(log)
}

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(100), |word| word.parse())?;
    let mut member = Member::join()?;
    let (me, mut log) = (usize::from(member.rank().0), restore(&mut member)?);
    while log.entries.iter().any(|entries| entries.len() < count) {
        if log.entries[me].len() < count {
            let entry = format!("entry {} of {me}", log.entries[me].len() + 1);
            match member.broadcast(entry.as_bytes()) {
                Ok(_) => log.append(me, &entry),
                Err(BroadcastError::WindowFull) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // `restore` finds what a kill before the next save leaves out, which is not too much.
        for _ in 0..32 {
            let Some(message) = member.deliver() else { break };
            log.append(message.origin.index(), str::from_utf8(message.payload)?);
        }
        member.save(log.record.as_bytes())?;
        member.wait(Duration::from_millis(10))?;
        member.events().for_each(drop);
        if member.is_stopping() {
            return Err("ended before it was done".into());
        }
    }
    for round in 0..count {
        log.entries.iter().for_each(|entries| println!("{}", entries[round]));
    }
    Ok(())
}
