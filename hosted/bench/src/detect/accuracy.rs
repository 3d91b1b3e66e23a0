//! All nodes run under bad conditions: how often the DIR net is wrong.

use std::collections::BTreeSet;

use weft_core::dirnet::{Output, Timing, Verdict};
use weft_core::ids::Rank;

use super::report::{Accuracy, Trouble};
use super::simulated::NODES;
use weft_sim::dirnet::{Lab, NetStrike, Setting};
use weft_sim::draws::{Draws, Purpose};

const MS: u64 = 1_000_000;
/// Links of both detectors take up to so long, and lose so many of a thousand messages.
pub(super) const DELAY_MAX: u64 = 20 * MS;
pub(super) const LOST: u64 = 100;
/// A cluster is restarted after this many periods, so that seeds differ.
pub(super) const RUN_PERIODS: u64 = 500;
/// From the beginning of one stall to the next, in periods.
pub(super) const STALL_EVERY: u64 = 25;
/// How long a node stands still, if it does.
pub(super) fn stall(trouble: Trouble, period: u64, draws: &mut Draws) -> Option<u64> {
    match trouble {
        Trouble::FewLosses | Trouble::Losses => None,
        Trouble::Stalls => Some(160 * MS),
        Trouble::LongStalls => Some(period * draws.between(1, 20)),
    }
}

/// The DIR net under the profile `lan`.
pub(super) fn ours(trouble: Trouble, heartbeats: u64) -> Accuracy {
    let period = Timing::LAN.send.0;
    let lost_in_a_row_max =
        if trouble == Trouble::FewLosses { Timing::LAN.losses } else { u32::MAX };
    let (mut sent, mut node_ns, mut wrong) = (0, 0, 0);
    for seed in 0.. {
        if sent >= heartbeats {
            break;
        }
        let setting = Setting {
            lost: LOST,
            lost_in_a_row_max,
            ..Setting::fair(NODES, Timing::LAN, DELAY_MAX)
        };
        let mut draws = Draws::new(seed, Purpose::Faults);
        let mut lab = Lab::settled(setting, seed, 2_000 * MS);
        let (before, began) = (lab.heartbeats(), lab.now().0);
        lab.take_events();
        for _ in 0..RUN_PERIODS / STALL_EVERY {
            let stalled = stall(trouble, period, &mut draws).map(|span| {
                let node = draws.below(u64::from(NODES)) as u16;
                lab.strike(NetStrike::Stall(node, span / MS));
                Rank(node)
            });
            lab.run_for(STALL_EVERY * period);
            wrong += count(&mut lab, stalled);
        }
        sent += lab.heartbeats() - before;
        node_ns += (lab.now().0 - began) * u64::from(NODES);
    }
    Accuracy::new("weft", trouble, sent, node_ns, wrong)
}

/// Lives that were taken for dead, or whose component was, since it was last counted.
fn count(lab: &mut Lab, stalled: Option<Rank>) -> u64 {
    let mut judged = BTreeSet::new();
    for (_, _, output) in lab.take_events() {
        let Output::Verdict(why) = output else { continue };
        let is_removal =
            matches!(why.verdict, Verdict::AgentDown | Verdict::NodeDown | Verdict::Isolated);
        if is_removal && Some(why.node) != stalled {
            judged.insert((why.node, why.incarnation));
        }
    }
    judged.len() as u64
}
