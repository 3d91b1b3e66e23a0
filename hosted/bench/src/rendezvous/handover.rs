//! Hand-over, client to client: two nodes of this program, and a client of each as a thread.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use weft_core::ids::Rank;
use weft_core::rendezvous::{Dtype, Shape};

use super::TensorCell;
use crate::error::BenchError;
use crate::figure::Samples;
use weft::client::{Client, SendUntil};
use weft::clock::now_ns;
use weft::cluster::{Cluster, ClusterName, Rendezvous};
use weft::launch::Launched;
use weft::shm::SealedDraft;
use weft::tensor::{SealedTensor, TensorName};

const PATIENCE: Duration = Duration::from_secs(60);
/// Tensors of each length in one round, and those before that are not counted.
const COUNTED: u64 = 30;
const WARM_UP: u64 = 5;
const MARK: &[u8; 8] = b"handover";

/// All lengths, once.
pub(super) fn turn(cells: &mut [TensorCell]) -> Result<(), BenchError> {
    let longest = cells.iter().map(|cell| cell.bytes).max().unwrap_or_default();
    // What its receiver has and what its sender still keeps lie in different stores.
    let store_mib = (longest >> 20) + 64;
    let rendezvous = Rendezvous { pool_mib: 1, store_mib, ..Rendezvous::default() };
    let name = format!("bench-{}-handover", std::process::id());
    let name = name.parse::<ClusterName>().unwrap_or_default();
    let cluster = Cluster { name, nodes: 2, rendezvous, ..Cluster::default() };
    let mut launched = Launched::start(&cluster).map_err(BenchError::Launch)?;
    let measured = measure_all(&mut launched, cells);
    let stopped = launched.stop().map_err(BenchError::Directory);
    measured.and(stopped)
}

fn measure_all(launched: &mut Launched, cells: &mut [TensorCell]) -> Result<(), BenchError> {
    launched.await_running(PATIENCE).map_err(BenchError::Launch)?;
    for (step, cell) in (0..).zip(cells) {
        let tensor = tensor(cell.bytes)?;
        let connect = |rank| launched.connect(rank, PATIENCE);
        let (sender, receiver, looker) = (connect(0)?, connect(1)?, connect(1)?);
        cell.handover.add(measure(step, &tensor, (sender, receiver, looker))?);
    }
    Ok(())
}

/// A tensor of zeros behind its mark: what is never looked at costs no time to make.
fn tensor(bytes: usize) -> Result<SealedTensor, BenchError> {
    let shape = Shape::new(Dtype::U8, &[bytes as u64]);
    let shape = shape.map_err(|error| BenchError::Plan(error.to_string()))?;
    let mut draft = SealedDraft::create("weft-bench-tensor", bytes as u64)?;
    draft.write_all(MARK).map_err(BenchError::Thread)?;
    Ok(SealedTensor::open(shape, draft.finish()?)?)
}

/// From each send, for which a receive waits, to its receipt.
fn measure(
    step: i64,
    tensor: &SealedTensor,
    (mut sender, mut receiver, mut looker): (Client, Client, Client),
) -> Result<Samples, BenchError> {
    let name = TensorName { edge: "handover", step };
    let (began, all) = (AtomicU64::new(0), WARM_UP + COUNTED);
    let (to_sender, released) = sync_channel(1);
    thread::scope(|scope| {
        let began = &began;
        let receiving = scope.spawn(move || {
            let mut samples = Samples::default();
            for number in 0..all {
                let received = receiver.receive_tensor(Rank(0), name, PATIENCE)?;
                let ended = now_ns();
                let tensor = received.tensor.ok_or(BenchError::OutOfStep("a dead tensor"))?;
                if !tensor.view().bytes().starts_with(MARK) {
                    return Err(BenchError::OutOfStep("another tensor was received"));
                }
                if number >= WARM_UP {
                    samples.push(ended.saturating_sub(began.load(Ordering::Acquire)), 1);
                }
                receiver.release_tensor(received.number)?;
                let _ = to_sender.send(());
            }
            Ok(samples)
        });
        let sent = (0..all).try_for_each(|_| {
            while looker.tensors()?.receives == 0 {}
            began.store(now_ns(), Ordering::Release);
            sender.send_tensor(Rank(1), name, Some(tensor), (SendUntil::Kept, PATIENCE))?;
            released.recv().map_err(|_| BenchError::OutOfStep("the receiver has ended"))
        });
        let received = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        received.and_then(|samples| sent.map(|()| samples))
    })
}
