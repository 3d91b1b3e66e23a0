//! What a program that is the member does for the tasks of its node.
//!
//! ```text
//!   vote ────▶ Voting, in this process                     the vote stands at once (RL-10)
//!   phase ───▶ link ─▶ supervisor ─▶ record of the task
//!   notices ─▶ link ─▶ supervisor, which hands over what is kept as soon as there is any
//! ```
//!
//! Nothing here waits for the supervisor. A task has one request for notices under way, and its
//! answer holds as many as a node keeps.

use super::Component;
use crate::clock::now_ns;
use crate::cluster::Cluster;
use crate::node::NodeError;
use crate::node::control::{Outcome, Refused, TaskNotices, Vote, VoteDenied};
use crate::node::link::FromComponent;

/// Why a call about a task was refused. Nothing changed, where the variant does not say otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskRefused {
    /// The cluster file gives this node no such task.
    #[error("this node has no task {name:?}{}", among(tasks))]
    NoTask {
        /// The name.
        name: String,
        /// The tasks that it has.
        tasks: Vec<String>,
    },
    /// The vote cannot count.
    #[error("{0}")]
    Vote(VoteDenied),
    /// The vote cannot be kept beyond this process, so it may not stand. The next poll says why,
    /// and ends the member.
    #[error("the vote cannot be kept")]
    NotKept,
    /// The node cannot be asked. The next poll says why, and ends the member.
    #[error("the node of this member cannot be reached")]
    NoNode,
}

fn among(tasks: &[String]) -> String {
    match tasks {
        [] => ", nor any other".to_owned(),
        tasks => format!(": its tasks are {}", tasks.join(", ")),
    }
}

/// The tasks of this node, in their order.
#[derive(Debug)]
pub(super) struct OwnTasks {
    names: Vec<String>,
    inboxes: Vec<TaskInbox>,
}

/// The notices for one task.
#[derive(Clone, Debug, Default)]
struct TaskInbox {
    /// The last one that the program has seen.
    seen: u64,
    is_asked: bool,
    /// What the program has not taken.
    here: Option<TaskNotices>,
}

impl OwnTasks {
    pub(super) fn new(cluster: &Cluster, rank: u16) -> Self {
        let own = cluster.tasks.iter().filter(|task| task.runs_on(rank));
        let names: Vec<_> = own.map(|task| task.name.to_string()).collect();
        let inboxes = vec![TaskInbox::default(); names.len()];
        Self { names, inboxes }
    }

    /// Whether there is a notice that the program has not taken.
    pub(super) fn is_due(&self) -> bool {
        self.inboxes.iter().any(|inbox| inbox.here.is_some())
    }

    /// Handles what the supervisor hands over.
    pub(super) fn handle_notices(&mut self, task: u8, notices: TaskNotices) {
        if let Some(inbox) = self.inboxes.get_mut(usize::from(task)).filter(|it| it.is_asked) {
            inbox.is_asked = false;
            inbox.here = Some(notices);
        }
    }

    fn place(&self, task: &str) -> Result<u8, TaskRefused> {
        let place = (0..).zip(&self.names).find(|(_, name)| *name == task).map(|(place, _)| place);
        let (name, tasks) = (task.chars().take(64).collect(), &self.names);
        place.ok_or_else(|| TaskRefused::NoTask { name, tasks: tasks.clone() })
    }
}

impl Component {
    pub(crate) fn vote(&mut self, task: &str, round: u32, vote: Vote) -> Result<(), TaskRefused> {
        self.own_tasks.place(task)?;
        match self.cast_vote(task, (round, vote), now_ns()) {
            Ok(Outcome::Done) => Ok(()),
            Ok(Outcome::Refused(Refused::Vote(why))) => Err(TaskRefused::Vote(why)),
            Ok(_) => Err(TaskRefused::NoNode),
            Err(error) => {
                self.fail(error);
                Err(TaskRefused::NotKept)
            }
        }
    }

    pub(crate) fn report_phase(&mut self, task: &str, phase: u8) -> Result<(), TaskRefused> {
        let task = self.own_tasks.place(task)?;
        self.ask(&FromComponent::Phase { task, phase })
    }

    /// The notices that have come for `task` since the last call; where none have, they are asked
    /// for, from the last that was returned on.
    pub(crate) fn notices(&mut self, task: &str) -> Result<TaskNotices, TaskRefused> {
        let place = self.own_tasks.place(task)?;
        let inbox = &mut self.own_tasks.inboxes[usize::from(place)];
        if let Some(notices) = inbox.here.take() {
            inbox.seen = notices.last;
            return Ok(notices);
        }
        let none = TaskNotices { last: inbox.seen, ..TaskNotices::default() };
        if !std::mem::replace(&mut inbox.is_asked, true) {
            self.ask(&FromComponent::AwaitNotices { task: place, seen: none.last })?;
        }
        Ok(none)
    }

    fn ask(&mut self, what: &FromComponent) -> Result<(), TaskRefused> {
        self.tell(what).map_err(|error| {
            self.fail(error);
            TaskRefused::NoNode
        })
    }

    /// Has the next pass end with `error`.
    pub(crate) fn fail(&mut self, error: NodeError) {
        self.failed.get_or_insert(error);
    }

    /// Has a version of this node vote, by order of the program or of a client.
    pub(super) fn cast_vote(
        &mut self,
        task: &str,
        what: (u32, Vote),
        now_ns: u64,
    ) -> Result<Outcome, NodeError> {
        // It has not entered the DIR net yet: no vote stands.
        let mut done = Outcome::Refused(Refused::NoComponent);
        self.with_dirnet(|dirnet, ground| {
            done = dirnet.handle_vote_request(now_ns, task, what, ground)?;
            Ok(())
        })?;
        Ok(done)
    }
}
