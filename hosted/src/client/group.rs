//! What a client does with a group of its node: send a sequence, receive, enter a barrier.
//!
//! As for broadcasts ([`Speaker`](super::Speaker), [`Listener`](super::Listener)), a lost component
//! is no error: the next one is asked.
//!
//! No byte of a message goes through a socket. A message is sent as a descriptor of sealed memory,
//! which the node copies into its window; it is received from that window, which the client maps
//! for reading.

use std::io::Write as _;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::{Client, ClientError, SLACK, is_loss, millis};
use crate::clock::Deadline;
use crate::cluster::Topology;
use crate::node::control::{
    GroupDone, GroupOutcome, GroupReceived, GroupRun, GroupWant, Outcome, Payload, Then, Want,
};
use crate::shm::{ReadOnlyMapping, SealedDraft, SegmentError};

impl Client {
    /// Waits until the node takes part in `group`: one that has come back does once a client asks,
    /// and all members that are live count it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn group_open(&mut self, group: &str, timeout: Duration) -> Result<(), ClientError> {
        match self.ask_group(group, &GroupWant::Open, &[], timeout)? {
            (GroupOutcome::Open, _) => Ok(()),
            (other, _) => Err(self.out_of_place(&Outcome::Group(other))),
        }
    }

    /// Enters the next barrier of `group` for the node, and waits until all live members have; its
    /// number, from 1. An entry stands, also past `timeout`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn group_barrier(&mut self, group: &str, timeout: Duration) -> Result<u64, ClientError> {
        match self.ask_group(group, &GroupWant::Barrier, &[], timeout)? {
            (GroupOutcome::Left { number }, _) => Ok(number),
            (other, _) => Err(self.out_of_place(&Outcome::Group(other))),
        }
    }

    /// Asks until a component has answered.
    fn ask_group(
        &mut self,
        group: &str,
        what: &GroupWant,
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(GroupOutcome, Vec<OwnedFd>), ClientError> {
        let deadline = Deadline::after(timeout);
        loop {
            match self.ask_group_once(group, what.clone(), fds, deadline.remaining()) {
                Err(error) if is_loss(&error) && !deadline.has_passed() => {}
                answer => return answer,
            }
        }
    }

    fn ask_group_once(
        &mut self,
        group: &str,
        what: GroupWant,
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(GroupOutcome, Vec<OwnedFd>), ClientError> {
        let (group, timeout_ms) = (group.to_owned(), millis(timeout));
        let deadline = Deadline::after(timeout.saturating_add(SLACK));
        self.request_with(Want::Group { group, timeout_ms, what }, fds, deadline)?;
        match self.answer_with(deadline)? {
            (Outcome::Group(outcome), fds) => Ok((outcome, fds)),
            (other, _) => Err(self.out_of_place(&other)),
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
        speaker.last = speaker.ask(then, timeout)?;
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
        let sealed = seal(message).map_err(ClientError::Memory)?;
        self.send_sealed(sealed.as_fd(), message.len() as u64, timeout)
    }

    /// As [`Self::send`], the `len` bytes of sealed memory ([`SealedDraft`]).
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn send_sealed(
        &mut self,
        message: BorrowedFd<'_>,
        len: u64,
        timeout: Duration,
    ) -> Result<u64, ClientError> {
        let deadline = Deadline::after(timeout);
        loop {
            let message = Some((message, len));
            let sent = self.ask_once(message, self.go_on(), deadline.remaining());
            match sent {
                Err(error) if is_loss(&error) && !deadline.has_passed() => {}
                sent => {
                    self.last = sent?;
                    return Ok(self.last);
                }
            }
            let then = self.go_on();
            let last = self.ask(then, deadline.remaining())?;
            // Its entry is all of it: if that was written, it was sent.
            if last > self.last && len <= Self::SHORT_MAX as u64 {
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
        self.ask(Then::Rest, timeout).map(drop)
    }

    fn go_on(&self) -> Then {
        Then::GoOn { marker: Payload(self.marker.clone()) }
    }

    const fn want(&self, len: Option<u64>, then: Then) -> GroupWant {
        GroupWant::Send { tag: self.tag, len, topology: self.topology, then }
    }

    /// Asks for the turn, or ends it.
    fn ask(&mut self, then: Then, timeout: Duration) -> Result<u64, ClientError> {
        let want = self.want(None, then);
        let answer = self.client.ask_group(&self.group, &want, &[], timeout);
        self.sent(answer)
    }

    fn ask_once(
        &mut self,
        message: Option<(BorrowedFd<'_>, u64)>,
        then: Then,
        timeout: Duration,
    ) -> Result<u64, ClientError> {
        let want = self.want(message.map(|(_, len)| len), then);
        let fds: Vec<_> = message.into_iter().map(|(fd, _)| fd).collect();
        let answer = self.client.ask_group_once(&self.group, want, &fds, timeout);
        self.sent(answer)
    }

    fn sent(
        &self,
        answer: Result<(GroupOutcome, Vec<OwnedFd>), ClientError>,
    ) -> Result<u64, ClientError> {
        match answer? {
            (GroupOutcome::Sent { last }, _) => Ok(last),
            (other, _) => Err(self.client.out_of_place(&Outcome::Group(other))),
        }
    }
}

/// The memory of a message.
fn seal(message: &[u8]) -> Result<OwnedFd, SegmentError> {
    let mut draft = SealedDraft::create("weft-message", message.len() as u64)?;
    draft.write_all(message).map_err(|error| SegmentError::unwritten(&error))?;
    draft.finish()
}

/// The receiving side of a group at one node. Each member has one listener at a time.
#[derive(Debug)]
pub struct GroupListener {
    client: Client,
    group: String,
    /// Where the messages lie; mapped by the first receive.
    hold: Option<ReadOnlyMapping>,
    /// What was processed last, which the next request reports.
    done: Option<GroupDone>,
}

impl GroupListener {
    /// Receives in `group` at the client's node.
    #[must_use]
    pub fn new(client: Client, group: &str) -> Self {
        Self { client, group: group.to_owned(), hold: None, done: None }
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
        let deadline = Deadline::after(timeout);
        if self.hold.is_none() {
            self.hold = Some(self.map(timeout)?);
        }
        let want = GroupWant::Receive { root, process: std::process::id(), done: self.done };
        match self.client.ask_group(&self.group, &want, &[], deadline.remaining())? {
            (GroupOutcome::Received(received), _) => Ok(received),
            (other, _) => Err(self.client.out_of_place(&Outcome::Group(other))),
        }
    }

    /// Maps the memory in which messages lie, for reading.
    fn map(&mut self, timeout: Duration) -> Result<ReadOnlyMapping, ClientError> {
        let (granted, fds) = self.client.ask_group(&self.group, &GroupWant::Hold, &[], timeout)?;
        let (GroupOutcome::Hold { bytes }, Some(fd)) = (&granted, fds.first()) else {
            return Err(self.client.out_of_place(&Outcome::Group(granted)));
        };
        let len = usize::try_from(*bytes).unwrap_or(usize::MAX);
        ReadOnlyMapping::new(fd.as_fd(), len).map_err(ClientError::Memory)
    }

    /// Copies the bytes of `run` out of the node's memory, behind `into`. They stand still until
    /// the run is processed.
    ///
    /// # Errors
    /// [`ClientError`] if it does not lie in that memory.
    pub fn copy_out(&self, run: &GroupRun, into: &mut Vec<u8>) -> Result<(), ClientError> {
        for (at, len) in &run.parts {
            let (at, len, start) = (*at as usize, *len as usize, into.len());
            let hold = self.hold.as_ref().filter(|hold| at + len <= 8 * hold.word_count());
            let Some(hold) = hold else {
                let received = GroupOutcome::Received(Some(GroupReceived::Run(run.clone())));
                return Err(self.client.out_of_place(&Outcome::Group(received)));
            };
            into.resize(start + len, 0);
            hold.copy_out(at, &mut into[start..]);
        }
        Ok(())
    }

    /// The next request reports `received` as processed.
    pub fn note_processed(&mut self, received: &GroupReceived) {
        let done = match received {
            GroupReceived::Run(run) => (run.origin, run.seq, run.end()),
            GroupReceived::Abandoned { root, seq } => (*root, *seq, u64::MAX),
            // It stays true.
            GroupReceived::RootLost { .. } => return,
        };
        let (origin, seq, through) = done;
        self.done = Some(GroupDone { origin, seq, through });
    }

    /// Reports what was processed, and ends: the next listener goes on behind it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn end(mut self, timeout: Duration) -> Result<(), ClientError> {
        let Some(GroupDone { origin, .. }) = self.done else { return Ok(()) };
        let want = GroupWant::Receive { root: Some(origin), process: 0, done: self.done };
        // A component that is lost meanwhile gives it again, unless the next one has this report.
        let deadline = Deadline::after(timeout);
        loop {
            match self.client.ask_group_once(&self.group, want.clone(), &[], Duration::ZERO) {
                Err(error) if is_loss(&error) && !deadline.has_passed() => {}
                ended => return ended.map(drop),
            }
        }
    }
}
