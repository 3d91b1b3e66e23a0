//! `weft get`: messages from a node's mailbox to standard output, one line each.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::cluster_choice::{ClusterChoice, seconds};
use super::failure::Failure;
use super::output::{Output, standard_output};
use crate::client::Inbox;
use crate::clock::Deadline;
use crate::explain::Code;
use crate::node::control::{MESSAGES_MAX, TakenMessage};

/// Arguments of `weft get`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
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

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let deadline = Deadline::after(seconds("--timeout", arguments.timeout)?);
    let running = arguments.cluster.find()?;
    let mut inbox = Inbox::new(running.connect(arguments.node)?);
    let wanted = arguments.count.unwrap_or(usize::MAX);
    let mut shown = Vec::new();
    let mut count = 0;
    while count < wanted {
        let patience = arguments.count.map_or(Duration::ZERO, |_| deadline.remaining());
        let max = (wanted - count).min(MESSAGES_MAX);
        let messages = inbox.receive(max, patience).map_err(Failure::new)?;
        if messages.is_empty() {
            break;
        }
        count += messages.len();
        show(&messages, output, &mut shown)?;
    }
    inbox.release().map_err(Failure::new)?;
    if output.is_json() {
        let ok = arguments.count.is_none_or(|wanted| count == wanted);
        output.finish(&json!({ "ok": ok, "count": count, "messages": shown }), "");
    }
    match arguments.count {
        Some(wanted) if count < wanted => Err(Failure::of(
            Code::Timeout,
            format!("{count} of {wanted} messages came in time"),
            "raise `--timeout`, or leave `--count` out to take what is there",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Shows messages; only what was shown is released.
fn show(
    messages: &[TakenMessage],
    output: Output,
    shown: &mut Vec<serde_json::Value>,
) -> Result<(), Failure> {
    if output.is_json() {
        shown.extend(messages.iter().map(|message| {
            json!({
                "from": message.from,
                "sequence": message.sequence,
                "text": String::from_utf8_lossy(&message.payload.0),
            })
        }));
        return Ok(());
    }
    let written = standard_output().and_then(|mut out| {
        for message in messages {
            out.write_all(&message.payload.0)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    });
    written.map_err(|error| {
        let cause = format!("standard output cannot be written: {error}");
        Failure::of(Code::Output, cause, "what was not shown stays in the mailbox; get it again")
    })
}
