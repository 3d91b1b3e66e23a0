//! `weft bcast`: a file from one node to all others, or to the other members of a group.

mod decided;
mod held;
mod intake;
mod receive;
mod send;
mod source;
mod tree;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;
use weft::cluster::Topology;

/// Arguments of `weft bcast`.
#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("how").required(true).args(["neb", "tree"])),
    group(ArgGroup::new("who").required(true).args(["from", "node"]))
)]
pub(super) struct BcastArguments {
    /// By non-equivocating broadcast: no two correct nodes deliver different messages, whatever
    /// the sender does.
    #[arg(long)]
    neb: bool,

    /// Along the trees of a group: all survivors receive the same bytes, whichever node fails.
    /// Receive at every other member; a receive may begin before the file or after it.
    #[arg(long)]
    tree: bool,

    /// The group of the cluster file in which the file travels.
    #[arg(long, value_name = "NAME", default_value = weft::member::ALL, conflicts_with = "neb")]
    group: String,

    /// How the file travels, instead of as the cluster file says: serial (each member reads it from
    /// the sender), pipe (from the member before it), binary or fibonacci (along a tree), pipeline
    /// (block by block from several), or auto.
    #[arg(long, value_name = "TOPOLOGY", conflicts_with_all = ["neb", "receive"],
          value_parser = PossibleValuesParser::new(Topology::ALL.map(Topology::as_str)))]
    topology: Option<String>,

    /// The file to broadcast; `-` or nothing for standard input. Standard input and a FIFO are sent
    /// as data arrives, and any file up to where it ends when that is read: what is appended before
    /// is sent, too. A message stays in the window until each node has received it.
    #[arg(value_name = "FILE", conflicts_with_all = ["receive", "node", "origin", "output"])]
    file: Option<PathBuf>,

    /// The node that broadcasts.
    #[arg(long, value_name = "RANK", conflicts_with = "receive")]
    from: Option<u16>,

    /// Receive one file that another node broadcasts. An interrupted receive has consumed the
    /// messages that it was given: broadcast the file again.
    #[arg(long, requires = "node")]
    receive: bool,

    /// The node that receives, with `--receive`.
    #[arg(long, value_name = "RANK", requires = "receive")]
    node: Option<u16>,

    /// Receive from this node only; without it, from the first node that broadcasts and that no
    /// other client receives from here. Where several nodes broadcast at once, receive from each of
    /// them at the same time.
    #[arg(long, value_name = "RANK", requires = "receive", conflicts_with = "from")]
    origin: Option<u16>,

    /// Write the file here instead of to standard output.
    #[arg(long, value_name = "FILE", requires = "receive", conflicts_with = "from")]
    output: Option<PathBuf>,

    /// Give up after this many seconds without progress.
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: f64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

pub(super) fn run(arguments: &BcastArguments, output: Output) -> Result<(), Failure> {
    match (arguments.from, arguments.node) {
        (Some(from), _) if arguments.tree => tree::send(arguments, from, output),
        (None, Some(node)) if arguments.tree => tree::receive(arguments, node, output),
        (Some(from), _) => send::run(arguments, from, output),
        (None, Some(node)) => receive::run(arguments, node, output),
        // The command line names one of the two.
        (None, None) => Ok(()),
    }
}
