//! The program and its client library as people and scripts use them: real processes.
//!
//! ```text
//!   babble     a peer that is met and talks nonsense
//!   c          the library for C: its examples, its installer, what it refuses
//!   starts     components and nodes that cannot start
//!   broadcast  one file for all nodes, while members die and lie
//!   program    a cluster from start to end: up, put, get, status, inject, every way to end it
//!   database   what is known of tasks and nodes outlives those who know it
//!   decided    ends of broadcasts without waiting
//!   demo       the demonstration on inputs of every size
//!   group      files along the trees of groups, and barriers
//!   hooks      commands that the manager's node runs for events
//!   hosts      keys and devices: what is refused before anything starts
//!   hung       a supervisor that is stopped while its component goes on
//!   identity   a cluster whose directory was removed, and another of its name
//!   readers    readers that pause, die or have no room: nothing is lost, and no mailbox is blocked
//!   readme     the commands of README.md
//!   refusals   what commands refuse: exit status, code, cause and cure
//!   removal    broadcasts without a node that was removed, or waiting for it
//!   command_line  a file that is checked, completions, manual pages
//!   control    clients of a node that lie, stay silent or leave
//!   evidence   conclusions outlive the node that drew them
//!   faults     what is broken by order
//!   isolation  nodes that are isolated by order, and released
//!   metrics    what scrapers read of a node
//!   load       clients that pipeline, do not read, or only take a place
//!   peers      strangers at the socket where nodes meet
//!   scripted   recovery by a script
//!   run        programs as members, and every way that they end
//!   signed     broadcasts with signatures, and what a proof of a lie is worth
//!   storm      hundreds of kills under traffic, and a ledger that must balance
//!   tasks      programs under guard
//!   task_lives and what becomes of them when their node dies
//!   tensors    files of tensors between nodes
//!   timing     single values of the timing profile
//!   top        the live view on a terminal: keys, sizes, every way that it ends
//!   unit       what the unit of the package starts, and what systemd hears of it
//!   watch      those who only watch
//!      │
//!   place      one test's own runtime directory, and every process that was started in it
//!   said       how a command ended and what it printed
//! ```
//!
//! No test sleeps for something to have happened: it waits for the thing itself, and the
//! deadline of that wait is there to end a hang, not to measure.

mod babble;
mod broadcast;
mod c;
mod command_line;
mod control;
mod damage;
mod database;
mod decided;
mod demo;
mod evidence;
mod faults;
mod group;
mod guard;
mod handover;
mod hooks;
mod hosts;
mod hung;
mod identity;
mod isolation;
mod ledger;
mod limits;
mod load;
mod metrics;
mod parallel;
mod partition;
mod peers;
mod place;
mod program;
mod readers;
mod readme;
mod refusals;
mod removal;
mod run;
mod said;
mod scripted;
mod signed;
mod starts;
mod startup_watchdog;
mod storm;
mod survivors;
mod task_lives;
mod tasks;
mod tensors;
mod timing;
mod top;
mod torso;
mod unit;
mod watch;

use std::time::Duration;

/// How long anything may take before it counts as hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
