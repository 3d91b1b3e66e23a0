//! The sending side: cut, broadcast, and say who holds it up.

use serde_json::json;

use super::Arguments;
use super::source::Source;
use crate::cli::cluster_choice::{Running, seconds};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::cli::survey::Survey;
use crate::client::{ClientError, Speaker};
use crate::clock::now_ns;
use crate::explain::Code;
use crate::node::control::{BroadcastOutcome, BroadcastStopped, DirNetStatus, Refused};
use crate::transfer::Cutter;

pub(super) fn run(arguments: &Arguments, from: u16, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let mut source = Source::open(arguments.file.as_deref())?;
    let running = arguments.cluster.find()?;
    hopeless(&running, &Survey::take(&running), from).map_or(Ok(()), Err)?;
    let message_len = running.cluster.neb.message_len;
    // No two senders of a cluster begin in the same nanosecond with the same process number.
    let stream = now_ns().rotate_left(20) ^ u64::from(std::process::id());
    let client = running.connect(from)?;
    let bar = output.progress(source.len(), "broadcasting");
    let (mut cutter, mut messages, mut last) = (Cutter::default(), 0, 0);
    // Nobody waits for an input that has not begun.
    let mut batch = source.read_batch(&mut cutter, message_len)?;
    let begun = Speaker::begin(client, stream, &Cutter::given_up(), timeout);
    let mut speaker = begun.map_err(|error| match error {
        ClientError::Refused { reason: Refused::WindowFull, .. } => {
            window_full(&running, from, &cutter, None)
        }
        error => Failure::new(error),
    })?;
    loop {
        if batch.is_last {
            batch.messages.push(cutter.end());
        }
        let slices: Vec<&[u8]> = batch.messages.iter().map(Vec::as_slice).collect();
        let mut sent = 0;
        while sent < slices.len() {
            let outcome = speaker.broadcast(&slices[sent..], timeout).map_err(Failure::new)?;
            sent += outcome.broadcast;
            last = outcome.last;
            check(&running, from, &cutter, &outcome)?;
        }
        messages += slices.len();
        bar.set_position(cutter.len());
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
        "bytes": bytes,
        "messages": messages,
        "last": last,
        "sha256": digest,
    });
    let text = format!("{bytes} bytes broadcast by node {from}\nsha256 {digest}\n");
    output.finish(&object, &text);
    Ok(())
}

fn check(
    running: &Running,
    from: u16,
    cutter: &Cutter,
    outcome: &BroadcastOutcome,
) -> Result<(), Failure> {
    match outcome.stopped {
        None => Ok(()),
        Some(BroadcastStopped::WindowFull { settled }) => {
            Err(window_full(running, from, cutter, Some(settled)))
        }
        Some(BroadcastStopped::TooLong { limit }) => Err(Failure::of(
            Code::MessageTooLong,
            format!("a message is longer than {limit} bytes"),
            "run one build of weft",
        )),
    }
}

/// Who holds up the window of `from`, which stayed full.
fn window_full(running: &Running, from: u16, cutter: &Cutter, settled: Option<u64>) -> Failure {
    let survey = Survey::take(running);
    if let Some(failure) = hopeless(running, &survey, from) {
        return failure;
    }
    let known = survey.row(from, from).map_or(0, |row| row.settled);
    let settled = settled.unwrap_or(known);
    let (lost, gone) = (lost(&survey, from), gone(&survey, from));
    let behind = behind(running, &survey, from, settled);
    // Without their votes the others deliver nothing either.
    let holding = [&lost, &gone, &behind].into_iter().find(|nodes| !nodes.is_empty());
    let cause = format!(
        "the window of node {from} stayed full past the deadline, within the first {} bytes: {} \
         not taken message {}",
        cutter.len(),
        match holding.map_or(&[][..], |nodes| &nodes[..]) {
            [] => "some node has".to_owned(),
            [one] => format!("node {one} has"),
            several => format!("nodes {several:?} have"),
        },
        settled + 1
    );
    let cure = if let Some(node) = lost.first() {
        format!(
            "node {node} has lost what it promised in broadcasts, and with the membership \
             \"fixed\" it is waited for: start the cluster anew"
        )
    } else if let Some(node) = gone.first() {
        format!(
            "node {node} was removed, and with the membership \"fixed\" it is waited for: let it \
             come back, or start the cluster anew with \"decided\""
        )
    } else {
        let node = behind.first().map_or_else(|| "RANK".to_owned(), u16::to_string);
        format!(
            "receive at every other node, with `weft bcast --neb --receive --node {node}`; `weft \
             status` shows who has taken how much"
        )
    };
    Failure::of(Code::WindowFull, cause, cure)
}

/// Why what `from` broadcasts would not arrive, however long one waits.
fn hopeless(running: &Running, survey: &Survey, from: u16) -> Option<Failure> {
    if let Some(rank) = survey.disputing(from) {
        let cause = format!(
            "node {rank} saw a conflict about node {from}, and delivers nothing more that node \
             {from} broadcasts"
        );
        let cure = "broadcast from another node; `weft status` shows the conflict, and only a \
                    cluster that is started anew forgets it";
        return Some(Failure::of(Code::Conflict, cause, cure));
    }
    let left = &standing(survey, from)?.left_broadcasts;
    let others = || running.ranks().filter(|rank| *rank != from);
    if left.contains(&from) || others().any(|rank| !left.contains(&rank)) {
        // The node itself says why it does not broadcast.
        return None;
    }
    let cause = "no other node takes part in broadcasts any more: all were removed once";
    let cure = "start the cluster anew; who is out says `weft status`";
    Some(Failure::of(Code::NodeUnreachable, cause, cure))
}

/// How the origin itself stands in the DIR net.
fn standing(survey: &Survey, from: u16) -> Option<&DirNetStatus> {
    survey.answered().find(|node| node.rank == from)?.dirnet.as_ref()
}

/// The nodes that take no part any more, as they say themselves, and are waited for all the same.
fn lost(survey: &Survey, from: u16) -> Vec<u16> {
    let lost = survey.left_broadcasts().into_iter();
    lost.filter(|node| survey.is_waited_for(*node) && *node != from).collect()
}

/// The nodes that were removed and are waited for all the same.
fn gone(survey: &Survey, from: u16) -> Vec<u16> {
    let Some(standing) = standing(survey, from) else { return Vec::new() };
    let is_waited_for = |rank: &&u16| !standing.left_broadcasts.contains(rank);
    standing.removed.iter().filter(is_waited_for).copied().collect()
}

/// The nodes that have not taken more than `settled` messages of `from`, and are waited for.
fn behind(running: &Running, survey: &Survey, from: u16, settled: u64) -> Vec<u16> {
    let heard = survey.answered().filter(|node| {
        let row = node.broadcasts.iter().find(|row| row.origin == from);
        row.is_some_and(|row| row.delivered > settled)
    });
    let heard: Vec<u16> = heard.map(|node| node.rank).collect();
    let left = standing(survey, from).map(|standing| &standing.left_broadcasts);
    let is_waited_for = |rank: &u16| !left.is_some_and(|left| left.contains(rank));
    let others = running.ranks().filter(|rank| *rank != from && !heard.contains(rank));
    others.filter(is_waited_for).collect()
}
