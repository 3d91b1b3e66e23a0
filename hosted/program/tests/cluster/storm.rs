//! Components are killed, hang and fall silent under traffic; no message of a survivor is lost.
//!
//! ```text
//!   putter (from, to) ──▶ node `from` ══▶ mailbox of `to` ──▶ collector ──reply──▶ node `to` ══▶ …
//!   pipeliner ────────────────▲ ▲ kill -9, hang or silence, again and again, of any component
//! ```
//!
//! A putter waits for each answer; a pipeliner keeps several requests under way.
//!
//! What is struck is found by the DIR net and cloned; at the end there is one manager, and no
//! process or file is left. `WEFT_STORM_STRIKES` sets how many strikes, `WEFT_STORM_SEED` which;
//! the seed of a run is printed.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use weft::client::{Client, ClientError, Inbox};
use weft::node::control::{Fault, Outcome, Payload, PutOutcome, Refused, Reply, Request, Want};
use weft::packet::Socket;
use weft::process::Signal;

use crate::PATIENCE;
use crate::ledger::{Kind, Received, Sent, Stream, Tally};
use crate::place::{Nodes, Place, eventually};

const NODES: u16 = 4;
const BATCH: usize = 8;
/// Clients that pipeline, and how many requests each keeps under way: more than a node reads.
const PIPELINERS: u16 = 16;
const PIPELINED: usize = 24;
/// A collector that replies on each node, a putter from each to each other one, the pipeliners.
const WRITERS: u16 = NODES * NODES + PIPELINERS;
/// How long a full mailbox may hold up a put. Short, so that some are refused.
const PUT_TIMEOUT: Duration = Duration::from_millis(50);
const TAKE_TIMEOUT: Duration = Duration::from_millis(50);

/// A cluster whose mailboxes are small, so that they are full at times, and whose components may
/// be killed without end. Two of four are killed at once, so that a decision takes no majority.
const CLUSTER: &str = "name = \"t\"\nnodes = 4\nmailbox.slots = 64\nmailbox.message_len = 80\n\
                       restart.max = 10000\nrestart.within_s = 1\ndirnet.min_alive = 1\n\
                       dirnet.reset = { max = 200, within_s = 86400 }\n";

/// Chooses victims; splitmix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % sides
    }

    fn node(&mut self) -> u16 {
        u16::try_from(self.roll(u64::from(NODES))).expect("below NODES")
    }
}

/// What all threads of a storm share.
struct Storm<'a> {
    nodes: &'a Nodes,
    /// The last strike has been survived: no more requests.
    calm: AtomicBool,
    /// Writers that have heard what became of their last message.
    silent: AtomicU16,
}

/// Makes it calm, also when the test fails, so that no thread goes on forever.
struct Calming<'a>(&'a AtomicBool);

impl Drop for Calming<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Storm<'_> {
    /// The value, or the end of the test with the state of all nodes.
    #[track_caller]
    fn expect<T, E: std::error::Error>(&self, result: Result<T, E>) -> T {
        result.unwrap_or_else(|error| panic!("{error}\n{}", self.nodes.state()))
    }

    fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    fn put(&self, client: &mut Client, sent: &mut Sent, to: u16, count: usize) {
        let draft = sent.draft(count);
        let messages: Vec<&[u8]> = draft.iter().map(Vec::as_slice).collect();
        let outcome = client.put(to, &messages, PUT_TIMEOUT);
        self.expect(sent.note(count, outcome));
    }

    /// Puts numbered messages through one node into the mailbox of another until it is calm.
    fn send(&self, from: u16, to: u16) -> Sent {
        let mut client = self.nodes.client(from);
        let mut sent = Sent::new(Stream { from, to, kind: Kind::Request });
        while !self.is_calm() {
            self.put(&mut client, &mut sent, to, BATCH);
        }
        self.silent.fetch_add(1, Ordering::Relaxed);
        sent
    }

    /// Puts numbered messages as [`Self::send`] does, without waiting for the answers.
    fn pipeline(&self, client: u16) -> Sent {
        let from = client % NODES;
        let to = (from + 1 + client / NODES % (NODES - 1)) % NODES;
        let stream = Stream { from, to, kind: Kind::Client(client) };
        let path = self.nodes.dir.node_socket(usize::from(from)).expect("a short path");
        let socket = self.expect(Socket::connect(&path, PATIENCE));
        let mut outcomes = Vec::new();
        let mut open = 0;
        while open > 0 || !self.is_calm() {
            if open < PIPELINED && !self.is_calm() {
                let messages = vec![Payload(stream.message(outcomes.len()))];
                let timeout_ms = PUT_TIMEOUT.as_millis().try_into().expect("a short time");
                let what = Want::Put { to, messages, timeout_ms };
                let request = Request { id: outcomes.len() as u64, what };
                self.expect(socket.send(&request, &[], PATIENCE));
                outcomes.push(None);
                open += 1;
                continue;
            }
            let (Reply { id, what }, _) = self.expect(socket.recv(PATIENCE));
            let outcome = &mut outcomes[usize::try_from(id).expect("one of ours")];
            assert_eq!(outcome.replace(what), None, "answered twice");
            open -= 1;
        }
        self.silent.fetch_add(1, Ordering::Relaxed);
        let mut sent = Sent::new(stream);
        for outcome in outcomes {
            let outcome = match outcome.expect("answered") {
                Outcome::Put(outcome) => Ok(outcome),
                Outcome::Refused(Refused::Busy) => Ok(PutOutcome::default()),
                Outcome::Refused(reason) => Err(ClientError::Refused { rank: from, reason }),
                other => panic!("{other:?} answers no put"),
            };
            self.expect(sent.note(1, outcome));
        }
        sent
    }

    /// Takes what comes to one node and replies to it; when all is silent, takes what is left.
    fn collect(&self, to: u16) -> (Received, Vec<Sent>) {
        let mut inbox = Inbox::new(self.nodes.client(to));
        let mut client = self.nodes.client(to);
        let mut received = Received::default();
        let reply = |from| Sent::new(Stream { from: to, to: from, kind: Kind::Reply });
        let mut replies: Vec<Sent> = (0..NODES).map(reply).collect();
        while !self.is_calm() {
            let senders = self.receive(&mut inbox, to, &mut received);
            for from in senders.unwrap_or_default() {
                self.put(&mut client, &mut replies[usize::from(from)], from, 1);
            }
        }
        self.silent.fetch_add(1, Ordering::Relaxed);
        eventually("all is written", || self.silent.load(Ordering::Relaxed) == WRITERS);
        eventually("nothing is owed", || {
            let nothing = self.receive(&mut inbox, to, &mut received).is_none();
            let counters = self.expect(client.status()).counters;
            nothing && counters.is_some_and(|counters| counters.owed == 0)
        });
        (received, replies)
    }

    /// Receives once; who sent requests, or nothing when nothing came.
    fn receive(
        &self,
        inbox: &mut Inbox,
        to: u16,
        received: &mut Received,
    ) -> Option<BTreeSet<u16>> {
        let messages = self.expect(inbox.receive(usize::MAX, TAKE_TIMEOUT));
        let streams: Vec<Stream> =
            messages.iter().map(|message| received.note(to, message)).collect();
        let requests = streams.iter().filter(|stream| stream.kind == Kind::Request);
        (!streams.is_empty()).then(|| requests.map(|stream| stream.from).collect())
    }

    /// Strikes `strikes` times: kills one component, two at once, or one again before the next one
    /// runs; has one hang, or stops its timers; then waits until those that were hit run again.
    fn rage(&self, mut dice: Dice, strikes: u64) {
        let mut clients: Vec<Client> = (0..NODES).map(|rank| self.nodes.client(rank)).collect();
        for _ in 0..strikes {
            let first = dice.node();
            match dice.roll(8) {
                0 => self.strike(&mut clients, &[first, dice.node()], Client::kill),
                1 => self.strike(&mut clients, &[first, first], Client::kill),
                2 => self.strike(&mut clients, &[first], |client| client.inject(Fault::Hang)),
                3 => self.strike(&mut clients, &[first], |client| client.inject(Fault::Silence)),
                _ => self.strike(&mut clients, &[first], Client::kill),
            }
        }
    }

    fn incarnations(&self, clients: &mut [Client]) -> Vec<u32> {
        clients.iter_mut().map(|client| self.expect(client.status()).incarnation).collect()
    }

    /// Does harm to the victims, and asserts that they come back.
    fn strike(
        &self,
        clients: &mut [Client],
        victims: &[u16],
        harm: impl Fn(&mut Client) -> Result<(), ClientError>,
    ) {
        let before = self.incarnations(clients);
        for victim in victims {
            match harm(&mut clients[usize::from(*victim)]) {
                // Killed before, and its clone has not been asked for yet.
                Err(ClientError::Refused {
                    reason: Refused::ComponentLost | Refused::NoComponent,
                    ..
                }) => {}
                done => self.expect(done),
            }
        }
        for victim in victims {
            let index = usize::from(*victim);
            self.expect(clients[index].await_running(before[index] + 1, PATIENCE));
        }
    }
}

/// Waits until all nodes agree on one manager.
fn await_one_manager(nodes: &Nodes) {
    eventually("all agree on one manager", || {
        let standing = |rank| nodes.client(rank).status().ok()?.dirnet;
        let standings: Option<Vec<_>> = nodes.ranks().map(standing).collect();
        standings.is_some_and(|all| {
            let managers = all.iter().filter(|standing| standing.role == "manager").count();
            let agree = all.iter().all(|standing| {
                (standing.epoch, standing.manager) == (all[0].epoch, all[0].manager)
                    && standing.is_member()
            });
            managers == 1 && agree
        })
    });
}

/// A number from the environment.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{name} is {text:?}: {error}")),
        Err(_) => default,
    }
}

/// Open descriptors of every supervisor.
fn open_descriptors(nodes: &Nodes) -> Vec<usize> {
    let count = |rank| {
        let status = nodes.client(rank).status().expect("a status");
        let folder = format!("/proc/{}/fd", status.supervisor_pid);
        fs::read_dir(folder).expect("a process of this user").count()
    };
    nodes.ranks().map(count).collect()
}

fn rage_over(nodes: &Nodes, dice: Dice, strikes: u64) -> Tally {
    let storm = Storm { nodes, calm: AtomicBool::new(false), silent: AtomicU16::new(0) };
    let storm = &storm;
    thread::scope(|scope| {
        let pairs = (0..NODES).flat_map(|from| (0..NODES).map(move |to| (from, to)));
        let senders: Vec<_> = pairs
            .filter(|(from, to)| from != to)
            .map(|(from, to)| scope.spawn(move || storm.send(from, to)))
            .collect();
        let pipeliners = (0..PIPELINERS).map(|client| scope.spawn(move || storm.pipeline(client)));
        let senders: Vec<_> = senders.into_iter().chain(pipeliners).collect();
        let collectors: Vec<_> =
            (0..NODES).map(|to| scope.spawn(move || storm.collect(to))).collect();
        let calming = Calming(&storm.calm);
        storm.rage(dice, strikes);
        drop(calming);
        let joined = |thread: thread::ScopedJoinHandle<'_, Sent>| thread.join().expect("a sender");
        let mut sent: Vec<Sent> = senders.into_iter().map(joined).collect();
        let mut received = Received::default();
        for collector in collectors {
            let (taken, replies) = collector.join().expect("a collector");
            received.merge(taken);
            sent.extend(replies);
        }
        received.balance(&sent)
    })
}

#[test]
fn no_message_of_a_survivor_is_lost_in_a_storm() {
    let strikes = setting("WEFT_STORM_STRIKES", 60);
    let seed = setting("WEFT_STORM_SEED", u64::from(std::process::id()));
    println!("replay with WEFT_STORM_SEED={seed} WEFT_STORM_STRIKES={strikes}");
    let place = Place::new();
    let file = place.file("cluster.toml", CLUSTER);
    let (up, nodes) = place.up(&file);
    let before = open_descriptors(&nodes);

    let tally = rage_over(&nodes, Dice(seed), strikes);
    println!("{tally:?}");
    assert!(tally.put > 0, "{tally:?}");
    nodes.await_joined();
    await_one_manager(&nodes);
    eventually("no descriptor has leaked", || {
        std::iter::zip(&before, open_descriptors(&nodes)).all(|(before, after)| after <= *before)
    });

    up.signal(Signal::TERM);
    up.wait().done();
    place.assert_nothing_left();
}
