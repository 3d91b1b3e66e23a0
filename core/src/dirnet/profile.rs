//! The timing profile, and the rules that its values must keep (G-4, X-4).
//!
//! ```text
//!  crash                suspicion          verdict
//!    │◀── at most S + R ──▶│◀────── W ──────▶│
//!    ├─────┬─────┬─────────┼─────────────────┤        S  a heartbeat is sent
//!    │     C  C  │         │                 │        C  the flag is cleared
//!    │      A    │ A: the I'm-Alive Task notices, no later than 2A after the last clear,
//!    │           └─────────┘ and its alarm (TEIF) must arrive before W ends
//! ```
//!
//! | rule | condition | if broken |
//! |---|---|---|
//! | `alarm` | C + δ < A | a healthy component is reported as faulty |
//! | `tolerance` | R ≥ (k+1)·S + δ | k lost heartbeats raise a suspicion |
//! | `window` | R + W ≥ S + 2A + δ | a crash of a component is taken for one of its node |
//! | `testimony` | W ≥ 4δ | a second observer cannot answer in time (X-1) |
//! | `candidate` | MID ≥ (k+1)·S + 3δ | a candidate is passed over before it can claim |
//! | `join` | JOIN ≥ 2δ | the answer to a WITM comes too late |
//!
//! The first three are the original's missing rules; the others belong to additions.

use core::fmt;

use crate::time::Duration;

/// The values of a profile, unchecked. All spans are measured by this node's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timing {
    /// S: the longest interval between two heartbeats (MIA, TAIA).
    pub send: Duration,
    /// R: silence of this length raises a suspicion.
    pub receive: Duration,
    /// C: the interval at which the component's timers make progress.
    pub clear: Duration,
    /// A: the interval at which the I'm-Alive Task checks progress.
    pub alarm: Duration,
    /// W: how long a suspicion waits for an alarm before it becomes a verdict (TEIF timer).
    pub window: Duration,
    /// δ: the longest message delay that is considered normal.
    pub delay: Duration,
    /// k: the number of consecutive heartbeats whose loss is tolerated.
    pub losses: u32,
    /// MID: how long a candidate for manager has to claim.
    pub candidate: Duration,
    /// JOIN: how long answers to WITM are collected, and how long a reply to REQUEST_DB is awaited.
    pub join: Duration,
    /// How long a requested clone has until it must be heard from (G-18).
    pub clone: Duration,
    /// How long a node that was reset has until it must be heard from (G-18).
    pub reboot: Duration,
}

impl Timing {
    /// For shared or noisy hosts: tolerates stalls of 160 ms on either side.
    pub const LAN: Self = Self {
        send: Duration::from_millis(40),
        receive: Duration::from_millis(220),
        clear: Duration::from_millis(40),
        alarm: Duration::from_millis(100),
        window: Duration::from_millis(180),
        delay: Duration::from_millis(20),
        losses: 4,
        candidate: Duration::from_millis(260),
        join: Duration::from_millis(100),
        clone: Duration::from_millis(2_000),
        reboot: Duration::from_millis(20_000),
    };

    /// For many processes on one host: outlasts stalls of half a second. On two processors that had
    /// three times as much to do, all loops were seen 205 ms late at once. The end of a clone's
    /// process is reported at once, so only a clone that hangs at its start makes the others
    /// wait in vain; a live one may be slow: it connects to every peer and registers memory for it.
    pub const HOST: Self = Self {
        send: Duration::from_millis(100),
        receive: Duration::from_millis(700),
        clear: Duration::from_millis(100),
        alarm: Duration::from_millis(350),
        window: Duration::from_millis(500),
        delay: Duration::from_millis(50),
        losses: 4,
        candidate: Duration::from_millis(700),
        join: Duration::from_millis(250),
        clone: Duration::from_millis(20_000),
        reboot: Duration::from_millis(40_000),
    };

    /// For dedicated polling cores: a verdict within 0.6 ms of the crash.
    pub const RDMA: Self = Self {
        send: Duration::from_micros(100),
        receive: Duration::from_micros(350),
        clear: Duration::from_micros(50),
        alarm: Duration::from_micros(150),
        window: Duration::from_micros(200),
        delay: Duration::from_micros(50),
        losses: 2,
        candidate: Duration::from_micros(450),
        join: Duration::from_micros(1_000),
        clone: Duration::from_millis(500),
        reboot: Duration::from_millis(20_000),
    };

    /// The time from the last heartbeat to the verdict: R + W.
    #[must_use]
    pub const fn verdict_after(&self) -> Duration {
        Duration(self.receive.0.saturating_add(self.window.0))
    }

    /// The longest time from one reset of a node that keeps failing to the next: the reboot
    /// deadline to come back, and R + W until a verdict if it comes back and fails at once. A node
    /// that does not come back is fenced again meanwhile, which takes W if a message is lost.
    #[must_use]
    pub const fn reset_period(&self) -> Duration {
        Duration(self.reboot.0.saturating_add(self.verdict_after().0))
    }
}

/// A rule that a timing breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrokenRule {
    /// Every span must be longer than zero.
    Zero,
    /// C + δ < A.
    Alarm,
    /// R ≥ (k+1)·S + δ.
    Tolerance,
    /// R + W ≥ S + 2A + δ.
    Window,
    /// W ≥ 4δ.
    Testimony,
    /// MID ≥ (k+1)·S + 3δ.
    Candidate,
    /// JOIN ≥ 2δ.
    Join,
}

impl BrokenRule {
    /// The rule's short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Alarm => "alarm",
            Self::Tolerance => "tolerance",
            Self::Window => "window",
            Self::Testimony => "testimony",
            Self::Candidate => "candidate",
            Self::Join => "join",
        }
    }
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Zero => "rule zero: every span must be longer than nothing",
            Self::Alarm => "rule alarm: clear + delay < alarm",
            Self::Tolerance => "rule tolerance: receive >= (losses + 1) * send + delay",
            Self::Window => "rule window: receive + window >= send + 2 * alarm + delay",
            Self::Testimony => "rule testimony: window >= 4 * delay",
            Self::Candidate => "rule candidate: candidate >= (losses + 1) * send + 3 * delay",
            Self::Join => "rule join: join >= 2 * delay",
        })
    }
}

impl core::error::Error for BrokenRule {}

/// A timing that satisfies the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Profile(Timing);

impl Profile {
    /// Checks `timing`.
    ///
    /// # Errors
    /// The first [`BrokenRule`] found.
    pub fn new(timing: Timing) -> Result<Self, BrokenRule> {
        let t = timing;
        let beats = t.send.0.saturating_mul(u64::from(t.losses) + 1);
        let spans = [t.send, t.receive, t.clear, t.alarm, t.window, t.delay];
        if any_zero(&spans) || any_zero(&[t.candidate, t.join, t.clone, t.reboot]) {
            return Err(BrokenRule::Zero);
        }
        if t.clear.0.saturating_add(t.delay.0) >= t.alarm.0 {
            return Err(BrokenRule::Alarm);
        }
        if t.receive.0 < beats.saturating_add(t.delay.0) {
            return Err(BrokenRule::Tolerance);
        }
        let alarm_by = t.alarm.0.saturating_mul(2).saturating_add(t.send.0);
        let is_checked = !super::WINDOW_IS_UNCHECKED.is_planted();
        if t.verdict_after().0 < alarm_by.saturating_add(t.delay.0) && is_checked {
            return Err(BrokenRule::Window);
        }
        if t.window.0 < t.delay.0.saturating_mul(4) {
            return Err(BrokenRule::Testimony);
        }
        if t.candidate.0 < beats.saturating_add(t.delay.0.saturating_mul(3)) {
            return Err(BrokenRule::Candidate);
        }
        if t.join.0 < t.delay.0.saturating_mul(2) {
            return Err(BrokenRule::Join);
        }
        Ok(Self(timing))
    }

    /// The timing values.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.0
    }

    /// The time from the last heartbeat to the verdict: R + W.
    #[must_use]
    pub const fn verdict_after(&self) -> Duration {
        self.0.verdict_after()
    }
}

const fn any_zero(spans: &[Duration]) -> bool {
    let mut at = 0;
    while at < spans.len() {
        if spans[at].0 == 0 {
            return true;
        }
        at += 1;
    }
    false
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    pub(in crate::dirnet) fn x4_both_profiles_keep_the_rules() {
        for timing in [Timing::LAN, Timing::RDMA] {
            assert!(Profile::new(timing).is_ok(), "{timing:?}");
        }
        let rdma = Profile::new(Timing::RDMA).unwrap();
        assert!(rdma.verdict_after() <= Duration::from_micros(600));
    }

    /// G-4: the original's own values, with a delay of 1 ms.
    #[test]
    pub(in crate::dirnet) fn g4_the_values_of_the_original_are_refused() {
        let ms = Duration::from_millis;
        let original = |clear, set, send, receive| Timing {
            send: ms(send),
            receive: ms(receive),
            clear: ms(clear),
            alarm: ms(set),
            window: ms(set),
            delay: ms(1),
            losses: 0,
            ..Timing::LAN
        };
        let eftos = Profile::new(original(600, 1400, 800, 1500));
        assert_eq!(eftos, Err(BrokenRule::Window));
        let art = Profile::new(original(120, 300, 200, 250));
        assert_eq!(art, Err(BrokenRule::Window));
    }

    #[test]
    pub(in crate::dirnet) fn g4_each_rule_is_checked_to_the_nanosecond() {
        let ok = Timing::RDMA;
        let less = |span: Duration| Duration(span.0 - 1);
        let cases = [
            (Timing { clear: Duration(0), ..ok }, BrokenRule::Zero),
            (Timing { clear: Duration::from_micros(100), ..ok }, BrokenRule::Alarm),
            (Timing { receive: less(ok.receive), ..ok }, BrokenRule::Tolerance),
            (Timing { alarm: Duration::from_micros(201), ..ok }, BrokenRule::Window),
            (Timing { window: less(ok.window), ..ok }, BrokenRule::Testimony),
            (Timing { candidate: less(ok.candidate), ..ok }, BrokenRule::Candidate),
            (Timing { join: Duration::from_micros(99), ..ok }, BrokenRule::Join),
        ];
        for (timing, rule) in cases {
            assert_eq!(Profile::new(timing), Err(rule), "{}", rule.name());
        }
    }

    #[test]
    pub(in crate::dirnet) fn spans_at_the_end_of_time_are_judged_without_overflow() {
        let most = Duration(u64::MAX);
        let timing = Timing { send: most, losses: u32::MAX, ..Timing::LAN };
        assert_eq!(Profile::new(timing), Err(BrokenRule::Tolerance));
    }
}
