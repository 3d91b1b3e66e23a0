//! CALL of a recovery script: the manager's node runs a program of `[recovery.calls]`.
//!
//! ```text
//!   CALL page(3) ─▶ [ CALLS_MAX of each name ] ─▶ thread ─▶ command 3 ─▶ end ─▶ chronicle
//! ```
//!
//! Those of one name run one after the other, for 30 s at most each, and delay no others. What is
//! ordered twice, because a manager was lost before its order was known as given, runs twice: the
//! program finds term and evaluation in its environment.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use super::Supervisor;
use crate::node::NodeError;
use crate::node::chronicle::What;
use crate::node::hook::{CommandJob, CommandQueue, HookFailure};

/// The calls of one name that wait.
const CALLS_MAX: usize = 8;
/// How long a program may run.
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// The ends of calls that wait to be noted.
const ENDS_MAX: usize = 64;

/// A call: which, by which evaluation.
#[derive(Clone, Debug)]
pub(super) struct ScriptCall {
    name: String,
    epoch: u32,
    evaluation: u32,
}

impl CommandJob for ScriptCall {
    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("WEFT_CALL", self.name.clone()),
            ("WEFT_TERM", self.epoch.to_string()),
            ("WEFT_EVALUATION", self.evaluation.to_string()),
        ]
    }

    fn input(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// How a call has ended.
type CallEnd = (ScriptCall, Result<(), HookFailure>);

/// The calls of a node.
pub(super) struct Calls {
    queues: BTreeMap<String, CommandQueue<ScriptCall>>,
    sender: SyncSender<CallEnd>,
    ends: Receiver<CallEnd>,
}

impl Calls {
    pub(super) fn new() -> Self {
        let (sender, ends) = sync_channel(ENDS_MAX);
        Self { queues: BTreeMap::new(), sender, ends }
    }

    /// The queue of a name. Its thread starts with its first call.
    fn queue(&mut self, name: &str) -> Result<&CommandQueue<ScriptCall>, NodeError> {
        if !self.queues.contains_key(name) {
            let sender = self.sender.clone();
            let report = move |call: &ScriptCall, result| {
                if sender.try_send((call.clone(), result)).is_err() {
                    tracing::error!(name = call.name, "the end of a call is not noted");
                }
            };
            let queue = CommandQueue::start("weft-calls", CALL_LIMIT, CALLS_MAX, report)?;
            self.queues.insert(name.to_owned(), queue);
        }
        self.queues.get(name).ok_or(NodeError::Link("a queue of calls is lost"))
    }

    /// Kills what runs.
    pub(super) fn stop(&mut self) {
        std::mem::take(&mut self.queues).into_values().for_each(CommandQueue::stop);
    }
}

impl Supervisor {
    /// The recovery script orders a call, and this node manages.
    pub(super) fn call(&mut self, name: &str, args: &[i32], (epoch, evaluation): (u32, u32)) {
        let Some(command) = self.cluster.recovery.calls.get(name) else {
            let words = format!("CALL {name} is refused: [recovery.calls] does not name it");
            return self.note(self.rank, What::Noted { words });
        };
        let args = args.iter().map(i32::to_string);
        let command: Vec<String> = command.iter().cloned().chain(args).collect();
        let call = ScriptCall { name: name.to_owned(), epoch, evaluation };
        let refused = match self.calls.queue(name) {
            Ok(queue) => queue
                .offer(&command, &call)
                .err()
                .map(|_| format!("CALL {name} is refused: {CALLS_MAX} calls of it wait already")),
            Err(error) => Some(format!("CALL {name} is not run: {error}")),
        };
        if let Some(words) = refused {
            tracing::warn!(words);
            self.note(self.rank, What::Noted { words });
        }
    }

    /// Notes how calls have ended.
    pub(super) fn note_calls(&mut self) {
        let ends: Vec<CallEnd> = self.calls.ends.try_iter().collect();
        for (ScriptCall { name, evaluation, .. }, result) in ends {
            let words = match result {
                Ok(()) => format!("CALL {name} of evaluation {evaluation} has ended with success"),
                Err(why) => format!("CALL {name} of evaluation {evaluation}: {why}"),
            };
            self.note(self.rank, What::Noted { words });
        }
    }
}
