//! Windows, batches and queues.

use super::NET_SLOTS;
use super::cluster::{Cluster, SIZES, World};
use crate::ids::Peer;
use crate::neb::{BroadcastError, MESSAGE_LEN_MAX, Sizes};
use crate::wire::broadcast::Form;

const O: Peer = Peer(0);
const P: Peer = Peer(1);

/// Messages as long as the sizes allow, through every slot of the ring twice.
fn delivers_its_longest(form: Form, message_len: u16) {
    let world = World::<2>::with(Sizes { slots: 2, depth: 1, form, message_len, ..SIZES });
    let mut cluster = Cluster::new(&world);
    for n in 1..=4 {
        let payload = std::vec![n; usize::from(message_len)];
        cluster.broadcast(O, &payload).unwrap();
        cluster.settle();
        assert_eq!(cluster.node(P).delivered.last(), Some(&(O, u64::from(n), payload)));
    }
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn slots_of_every_length_carry_messages_that_fill_them() {
    let forms: &[Form] =
        if cfg!(feature = "signed") { &[Form::Unsigned, Form::Signed] } else { &[Form::Unsigned] };
    let lens = (1..=129).chain(MESSAGE_LEN_MAX - 129..=MESSAGE_LEN_MAX);
    for (form, len) in forms.iter().flat_map(|form| lens.clone().map(|len| (*form, len))) {
        delivers_its_longest(form, len);
    }
}

#[test]
fn a_full_window_refuses_until_the_slowest_has_delivered() {
    let mut cluster = Cluster::new(World::<3>::new().leaked());
    cluster.node(P).stopped = true;
    for n in 0..NET_SLOTS as u8 {
        cluster.broadcast(O, &[n]).unwrap();
    }
    cluster.settle();
    let node = cluster.node(O);
    let refused = node.neb.broadcast(&mut node.fabric, 0, b"");
    assert_eq!(refused, Err(BroadcastError::WindowFull));
    let standing = node.neb.standing(O).unwrap();
    assert_eq!((standing.seen, standing.delivered, standing.settled), (4, 4, 0));
    assert!(node.neb.counters().progress_reads < 20, "pauses of 10, 20, 40, 80, 80, …");
    cluster.node(P).stopped = false;
    cluster.settle();
    assert!(cluster.broadcast(O, b"room").is_some());
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn an_origin_that_does_not_take_its_own_messages_fills_its_window() {
    let mut cluster = Cluster::new(World::<2>::new().leaked());
    for n in 0..NET_SLOTS as u8 {
        cluster.broadcast(O, &[n]).unwrap();
    }
    for _ in 0..20 {
        cluster.node(P).turn(crate::time::Instant(0));
        let node = cluster.node(O);
        node.hear(crate::time::Instant(0));
        node.neb.poll(&mut node.fabric, crate::time::Instant(1_000));
    }
    assert!(!cluster.node(O).neb.has_room());
    cluster.node(O).take();
    assert!(cluster.node(O).neb.has_room());
}

#[test]
fn a_message_longer_than_a_slot_is_refused() {
    let mut cluster = Cluster::new(World::<2>::new().leaked());
    let node = cluster.node(O);
    let refused = node.neb.broadcast(&mut node.fabric, 0, &[0; 25]);
    assert_eq!(refused, Err(BroadcastError::TooLong));
    assert!(node.neb.broadcast(&mut node.fabric, 0, &[0; 24]).is_ok());
}

#[test]
fn a_batch_is_one_write_for_each_peer() {
    let mut cluster = Cluster::new(World::<3>::with(Sizes { slots: 4, ..SIZES }).leaked());
    let node = cluster.node(O);
    for n in 0..3u8 {
        node.neb.stage(&node.fabric, 0, &[n; 20]).unwrap();
    }
    assert_eq!(node.fabric.posted, 0);
    node.neb.flush(&mut node.fabric);
    assert_eq!((node.fabric.posted, node.neb.counters().writes), (2, 2));
    for n in 0..3u8 {
        cluster.broadcast.push((O, u64::from(n) + 1, std::vec![n; 20]));
    }
    cluster.settle();
    assert_eq!(cluster.check(), Ok(()));
}

#[test]
fn one_write_in_sixteen_reports() {
    let world = World::<2>::with(Sizes { slots: 32, depth: 2, message_len: 8, ..SIZES });
    let mut cluster = Cluster::new(&world);
    for n in 0..32u8 {
        cluster.broadcast(O, &[n]).unwrap();
    }
    cluster.node(O).hear(crate::time::Instant(0));
    let counters = cluster.node(O).neb.counters();
    assert_eq!((counters.writes, counters.completions), (32, 2));
}

/// Queue depths 1 and 2.
#[test]
fn a_queue_that_takes_one_work_at_a_time_is_enough() {
    for depth in [1, 2] {
        let world = World::<4>::new();
        let mut cluster = Cluster::new(&world);
        for node in &mut cluster.nodes {
            node.fabric.depth = depth;
        }
        for round in 0..12u8 {
            for origin in (0..4).map(Peer) {
                cluster.broadcast(origin, &[round]);
            }
            cluster.settle();
        }
        assert_eq!(cluster.check(), Ok(()), "depth {depth}");
        assert_eq!(cluster.broadcast.len(), 48);
    }
}

#[test]
fn a_window_of_one_slot_works() {
    let world = World::<3>::with(Sizes { slots: 1, depth: 1, ..SIZES });
    let mut cluster = Cluster::new(&world);
    for n in 0..20u8 {
        assert!(cluster.broadcast(O, &[n]).is_some(), "message {n}");
        cluster.settle();
    }
    assert_eq!(cluster.check(), Ok(()));
}

/// No progress is read before the window needs it, except on request.
#[test]
fn progress_can_be_read_long_before_the_window_is_full() {
    let mut cluster = Cluster::new(World::<3>::with(Sizes { slots: 32, ..SIZES }).leaked());
    cluster.broadcast(O, b"one");
    cluster.settle();
    let standing = |cluster: &mut Cluster<'_, 3>| cluster.node(O).neb.standing(O).unwrap();
    assert_eq!((standing(&mut cluster).seen, standing(&mut cluster).settled), (1, 0));
    cluster.node(O).neb.ask_progress();
    assert!(cluster.node(O).neb.asks_progress());
    cluster.settle();
    assert!(!cluster.node(O).neb.asks_progress());
    assert_eq!(standing(&mut cluster).settled, 1);
    let reads = cluster.node(O).neb.counters().progress_reads;
    cluster.node(O).neb.ask_progress();
    assert!(!cluster.node(O).neb.asks_progress(), "all is known");
    assert_eq!((cluster.node(O).neb.counters().progress_reads, reads), (2, 2));
}
