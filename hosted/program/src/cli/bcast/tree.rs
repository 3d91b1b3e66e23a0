//! `weft bcast --tree`: a file along the trees of a group.
//!
//! The file is cut as for `--neb`, into messages of a block each, so the window holds many however
//! long the file is. Each goes to the node as sealed memory, and is received from the memory of its
//! node, which is mapped for reading: no byte of it goes through a socket. All survivors receive
//! the same messages of a root: when it is removed in the middle, each has the same prefix, and the
//! receive ends as `abandoned`.

use std::time::Duration;

use serde_json::json;

use super::BcastArguments;
use super::intake::{Intake, MessageClass};
use super::receive::{Sink, broken_failure, passed_over, report};
use super::source::InputSource;
use crate::cli::cluster_choice::seconds;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::transfer::Cutter;
use weft::client::{ClientError, GroupListener, GroupSpeaker};
use weft::clock::now_ns;
use weft::cluster::Topology;
use weft::explain::Code;
use weft::node::control::{
    DeliveredMessage, GroupReceived, GroupRefused, GroupRun, Payload, Refused,
};

pub(super) fn send(arguments: &BcastArguments, from: u16, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let mut source = InputSource::open(arguments.file.as_deref(), timeout)?;
    let running = arguments.cluster.find()?;
    let message_len = running.cluster.group.block_len;
    let bar = output.progress(source.len(), "broadcasting");
    let mut cutter = Cutter::default();
    // Other senders do not wait for an input that has not begun.
    let mut batch = source.read_batch(&mut cutter, message_len)?;
    // No two senders of a cluster begin in the same nanosecond with the same process number.
    let stream = now_ns().rotate_left(20) ^ u64::from(std::process::id());
    let marker = Cutter::given_up();
    let client = running.connect(from)?;
    let group = &arguments.group;
    let speaker = GroupSpeaker::begin(client, group, (stream, &marker), timeout);
    let mut speaker = speaker.map_err(Failure::new)?;
    let topology = arguments.topology.as_deref().map(str::parse::<Topology>).transpose();
    speaker.set_topology(topology.map_err(Failure::new)?);
    let (mut messages, mut last, mut sent) = (0, 0, 0);
    loop {
        if batch.is_last {
            batch.messages.push(cutter.end());
        }
        for message in &batch.messages {
            last =
                speaker.send(message, timeout).map_err(|error| unsent(error, arguments, sent))?;
            messages += 1;
        }
        sent = cutter.len();
        bar.set_position(sent);
        if batch.is_last {
            break;
        }
        batch = source.read_batch(&mut cutter, message_len)?;
    }
    speaker.end(timeout).map_err(Failure::new)?;
    bar.finish_and_clear();
    let (bytes, digest) = (cutter.len(), cutter.digest());
    let object = json!({
        "ok": true,
        "from": from,
        "group": group,
        "bytes": bytes,
        "messages": messages,
        "last": last,
        "sha256": digest,
    });
    let text =
        format!("{bytes} bytes broadcast by node {from} in group {group}\nsha256 {digest}\n");
    output.finish(&object, &text);
    Ok(())
}

/// The error of a file of which `sent` bytes went out.
fn unsent(error: ClientError, arguments: &BcastArguments, sent: u64) -> Failure {
    let ClientError::Refused { reason, .. } = &error else { return Failure::new(error) };
    let Refused::Group(GroupRefused::WindowFull { hindmost: Some(node) }) = reason else {
        return Failure::new(error);
    };
    let cause = format!("{error}, after {sent} bytes of this file");
    let cure = format!(
        "receive at every other member, with `weft bcast --tree --receive --node {node} --group \
         {}`; `weft group ls` shows who has received how much, and `weft status` which links are \
         cut",
        arguments.group
    );
    Failure::of(Code::WindowFull, cause, cure)
}

pub(super) fn receive(
    arguments: &BcastArguments,
    node: u16,
    output: Output,
) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    if arguments.origin == Some(node) {
        let cause = format!("--origin {node} is the receiving node itself");
        let cure = "name another member, or leave `--origin` out";
        return Err(Failure::of(Code::Usage, cause, cure));
    }
    let running = arguments.cluster.find()?;
    let listener = GroupListener::new(running.connect(node)?, &arguments.group);
    let sink = Sink::open(arguments.output.as_deref(), output)?;
    let mut receiver = TreeReceiver { listener, sink, intake: Intake::default(), timeout };
    let received = receiver.receive(arguments);
    let TreeReceiver { listener, intake, .. } = receiver;
    // What was processed goes to no other receive, whatever ended this one.
    let ended = listener.end(timeout);
    received?;
    ended.map_err(Failure::new)?;
    report(arguments, node, &intake, output);
    Ok(())
}

/// A receive in progress.
struct TreeReceiver {
    listener: GroupListener,
    sink: Sink,
    intake: Intake,
    timeout: Duration,
}

impl TreeReceiver {
    /// Receives until the file is complete, or no more of it comes.
    fn receive(&mut self, arguments: &BcastArguments) -> Result<(), Failure> {
        loop {
            let root = self.intake.origin().or(arguments.origin);
            let heard = self.listener.listen(root, self.timeout).map_err(Failure::new)?;
            let Some(heard) = heard else { return Err(self.silence(arguments)) };
            let message = match &heard {
                GroupReceived::Run(run) if run.is_whole() => {
                    let mut payload = Payload(Vec::new());
                    self.listener.copy_out(run, &mut payload.0).map_err(Failure::new)?;
                    let GroupRun { origin, seq, tag, .. } = *run;
                    DeliveredMessage { origin, seq, tag, payload }
                }
                // A program's, longer than the window: no file has such.
                GroupReceived::Run(_) => {
                    self.intake.pass_over();
                    self.listener.note_processed(&heard);
                    continue;
                }
                // Its sender sends it again, or its abort marker.
                GroupReceived::Abandoned { .. } => {
                    self.listener.note_processed(&heard);
                    continue;
                }
                GroupReceived::RootLost { root, .. } => {
                    return Err(self.root_lost(*root));
                }
            };
            let took = self.intake.take(&message).map_err(broken_failure)?;
            let (is_last, is_given_up) =
                (took == MessageClass::Last, took == MessageClass::GivenUp);
            if let MessageClass::Bytes(bytes) = took {
                self.sink.write(&message, bytes)?;
                self.sink.show()?;
            }
            if is_last {
                self.sink.finish()?;
            }
            self.listener.note_processed(&heard);
            if is_given_up {
                let cause = format!(
                    "the sender at node {} gave up after {} bytes, before the end of its file",
                    message.origin,
                    self.intake.joiner().len()
                );
                return Err(Failure::of(Code::Abandoned, cause, "broadcast the file again"));
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// The error for a file whose root was removed.
    fn root_lost(&self, root: u16) -> Failure {
        let cause = match self.intake.origin() {
            Some(_) => {
                let bytes = self.intake.joiner().len();
                format!(
                    "node {root} was removed after {bytes} bytes of its file, and no node has more"
                )
            }
            None => format!("node {root} was removed before it began a file"),
        };
        let cure = format!(
            "broadcast the file again: from another node, or from node {root} once it is back"
        );
        Failure::of(Code::Abandoned, cause, cure)
    }

    /// The error for a file that did not go on in time.
    fn silence(&self, arguments: &BcastArguments) -> Failure {
        let waited = arguments.timeout;
        let mut cause = match self.intake.origin() {
            None => format!("no file began within {waited} s"),
            Some(origin) => format!(
                "node {origin} sent nothing for {waited} s, after {} bytes of its file",
                self.intake.joiner().len()
            ),
        };
        if self.intake.passed_over() > 0 {
            cause = format!("{cause}; {}", passed_over(&self.intake));
        }
        let cure = match self.intake.origin() {
            None if self.intake.passed_over() > 0 => {
                "broadcast the file again: the receive before this one has consumed its beginning"
            }
            _ => {
                "run `weft group ls` to see which members send and receive, and `weft status` to \
                 see cut links; or raise `--timeout`"
            }
        };
        Failure::of(Code::Timeout, cause, cure)
    }
}
