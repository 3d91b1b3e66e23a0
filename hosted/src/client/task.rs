//! What a client reports of a task, and asks for it: what a guarded program does for itself, and
//! `weft report`, `weft vote` and `weft task` for others.

use std::time::Duration;

use super::{Client, ClientError};
use crate::node::control::{Outcome, ReportEffect, TaskEffect, TaskNotices, TaskOrder, Vote, Want};

impl Client {
    /// Reports an error of the node's task; the task defines what the number means.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn report(&mut self, task: &str, error: u16) -> Result<ReportEffect, ClientError> {
        match self.ask(Want::Report { task: task.to_owned(), error }, Duration::ZERO)? {
            Outcome::Reported(effect) => Ok(effect),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// Reports progress of the node's task.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn beat(&mut self, task: &str) -> Result<(), ClientError> {
        self.ask_for_done(Want::Beat { task: task.to_owned() })
    }

    /// Reports the phase of the node's task.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn phase(&mut self, task: &str, phase: u8) -> Result<(), ClientError> {
        self.ask_for_done(Want::Phase { task: task.to_owned(), phase })
    }

    /// Votes for the node's task, a version of an N-version task. The vote stands once this
    /// returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn vote(&mut self, task: &str, round: u32, vote: Vote) -> Result<(), ClientError> {
        self.ask_for_done(Want::Vote { task: task.to_owned(), round, vote })
    }

    /// The notices for the node's task after number `seen`, the last one that it has seen.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn notices(&mut self, task: &str, seen: u64) -> Result<TaskNotices, ClientError> {
        match self.ask(Want::Notices { task: task.to_owned(), seen }, Duration::ZERO)? {
            Outcome::Notices(notices) => Ok(notices),
            other => Err(self.out_of_place(&other)),
        }
    }

    /// Gives an order about one of the node's tasks.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn order(&mut self, task: &str, order: TaskOrder) -> Result<TaskEffect, ClientError> {
        match self.ask(Want::Task { task: task.to_owned(), order }, Duration::ZERO)? {
            Outcome::Ordered(effect) => Ok(effect),
            other => Err(self.out_of_place(&other)),
        }
    }
}
