//! The cost of the broadcast: operations, completions, memory.

use super::cluster::{Cluster, SIZES, World};
use crate::ids::Peer;
use crate::neb::{Neb, Sizes};

/// Operations for `count` messages of one origin among N: those of the messages, and reads of
/// progress.
fn operations<const N: usize>(slots: u32, count: u32) -> (u64, u64) {
    let world = World::<N>::with(Sizes { slots, message_len: 8, ..SIZES });
    let mut cluster = Cluster::new(&world);
    for n in 0..count {
        cluster.broadcast(Peer(0), &n.to_le_bytes()).unwrap();
        cluster.settle();
    }
    assert_eq!(cluster.check(), Ok(()));
    let posted: u64 = cluster.nodes.iter().map(|node| node.fabric.posted).sum();
    let asking = cluster.nodes.iter().map(|node| node.neb.counters().progress_reads).sum();
    (posted - asking, asking)
}

/// The goal: (n-1)² operations a message, never more. What reading progress adds is bounded by
/// one read of every other member by every member in half a window.
fn costs_its_square<const N: usize>() {
    let (slots, count) = (16, 64);
    let (messages, asking) = operations::<N>(slots, count);
    let n = N as u64;
    assert_eq!(messages, (n - 1) * (n - 1) * u64::from(count));
    let half_windows = u64::from(count / (slots / 2));
    assert!(asking <= n * (n - 1) * half_windows, "{asking}");
}

#[test]
fn a_message_costs_the_square_of_the_others_in_operations() {
    costs_its_square::<2>();
    costs_its_square::<3>();
    costs_its_square::<4>();
    costs_its_square::<7>();
}

#[test]
fn the_size_of_a_member_is_published() {
    std::println!("Neb<4, 32> is {} bytes", size_of::<Neb<4, 32>>());
    assert!(size_of::<Neb<4, 32>>() <= 26 << 10);
    assert!(size_of::<Neb<7, 32>>() <= 40 << 10);
}
