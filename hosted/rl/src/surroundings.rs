//! The cluster that a script is translated for.

use weft_core::dirnet::Timing;
use weft_core::recovery::{Role, TimeoutName, Timeouts};
use weft_core::time::Duration;

/// A task of the cluster file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTask {
    /// Its name.
    pub name: String,
    /// The nodes that run it.
    pub nodes: Vec<u8>,
    /// Whether the cluster file watches its heartbeats.
    pub has_beat: bool,
}

/// What a cluster file says that a script must fit.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// How many nodes there are.
    pub nodes: u8,
    /// The roles, where the file gives them.
    pub roles: Option<Vec<Role>>,
    /// The tasks, in the order of the file.
    pub tasks: Vec<ClusterTask>,
    /// The timing in force.
    pub timing: Timing,
    /// The values that the file sets itself, in µs.
    pub set: Timeouts,
    /// The programs that CALL may run.
    pub calls: Vec<String>,
}

impl Surroundings {
    /// The names of the tasks of `node`, in their order.
    #[must_use]
    pub fn tasks_of(&self, node: u8) -> Vec<&str> {
        let here = self.tasks.iter().filter(|task| task.nodes.contains(&node));
        here.map(|task| task.name.as_str()).collect()
    }
}

/// `timing` with the values that a script sets.
#[must_use]
pub fn with_timeouts(mut timing: Timing, timeouts: &Timeouts) -> Timing {
    for name in TimeoutName::ALL {
        let Some(us) = timeouts.us(*name) else { continue };
        let slot = match name {
            TimeoutName::Send => &mut timing.send,
            TimeoutName::Receive => &mut timing.receive,
            TimeoutName::Clear => &mut timing.clear,
            TimeoutName::Alarm => &mut timing.alarm,
            TimeoutName::Window => &mut timing.window,
            TimeoutName::Candidate => &mut timing.candidate,
            TimeoutName::Join => &mut timing.join,
        };
        *slot = Duration::from_micros(u64::from(us));
    }
    timing
}
