//! The recovery script's part of the demonstration: a task fails, the script answers, once.
//!
//! ```text
//!   node 1, its task camera ── kill -9 ──▶ an error ──▶ manager ── RESTART, by line 9 ──▶ node 1
//!   later the manager's node dies: its successor finds the error answered, and orders nothing
//! ```
//!
//! The script is the first example of the language, as it stands.

use serde::Serialize;
use weft::cluster::{Task, TaskName};
use weft::node::chronicle::{Entry, TaskStep, What};
use weft::node::control::{NodeStatus, TaskStatus};

/// The script's name, and its text.
pub const SCRIPT: (&str, &str) =
    ("restart.rl", include_str!("../../../examples/recovery/restart.rl"));

/// The task that fails, and the node that guards it.
pub(super) const TASK: &str = "camera";
pub(super) const GUARD: u16 = 1;

/// How a manager's order begins, in the chronicle of its node.
const ORDER: &str = "recovery script: ";

/// The tasks that the script declares, which do nothing until they are ended.
pub(super) fn tasks() -> Vec<Task> {
    let task = |(name, node): (&str, u16)| {
        let name = name.parse::<TaskName>().ok()?;
        let (args, nodes) = (vec!["86400".to_owned()], Some(vec![node]));
        Some(Task { args, nodes, ..Task::new(name, "sleep".to_owned()) })
    };
    [(TASK, GUARD), ("spare", 2)].into_iter().filter_map(task).collect()
}

/// What the recovery script has shown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScriptSummary {
    /// The script.
    pub name: &'static str,
    /// The task that failed.
    pub task: &'static str,
    /// The node that guards it.
    pub node: u16,
    /// The order that the script gave, by its chronicle.
    pub order: String,
    /// The node that gave it.
    pub manager: u16,
    /// Orders about the task that managers have given, until the end of the story.
    pub orders: usize,
    /// How often the task's node has obeyed one, until then.
    pub restarts: u64,
    /// Errors of the task, until then.
    pub errors: u64,
}

impl ScriptSummary {
    /// What came of the failure by `entries`, and until the end of the story by `later` and the
    /// last `status` of the task.
    pub(super) fn new(entries: &[Entry], later: &[Entry], status: &TaskStatus) -> Self {
        let order = entries.iter().find_map(|entry| Some((entry.observer, order_of(entry)?)));
        let (manager, order) = order.unwrap_or_default();
        let orders = entries.iter().chain(later).filter_map(order_of).count();
        Self {
            name: SCRIPT.0,
            task: TASK,
            node: GUARD,
            order: order.to_owned(),
            manager,
            orders,
            restarts: status.restarts,
            errors: status.errors,
        }
    }

    /// Whether the script gave the order that it says, and it was obeyed once: a manager that takes
    /// over before the node has answered gives it again.
    pub(super) fn is_held(&self) -> bool {
        let is_restart = self.order.starts_with("RESTART task camera, by section 1");
        is_restart && (self.restarts, self.errors) == (1, 1)
    }
}

/// The order about the task, if it is one.
pub(super) fn order_of(entry: &Entry) -> Option<&str> {
    let What::Noted { words } = &entry.what else { return None };
    words.strip_prefix(ORDER).filter(|order| order.contains(" task camera,"))
}

/// Whether the task has failed.
pub(super) fn is_failure(what: &What) -> bool {
    matches!(step_of(what), Some(TaskStep::Failed { .. }))
}

/// Whether the task was started again.
pub(super) fn is_restart(what: &What) -> bool {
    matches!(step_of(what), Some(TaskStep::Restarted))
}

fn step_of(what: &What) -> Option<&TaskStep> {
    let What::Task(note) = what else { return None };
    (note.task == TASK).then_some(&note.change)
}

/// The task as its node shows it.
pub(super) fn status_of(node: &NodeStatus) -> Option<&TaskStatus> {
    node.tasks.iter().find(|task| task.name == TASK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft::node::control::TaskState;

    fn ordered(observer: u16, words: &str) -> Entry {
        let what = What::Noted { words: words.to_owned() };
        Entry { at_ns: 1, observer, node: GUARD, what }
    }

    #[test]
    fn an_order_that_was_not_given_or_obeyed_twice_or_never_did_not_hold() {
        let order = [ordered(2, "recovery script: RESTART task camera, by section 1, line 9")];
        let held = |first: &[Entry], later: &[Entry], (restarts, errors)| {
            let (name, state) = (TASK.to_owned(), TaskState::Running);
            let (pid, unrecorded, last_errors) = (Some(7), 0, Vec::new());
            let status = TaskStatus { name, state, pid, restarts, errors, unrecorded, last_errors };
            let summary = ScriptSummary::new(first, later, &status);
            assert_eq!(summary.manager, if first.is_empty() { 0 } else { 2 });
            summary.is_held()
        };
        assert!(held(&order, &[ordered(0, "recovery script: LOG \"camera\"")], (1, 1)));
        assert!(!held(&[], &[], (1, 1)), "its node has restarted it by itself");
        assert!(held(&order, &order, (1, 1)), "the next manager gave it again");
        assert!(!held(&order, &[], (2, 1)));
        assert!(!held(&order, &[], (0, 1)));
    }
}
