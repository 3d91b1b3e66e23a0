//! Each member greets every other one, and ends when all have greeted it.
//!
//! ```sh
//! weft run -n 4 -- target/release/examples/hello
//! ```

use std::error::Error;
use std::time::Duration;

use weft::Member;
use weft::member::Rank;

fn main() -> Result<(), Box<dyn Error>> {
    let mut member = Member::join()?;
    let (me, size) = (member.rank(), member.size());
    let others = || (0..size).map(Rank).filter(move |rank| *rank != me);
    let greeting = format!("hello from {me}, incarnation {}", member.incarnation());

    let (mut due, mut greeted) = (others().collect::<Vec<_>>(), 0);
    while greeted < size - 1 || !due.is_empty() || others().any(|rank| member.unput(rank) > 0) {
        // One that has not joined yet is tried again.
        due.retain(|rank| member.put(*rank, greeting.as_bytes()).is_err());
        member.wait(Duration::from_millis(10))?;
        while let Some(message) = member.take() {
            println!("{}", String::from_utf8_lossy(message.payload));
            let receipt = message.receipt;
            member.release(receipt)?;
            greeted += 1;
        }
        for event in member.events() {
            eprintln!("{event:?}");
        }
        if member.is_stopping() {
            break;
        }
    }
    Ok(())
}
