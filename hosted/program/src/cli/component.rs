//! `weft component`: what a node's supervisor starts; of no use to people.

use super::failure::Failure;
use weft::node;

pub(super) fn run() -> Result<(), Failure> {
    node::run_component().map_err(Failure::new)
}
