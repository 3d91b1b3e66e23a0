//! Starts of components, as core decides: [`weft_core::dirnet::Starts`].

use weft_core::dirnet::{RestartLimit, Starts, Step};
use weft_core::time::{Duration, Instant};

use super::Supervisor;
use crate::clock::now_ns;
use crate::cluster::Restart;
use crate::explain::advice;
use crate::node::chronicle::What;
use crate::node::control::Refused;

/// The starts of a supervisor under this limit.
pub(super) fn starts(limit: &Restart) -> Starts {
    let max = u16::try_from(limit.max).unwrap_or(u16::MAX);
    let within = Duration::from_millis(limit.within_s.saturating_mul(1_000));
    Starts::new(RestartLimit { max, within })
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
                Step::Alarm => self.raise_alarm(),
                Step::GiveUp => self.give_up(),
                Step::TryAgain => {
                    let words = "its component is tried again: what failed may be mended by now";
                    self.note(self.rank, What::Noted { words: words.to_owned() });
                }
            }
        }
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
        tracing::error!(rank = self.rank, "{words}");
        self.note(self.rank, What::Noted { words });
        self.reset.note_given_up();
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
