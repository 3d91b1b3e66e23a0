//! `[dirnet.timing]`: single values of the timing profile, set instead of the profile's own.
//!
//! ```text
//!   profile = "lan" ──▶ its values ──▶ with those that are set ──▶ the rules (G-4) ──▶ in force
//!                                                                       │
//!                                                  refused: rule, both sides, what to raise
//! ```
//!
//! The rules are core's ([`dirnet::Profile::new`]); here is what a person needs to keep them: the
//! two sides of a broken one in microseconds, and the least value that mends it. Deadlines for a
//! clone and for a node that was reset have a floor, which no rule gives: processes take their
//! time to start.

use weft_core::dirnet::{self, BrokenRule, Timing};
use weft_core::time::Duration;

use super::ClusterError;
use super::dirnet::Profile;
use super::key::{self, Key};
use super::limit::LimitError;
use super::section::FileSection;
use crate::explain::{Code, Explain};

impl Profile {
    /// What the name stands for.
    #[must_use]
    pub const fn timing(self) -> Timing {
        match self {
            Self::Host => Timing::HOST,
            Self::Lan => Timing::LAN,
            Self::Rdma => Timing::RDMA,
        }
    }
}

/// Values that are set instead of the profile's own; core's [`Timing`] defines each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `send_us`: S.
    pub send_us: Option<u64>,
    /// `receive_us`: R.
    pub receive_us: Option<u64>,
    /// `clear_us`: C.
    pub clear_us: Option<u64>,
    /// `alarm_us`: A.
    pub alarm_us: Option<u64>,
    /// `window_us`: W.
    pub window_us: Option<u64>,
    /// `delay_us`: δ.
    pub delay_us: Option<u64>,
    /// `losses`: k.
    pub losses: Option<u32>,
    /// `candidate_us`: MID.
    pub candidate_us: Option<u64>,
    /// `join_us`: JOIN.
    pub join_us: Option<u64>,
    /// `clone_ms`: how soon a clone must be heard of.
    pub clone_ms: Option<u64>,
    /// `reboot_ms`: how soon a node that was reset must be heard of.
    pub reboot_ms: Option<u64>,
}

impl Overrides {
    /// The values of `base`, with those that are set here.
    #[must_use]
    pub fn apply(&self, base: Timing) -> Timing {
        let us = |set: Option<u64>, base: Duration| {
            set.map_or(base, |us| Duration(us.saturating_mul(1_000)))
        };
        let ms = |set: Option<u64>, base: Duration| {
            set.map_or(base, |ms| Duration(ms.saturating_mul(1_000_000)))
        };
        Timing {
            send: us(self.send_us, base.send),
            receive: us(self.receive_us, base.receive),
            clear: us(self.clear_us, base.clear),
            alarm: us(self.alarm_us, base.alarm),
            window: us(self.window_us, base.window),
            delay: us(self.delay_us, base.delay),
            losses: self.losses.unwrap_or(base.losses),
            candidate: us(self.candidate_us, base.candidate),
            join: us(self.join_us, base.join),
            clone: ms(self.clone_ms, base.clone),
            reboot: ms(self.reboot_ms, base.reboot),
        }
    }

    /// Every value of `[dirnet.timing]`, above those of `base`.
    pub(super) fn rows(&self, base: &Timing) -> [TimingRow; 11] {
        let row = |key, means, set, base| TimingRow { key, means, set, base };
        let us = |span: Duration| span.0 / 1_000;
        let ms = |span: Duration| span.0 / 1_000_000;
        [
            row(
                &key::TIMING_SEND_US,
                "The longest interval between heartbeats, in microseconds",
                self.send_us,
                us(base.send),
            ),
            row(
                &key::TIMING_RECEIVE_US,
                "Microseconds of silence after which a node is suspected",
                self.receive_us,
                us(base.receive),
            ),
            row(
                &key::TIMING_CLEAR_US,
                "The interval at which a component marks progress, in microseconds",
                self.clear_us,
                us(base.clear),
            ),
            row(
                &key::TIMING_ALARM_US,
                "The interval at which its I'm-Alive Task checks for progress, in microseconds",
                self.alarm_us,
                us(base.alarm),
            ),
            row(
                &key::TIMING_WINDOW_US,
                "Microseconds that a suspicion waits for an alarm before the verdict",
                self.window_us,
                us(base.window),
            ),
            row(
                &key::TIMING_DELAY_US,
                "The longest normal delay of a message, in microseconds",
                self.delay_us,
                us(base.delay),
            ),
            row(
                &key::TIMING_LOSSES,
                "How many heartbeats in a row may be lost",
                self.losses.map(u64::from),
                u64::from(base.losses),
            ),
            row(
                &key::TIMING_CANDIDATE_US,
                "Microseconds that a candidate has to claim the next term",
                self.candidate_us,
                us(base.candidate),
            ),
            row(
                &key::TIMING_JOIN_US,
                "Microseconds for which a joining node collects answers",
                self.join_us,
                us(base.join),
            ),
            row(
                &key::TIMING_CLONE_MS,
                "Milliseconds within which a restarted component must be heard",
                self.clone_ms,
                ms(base.clone),
            ),
            row(
                &key::TIMING_REBOOT_MS,
                "Milliseconds within which a node that was reset must be heard",
                self.reboot_ms,
                ms(base.reboot),
            ),
        ]
    }

    pub(super) fn read(section: &FileSection<'_>) -> Result<Self, ClusterError> {
        let number = |key: &Key| section.number(key);
        Ok(Self {
            send_us: number(&key::TIMING_SEND_US)?,
            receive_us: number(&key::TIMING_RECEIVE_US)?,
            clear_us: number(&key::TIMING_CLEAR_US)?,
            alarm_us: number(&key::TIMING_ALARM_US)?,
            window_us: number(&key::TIMING_WINDOW_US)?,
            delay_us: number(&key::TIMING_DELAY_US)?,
            losses: number(&key::TIMING_LOSSES)?
                .map(|value| u32::try_from(value).unwrap_or(u32::MAX)),
            candidate_us: number(&key::TIMING_CANDIDATE_US)?,
            join_us: number(&key::TIMING_JOIN_US)?,
            clone_ms: number(&key::TIMING_CLONE_MS)?,
            reboot_ms: number(&key::TIMING_REBOOT_MS)?,
        })
    }

    pub(super) fn check_limits(&self) -> Result<(), LimitError> {
        let mut rows = self.rows(&Timing::HOST).into_iter();
        rows.try_for_each(|TimingRow { key, set, .. }| match set {
            Some(value) => key.limit.admit(key.path, value),
            None => Ok(()),
        })
    }
}

/// One value of `[dirnet.timing]`.
pub(super) struct TimingRow {
    pub(super) key: &'static Key,
    /// What it says, in a sentence.
    pub(super) means: &'static str,
    /// What is set.
    pub(super) set: Option<u64>,
    /// What the profile has.
    pub(super) base: u64,
}

/// A rule of the DIR net's timing that the values in force break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{table} breaks {rule}, which comes to {left_us} us {sign} {right_us} us",
    table = key::DIRNET_TIMING,
    sign = if *rule == BrokenRule::Alarm { "<" } else { ">=" }
)]
pub struct TimingError {
    /// The rule.
    pub rule: BrokenRule,
    /// What its left side comes to, in microseconds.
    pub left_us: u64,
    /// What its right side comes to, in microseconds.
    pub right_us: u64,
    /// The key that mends it.
    pub key: &'static str,
    /// The least value of that key that does.
    pub least: u64,
    /// The other keys of the rule.
    pub others: &'static [&'static str],
}

impl TimingError {
    /// Checks `timing` against the rules.
    pub(super) fn check(timing: Timing) -> Result<(), Self> {
        dirnet::Profile::new(timing).map(|_| ()).map_err(|rule| Self::of(rule, &timing))
    }

    /// The two sides of `rule`, and what mends it.
    fn of(rule: BrokenRule, timing: &Timing) -> Self {
        let us = |span: Duration| span.as_micros();
        let delays = |n: u64| us(timing.delay).saturating_mul(n);
        let beats = us(timing.send).saturating_mul(u64::from(timing.losses).saturating_add(1));
        let (left_us, right_us, sides) = match rule {
            BrokenRule::Zero => (0, 1, SEND),
            BrokenRule::Alarm => {
                (us(timing.clear).saturating_add(delays(1)), us(timing.alarm), ALARM)
            }
            BrokenRule::Tolerance => (us(timing.receive), beats.saturating_add(delays(1)), RECEIVE),
            BrokenRule::Window => {
                let alarm_by = us(timing.send).saturating_add(us(timing.alarm).saturating_mul(2));
                let left_us = us(timing.receive).saturating_add(us(timing.window));
                (left_us, alarm_by.saturating_add(delays(1)), WINDOW)
            }
            BrokenRule::Testimony => (us(timing.window), delays(4), TESTIMONY),
            BrokenRule::Candidate => {
                (us(timing.candidate), beats.saturating_add(delays(3)), CANDIDATE)
            }
            BrokenRule::Join => (us(timing.join), delays(2), JOIN),
        };
        let least = match rule {
            // The one rule with the larger side on the right, and the only strict one.
            BrokenRule::Alarm => left_us.saturating_add(1),
            BrokenRule::Window => right_us.saturating_sub(us(timing.receive)),
            BrokenRule::Zero
            | BrokenRule::Tolerance
            | BrokenRule::Testimony
            | BrokenRule::Candidate
            | BrokenRule::Join => right_us,
        };
        let Sides { key, others } = sides;
        Self { rule, left_us, right_us, key, least, others }
    }

    /// The keys that one of which breaks it, the likeliest first.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'static str> {
        let receive = key::TIMING_RECEIVE_US.path;
        std::iter::once(self.key).chain(self.others.iter().copied()).chain([receive])
    }
}

/// What a rule is made of: the key that is raised to mend it, and the others.
struct Sides {
    key: &'static str,
    others: &'static [&'static str],
}

const SEND: Sides = Sides { key: key::TIMING_SEND_US.path, others: &[] };
const ALARM: Sides = Sides {
    key: key::TIMING_ALARM_US.path,
    others: &[key::TIMING_CLEAR_US.path, key::TIMING_DELAY_US.path],
};
const RECEIVE: Sides = Sides {
    key: key::TIMING_RECEIVE_US.path,
    others: &[key::TIMING_LOSSES.path, key::TIMING_SEND_US.path, key::TIMING_DELAY_US.path],
};
const WINDOW: Sides = Sides {
    key: key::TIMING_WINDOW_US.path,
    others: &[key::TIMING_ALARM_US.path, key::TIMING_SEND_US.path, key::TIMING_DELAY_US.path],
};
const TESTIMONY: Sides =
    Sides { key: key::TIMING_WINDOW_US.path, others: &[key::TIMING_DELAY_US.path] };
const CANDIDATE: Sides = Sides {
    key: key::TIMING_CANDIDATE_US.path,
    others: &[key::TIMING_LOSSES.path, key::TIMING_SEND_US.path, key::TIMING_DELAY_US.path],
};
const JOIN: Sides = Sides { key: key::TIMING_JOIN_US.path, others: &[key::TIMING_DELAY_US.path] };

impl Explain for TimingError {
    fn code(&self) -> Code {
        Code::ClusterFile
    }

    fn cure(&self) -> String {
        let Self { key, least, others, .. } = self;
        let (raise, others) = (format!("set {key} to {least} or more"), others.join(", "));
        match (*least <= key::SPAN_MAX_US, others.is_empty()) {
            (true, false) => format!("{raise}, or lower {others}"),
            (_, true) => raise,
            // No value of this key does.
            (false, false) => format!("lower {others}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: [BrokenRule; 6] = [
        BrokenRule::Alarm,
        BrokenRule::Tolerance,
        BrokenRule::Window,
        BrokenRule::Testimony,
        BrokenRule::Candidate,
        BrokenRule::Join,
    ];

    fn is_kept(rule: BrokenRule, timing: &Timing) -> bool {
        let TimingError { left_us, right_us, .. } = TimingError::of(rule, timing);
        if rule == BrokenRule::Alarm { left_us < right_us } else { left_us >= right_us }
    }

    #[test]
    fn every_profile_keeps_every_rule() {
        for profile in [Profile::Host, Profile::Lan, Profile::Rdma] {
            let timing = profile.timing();
            assert_eq!(TimingError::check(timing), Ok(()), "{profile}");
            assert!(RULES.iter().all(|rule| is_kept(*rule, &timing)), "{profile}");
        }
    }

    #[test]
    fn what_is_not_set_is_the_profiles() {
        let set = Overrides { send_us: Some(7), clone_ms: Some(9), ..Overrides::default() };
        let timing = set.apply(Timing::LAN);
        let (send, clone) = (Duration::from_micros(7), Duration::from_millis(9));
        assert_eq!(timing, Timing { send, clone, ..Timing::LAN });
        assert_eq!(Overrides::default().apply(Timing::RDMA), Timing::RDMA);
    }

    /// Small numbers, so that every rule is about as often kept as broken.
    fn any_overrides() -> impl Strategy<Value = Overrides> {
        let us = || prop::option::of(10_u64..400_000);
        let spans = (us(), us(), us(), us(), us(), us());
        (spans, prop::option::of(0_u32..6), us(), us()).prop_map(
            |(
                (send_us, receive_us, clear_us, alarm_us, window_us, delay_us),
                losses,
                candidate_us,
                join_us,
            )| {
                let (clone_ms, reboot_ms) = (Some(250), None);
                Overrides {
                    send_us,
                    receive_us,
                    clear_us,
                    alarm_us,
                    window_us,
                    delay_us,
                    losses,
                    candidate_us,
                    join_us,
                    clone_ms,
                    reboot_ms,
                }
            },
        )
    }

    proptest! {
        /// The reported sides are those that core has compared, and the reported cure satisfies the
        /// rule.
        #[test]
        fn sides_are_cores_and_the_cure_mends(set in any_overrides()) {
            let timing = set.apply(Timing::LAN);
            match TimingError::check(timing) {
                Ok(()) => prop_assert!(RULES.iter().all(|rule| is_kept(*rule, &timing))),
                Err(error) => {
                    prop_assert!(!is_kept(error.rule, &timing), "{error}");
                    let mended = mend(set, &error).apply(Timing::LAN);
                    prop_assert!(is_kept(error.rule, &mended), "{error}: {}", error.cure());
                    let next = TimingError::check(mended);
                    prop_assert_ne!(next.map_err(|next| next.rule), Err(error.rule));
                }
            }
        }
    }

    #[test]
    fn a_cure_is_a_value_that_the_file_takes() {
        let set = Overrides { delay_us: Some(key::SPAN_MAX_US), ..Overrides::default() };
        let error = TimingError::check(set.apply(Timing::LAN)).expect_err("it breaks a rule");
        assert_eq!(error.rule, BrokenRule::Alarm);
        assert!(error.cure().starts_with("lower dirnet.timing.clear_us"), "{}", error.cure());
    }

    fn mend(set: Overrides, error: &TimingError) -> Overrides {
        let least = Some(error.least);
        match error.rule {
            BrokenRule::Zero => Overrides { send_us: least, ..set },
            BrokenRule::Alarm => Overrides { alarm_us: least, ..set },
            BrokenRule::Tolerance => Overrides { receive_us: least, ..set },
            BrokenRule::Window | BrokenRule::Testimony => Overrides { window_us: least, ..set },
            BrokenRule::Candidate => Overrides { candidate_us: least, ..set },
            BrokenRule::Join => Overrides { join_us: least, ..set },
        }
    }
}
