//! The limit: a copy of bytes that lie in the caches of another processor.

use std::hint::{black_box, spin_loop};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use crate::error::BenchError;
use crate::figure::Samples;
use crate::host;
use weft::clock::now_ns;

/// Copies `bytes` so many times, each time after another thread has written them.
pub(crate) fn measure(bytes: usize, times: usize) -> Result<Samples, BenchError> {
    let (to_copier, written) = sync_channel::<Vec<u8>>(1);
    let (to_writer, copied) = sync_channel::<Vec<u8>>(1);
    thread::scope(|scope| {
        let copier = scope.spawn(move || {
            host::take_processor(1);
            let (mut samples, mut target) = (Samples::default(), vec![0_u8; bytes]);
            while let Ok(source) = written.recv() {
                let began = now_ns();
                black_box(&mut target).copy_from_slice(black_box(&source));
                samples.push(now_ns() - began, 1);
                if to_writer.send(source).is_err() {
                    break;
                }
            }
            samples
        });
        let writer = scope.spawn(move || write(bytes, times, &to_copier, &copied));
        writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(copier.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Writes the bytes for each copy, at another processor.
fn write(
    bytes: usize,
    times: usize,
    to_copier: &SyncSender<Vec<u8>>,
    copied: &Receiver<Vec<u8>>,
) -> Result<(), BenchError> {
    const LOST: BenchError = BenchError::OutOfStep("the thread that copies has ended");
    host::take_processor(0);
    let mut buffer = vec![0_u8; bytes];
    for time in 0..times {
        black_box(&mut buffer).fill(time.to_le_bytes()[0]);
        to_copier.send(buffer).map_err(|_| LOST)?;
        // It keeps its processor, so that the other thread has to copy on another one.
        buffer = loop {
            match copied.try_recv() {
                Ok(buffer) => break buffer,
                Err(TryRecvError::Empty) => spin_loop(),
                Err(TryRecvError::Disconnected) => return Err(LOST),
            }
        };
    }
    Ok(())
}
