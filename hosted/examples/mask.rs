//! Looks at the membership in a polling loop, for the price of a load: a page that a node keeps.
//!
//! ```sh
//! weft up -n 4 &
//! target/release/examples/mask weft
//! ```
//!
//! A second argument says after how many changes it ends.

use std::error::Error;
use std::time::Duration;

use weft::client::{Client, find};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "weft".to_owned()).parse()?;
    let count: usize = arguments.next().map_or(Ok(usize::MAX), |word| word.parse())?;

    let (dir, cluster) = find(&name, Duration::from_secs(3))?;
    let mut node = Client::connect(&dir, &cluster, 0, Duration::from_secs(3))?;
    let mask = node.mask()?;

    let (mut last, mut changes) = (0, 0);
    while changes < count {
        // A loop that polls something else anyway needs no more than this. What changes after the
        // first load is in the next turn.
        let now = mask.changes();
        let view = if now == last { None } else { mask.load() };
        let Some(view) = view else {
            std::thread::park_timeout(Duration::from_micros(50));
            continue;
        };
        let members: Vec<u16> = (0..64).filter(|rank| view.members >> rank & 1 == 1).collect();
        println!("view {:#x}: members {members:?}", view.number);
        (last, changes) = (now, changes + 1);
    }
    Ok(())
}
