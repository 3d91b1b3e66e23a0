//! A cluster under observation: one fault at a chosen time, and everything that follows.

use weft_core::dirnet::{Output, Role};
use weft_core::ids::Rank;
use weft_core::time::Instant;

use super::net::{Net, Setting};
use super::strike::NetStrike;

/// A cluster in virtual time.
pub struct Lab {
    net: Net,
}

/// An output: its time, its node, and what it was.
pub type Event = (u64, Rank, Output);

impl Lab {
    /// A cluster that was started and has run for that long.
    pub fn settled(setting: Setting, seed: u64, for_ns: u64) -> Self {
        let mut net = Net::set_up(setting, seed);
        net.boot_all();
        net.run_until(for_ns);
        net.said.log = Some(Vec::new());
        Self { net }
    }

    /// The virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        Instant(self.net.now)
    }

    /// Lets `ns` nanoseconds of virtual time pass.
    pub fn run_for(&mut self, ns: u64) {
        self.net.run_until(self.net.now + ns);
    }

    /// Carries out `strike` now.
    pub fn strike(&mut self, strike: NetStrike) {
        self.net.strike(0, strike);
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.net.said.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The number of heartbeats so far, counted once for each receiver.
    pub fn heartbeats(&self) -> u64 {
        self.net.said.beats
    }

    /// The manager; none while the nodes do not agree on one or one of them is no member.
    pub fn manager(&self) -> Option<Rank> {
        let manager = || self.net.components().find(|it| it.role() == Role::Manager);
        if self.net.missing().is_some() { None } else { manager().map(|it| it.me()) }
    }
}
