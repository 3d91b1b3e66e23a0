//! A session with a peer that was met: messages in both directions until it falls silent.
//!
//! An idle side sends a keep-alive every second. A side from which no whole message has come for
//! five seconds is gone: a host without power, a cut cable, or a process that sends a byte at a
//! time.

use std::net::{Shutdown, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use snow::StatelessTransportState;

use super::frame::{BODY_LEN_MAX, Frames, Kind, write_frame};
use super::noise::TAG_LEN;
use super::{LinkError, Timing};
use crate::bootstrap::News;
use crate::bootstrap::audience::PeerLine;
use crate::bootstrap::session_message::SessionMessage;
use crate::clock::Deadline;

/// How many bytes are read at once.
const CHUNK_LEN: usize = 1024;

/// The sending half, for several threads.
#[derive(Clone)]
pub(super) struct Channel {
    shared: Arc<ChannelShared>,
}

struct ChannelShared {
    stream: TcpStream,
    noise: StatelessTransportState,
    timing: Timing,
    /// How many messages were sent: the nonce of the next one.
    sent: Mutex<u64>,
}

/// The receiving half.
pub(super) struct Hearing {
    channel: Channel,
    frames: Frames,
    /// How many messages were received: none is accepted twice, or out of order.
    heard: u64,
    silent_until: Deadline,
    speak_at: Deadline,
}

impl Channel {
    pub(super) fn new(stream: TcpStream, noise: StatelessTransportState, timing: Timing) -> Self {
        Self { shared: Arc::new(ChannelShared { stream, noise, timing, sent: Mutex::new(0) }) }
    }

    /// The receiving half. Call it once.
    pub(super) fn hearing(&self) -> Hearing {
        let timing = self.shared.timing;
        Hearing {
            channel: self.clone(),
            frames: Frames::default(),
            heard: 0,
            silent_until: Deadline::after(timing.silence),
            speak_at: Deadline::after(timing.pause),
        }
    }

    /// Sends a message; none is a keep-alive.
    pub(super) fn say(&self, word: Option<&SessionMessage>) -> Result<(), LinkError> {
        let plain = serde_json::to_vec(&word).map_err(|_| LinkError::Nonsense)?;
        let mut sealed = vec![0; plain.len() + TAG_LEN];
        // Held until the frame is out, so that frames go out in the order of their nonces.
        let mut sent = self.shared.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let len = self.shared.noise.write_message(*sent, &plain, &mut sealed)?;
        *sent += 1;
        let deadline = Deadline::after(self.shared.timing.word);
        write_frame(&self.shared.stream, Kind::Noise, &sealed[..len], deadline)
    }
}

impl PeerLine for Channel {
    type Error = LinkError;

    fn tell(&self, word: &SessionMessage, _fd: Option<BorrowedFd<'_>>) -> Result<(), LinkError> {
        self.say(Some(word))
    }

    /// Half a message would end the channel, so this may take as long as any message.
    fn tell_at_once(&self, word: &SessionMessage) -> Result<(), LinkError> {
        self.say(Some(word))
    }

    fn shut_down(&self) {
        // Fails only on a connection that has ended.
        let _ = self.shared.stream.shutdown(Shutdown::Both);
    }
}

impl Hearing {
    /// Waits up to `timeout` for an event.
    pub(super) fn hear(&mut self, timeout: Duration) -> Result<Option<News>, LinkError> {
        if self.speak_at.has_passed() {
            self.channel.say(None)?;
            self.speak_at = Deadline::after(self.channel.shared.timing.pause);
        }
        match self.listen(Deadline::after(timeout))? {
            None | Some(None) => Ok(None),
            Some(Some(word)) => word.into_news(None).map(Some).ok_or(LinkError::Nonsense),
        }
    }

    /// The next message or keep-alive, or none by the deadline.
    pub(super) fn listen(
        &mut self,
        deadline: Deadline,
    ) -> Result<Option<Option<SessionMessage>>, LinkError> {
        loop {
            if let Some(frame) = self.frames.take()? {
                if frame.kind != Kind::Noise {
                    return Err(LinkError::Nonsense);
                }
                let word = self.open(&frame.body)?;
                self.silent_until = Deadline::after(self.channel.shared.timing.silence);
                return Ok(Some(word));
            }
            if self.silent_until.has_passed() {
                return Err(LinkError::Stalled);
            }
            let stream = &self.channel.shared.stream;
            if !self.frames.fill(stream, CHUNK_LEN, deadline.min(self.silent_until))? {
                return Ok(None);
            }
        }
    }

    fn open(&mut self, sealed: &[u8]) -> Result<Option<SessionMessage>, LinkError> {
        let mut plain = [0; BODY_LEN_MAX];
        let len = self.channel.shared.noise.read_message(self.heard, sealed, &mut plain)?;
        self.heard += 1;
        serde_json::from_slice(&plain[..len]).map_err(|_| LinkError::Nonsense)
    }
}
