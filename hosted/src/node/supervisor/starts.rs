//! Starts of components, as core decides: [`weft_core::dirnet::Starts`].

use weft_core::dirnet::{Greeted, RestartLimit, Starts, Step};
use weft_core::time::{Duration, Instant};

use super::Supervisor;
use crate::clock::now_ns;
use crate::cluster::{Cluster, Restart};
use crate::explain::advice;
use crate::node::chronicle::What;
use crate::node::control::Refused;
use crate::node::link::ToComponent;

/// The starts of a supervisor of `cluster`.
pub(super) fn starts(cluster: &Cluster) -> Starts {
    let limit = &cluster.restart;
    let max = u16::try_from(limit.max).unwrap_or(u16::MAX);
    let within = Duration::from_millis(limit.within_s.saturating_mul(1_000));
    Starts::new(RestartLimit { max, within }, cluster.dirnet.timing().clone)
}

impl Supervisor {
    /// Carries out the steps that follow from the last input.
    pub(super) fn take_steps(&mut self) {
        while let Some(step) = self.starts.poll_step() {
            match step {
                Step::Start { is_restart } => {
                    self.restarts += u64::from(is_restart);
                    if let Err(error) = self.start_component() {
                        self.note_failed(error.to_string(), advice(&error).1);
                        self.starts.handle_start_failed(Instant(now_ns()));
                    }
                }
                Step::Enter => self.enter_dirnet(),
                Step::Hangs(hung_for) => self.note_hung(hung_for),
                Step::Kill => {
                    if let Some(component) = &self.component {
                        // It fails only for a process that is dead already.
                        let _ = component.spawned.pidfd.kill();
                    }
                }
                Step::Cloned => {
                    if let Some(im_alive) = &self.im_alive {
                        im_alive.handle_spawned(self.starts.spawned());
                    }
                }
                Step::Alarm => self.raise_alarm(),
                Step::GiveUp => self.give_up(),
                Step::TryAgain => {
                    let words = "its component is tried again: what failed may be mended by now";
                    self.note(self.rank, What::Noted { words: words.to_owned() });
                }
            }
        }
    }

    /// Time has passed for a component that starts, or that is started again later.
    pub(super) fn pass_starts(&mut self, now_ns: u64) {
        let others = u32::try_from(self.cluster.nodes - 1).unwrap_or(u32::MAX);
        let greeted = match self.is_greeted() {
            true if self.supervision.joined().count() == others => Greeted::All,
            true => Greeted::Living,
            false => Greeted::Few,
        };
        self.starts.handle_time(Instant(now_ns), self.progress.load(), greeted);
        self.take_steps();
    }

    fn enter_dirnet(&mut self) {
        let Some(component) = &mut self.component else { return };
        component.entered = true;
        self.reset.note_entered();
        self.tell(&ToComponent::Enter, &[]);
        self.tell_other_scripts();
        self.supervision.handle_entered();
        self.obey();
        self.tasks.forget_told();
    }

    /// The component hangs before its I'm-Alive Task watches it.
    fn note_hung(&mut self, hung_for: Duration) {
        let ms = hung_for.as_micros() / 1_000;
        tracing::error!(rank = self.rank, ms, "the component hangs as it starts, and is killed");
        if let Some(component) = self.component.as_mut().filter(|it| it.is_program)
            && let Some(program) = &self.cluster.component
        {
            component.failure = Some((
                format!("{} did not join within {ms} ms, and was killed", program.program),
                "call Member::join before anything that takes long, or raise \
                 dirnet.timing.clone_ms"
                    .to_owned(),
            ));
        }
        self.note(self.rank, What::HungEarly { ms });
    }

    fn raise_alarm(&self) {
        if let Some(im_alive) = &self.im_alive {
            im_alive.handle_ended();
        }
    }

    /// Reports to the operator and the manager that no component is started for now.
    fn give_up(&mut self) {
        let Restart { max, within_s } = self.cluster.restart;
        let words = match max {
            0 => "component failed, and `restart.max` is 0: given up".to_owned(),
            _ => format!("component failed too often: given up for {within_s} s"),
        };
        self.reset.note_given_up(&words);
        self.note(self.rank, What::Noted { words });
        self.handle_program_given_up();
        self.parked.clear();
        self.clients.refuse_pending(&Refused::GivenUp);
        self.raise_alarm();
    }

    /// Notes why a component does not run.
    pub(super) fn note_failed(&mut self, cause: String, cure: String) {
        tracing::error!(rank = self.rank, cause, cure, "the component failed");
        self.note(self.rank, What::Failed { cause, cure });
    }
}
