//! `weft put`: lines of standard input into a node's mailbox.

use std::io::{BufRead, BufReader, Read, stdin};

use clap::Args;
use serde_json::json;

use super::cluster_choice::{ClusterChoice, Running, seconds};
use super::failure::Failure;
use super::output::Output;
use super::survey::Survey;
use weft::client::Client;
use weft::explain::Code;
use weft::node::control::{MESSAGES_MAX, PAYLOAD_LEN_MAX, PutOutcome, Stopped};

/// Arguments of `weft put`.
#[derive(Debug, Args)]
pub(super) struct PutArguments {
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

pub(super) fn run(arguments: &PutArguments, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let running = arguments.cluster.find()?;
    let nodes = running.cluster.nodes;
    if usize::from(arguments.to) >= nodes {
        let cause =
            format!("there is no node {}: the cluster has nodes 0 to {}", arguments.to, nodes - 1);
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
        check(&running, &client, arguments.to, (put, outcome))?;
    }
    let object = json!({ "ok": true, "put": put, "refused_full": full });
    output.finish(
        &object,
        &format!(
            "{} put into the mailbox of node {}\n",
            weft::explain::count(put as u64, "message"),
            arguments.to
        ),
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

fn check(
    running: &Running,
    client: &Client,
    to: u16,
    (put, outcome): (usize, PutOutcome),
) -> Result<(), Failure> {
    let done = format!("{put} messages were put");
    match outcome.stopped {
        None => Ok(()),
        Some(Stopped::Full) => Err(full(&Survey::take(running), to, &done)),
        Some(Stopped::Unreachable) => Err(Failure::of(
            Code::NodeUnreachable,
            match outcome.unknown {
                0 => format!("node {} could not reach node {to} in time; {done}", client.rank()),
                unknown => format!(
                    "node {} lost node {to} while it wrote; {done}, and {unknown} may have been",
                    client.rank()
                ),
            },
            "run `weft status` to see which nodes run",
        )),
        Some(Stopped::TooLong { limit }) => Err(Failure::of(
            Code::MessageTooLong,
            format!("a message is longer than {limit} bytes; {done}"),
            "split it, or raise `mailbox.message_len` in the cluster file (up to 4000)",
        )),
        Some(Stopped::Interrupted) => Err(Failure::of(
            Code::ComponentLost,
            format!(
                "node {} did not answer for the rest; {done}, and {} may have been",
                client.rank(),
                outcome.unknown
            ),
            "check which messages arrived, then put the rest",
        )),
    }
}

/// The mailbox of `to` stayed full: which client holds messages of it, if one does, and what helps.
fn full(survey: &Survey, to: u16, done: &str) -> Failure {
    let cause = format!("the mailbox of node {to} stayed full past the deadline; {done}");
    let take = format!("take from it with `weft get --node {to}`, or raise `--timeout`");
    let holders = survey.answered().find(|node| node.rank == to).map(|node| &node.holders[..]);
    let Some([first, others @ ..]) = holders else {
        return Failure::of(Code::MailboxFull, cause, take);
    };
    let more = match others.len() {
        0 => String::new(),
        count => format!(", and {count} more hold some, as `weft status` shows"),
    };
    let cause = format!("{cause}; {first}, and has not released them{more}");
    let then = match survey.cluster.mailbox.hold() {
        Some(hold) => {
            format!("or wait until they go back, {} s after it took them", hold.as_secs())
        }
        None => "which gives them back; `mailbox.hold_s` limits such holds".to_owned(),
    };
    let cure = format!("end {} on the host of node {to}, {then}; then {take}", first.who());
    Failure::of(Code::MailboxFull, cause, cure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::survey::NodeAnswer;
    use crate::cli::survey::tests::{Seen, survey};
    use weft::cluster::Membership;
    use weft::node::control::HolderStatus;

    /// A cluster whose node 1 has these holders.
    fn held_by(holders: Vec<HolderStatus>) -> Survey {
        let mut survey = survey(Membership::Decided, &[(1, Seen::default())]);
        if let Some(NodeAnswer::Answered(node)) = survey.nodes.get_mut(1) {
            node.holders = holders;
        }
        survey
    }

    fn holder(process: Option<i32>) -> HolderStatus {
        let program = process.map(|_| "weft".to_owned());
        HolderStatus { client: 3, process, program, messages: 256, held_ms: 14_250 }
    }

    #[test]
    fn the_client_that_keeps_a_mailbox_full_is_named_with_what_ends_it() {
        let texts = |survey: &Survey| {
            let Failure(failure) = full(survey, 1, "9 messages were put");
            (failure.to_string(), failure.cure())
        };
        let (cause, cure) = texts(&held_by(vec![holder(Some(42)), holder(None)]));
        let held = "process 42 (weft) holds 256 messages, the first for 14.2 s, and has not";
        assert!(cause.contains(held) && cause.contains("1 more hold"), "{cause}");
        assert!(cure.contains("end process 42 (weft) on the host of node 1"), "{cure}");
        assert!(cure.contains("30 s after it took them"), "{cure}");
        let mut for_good = held_by(vec![holder(None)]);
        for_good.cluster.mailbox.hold_s = 0;
        let (cause, cure) = texts(&for_good);
        assert!(cause.contains("client 3, of an unknown process, holds"), "{cause}");
        assert!(cure.contains("`mailbox.hold_s` limits"), "{cure}");
        let (cause, cure) = texts(&held_by(Vec::new()));
        assert!(!cause.contains("hold") && cure.starts_with("take from it"), "{cause}: {cure}");
    }
}
