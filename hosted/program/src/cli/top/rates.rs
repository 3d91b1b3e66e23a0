//! From answers to rates: what a node did between two answers, in a bounded history.
//!
//! A rate is of one component: the next one counts from zero, so the first answer of each has none,
//! nor has one whose counters stand below those of the answer before.

use std::collections::VecDeque;

use weft::node::control::NodeStatus;
use weft_core::neb::number_in_epoch;

/// The most samples that are kept of a node: two minutes at a sample each second.
const SAMPLES_MAX: usize = 120;

/// From an empty cell to a full one.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Messages per second of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rates {
    /// Put into other mailboxes.
    pub(super) put: u64,
    /// Taken from its own.
    pub(super) taken: u64,
    /// Delivered here, of broadcasts and groups of others.
    pub(super) delivered: u64,
}

/// What a component has counted, and when it began to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ComponentCount {
    incarnation: u32,
    since_unix_ms: u64,
    counted: Rates,
}

/// The last samples of one node, oldest first; none where there is no rate.
#[derive(Debug, Default)]
pub(super) struct History {
    samples: VecDeque<(u64, Option<Rates>)>,
    last: Option<(u64, ComponentCount)>,
}

impl History {
    /// Takes an answer of that time; none if the node did not answer.
    pub(super) fn handle_answer(&mut self, at_ns: u64, node: Option<&NodeStatus>) {
        let now = node.and_then(ComponentCount::of);
        let rates = now.zip(self.last).and_then(|(now, (then_ns, then))| {
            now.since(&then, at_ns.checked_sub(then_ns).filter(|period_ns| *period_ns > 0)?)
        });
        // A component that could not be asked goes on counting.
        self.last = now.map(|now| (at_ns, now)).or(self.last);
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back((at_ns, rates));
    }

    /// The rates of the last answer.
    pub(super) fn now(&self) -> Option<Rates> {
        self.samples.back().and_then(|(_, rates)| *rates)
    }

    /// From the first of the last `samples` to the last, in nanoseconds.
    pub(super) fn span_ns(&self, samples: usize) -> u64 {
        let first = self.samples.iter().rev().take(samples).next_back();
        let span = |((first, _), (last, _)): (&(u64, _), &(u64, _))| last.saturating_sub(*first);
        first.zip(self.samples.back()).map_or(0, span)
    }

    /// The highest of these rates among the last `samples`.
    pub(super) fn highest(&self, of: fn(Rates) -> u64, samples: usize) -> u64 {
        let last = self.samples.iter().rev().take(samples);
        last.filter_map(|(_, rates)| rates.map(of)).max().unwrap_or(0)
    }

    /// The last samples as a line of so many cells, the highest of them `full`; a dot is a sample
    /// without a rate, and no rate but zero has the lowest bar.
    pub(super) fn spark(&self, of: fn(Rates) -> u64, full: u64, cells: usize) -> String {
        let last = self.samples.iter().skip(self.samples.len().saturating_sub(cells));
        let bar = |(_, rates): &(u64, Option<Rates>)| match rates.map(of) {
            None => '·',
            Some(0) => BARS[0],
            Some(rate) => {
                let (rate, full) = (u128::from(rate.min(full)), u128::from(full.max(1)));
                let steps = (BARS.len() - 1) as u128;
                BARS[usize::try_from((rate * steps).div_ceil(full)).unwrap_or(0).max(1)]
            }
        };
        let line: String = last.map(bar).collect();
        format!("{line:>cells$}")
    }
}

impl ComponentCount {
    /// What the component of this node has counted, if it could be asked.
    fn of(node: &NodeStatus) -> Option<Self> {
        let counters = node.counters?;
        let broadcasts = node.broadcasts.iter().filter(|row| row.origin != node.rank);
        let roots = node.groups.iter().flat_map(|group| &group.roots);
        let roots = roots.filter(|root| root.root != node.rank);
        let delivered = broadcasts.map(|row| number_in_epoch(row.delivered));
        let delivered = delivered.chain(roots.map(|root| root.delivered));
        let counted = Rates {
            put: counters.put,
            taken: counters.taken,
            delivered: delivered.fold(0, u64::saturating_add),
        };
        let (incarnation, since_unix_ms) = (node.incarnation, counters.since_unix_ms);
        Some(Self { incarnation, since_unix_ms, counted })
    }

    /// The rates since `earlier`; none if another component counted then, or a counter went back.
    fn since(&self, earlier: &Self, period_ns: u64) -> Option<Rates> {
        let begun = |count: &Self| (count.incarnation, count.since_unix_ms);
        let rate = |of: fn(Rates) -> u64| {
            let more = of(self.counted).checked_sub(of(earlier.counted))?;
            let per_s = u128::from(more) * 1_000_000_000 / u128::from(period_ns);
            Some(u64::try_from(per_s).unwrap_or(u64::MAX))
        };
        (begun(self) == begun(earlier)).then_some(())?;
        Some(Rates {
            put: rate(|it| it.put)?,
            taken: rate(|it| it.taken)?,
            delivered: rate(|it| it.delivered)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::survey::tests::{Seen, node_status};
    use weft::node::control::CounterStatus;

    const S: u64 = 1_000_000_000;

    /// A node whose component began to count at that time, and has put so many.
    fn node(since_unix_ms: u64, put: u64) -> NodeStatus {
        let counters = CounterStatus { since_unix_ms, put, ..CounterStatus::default() };
        NodeStatus { counters: Some(counters), ..node_status(0, Seen::default()) }
    }

    fn history(answers: &[(u64, Option<NodeStatus>)]) -> History {
        let mut history = History::default();
        answers.iter().for_each(|(at, node)| history.handle_answer(at * S, node.as_ref()));
        history
    }

    fn puts(history: &History) -> Vec<Option<u64>> {
        history.samples.iter().map(|(_, rates)| rates.map(|rates| rates.put)).collect()
    }

    #[test]
    fn a_rate_is_of_one_component_and_never_of_two() {
        let answers = [(1, Some(node(7, 100))), (3, Some(node(7, 1100)))];
        assert_eq!(puts(&history(&answers)), [None, Some(500)]);
        // The next component; and one that began in the same millisecond and stands lower.
        let [first, _] = answers;
        let next = [first.clone(), (2, Some(node(8, 9_000))), (3, Some(node(8, 9_001)))];
        assert_eq!(puts(&history(&next)), [None, None, Some(1)]);
        let lower = [first.clone(), (2, Some(node(7, 99)))];
        assert_eq!(puts(&history(&lower)), [None, None]);
        let at_once = [first.clone(), (1, Some(node(7, 200))), (0, Some(node(7, 300)))];
        assert_eq!(puts(&history(&at_once)), [None, None, None], "no time has passed");
    }

    #[test]
    fn silence_leaves_a_gap_and_the_mean_behind_it() {
        let unasked = NodeStatus { counters: None, ..node(7, 0) };
        let answers =
            [(1, Some(node(7, 0))), (2, None), (3, Some(unasked)), (5, Some(node(7, 40)))];
        let history = history(&answers);
        assert_eq!(puts(&history), [None, None, None, Some(10)]);
        assert_eq!((history.span_ns(2), history.span_ns(9)), (2 * S, 4 * S));
    }

    #[test]
    fn deliveries_of_others_count_by_their_number_in_the_boot() {
        let at = |delivered| {
            let mut node = NodeStatus { rank: 1, ..node(7, 0) };
            node.broadcasts = node_status(1, Seen::at(9, delivered)).broadcasts;
            node
        };
        let history = history(&[(1, Some(at(4))), (2, Some(at(6)))]);
        assert_eq!(history.now().map(|rates| rates.delivered), Some(3 * 2), "three other origins");
    }

    #[test]
    fn a_spark_has_a_bar_for_each_sample_and_the_history_an_end() {
        let put = |it: Rates| it.put;
        let answers: Vec<_> = [0, 0, 1, 101, 1_101].map(|put| Some(node(7, put))).into();
        let mut history = history(&(1..).zip(answers).collect::<Vec<_>>());
        assert_eq!(history.spark(put, history.highest(put, 7), 7), "  ·▁▂▂█");
        assert_eq!(history.highest(put, 1), 1_000);
        assert_eq!(history.highest(put, 0), 0);
        assert_eq!(history.spark(put, history.highest(put, 2), 2), "▂█");
        assert_eq!(history.spark(put, 0, 0), "");
        for at in 10..500 {
            history.handle_answer(at * S, Some(&node(7, 1_101)));
        }
        assert_eq!((history.samples.len(), history.highest(put, 500)), (SAMPLES_MAX, 0));
    }
}
