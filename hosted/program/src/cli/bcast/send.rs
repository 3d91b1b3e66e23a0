//! The sending side: cuts the input into messages and broadcasts them until the end of the input,
//! or until a terminal condition stops it.

use std::io::{Write, stderr};
use std::time::Duration;

use serde_json::json;

use super::BcastArguments;
use super::decided::{MOMENT, moment};
use super::held::{Full, alone, disputed, hopeless, restart_cure, window_full};
use super::source::InputSource;
use crate::cli::cluster_choice::{Running, seconds};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::survey::Survey;
use crate::transfer::{Cutter, HEADER_LEN};
use weft::client::{ClientError, Speaker};
use weft::clock::{Deadline, now_ns};
use weft::explain::Code;
use weft::node::control::{BroadcastStopped, Refused};

pub(super) fn run(arguments: &BcastArguments, from: u16, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let mut source = InputSource::open(arguments.file.as_deref(), timeout)?;
    let running = arguments.cluster.find()?;
    hopeless(&Survey::take(&running), from).map_or(Ok(()), Err)?;
    let message_len = running.cluster.neb.message_len;
    let bar = output.progress(source.len(), "broadcasting");
    let mut cutter = Cutter::default();
    // Other senders do not wait for an input that has not begun.
    let mut batch = source.read_batch(&mut cutter, message_len)?;
    let mut sender = Sender::begin(&running, from, timeout)?;
    loop {
        if batch.is_last {
            batch.messages.push(cutter.end());
        }
        let messages: Vec<&[u8]> = batch.messages.iter().map(Vec::as_slice).collect();
        sender.send(&messages)?;
        bar.set_position(cutter.len());
        if batch.is_last {
            break;
        }
        batch = source.read_batch(&mut cutter, message_len)?;
    }
    let Sender { speaker, messages, last, .. } = sender;
    speaker.end(timeout).map_err(Failure::new)?;
    // Even a file that fits into the window fails if one of its messages conflicts.
    let survey = Survey::take(&running);
    disputed(&survey, from, last).map_or(Ok(()), Err)?;
    bar.finish_and_clear();
    let without = survey.lost();
    let (bytes, digest) = (cutter.len(), cutter.digest());
    let object = json!({
        "ok": true,
        "from": from,
        "bytes": bytes,
        "messages": messages,
        "last": last,
        "without": without,
        "sha256": digest,
    });
    let text = format!("{bytes} bytes broadcast by node {from}\nsha256 {digest}\n");
    output.finish(&object, &text);
    if let (Some(node), false) = (without.first(), output.is_json()) {
        // A warning is lost if standard error is closed.
        let _ =
            writeln!(stderr(), "weft: node {node} does not receive it: {}", restart_cure(*node));
    }
    Ok(())
}

/// A file that is being broadcast.
struct Sender<'a> {
    running: &'a Running,
    from: u16,
    timeout: Duration,
    speaker: Speaker,
    /// Messages and bytes of the file sent so far.
    messages: u64,
    bytes: u64,
    /// The number of the last message that the node broadcast.
    last: u64,
}

impl<'a> Sender<'a> {
    /// Begins once no other sender is in the middle of a file at the node. Until then, all nodes
    /// are asked periodically whether the broadcast can be received at all.
    fn begin(running: &'a Running, from: u16, timeout: Duration) -> Result<Self, Failure> {
        // No two senders of a cluster begin in the same nanosecond with the same process number.
        let stream = now_ns().rotate_left(20) ^ u64::from(std::process::id());
        let client = running.connect(from)?;
        let said = (stream, &Cutter::given_up()[..]);
        let look = || hopeless(&Survey::take(running), from).map_or(Ok(()), Err);
        let begun = Speaker::begin_looking(client, said, timeout, MOMENT, look)?;
        let speaker = begun.map_err(|error| match error {
            ClientError::Refused { reason: Refused::WindowFull, .. } => {
                window_full(&Survey::take(running), from, Full::default())
            }
            error => Failure::new(error),
        })?;
        Ok(Self { running, from, timeout, speaker, messages: 0, bytes: 0, last: 0 })
    }

    /// Broadcasts all of these messages. While the window is full, all nodes are asked periodically
    /// whether it can drain at all.
    fn send(&mut self, messages: &[&[u8]]) -> Result<(), Failure> {
        let (mut sent, mut deadline) = (0, Deadline::after(self.timeout));
        while sent < messages.len() {
            let outcome = self.speaker.broadcast(&messages[sent..], moment(deadline));
            let outcome = outcome.map_err(Failure::new)?;
            let gone_out = &messages[sent..][..outcome.broadcast];
            sent += gone_out.len();
            self.messages += gone_out.len() as u64;
            let parts = gone_out.iter().map(|message| message.len().saturating_sub(HEADER_LEN));
            self.bytes += parts.sum::<usize>() as u64;
            self.last = outcome.last;
            match outcome.stopped {
                // A speaker asks its node instead.
                None | Some(BroadcastStopped::Interrupted) => {}
                Some(BroadcastStopped::Alone) => return Err(alone(self.running.cluster.nodes)),
                Some(BroadcastStopped::TooLong { limit }) => {
                    let cause = format!("a message is longer than {limit} bytes");
                    return Err(Failure::of(Code::MessageTooLong, cause, "run one build of weft"));
                }
                // The window drains: progress.
                Some(BroadcastStopped::WindowFull { .. }) if !gone_out.is_empty() => {
                    deadline = Deadline::after(self.timeout);
                }
                Some(BroadcastStopped::WindowFull { settled }) => self.look(settled, deadline)?,
            }
        }
        Ok(())
    }

    /// Whether to go on waiting for room in the window.
    fn look(&self, settled: u64, deadline: Deadline) -> Result<(), Failure> {
        let survey = Survey::take(self.running);
        if let Some(failure) = hopeless(&survey, self.from) {
            return Err(failure);
        }
        if !deadline.has_passed() && survey.lost().is_empty() {
            return Ok(());
        }
        let Self { messages, bytes, last, .. } = *self;
        let before = last.saturating_sub(messages);
        let full = Full { settled: Some(settled), bytes, before: Some(before) };
        Err(window_full(&survey, self.from, full))
    }
}
