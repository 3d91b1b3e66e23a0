//! `weft bench`: measurements.

mod detect;
mod group;
mod member;
mod neb;
mod recovery;
mod rendezvous;
mod sweep;
mod wheel;

use std::time::Duration;

use clap::{Args, Subcommand};

use super::cluster_choice::seconds;
#[cfg(feature = "verbs")]
use super::fabric_choice::explained_driver;
use super::failure::Failure;
use super::output::Output;
use weft::explain::Code;
use weft_bench::{BenchError, Cell, MailboxPlan, Ucx, verbs};

/// Arguments of `weft bench`.
#[derive(Debug, Args)]
pub(super) struct BenchArguments {
    #[command(subcommand)]
    subject: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// One-way latency and rate of the mailbox, beside a bare cache line and a memcpy.
    Mailbox(MailboxBenchArguments),
    /// The driver for RDMA beside perftest, on the same device and in the same run. The exit status
    /// is 0 once all is measured: whether an aim was reached says the table, and `reached` in JSON.
    Verbs(VerbsBenchArguments),
    /// Instructions of a message and of an idle poll, counted in a process that is stepped. The
    /// exit status is 0 once all is counted: whether a build stays within its limits says
    /// `reached`.
    Count(CountBenchArguments),
    /// Broadcasts: from the call to the last delivery, beside one hop of the mailbox.
    Neb(neb::NebBenchArguments),
    /// Timers: start, stop, renew and pass time, beside what others wrote for it.
    Wheel(wheel::WheelBenchArguments),
    /// From a fault to suspicion, verdict, takeover and return; and verdicts that were wrong.
    Detect(detect::DetectBenchArguments),
    /// Groups: from the root's call to the last delivery, beside MPI_Bcast and copies.
    Group(group::GroupBenchArguments),
    /// Tensors by name: in their message, read, written, handed over, beside copies and hops.
    Rendezvous(rendezvous::RendezvousArguments),
    /// Programs as members: hop and rate beside the mailbox, and how soon they learn of a verdict.
    Member(member::MemberArguments),
    /// Recovery scripts: evaluated, verified, translated, and a restart by one, beside Rust and the
    /// built-in strategy.
    Recovery(recovery::RecoveryArguments),
    /// A member of the benchmark of programs; started by the benchmark itself.
    #[command(hide = true)]
    MemberProgram(member::MeasuredProgram),
    /// The work that is counted; started by the benchmark itself, and for profilers.
    #[command(hide = true)]
    CountedWork(CountedWork),
    /// A member of the benchmark of groups; started by the benchmark itself.
    #[command(hide = true)]
    GroupMember,
    /// Clears up behind a benchmark that is ended; started by the benchmark itself.
    #[command(hide = true)]
    Sweep {
        /// The benchmark's process.
        process: u32,
    },
    /// A writer of the mailbox's benchmark; started by the benchmark itself.
    #[command(hide = true)]
    Writer,
    /// The other process of the benchmark over RDMA; started by the benchmark itself.
    #[command(hide = true)]
    VerbsPeer,
}

#[derive(Debug, Args)]
struct MailboxBenchArguments {
    /// How long each pair of message length and writers is measured, in seconds.
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", allow_negative_numbers = true)]
    seconds_per_cell: f64,

    /// Only messages of so many bytes: 8, 64 or 256; may be repeated.
    #[arg(long, value_name = "BYTES")]
    bytes: Vec<usize>,

    /// Only so many writers: 1, 2 or 3; may be repeated.
    #[arg(long, value_name = "COUNT")]
    writers: Vec<u16>,

    /// Beside UCX as well, in each round with one writer: by `ucx_perftest` of this folder, of its
    /// bin, or of PATH.
    #[arg(long, value_name = "DIR")]
    rivals: Option<std::path::PathBuf>,
}

#[derive(Debug, Args)]
struct VerbsBenchArguments {
    /// How often rivals take turns.
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = between(1, 1000))]
    rounds: u32,

    /// Short operations in one turn; long ones are fewer.
    #[arg(long, default_value_t = 1000, value_name = "COUNT", value_parser = between(20, 100_000))]
    iterations: u32,

    /// The device; if not given that of WEFT_RDMA_DEVICE, else the first one.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,

    /// The device's port.
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    port: u8,
}

fn between(least: i64, most: i64) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(least..=most)
}

#[derive(Debug, Args)]
struct CountBenchArguments {
    /// Messages, or polls, that each row is counted over; one put carries 128 of 8 bytes. A step of
    /// the process takes 50 us or so.
    #[arg(long, default_value_t = 128, value_name = "COUNT",
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    messages: u64,
}

#[derive(Debug, Args)]
struct CountedWork {
    /// Mark what is counted, for the parent.
    #[arg(long)]
    stepped: bool,

    /// Messages to put and take.
    #[arg(long, default_value_t = 100_000, value_name = "COUNT")]
    messages: u64,

    /// Messages put at a time; as many as one write carries if not given.
    #[arg(long, value_name = "COUNT")]
    batch: Option<u32>,

    /// Length of a message: 8, or 16 and more.
    #[arg(long, default_value_t = 8, value_name = "BYTES")]
    bytes: usize,
}

/// The longest message, so that the buffers of all members fit in memory.
const LENGTH_MAX: usize = 1 << 30;

fn length(word: &str) -> Result<usize, String> {
    let units = [('K', 10), ('M', 20), ('G', 30)];
    let unit = units.into_iter().find_map(|(unit, shift)| Some((word.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((word, 0));
    let length = digits.parse::<usize>().ok().and_then(|count| count.checked_mul(1 << shift));
    let length = length.filter(|length| (8..=LENGTH_MAX).contains(length));
    length.ok_or_else(|| "give 8 to 1G, as in 4096, 4K or 64M".to_owned())
}

pub(super) fn run(arguments: &BenchArguments, output: Output) -> Result<(), Failure> {
    // Those that have directories of clusters: nothing else of a benchmark outlives its process.
    let has_directories = matches!(
        arguments.subject,
        BenchCommand::Detect(_)
            | BenchCommand::Group(_)
            | BenchCommand::Member(_)
            | BenchCommand::Recovery(_)
    );
    let _sweeper = has_directories.then(sweep::Sweeper::start).transpose()?;
    match &arguments.subject {
        BenchCommand::Mailbox(mailbox) => run_mailbox(mailbox, output),
        BenchCommand::Verbs(verbs) => run_verbs(verbs, output),
        BenchCommand::VerbsPeer => run_verbs_peer(),
        BenchCommand::Count(count) => run_count(count, output),
        BenchCommand::CountedWork(work) => run_counted_work(work),
        BenchCommand::Neb(arguments) => neb::run(arguments, output),
        BenchCommand::Wheel(arguments) => wheel::run(arguments, output),
        BenchCommand::Detect(arguments) => detect::run(arguments, output),
        BenchCommand::Group(arguments) => group::run(arguments, output),
        BenchCommand::GroupMember => weft_bench::group::run_member().map_err(Failure::new),
        BenchCommand::Rendezvous(arguments) => rendezvous::run(arguments, output),
        BenchCommand::Member(arguments) => member::run(arguments, output),
        BenchCommand::Recovery(arguments) => recovery::run(arguments, output),
        BenchCommand::MemberProgram(arguments) => member::run_program(arguments),
        BenchCommand::Sweep { process } => sweep::run(*process),
        BenchCommand::Writer => weft_bench::run_writer().map_err(Failure::new),
    }
}

fn run_mailbox(arguments: &MailboxBenchArguments, output: Output) -> Result<(), Failure> {
    let per_cell = seconds("--seconds-per-cell", arguments.seconds_per_cell)?;
    if per_cell < Duration::from_millis(20) {
        let cause =
            format!("--seconds-per-cell is {}, too short to sample", per_cell.as_secs_f64());
        return Err(Failure::of(Code::Usage, cause, "give 0.02 seconds or more"));
    }
    let wanted = |cell: &Cell| {
        (arguments.bytes.is_empty() || arguments.bytes.contains(&cell.bytes))
            && (arguments.writers.is_empty() || arguments.writers.contains(&cell.writers))
    };
    let cells: Vec<Cell> = Cell::all().filter(wanted).collect();
    if cells.is_empty() {
        let cause = "no such messages or writers are measured";
        let cure = "choose --bytes from 8, 64 and 256, and --writers from 1, 2 and 3";
        return Err(Failure::of(Code::Usage, cause, cure));
    }
    let ucx = arguments.rivals.as_deref().map(Ucx::find).transpose();
    let ucx = ucx.map_err(|error| Failure::new(BenchError::from(error)))?;
    let bar = output.progress(cells.len() as u64, "measuring");
    let report = weft_bench::run(&MailboxPlan { cells, per_cell, ucx }, |_| bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

#[cfg(feature = "verbs")]
fn run_verbs(arguments: &VerbsBenchArguments, output: Output) -> Result<(), Failure> {
    let name = arguments.device.clone().or_else(|| std::env::var("WEFT_RDMA_DEVICE").ok());
    let plan = verbs::VerbsPlan {
        device: weft_driver::DeviceChoice { name, port: arguments.port },
        subjects: verbs::VerbsSubject::ALL.to_vec(),
        rounds: arguments.rounds,
        iterations: arguments.iterations,
    };
    let turns = u64::from(plan.rounds) * plan.subjects.len() as u64;
    let bar = output.progress(turns, "measuring");
    let report = verbs::run(&plan, || bar.inc(1));
    bar.finish_and_clear();
    let report = report.map_err(|error| match error {
        verbs::VerbsBenchError::Driver(error) => explained_driver(error),
        error => Failure::new(error),
    })?;
    output.finish(&report, &report.to_string());
    Ok(())
}

#[cfg(feature = "verbs")]
fn run_verbs_peer() -> Result<(), Failure> {
    verbs::run_peer().map_err(Failure::new)
}

#[cfg(not(feature = "verbs"))]
fn run_verbs(_: &VerbsBenchArguments, _: Output) -> Result<(), Failure> {
    Err(Failure::new(verbs::VerbsBenchError::NotBuilt))
}

#[cfg(not(feature = "verbs"))]
fn run_verbs_peer() -> Result<(), Failure> {
    Err(Failure::new(verbs::VerbsBenchError::NotBuilt))
}

fn run_count(arguments: &CountBenchArguments, output: Output) -> Result<(), Failure> {
    let report = weft_bench::count(arguments.messages).map_err(Failure::new)?;
    output.finish(&report, &report.to_string());
    Ok(())
}

fn run_counted_work(arguments: &CountedWork) -> Result<(), Failure> {
    let CountedWork { stepped, messages, batch, bytes } = *arguments;
    let done = if stepped {
        weft_bench::do_counted_work(messages)
    } else {
        weft_bench::put_and_take(bytes, messages, batch)
    };
    done.map_err(Failure::new)
}
