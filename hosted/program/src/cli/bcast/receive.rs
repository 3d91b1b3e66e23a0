//! The receiving side: one file, from its first byte to its digest.

use std::io::{StdoutLock, Write, stderr};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::BcastArguments;
use super::decided::{OriginEnd, moment, over};
use super::held::restart_cure;
use super::intake::{Broken, Intake, MessageClass};
use crate::cli::cluster_choice::{Running, seconds};
use crate::cli::draft::Draft;
use crate::cli::failure::Failure;
use crate::cli::output::{Content, Output, standard_output, write_line};
use crate::cli::survey::Survey;
use weft::client::Listener;
use weft::clock::Deadline;
use weft::explain::Code;
use weft::node::control::{ConflictStatus, DeliveredMessage, MESSAGES_MAX};

pub(super) fn run(arguments: &BcastArguments, node: u16, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    if arguments.origin == Some(node) {
        let cause = format!("--origin {node} is the receiving node itself");
        let cure = "name another node, or leave `--origin` out";
        return Err(Failure::of(Code::Usage, cause, cure));
    }
    let running = arguments.cluster.find()?;
    let mut receiver = FileReceiver {
        listener: Listener::begin(running.connect(node)?, timeout).map_err(Failure::new)?,
        sink: Sink::open(arguments.output.as_deref(), output)?,
        intake: Intake::default(),
        origin: arguments.origin,
        timeout,
        written: Vec::new(),
        is_used_up: false,
    };
    let received = receiver.receive(&running, node);
    let FileReceiver { listener, intake, .. } = receiver;
    // Messages that this receive did not consume go to the next one, whatever ended this one.
    let ended = listener.end();
    received.map_err(|ended| ended.failure(&running, arguments, node, &intake))?;
    ended.map_err(Failure::new)?;
    report(arguments, node, &intake, output);
    Ok(())
}

/// Reports a file that was received whole.
pub(super) fn report(arguments: &BcastArguments, node: u16, intake: &Intake, output: Output) {
    let object = result(arguments, node, intake);
    let text = match &arguments.output {
        Some(path) => format!(
            "{} bytes of node {} received at node {node} into {}\nsha256 {}\n",
            object["bytes"],
            object["origin"],
            path.display(),
            intake.joiner().digest(),
        ),
        None => String::new(),
    };
    output.finish(&object, &text);
    if intake.passed_over() > 0 && !output.is_json() {
        // A warning is lost if standard error is closed.
        let _ = writeln!(stderr(), "weft: {}", passed_over(intake));
    }
}

fn result(arguments: &BcastArguments, node: u16, intake: &Intake) -> Value {
    json!({
        "ok": true,
        "node": node,
        "origin": intake.origin(),
        "bytes": intake.joiner().len(),
        "messages": intake.messages(),
        "repeated": intake.joiner().repeated(),
        "passed_over": intake.passed_over(),
        "sha256": intake.joiner().digest(),
        "output": arguments.output,
    })
}

/// A receive in progress.
struct FileReceiver {
    listener: Listener,
    sink: Sink,
    intake: Intake,
    /// The only origin to receive from, if one was named.
    origin: Option<u16>,
    timeout: Duration,
    /// Origins and numbers of messages handed to the sink; they are released once it has written
    /// them.
    written: Vec<(u16, u64)>,
    /// A part of the file was released: no other receive gets it again.
    is_used_up: bool,
}

/// Why nothing more is received.
enum ReceiveEnd {
    /// No message arrived before the deadline.
    Silence,
    /// Two nodes show different messages for one number.
    Disputed(ConflictStatus),
    /// A terminal condition of this origin: no message of it can arrive.
    Over(u16, OriginEnd),
    /// The file is cut short or damaged.
    Broken(Broken),
    /// The sender has given up.
    GivenUp,
    /// The output failed.
    Unwritten { failure: Failure, is_used_up: bool },
    /// The node does not answer.
    Failed(Failure),
}

impl FileReceiver {
    /// Receives until the file is complete or a terminal condition ends it.
    fn receive(&mut self, running: &Running, node: u16) -> Result<(), ReceiveEnd> {
        let mut deadline = Deadline::after(self.timeout);
        let mut known = None;
        loop {
            let origin = self.intake.origin().or(self.origin);
            let heard = self.listener.listen(origin, MESSAGES_MAX, moment(deadline));
            let heard = heard.map_err(|error| ReceiveEnd::Failed(Failure::new(error)))?;
            if !heard.messages.is_empty() {
                if self.take_in(&heard.messages)?.is_break() {
                    return Ok(());
                }
                (deadline, known) = (Deadline::after(self.timeout), None);
                continue;
            }
            let conflict = heard.conflicts.first().copied();
            let is_late = deadline.has_passed();
            if let Some(conflict) = conflict.filter(|_| origin.is_some() || is_late) {
                return Err(ReceiveEnd::Disputed(conflict));
            }
            // A second look takes in what arrived before the nodes answered.
            let over = over(&Survey::take(running), node, origin, self.intake.last());
            match over.filter(|_| over == known || is_late) {
                Some((_, OriginEnd::Disputed { by, conflict })) if by == node => {
                    return Err(ReceiveEnd::Disputed(conflict));
                }
                Some((origin, over)) => return Err(ReceiveEnd::Over(origin, over)),
                None if is_late => return Err(ReceiveEnd::Silence),
                None => known = over,
            }
        }
    }

    /// Takes in what arrived, up to the end of the file, which breaks the loop.
    fn take_in(&mut self, messages: &[DeliveredMessage]) -> Result<ControlFlow<()>, ReceiveEnd> {
        for message in messages {
            let took = match self.intake.take(message) {
                Ok(took) => took,
                Err(broken) => {
                    self.note_written();
                    return Err(ReceiveEnd::Broken(broken));
                }
            };
            if took != MessageClass::Left {
                self.written.push((message.origin, message.seq));
            }
            match took {
                MessageClass::Bytes(bytes) => {
                    let done = self.sink.write(message, bytes);
                    done.map_err(|failure| self.unwritten(failure))?;
                }
                MessageClass::Last => {
                    let done = self.sink.finish();
                    done.map_err(|failure| self.unwritten(failure))?;
                    self.note_written();
                    return Ok(ControlFlow::Break(()));
                }
                MessageClass::GivenUp => {
                    self.note_written();
                    return Err(ReceiveEnd::GivenUp);
                }
                MessageClass::Left | MessageClass::PassedOver => {}
            }
        }
        let done = self.sink.show();
        done.map_err(|failure| self.unwritten(failure))?;
        self.note_written();
        Ok(ControlFlow::Continue(()))
    }

    /// Releases the messages that the sink has written.
    fn note_written(&mut self) {
        for (origin, seq) in self.written.drain(..) {
            self.listener.note_dealt_with(origin, seq);
        }
        self.is_used_up = self.intake.origin().is_some();
    }

    fn unwritten(&self, failure: Failure) -> ReceiveEnd {
        ReceiveEnd::Unwritten { failure, is_used_up: self.is_used_up }
    }
}

impl ReceiveEnd {
    fn failure(
        self,
        running: &Running,
        arguments: &BcastArguments,
        node: u16,
        intake: &Intake,
    ) -> Failure {
        match self {
            Self::Failed(failure) => failure,
            Self::Unwritten { failure, is_used_up: true } => {
                failure.with_cure("broadcast the file again")
            }
            Self::Unwritten { failure, is_used_up: false } => {
                failure.with_cure("receive again, which gives the file again")
            }
            Self::Silence => silence(running, arguments, node, intake),
            Self::Disputed(conflict) => disputed(running, node, conflict),
            Self::Over(origin, over) => over.failure(origin, intake),
            Self::Broken(broken) => broken_failure(broken),
            Self::GivenUp => {
                let from =
                    intake.origin().map_or_else(String::new, |rank| format!(" at node {rank}"));
                let cause = format!(
                    "the sender{from} gave up after {} bytes, before the end of its file",
                    intake.joiner().len()
                );
                let survey = Survey::take(running);
                let lost = intake.origin().and_then(|rank| final_cure(&survey, rank));
                let cure = lost.unwrap_or_else(|| "broadcast the file again".to_owned());
                Failure::of(Code::Abandoned, cause, cure)
            }
        }
    }
}

/// The error for a file that cannot be received.
pub(super) fn broken_failure(broken: Broken) -> Failure {
    match broken {
        Broken::CutShort { origin, .. } => {
            let cure = format!(
                "receive again to get the other file; broadcast this one from node {origin} again"
            );
            Failure::of(Code::CutShort, broken.to_string(), cure)
        }
        Broken::Damaged { .. } => {
            Failure::of(Code::Verification, broken.to_string(), "broadcast the file again")
        }
    }
}

fn silence(running: &Running, arguments: &BcastArguments, node: u16, intake: &Intake) -> Failure {
    let mut cause = match intake.origin() {
        None => format!("no file began within {} s", arguments.timeout),
        Some(origin) => format!(
            "node {origin} sent nothing for {} s, after {} bytes of its file",
            arguments.timeout,
            intake.joiner().len()
        ),
    };
    if intake.passed_over() > 0 {
        cause = format!("{cause}; {}", passed_over(intake));
    }
    let survey = Survey::take(running);
    let cure = match intake.origin().or(arguments.origin) {
        Some(origin) => cure_of_origin(&survey, origin, node),
        None => running.ranks().find_map(|origin| cure_of_window(&survey, origin, node)),
    };
    let cure = cure.unwrap_or_else(|| {
        "run `weft status` to see which nodes broadcast and deliver, or raise `--timeout`"
            .to_owned()
    });
    Failure::of(Code::Timeout, cause, cure)
}

/// The cure where waiting for `origin` is useless.
fn cure_of_origin(survey: &Survey, origin: u16, node: u16) -> Option<String> {
    final_cure(survey, origin).or_else(|| cure_of_window(survey, origin, node))
}

/// The cure where `origin` broadcasts nothing more.
fn final_cure(survey: &Survey, origin: u16) -> Option<String> {
    if survey.left_broadcasts().contains(&origin) {
        return Some(format!(
            "node {origin} was removed: broadcast the file again once it is back, or from another \
             node"
        ));
    }
    if let Some(other) = survey.disputing(origin) {
        return Some(format!(
            "node {other} saw a conflict about node {origin}, which ends its broadcasts: \
             receive from another node"
        ));
    }
    let lost = survey.lost().first().copied().map(restart_cure);
    lost.or_else(|| survey.damage(origin).next().map(|damage| damage.to_string()))
}

/// The cure where the window of `origin` is full of messages that this node has received.
fn cure_of_window(survey: &Survey, origin: u16, node: u16) -> Option<String> {
    let (behind, taken) = survey.behind(origin, node)?;
    Some(format!(
        "node {behind} has not taken message {} of node {origin}, whose window is full and waits \
         for it: receive there, too, with `weft bcast --neb --receive --node {behind} --origin \
         {origin}`",
        taken + 1
    ))
}

pub(super) fn passed_over(intake: &Intake) -> String {
    format!(
        "messages passed over, of no file or of one whose beginning was received before: {}",
        intake.passed_over()
    )
}

fn disputed(running: &Running, node: u16, conflict: ConflictStatus) -> Failure {
    let ConflictStatus { origin, seq, replayer } = conflict;
    // The conflict stands even if the node no longer answers.
    let proof = running.connect_now(node).and_then(|mut client| client.proof(Some(origin)));
    let (who, cure) = match proof {
        Ok(Some(_)) => (
            format!("node {origin} lies: it has signed two different messages as number {seq}"),
            format!("`weft neb proof --node {node} --origin {origin}` proves it"),
        ),
        Ok(None) | Err(_) => (
            format!(
                "node {origin} or node {replayer} lies: they show different messages for number \
                 {seq} of node {origin}"
            ),
            "run `weft status` to see what the other nodes received".to_owned(),
        ),
    };
    let cause = format!("{who}, so it is not delivered, nor what node {origin} broadcasts later");
    let cure = format!("{cure}; receive from another node, with `--origin RANK`");
    Failure::of(Code::Conflict, cause, cure)
}

/// The destination of the bytes.
pub(super) enum Sink {
    /// A file, which appears once it is complete.
    File(Draft),
    /// Standard output, as they arrive.
    Stdout(StdoutLock<'static>),
    /// Standard output, one object for each message.
    Lines(StdoutLock<'static>),
    /// Closed.
    Closed,
}

/// A part of the file, for scripts.
#[derive(Serialize)]
struct PartLine<'a> {
    origin: u16,
    seq: u64,
    #[serde(flatten)]
    content: Content<'a>,
}

impl Sink {
    pub(super) fn open(path: Option<&Path>, output: Output) -> Result<Self, Failure> {
        if let Some(path) = path {
            return Ok(Self::File(Draft::begin_interruptible(path)?));
        }
        let out = standard_output().map_err(|error| unwritable(&error))?;
        Ok(if output.is_json() { Self::Lines(out) } else { Self::Stdout(out) })
    }

    /// Writes the next bytes of the file, which came with `message`.
    pub(super) fn write(
        &mut self,
        message: &DeliveredMessage,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let written = match self {
            Self::File(draft) => return draft.write(bytes),
            Self::Stdout(out) => out.write_all(bytes),
            Self::Lines(out) if !bytes.is_empty() => {
                let DeliveredMessage { origin, seq, .. } = *message;
                write_line(out, &PartLine { origin, seq, content: bytes.into() })
            }
            Self::Lines(_) | Self::Closed => Ok(()),
        };
        written.map_err(|error| unwritable(&error))
    }

    /// Flushes, so that a reader of the output sees what came.
    pub(super) fn show(&mut self) -> Result<(), Failure> {
        match self {
            Self::Stdout(out) => out.flush().map_err(|error| unwritable(&error)),
            Self::File(_) | Self::Lines(_) | Self::Closed => Ok(()),
        }
    }

    /// Completes the output.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        match std::mem::replace(self, Self::Closed) {
            Self::File(draft) => draft.finish(),
            Self::Stdout(mut out) => out.flush().map_err(|error| unwritable(&error)),
            Self::Lines(_) | Self::Closed => Ok(()),
        }
    }
}

fn unwritable(error: &std::io::Error) -> Failure {
    let cause = format!("the file cannot be written to standard output: {error}");
    Failure::of(Code::Output, cause, "free space on the output's file system")
}
