//! The program that is the member at this node, and how it ends.
//!
//! ```text
//!   program ── exit status 0 ──▶ finished ──▶ `weft component` stands in for it, and discards
//!      ▲  └── any other end ──▶ a failure of this incarnation
//!      └───────── next incarnation ──┘
//! ```

use std::os::fd::{AsFd, OwnedFd};
use std::process::{ExitStatus, Stdio};

use rustix::process::Signal;
use weft_core::ids::Incarnation;

use super::Supervisor;
use super::component::StartedComponent;
use crate::node::NodeError;
use crate::node::control::{Refused, TensorWant, Want};
use crate::node::link::{LINK_FD, LINK_VAR, LINK_VERSION};
use crate::process::{ProcessError, Spawn, Spawned};
use crate::shm::{Segment, TwoSlots};

/// What the launcher knows of the program of a node.
#[derive(Debug, Default)]
pub struct ProgramRun {
    /// Where its standard output and standard error go; without them, where the node's go.
    output: Option<[OwnedFd; 2]>,
    /// Whether it has finished, at an earlier boot of the node.
    pub(super) finished: bool,
    /// The memory of its record.
    state: Option<Segment>,
    /// Whether the node ends with it.
    ends_node: bool,
    /// How its last incarnation ended.
    last: Option<ExitStatus>,
    /// The node is over: in order, or because its program has failed too often.
    over: Option<Result<(), NodeError>>,
}

impl ProgramRun {
    /// A program that has no record yet.
    #[must_use]
    pub const fn new(output: Option<[OwnedFd; 2]>, finished: bool) -> Self {
        Self { output, finished, state: None, ends_node: false, last: None, over: None }
    }

    /// The node ends with its program: once the programs of all nodes have finished, and with an
    /// error when its own has failed too often.
    #[must_use]
    pub fn ending_the_node(self) -> Self {
        Self { ends_node: true, ..self }
    }

    /// The programs of all nodes have finished.
    pub(super) fn handle_all_finished(&mut self) {
        if self.ends_node {
            self.over = Some(Ok(()));
        }
    }

    /// The result of the node, once it is over.
    pub(super) const fn take_over(&mut self) -> Option<Result<(), NodeError>> {
        self.over.take()
    }
}

impl Supervisor {
    /// Starts the process of the component: the program, until it has finished, or `weft
    /// component`.
    pub(super) fn spawn_component(
        &self,
        incarnation: Incarnation,
        link: OwnedFd,
    ) -> Result<Spawned, NodeError> {
        let spawn = match &self.cluster.component {
            Some(program) if !self.program.finished => {
                let mut spawn = Spawn::program(&program.program)
                    .args(&program.args)
                    .env("WEFT_RANK", self.rank.to_string())
                    .env("WEFT_SIZE", self.cluster.nodes.to_string())
                    .env("WEFT_NAME", self.cluster.name.as_str())
                    .env("WEFT_INCARNATION", incarnation.0.to_string())
                    .stdin(Stdio::null());
                for (name, value) in program.variables() {
                    spawn = spawn.env(name, value);
                }
                if let Some([stdout, stderr]) = &self.program.output {
                    spawn = spawn.stdout(duplicate(stdout)?).stderr(duplicate(stderr)?);
                }
                spawn
            }
            Some(_) | None => Spawn::own_program().arg("component"),
        };
        let spawn = spawn.env(LINK_VAR, LINK_VERSION).parent_death_signal(Signal::KILL);
        Ok(spawn.inherit(LINK_FD, link).start()?)
    }

    /// The memory of the program's record, made with the first component and kept as long as this
    /// process; none without `component.state`.
    pub(super) fn state_memory(&mut self) -> Result<Option<OwnedFd>, NodeError> {
        let Some(len) = self.cluster.component.as_ref().map(|it| it.state).filter(|len| *len > 0)
        else {
            return Ok(None);
        };
        if self.program.state.is_none() {
            let name = format!("weft-{}-{}-state", self.cluster.name, self.rank);
            self.program.state = Some(TwoSlots::segment(&name, len)?);
        }
        let segment = self.program.state.as_ref();
        let fd = segment.map(|segment| segment.writable_fd().try_clone_to_owned());
        Ok(fd.transpose().map_err(ProcessError::Spawn)?)
    }

    /// Whether the next component is the program.
    pub(super) fn runs_program(&self) -> bool {
        self.cluster.component.is_some() && !self.program.finished
    }

    /// Reports the end of the program, which was `component`, to the launcher; whether it has
    /// finished.
    pub(super) fn note_program_ended(
        &mut self,
        component: &StartedComponent,
        status: ExitStatus,
    ) -> bool {
        self.reset.note_exited(component.incarnation, component.ready, status);
        self.program.last = Some(status);
        self.program.finished |= status.success();
        status.success()
    }

    /// The program has failed too often: the node ends, if it ends with its program.
    pub(super) fn handle_program_given_up(&mut self) {
        let Some(program) = self.cluster.component.as_ref().filter(|_| self.runs_program()) else {
            return;
        };
        if self.program.ends_node {
            let (program, last) = (program.program.clone(), self.program.last);
            self.program.over = Some(Err(NodeError::Program { program, last }));
        }
    }

    /// Why a client may not take or broadcast here: the program does so itself.
    pub(super) fn check_owner(&self, what: &Want) -> Result<(), Refused> {
        let is_owners = matches!(
            what,
            Want::Take { .. }
                | Want::Release { .. }
                | Want::Broadcast { .. }
                | Want::Deliver { .. }
                | Want::EndDeliver { .. }
                | Want::Group { .. }
                | Want::Tensor {
                    what: TensorWant::Send { .. }
                        | TensorWant::Receive { .. }
                        | TensorWant::EndStep { .. },
                    ..
                }
        );
        match &self.cluster.component {
            Some(program) if is_owners => Err(Refused::Owned { program: program.program.clone() }),
            Some(_) | None => Ok(()),
        }
    }
}

fn duplicate(fd: &OwnedFd) -> Result<Stdio, ProcessError> {
    fd.as_fd().try_clone_to_owned().map(Stdio::from).map_err(ProcessError::Spawn)
}
