//! `foca`, with what it calls `simple`, in the network that ours has: the same links, losses and
//! stalls.
//!
//! A heartbeat is a probe that a member begins. A member that is declared down takes a new identity
//! and is a member again, as `foca` has it.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use foca::{AccumulatingRuntime, Config, Foca, Identity, NoCustomBroadcast, OwnedNotification};
use foca::{PostcardCodec, Timer};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use weft_core::dirnet::Timing;

use super::accuracy::{DELAY_MAX, LOST, RUN_PERIODS, STALL_EVERY, stall};
use super::report::{Accuracy, Trouble};
use super::simulated::NODES;
use weft_sim::draws::{Draws, Purpose};

/// A member, in one of its identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct SwimMember {
    node: u16,
    incarnation: u32,
}

impl Identity for SwimMember {
    type Addr = u16;

    fn renew(&self) -> Option<Self> {
        Some(Self { incarnation: self.incarnation + 1, ..*self })
    }

    fn addr(&self) -> u16 {
        self.node
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.incarnation > adversary.incarnation
    }
}

type Machine = Foca<SwimMember, PostcardCodec, ChaCha8Rng, NoCustomBroadcast>;
type SwimRuntime = AccumulatingRuntime<SwimMember>;

enum SwimFlight {
    Data { to: u16, bytes: Vec<u8> },
    Timer { node: u16, timer: Timer<SwimMember> },
}

struct SwimCluster {
    now: u64,
    nodes: Vec<Machine>,
    stalls: Vec<u64>,
    flights: BTreeMap<(u64, u64), SwimFlight>,
    posted: u64,
    draws: Draws,
    losses_max: u32,
    lost_in_a_row: BTreeMap<(u16, u16), u32>,
    probes: u64,
    /// Identities that were declared down.
    ever: HashSet<SwimMember>,
    stalled: Option<u16>,
    wrong: u64,
}

/// `foca` under the same trouble, for at least so many probes.
pub(super) fn foca(trouble: Trouble, heartbeats: u64) -> Accuracy {
    let period = Config::simple().probe_period.as_nanos() as u64;
    let (mut probes, mut node_ns, mut wrong) = (0, 0, 0);
    for seed in 0.. {
        if probes >= heartbeats {
            break;
        }
        let mut draws = Draws::new(seed, Purpose::Faults);
        let mut cluster = SwimCluster::settled(trouble, seed, 4 * period);
        let (before, began) = (cluster.probes, cluster.now);
        (cluster.wrong, cluster.ever) = (0, HashSet::new());
        for _ in 0..RUN_PERIODS / STALL_EVERY {
            cluster.stalled = stall(trouble, period, &mut draws).map(|span| {
                let node = draws.below(u64::from(NODES)) as u16;
                cluster.stalls[usize::from(node)] = cluster.now + span;
                node
            });
            cluster.run_until(cluster.now + STALL_EVERY * period);
        }
        probes += cluster.probes - before;
        node_ns += (cluster.now - began) * u64::from(NODES);
        wrong += cluster.wrong;
    }
    Accuracy::new("foca", trouble, probes, node_ns, wrong)
}

impl SwimCluster {
    /// Members that know each other, after a while.
    fn settled(trouble: Trouble, seed: u64, for_ns: u64) -> Self {
        let machine = |node| {
            let generator = ChaCha8Rng::seed_from_u64(seed << 8 | u64::from(node));
            Foca::new(
                SwimMember { node, incarnation: 0 },
                Config::simple(),
                generator,
                PostcardCodec,
            )
        };
        let few = trouble == Trouble::FewLosses;
        let mut cluster = Self {
            now: 0,
            nodes: (0..NODES).map(machine).collect(),
            stalls: vec![0; usize::from(NODES)],
            flights: BTreeMap::new(),
            posted: 0,
            draws: Draws::new(seed, Purpose::Work),
            losses_max: if few { Timing::LAN.losses } else { u32::MAX },
            lost_in_a_row: BTreeMap::new(),
            probes: 0,
            ever: HashSet::new(),
            stalled: None,
            wrong: 0,
        };
        let all: Vec<_> = (0..NODES)
            .map(|node| foca::Member::alive(SwimMember { node, incarnation: 0 }))
            .collect();
        for node in 0..NODES {
            cluster.act(node, |machine, runtime| {
                machine.apply_many(all.iter().cloned(), false, runtime)
            });
        }
        cluster.run_until(for_ns);
        cluster
    }

    fn run_until(&mut self, at: u64) {
        while let Some(((due, _), flight)) = self.flights.pop_first() {
            if due > at {
                self.post_at(due, flight);
                break;
            }
            self.now = self.now.max(due);
            self.land(flight);
        }
        self.now = at;
    }

    fn land(&mut self, flight: SwimFlight) {
        let (SwimFlight::Data { to: node, .. } | SwimFlight::Timer { node, .. }) = flight;
        let stalls = self.stalls[usize::from(node)];
        if stalls > self.now {
            return self.post_at(stalls, flight);
        }
        match flight {
            SwimFlight::Data { bytes, .. } => {
                self.act(node, |machine, runtime| machine.handle_data(&bytes, runtime));
            }
            SwimFlight::Timer { timer, .. } => {
                let probes = matches!(timer, Timer::ProbeRandomMember(_));
                self.probes += u64::from(probes);
                self.act(node, |machine, runtime| machine.handle_timer(timer, runtime));
            }
        }
    }

    /// Has one machine do something, and does what it wants done.
    fn act(
        &mut self,
        node: u16,
        act: impl FnOnce(&mut Machine, &mut SwimRuntime) -> Result<(), foca::Error>,
    ) {
        let mut runtime = SwimRuntime::new();
        // What it refuses, such as words for an identity it has given up, changes nothing.
        let _ = act(&mut self.nodes[usize::from(node)], &mut runtime);
        while let Some((to, bytes)) = runtime.to_send() {
            self.send(node, to.node, bytes.to_vec());
        }
        while let Some((after, timer)) = runtime.to_schedule() {
            self.post_at(self.now + nanos(after), SwimFlight::Timer { node, timer });
        }
        while let Some(notification) = runtime.to_notify() {
            if let OwnedNotification::MemberDown(member) = notification
                && Some(member.node) != self.stalled
                && self.ever.insert(member)
            {
                self.wrong += 1;
            }
        }
    }

    fn send(&mut self, from: u16, to: u16, bytes: Vec<u8>) {
        if self.draws.chance(LOST, 1000) {
            let in_a_row = self.lost_in_a_row.entry((from, to)).or_default();
            *in_a_row += 1;
            if *in_a_row <= self.losses_max {
                return;
            }
        }
        self.lost_in_a_row.remove(&(from, to));
        let at = self.now + 1 + self.draws.below(DELAY_MAX);
        self.post_at(at, SwimFlight::Data { to, bytes });
    }

    fn post_at(&mut self, at: u64, flight: SwimFlight) {
        self.posted += 1;
        self.flights.insert((at, self.posted), flight);
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
