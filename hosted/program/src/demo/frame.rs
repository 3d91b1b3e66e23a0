//! A line, or a part of a long one, as a message.
//!
//! ```text
//! byte  0        4      5    8                  16
//!       │ number │ what │ 0… │ SHA-256, 8 bytes │ text …
//! ```
//!
//! Numbers count the frames of one stream from 0, over all rounds of the input. `what`
//! distinguishes a part of a line from its last part, and both from the two marks that carry no
//! text: `Resume`, by which a sender that lost its component asks how far it came (its number names
//! the question), and `End`, whose number is how many frames there were.

use sha2::{Digest as _, Sha256};

use super::TextInput;

const HEADER_LEN: usize = 16;
const HASH_START: usize = 8;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// A part of a line; more follow.
    Part,
    /// A line, or the last part of one.
    LineEnd,
    /// How far did I come?
    Resume,
    /// The stream is complete.
    End,
}

/// A message of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StreamFrame {
    pub(super) number: u32,
    pub(super) what: FrameKind,
    pub(super) text: Vec<u8>,
}

/// A payload that is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoFrame;

impl StreamFrame {
    /// A frame without text.
    pub(super) const fn mark(number: u32, what: FrameKind) -> Self {
        Self { number, what, text: Vec::new() }
    }

    /// The same text as the how-manieth frame of a stream.
    pub(super) fn numbered(&self, number: usize) -> Self {
        Self { number: u32::try_from(number).unwrap_or(u32::MAX), ..self.clone() }
    }

    /// Goes on with the digest of a stream.
    pub(super) fn absorb(&self, digest: &mut Sha256) {
        digest.update(&self.text);
        if self.what == FrameKind::LineEnd {
            digest.update(b"\n");
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut payload = vec![0; HEADER_LEN];
        payload[..4].copy_from_slice(&self.number.to_le_bytes());
        payload[4] = match self.what {
            FrameKind::Part => 0,
            FrameKind::LineEnd => 1,
            FrameKind::Resume => 2,
            FrameKind::End => 3,
        };
        let hash = hash(&payload[..5], &self.text);
        payload[HASH_START..HEADER_LEN].copy_from_slice(&hash);
        payload.extend_from_slice(&self.text);
        payload
    }

    pub(super) fn decode(payload: &[u8]) -> Result<Self, NoFrame> {
        let (header, text) = payload.split_at_checked(HEADER_LEN).ok_or(NoFrame)?;
        let number = header.first_chunk::<4>().map(|number| u32::from_le_bytes(*number));
        let what = match header[4] {
            0 => FrameKind::Part,
            1 => FrameKind::LineEnd,
            2 => FrameKind::Resume,
            3 => FrameKind::End,
            _ => return Err(NoFrame),
        };
        if header[HASH_START..] != hash(&header[..5], text) {
            return Err(NoFrame);
        }
        Ok(Self { number: number.ok_or(NoFrame)?, what, text: text.to_vec() })
    }
}

fn hash(head: &[u8], text: &[u8]) -> [u8; HEADER_LEN - HASH_START] {
    let digest = Sha256::new().chain_update(head).chain_update(text).finalize();
    std::array::from_fn(|index| digest[index])
}

/// The frames of an input for messages of up to `message_len` bytes.
pub(super) fn split(input: &TextInput, message_len: usize) -> Vec<StreamFrame> {
    let room = message_len - HEADER_LEN;
    let mut frames = Vec::with_capacity(input.lines().len());
    for line in input.lines() {
        let mut parts = line.as_bytes().chunks(room).peekable();
        let mut push = |what, text: &[u8]| {
            let number = u32::try_from(frames.len()).unwrap_or(u32::MAX);
            frames.push(StreamFrame { number, what, text: text.to_vec() });
        };
        if line.is_empty() {
            push(FrameKind::LineEnd, &[]);
        }
        while let Some(part) = parts.next() {
            push(if parts.peek().is_some() { FrameKind::Part } else { FrameKind::LineEnd }, part);
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_comes_back(number in any::<u32>(), text in any::<Vec<u8>>()) {
            let frame = StreamFrame { number, what: FrameKind::LineEnd, text };
            prop_assert_eq!(StreamFrame::decode(&frame.encode()), Ok(frame));
        }

        #[test]
        fn an_altered_frame_is_none(at in any::<prop::sample::Index>(), flip in 1u8..) {
            let frame = StreamFrame { number: 7, what: FrameKind::Part, text: b"warp".to_vec() };
            let mut payload = frame.encode();
            let at = at.index(payload.len());
            payload[at] ^= flip;
            // The three spare bytes of the header mean nothing.
            prop_assert!((5..8).contains(&at) || StreamFrame::decode(&payload).is_err());
        }

        #[test]
        fn bytes_that_are_no_frame_do_no_harm(payload in any::<Vec<u8>>()) {
            let _ = StreamFrame::decode(&payload);
        }
    }
}
