//! Steps that are longer than the alarm: announced, and longer than announced.

use std::time::{Duration, Instant};

use weft::Member;
use weft::member::{Rank, WorkingError};

use crate::{Outcome, PATIENCE, meet};

/// Several times as long as the profile waits for a sign of progress.
const LONG: Duration = Duration::from_millis(2_500);

/// Computes, and waits for nothing.
fn compute(time: Duration) -> u64 {
    let ends = Instant::now() + time;
    let mut steps = 0;
    while Instant::now() < ends {
        steps += 1;
    }
    steps
}

/// Both work at the same time, so that no member is left that polls by itself.
pub(crate) fn works() -> Outcome {
    let mut member = Member::join()?;
    meet(&mut member)?;
    let bound = Duration::from_secs(60);
    let refused = member.working(bound + Duration::from_millis(1), || ());
    assert!(matches!(refused, Err(WorkingError::TooLong { bound: is }) if is == bound));
    let other = Rank(1 - member.rank().0);
    member.put(other, b"before the step")?;
    let steps = member.working(PATIENCE, || compute(LONG))?;
    assert!(steps > 0 && member.incarnation().0 == 1, "it was killed while it worked");
    // The messages went on their way meanwhile, and the member is as it was.
    assert_eq!(member.unput(other), 0);
    while member.take().is_none() {
        member.wait(Duration::from_millis(10))?;
    }
    println!("has worked");
    Ok(())
}

/// Member 1 takes longer than it has announced; its next incarnation does not.
pub(crate) fn overruns() -> Outcome {
    let mut member = Member::join()?;
    meet(&mut member)?;
    if member.rank() == Rank(1) && member.incarnation().0 == 1 {
        member.working(Duration::from_millis(100), || compute(PATIENCE))?;
        return Err("it was not killed".into());
    }
    Ok(())
}
