//! `weft put`: lines of standard input into a node's mailbox.

use std::io::{BufRead, BufReader, Read, stdin};

use clap::Args;
use serde_json::json;

use super::cluster_choice::{ClusterChoice, seconds};
use super::failure::Failure;
use super::output::Output;
use crate::client::Client;
use crate::explain::Code;
use crate::node::control::{MESSAGES_MAX, PAYLOAD_LEN_MAX, PutOutcome, Stopped};

/// Arguments of `weft put`.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    cluster: ClusterChoice,

    /// The node that puts.
    #[arg(long, value_name = "RANK")]
    from: u16,

    /// The node whose mailbox it goes to.
    #[arg(long, value_name = "RANK")]
    to: u16,

    /// How long a full mailbox may hold up each batch, in seconds.
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: f64,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let running = arguments.cluster.find()?;
    let nodes = running.cluster.nodes;
    if usize::from(arguments.to) >= nodes {
        let cause = format!("there is no node {}: the cluster has {nodes}", arguments.to);
        let cure = format!("use a rank from 0 to {}", nodes - 1);
        return Err(Failure::of(Code::NodeOutOfRange, cause, cure));
    }
    let mut client = running.connect(arguments.from)?;
    let limit = running.cluster.mailbox.message_len;
    let (mut put, mut full) = (0, 0);
    let mut lines = BufReader::new(stdin().lock());
    loop {
        let batch = read_batch(&mut lines, limit, put)?;
        if batch.is_empty() {
            break;
        }
        let messages: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        let outcome = client.put(arguments.to, &messages, timeout).map_err(Failure::new)?;
        put += outcome.put;
        full += outcome.full;
        check(&client, arguments.to, put, outcome)?;
    }
    let object = json!({ "ok": true, "put": put, "refused_full": full });
    output.finish(
        &object,
        &format!("{put} messages put into the mailbox of node {}\n", arguments.to),
    );
    Ok(())
}

/// Reads as many lines as one request carries, at least one; none at the end of the input.
fn read_batch(
    lines: &mut BufReader<impl Read>,
    limit: usize,
    before: usize,
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut batch: Vec<Vec<u8>> = Vec::new();
    let mut len = 0;
    while batch.len() < MESSAGES_MAX && len + limit <= PAYLOAD_LEN_MAX {
        let mut line = Vec::new();
        // One byte more than fits, and the line's end: enough to see that it is too long.
        let read = lines.by_ref().take(limit as u64 + 2).read_until(b'\n', &mut line);
        let read = read.map_err(|error| {
            let cause = format!("standard input cannot be read: {error}");
            Failure::of(Code::InputUnreadable, cause, "check what is piped into `weft put`")
        })?;
        if read == 0 {
            break;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.len() > limit {
            let number = before + batch.len() + 1;
            let cause =
                format!("line {number} is longer than {limit} bytes; {before} lines were put");
            let cure = "split it, or raise `mailbox.message_len` in the cluster file (up to 4000)";
            return Err(Failure::of(Code::MessageTooLong, cause, cure));
        }
        len += line.len();
        batch.push(line);
        // What is there is put before more is waited for.
        if !lines.buffer().contains(&b'\n') {
            break;
        }
    }
    Ok(batch)
}

fn check(client: &Client, to: u16, put: usize, outcome: PutOutcome) -> Result<(), Failure> {
    let done = format!("{put} messages were put");
    match outcome.stopped {
        None => Ok(()),
        Some(Stopped::Full) => Err(Failure::of(
            Code::MailboxFull,
            format!("the mailbox of node {to} stayed full past the deadline; {done}"),
            format!("take from it with `weft get --node {to}`, or raise `--timeout`"),
        )),
        Some(Stopped::Unreachable) => Err(Failure::of(
            Code::NodeUnreachable,
            match outcome.unknown {
                0 => format!("node {} could not reach node {to} in time; {done}", client.rank()),
                unknown => format!(
                    "node {} lost node {to} while it wrote; {done}, and {unknown} may have been",
                    client.rank()
                ),
            },
            "see which nodes live with `weft status`",
        )),
        Some(Stopped::TooLong { limit }) => Err(Failure::of(
            Code::MessageTooLong,
            format!("a message is longer than {limit} bytes; {done}"),
            "split it, or raise `mailbox.message_len` in the cluster file (up to 4000)",
        )),
    }
}
