//! The aims of the wheel, and whether this run reached them.

use super::report::{Action, Keeper, Row};
use crate::verdict::Verdict;

/// At most so many nanoseconds, while the timers fit into a processor's own cache.
const START_NS: f64 = 12.0;
const STOP_NS: f64 = 8.0;
/// At most so many nanoseconds for an advance at which nothing is due, however many timers run.
const ADVANCE_NS: f64 = 3.0;
/// As many timers as are taken to fit: 400 kB of entries.
const CACHED_TIMERS: usize = 10_000;

pub(super) fn judge(rows: &[Row]) -> Vec<Verdict> {
    let cached = |row: &&Row| row.timers <= CACHED_TIMERS;
    let any = |_: &&Row| true;
    vec![
        within(rows, Action::Start, START_NS, "up to 10^4 timers", cached),
        within(rows, Action::Stop, STOP_NS, "up to 10^4 timers", cached),
        within(rows, Action::Advance, ADVANCE_NS, "any number of timers", any),
        renewing(rows),
        allocating(rows),
    ]
}

fn ours(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.keeper == Keeper::Weft)
}

fn within(
    rows: &[Row],
    action: Action,
    limit_ns: f64,
    whose: &str,
    is_meant: impl Fn(&&Row) -> bool,
) -> Verdict {
    let aim = format!("{action} within {limit_ns:.0} ns with {whose}");
    let meant = ours(rows).filter(|row| row.action == action).filter(is_meant);
    let Some(worst) = meant.max_by(|one, other| one.p50_ns.total_cmp(&other.p50_ns)) else {
        return Verdict::unmeasured(aim);
    };
    let found = format!("{:.1} ns with {}", worst.p50_ns, worst.timers);
    Verdict { aim, reached: Some(worst.p50_ns <= limit_ns), found }
}

fn renewing(rows: &[Row]) -> Verdict {
    let aim = "to renew is cheaper than to start".to_owned();
    let of = |action, timers| {
        ours(rows).find(|row| row.action == action && row.timers == timers).map(|row| row.p50_ns)
    };
    let shares = ours(rows).filter(|row| row.action == Action::Start).filter_map(|row| {
        let share = of(Action::Renew, row.timers)? / row.p50_ns;
        Some((share, row.timers))
    });
    let Some((share, timers)) = shares.max_by(|one, other| one.0.total_cmp(&other.0)) else {
        return Verdict::unmeasured(aim);
    };
    let found = format!("at most {share:.2} x a start, with {timers} timers");
    Verdict { aim, reached: Some(share < 1.0), found }
}

fn allocating(rows: &[Row]) -> Verdict {
    let aim = "no allocation".to_owned();
    let counted: Option<Vec<f64>> = ours(rows).map(|row| row.allocations).collect();
    match counted.filter(|counted| !counted.is_empty()) {
        None => Verdict::unmeasured(aim),
        Some(counted) => {
            let calls = counted.iter().filter(|allocations| **allocations > 0.0).count();
            let found = format!("{calls} of {} kinds of calls allocate", counted.len());
            Verdict { aim, reached: Some(calls == 0), found }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(timers: usize, action: Action, p50_ns: f64) -> Row {
        let allocations = Some(0.0);
        Row {
            timers,
            action,
            keeper: Keeper::Weft,
            p50_ns,
            min_ns: p50_ns,
            ratio_to_weft: 1.0,
            allocations,
        }
    }

    fn reached(rows: &[Row]) -> Vec<Option<bool>> {
        judge(rows).iter().map(|verdict| verdict.reached).collect()
    }

    #[test]
    fn aims_are_reached_at_their_limits_and_missed_beyond() {
        let rows = |over: f64| {
            [
                row(100, Action::Start, START_NS + over),
                row(100, Action::Stop, STOP_NS + over),
                row(100, Action::Advance, ADVANCE_NS + over),
                row(100, Action::Renew, START_NS - 0.1 + 2.0 * over),
            ]
        };
        assert_eq!(reached(&rows(0.0)), [Some(true); 5]);
        let missed = [Some(false), Some(false), Some(false), Some(false), Some(true)];
        assert_eq!(reached(&rows(0.1)), missed);
    }

    #[test]
    fn memory_beyond_the_cache_is_not_judged_but_an_advance_is() {
        let rows = [row(100_000, Action::Start, 50.0), row(100_000, Action::Advance, 50.0)];
        assert_eq!(reached(&rows), [None, None, Some(false), None, Some(true)]);
    }

    #[test]
    fn one_allocation_is_one_too_many_and_rivals_are_not_judged() {
        let mut rows = [row(100, Action::Stop, 1.0), row(100, Action::Stop, 99.0)];
        rows[0].allocations = Some(0.01);
        rows[1].keeper = Keeper::DelayQueue;
        assert_eq!(reached(&rows), [None, Some(true), None, None, Some(false)]);
    }
}
