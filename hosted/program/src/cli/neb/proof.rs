//! `weft neb proof`: a proof that a node holds, as a file.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::Proof;
use crate::cli::cluster_choice::Running;
use crate::cli::draft::Draft;
use crate::cli::failure::Failure;
use crate::cli::output::{Output, standard_output};
use weft::client::ClientError;
use weft::cluster::Form;
use weft::explain::Code;
use weft::node::control::HeldProof;

pub(super) fn run(arguments: &Proof, output: Output) -> Result<(), Failure> {
    let draft = arguments.output.as_deref().map(Draft::begin).transpose()?;
    let running = arguments.cluster.find()?;
    let (node, HeldProof { origin, seq, bytes }) = find(&running, arguments)?;
    let object = json!({
        "ok": true,
        "node": node,
        "origin": origin,
        "seq": seq,
        "bytes": bytes.0.len(),
        "proof": STANDARD.encode(&bytes.0),
        "output": arguments.output,
    });
    let mut text = String::new();
    if let (Some(mut draft), Some(path)) = (draft, &arguments.output) {
        draft.write(&bytes.0)?;
        draft.finish()?;
        text = format!(
            "{}: node {origin} signed two messages as number {seq}; `weft neb verify` checks the \
             proof\n",
            path.display()
        );
    } else if !output.is_json() {
        let written = standard_output().and_then(|mut out| {
            out.write_all(&bytes.0)?;
            out.flush()
        });
        written.map_err(|error| {
            let cause = format!("the proof cannot be written to standard output: {error}");
            Failure::of(Code::Output, cause, "free space for it, or use `--output`")
        })?;
    }
    output.finish(&object, &text);
    Ok(())
}

/// A proof as it was asked for, and the node that holds it.
fn find(running: &Running, arguments: &Proof) -> Result<(u16, HeldProof), Failure> {
    let (against, nodes) = (arguments.origin, running.cluster.nodes);
    if let Some(rank) = against.filter(|rank| usize::from(*rank) >= nodes) {
        return Err(Failure::new(ClientError::OutOfRange { rank, nodes }));
    }
    let held = if let Some(node) = arguments.node {
        running.connect(node)?.proof(against).map_err(Failure::new)?.map(|held| (node, held))
    } else {
        // A node that does not answer must not hide another node's proof.
        running.ranks().find_map(|node| {
            let held = running.connect_now(node).and_then(|mut client| client.proof(against));
            held.ok().flatten().map(|held| (node, held))
        })
    };
    held.ok_or_else(|| {
        let whom = against.map_or_else(String::new, |rank| format!(" against node {rank}"));
        let cause = match arguments.node {
            Some(node) => format!("node {node} holds no proof{whom}"),
            None => format!("no reachable node holds a proof{whom}"),
        };
        let cure = match running.cluster.neb.form {
            Form::Unsigned => {
                "this cluster's broadcasts are unsigned: set neb.form = \"signed\" and restart it"
            }
            Form::Signed => "run `weft status` to see which nodes hold proofs",
        };
        Failure::of(Code::InputMissing, cause, cure)
    })
}
