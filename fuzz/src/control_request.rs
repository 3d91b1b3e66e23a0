//! A request on a control socket: any bytes, no panic, and what is understood is said again in the
//! same words.

use weft::node::control::Request;

/// Hears `bytes` as a request.
pub fn run(bytes: &[u8]) {
    let Ok(request) = serde_json::from_slice::<Request>(bytes) else { return };
    let said = serde_json::to_vec(&request).expect("it was understood");
    let heard: Request = serde_json::from_slice(&said).expect("it was said");
    assert_eq!(heard.id, request.id);
    assert_eq!(serde_json::to_vec(&heard).expect("it was understood"), said);
}
