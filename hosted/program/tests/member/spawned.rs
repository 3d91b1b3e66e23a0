//! Members whose loop has a thread of its own, used by several threads.

use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use weft::Member;
use weft::member::{
    ALL, CallError, GroupDelivery, GroupError, MemberEnded, MemberHandle, PutError, Rank,
    TakenBatch,
};

use crate::{Outcome, PATIENCE, together};

/// The messages of one thread, and the threads of one member.
const MESSAGES: u64 = 20_000;
const WRITERS: u64 = 2;
/// Longer than any profile waits for a sign of progress.
const COMPUTES: Duration = Duration::from_millis(1_500);

/// Whether the descriptor of `member` is readable within `timeout`.
fn is_readable(member: &MemberHandle, timeout: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(member.as_fd(), PollFlags::IN)];
    let timeout = Timespec::try_from(timeout).expect("it fits");
    poll(&mut fds, Some(&timeout)).expect("it is a descriptor") == 1
}

/// Two threads put numbers to the other member, and one takes what those of the other put.
pub(crate) fn shared() -> Outcome {
    let member = Member::join()?.spawn()?;
    let other = Rank(1 - member.rank().0);
    let long = vec![0; member.message_len() + 1];
    let refused = member.put(other, &long, PATIENCE);
    assert!(matches!(refused, Err(CallError::Refused(PutError::TooLong { .. }))), "{refused:?}");
    let refused = member.put(Rank(9), b"", PATIENCE);
    assert_eq!(refused, Err(CallError::Refused(PutError::NoSuchRank)));
    exchange_in_group(&member, other)?;
    together::by_handle(&member, other)?;
    thread::scope(|scope| -> Outcome {
        for writer in 0..WRITERS {
            let member = member.clone();
            scope.spawn(move || write(&member, other, writer));
        }
        take_all(&member)
    })?;
    let mut from_other = 0;
    drain(&member, &mut from_other)?;
    in_an_event_loop(&member, &mut from_other)?;
    fill(&member, &mut from_other)?;
    // No thread of the program polls meanwhile.
    let ends = Instant::now() + COMPUTES;
    while Instant::now() < ends {
        std::hint::spin_loop();
    }
    assert_eq!(member.incarnation().0, 1, "it was killed while it computed");
    // What is put last arrives, although the program ends at once.
    member.put(other, b"last", PATIENCE)?;
    while from_other == 0 {
        take_one(&member, PATIENCE, &mut from_other)?;
    }
    println!("all taken");
    Ok(())
}

/// Each receives what the other broadcasts to the group.
fn exchange_in_group(member: &MemberHandle, other: Rank) -> Outcome {
    let sent =
        member.with_group(ALL, PATIENCE, |group| match group.broadcast(7, b"to the group") {
            Err(GroupError::Opening) => None,
            done => Some(done),
        });
    assert_eq!(sent, Ok(Some(Ok(1))));
    let mut bytes = Vec::new();
    let delivery = member.with_group(ALL, PATIENCE, |group| group.receive(&mut bytes))?;
    let Some(GroupDelivery::Part { root, seq: 1, tag: 7, is_last: true, .. }) = delivery else {
        return Err(format!("not what member {other:?} sent: {delivery:?}").into());
    };
    assert_eq!((root, &bytes[..]), (other, &b"to the group"[..]));
    let more = member.with_group(ALL, Duration::ZERO, |group| group.receive(&mut bytes))?;
    assert_eq!(more, None);
    Ok(())
}

/// Half of its numbers alone, half in batches.
fn write(member: &MemberHandle, other: Rank, writer: u64) {
    let numbers: Vec<_> =
        (0..MESSAGES).map(|n| (writer << 32 | n).to_le_bytes()).collect::<Vec<_>>();
    let (alone, together) = numbers.split_at(numbers.len() / 2);
    for number in alone {
        member.put(other, number, PATIENCE).expect("there is room in time");
    }
    let mut left = together;
    while !left.is_empty() {
        let payloads = left.iter().map(|it| &it[..]);
        let put = member.put_batch(other, payloads, PATIENCE).expect("there is room in time");
        left = &left[put..];
    }
}

/// Takes the numbers of both writers, each writer's in order.
fn take_all(member: &MemberHandle) -> Outcome {
    let (mut batch, mut next) = (TakenBatch::default(), [0; WRITERS as usize]);
    while next.iter().sum::<u64>() < WRITERS * MESSAGES {
        if member.take_batch(&mut batch, 64, PATIENCE)? == 0 {
            return Err("no message in time".into());
        }
        for (_, _, _, payload) in batch.iter() {
            let number = u64::from_le_bytes(payload.try_into()?);
            let seen = &mut next[usize::try_from(number >> 32)?];
            assert_eq!(*seen, number & u64::from(u32::MAX), "in order");
            *seen += 1;
        }
        member.release_batch(&batch)?;
    }
    Ok(())
}

/// Takes one message, and counts those of the other member; whether it was an own one.
fn take_one(
    member: &MemberHandle,
    timeout: Duration,
    from_other: &mut u32,
) -> Result<bool, MemberEnded> {
    let Some(taken) = member.take(timeout)? else { return Ok(false) };
    member.release(taken.receipt).expect("it was just taken");
    let is_own = taken.sender == member.rank();
    *from_other += u32::from(!is_own);
    Ok(is_own)
}

/// The descriptor is readable while there is something to drain.
fn drain(member: &MemberHandle, from_other: &mut u32) -> Outcome {
    while member.next_event(Duration::ZERO)?.is_some() {}
    member.put(member.rank(), b"to itself", PATIENCE)?;
    assert!(is_readable(member, PATIENCE), "a message waits");
    while !take_one(member, PATIENCE, from_other)? {}
    // Events, and a message of the other member, may come at any time.
    while is_readable(member, Duration::ZERO) {
        let before = *from_other;
        let event = member.next_event(Duration::ZERO)?;
        take_one(member, Duration::ZERO, from_other)?;
        assert!(event.is_some() || *from_other > before, "nothing is left");
    }
    Ok(())
}

/// Each message makes an edge of the descriptor, as an `AsyncFd` waits for it, once all before it
/// is drained.
fn in_an_event_loop(member: &MemberHandle, from_other: &mut u32) -> Outcome {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
    epoll::add(&set, member, epoll::EventData::new_u64(0), edge)?;
    let timeout = Timespec::try_from(PATIENCE)?;
    for _ in 0..16 {
        member.put(member.rank(), b"to itself", PATIENCE)?;
        let mut has_own = false;
        while !has_own {
            let mut ready = Vec::with_capacity(1);
            epoll::wait(&set, spare_capacity(&mut ready), Some(&timeout))?;
            assert_eq!(ready.len(), 1, "an edge");
            // Other than this message, events and messages of the other member may come.
            while is_readable(member, Duration::ZERO) {
                member.next_event(Duration::ZERO)?;
                has_own |= take_one(member, Duration::ZERO, from_other)?;
            }
        }
    }
    Ok(())
}

/// A mailbox that is not emptied takes no more: the message comes back by the timeout.
fn fill(member: &MemberHandle, from_other: &mut u32) -> Outcome {
    let mut accepted = 0;
    let refused = loop {
        match member.put(member.rank(), b"filler", Duration::from_millis(50)) {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
    };
    // The limit is how many one batch takes: more than that were accepted before, poll by poll.
    let is_full = |limit| limit > 0 && limit < accepted;
    assert!(
        matches!(refused, CallError::Refused(PutError::Full { limit }) if is_full(limit)),
        "{refused:?} after {accepted}"
    );
    assert!(!member.flush(Duration::ZERO)?, "more was accepted than there is room");
    while accepted > 0 {
        accepted -= u32::from(take_one(member, PATIENCE, from_other)?);
    }
    assert!(member.flush(PATIENCE)?);
    Ok(())
}

/// Three calls wait for what never comes, until the node orders an end.
pub(crate) fn waiting() -> Outcome {
    let member = Member::join()?.spawn()?;
    println!("runs");
    thread::scope(|scope| {
        let ends = |ended: Option<MemberEnded>| {
            assert_eq!(ended, Some(MemberEnded::Stopping));
            println!("no longer waits");
        };
        let (taker, deliverer, listener) = (member.clone(), member.clone(), member.clone());
        scope.spawn(move || ends(taker.take(Duration::MAX).err()));
        scope.spawn(move || ends(deliverer.deliver(Duration::MAX).err()));
        scope.spawn(move || {
            let ended = loop {
                match listener.next_event(Duration::MAX) {
                    Ok(_) => {}
                    Err(ended) => break ended,
                }
            };
            ends(Some(ended));
        });
    });
    Ok(())
}
