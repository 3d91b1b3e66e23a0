//! `weft send`, `weft recv` and `weft tensors`: tensors by name between the nodes of a running
//! cluster, from files and into files.
//!
//! ```text
//!   a.npy ──▶ one tensor, under --edge or the name of the file
//!   a.safetensors ──▶ its manifest under `__manifest__`, then each tensor under its own name
//! ```
//!
//! A file that is received is there as a whole, or not at all: no tensor of another file that was
//! sent under the same names is in it.

mod recv;
mod send;
mod steps;

pub(super) use recv::{TensorRecvArguments, run as recv};
pub(super) use send::{TensorSendArguments, run as send};
pub(super) use steps::{TensorsArguments, run as steps};

use std::path::Path;

use super::failure::Failure;
use super::survey::Survey;
use weft::explain::Explain as _;
use weft::node::control::NodeStatus;
use weft::tensor::file::TensorFileError;

/// The name under which the manifest of a file of many tensors travels.
const MANIFEST: &str = "__manifest__";

/// What the nodes use of their rendezvous, for people: a line each.
pub(super) fn table(survey: &Survey) -> String {
    let row = |node: &NodeStatus| {
        let it = node.tensors?;
        let stored = format!("{:>6} {:>11}", it.kept, it.kept_bytes);
        let offered = format!("{:>8} {:>13}", it.offered, it.offered_bytes);
        let received = format!("{:>9} {:>14}", it.receives, it.received_bytes);
        let rest = format!("{:>11} {:>8} {:>8}", it.quarantined_bytes, it.waiters, it.rejects);
        Some(format!("{:>4}  {stored} {offered} {received} {rest}\n", node.rank))
    };
    let rows: String = survey.answered().filter_map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    format!(
        "\ntensors\nnode  stored stored bytes  offered offered bytes  receives received bytes \
         quarantined  waiters  rejects\n{rows}"
    )
}

/// The error of a file.
fn of_file(path: &Path, error: &TensorFileError) -> Failure {
    Failure::of(error.code(), format!("{}: {error}", path.display()), error.cure())
}
