//! The receiving side: one stream, from its first byte to its digest.

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::Arguments;
use crate::cli::cluster_choice::seconds;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::client::Listener;
use crate::explain::Code;
use crate::node::control::{ConflictStatus, DeliveredMessage, MESSAGES_MAX};
use crate::transfer::{JoinError, Joiner, Piece};

pub(super) fn run(arguments: &Arguments, node: u16, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let running = arguments.cluster.find()?;
    let mut listener = Listener::begin(running.connect(node)?).map_err(Failure::new)?;
    let mut sink = Sink::open(arguments.output.as_deref(), output)?;
    let mut intake = Intake::new(arguments.origin);
    let received = receive(&mut listener, &mut intake, &mut sink, timeout);
    // What was not dealt with is for the next one to receive, whatever ended this.
    let ended = listener.end();
    received?;
    ended.map_err(Failure::new)?;
    sink.finish()?;
    let Intake { joiner, origin, messages, .. } = intake;
    let (bytes, digest, origin) = (joiner.len(), joiner.digest(), origin.unwrap_or_default());
    let object = json!({
        "ok": true,
        "node": node,
        "origin": origin,
        "bytes": bytes,
        "messages": messages,
        "repeated": joiner.repeated(),
        "sha256": digest,
        "output": arguments.output,
    });
    let text = match &arguments.output {
        Some(path) => format!(
            "{bytes} bytes of node {origin} received at node {node} into {}\nsha256 {digest}\n",
            path.display()
        ),
        None => String::new(),
    };
    output.finish(&object, &text);
    Ok(())
}

/// Listens until the stream has ended.
fn receive(
    listener: &mut Listener,
    intake: &mut Intake,
    sink: &mut Sink,
    timeout: Duration,
) -> Result<(), Failure> {
    loop {
        let heard = listener.listen(intake.origin, MESSAGES_MAX, timeout).map_err(Failure::new)?;
        if let Some(conflict) = heard.conflicts.first() {
            return Err(disputed(conflict));
        }
        if heard.messages.is_empty() {
            return Err(Failure::of(
                Code::Timeout,
                format!("nothing came for {} s; {} bytes before", timeout.as_secs(), intake.len()),
                "see with `weft status` who broadcasts and who has delivered, or raise `--timeout`",
            ));
        }
        for message in &heard.messages {
            let took = intake.take(message, sink)?;
            if took != Took::Left {
                listener.note_dealt_with(message.origin, message.seq);
            }
            if took == Took::Last {
                return Ok(());
            }
        }
    }
}

fn disputed(conflict: &ConflictStatus) -> Failure {
    let ConflictStatus { origin, seq, replayer } = conflict;
    let cause = format!(
        "node {origin} or node {replayer} lies: they show different messages for number {seq} of \
         node {origin}, so it is not delivered, nor what node {origin} broadcasts later"
    );
    Failure::of(Code::Conflict, cause, "see with `weft status` what the other nodes were told")
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Took {
    /// It is another stream's, for a later listener.
    Left,
    /// It is dealt with.
    Taken,
    /// With it the stream is complete.
    Last,
}

/// The stream that is received: the first that begins.
struct Intake {
    origin: Option<u16>,
    stream: Option<u64>,
    joiner: Joiner,
    messages: u64,
}

impl Intake {
    fn new(origin: Option<u16>) -> Self {
        Self { origin, stream: None, joiner: Joiner::default(), messages: 0 }
    }

    const fn len(&self) -> u64 {
        self.joiner.len()
    }

    fn take(&mut self, message: &DeliveredMessage, sink: &mut Sink) -> Result<Took, Failure> {
        if self.stream.is_some() && self.origin != Some(message.origin) {
            return Ok(Took::Left);
        }
        if self.stream.is_some_and(|stream| stream != message.tag) {
            // Another sender at the same node, or the same one once more.
            return Ok(Took::Taken);
        }
        match self.joiner.join(&message.payload.0) {
            // Whoever listened before took the beginning with it.
            Err(JoinError::Foreign | JoinError::Gap { .. }) if self.stream.is_none() => {
                Ok(Took::Taken)
            }
            Err(error) => {
                let cause = format!("the stream of node {} is damaged: {error}", message.origin);
                let cure = "let it be broadcast again; one listener at a time receives at a node";
                Err(Failure::of(Code::Verification, cause, cure))
            }
            Ok(piece) => {
                self.stream = Some(message.tag);
                self.origin = Some(message.origin);
                self.messages += 1;
                match piece {
                    Piece::Bytes(bytes) => sink.write(bytes).map(|()| Took::Taken),
                    Piece::Repeated => Ok(Took::Taken),
                    Piece::End => Ok(Took::Last),
                }
            }
        }
    }
}

/// Where the bytes go.
struct Sink {
    to: Option<Box<dyn Write>>,
}

impl Sink {
    /// A file, or standard output unless that is for the result as JSON.
    fn open(path: Option<&Path>, output: Output) -> Result<Self, Failure> {
        let to: Option<Box<dyn Write>> = match path {
            Some(path) => {
                let file = File::create(path).map_err(|error| {
                    let cause = format!("{} cannot be written: {error}", path.display());
                    Failure::of(Code::Output, cause, "give a path that you may write")
                })?;
                Some(Box::new(BufWriter::new(file)))
            }
            None if output.is_json() => None,
            None => Some(Box::new(stdout().lock())),
        };
        Ok(Self { to })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.to
            .as_mut()
            .map_or(Ok(()), |to| to.write_all(bytes))
            .map_err(|error| unwritable(&error))
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.to.as_mut().map_or(Ok(()), |to| to.flush()).map_err(|error| unwritable(&error))
    }
}

fn unwritable(error: &std::io::Error) -> Failure {
    let cause = format!("what is received cannot be written: {error}");
    Failure::of(Code::Output, cause, "make room for it, and let it be broadcast again")
}
