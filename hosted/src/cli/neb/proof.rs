//! `weft neb proof`: a proof that a node holds, as a file.

use std::fs;
use std::io::{Write, stdout};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::Proof;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use crate::explain::Code;
use crate::node::control::HeldProof;

pub(super) fn run(arguments: &Proof, output: Output) -> Result<(), Failure> {
    let running = arguments.cluster.find()?;
    let (node, against) = (arguments.node, arguments.origin);
    let held = running.connect(node)?.proof(against).map_err(Failure::new)?;
    let Some(HeldProof { origin, seq, bytes }) = held else {
        let whom = against.map_or_else(|| "anybody".to_owned(), |rank| format!("node {rank}"));
        let cause = format!("node {node} holds no proof against {whom}");
        let cure = "look who does with `weft status`; only broadcasts of the form \"signed\" \
                    leave proofs";
        return Err(Failure::of(Code::InputMissing, cause, cure));
    };
    let object = json!({
        "ok": true,
        "node": node,
        "origin": origin,
        "seq": seq,
        "bytes": bytes.0.len(),
        "proof": STANDARD.encode(&bytes.0),
        "output": arguments.output,
    });
    let unwritable = |error: std::io::Error| {
        let cause = format!("the proof cannot be written: {error}");
        Failure::of(Code::Permission, cause, "choose a file that this user may write to")
    };
    let mut text = String::new();
    if let Some(path) = &arguments.output {
        fs::write(path, &bytes.0).map_err(unwritable)?;
        text = format!(
            "{}: node {origin} told two things as number {seq}; `weft neb verify` checks it\n",
            path.display()
        );
    } else if !output.is_json() {
        let mut out = stdout().lock();
        out.write_all(&bytes.0).and_then(|()| out.flush()).map_err(unwritable)?;
    }
    output.finish(&object, &text);
    Ok(())
}
