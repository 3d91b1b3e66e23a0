//! What comes over a connection between hosts: any bytes, in pieces of any size.
//!
//! ```text
//! first byte: how long the pieces are │ the bytes of the connection
//! ```
//!
//! Frames are the same however the bytes are cut, none is longer than any may be, and what a body
//! says, which a node hears once it has opened it, is refused or understood without a panic.

use weft::bootstrap::{Frame, Frames, SessionMessage};

const BODY_LEN_MAX: usize = 8192;

/// The frames of `pieces`, and whether they ended in nonsense.
fn frames<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, bool) {
    let (mut frames, mut heard) = (Frames::default(), Vec::new());
    for piece in pieces {
        frames.push(piece);
        loop {
            match frames.take() {
                Ok(Some(frame)) => heard.push(frame),
                Ok(None) => break,
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return (heard, true);
                }
            }
        }
    }
    (heard, false)
}

fn hear(body: &[u8]) {
    // A node says nothing, now and then, to be heard at all.
    let Ok(Some(word)) = serde_json::from_slice::<Option<SessionMessage>>(body) else { return };
    let said = serde_json::to_vec(&word).expect("it was understood");
    let again: SessionMessage = serde_json::from_slice(&said).expect("it was said");
    let (one, other) = (word.into_news(None), again.into_news(None));
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}

/// One input.
pub fn run(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let (whole, ended) = frames(std::iter::once(bytes));
    let in_pieces = frames(bytes.chunks(usize::from(*cut) % 16 + 1));
    assert_eq!((&whole, ended), (&in_pieces.0, in_pieces.1));
    for frame in &whole {
        assert!(frame.body.len() <= BODY_LEN_MAX);
        hear(&frame.body);
    }
    hear(bytes);
}
