//! Faults that a node's supervisor keeps for its components: cuts, and their end.
//!
//! ```text
//!   ask ──▶ done
//!       ──▶ the connection closes: the supervisor is being reset; ask its successor, once
//!       ──▶ the component is lost meanwhile: the supervisor passes it to the next one
//! ```

use super::ClientError;
use crate::node::control::Refused;
use crate::packet::PacketError;

/// Orders a fault that outlives components by `ask`, which connects each time.
///
/// # Errors
/// [`ClientError`], of the second time if there was one.
pub fn order_lasting(mut ask: impl FnMut() -> Result<(), ClientError>) -> Result<(), ClientError> {
    let mut ordered = ask();
    if let Err(ClientError::Unreachable { source: PacketError::Closed, .. }) = ordered {
        ordered = ask();
    }
    match ordered {
        Err(ClientError::Refused { reason: Refused::ComponentLost, .. }) => Ok(()),
        ordered => ordered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed() -> ClientError {
        ClientError::Unreachable { rank: 2, source: PacketError::Closed }
    }

    fn refused(reason: Refused) -> ClientError {
        ClientError::Refused { rank: 2, reason }
    }

    /// How often was asked, and what came of it, when these are the answers.
    fn order(answers: Vec<Result<(), ClientError>>) -> (usize, Result<(), ClientError>) {
        let (mut answers, mut asked) = (answers.into_iter(), 0);
        let ordered = order_lasting(|| {
            asked += 1;
            answers.next().expect("asked no more often than that")
        });
        (asked, ordered)
    }

    #[test]
    fn a_supervisor_that_is_reset_meanwhile_is_asked_once_more() {
        assert!(matches!(order(vec![Ok(())]), (1, Ok(()))));
        assert!(matches!(order(vec![Err(closed()), Ok(())]), (2, Ok(()))));
        let (asked, ordered) = order(vec![Err(closed()), Err(closed())]);
        assert!(asked == 2 && matches!(ordered, Err(ClientError::Unreachable { .. })));
    }

    #[test]
    fn a_component_that_is_lost_meanwhile_is_no_failure_and_all_else_is() {
        assert!(matches!(order(vec![Err(refused(Refused::ComponentLost))]), (1, Ok(()))));
        let lost_then = vec![Err(closed()), Err(refused(Refused::ComponentLost))];
        assert!(matches!(order(lost_then), (2, Ok(()))));
        for reason in [Refused::Isolated, Refused::Busy, Refused::GivenUp] {
            let (asked, ordered) = order(vec![Err(refused(reason))]);
            assert!(asked == 1 && matches!(ordered, Err(ClientError::Refused { .. })));
        }
    }
}
