//! What an evaluation gives: orders, and a record of itself.

use heapless::Vec;

use super::limits::{ARGS_MAX, HELD_MAX};
use super::{Entity, Verb};
use crate::ids::{OrderId, Term};

/// An order of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Changes the state of a task and answers its errors up to number `mark` (RL-3).
    Task {
        /// The task.
        task: u8,
        /// What is ordered.
        verb: Verb,
        /// The errors that it answers.
        mark: u32,
    },
    /// Changes the state of a node and answers the errors of its tasks.
    Node {
        /// The node.
        node: u8,
        /// What is ordered.
        verb: Verb,
    },
    /// Answers errors without an action.
    Answer {
        /// The task.
        task: u8,
        /// The errors that it answers.
        mark: u32,
    },
    /// Answers all errors, and resets the count of restarts, the alpha-count and the watchdog.
    Clear {
        /// The task.
        task: u8,
        /// The errors that it answers.
        mark: u32,
    },
    /// Leaves the errors to the strategy of the house.
    Builtin {
        /// The task.
        task: u8,
        /// The errors that it answers.
        mark: u32,
    },
    /// Sends an integer.
    Send {
        /// The task that receives it.
        to: u8,
        /// The integer.
        value: i32,
    },
    /// Sends a notice; the receiver gets term and evaluation as well.
    Notice {
        /// The task that receives it.
        to: u8,
        /// The error, 0 for a plain WARN.
        error: i32,
        /// What it is about.
        about: Entity,
    },
    /// Writes to the chronicle.
    Log {
        /// The text, an offset of the pool.
        text: u16,
        /// The values; the first `count` count.
        values: [i32; ARGS_MAX],
        /// How many values there are.
        count: u8,
    },
    /// Runs a program of the cluster file.
    Call {
        /// Its name, an offset of the pool.
        name: u16,
        /// The arguments; the first `count` count.
        args: [i32; ARGS_MAX],
        /// How many arguments there are.
        count: u8,
    },
}

/// An order, its identity, and where the script gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placed {
    /// Its identity.
    pub id: OrderId,
    /// The order.
    pub order: Order,
    /// The number of the section; 0 for DEFAULT.
    pub section: u16,
    /// The index of the word, which leads to the line; 0 for DEFAULT.
    pub word: u16,
}

/// How an evaluation ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// All sections were looked at.
    #[default]
    Completed,
    /// The order after the last that is allowed ended it (RL-8).
    TooManyOrders,
}

/// What an evaluation leaves (RL-9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The term of the manager.
    pub term: Term,
    /// The number of the evaluation in its term; the list behind a PAUSE has its own.
    pub number: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The sections that held, those beyond the first 32 left out.
    pub held: Vec<u16, HELD_MAX>,
    /// How many orders it gave, those of DEFAULT excepted.
    pub orders: u16,
    /// How many orders came second for their entity (RL-4).
    pub superseded: u16,
    /// How many orders about the manager's own node were refused (RL-6).
    pub refused: u16,
    /// How many sections ended false by an overflow or a division by zero.
    pub faults: u16,
    /// How many PAUSEs found no room; what stands behind them was dropped.
    pub dropped: u16,
    /// How many words ran.
    pub steps: u16,
}
