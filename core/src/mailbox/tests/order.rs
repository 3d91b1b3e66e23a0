//! Each sender's order when messages before it are missing.

use super::harness::{Cluster, FIRST, world};
use super::owner::Taken;
use super::{A, B};
use crate::mailbox::PutEvent;

fn payloads(taken: &[Taken]) -> std::vec::Vec<&[u8]> {
    taken.iter().map(|taken| &taken.payload[..]).collect()
}

/// Found by the model: messages in doubt after a lost put were discarded, their sequence numbers
/// went to later messages, and the second of these overtook the first.
#[test]
fn a_message_after_a_discarded_one_is_not_overtaken() {
    let mut cluster = Cluster::new(world(8).leaked());
    let writer = cluster.writer(A);
    writer.hold_ticket(b"in doubt");
    writer.land();
    cluster.writer(B).hold_ticket(b"missing");
    let lost = cluster.succeed_owner(&[A, B]);
    assert!(matches!(lost[0], (A, PutEvent::Lost { unknown: 1, .. })));
    let writer = cluster.writer(A);
    writer.outbox.discard();
    writer.stage(b"first");
    writer.stage(b"second");
    writer.flush().unwrap();
    writer.finish();
    let taken = cluster.owner.drain();
    let expected: [&[u8]; 3] = [b"in doubt", b"first", b"second"];
    assert_eq!(payloads(&taken), expected);
}

#[test]
fn messages_flushed_again_after_a_loss_keep_their_sequence() {
    let mut cluster = Cluster::new(world(8).leaked());
    cluster.writer(A).hold_ticket(b"repeated");
    cluster.writer(A).land();
    cluster.succeed_owner(&[A]);
    cluster.writer(A).flush().unwrap();
    assert_eq!(cluster.writer(A).finish(), Some(PutEvent::Put { count: 1, left: 0 }));
    let taken = cluster.owner.drain();
    assert_eq!(payloads(&taken), [b"repeated", b"repeated"]);
    assert_eq!(taken[0].sequence, taken[1].sequence);
}

#[test]
fn a_missing_message_delays_the_later_ones_of_its_sender() {
    let mut cluster = Cluster::new(world(8).leaked());
    cluster.writer(A).put(b"one");
    assert!(cluster.owner.take().is_some());
    let writer = cluster.writer(A);
    for message in [b"two", b"too"] {
        writer.stage(message);
    }
    writer.flush().unwrap();
    writer.land();
    writer.hear();
    // The second slot of the batch lies one stride of 64 bytes after the first.
    writer.fabric.tear(super::OWNER, |byte| byte >= 64);
    assert_eq!(cluster.owner.take(), None);
    cluster.writer(A).land();
    assert_eq!(payloads(&cluster.owner.drain()), [b"two", b"too"]);
}

#[test]
fn a_new_incarnation_is_distinguished_from_the_one_before() {
    let mut cluster = Cluster::new(world(8).leaked());
    // After that many messages the first incarnation reached the numbers that the second began at.
    cluster.writer(A).outbox.count_from(2 << 20);
    cluster.writer(A).put(b"old");
    cluster.crash(A);
    cluster.revive(A);
    cluster.writer(A).put(b"new");
    let taken = cluster.owner.drain();
    assert_eq!(payloads(&taken), [b"old", b"new"]);
    assert_eq!(cluster.writer(A).incarnation, FIRST.next());
    let names = [0, 1].map(|index: usize| (taken[index].incarnation, taken[index].sequence));
    assert_eq!(names, [(1, 2 << 20), (2, 0)]);
}
