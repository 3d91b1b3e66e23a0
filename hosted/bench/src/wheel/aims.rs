//! The aims of the wheel, and whether this run reached them.

use super::report::{TimerAction, TimerKeeper, WheelRow};
use crate::verdict::AimVerdict;

/// At most so many nanoseconds, while the timers fit into a processor's own cache.
const START_NS: f64 = 12.0;
const STOP_NS: f64 = 8.0;
/// At most so many nanoseconds for an advance at which nothing is due, however many timers run.
const ADVANCE_NS: f64 = 3.0;
/// As many timers as are taken to fit: 400 kB of entries.
const CACHED_TIMERS: usize = 10_000;

pub(super) fn judge(rows: &[WheelRow]) -> Vec<AimVerdict> {
    let cached = |row: &&WheelRow| row.timers <= CACHED_TIMERS;
    let any = |_: &&WheelRow| true;
    vec![
        within(rows, TimerAction::Start, START_NS, "up to 10^4 timers", cached),
        within(rows, TimerAction::Stop, STOP_NS, "up to 10^4 timers", cached),
        within(rows, TimerAction::Advance, ADVANCE_NS, "any number of timers", any),
        renewing(rows),
        allocating(rows),
    ]
}

fn ours(rows: &[WheelRow]) -> impl Iterator<Item = &WheelRow> {
    rows.iter().filter(|row| row.keeper == TimerKeeper::Weft)
}

fn within(
    rows: &[WheelRow],
    action: TimerAction,
    limit_ns: f64,
    whose: &str,
    is_meant: impl Fn(&&WheelRow) -> bool,
) -> AimVerdict {
    let aim = format!("{action} within {limit_ns:.0} ns with {whose}");
    let meant = ours(rows).filter(|row| row.action == action).filter(is_meant);
    let Some(worst) = meant.max_by(|one, other| one.p50_ns.total_cmp(&other.p50_ns)) else {
        return AimVerdict::unmeasured(aim);
    };
    let found = format!("{:.1} ns with {}", worst.p50_ns, worst.timers);
    AimVerdict { aim, reached: Some(worst.p50_ns <= limit_ns), found }
}

fn renewing(rows: &[WheelRow]) -> AimVerdict {
    let aim = "to renew is cheaper than to start".to_owned();
    let of = |action, timers| {
        ours(rows).find(|row| row.action == action && row.timers == timers).map(|row| row.p50_ns)
    };
    let shares = ours(rows).filter(|row| row.action == TimerAction::Start).filter_map(|row| {
        let share = of(TimerAction::Renew, row.timers)? / row.p50_ns;
        Some((share, row.timers))
    });
    let Some((share, timers)) = shares.max_by(|one, other| one.0.total_cmp(&other.0)) else {
        return AimVerdict::unmeasured(aim);
    };
    let found = format!("at most {share:.2} x a start, with {timers} timers");
    AimVerdict { aim, reached: Some(share < 1.0), found }
}

fn allocating(rows: &[WheelRow]) -> AimVerdict {
    let aim = "no allocation".to_owned();
    let counted: Option<Vec<f64>> = ours(rows).map(|row| row.allocations).collect();
    match counted.filter(|counted| !counted.is_empty()) {
        None => AimVerdict::unmeasured(aim),
        Some(counted) => {
            let calls = counted.iter().filter(|allocations| **allocations > 0.0).count();
            let found = format!("{calls} of {} kinds of calls allocate", counted.len());
            AimVerdict { aim, reached: Some(calls == 0), found }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(timers: usize, action: TimerAction, p50_ns: f64) -> WheelRow {
        let allocations = Some(0.0);
        WheelRow {
            timers,
            action,
            keeper: TimerKeeper::Weft,
            p50_ns,
            min_ns: p50_ns,
            ratio_to_weft: 1.0,
            allocations,
        }
    }

    fn reached(rows: &[WheelRow]) -> Vec<Option<bool>> {
        judge(rows).iter().map(|verdict| verdict.reached).collect()
    }

    #[test]
    fn aims_are_reached_at_their_limits_and_missed_beyond() {
        let rows = |over: f64| {
            [
                row(100, TimerAction::Start, START_NS + over),
                row(100, TimerAction::Stop, STOP_NS + over),
                row(100, TimerAction::Advance, ADVANCE_NS + over),
                row(100, TimerAction::Renew, START_NS - 0.1 + 2.0 * over),
            ]
        };
        assert_eq!(reached(&rows(0.0)), [Some(true); 5]);
        let missed = [Some(false), Some(false), Some(false), Some(false), Some(true)];
        assert_eq!(reached(&rows(0.1)), missed);
    }

    #[test]
    fn memory_beyond_the_cache_is_not_judged_but_an_advance_is() {
        let rows =
            [row(100_000, TimerAction::Start, 50.0), row(100_000, TimerAction::Advance, 50.0)];
        assert_eq!(reached(&rows), [None, None, Some(false), None, Some(true)]);
    }

    #[test]
    fn one_allocation_is_one_too_many_and_rivals_are_not_judged() {
        let mut rows = [row(100, TimerAction::Stop, 1.0), row(100, TimerAction::Stop, 99.0)];
        rows[0].allocations = Some(0.01);
        rows[1].keeper = TimerKeeper::DelayQueue;
        assert_eq!(reached(&rows), [None, Some(true), None, None, Some(false)]);
    }
}
