//! The peers' lives as this node knows them: who was met, who lives, who has joined.
//!
//! A decider: news come in, and what the component must be told comes out.

use weft_core::dirnet::Term;
use weft_core::ids::{Incarnation, Peer};

use crate::bootstrap::{Life, ShutOut};
use crate::node::control::PeerStatus;
use crate::process::Pidfd;
use crate::shm::Grant;
use crate::signing::PublicKey;

/// What the component must be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// This peer lives in a new life.
    Connect(Peer),
    /// This peer's life has ended.
    Fence(Peer),
    /// This peer still lives in a life that was fenced here: it must be told.
    ShutOut(Peer, ShutOut),
    /// This peer lives and is isolated since that life: it must be told.
    Isolate(Peer, Incarnation),
}

#[derive(Debug, Default)]
struct Known {
    session: u64,
    grant: Option<Grant>,
    life: Option<Life>,
    joined: bool,
    /// What its broadcasts are signed with: the first that was heard.
    key: Option<PublicKey>,
    /// Names its memory, as it was first met: any other remembers nothing of it.
    memory: Option<u64>,
    /// When the life counts as cut off: work for it was lost, and nothing was heard of its end.
    cut_off_at_ns: Option<u64>,
    /// The last life that the own component has fenced, or is about to.
    fenced: Incarnation,
    /// Lives that began with this one, or before, were removed by decision.
    removed: Incarnation,
    /// In this reign.
    removed_in: Option<Term>,
    /// What it was told of itself in this session, while neither began another life.
    told: Option<ShutOut>,
    /// Isolated by decision, since the life that began with this one.
    isolated: Option<Incarnation>,
    /// Isolations since this life of it, or before, are over.
    released: Incarnation,
    /// The life that it goes on in all the same, as others may let it: for when it is released.
    held: Option<Life>,
    /// Processes of incarnations that are over for this node and were not seen dead: they have
    /// its memory mapped.
    ended: Vec<Pidfd>,
}

impl Known {
    /// The life that was known is over for this node; whether there was one.
    fn fence(&mut self) -> bool {
        self.joined = false;
        self.cut_off_at_ns = None;
        let Some(life) = self.life.take() else { return false };
        self.fenced = self.fenced.max(life.incarnation);
        self.ended.retain(|process| !matches!(process.is_dead(), Ok(true)));
        self.ended.extend(life.process);
        true
    }

    /// It must be told that this life of it is shut out.
    fn shut_out(&mut self, life: Incarnation, decided: Option<Term>) -> ShutOut {
        *self.told.insert(ShutOut { life, decided })
    }
}

/// What is known of every peer.
#[derive(Debug)]
pub(super) struct Lives {
    peers: Vec<Known>,
}

impl Lives {
    pub(super) fn new(nodes: usize) -> Self {
        Self { peers: (0..nodes).map(|_| Known::default()).collect() }
    }

    /// A session with `peer` has begun; an earlier one is over.
    pub(super) fn handle_met(&mut self, peer: Peer, session: u64, grant: Grant) -> Option<Due> {
        let known = self.peers.get_mut(peer.index())?;
        if session <= known.session {
            return None;
        }
        let lived = known.fence();
        known.session = session;
        known.told = None;
        known.held = None;
        known.grant = Some(grant);
        lived.then_some(Due::Fence(peer))
    }

    pub(super) fn handle_alive(&mut self, peer: Peer, session: u64, life: Life) -> Option<Due> {
        let known = self.known(peer, session)?;
        known.fence();
        known.key = known.key.or(life.key);
        known.memory = known.memory.or(Some(life.memory));
        known.held = None;
        if let Some(since) = known.isolated {
            known.held = Some(life);
            return Some(Due::Isolate(peer, since));
        }
        if life.boot <= known.removed {
            let decided = known.removed_in;
            // A host that forgot its incarnations is told the last that was.
            let over = life.incarnation.max(known.removed).max(known.fenced);
            return Some(Due::ShutOut(peer, known.shut_out(over, decided)));
        }
        if life.incarnation <= known.fenced {
            // Nothing that it says now can be told from what it said before.
            return Some(Due::ShutOut(peer, known.shut_out(known.fenced, None)));
        }
        known.told = None;
        known.life = Some(life);
        Some(Due::Connect(peer))
    }

    pub(super) fn handle_dead(
        &mut self,
        peer: Peer,
        session: u64,
        incarnation: Incarnation,
    ) -> Option<Due> {
        let known = self.known(peer, session)?;
        known.held.take_if(|life| life.incarnation == incarnation);
        if known.life.as_ref().is_none_or(|life| life.incarnation != incarnation) {
            return None;
        }
        known.fence().then_some(Due::Fence(peer))
    }

    /// The node of `peer` is not heard any more. Its component dies with it; fencing makes sure.
    pub(super) fn handle_parted(&mut self, peer: Peer, session: u64) -> Option<Due> {
        let known = self.known(peer, session)?;
        known.grant = None;
        known.held = None;
        known.fence().then_some(Due::Fence(peer))
    }

    /// Whether `session` is the last with `peer`.
    pub(super) fn is_last_session(&mut self, peer: Peer, session: u64) -> bool {
        self.known(peer, session).is_some()
    }

    /// By decision in `term` the lives of `peer` up to those that began with `boot` are over; the
    /// own component has fenced them.
    pub(super) fn handle_removed(&mut self, peer: Peer, boot: Incarnation, term: Term) {
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        if boot >= known.removed {
            (known.removed, known.removed_in) = (boot, Some(term));
        }
        if known.life.as_ref().is_some_and(|life| life.boot <= boot) {
            known.fence();
        }
    }

    /// By decision no life of `peer` is let in from now on; whether that is new. One that began
    /// later is told of it, and ends itself or contradicts.
    pub(super) fn handle_isolated(&mut self, peer: Peer, boot: Incarnation) -> bool {
        let known = self.peers.get_mut(peer.index()).filter(|known| boot > known.released);
        let Some(known) = known else { return false };
        if known.life.as_ref().is_some_and(|life| life.boot <= boot) {
            known.fence();
        }
        known.isolated.replace(boot).is_none()
    }

    /// By decision lives of `peer` that begin after `boot` are let in; whether that is new.
    pub(super) fn handle_released(&mut self, peer: Peer, boot: Incarnation) -> bool {
        let Some(known) = self.peers.get_mut(peer.index()) else { return false };
        known.released = known.released.max(boot);
        known.isolated.take_if(|isolated| *isolated <= boot).is_some()
    }

    /// The last life of `peer` of which isolations are over, if any was.
    pub(super) fn released(&self, peer: Peer) -> Option<Incarnation> {
        let known = self.peers.get(peer.index())?;
        Some(known.released).filter(|boot| *boot > Incarnation(0) && known.isolated.is_none())
    }

    /// The life behind `boot` that `peer` is in, if that was kept out until now.
    pub(super) fn handle_let_in(&mut self, peer: Peer, boot: Incarnation) -> Option<Due> {
        let known = self.peers.get_mut(peer.index())?;
        let (session, life) = (known.session, known.held.take_if(|life| life.boot > boot)?);
        self.handle_alive(peer, session, life)
    }

    /// Whether the node of `peer` is met, so that it can be told something.
    pub(super) fn is_met(&self, peer: Peer) -> bool {
        self.peers.get(peer.index()).is_some_and(|known| known.grant.is_some())
    }

    /// Whether `peer` lives in this life.
    pub(super) fn is_alive(&self, peer: Peer, session: u64, incarnation: Incarnation) -> bool {
        let known = self.peers.get(peer.index()).filter(|known| known.session == session);
        let life = known.and_then(|known| known.life.as_ref());
        life.is_some_and(|life| life.incarnation == incarnation)
    }

    /// Work for that life of `peer` was lost; it is given until `cut_off_at_ns` to turn out dead.
    pub(super) fn handle_lost(&mut self, peer: Peer, incarnation: Incarnation, cut_off_at_ns: u64) {
        let Some(known) = self.peers.get_mut(peer.index()) else { return };
        if known.life.as_ref().is_some_and(|life| life.incarnation == incarnation) {
            known.cut_off_at_ns.get_or_insert(cut_off_at_ns);
        }
    }

    /// Whether `me` has told `peer` what `peer` tells it now, with more right. Both know what was
    /// said in the session, so that exactly one of two finds that it has not.
    pub(super) fn outranks(&self, me: Peer, peer: Peer, theirs: ShutOut) -> bool {
        let told = self.peers.get(peer.index()).and_then(|known| known.told);
        // As where work is lost, the lower rank gives way.
        let right = |word: ShutOut, by: Peer| (word.decided, by);
        told.is_some_and(|ours| right(ours, me) > right(theirs, peer))
    }

    /// Gives up a life that is cut off and goes on: it must be fenced, and told so, that its node
    /// begins the next one. One peer at a time.
    pub(super) fn handle_time(&mut self, now_ns: u64) -> Option<(Peer, ShutOut)> {
        for known in &mut self.peers {
            // No descriptor is kept of a process that is seen dead.
            known.ended.retain(|process| !matches!(process.is_dead(), Ok(true)));
        }
        let is_over = |known: &Known| known.cut_off_at_ns.is_some_and(|at| now_ns >= at);
        let (peer, known) =
            (0..).map(Peer).zip(&mut self.peers).find(|(_, known)| is_over(known))?;
        known.fence().then(|| (peer, known.shut_out(known.fenced, None)))
    }

    /// When the next life is to be given up.
    pub(super) fn next_deadline_ns(&self) -> Option<u64> {
        self.peers.iter().filter_map(|known| known.cut_off_at_ns).min()
    }

    /// Messages went to that life of `peer` and back.
    pub(super) fn handle_joined(&mut self, peer: Peer, incarnation: Incarnation) {
        if let Some(known) = self.peers.get_mut(peer.index()) {
            let current = known.life.as_ref().is_some_and(|life| life.incarnation == incarnation);
            known.joined |= current;
        }
    }

    /// Ends every process that may reach the own memory and does not belong to a known
    /// incarnation; whether all of them are dead. Call it again until they are.
    pub(super) fn end_stragglers(&mut self) -> bool {
        for known in &mut self.peers {
            known.ended.retain(|process| {
                // One that refuses the signal is found alive by the look.
                let _ = process.kill();
                !matches!(process.is_dead(), Ok(true))
            });
        }
        self.peers.iter().all(|known| known.ended.is_empty())
    }

    /// The own component has ended: nobody has joined the next one yet, and it has fenced nobody.
    pub(super) fn handle_own_end(&mut self) {
        for known in &mut self.peers {
            known.joined = false;
            known.cut_off_at_ns = None;
            known.fenced = Incarnation(0);
            known.told = None;
        }
    }

    /// Whether every peer that lives has joined.
    pub(super) fn all_joined(&self) -> bool {
        self.peers.iter().all(|known| known.life.is_none() || known.joined)
    }

    /// How many peers live and have joined.
    pub(super) fn joined(&self) -> usize {
        self.peers.iter().filter(|known| known.life.is_some() && known.joined).count()
    }

    /// The peers that live.
    pub(super) fn alive(&self) -> Vec<Peer> {
        let living = (0..).map(Peer).zip(&self.peers);
        living.filter(|(_, known)| known.life.is_some()).map(|(peer, _)| peer).collect()
    }

    /// What the broadcasts of peers are signed with, as far as that was heard.
    pub(super) fn keys(&self) -> Vec<(Peer, PublicKey)> {
        let keys = (0..).map(Peer).zip(&self.peers);
        keys.filter_map(|(peer, known)| Some((peer, known.key?))).collect()
    }

    /// Whether the present life of `peer` has another memory than the one that was first met.
    pub(super) fn has_forgotten(&self, peer: Peer) -> bool {
        let Some(known) = self.peers.get(peer.index()) else { return false };
        known.life.as_ref().is_some_and(|life| known.memory != Some(life.memory))
    }

    /// How a living peer is reached.
    pub(super) fn reach(&self, peer: Peer) -> Option<(&Life, &Grant)> {
        let known = self.peers.get(peer.index())?;
        Some((known.life.as_ref()?, known.grant.as_ref()?))
    }

    /// Everybody but `me`, for people.
    pub(super) fn status(&self, me: Peer) -> Vec<PeerStatus> {
        let others = (0..).map(Peer).zip(&self.peers).filter(|(peer, _)| *peer != me);
        others
            .map(|(peer, known)| PeerStatus {
                rank: peer.0,
                incarnation: known.life.as_ref().map(|life| life.incarnation.0),
                joined: known.joined,
            })
            .collect()
    }

    fn known(&mut self, peer: Peer, session: u64) -> Option<&mut Known> {
        self.peers.get_mut(peer.index()).filter(|known| known.session == session)
    }
}

#[cfg(test)]
mod tests {
    use weft_core::ids::Rank;

    use super::*;

    const PEER: Peer = Peer(1);

    const TERM: Term = Term { epoch: 4, claimant: Rank(0) };

    /// A connection was lost, and nobody decided.
    fn undecided(life: u32) -> ShutOut {
        ShutOut { life: Incarnation(life), decided: None }
    }

    fn decided(life: u32, epoch: u32, claimant: u16) -> ShutOut {
        let term = Term { epoch, claimant: Rank(claimant) };
        ShutOut { life: Incarnation(life), decided: Some(term) }
    }

    fn life(incarnation: u32) -> Life {
        let boot = Incarnation(1);
        let process = Pidfd::of_self().ok();
        Life { incarnation: Incarnation(incarnation), boot, process, memory: 1, key: None }
    }

    /// A peer that was met in session 1 and lives in incarnation 1.
    fn living() -> Lives {
        let mut lives = Lives::new(2);
        assert_eq!(lives.handle_met(PEER, 1, Grant(Vec::new())), None);
        assert_eq!(lives.handle_alive(PEER, 1, life(1)), Some(Due::Connect(PEER)));
        lives
    }

    #[test]
    fn a_living_peer_joins_by_its_own_incarnation_only() {
        let mut lives = living();
        lives.handle_joined(PEER, Incarnation(2));
        assert!(!lives.all_joined());
        lives.handle_joined(PEER, Incarnation(1));
        assert!(lives.all_joined());
        lives.handle_own_end();
        assert!(!lives.all_joined());
    }

    #[test]
    fn the_first_key_of_a_peer_stays() {
        let mut lives = living();
        assert_eq!(lives.keys(), []);
        let key = |byte| Some(PublicKey([byte; 32]));
        for (incarnation, heard) in [(2, key(1)), (3, key(2)), (4, None)] {
            lives.handle_alive(PEER, 1, Life { key: heard, ..life(incarnation) });
            assert_eq!(lives.keys(), [(PEER, PublicKey([1; 32]))], "{incarnation}");
        }
        assert_eq!(lives.handle_parted(PEER, 1), Some(Due::Fence(PEER)));
        assert_eq!(lives.keys().len(), 1, "what it has signed stands");
    }

    #[test]
    fn the_first_memory_of_a_peer_is_the_one_that_counts() {
        let mut lives = living();
        assert!(!lives.has_forgotten(PEER));
        for (incarnation, memory, has_forgotten) in [(2, 1, false), (3, 2, true), (4, 2, true)] {
            lives.handle_alive(PEER, 1, Life { memory, ..life(incarnation) });
            assert_eq!(lives.has_forgotten(PEER), has_forgotten, "{incarnation}");
        }
    }

    #[test]
    fn the_end_of_an_earlier_life_says_nothing_of_the_present_one() {
        let mut lives = living();
        assert_eq!(lives.handle_alive(PEER, 1, life(2)), Some(Due::Connect(PEER)));
        assert_eq!(lives.handle_dead(PEER, 1, Incarnation(1)), None);
        assert_eq!(lives.handle_dead(PEER, 1, Incarnation(2)), Some(Due::Fence(PEER)));
        assert_eq!(lives.alive(), []);
    }

    #[test]
    fn stale_news_of_an_earlier_session_are_ignored() {
        let mut lives = living();
        assert_eq!(lives.handle_met(PEER, 2, Grant(Vec::new())), Some(Due::Fence(PEER)));
        assert_eq!(lives.handle_parted(PEER, 1), None);
        assert_eq!(lives.handle_alive(PEER, 1, life(1)), None);
        assert_eq!(lives.handle_alive(PEER, 2, life(2)), Some(Due::Connect(PEER)));
        assert!(
            lives.is_alive(PEER, 2, Incarnation(2)) && !lives.is_alive(PEER, 1, Incarnation(2))
        );
        assert_eq!(lives.handle_parted(PEER, 2), Some(Due::Fence(PEER)));
    }

    #[test]
    fn a_fenced_life_that_is_heard_again_is_told_so_until_the_own_component_is_another() {
        let mut lives = living();
        assert_eq!(lives.handle_parted(PEER, 1), Some(Due::Fence(PEER)));
        assert_eq!(lives.handle_met(PEER, 2, Grant(Vec::new())), None);
        let told = lives.handle_alive(PEER, 2, life(1));
        assert_eq!(told, Some(Due::ShutOut(PEER, undecided(1))));
        assert_eq!(lives.alive(), []);
        lives.handle_own_end();
        assert_eq!(lives.handle_alive(PEER, 2, life(1)), Some(Due::Connect(PEER)));
    }

    #[test]
    fn a_life_that_is_cut_off_is_given_up_unless_it_ends_in_time() {
        let mut lives = living();
        lives.handle_lost(PEER, Incarnation(2), 10);
        assert_eq!(lives.handle_time(99), None, "another life's");
        lives.handle_lost(PEER, Incarnation(1), 100);
        lives.handle_lost(PEER, Incarnation(1), 500);
        assert_eq!((lives.handle_time(99), lives.next_deadline_ns()), (None, Some(100)));
        assert_eq!(lives.handle_time(100), Some((PEER, undecided(1))));
        assert_eq!((lives.handle_time(999), lives.alive()), (None, vec![]));

        let mut lives = living();
        lives.handle_lost(PEER, Incarnation(1), 100);
        assert_eq!(lives.handle_alive(PEER, 1, life(2)), Some(Due::Connect(PEER)));
        assert_eq!(lives.handle_time(999), None);
        lives.handle_lost(PEER, Incarnation(2), 100);
        lives.handle_own_end();
        assert_eq!(lives.handle_time(999), None, "the next component has lost nothing");
    }

    #[test]
    fn a_life_that_was_removed_by_decision_stays_out_and_the_next_boot_comes_in() {
        let mut lives = living();
        lives.handle_removed(PEER, Incarnation(1), TERM);
        assert_eq!(lives.alive(), []);
        let shut_out = Some(Due::ShutOut(PEER, decided(7, 4, 0)));
        assert_eq!(lives.handle_alive(PEER, 1, life(7)), shut_out);
        lives.handle_own_end();
        assert_eq!(lives.handle_alive(PEER, 1, life(7)), shut_out);
        let reborn = Life { boot: Incarnation(8), ..life(8) };
        assert_eq!(lives.handle_alive(PEER, 1, reborn), Some(Due::Connect(PEER)));
    }

    /// It would else be told of one after the other.
    #[test]
    fn a_host_that_forgot_its_incarnations_is_told_the_last_at_once() {
        let mut lives = living();
        lives.handle_removed(PEER, Incarnation(9), TERM);
        let told = lives.handle_alive(PEER, 1, life(1));
        assert_eq!(told, Some(Due::ShutOut(PEER, decided(9, 4, 0))));
    }

    /// Of two that shut each other out, the words of one session.
    #[test]
    fn of_two_that_shut_each_other_out_exactly_one_begins_anew() {
        let words = [undecided(1), decided(1, 4, 0), decided(1, 5, 0), decided(1, 5, 1)];
        let (me, peer) = (Peer(0), PEER);
        let holding = |by: Peer, told: ShutOut| {
            let mut lives = Lives::new(2);
            lives.peers[1 - by.index()].told = Some(told);
            lives
        };
        for (at, ours) in words.into_iter().enumerate() {
            for (theirs_at, theirs) in words.into_iter().enumerate() {
                let mine = holding(me, ours).outranks(me, peer, theirs);
                let yours = holding(peer, theirs).outranks(peer, me, ours);
                assert_ne!(mine, yours, "{ours:?} {theirs:?}");
                let is_right = if at == theirs_at { yours } else { mine == (at > theirs_at) };
                assert!(is_right, "{ours:?} {theirs:?}: a decision, a later reign, a higher rank");
            }
        }
    }

    #[test]
    fn who_has_shut_nobody_out_obeys_and_a_new_session_or_life_ends_what_was_told() {
        let (me, theirs) = (Peer(0), undecided(1));
        assert!(!living().outranks(me, PEER, theirs), "it has told the peer nothing");
        let told = || {
            let mut lives = living();
            lives.handle_removed(PEER, Incarnation(1), TERM);
            assert!(matches!(lives.handle_alive(PEER, 1, life(1)), Some(Due::ShutOut(..))));
            assert!(
                lives.outranks(me, PEER, theirs) && !lives.outranks(me, PEER, decided(1, 5, 0))
            );
            lives
        };
        let mut lives = told();
        lives.handle_own_end();
        assert!(!lives.outranks(me, PEER, theirs));
        let mut lives = told();
        lives.handle_met(PEER, 2, Grant(Vec::new()));
        assert!(!lives.outranks(me, PEER, theirs));
        let mut lives = told();
        lives.handle_alive(PEER, 1, Life { boot: Incarnation(8), ..life(8) });
        assert!(!lives.outranks(me, PEER, theirs));
    }

    #[test]
    fn an_isolated_peer_is_told_so_in_every_life_until_it_is_released() {
        let mut lives = living();
        assert!(lives.handle_isolated(PEER, Incarnation(1)));
        assert!(!lives.handle_isolated(PEER, Incarnation(1)));
        assert_eq!(lives.alive(), []);
        let reborn = |number| Life { boot: Incarnation(number), ..life(number) };
        lives.handle_own_end();
        let due = Some(Due::Isolate(PEER, Incarnation(1)));
        assert_eq!(lives.handle_alive(PEER, 1, reborn(8)), due);
        assert!(!lives.handle_released(PEER, Incarnation(0)), "an old word");
        assert_eq!(lives.released(PEER), None);
        assert!(lives.handle_released(PEER, Incarnation(1)) && lives.is_met(PEER));
        assert_eq!(lives.released(PEER), Some(Incarnation(1)));
        assert!(!lives.handle_isolated(PEER, Incarnation(1)), "an old word");
        assert_eq!(lives.handle_alive(PEER, 1, reborn(9)), Some(Due::Connect(PEER)));
        assert!(!lives.handle_released(PEER, Incarnation(1)));
    }

    #[test]
    fn a_later_life_is_kept_until_it_ends_itself_or_contradicts() {
        let mut lives = Lives::new(2);
        lives.handle_met(PEER, 1, Grant(Vec::new()));
        let reborn = Life { boot: Incarnation(8), ..life(8) };
        assert_eq!(lives.handle_alive(PEER, 1, reborn), Some(Due::Connect(PEER)));
        assert!(lives.handle_isolated(PEER, Incarnation(7)));
        assert_eq!(lives.alive(), [PEER]);
        assert!(lives.handle_released(PEER, Incarnation(7)));
        assert!(lives.handle_isolated(PEER, Incarnation(8)));
        assert_eq!(lives.alive(), []);
    }

    /// It was released by others, while this node knew nothing of that.
    #[test]
    fn a_life_that_began_after_the_isolation_is_let_in_when_that_is_over() {
        let reborn = |number| Life { boot: Incarnation(number), ..life(number) };
        let held = || {
            let mut lives = living();
            lives.handle_isolated(PEER, Incarnation(1));
            let due = Some(Due::Isolate(PEER, Incarnation(1)));
            assert_eq!(lives.handle_alive(PEER, 1, reborn(8)), due);
            lives
        };
        let mut lives = held();
        assert!(lives.handle_released(PEER, Incarnation(7)));
        assert_eq!(lives.handle_let_in(PEER, Incarnation(8)), None, "that life is meant, too");
        assert_eq!(lives.handle_let_in(PEER, Incarnation(7)), Some(Due::Connect(PEER)));
        assert_eq!(lives.handle_let_in(PEER, Incarnation(7)), None);
        let ends: [fn(&mut Lives); 3] = [
            |lives| assert_eq!(lives.handle_dead(PEER, 1, Incarnation(8)), None),
            |lives| assert_eq!(lives.handle_parted(PEER, 1), None),
            |lives| assert_eq!(lives.handle_met(PEER, 2, Grant(Vec::new())), None),
        ];
        for end in ends {
            let mut lives = held();
            end(&mut lives);
            assert!(lives.handle_released(PEER, Incarnation(7)));
            assert_eq!(lives.handle_let_in(PEER, Incarnation(7)), None);
        }
    }

    /// It has the memory mapped, and may stand right before a write into it.
    #[test]
    fn a_process_of_an_incarnation_that_is_over_is_ended_before_all_count_as_named() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let process = Pidfd::from_child(&child).unwrap();
        process.signal(rustix::process::Signal::STOP).unwrap();
        let mut lives = Lives::new(2);
        assert!(lives.end_stragglers());
        lives.handle_met(PEER, 1, Grant(Vec::new()));
        let watched = process.try_clone().ok();
        lives.handle_alive(PEER, 1, Life { process: watched, ..life(1) });
        assert!(lives.end_stragglers(), "it is known, and will be asked");
        lives.handle_parted(PEER, 1);
        lives.handle_own_end();
        while !lives.end_stragglers() {
            let ended = process.wait_dead(std::time::Duration::from_secs(60)).unwrap();
            assert_eq!(ended, crate::process::Liveness::Dead);
        }
        assert!(process.is_dead().unwrap());
        child.wait().unwrap();
    }

    #[test]
    fn a_rank_that_does_not_exist_changes_nothing() {
        let mut lives = living();
        assert_eq!(lives.handle_alive(Peer(7), 0, life(1)), None);
        lives.handle_joined(Peer(7), Incarnation(1));
    }
}
