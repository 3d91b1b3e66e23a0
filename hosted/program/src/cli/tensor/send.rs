//! `weft send`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{MANIFEST, of_file};
use crate::cli::cluster_choice::{ClusterChoice, seconds};
use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::client::{Client, ClientError, SendUntil};
use weft::core::ids::{Peer, Rank};
use weft::core::rendezvous::{Dtype, Key};
use weft::explain::{Code, Explain as _};
use weft::node::control::{Refused, TensorRefused};
use weft::tensor::file::{Kind, TensorFile, manifest};
use weft::tensor::{SealedTensor, TensorName, TensorView};

/// Arguments of `weft send`.
#[derive(Debug, Args)]
pub(crate) struct TensorSendArguments {
    /// A .npy or .safetensors file.
    #[arg(required_unless_present = "dead", conflicts_with = "dead")]
    file: Option<PathBuf>,

    /// The node that sends.
    #[arg(long, value_name = "RANK")]
    from: u16,

    /// The node that receives, which may be the same.
    #[arg(long, value_name = "RANK")]
    to: u16,

    /// The step.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    step: i64,

    /// The name to send one tensor under; otherwise that of the .npy file, or of the tensor.
    #[arg(long, value_name = "NAME")]
    edge: Option<String>,

    /// Only this tensor of the .safetensors file.
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,

    /// Send a dead tensor: its receiver learns that there is none.
    #[arg(long, requires = "edge")]
    dead: bool,

    /// End only once the receiver has it; otherwise once the node keeps it.
    #[arg(long)]
    wait: bool,

    /// Give up after so many seconds without room, or without its receiver.
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", allow_negative_numbers = true)]
    timeout: f64,

    #[command(flatten)]
    cluster: ClusterChoice,
}

/// The most tensors of a file that are sent whether its receiver is there or not: a node keeps
/// twice as many at a time, for all of its senders.
const ALONE_MAX: usize = 32;

/// What is sent, in its order.
#[derive(Clone, Copy)]
enum SendItem {
    /// The manifest of the file.
    Manifest,
    /// The tensor of this number in the file.
    Entry(usize),
    Dead,
}

pub(crate) fn run(arguments: &TensorSendArguments, output: Output) -> Result<(), Failure> {
    let timeout = seconds("--timeout", arguments.timeout)?;
    let mut file = match &arguments.file {
        Some(path) => Some(TensorFile::open(path).map_err(|error| of_file(path, &error))?),
        None => None,
    };
    let items = items(arguments, file.as_ref())?;
    // First what may fail before anything is sent.
    for (edge, content) in &items {
        check_name(arguments, edge, *content)?;
    }
    let running = arguments.cluster.find()?;
    if let Some(file) = &file {
        check_lengths(file, &items, running.cluster.longest_tensor())?;
    }
    let mut client = running.connect(arguments.from)?;
    let (mut sent, mut bytes) = (Vec::new(), 0);
    for (edge, content) in &items {
        let tensor = load(arguments, file.as_mut(), content)?;
        let name = TensorName { edge, step: arguments.step };
        let is_awaited = arguments.wait || needs_receiver(*content, items.len());
        let until = if is_awaited { SendUntil::Received } else { SendUntil::Kept };
        let number = client
            .send_tensor(Rank(arguments.to), name, tensor.as_ref(), (until, timeout))
            .map_err(|error| {
                unsent(refused(error, arguments, *content), arguments, sent.len(), items.len())
            })?;
        bytes += tensor.map_or(0, |tensor| tensor.view().shape().bytes());
        sent.push(json!({ "edge": edge, "number": number }));
    }
    report(&client, arguments, (&sent, bytes), output);
    Ok(())
}

fn report(
    client: &Client,
    arguments: &TensorSendArguments,
    (sent, bytes): (&[serde_json::Value], u64),
    output: Output,
) {
    let (from, to, step) = (client.rank(), arguments.to, arguments.step);
    let state = if arguments.wait { "received" } else { "kept" };
    let object = json!({
        "ok": true, "from": from, "to": to, "step": step, "state": state, "bytes": bytes,
        "sent": sent,
    });
    let by = if arguments.wait { to } else { from };
    let count = sent.len();
    output.finish(&object, &format!("{state} by node {by}: {bytes} bytes, values: {count}\n"));
}

/// What the arguments and the file say to send, each with its name.
fn items(
    arguments: &TensorSendArguments,
    file: Option<&TensorFile>,
) -> Result<Vec<(String, SendItem)>, Failure> {
    let edge = arguments.edge.clone();
    let (Some(path), Some(file)) = (&arguments.file, file) else {
        return Ok(vec![(edge.unwrap_or_default(), SendItem::Dead)]);
    };
    let usage = |cause: String, cure: &str| Err(Failure::of(Code::Usage, cause, cure));
    match (Kind::of(path).map_err(|error| of_file(path, &error))?, &arguments.tensor) {
        (Kind::Npy, Some(_)) => usage(
            format!("{} holds one tensor without a name", path.display()),
            "leave `--tensor` out, or name a .safetensors file",
        ),
        (Kind::Npy, None) => {
            let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            Ok(vec![(edge.unwrap_or_else(stem), SendItem::Entry(0))])
        }
        (Kind::Safetensors, Some(name)) => {
            match file.entries.iter().position(|entry| entry.name == *name) {
                Some(at) => Ok(vec![(edge.unwrap_or_else(|| name.clone()), SendItem::Entry(at))]),
                None => {
                    let names = file.entries.iter().map(|entry| entry.name.as_str());
                    let names: Vec<_> = names.take(10).collect();
                    let cause = format!(
                        "{} has no tensor {name:?}: it has {} of them, {names:?} among them",
                        path.display(),
                        file.entries.len()
                    );
                    usage(cause, "name one of them with `--tensor`")
                }
            }
        }
        (Kind::Safetensors, None) if edge.is_some() => usage(
            format!("{} holds tensors with names of their own", path.display()),
            "choose one with `--tensor`, or leave `--edge` out",
        ),
        (Kind::Safetensors, None) => {
            let entries = file.entries.iter().enumerate();
            let entries = entries.map(|(at, entry)| (entry.name.clone(), SendItem::Entry(at)));
            Ok([(MANIFEST.to_owned(), SendItem::Manifest)].into_iter().chain(entries).collect())
        }
    }
}

fn check_name(
    arguments: &TensorSendArguments,
    edge: &str,
    content: SendItem,
) -> Result<(), Failure> {
    if edge.contains(';') {
        let cause = format!("the name {edge:?} has a `;`, which separates the parts of a key");
        return Err(Failure::of(Code::Key, cause, "give the tensor another name with `--edge`"));
    }
    let (from, to) = (Peer(arguments.from), Peer(arguments.to));
    if let Err(why) = Key::new((from, None), to, (edge, "0:0")) {
        let cause = format!("the name {edge:?} is refused: {why}");
        let cure = "name it with 1 to 480 bytes of text without `;`";
        return Err(Failure::of(Code::Key, cause, cure));
    }
    if edge == MANIFEST && !matches!(content, SendItem::Manifest) {
        let cause = format!("{MANIFEST:?} is the name of the manifest of a file");
        let cure = "give the tensor another name; `--tensor` and `--edge` do so for one of a file";
        return Err(Failure::of(Code::Key, cause, cure));
    }
    Ok(())
}

/// Whether no tensor is longer than the nodes take: before memory is taken for the first.
fn check_lengths(
    file: &TensorFile,
    items: &[(String, SendItem)],
    longest: u64,
) -> Result<(), Failure> {
    for (edge, content) in items {
        let bytes = match *content {
            SendItem::Entry(at) => file.entries[at].shape.bytes(),
            SendItem::Manifest => manifest::len(&file.header, file.entries.len()),
            SendItem::Dead => 0,
        };
        // Where there is no rendezvous, the node says so.
        if longest > 0 && bytes > longest {
            let cause = format!(
                "{edge:?} has {bytes} bytes, and the longest tensor of this cluster {longest}"
            );
            let cure = "split it, or raise rendezvous.store_mib";
            return Err(Failure::of(Code::MessageTooLong, cause, cure));
        }
    }
    Ok(())
}

fn load(
    arguments: &TensorSendArguments,
    file: Option<&mut TensorFile>,
    content: &SendItem,
) -> Result<Option<SealedTensor>, Failure> {
    let (Some(path), Some(file)) = (&arguments.file, file) else { return Ok(None) };
    let loaded = match *content {
        SendItem::Dead => return Ok(None),
        SendItem::Entry(at) => {
            let entry = file.entries[at].clone();
            file.load(&entry)
        }
        SendItem::Manifest => {
            const { assert!(Dtype::U8.size() == 1) };
            file.manifest().and_then(|manifest| {
                let dims = [manifest.len() as u64];
                let view = TensorView::of(&dims, &manifest);
                let sealed = view.map(SealedTensor::copy_of);
                let sealed = sealed.unwrap_or(Err(weft::shm::SegmentError::Length { len: 0 }));
                sealed.map_err(Into::into)
            })
        }
    };
    loaded.map(Some).map_err(|error| of_file(path, &error))
}

/// Whether what follows is sent only once the receiver has this: the manifest of a long file, which
/// would take the places of all other senders.
const fn needs_receiver(content: SendItem, values: usize) -> bool {
    matches!(content, SendItem::Manifest) && values > ALONE_MAX
}

/// The error of a tensor that the node does not keep, or no longer, or that is not received.
fn refused(error: ClientError, arguments: &TensorSendArguments, content: SendItem) -> Failure {
    let ClientError::Refused { reason: Refused::Tensor(why), .. } = &error else {
        return Failure::new(error);
    };
    // With `--wait` each value waits so, whatever the length of its file.
    if let (SendItem::Manifest, TensorRefused::NotReceived { .. }, false) =
        (content, why, arguments.wait)
    {
        let TensorSendArguments { to, step, timeout, .. } = arguments;
        let cause = format!(
            "node {to} has not received the manifest of the file within {timeout} s, and none of \
             its tensors is sent: those of a long file are sent while they are received"
        );
        let cure = format!(
            "start `weft recv --node {to} --all` before; drop the manifest with `weft tensors \
             cleanup --step {step}`, and send the file with another `--step`"
        );
        return Failure::of(Code::Timeout, cause, cure);
    }
    let is_over = matches!(why, TensorRefused::StepOver | TensorRefused::Aborted);
    if !is_over || !arguments.wait {
        return Failure::new(error);
    }
    let (code, cure) = (error.code(), error.cure());
    let cause = format!("{error}, and node {} had not confirmed the tensor before", arguments.to);
    Failure::of(code, cause, cure)
}

/// The error of a file of which some values were sent.
fn unsent(failure: Failure, arguments: &TensorSendArguments, sent: usize, all: usize) -> Failure {
    if sent == 0 {
        return failure;
    }
    let step = arguments.step;
    let drop = format!(
        "drop what was sent of this file with `weft tensors cleanup --step {step}`, and send it \
         with another `--step`"
    );
    let code = failure.code();
    Failure::of(code, format!("{sent} of {all} values were sent; but {}", failure.0), drop)
}
