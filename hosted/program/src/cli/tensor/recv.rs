//! `weft recv`.
//!
//! What was received is released once the file is whole, so that a receive that is killed loses
//! nothing: the node gives it to the next. Of a file that is longer than half of the node's store,
//! or has more tensors than a client may hold, the first are released before the last are there.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{MANIFEST, of_file};
use crate::cli::cluster_choice::{ClusterChoice, Running, seconds};
use crate::cli::draft::Draft;
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::client::{Client, ClientError, ReceivedTensor};
use weft::core::ids::Rank;
use weft::core::rendezvous::Shape;
use weft::explain::Code;
use weft::node::control::{KeptTensor, Refused, TensorRefused};
use weft::tensor::file::manifest::{self, Manifest};
use weft::tensor::file::{Entry, Kind, npy, safetensors};
use weft::tensor::{SealedTensor, ShapeText, TensorName};

/// The most values that are held until the file is whole, beside the next one.
const HELD_MAX: usize = 15;
/// The most names that an error lists.
const NAMED_MAX: usize = 10;

/// Arguments of `weft recv`.
#[derive(Debug, Args)]
pub(crate) struct TensorRecvArguments {
    /// The node that receives.
    #[arg(long, value_name = "RANK")]
    node: u16,

    /// The node that sends, which may be the same.
    #[arg(long, value_name = "RANK")]
    from: u16,

    /// The step.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    step: i64,

    /// The tensor of this name.
    #[arg(long, value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    edge: Option<String>,

    /// All tensors of a .safetensors file that was sent. If this command is killed, the next one
    /// receives the file again, unless it has more than 15 tensors or fills half of the store.
    #[arg(long)]
    all: bool,

    /// Where to: a file that ends with .npy or .safetensors.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Give up after so many seconds without the next tensor.
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: f64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

/// A receive in progress.
struct TensorReceiver<'a> {
    arguments: &'a TensorRecvArguments,
    running: &'a Running,
    client: Client,
    timeout: Duration,
    /// The numbers of what is held, the oldest first, with its bytes.
    held: VecDeque<(u64, u64)>,
}

pub(crate) fn run(arguments: &TensorRecvArguments, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let kind = Kind::of(&arguments.output).map_err(|error| of_file(&arguments.output, &error))?;
    let running = arguments.cluster.find()?;
    let client = running.connect(arguments.node)?;
    let mut draft = Draft::begin_interruptible(&arguments.output)?;
    let held = VecDeque::new();
    let mut receiver = TensorReceiver { arguments, running: &running, client, timeout, held };
    let received = match &arguments.edge {
        Some(edge) => receiver.one(kind, edge, &mut draft)?,
        None => Some(receiver.all(kind, &mut draft)?),
    };
    if received.is_some() {
        draft.finish()?;
    }
    receiver.release()?;
    let (node, from, step) = (arguments.node, arguments.from, arguments.step);
    let (tensors, bytes) = received.unwrap_or_default();
    let object = json!({
        "ok": true, "node": node, "from": from, "step": step, "dead": received.is_none(),
        "tensors": tensors, "bytes": bytes,
        "output": received.map(|_| &arguments.output),
    });
    let text = match received {
        None => format!("a dead tensor of node {from}: no file is written\n"),
        Some(_) => {
            let path = arguments.output.display();
            format!("received from node {from} into {path}: {bytes} bytes, tensors: {tensors}\n")
        }
    };
    output.finish(&object, &text);
    Ok(())
}

impl TensorReceiver<'_> {
    /// One tensor into the draft: how many, and their bytes. None if it is dead.
    fn one(
        &mut self,
        kind: Kind,
        edge: &str,
        draft: &mut Draft,
    ) -> Result<Option<(usize, u64)>, Failure> {
        let Some(tensor) = self.receive(edge, 0)? else { return Ok(None) };
        let view = tensor.view();
        draft.write(&self.preface(kind, edge, view.shape())?)?;
        draft.write(view.bytes())?;
        Ok(Some((1, view.shape().bytes())))
    }

    /// All that stands before the bytes of one tensor.
    fn preface(&self, kind: Kind, name: &str, shape: Shape) -> Result<Vec<u8>, Failure> {
        let preface = match kind {
            Kind::Npy => npy::header(shape),
            Kind::Safetensors => {
                safetensors::header(name, shape).map(|header| safetensors::preface(&header))
            }
        };
        preface.map_err(|error| of_file(&self.arguments.output, &error))
    }

    /// All tensors of a file into the draft.
    fn all(&mut self, kind: Kind, draft: &mut Draft) -> Result<(usize, u64), Failure> {
        let from = self.arguments.from;
        let Some(manifest) = self.receive(MANIFEST, 0)? else {
            return Err(broken(from, "sent a dead tensor as the manifest of a file"));
        };
        let Manifest { preface, entries } = manifest::parse(manifest.view().bytes())
            .map_err(|error| broken(from, &format!("sent no manifest of a file: {error}")))?;
        match (kind, &entries[..]) {
            (Kind::Safetensors, _) => draft.write(preface)?,
            (Kind::Npy, [(entry, _)]) => draft.write(&self.preface(kind, "", entry.shape)?)?,
            (Kind::Npy, entries) => {
                let cause =
                    format!("the file of node {from} has {} tensors, and .npy one", entries.len());
                let cure = "receive it into a .safetensors file, or one tensor with `--edge`";
                return Err(Failure::of(Code::TensorFile, cause, cure));
            }
        }
        let mut bytes = 0;
        for (Entry { name, shape, .. }, digest) in &entries {
            let tensor = self.receive(name, shape.bytes())?;
            let view = tensor.as_ref().map(SealedTensor::view);
            let Some(view) = view.filter(|view| view.shape() == *shape) else {
                let found = view.map_or("dead".to_owned(), |view| describe(view.shape()));
                let what = format!("sent {name:?} as {found}, not as {}", describe(*shape));
                return Err(broken(from, &what));
            };
            if manifest::Digest::of(view.bytes()) != *digest {
                let step = self.arguments.step;
                let what = format!(
                    "sent {name:?} in step {step} with other bytes than in this file: something \
                     else was sent under that name, too"
                );
                return Err(broken(from, &what));
            }
            draft.write(view.bytes())?;
            bytes += shape.bytes();
        }
        Ok((entries.len(), bytes))
    }

    /// The next tensor of that name, which has so many bytes if that is known; none if it is dead.
    fn receive(&mut self, edge: &str, bytes: u64) -> Result<Option<SealedTensor>, Failure> {
        self.make_room(bytes)?;
        let name = TensorName { edge, step: self.arguments.step };
        let received = self.client.receive_tensor(Rank(self.arguments.from), name, self.timeout);
        let received = received.map_err(|error| self.unsent(edge, error));
        let ReceivedTensor { number, tensor } = received?;
        let bytes = tensor.as_ref().map_or(0, |it| it.view().shape().bytes());
        self.held.push_back((number, bytes));
        Ok(tensor)
    }

    /// Releases the oldest of what is held, so that a tensor of `bytes` finds room in the store: no
    /// one else releases them.
    fn make_room(&mut self, bytes: u64) -> Result<(), Failure> {
        let cluster = &self.running.cluster;
        // A receive reserves as much as a piece of the pool before its length is known.
        let needed = bytes.max(cluster.rendezvous.tensor_len() as u64);
        let half = cluster.longest_tensor() / 2;
        let held = |it: &Self| it.held.iter().map(|(_, bytes)| bytes).sum::<u64>();
        while self.held.len() >= HELD_MAX || held(self).saturating_add(needed) > half {
            let Some((oldest, _)) = self.held.pop_front() else { break };
            self.client.release_tensor(oldest).map_err(Failure::new)?;
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), Failure> {
        for (number, _) in self.held.drain(..) {
            self.client.release_tensor(number).map_err(Failure::new)?;
        }
        Ok(())
    }

    /// The error of a tensor that did not come, with what its source has instead.
    fn unsent(&self, edge: &str, error: ClientError) -> Failure {
        let is_unsent = matches!(
            error,
            ClientError::Refused { reason: Refused::Tensor(TensorRefused::NotSent), .. }
        );
        if !is_unsent {
            return Failure::new(error);
        }
        let TensorRecvArguments { node, from, step, timeout, all, .. } = self.arguments;
        let kept = self.running.connect_now(*from).and_then(|mut client| client.tensors());
        let kept = kept.map(|list| list.kept).unwrap_or_default();
        let is_this = |it: &KeptTensor| it.key.edge == edge && it.key.step == *step;
        let others = kept.iter().filter(|it| it.key.from == *from && it.key.to == *node);
        if others.clone().any(is_this) {
            let cause = format!(
                "node {from} has sent {edge:?} of step {step}, but not all of it came to node \
                 {node} within {timeout} s"
            );
            let cure = "receive it again, with a longer `--timeout`: it is kept; `weft status` \
                        shows whether the nodes reach each other";
            return Failure::of(Code::Timeout, cause, cure);
        }
        let is_of_step = others.clone().any(|it| it.key.step == *step);
        let named = others.clone().take(NAMED_MAX);
        let mut named: Vec<_> =
            named.map(|it| format!("{:?} of step {}", it.key.edge, it.key.step)).collect();
        if others.count() > NAMED_MAX {
            named.push("others".to_owned());
        }
        let has = match &named[..] {
            [] => "keeps nothing for it".to_owned(),
            named => format!("keeps for it {}", named.join(", ")),
        };
        let what = if edge == MANIFEST { "a file".to_owned() } else { format!("{edge:?}") };
        let cause = format!(
            "node {from} has not sent {what} of step {step} to node {node} within {timeout} s: \
             it {has}"
        );
        // It has the manifest, so the file was begun.
        if *all && edge != MANIFEST {
            let cure = format!(
                "receive it again while it is being sent; if its `weft send` has ended, or another \
                 receiver has, drop what is left of it with `weft tensors cleanup --step {step}`, \
                 and send the file with another `--step`"
            );
            return Failure::of(Code::Timeout, cause, cure);
        }
        let cure = match edge == MANIFEST && is_of_step {
            true => {
                "receive one of these with `--edge`; or, if a receiver of a file has ended in the \
                 middle, send the file again with another `--step`"
            }
            false => "name a tensor that is sent, send it with `weft send`, or raise `--timeout`",
        };
        Failure::of(Code::Timeout, cause, cure)
    }
}

fn describe(shape: Shape) -> String {
    let ShapeText { dtype, dims } = shape.into();
    format!("{dtype} {dims:?}")
}

/// The error of a sender that is no `weft send`.
fn broken(from: u16, what: &str) -> Failure {
    let cure = "send the file again with `weft send`, in another step";
    Failure::of(Code::TensorFile, format!("node {from} {what}"), cure)
}
