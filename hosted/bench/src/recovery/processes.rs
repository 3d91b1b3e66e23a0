//! Restarts of tasks in two clusters of processes, one with a script and one without.
//!
//! Both have the same nodes, roles and task, and run side by side, so that each disturbs the other
//! as much. A task's node notes when it has started the next process; it is asked for that only
//! later, so that no question slows what is measured.

use std::time::Duration;

use super::{RecoveryCourses, RecoveryPlan, script};
use crate::detect::processes::await_well;
use crate::error::BenchError;
use crate::figure::Samples;
use weft::client::Client;
use weft::clock::{Deadline, now_ns};
use weft::cluster::{Cluster, ClusterName, DirNet, Part, Recovery, Restart, Task, TaskName};
use weft::launch::Launched;
use weft::node::chronicle::{TaskStep, What};

const NODES: usize = 3;
/// The node of the task, which is not the manager's.
const AT: u16 = 1;
const TASK: &str = "worker";
const SCRIPT: &str = "DEFINE 0 = MANAGER\nDEFINE 1-2 = BACKUP\n\
                      TASK 1 = \"worker\" IS NODE 1, TASKID 0\n\
                      IF [ FAULTY T1 ] THEN\nRESTART T1\nFI\n";
/// How long any step may take on a busy host.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the first restart of a cluster is waited for.
const WARM_UP: Duration = Duration::from_secs(2);
/// How long nothing is asked of a node after an error: longer than a restart takes, and than the
/// time in which a manager evaluates once at most.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Restarts as many tasks as `plan` says; `on_round` is called for every round.
pub(super) fn run(
    plan: &RecoveryPlan,
    courses: &mut RecoveryCourses,
    mut on_round: impl FnMut(),
) -> Result<(), BenchError> {
    let image = script::translate(SCRIPT)?;
    let scripted = GuardedCluster::start("script", Some(image))?;
    let found = GuardedCluster::start("built-in", None).and_then(|built_in| {
        let mut pair = [scripted.client()?, built_in.client()?];
        scripted.warm_up(&mut pair[0])?;
        built_in.warm_up(&mut pair[1])?;
        for _ in 0..plan.rounds {
            let mut samples = [Samples::default(), Samples::default()];
            for _ in 0..plan.restarts {
                for ((cluster, client), samples) in
                    [&scripted, &built_in].into_iter().zip(&mut pair).zip(&mut samples)
                {
                    let stuck = BenchError::Stuck { patience: PATIENCE };
                    samples.push(cluster.restart(client, PATIENCE)?.ok_or(stuck)?, 1);
                }
            }
            let [by_script, built_in] = samples;
            courses.restart_by_script.add(by_script);
            courses.restart_built_in.add(built_in);
            on_round();
        }
        drop(pair);
        built_in.stop()
    });
    scripted.stop().and(found)
}

/// A cluster that keeps one task under guard.
struct GuardedCluster {
    launched: Launched,
}

impl GuardedCluster {
    fn start(which: &str, image: Option<Vec<u8>>) -> Result<Self, BenchError> {
        let name = format!("bench-{}-{which}", std::process::id());
        let name = name.parse::<ClusterName>().unwrap_or_default();
        // As many restarts as there are errors: what is measured is not patience with a bad task.
        let restart = Restart { max: 10_000, within_s: 1 };
        let task = Task {
            args: vec!["1000000".to_owned()],
            nodes: Some(vec![AT]),
            restart: restart.clone(),
            ..Task::new(TASK.parse::<TaskName>().map_err(script::refused)?, "sleep".to_owned())
        };
        let roles = Some(vec![Part::Manager, Part::Backup, Part::Backup]);
        let dirnet = DirNet { roles, ..DirNet::default() };
        let recovery = Recovery { image, ..Recovery::default() };
        let tasks = vec![task];
        let nodes = NODES;
        let cluster =
            Cluster { name, nodes, restart, dirnet, recovery, tasks, ..Cluster::default() };
        let launched = Launched::start(&cluster).map_err(BenchError::Launch)?;
        let guarded = Self { launched };
        await_well(&guarded.launched, PATIENCE)?;
        guarded.await_task()?;
        Ok(guarded)
    }

    fn client(&self) -> Result<Client, BenchError> {
        Ok(self.launched.connect(AT, PATIENCE)?)
    }

    fn await_task(&self) -> Result<(), BenchError> {
        let mut client = self.client()?;
        let deadline = Deadline::after(PATIENCE);
        while !deadline.has_passed() {
            if client.status()?.tasks.iter().any(|task| task.pid.is_some()) {
                return Ok(());
            }
            self.rest();
        }
        Err(BenchError::Stuck { patience: PATIENCE })
    }

    /// Has the task restarted once, before anything is measured: an error of the first moments may
    /// come to the manager within the entry of its node, which the built-in strategy does not
    /// answer.
    fn warm_up(&self, client: &mut Client) -> Result<(), BenchError> {
        let deadline = Deadline::after(PATIENCE);
        while !deadline.has_passed() {
            if self.restart(client, WARM_UP)?.is_some() {
                return Ok(());
            }
        }
        Err(BenchError::Stuck { patience: PATIENCE })
    }

    /// Reports an error of the task: how long until its next process has started, within
    /// `patience`.
    fn restart(&self, client: &mut Client, patience: Duration) -> Result<Option<u64>, BenchError> {
        let is_restart =
            |what: &What| matches!(what, What::Task(it) if it.change == TaskStep::Restarted);
        let began_ns = now_ns();
        client.report(TASK, 7)?;
        let deadline = Deadline::after(patience);
        while !deadline.has_passed() {
            self.rest();
            let entries = client.whole_chronicle(None, began_ns)?;
            let mut since = entries.iter().filter(|entry| entry.at_ns >= began_ns);
            if let Some(entry) = since.find(|entry| is_restart(&entry.what)) {
                return Ok(Some(entry.at_ns - began_ns));
            }
        }
        Ok(None)
    }

    /// Lets the nodes be for a while.
    fn rest(&self) {
        // No notice is wanted.
        self.launched.next_notice(LOOK_EVERY).ok();
    }

    fn stop(self) -> Result<(), BenchError> {
        self.launched.stop().map_err(BenchError::Directory)
    }
}
