//! From subjects to a report: rounds in which rivals take turns.

use weft_driver::{Device, DeviceChoice};

use super::circle::Circle;
use super::companion::Companions;
use super::error::VerbsBenchError;
use super::fence;
use super::perftest::{self, Measured, Tool};
use super::pins::Pins;
use super::report::{BareBroadcast, Round, VerbsReport, VerbsRow, thousandths};
use super::subject::{VerbsOp, VerbsSubject};
use super::word::VerbsTurn;
use crate::figure::Samples;
use crate::host::CpuStall;

/// How long the host is watched in each round.
const WATCH_NS: u64 = 50_000_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct VerbsPlan {
    /// On which device.
    pub device: DeviceChoice,
    /// In this order.
    pub subjects: Vec<VerbsSubject>,
    /// How often rivals take turns.
    pub rounds: u32,
    /// Short operations in one turn; long ones are fewer.
    pub iterations: u32,
}

/// Measures; `on_turn` is called once for each subject and round.
///
/// # Errors
/// [`VerbsBenchError`]; its processes are gone then.
pub fn run(plan: &VerbsPlan, mut on_turn: impl FnMut()) -> Result<VerbsReport, VerbsBenchError> {
    let device = Device::open(&plan.device)?;
    let pins = Pins::new()?;
    let mut companions = Companions::start(&device, &pins)?;
    let mut circle = Circle::new(&plan.device)?;
    let mut stall = CpuStall::default();
    let mut astray = 0;
    let mut courses: Vec<_> =
        plan.subjects.iter().map(|subject| (*subject, [vec![], vec![], vec![]])).collect();
    for _ in 0..plan.rounds {
        for (subject, [ours, rivals, bare]) in &mut courses {
            let iterations = subject.iterations(plan.iterations);
            let samples = match subject.what {
                VerbsOp::Broadcast => circle.run(subject.bytes, iterations, &pins)?,
                VerbsOp::Tree => circle.run_tree(subject.bytes, iterations, &pins)?,
                VerbsOp::TensorRead | VerbsOp::TensorWrite => {
                    let is_written = subject.what == VerbsOp::TensorWrite;
                    circle.run_tensor(is_written, (subject.bytes, iterations), &pins)?
                }
                VerbsOp::Write
                | VerbsOp::Read
                | VerbsOp::FetchAdd
                | VerbsOp::Bandwidth
                | VerbsOp::Mailbox => companions.run(VerbsTurn::Subject(*subject), iterations)?,
            };
            ours.push(round(*subject, &samples)?);
            if subject.what == VerbsOp::Broadcast {
                let samples = circle.run_bare(subject.bytes, iterations, &pins)?;
                bare.push(round(*subject, &samples)?);
            }
            rivals.push(match subject.what {
                VerbsOp::Mailbox => {
                    round(*subject, &companions.run(VerbsTurn::AddAndWrite, iterations)?)?
                }
                VerbsOp::Broadcast => {
                    let mut alone = |what| {
                        let part = VerbsSubject { what, bytes: subject.bytes };
                        rival(part, iterations, &device, &pins, &mut astray)
                    };
                    let (write, read) = (alone(VerbsOp::Write)?, alone(VerbsOp::Read)?);
                    Round { best: write.best + read.best, typical: write.typical + read.typical }
                }
                VerbsOp::Write
                | VerbsOp::Read
                | VerbsOp::FetchAdd
                | VerbsOp::Bandwidth
                | VerbsOp::Tree
                | VerbsOp::TensorRead
                | VerbsOp::TensorWrite => rival(*subject, iterations, &device, &pins, &mut astray)?,
            });
            on_turn();
        }
        stall.watch(WATCH_NS);
    }
    let rows = courses.iter().map(|(subject, [ours, rivals, bare])| {
        Some(VerbsRow {
            bare: BareBroadcast::new(ours, bare),
            ..VerbsRow::new(*subject, ours, rivals)?
        })
    });
    let rows: Option<Vec<_>> = rows.collect();
    let rows = rows.ok_or(VerbsBenchError::OutOfStep("a subject without a round"))?;
    Ok(VerbsReport {
        device: device.name().to_owned(),
        processors: pins.count(),
        rounds: plan.rounds,
        longest_stall_us: thousandths(stall.longest_ns as f64 / 1e3),
        astray,
        reached: rows.iter().all(|row| row.reached),
        rows,
        fences: fence::measure(&plan.device)?,
    })
}

/// Our figures of one turn.
fn round(subject: VerbsSubject, samples: &Samples) -> Result<Round, VerbsBenchError> {
    let figure = samples.figure().ok_or(VerbsBenchError::OutOfStep("a turn without a sample"))?;
    let unit = |ns: f64| match subject.what.is_rate() {
        true => f64::from(subject.bytes) * 1e9 / ns / f64::from(1 << 20),
        false => ns / 1e3,
    };
    Ok(Round { best: unit(figure.min_ns), typical: unit(figure.p50_ns) })
}

/// The rival's figures of one turn; `astray` counts the runs that were none.
fn rival(
    subject: VerbsSubject,
    iterations: u32,
    device: &Device,
    pins: &Pins,
    astray: &mut u32,
) -> Result<Round, VerbsBenchError> {
    const LATENCY: [&str; 2] = ["t_min[usec]", "t_typical[usec]"];
    const BANDWIDTH: [&str; 2] = ["BW average[MB/sec]", "BW average[MB/sec]"];
    let tool = Tool {
        name: subject.rival(),
        device: device.name().to_owned(),
        port: device.port(),
        bytes: subject.bytes,
        iterations,
        columns: if subject.what.is_rate() { BANDWIDTH } else { LATENCY },
    };
    let Measured { figures: [best, typical], astray: runs } = perftest::measure(&tool, pins)?;
    *astray += runs;
    Ok(Round { best, typical })
}
