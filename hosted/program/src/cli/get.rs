//! `weft get`: messages from a node's mailbox to standard output, one line each.
//!
//! ```text
//!   taken ──▶ written and flushed ──▶ released
//!     └─ not written, or the command is killed: goes back, and is delivered again
//! ```

use std::io::{self, Write, stderr};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::cluster_choice::{ClusterChoice, seconds};
use super::failure::Failure;
use super::output::{Content, Output, standard_output, write_line};
use weft::client::Inbox;
use weft::clock::Deadline;
use weft::explain::Code;
use weft::node::control::{MESSAGES_MAX, TakenMessage};

/// A message, for scripts.
#[derive(Serialize)]
struct MessageLine<'a> {
    from: u16,
    incarnation: u16,
    sequence: u32,
    #[serde(flatten)]
    content: Content<'a>,
}

/// Arguments of `weft get`.
#[derive(Debug, Args)]
pub(super) struct GetArguments {
    #[command(flatten)]
    cluster: ClusterChoice,

    /// The node whose mailbox it is.
    #[arg(long, value_name = "RANK")]
    node: u16,

    /// How many messages to wait for; without it, all that are there.
    #[arg(long, value_name = "N")]
    count: Option<usize>,

    /// How long to wait for them, in seconds.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: f64,
}

pub(super) fn run(arguments: &GetArguments, output: Output) -> Result<(), Failure> {
    let deadline = Deadline::after(seconds("--timeout", arguments.timeout)?);
    let running = arguments.cluster.find()?;
    let mut inbox = Inbox::new(running.connect(arguments.node)?);
    let wanted = arguments.count.unwrap_or(usize::MAX);
    let mut count = 0;
    while count < wanted {
        let patience = arguments.count.map_or(Duration::ZERO, |_| deadline.remaining());
        let max = (wanted - count).min(MESSAGES_MAX);
        let messages = inbox.receive(max, patience).map_err(Failure::new)?;
        if messages.is_empty() {
            break;
        }
        let (shown, written) = match standard_output() {
            Ok(mut out) => show(&messages, output, &mut out),
            Err(error) => (0, Err(error)),
        };
        count += shown;
        if let Err(error) = written {
            inbox.keep_first(shown);
            // Where it fails as well, those come again, too.
            let _ = inbox.finish();
            return Err(unwritable(&error));
        }
    }
    let unreleased = inbox.finish().map_err(Failure::new)?;
    if output.is_json() {
        let ok = arguments.count.is_none_or(|wanted| count == wanted);
        output.finish(&json!({ "ok": ok, "count": count, "unreleased": unreleased }), "");
    } else if unreleased > 0 {
        // No reader is left if standard error is closed.
        let _ = writeln!(
            stderr(),
            "weft: {unreleased} of the messages may be delivered again, to another client: they \
             were held for too long (`mailbox.hold_s`), or the component of node {} was lost",
            arguments.node
        );
    }
    match arguments.count {
        Some(wanted) if count < wanted => Err(Failure::of(
            Code::Timeout,
            format!("{count} of {wanted} messages arrived in time"),
            "raise `--timeout`, or omit `--count` to take the messages that are there",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Writes messages, a line each; returns how many are wholly written, and why no more.
fn show(
    messages: &[TakenMessage],
    output: Output,
    out: &mut impl Write,
) -> (usize, io::Result<()>) {
    for (shown, message) in messages.iter().enumerate() {
        let written = if output.is_json() {
            let &TakenMessage { from, incarnation, sequence, ref payload, .. } = message;
            let content = Content::from(&payload.0[..]);
            write_line(out, &MessageLine { from, incarnation, sequence, content })
        } else {
            let line = [&message.payload.0[..], b"\n"].concat();
            out.write_all(&line).and_then(|()| out.flush())
        };
        if written.is_err() {
            return (shown, written);
        }
    }
    (messages.len(), Ok(()))
}

fn unwritable(error: &io::Error) -> Failure {
    let cause = format!("standard output cannot be written: {error}");
    Failure::of(
        Code::Output,
        cause,
        "messages that were not shown stay in the mailbox; get them again",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use weft::node::control::Payload;

    /// A file on a disk that has room for so many bytes.
    struct Disk {
        room: usize,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let len = bytes.len().min(self.room - self.written.len());
            self.written.extend_from_slice(&bytes[..len]);
            if len == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(len) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn messages(payloads: &[&[u8]]) -> Vec<TakenMessage> {
        let message = |(sequence, payload): (u32, &&[u8])| TakenMessage {
            from: 3,
            incarnation: 1,
            sequence,
            receipt: sequence.into(),
            payload: Payload(payload.to_vec()),
        };
        (0..).zip(payloads).map(message).collect()
    }

    #[test]
    fn only_what_is_wholly_written_counts_as_shown() {
        let messages = messages(&[b"one", b"two", b"three"]);
        for (room, shown) in [(0, 0), (3, 0), (4, 1), (7, 1), (8, 2), (13, 2), (14, 3)] {
            let mut disk = Disk { room, written: Vec::new() };
            let (count, written) = show(&messages, Output::new(false), &mut disk);
            assert_eq!((count, written.is_ok()), (shown, shown == 3), "room for {room} bytes");
        }
        let mut disk = Disk { room: 60, written: Vec::new() };
        assert_eq!(show(&messages, Output::new(true), &mut disk).0, 1);
    }

    #[test]
    fn bytes_that_are_no_text_stand_beside_it() {
        let messages = messages(&["gr\u{fc}n \"\n".as_bytes(), b"\xff\0"]);
        let mut disk = Disk { room: 1000, written: Vec::new() };
        assert_eq!(show(&messages, Output::new(true), &mut disk).0, 2);
        let lines = disk.written.split_inclusive(|byte| *byte == b'\n');
        let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        let line = |at, text| json!({ "from": 3, "incarnation": 1, "sequence": at, "text": text });
        assert_eq!(lines[0], line(0, "gr\u{fc}n \"\n"));
        let mut wild = line(1, "\u{fffd}\0");
        wild["base64"] = json!("/wA=");
        assert_eq!(lines[1], wild);
    }
}
