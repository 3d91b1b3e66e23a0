//! What two nodes say before they know each other: any bytes, no panic, and what is understood is
//! said again in the same words.

use serde::Serialize;
use serde::de::DeserializeOwned;
use weft::bootstrap::{Hello, PairEnd, Refusal, VERSION};

fn again<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let word: T = serde_json::from_slice(bytes).ok()?;
    let said = serde_json::to_vec(&word).expect("it was understood");
    let heard: T = serde_json::from_slice(&said).expect("it was said");
    assert_eq!(serde_json::to_vec(&heard).expect("it was understood"), said);
    Some(word)
}

/// Hears `bytes` as each of the words.
pub fn run(bytes: &[u8]) {
    if let Some(theirs) = again::<Hello>(bytes) {
        let ours = Hello { version: VERSION, rank: 0, ..theirs.clone() };
        if let Err(refusal) = ours.check(&theirs, 4) {
            // A refusal is sent to the other node and shown to people.
            let bytes = serde_json::to_vec(&refusal).expect("it can be sent");
            assert_eq!(serde_json::from_slice::<Refusal>(&bytes).expect("it was sent"), refusal);
            assert!(!refusal.to_string().is_empty());
        } else {
            assert!((1..4).contains(&theirs.rank), "rank {}", theirs.rank);
        }
    }
    again::<Refusal>(bytes);
    again::<PairEnd>(bytes);
}
