//! `weft component`: the member at a node that runs no program of its own; started by the node.

use std::time::Duration;

use super::failure::Failure;
use weft::member::{JoinError, Member};

pub(super) fn run() -> Result<(), Failure> {
    // Its node says when it must end, and the startup watchdog when it has hung.
    match Member::join_within(Duration::MAX) {
        Ok(member) => member.serve().map_err(Failure::new),
        Err(JoinError::Stopped) => Ok(()),
        Err(error) => Err(Failure::new(error)),
    }
}
