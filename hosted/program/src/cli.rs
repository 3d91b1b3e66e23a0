//! The `weft` program.
//!
//! Each subcommand is a module with its arguments and a `run`. People get text and progress
//! bars on a terminal; `--json` makes every command end with one line holding one object, and
//! errors one object on standard error: `{"error": {"code", "cause", "cure"}}`. The exit status
//! of an error is its code's ([`weft::explain`]), of success 0.

mod bcast;
mod bench;
mod check;
mod cluster_choice;
mod completions;
mod component;
mod config;
mod conform;
mod demo;
mod doctor;
mod down;
mod draft;
mod fabric_choice;
mod failure;
mod get;
mod group;
mod guard;
mod handover;
mod host_list;
mod inject;
mod isolate;
mod key;
mod metrics;
mod neb;
mod node;
mod output;
mod put;
mod rank_choice;
mod report;
mod rl;
mod run;
mod sim;
mod status;
mod survey;
mod task;
mod tensor;
mod top;
mod up;
mod vote;
mod watch;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser, Subcommand};
use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGXFSZ;

use crate::log;
use failure::Failure;
use output::Output;
use weft::explain::Code;

/// Group communication over one-sided memory that survives its members' failures.
#[derive(Debug, Parser)]
#[command(name = "weft", version, about, max_term_width = 100, after_help = ENVIRONMENT)]
struct Arguments {
    /// Print machine-readable JSON: the last line is one object.
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: Command,
}

/// The variables that each command reads.
const ENVIRONMENT: &str = "\
Environment:
  WEFT_LOG          What is logged to standard error: `error` (the default), `warn`, `info`,
                    `debug` or `trace`; for a part of it `weft::node=debug`
  WEFT_LOG_FORMAT   `text` (the default), or `json` or `logfmt` for programs that read the log
  WEFT_RUNTIME_DIR  The directory of the sockets; otherwise `weft` below $XDG_RUNTIME_DIR, /run (as
                    root) or the user's state directory";

#[derive(Debug, Subcommand)]
enum Command {
    /// A cluster of four works, loses members in every way and gets them back; all is verified.
    Demo(demo::DemoArguments),
    /// Start a cluster on this machine and stay with it until it ends.
    Up(up::UpArguments),
    /// Run a program as every member of a cluster on this machine, until all have finished.
    Run(run::RunArguments),
    /// End a running cluster.
    Down(down::DownArguments),
    /// Run one node of a cluster.
    Node(node::NodeArguments),
    /// Make the key that nodes on several hosts share.
    Key(key::KeyArguments),
    /// Check a cluster file, and that this host has the programs it names; start nothing.
    Check(check::CheckArguments),
    /// Explain a key of the cluster file, or print the file's JSON schema.
    Config(config::ConfigArguments),
    /// Show every node of a running cluster.
    Status(status::StatusArguments),
    /// Show every node live, until q is pressed.
    Top(top::TopArguments),
    /// Print what happens in a running cluster: views, joins, removals, suspicions.
    Watch(watch::WatchArguments),
    /// Print the counters of a node as OpenMetrics, or where nodes serve them.
    Metrics(metrics::MetricsArguments),
    /// Put lines of standard input into a node's mailbox.
    Put(put::PutArguments),
    /// Take messages from a node's mailbox to standard output.
    Get(get::GetArguments),
    /// Broadcast a file to every node, or receive one.
    Bcast(bcast::BcastArguments),
    /// Show the groups of the cluster file, or enter a barrier.
    Group(group::GroupArguments),
    /// Send the tensors of a file to a node, by name and step.
    Send(tensor::TensorSendArguments),
    /// Receive tensors by name and step into a file.
    Recv(tensor::TensorRecvArguments),
    /// Show the tensors that nodes keep, or end a step.
    Tensors(tensor::TensorsArguments),
    /// Export and verify proofs that a node sent different messages to different nodes.
    Neb(neb::NebArguments),
    /// Kill, hang or cut off a node of a running cluster, or have it lie.
    Inject(inject::InjectArguments),
    /// Shut a node out of the cluster until it is released.
    Isolate(isolate::IsolateArguments),
    /// Admit an isolated node again.
    Release(isolate::IsolateArguments),
    /// Make another node the manager, in order: no node is restarted.
    Handover(handover::HandoverArguments),
    /// Report an error, or the progress, of one of a node's tasks.
    Report(report::ReportArguments),
    /// Vote for a task that is a version of an N-version task.
    Vote(vote::VoteArguments),
    /// Start, stop, restart or isolate a task of a node.
    Task(task::TaskArguments),
    /// Run any program as a task of a node of a running cluster, and end as it ends.
    Guard(guard::GuardArguments),
    /// Measure timers, mailboxes, broadcasts, recovery and more on this machine.
    Bench(bench::BenchArguments),
    /// Check, translate, try and load recovery scripts.
    Rl(rl::RlArguments),
    /// Run protocols through thousands of failures in virtual time.
    Sim(sim::SimArguments),
    /// Try every rule of the fabric's contract on this machine or device, and report what is seen.
    Conform(conform::ConformArguments),
    /// What this machine can do, and the command that mends what it cannot.
    Doctor(doctor::DoctorArguments),
    /// Print what a shell needs to complete the command line.
    Completions(completions::CompletionsArguments),
    /// Write the manual pages of all commands.
    Man(completions::ManArguments),
    /// The component process of a node; started by the node itself.
    #[command(hide = true)]
    Component,
}

/// Runs the program with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    // Before the frames that take it.
    match getrlimit(Resource::Stack).current {
        Some(bytes) if bytes < STACK_BYTES => small_stack(bytes),
        Some(_) | None => run(),
    }
}

/// What the command line takes of the stack, in a build for debugging.
const STACK_BYTES: u64 = 512 << 10;

#[inline(never)]
fn small_stack(bytes: u64) -> ExitCode {
    let cause = format!("a stack of {} KiB is too small", bytes >> 10);
    let failure = Failure::of(Code::Limit, cause, "run `ulimit -s 8192` before weft");
    failure.report(Output::new(std::env::args_os().any(|argument| argument == "--json")))
}

#[inline(never)]
fn run() -> ExitCode {
    let logs = log::to_standard_error();
    outlive_limit_of_files();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::report_usage(&error, &Arguments::command()),
    };
    let output = Output::new(arguments.json);
    if let Err(unknown) = logs {
        let cure = format!("set {} to text, json or logfmt, or unset it", log::FORMAT_VARIABLE);
        return Failure::of(Code::Usage, unknown.to_string(), cure).report(output);
    }
    let done = dispatch(arguments.command, output);
    match done.and_then(|status| output.check().map(|()| status)) {
        Ok(status) => status,
        Err(failure) => failure.report(output),
    }
}

fn dispatch(command: Command, output: Output) -> Result<ExitCode, Failure> {
    let done = match command {
        Command::Run(arguments) => return run::run(arguments, output),
        Command::Guard(arguments) => return guard::run(&arguments, output),
        Command::Demo(arguments) => demo::run(&arguments, output),
        Command::Up(arguments) => up::run(&arguments, output),
        Command::Down(arguments) => down::run(&arguments, output),
        Command::Node(arguments) => node::run(&arguments, output),
        Command::Key(arguments) => key::run(&arguments, output),
        Command::Check(arguments) => check::run(&arguments, output),
        Command::Config(arguments) => config::run(&arguments, output),
        Command::Completions(arguments) => {
            completions::run(&arguments, output);
            Ok(())
        }
        Command::Man(arguments) => completions::man(&arguments, output),
        Command::Status(arguments) => status::run(&arguments, output),
        Command::Top(arguments) => top::run(&arguments, output),
        Command::Watch(arguments) => watch::run(&arguments, output),
        Command::Metrics(arguments) => metrics::run(&arguments, output),
        Command::Put(arguments) => put::run(&arguments, output),
        Command::Get(arguments) => get::run(&arguments, output),
        Command::Bcast(arguments) => bcast::run(&arguments, output),
        Command::Group(arguments) => group::run(&arguments, output),
        Command::Send(arguments) => tensor::send(&arguments, output),
        Command::Recv(arguments) => tensor::recv(&arguments, output),
        Command::Tensors(arguments) => tensor::steps(&arguments, output),
        Command::Neb(arguments) => neb::run(&arguments, output),
        Command::Inject(arguments) => inject::run(&arguments, output),
        Command::Isolate(arguments) => isolate::isolate(&arguments, output),
        Command::Release(arguments) => isolate::release(&arguments, output),
        Command::Handover(arguments) => handover::run(&arguments, output),
        Command::Report(arguments) => report::run(&arguments, output),
        Command::Vote(arguments) => vote::run(&arguments, output),
        Command::Task(arguments) => task::run(&arguments, output),
        Command::Bench(arguments) => bench::run(&arguments, output),
        Command::Rl(arguments) => rl::run(&arguments, output),
        Command::Sim(arguments) => sim::run(&arguments, output),
        Command::Conform(arguments) => conform::run(&arguments, output),
        Command::Doctor(arguments) => doctor::run(&arguments, output),
        Command::Component => component::run(),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// The status of a node that runs, for tests.
#[cfg(test)]
pub(crate) fn node_status() -> weft::node::control::NodeStatus {
    survey::tests::node_status(0, survey::tests::Seen::default())
}

/// A file that may not grow becomes the error EFBIG of its writer. With a handler, which programs
/// that this one starts do not inherit, unlike a signal that is ignored.
fn outlive_limit_of_files() {
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, Arc::default()) {
        tracing::warn!(%error, "a file beyond the limit on its size ends this process");
    }
}
