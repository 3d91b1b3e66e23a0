//! Prints what happens in a running cluster, as a process that is no member of it.
//!
//! ```sh
//! weft up -n 4 &
//! target/release/examples/watch weft
//! ```
//!
//! A second argument says after how many events it ends.

use std::error::Error;
use std::time::Duration;

use weft::client::{Kind, Watcher};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "weft".to_owned()).parse()?;
    let count: usize = arguments.next().map_or(Ok(usize::MAX), |word| word.parse())?;

    let mut watcher = Watcher::start(&name, Duration::from_secs(3))?;
    for _ in 0..count {
        // Goes on at the next node when the one that it asks has died.
        let Some(event) = watcher.next(Duration::MAX)? else { break };
        match (event.event, event.rank) {
            (Kind::View, _) => {
                let members: Vec<u16> = event.members.iter().map(|member| member.rank).collect();
                println!("view {:#x}: members {members:?}", event.view);
            }
            (kind, Some(rank)) => {
                let incarnation = event.incarnation.unwrap_or_default();
                let verdict = event.verdict.unwrap_or_default();
                println!("{kind:?} {rank} {incarnation} {verdict}");
            }
            (kind, None) => println!("{kind:?}"),
        }
    }
    Ok(())
}
