//! A request or a reply on a control socket: any bytes, no panic, and what is understood is said
//! again in the same words.

use serde::Serialize;
use serde::de::DeserializeOwned;
use weft::node::control::{Reply, Request};

fn again<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(word) = serde_json::from_slice::<T>(bytes) else { return };
    let said = serde_json::to_vec(&word).expect("it was understood");
    let heard: T = serde_json::from_slice(&said).expect("it was said");
    assert_eq!(serde_json::to_vec(&heard).expect("it was understood"), said);
}

/// Hears `bytes` as a node hears a client, and as a client hears a node.
pub fn run(bytes: &[u8]) {
    again::<Request>(bytes);
    again::<Reply>(bytes);
}
