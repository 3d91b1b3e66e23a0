//! Members that send and receive tensors by name: outcomes, refusals, and a handle.

use std::time::Duration;

use weft::Member;
use weft::member::{
    BadKey, CallError, Dtype, Event, Expect, MemberHandle, Rank, Received, RequestId, SealedTensor,
    Tensor, TensorError, TensorName, TensorView, ViewError,
};

use crate::{Outcome, PATIENCE, meet};

const SOON: Duration = Duration::from_millis(50);

const fn step(step: i64) -> TensorName<'static> {
    TensorName { edge: "weights", step }
}

/// Both members do the same to each other.
pub(crate) fn tensors() -> Outcome {
    let mut member = Member::join()?;
    let other = Rank(1 - member.rank().0);
    meet(&mut member)?;
    refusals(&mut member, other);
    ends(&mut member, other)?;
    by_handle(&member.spawn()?, other)?;
    println!("all tensors");
    Ok(())
}

fn refusals(member: &mut Member, other: Rank) {
    let long = vec![0_u8; (1 << 20) + 1];
    let long = TensorView::of(&[long.len() as u64], &long).expect("a tensor");
    let refused = member.send(other, step(0), long);
    assert_eq!(refused, Err(TensorError::TooLong { limit: 1 << 20 }));
    assert_eq!(member.send_dead(Rank(2), step(0)), Err(TensorError::NoSuchRank));
    for (edge, why) in [("", BadKey::NoEdge), ("a;b", BadKey::Parts)] {
        let refused = member.receive(other, TensorName { edge, step: 0 }, Expect::any(), SOON);
        assert_eq!(refused, Err(TensorError::BadName(why)));
    }
}

/// Every way in which a receive ends without a failure.
fn ends(member: &mut Member, other: Rank) -> Outcome {
    // None is sent.
    let request = member.receive(other, step(1), Expect::any(), SOON)?;
    assert_eq!(ended(member, request)?, Received::TimedOut);
    let request = member.receive(other, step(1), Expect::any(), PATIENCE)?;
    member.cancel(request)?;
    assert_eq!(ended(member, request)?, Received::Cancelled);
    member.send_dead(other, step(2))?;
    let request = member.receive(other, step(2), Expect::any(), PATIENCE)?;
    assert_eq!(ended(member, request)?, Received::Dead);
    assert_eq!(member.take_tensor(request), None);
    // RZ-6: the refused value stays, and is received as what it is.
    let numbers: Vec<i32> = (0..10_000).collect();
    member.send(other, step(3), TensorView::of(&[100, 100], &numbers)?)?;
    let floats = Expect { dtype: Some(Dtype::F32), ..Expect::any() };
    let request = member.receive(other, step(3), floats, PATIENCE)?;
    let Received::Mismatch(found) = ended(member, request)? else { return Err("no match".into()) };
    assert_eq!((found.dtype(), found.dims()), (Dtype::I32, &[100, 100][..]));
    let request = member.receive(other, step(3), Expect::any(), PATIENCE)?;
    assert_eq!(ended(member, request)?, Received::Value);
    let tensor = member.take_tensor(request).ok_or("it was received")?;
    assert_eq!(tensor.view().elements::<i32>(), Ok(&numbers[..]));
    let refused = ViewError::Dtype { found: Dtype::I32, asked: Dtype::F32 };
    assert_eq!(tensor.view().elements::<f32>(), Err(refused));
    assert_eq!(member.take_tensor(request), None, "once");
    hand_over(member, other)?;
    // From this member to itself, by the same ways.
    let me = member.rank();
    member.send(me, step(4), TensorView::of(&[10_000], &numbers)?)?;
    let request = member.receive(me, step(4), Expect::any(), PATIENCE)?;
    assert_eq!(ended(member, request)?, Received::Value);
    let tensor = member.take_tensor(request).ok_or("it was received")?;
    assert_eq!(tensor.view().elements::<i32>(), Ok(&numbers[..]));
    member.clean_step(4)?;
    assert_eq!(member.send_dead(me, step(4)), Err(TensorError::StepOver));
    member.abort_step(5)?;
    let refused = member.receive(other, step(5), Expect::any(), PATIENCE);
    assert_eq!(refused, Err(TensorError::Aborted));
    Ok(())
}

/// RZ-18, RZ-3: memory that is longer than all pools goes to the other member, and to this one
/// itself.
fn hand_over(member: &mut Member, other: Rank) -> Outcome {
    let numbers: Vec<u64> = (0..400_000).collect();
    let sealed = SealedTensor::copy_of(TensorView::of(&[400_000], &numbers)?)?;
    for to in [other, member.rank()] {
        member.send_sealed(to, step(7), &sealed)?;
        let request = member.receive(to, step(7), Expect::any(), PATIENCE)?;
        assert_eq!(ended(member, request)?, Received::Value);
        let tensor = member.take_tensor(request).ok_or("it was received")?;
        assert_eq!(tensor.view().elements::<u64>(), Ok(&numbers[..]));
        assert_eq!(member.take_tensor(request), None, "once");
    }
    // What a step ends with is received by no one.
    member.send_sealed(other, step(8), &sealed)?;
    member.clean_step(8)?;
    assert_eq!(member.send_sealed(other, step(8), &sealed), Err(TensorError::StepOver));
    Ok(())
}

/// How `request` ends; its memory is returned after that.
fn ended(member: &mut Member, request: RequestId) -> Result<Received, Box<dyn std::error::Error>> {
    let mut end = None;
    loop {
        member.wait(Duration::from_millis(10))?;
        while let Some(event) = member.next_event() {
            match event {
                Event::Ended { request: it, outcome } if it == request => {
                    assert_eq!(end.replace(outcome), None, "it ends once");
                }
                Event::Returned { request: it } if it == request => {
                    return end.ok_or_else(|| "it was returned before it ended".into());
                }
                _ => {}
            }
        }
    }
}

/// Elements of a tensor that no pool holds: a handle seals it.
const LEN: usize = 200_000;

/// Both wait until the other has the tensor: a member that finishes takes its own with it.
fn by_handle(member: &MemberHandle, other: Rank) -> Outcome {
    let numbers = vec![f64::from(member.rank().0); LEN];
    let offer = member.send(other, step(6), TensorView::of(&[LEN as u64], &numbers)?, PATIENCE)?;
    let asked = member.receive(other, step(6), Expect::any(), PATIENCE)?;
    let (mut tensor, mut is_consumed): (Option<Tensor>, _) = (None, false);
    while tensor.is_none() || !is_consumed {
        match member.next_event(PATIENCE)?.ok_or("no event in time")? {
            Event::Ended { request, outcome: Received::Value } if request == asked => {
                tensor = member.take_tensor(asked)?;
            }
            Event::Ended { outcome, .. } => return Err(format!("{outcome:?}").into()),
            Event::Consumed { offer: it } => is_consumed |= it == offer,
            Event::Finished { .. } => is_consumed = true,
            _ => {}
        }
    }
    let view = tensor.ok_or("it was received")?;
    assert_eq!(view.view().elements::<f64>(), Ok(&[f64::from(other.0); LEN][..]));
    let unknown = member.cancel(asked);
    assert!(matches!(unknown, Ok(()) | Err(CallError::Refused(_))), "{unknown:?}");
    Ok(())
}
