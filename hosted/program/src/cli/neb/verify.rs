//! `weft neb verify`: what a third party does with a proof. It needs no cluster.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read, StdinLock};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::PollFlags;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use weft_core::neb::{PROOF_LEN_MAX, Proof, ProofError, Statement};

use super::Verify;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::clock::Deadline;
use weft::explain::Code;
use weft::readiness::{Readiness, await_events};
use weft::regular_file;
use weft::signing::PublicKey;

/// How long standard input may take to end.
const INPUT_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) fn run(arguments: &Verify, output: Output) -> Result<(), Failure> {
    let path = &arguments.proof;
    let bytes = read(path)?;
    let refuse =
        |error: ProofError| Failure::of(Code::ProofInvalid, cause(path, error), cure(error));
    let proof = Proof::decode(&bytes).map_err(refuse)?;
    let (origin, seq) = match arguments.key {
        Some(PublicKey(key)) => proof.verify_by(&key),
        None => proof.verify(),
    }
    .map_err(refuse)?;
    let statements = [proof.equivocation.one, proof.equivocation.other].map(shown);
    let key = PublicKey(proof.public);
    let object = json!({
        "ok": true,
        "equivocated": true,
        "origin": origin.0,
        "seq": seq,
        "key": key,
        "session": format!("{:016x}", proof.equivocation.session),
        "statements": statements,
    });
    let whose = match arguments.key {
        Some(_) => "the key that you gave",
        None => "compare it with the one that `weft status --json` of a node you trust shows",
    };
    let mut text = format!(
        "node {} has signed two different messages as its number {seq}\nkey {key}: {whose}\n",
        origin.0
    );
    for statement in &statements {
        let (tag, len) = (&statement["tag"], &statement["bytes"]);
        let digest = statement["sha256"].as_str().unwrap_or_default();
        // The messages of `weft inject equivocate` have none.
        let tag = if *tag == u64::MAX { String::new() } else { format!(", tag {tag}") };
        text.push_str(&format!("  {len} bytes{tag}, sha256 {digest}\n"));
    }
    output.finish(&object, &text);
    Ok(())
}

/// What one of the two messages is.
fn shown(statement: Statement<'_>) -> serde_json::Value {
    let Statement { tag, payload, .. } = statement;
    let digest: String = Sha256::digest(payload).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "tag": tag, "bytes": payload.len(), "sha256": digest })
}

/// No more than a proof can have, and one byte, so that more is noticed.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| {
        let code = match error.kind() {
            ErrorKind::NotFound => Code::InputMissing,
            _ => Code::InputUnreadable,
        };
        let cause = format!("{} cannot be read: {error}", name(path));
        Failure::of(code, cause, "name a file that `weft neb proof` wrote")
    };
    let mut bytes = Vec::new();
    if is_stdin(path) {
        let input = Paced { input: io::stdin().lock(), deadline: Deadline::after(INPUT_TIMEOUT) };
        input.take(PROOF_LEN_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        let file = regular_file::read_named(path).map_err(failed)?;
        file.take(PROOF_LEN_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    }
    Ok(bytes)
}

/// Standard input, which another program may never end.
struct Paced {
    input: StdinLock<'static>,
    deadline: Deadline,
}

impl Read for Paced {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match await_events(self.input.as_fd(), PollFlags::IN, self.deadline)? {
            Readiness::TimedOut => Err(io::Error::new(
                ErrorKind::TimedOut,
                format!("it did not end within {} s", INPUT_TIMEOUT.as_secs()),
            )),
            _ => self.input.read(into),
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What the proof is called in messages.
fn name(path: &Path) -> Cow<'_, str> {
    if is_stdin(path) { "standard input".into() } else { path.to_string_lossy() }
}

fn cause(path: &Path, error: ProofError) -> String {
    format!("{} proves nothing: {error}", name(path))
}

fn cure(error: ProofError) -> &'static str {
    match error {
        ProofError::Magic | ProofError::Length | ProofError::Slot | ProofError::Order => {
            "name a file as `weft neb proof` wrote it, unchanged"
        }
        ProofError::Version(_) => "check it with the build of weft that wrote it",
        ProofError::OtherKey => "see that key and proof are of the same node and the same run",
        ProofError::Key | ProofError::Unrelated | ProofError::Same | ProofError::Signature => {
            "believe nothing that rests on it"
        }
    }
}
