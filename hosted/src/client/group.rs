//! What a client does with a group of its node: send a sequence, receive, enter a barrier.
//!
//! As for broadcasts ([`Speaker`](super::Speaker), [`Listener`](super::Listener)), a lost component
//! is no error: the next one is asked.

use std::time::Duration;

use super::{Client, ClientError, is_loss, millis};
use crate::clock::Deadline;
use crate::cluster::Topology;
use crate::node::control::{GroupOutcome, GroupReceived, GroupWant, Outcome, Payload, Then, Want};

impl Client {
    /// Enters the next barrier of `group` for the node, and waits until all live members have; its
    /// number, from 1. An entry stands, also past `timeout`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn group_barrier(&mut self, group: &str, timeout: Duration) -> Result<u64, ClientError> {
        match self.ask_group(group, &GroupWant::Barrier, timeout)? {
            GroupOutcome::Left { number } => Ok(number),
            other => Err(self.out_of_place(&Outcome::Group(other))),
        }
    }

    /// Asks until a component has answered.
    fn ask_group(
        &mut self,
        group: &str,
        what: &GroupWant,
        timeout: Duration,
    ) -> Result<GroupOutcome, ClientError> {
        let deadline = Deadline::after(timeout);
        loop {
            match self.ask_group_once(group, what.clone(), deadline.remaining()) {
                Err(error) if is_loss(&error) && !deadline.has_passed() => {}
                answer => return answer,
            }
        }
    }

    fn ask_group_once(
        &mut self,
        group: &str,
        what: GroupWant,
        timeout: Duration,
    ) -> Result<GroupOutcome, ClientError> {
        let (group, timeout_ms) = (group.to_owned(), millis(timeout));
        match self.ask(Want::Group { group, timeout_ms, what }, timeout)? {
            Outcome::Group(outcome) => Ok(outcome),
            other => Err(self.out_of_place(&other)),
        }
    }
}

/// A sequence of messages to a group that no other client of the node interrupts.
///
/// A message that was under way when a component was lost is sent again: receivers may get it
/// twice, unless it is short enough to travel with its entry ([`Self::SHORT_MAX`]).
#[derive(Debug)]
pub struct GroupSpeaker {
    client: Client,
    group: String,
    tag: u64,
    marker: Vec<u8>,
    topology: Option<Topology>,
    /// The number of the last message that the node has sent.
    last: u64,
}

impl GroupSpeaker {
    /// The longest message that is never sent twice.
    pub const SHORT_MAX: usize = crate::node::GROUP_EAGER as usize;

    /// Begins to send messages with this tag once no other client is in the middle of a sequence,
    /// within `timeout`. If the speaker is dropped before [`Self::end`], or its process ends, the
    /// node sends `marker` behind the messages sent so far, if there are any.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn begin(
        client: Client,
        group: &str,
        (tag, marker): (u64, &[u8]),
        timeout: Duration,
    ) -> Result<Self, ClientError> {
        let (group, marker) = (group.to_owned(), marker.to_vec());
        let mut speaker = Self { client, group, tag, marker, topology: None, last: 0 };
        let then = speaker.go_on();
        speaker.last = speaker.ask(None, then, timeout)?;
        Ok(speaker)
    }

    /// How the blocks of the messages that follow travel; none for what the cluster file says.
    pub const fn set_topology(&mut self, topology: Option<Topology>) {
        self.topology = topology;
    }

    /// Sends one message, waiting up to `timeout` while the window is full; its number.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn send(&mut self, message: &[u8], timeout: Duration) -> Result<u64, ClientError> {
        let deadline = Deadline::after(timeout);
        loop {
            let sent = self.ask_once(Some(message), self.go_on(), deadline.remaining());
            match sent {
                Err(error) if is_loss(&error) && !deadline.has_passed() => {}
                sent => {
                    self.last = sent?;
                    return Ok(self.last);
                }
            }
            let then = self.go_on();
            let last = self.ask(None, then, deadline.remaining())?;
            // Its entry is all of it: if that was written, it was sent.
            if last > self.last && message.len() <= Self::SHORT_MAX {
                self.last = last;
                return Ok(last);
            }
        }
    }

    /// Ends the sequence: other clients may send, and the marker is dropped.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn end(mut self, timeout: Duration) -> Result<(), ClientError> {
        self.ask(None, Then::Rest, timeout).map(drop)
    }

    fn go_on(&self) -> Then {
        Then::GoOn { marker: Payload(self.marker.clone()) }
    }

    fn want(&self, message: Option<&[u8]>, then: Then) -> GroupWant {
        let message = message.map(|bytes| Payload(bytes.to_vec()));
        GroupWant::Send { tag: self.tag, message, topology: self.topology, then }
    }

    fn ask(
        &mut self,
        message: Option<&[u8]>,
        then: Then,
        timeout: Duration,
    ) -> Result<u64, ClientError> {
        let want = self.want(message, then);
        let answer = self.client.ask_group(&self.group, &want, timeout);
        self.sent(answer)
    }

    fn ask_once(
        &mut self,
        message: Option<&[u8]>,
        then: Then,
        timeout: Duration,
    ) -> Result<u64, ClientError> {
        let want = self.want(message, then);
        let answer = self.client.ask_group_once(&self.group, want, timeout);
        self.sent(answer)
    }

    fn sent(&self, answer: Result<GroupOutcome, ClientError>) -> Result<u64, ClientError> {
        match answer? {
            GroupOutcome::Sent { last } => Ok(last),
            other => Err(self.client.out_of_place(&Outcome::Group(other))),
        }
    }
}

/// The receiving side of a group at one node. Each member has one listener at a time.
#[derive(Debug)]
pub struct GroupListener {
    client: Client,
    group: String,
    /// The last message that was processed, which the next request reports.
    done: Option<(u16, u64)>,
}

impl GroupListener {
    /// Receives in `group` at the client's node.
    #[must_use]
    pub fn new(client: Client, group: &str) -> Self {
        Self { client, group: group.to_owned(), done: None }
    }

    /// The next of `root`, or of any other member; none by the end of `timeout`. It is given again
    /// until it is [processed](Self::note_processed). The end of a member that was removed is given
    /// where that member is named, each time.
    ///
    /// # Errors
    /// [`ClientError`], for instance if another listener holds `root`.
    pub fn listen(
        &mut self,
        root: Option<u16>,
        timeout: Duration,
    ) -> Result<Option<GroupReceived>, ClientError> {
        let want = GroupWant::Receive { root, process: std::process::id(), done: self.done };
        match self.client.ask_group(&self.group, &want, timeout)? {
            GroupOutcome::Received(received) => Ok(received),
            other => Err(self.client.out_of_place(&Outcome::Group(other))),
        }
    }

    /// The next request reports message `seq` of `root` as processed.
    pub const fn note_processed(&mut self, root: u16, seq: u64) {
        self.done = Some((root, seq));
    }

    /// Reports what was processed, and ends: the next listener goes on behind it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn end(mut self, timeout: Duration) -> Result<(), ClientError> {
        let Some((root, _)) = self.done else { return Ok(()) };
        let want = GroupWant::Receive { root: Some(root), process: 0, done: self.done };
        // A component that is lost meanwhile gives it again, unless the next one has this report.
        let deadline = Deadline::after(timeout);
        loop {
            match self.client.ask_group_once(&self.group, want.clone(), Duration::ZERO) {
                Err(error) if is_loss(&error) && !deadline.has_passed() => {}
                ended => return ended.map(drop),
            }
        }
    }
}
