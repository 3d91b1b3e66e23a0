//! `weft neb`: proofs that a node sent different messages to different nodes.

mod proof;
mod verify;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::cluster_choice::ClusterChoice;
use super::failure::Failure;
use super::output::Output;
use weft::signing::PublicKey;

/// Arguments of `weft neb`.
#[derive(Debug, Args)]
pub(super) struct NebArguments {
    #[command(subcommand)]
    what: NebCommand,
}

#[derive(Debug, Subcommand)]
enum NebCommand {
    /// Write a proof that a node holds to standard output, or to a file.
    Proof(Proof),
    /// Check a proof, wherever it came from: who equivocated, and under which number.
    Verify(Verify),
}

/// Arguments of `weft neb proof`.
#[derive(Debug, Args)]
pub(super) struct Proof {
    /// The node that holds it; without it, the first here that does.
    #[arg(long, value_name = "RANK")]
    node: Option<u16>,

    /// Against this node; without it, against the first that there is a proof against.
    #[arg(long, value_name = "RANK")]
    origin: Option<u16>,

    /// Where to write it; standard output without it.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    cluster: ClusterChoice,
}

/// Arguments of `weft neb verify`.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// The proof, as `weft neb proof` wrote it; `-` for standard input.
    #[arg(value_name = "FILE")]
    proof: PathBuf,

    /// The public key of the node it is against, from a node that you trust (`weft status
    /// --json`). Without it a proof shows what the holder of the key in it has signed.
    #[arg(long, value_name = "HEX")]
    key: Option<PublicKey>,
}

pub(super) fn run(arguments: &NebArguments, output: Output) -> Result<(), Failure> {
    match &arguments.what {
        NebCommand::Proof(arguments) => proof::run(arguments, output),
        NebCommand::Verify(arguments) => verify::run(arguments, output),
    }
}
