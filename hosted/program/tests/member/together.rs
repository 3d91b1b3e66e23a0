//! Members that enter barriers and all-gathers, and receive where the messages lie.

use std::time::Duration;

use weft::Member;
use weft::member::{
    ALL, CallError, GroupDelivery, GroupError, GroupInPlace, MemberHandle, Rank,
    UnknownGroupReceipt,
};

use crate::{Outcome, PATIENCE};

/// Of two members, 1 enters the barrier once 0 has waited for it in vain.
pub(crate) fn together() -> Outcome {
    let mut member = Member::join()?;
    let is_first = member.rank() == Rank(0);
    if is_first {
        let alone = member.barrier(ALL, Duration::from_millis(50));
        assert_eq!(alone, Err(CallError::Refused(GroupError::TimedOut)));
        member.put(Rank(1), b"enter")?;
    } else {
        while member.take().is_none() {
            member.wait(PATIENCE)?;
        }
    }
    assert_eq!(member.barrier(ALL, PATIENCE), Ok(1));
    let long = member.all_gather(ALL, &[0; 897], PATIENCE);
    assert_eq!(long, Err(CallError::Refused(GroupError::ValueTooLong { limit: 896 })));
    let own = [member.rank().0 as u8; 896];
    let mine = if is_first { &own[..] } else { &own[..1] };
    let gathered = member.all_gather(ALL, mine, PATIENCE);
    assert_eq!(gathered, Ok(vec![Some(vec![0; 896]), Some(vec![1])]));
    // Of another group, whose first member is 1.
    let gathered = member.all_gather("pair", &own[..1], PATIENCE);
    assert_eq!(gathered, Ok(vec![Some(vec![1]), Some(vec![0])]));
    assert_eq!(member.group("none").err(), Some(GroupError::UnknownGroup));
    assert_eq!(member.barrier(ALL, PATIENCE), Ok(2));
    if is_first {
        // The other program ends here.
        assert_eq!(member.barrier(ALL, PATIENCE), Ok(3));
        let gathered = member.all_gather(ALL, b"last", PATIENCE);
        assert_eq!(gathered, Ok(vec![Some(b"last".to_vec()), Some(Vec::new())]));
    }
    println!("left two barriers");
    Ok(())
}

/// The same by the handle of a spawned member.
pub(crate) fn by_handle(member: &MemberHandle, other: Rank) -> Outcome {
    assert_eq!(member.barrier(ALL, PATIENCE), Ok(1));
    let mine = u8::try_from(member.rank().0)?;
    assert_eq!(member.all_gather(ALL, &[mine], PATIENCE), Ok(vec![Some(vec![0]), Some(vec![1])]));
    let sent = member.with_group(ALL, PATIENCE, |group| group.broadcast(8, b"in place").ok());
    // Message 2 is the value of the all-gather.
    assert_eq!(sent, Ok(Some(3)));
    member
        .with_group(ALL, PATIENCE, |group| group.broadcast(8, b"kept").ok())?
        .ok_or("a window")?;
    let seen = member.with_group(ALL, PATIENCE, |group| match group.receive_in_place()? {
        GroupInPlace::Part(chunk) => {
            let mut bytes = [0; 5];
            chunk.copy(3, &mut bytes);
            Some((chunk.root(), chunk.seq(), chunk.len(), chunk.words().load(0), bytes))
        }
        _ => None,
    });
    let word = u64::from_le_bytes(*b"in place");
    assert_eq!(seen, Ok(Some((other, 3, 8, word, *b"place"))));
    let kept = member.with_group(ALL, PATIENCE, |group| match group.receive_in_place()? {
        GroupInPlace::Part(chunk) => Some(chunk.keep()),
        _ => None,
    });
    let receipt = kept?.ok_or("a part that is kept")?;
    let released = member.with_group(ALL, PATIENCE, |group| {
        let before = group.standing(other)?.released.entries;
        Some((before, group.release(receipt), group.release(receipt)))
    });
    assert_eq!(released, Ok(Some((3, Ok(()), Err(UnknownGroupReceipt)))));
    let more = member.with_group(ALL, Duration::ZERO, |group| group.receive(&mut Vec::new()))?;
    assert!(more.is_none_or(|it| matches!(it, GroupDelivery::RootLost { .. })), "{more:?}");
    Ok(())
}
