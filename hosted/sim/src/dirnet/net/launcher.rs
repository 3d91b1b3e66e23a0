//! The launcher that has started the nodes, as core decides ([`Launcher`]). In runs without one,
//! nodes are started by hand, and the launcher's part is an operator's.
//!
//! What a supervisor reports arrives in sequence, late, and before the end of its process; the end
//! of an earlier process changes nothing.

use weft_core::dirnet::Launcher;
use weft_core::ids::{Incarnation, Rank};
use weft_core::time::Duration;

use super::{Net, NetFlight};
use crate::dirnet::strike::MS;

/// The launcher's end of a way.
const LAUNCHER: u16 = 1_000;

/// From a supervisor to the launcher, and the end of its process.
#[derive(Clone, Copy, Debug)]
pub(super) enum LaunchReport {
    Began(Incarnation),
    Entered,
    Removed(Rank, Incarnation),
    Reset(Rank, Incarnation),
    Isolated(Rank, Incarnation),
    Released(Rank, Incarnation),
    Gone,
}

impl Net {
    /// The launcher of a run in which nodes can be reset.
    pub(super) fn new_launcher(clone: Duration, unit: u64) -> Launcher<8> {
        Launcher::new(Duration(clone.0 / unit * MS * 3 / 2))
    }

    /// The launcher, or an operator, starts `node`. A launcher saves an isolation first.
    pub(super) fn start_node(&mut self, node: u16) {
        if let Some(since) = self.launcher.as_ref().and_then(|it| it.isolation(Rank(node))) {
            self.node(node).isolation_note = Some(since);
        }
        let is_started = self.launch(node);
        let clock = self.supervisor_clock();
        if let Some(launcher) = &mut self.launcher {
            match is_started {
                true => launcher.handle_started(Rank(node)),
                false => launcher.handle_start_failed(clock, Rank(node)),
            }
            self.keep_launcher_deadline();
        }
    }

    pub(super) fn report(&mut self, node: u16, report: LaunchReport) {
        if let Some(run) = self.node(node).supervisor.as_ref().map(|it| it.run) {
            self.report_from(node, run, report);
        }
    }

    /// Process `run` of the supervisor of `node` has sent `report`.
    pub(super) fn report_from(&mut self, node: u16, run: u64, report: LaunchReport) {
        if self.launcher.is_some() {
            self.post_late(node, LAUNCHER, NetFlight::Report { from: node, run, report });
        }
    }

    pub(super) fn land_report(&mut self, from: u16, run: u64, report: LaunchReport) {
        self.note(|| format!("the launcher hears of {from}: {report:?}"));
        let clock = self.supervisor_clock();
        // Once a supervisor has ended, its reports are those of the last one until the next starts.
        let supervisor = self.node(from).supervisor.as_ref();
        let is_present = supervisor.is_none_or(|it| it.run == run);
        let Some(launcher) = &mut self.launcher else { return };
        match report {
            LaunchReport::Began(boot) if is_present => launcher.handle_began(Rank(from), boot),
            LaunchReport::Entered if is_present => launcher.handle_entered(Rank(from)),
            LaunchReport::Gone if is_present => launcher.handle_ended(clock, Rank(from), false),
            LaunchReport::Began(_) | LaunchReport::Entered | LaunchReport::Gone => {}
            LaunchReport::Removed(node, boot) => {
                launcher.handle_removed(clock, Rank(from), node, boot);
            }
            LaunchReport::Isolated(node, boot) => {
                launcher.handle_isolated(clock, node, boot);
                if node == Rank(from) && is_present {
                    launcher.handle_halted(node);
                }
            }
            LaunchReport::Released(node, boot) => {
                launcher.handle_released(clock, node, boot);
            }
            LaunchReport::Reset(node, boot) => {
                if launcher.handle_reset(node, boot) {
                    self.note(|| format!("the launcher resets {node}"));
                    self.crash(node.0);
                    self.start_node(node.0);
                }
            }
        }
        self.keep_launcher_deadline();
    }

    fn keep_launcher_deadline(&mut self) {
        let due = self.launcher.as_ref().and_then(Launcher::poll_timeout);
        if let Some(due) = due {
            let at = due.0.div_ceil(MS) * self.setting.unit;
            self.post_at(at.max(self.now + 1), NetFlight::LauncherWake);
        }
    }

    /// The launcher starts nodes for which no decision has come in time, and isolated ones that
    /// hang.
    pub(super) fn land_launcher_wake(&mut self) {
        let clock = self.supervisor_clock();
        while let Some(Rank(node)) = self.launcher.as_ref().and_then(|it| it.next_due(clock)) {
            // A dead one has been gone since it died, however often its start fails.
            if self.node(node).supervisor.is_some() {
                self.crash(node);
            }
            self.start_node(node);
        }
    }
}
