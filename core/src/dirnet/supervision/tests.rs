//! The effect of each event about a peer, in any order of sessions and incarnations.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const ME: Peer = Peer(0);
const PEER: Peer = Peer(1);
const NODE: Rank = Rank(1);

const TERM: Term = Term { epoch: 4, claimant: Rank(0) };

type Pair = Supervision<2>;

/// Fenced after a lost connection, without a decision of a manager.
fn undecided(up_to: u32) -> Fenced {
    Fenced { up_to: Incarnation(up_to), decided: None }
}

fn decided(up_to: u32, epoch: u32, claimant: u16) -> Fenced {
    let term = Term { epoch, claimant: Rank(claimant) };
    Fenced { up_to: Incarnation(up_to), decided: Some(term) }
}

/// An incarnation of boot 1.
fn first(incarnation: u32) -> Announcement {
    Announcement { incarnation: Incarnation(incarnation), boot: Incarnation(1) }
}

/// The first incarnation of a boot.
fn begun(boot: u32) -> Announcement {
    Announcement { incarnation: Incarnation(boot), boot: Incarnation(boot) }
}

/// The orders that follow from an input.
fn after(supervision: &mut Pair, input: impl FnOnce(&mut Pair)) -> Vec<Order> {
    input(supervision);
    core::iter::from_fn(|| supervision.poll_order()).collect()
}

fn alive(supervision: &mut Pair, session: u64, announced: Announcement) -> Vec<Order> {
    after(supervision, |it| it.handle_alive(PEER, session, announced))
}

fn isolated(supervision: &mut Pair, boot: u32) -> Vec<Order> {
    after(supervision, |it| it.handle_isolated(NODE, Incarnation(boot)))
}

fn released(supervision: &mut Pair, boot: u32) -> Vec<Order> {
    after(supervision, |it| it.handle_released(NODE, Incarnation(boot)))
}

fn removed(supervision: &mut Pair, boot: u32, term: Term) -> Vec<Order> {
    after(supervision, |it| it.handle_removed(Instant(0), PEER, Incarnation(boot), term))
}

fn refused(supervision: &mut Pair, theirs: Fenced) -> Vec<Order> {
    after(supervision, |it| it.handle_refused(PEER, theirs))
}

fn report(boot: u32, level: Level) -> Order {
    Order::Report { node: NODE, boot: Incarnation(boot), level }
}

fn connect(announced: Announcement) -> Vec<Order> {
    [Order::Connect(PEER, announced)].into()
}

/// A component that is ready in incarnation 1, and a peer that was met in session 1.
fn met() -> Pair {
    let mut supervision = Supervision::new(Rank(0));
    supervision.handle_started(first(1));
    assert_eq!(after(&mut supervision, Pair::handle_ready), []);
    assert_eq!(after(&mut supervision, |it| it.handle_met(PEER, 1)), []);
    supervision
}

/// The peer runs in incarnation 1.
fn running() -> Pair {
    let mut supervision = met();
    assert_eq!(alive(&mut supervision, 1, first(1)), connect(first(1)));
    supervision
}

#[test]
fn a_running_peer_joins_by_its_own_incarnation_only() {
    let mut supervision = running();
    supervision.handle_joined(PEER, Incarnation(2));
    assert!(supervision.joined().is_empty());
    supervision.handle_joined(PEER, Incarnation(1));
    assert_eq!(supervision.joined(), supervision.running());
    supervision.handle_ended();
    assert!(supervision.joined().is_empty() && !supervision.running().is_empty());
    assert_eq!(after(&mut supervision, Pair::handle_ready), connect(first(1)));
}

#[test]
fn the_end_of_an_earlier_incarnation_does_not_concern_the_present_one() {
    let mut supervision = running();
    assert_eq!(alive(&mut supervision, 1, first(2)), connect(first(2)));
    let dead = |number| move |it: &mut Pair| it.handle_dead(PEER, 1, Incarnation(number));
    assert_eq!(after(&mut supervision, dead(1)), []);
    assert_eq!(after(&mut supervision, dead(2)), [Order::Fence(PEER)]);
    assert!(supervision.running().is_empty());
}

#[test]
fn events_of_an_earlier_session_are_ignored() {
    let mut supervision = running();
    let again = after(&mut supervision, |it| it.handle_met(PEER, 2));
    assert_eq!(again, [Order::Fence(PEER)]);
    assert_eq!(after(&mut supervision, |it| it.handle_parted(PEER, 1)), []);
    assert_eq!(alive(&mut supervision, 1, first(1)), []);
    assert_eq!(alive(&mut supervision, 2, first(2)), connect(first(2)));
    let is_admitted = |session| supervision.is_admitted(PEER, session, Incarnation(2));
    assert!(is_admitted(2) && !is_admitted(1));
    let parted = after(&mut supervision, |it| it.handle_parted(PEER, 2));
    assert_eq!(parted, [Order::Fence(PEER), Order::Parted(PEER)]);
}

#[test]
fn a_fenced_incarnation_is_refused_until_the_own_component_is_another() {
    let mut supervision = running();
    after(&mut supervision, |it| it.handle_parted(PEER, 1));
    after(&mut supervision, |it| it.handle_met(PEER, 2));
    assert_eq!(alive(&mut supervision, 2, first(1)), [Order::Refuse(PEER, undecided(1))]);
    assert!(supervision.running().is_empty());
    supervision.handle_ended();
    assert_eq!(alive(&mut supervision, 2, first(1)), connect(first(1)));
}

#[test]
fn an_incarnation_for_which_work_was_lost_is_fenced_unless_it_ends_in_time() {
    let lose = |supervision: &mut Pair, number| {
        supervision.handle_lost(Instant(7), PEER, Incarnation(number));
    };
    let due = Instant(7).after(Duration::from_millis(4_000));
    let late = |it: &mut Pair| it.handle_time(Instant(u64::MAX));
    let mut supervision = running();
    lose(&mut supervision, 2);
    assert_eq!(supervision.poll_timeout(), None, "another incarnation's");
    lose(&mut supervision, 1);
    assert_eq!(supervision.poll_timeout(), Some(due));
    supervision.handle_lost(due, PEER, Incarnation(1));
    assert_eq!(after(&mut supervision, |it| it.handle_time(Instant(due.0 - 1))), []);
    let fenced = after(&mut supervision, |it| it.handle_time(due));
    assert_eq!(fenced, [Order::Fence(PEER), Order::Refuse(PEER, undecided(1))]);
    assert_eq!(after(&mut supervision, late), []);

    let mut supervision = running();
    lose(&mut supervision, 1);
    assert_eq!(alive(&mut supervision, 1, first(2)), connect(first(2)));
    assert_eq!(after(&mut supervision, late), []);
    lose(&mut supervision, 2);
    supervision.handle_ended();
    assert_eq!(after(&mut supervision, late), [], "the next component has lost nothing");
}

/// The peer with the lower rank is the one that yields.
#[test]
fn of_two_that_lose_each_other_the_higher_rank_fences_first() {
    let mut higher = Supervision::<2>::new(NODE);
    higher.handle_met(ME, 1);
    higher.handle_alive(ME, 1, first(1));
    higher.handle_lost(Instant(0), ME, Incarnation(1));
    assert_eq!(higher.poll_timeout(), Some(Instant(0).after(LOSS_GRACE)));
}

#[test]
fn a_boot_that_was_removed_by_decision_stays_out_and_the_next_boot_is_admitted() {
    let mut supervision = running();
    let known = [report(1, Level::Down), Order::Acknowledge(PEER, Incarnation(1))];
    assert_eq!(removed(&mut supervision, 1, TERM), known);
    assert!(supervision.running().is_empty());
    let refused = [Order::Refuse(PEER, decided(7, 4, 0))];
    assert_eq!(alive(&mut supervision, 1, first(7)), refused);
    supervision.handle_ended();
    assert_eq!(alive(&mut supervision, 1, first(7)), refused);
    assert_eq!(alive(&mut supervision, 1, begun(8)), connect(begun(8)));
}

/// It announces itself to no node that it has met already, and the next manager may not know of the
/// removal.
#[test]
pub(in crate::dirnet) fn x14_a_removed_incarnation_that_runs_on_is_refused_after_a_while() {
    let late = |it: &mut Pair| it.handle_time(Instant(1_000_000_000));
    let gone = || {
        let mut supervision = running();
        removed(&mut supervision, 1, TERM);
        supervision
    };
    let mut supervision = gone();
    assert_eq!(supervision.poll_timeout(), Some(Instant(1_000_000_000)));
    assert_eq!(after(&mut supervision, |it| it.handle_time(Instant(999_999_999))), []);
    assert_eq!(after(&mut supervision, late), [Order::Refuse(PEER, decided(1, 4, 0))]);
    assert_eq!(supervision.poll_timeout(), None);
    assert_eq!(after(&mut supervision, late), []);
    let ends: [fn(&mut Pair); 4] = [
        |it| it.handle_dead(PEER, 1, Incarnation(1)),
        |it| it.handle_parted(PEER, 1),
        |it| it.handle_met(PEER, 2),
        |it| it.handle_alive(PEER, 1, begun(8)),
    ];
    for end in ends {
        let mut supervision = gone();
        after(&mut supervision, end);
        assert_eq!(after(&mut supervision, late), [], "it has ended");
    }
}

/// Two halves of a net removed each other: if each node ended by the first refusal that it
/// receives, none would be left.
#[test]
pub(in crate::dirnet) fn x14_of_two_that_removed_each_other_one_ends_in_any_order() {
    let later = Term { epoch: 5, claimant: Rank(1) };
    let mut supervision = running();
    removed(&mut supervision, 1, later);
    assert_eq!(refused(&mut supervision, decided(1, 4, 0)), [], "its own refusal is to come");
    let mut supervision = running();
    removed(&mut supervision, 1, TERM);
    assert_eq!(refused(&mut supervision, decided(1, 5, 1)), [Order::Reboot]);
}

/// Of two nodes that fenced each other as their link was lost, the one that gave way must admit the
/// other, which goes on and does not announce itself again.
#[test]
pub(in crate::dirnet) fn x14_the_next_component_admits_who_only_the_last_one_has_fenced() {
    let mut supervision = running();
    after(&mut supervision, |it| it.handle_parted(PEER, 1));
    after(&mut supervision, |it| it.handle_met(PEER, 2));
    assert_eq!(alive(&mut supervision, 2, first(1)), [Order::Refuse(PEER, undecided(1))]);
    assert_eq!(refused(&mut supervision, undecided(1)), [Order::Reboot]);
    supervision.handle_ended();
    supervision.handle_started(begun(2));
    assert_eq!(after(&mut supervision, Pair::handle_ready), connect(first(1)));
    assert_eq!(supervision.running(), PeerSet::only(PEER));
}

#[test]
pub(in crate::dirnet) fn x14_a_boot_begins_without_the_removals_of_the_one_before() {
    let gives_way = |clone: Announcement| {
        let mut supervision = running();
        removed(&mut supervision, 1, TERM);
        if clone.boot != Incarnation(1) {
            assert_eq!(refused(&mut supervision, decided(1, 5, 1)), [Order::Reboot]);
        }
        supervision.handle_ended();
        supervision.handle_started(clone);
        after(&mut supervision, Pair::handle_ready)
    };
    assert_eq!(gives_way(first(2)), [], "its boot goes on, and so does the removal");
    assert_eq!(gives_way(begun(2)), connect(first(1)));
    let mut supervision = running();
    isolated(&mut supervision, 1);
    after(&mut supervision, Pair::handle_over);
    supervision.handle_ended();
    supervision.handle_started(begun(2));
    assert_eq!(after(&mut supervision, Pair::handle_ready), []);
    assert!(supervision.standing(NODE).isolation().is_some(), "an isolation is not forgotten");
}

#[test]
pub(in crate::dirnet) fn x14_a_node_without_a_component_refuses_none() {
    let mut supervision = running();
    supervision.handle_ended();
    after(&mut supervision, |it| it.handle_parted(PEER, 1));
    after(&mut supervision, |it| it.handle_met(PEER, 2));
    assert_eq!(alive(&mut supervision, 2, first(1)), connect(first(1)));
}

/// A node that was removed while it stood still starts again, and its sessions from before end: the
/// members that removed it have lost nothing, and go on.
#[test]
pub(in crate::dirnet) fn x14_a_component_that_is_not_ready_refuses_none() {
    let mut supervision = running();
    assert_eq!(refused(&mut supervision, decided(1, 4, 0)), [Order::Reboot]);
    supervision.handle_ended();
    supervision.handle_started(begun(2));
    after(&mut supervision, |it| it.handle_parted(PEER, 1));
    after(&mut supervision, |it| it.handle_met(PEER, 2));
    assert_eq!(alive(&mut supervision, 2, first(1)), connect(first(1)));
    assert_eq!(after(&mut supervision, Pair::handle_ready), connect(first(1)));
}

/// It would otherwise be fenced once for each incarnation.
#[test]
fn a_host_that_forgot_its_incarnations_is_sent_the_last_at_once() {
    let mut supervision = running();
    removed(&mut supervision, 9, TERM);
    assert_eq!(alive(&mut supervision, 1, first(1)), [Order::Refuse(PEER, decided(9, 4, 0))]);
}

/// Two managers removed the same boot; the messages about it come in any order.
#[test]
fn the_later_of_two_terms_counts_in_any_order() {
    let later = Term { epoch: 5, claimant: Rank(1) };
    for (one, other) in [(TERM, later), (later, TERM)] {
        let mut supervision = running();
        removed(&mut supervision, 3, one);
        removed(&mut supervision, 3, other);
        removed(&mut supervision, 2, Term { epoch: 9, ..TERM });
        assert_eq!(alive(&mut supervision, 1, first(3)), [Order::Refuse(PEER, decided(3, 5, 1))]);
    }
}

/// Two peers that have fenced each other, and their messages in one session.
#[test]
fn of_two_that_fence_each_other_exactly_one_ends_its_incarnation() {
    let messages = [undecided(1), decided(1, 4, 0), decided(1, 5, 0), decided(1, 5, 1)];
    let is_over = |sent: Fenced, me: Peer, theirs: Fenced| {
        let mut supervision = Pair::new(Rank(me.0));
        supervision.handle_started(first(1));
        let by = Peer(1 - me.0);
        supervision.peers[by.index()].sent = Some(sent);
        after(&mut supervision, |it| it.handle_refused(by, theirs)) == [Order::Reboot]
    };
    for (at, ours) in messages.into_iter().enumerate() {
        for (theirs_at, theirs) in messages.into_iter().enumerate() {
            let (mine, peers) = (is_over(ours, ME, theirs), is_over(theirs, PEER, ours));
            assert_ne!(mine, peers, "{ours:?} {theirs:?}");
            let is_right = mine == (at <= theirs_at);
            assert!(is_right, "{ours:?} {theirs:?}: a decision, a later term, a higher rank");
        }
    }
}

#[test]
fn a_refused_incarnation_ends_once_and_a_later_one_is_not_meant() {
    let mut supervision = running();
    assert_eq!(refused(&mut supervision, undecided(1)), [Order::Reboot]);
    assert_eq!(refused(&mut supervision, undecided(1)), [], "its boot is over already");
    supervision.handle_ended();
    assert_eq!(refused(&mut supervision, undecided(9)), [], "no component runs");
    assert_eq!(after(&mut supervision, Pair::handle_over), [], "nor does a boot");
    supervision.handle_started(begun(10));
    assert_eq!(refused(&mut supervision, undecided(9)), []);
    assert_eq!(refused(&mut supervision, undecided(10)), [Order::Reboot]);
}

/// Found at [`MUTANTS`](crate::dirnet::MUTANTS) `old-removals-count`: to have fenced an earlier
/// incarnation of a peer is no reason to outlive its present one, which will never accept this one.
#[test]
pub(in crate::dirnet) fn g10_what_was_sent_to_an_earlier_session_or_incarnation_counts_no_more() {
    let sent = || {
        let mut supervision = running();
        removed(&mut supervision, 1, TERM);
        assert_eq!(alive(&mut supervision, 1, first(1)), [Order::Refuse(PEER, decided(1, 4, 0))]);
        assert_eq!(refused(&mut supervision, undecided(1)), []);
        supervision
    };
    let ends: [fn(&mut Pair); 3] = [
        |it| {
            it.handle_ended();
            it.handle_started(first(1));
        },
        |it| it.handle_met(PEER, 2),
        |it| drop(alive(it, 1, begun(8))),
    ];
    for end in ends {
        let mut supervision = sent();
        end(&mut supervision);
        assert_eq!(refused(&mut supervision, undecided(1)), [Order::Reboot]);
    }
    assert_eq!(refused(&mut sent(), decided(1, 5, 0)), [Order::Reboot], "a later term");
}

/// The component is killed and may have saved nothing of it.
#[test]
pub(in crate::dirnet) fn g19_a_removal_by_decision_is_remembered_and_a_loss_is_not() {
    let mut supervision = running();
    refused(&mut supervision, undecided(1));
    assert_eq!(supervision.removed(), Incarnation(0));
    supervision.handle_ended();
    supervision.handle_started(begun(2));
    refused(&mut supervision, decided(2, 4, 0));
    assert_eq!(supervision.removed(), Incarnation(2));
    supervision.handle_ended();
    supervision.handle_started(begun(3));
    assert_eq!(supervision.removed(), Incarnation(2));
    assert_eq!(after(&mut supervision, Pair::handle_entered), []);
    assert_eq!(supervision.removed(), Incarnation(2), "its component may hang before it enters");
    supervision.handle_watched();
    assert_eq!(supervision.removed(), Incarnation(0), "its component has saved it");
    refused(&mut supervision, decided(3, 5, 0));
    assert_eq!(supervision.removed(), Incarnation(3));
}

#[test]
fn an_isolated_peer_is_sent_so_in_every_incarnation_until_it_is_released() {
    let mut supervision = running();
    let isolate = Order::Isolate(PEER, Incarnation(1));
    assert_eq!(isolated(&mut supervision, 1), [isolate, report(1, Level::Isolated)]);
    assert_eq!(isolated(&mut supervision, 1), []);
    assert!(supervision.running().is_empty());
    supervision.handle_ended();
    assert_eq!(alive(&mut supervision, 1, begun(8)), [isolate]);
    let release = |boot| Order::Release(PEER, Incarnation(boot));
    assert_eq!(released(&mut supervision, 0), [release(0)], "an old release ends nothing");
    assert!(supervision.standing(NODE).isolation().is_some());
    let admitted = Order::Connect(PEER, begun(8));
    let known = [report(1, Level::Released), release(1), admitted];
    assert_eq!(released(&mut supervision, 1), known);
    let old = [Order::LearnRelease(NODE, Incarnation(1))];
    assert_eq!(isolated(&mut supervision, 1), old, "it isolates no node again");
    assert_eq!(supervision.running(), PeerSet::only(PEER));
    assert_eq!(after(&mut supervision, |it| it.handle_met(PEER, 2))[0], release(1));
}

#[test]
fn a_released_peer_that_is_not_met_is_reset() {
    let mut supervision = running();
    isolated(&mut supervision, 1);
    after(&mut supervision, |it| it.handle_parted(PEER, 1));
    let reset = [report(1, Level::Released), Order::Reset(NODE, Incarnation(1))];
    assert_eq!(released(&mut supervision, 1), reset);
    assert_eq!(released(&mut supervision, 1), []);
}

/// The isolation of boot 3 never came here, its release did: boot 2 is over all the same.
#[test]
pub(in crate::dirnet) fn x11_a_release_ends_the_boots_before_it_that_are_not_known() {
    let mut pair = met();
    removed(&mut pair, 1, TERM);
    assert_eq!(released(&mut pair, 3), [Order::Release(PEER, Incarnation(3))]);
    let refusal = Order::Refuse(PEER, decided(3, TERM.epoch, TERM.claimant.0));
    assert_eq!(alive(&mut pair, 1, begun(2)), [refusal]);
    assert_eq!(alive(&mut pair, 1, begun(4)), connect(begun(4)));
}

#[test]
fn a_later_incarnation_stays_until_it_ends_or_contradicts() {
    let mut supervision = met();
    assert_eq!(alive(&mut supervision, 1, begun(8)), connect(begun(8)));
    isolated(&mut supervision, 7);
    assert_eq!(supervision.running(), PeerSet::only(PEER));
    released(&mut supervision, 7);
    isolated(&mut supervision, 8);
    assert!(supervision.running().is_empty());
}

/// Other nodes released it, while this node did not know of it.
#[test]
fn an_incarnation_that_began_after_the_isolation_is_admitted_when_that_is_over() {
    let held = || {
        let mut supervision = running();
        isolated(&mut supervision, 1);
        alive(&mut supervision, 1, begun(8));
        supervision
    };
    let free = |boot| move |it: &mut Pair| it.handle_free(PEER, Incarnation(boot));
    let known =
        |boot| [report(boot, Level::Released), Order::LearnRelease(NODE, Incarnation(boot))];
    let admitted = Order::Connect(PEER, begun(8));
    let is_free = [&known(8)[..], &[admitted]].concat();
    assert_eq!(after(&mut held(), free(8)), is_free, "isolated again before it came back");
    let mut supervision = held();
    assert_eq!(after(&mut supervision, free(7)), [&known(7)[..], &[admitted]].concat());
    assert_eq!(after(&mut supervision, free(7)), []);
    let ends: [fn(&mut Pair); 3] = [
        |it| it.handle_dead(PEER, 1, Incarnation(8)),
        |it| it.handle_parted(PEER, 1),
        |it| it.handle_met(PEER, 2),
    ];
    for end in ends {
        let mut supervision = held();
        after(&mut supervision, end);
        assert_eq!(after(&mut supervision, free(7)), known(7));
    }
}

/// Its node learned of the release before the isolation, so neither of them has ended it, and the
/// time after which it is refused has passed while it was isolated here.
#[test]
pub(in crate::dirnet) fn x14_a_boot_that_is_over_is_refused_once_its_isolation_ends() {
    let late = |it: &mut Pair| it.handle_time(Instant(1_000_000_000));
    let held = || {
        let mut supervision = running();
        removed(&mut supervision, 1, TERM);
        isolated(&mut supervision, 1);
        assert_eq!(after(&mut supervision, late), []);
        assert_eq!(supervision.poll_timeout(), None);
        supervision
    };
    let refusal = Order::Refuse(PEER, decided(1, 4, 0));
    let release = Order::Release(PEER, Incarnation(1));
    let learned = Order::LearnRelease(NODE, Incarnation(1));
    let known = report(1, Level::Released);
    let mut supervision = held();
    assert_eq!(released(&mut supervision, 1), [known, release, refusal]);
    assert_eq!(released(&mut supervision, 1), [release], "once");
    let contradicts = |it: &mut Pair| it.handle_free(PEER, Incarnation(1));
    assert_eq!(after(&mut held(), contradicts), [known, learned, refusal]);
    let mut ended = held();
    ended.handle_dead(PEER, 1, Incarnation(1));
    assert_eq!(released(&mut ended, 1), [known, release]);

    let mut supervision = met();
    isolated(&mut supervision, 1);
    assert_eq!(alive(&mut supervision, 1, first(1)), [Order::Isolate(PEER, Incarnation(1))]);
    let refusal = Order::Refuse(PEER, undecided(1));
    assert_eq!(after(&mut supervision, contradicts), [known, learned, refusal]);
}

#[test]
fn an_isolated_node_halts_saves_it_first_and_resumes_when_released() {
    let mut supervision = running();
    let since = |boot| Some(Incarnation(boot));
    let isolate = |boot| move |it: &mut Pair| it.handle_isolated_by(PEER, Incarnation(boot));
    let report = Order::Report { node: Rank(0), boot: Incarnation(3), level: Level::Isolated };
    let asks = Order::AskForRelease(PEER, Incarnation(3));
    let halts = [Order::Keep(since(3)), report, Order::Halt, asks];
    assert_eq!(after(&mut supervision, isolate(3)), halts);
    assert_eq!(supervision.standing(Rank(0)).isolation(), since(3));
    assert_eq!(after(&mut supervision, isolate(3)), []);
    assert_eq!(after(&mut supervision, isolate(4)), [Order::Keep(since(4))]);
    assert_eq!(refused(&mut supervision, undecided(1)), [], "it ends already");
    let release = |boot| move |it: &mut Pair| it.handle_released_by(Incarnation(boot));
    assert_eq!(after(&mut supervision, release(3)), [], "an earlier isolation's");
    assert_eq!(after(&mut supervision, release(4)), [Order::Keep(None), Order::Resume]);
    let contradiction = [Order::Contradict(PEER, Incarnation(4))];
    assert_eq!(after(&mut supervision, isolate(4)), contradiction);
    let learn = |it: &mut Pair| it.handle_isolated(Rank(0), Incarnation(4));
    let known = [Order::LearnRelease(Rank(0), Incarnation(4))];
    assert_eq!(after(&mut supervision, learn), known);
}

/// It may hold an old database.
#[test]
fn an_isolated_node_isolates_and_refuses_no_peer() {
    let mut supervision = met();
    isolated(&mut supervision, 1);
    after(&mut supervision, |it| it.handle_isolated_by(PEER, Incarnation(1)));
    assert_eq!(alive(&mut supervision, 1, begun(8)), []);
    let mut supervision = running();
    after(&mut supervision, |it| it.handle_isolated_by(PEER, Incarnation(1)));
    let late = removed(&mut supervision, 1, TERM);
    assert_eq!(late, [report(1, Level::Down)], "its component has yet to end");
}

/// the peer may have forgotten the isolation since it was met.
#[test]
pub(in crate::dirnet) fn x11_a_node_that_learns_of_its_isolation_asks_those_that_it_has_met() {
    let mut supervision = met();
    let isolated = after(&mut supervision, |it| it.handle_isolated(Rank(0), Incarnation(1)));
    assert_eq!(isolated.last(), Some(&Order::AskForRelease(PEER, Incarnation(1))));
    let mut parted = met();
    after(&mut parted, |it| it.handle_parted(PEER, 1));
    let isolated = after(&mut parted, |it| it.handle_isolated(Rank(0), Incarnation(1)));
    assert_eq!(isolated.last(), Some(&Order::Halt), "it asks when it meets it");
}

/// Each has fenced the other, and this one gives way: what its component had fenced no longer
/// counts, although that has yet to end.
#[test]
pub(in crate::dirnet) fn x14_a_boot_that_is_over_refuses_no_peer() {
    let mut supervision = running();
    after(&mut supervision, |it| it.handle_parted(PEER, 1));
    after(&mut supervision, |it| it.handle_met(PEER, 2));
    assert_eq!(refused(&mut supervision, undecided(1)), [Order::Reboot]);
    assert_eq!(alive(&mut supervision, 2, first(1)), connect(first(1)));
}

#[test]
pub(in crate::dirnet) fn x14_a_removal_that_is_reported_after_its_boot_has_ended_is_over() {
    let mut supervision = running();
    assert_eq!(refused(&mut supervision, decided(1, 9, 1)), [Order::Reboot]);
    assert_eq!(removed(&mut supervision, 1, TERM), [report(1, Level::Down)]);
    assert_eq!(supervision.poll_timeout(), None, "it has given way, and refuses none");
    assert_eq!(supervision.standing(NODE), Standing::default());
    isolated(&mut supervision, 1);
    released(&mut supervision, 1);
    supervision.handle_started(begun(2));
    assert_eq!(supervision.standing(NODE).incarnation.boot, Incarnation(0), "it is forgotten");
}

#[test]
pub(in crate::dirnet) fn x14_the_decision_of_the_later_term_stands() {
    let mut supervision = running();
    removed(&mut supervision, 1, TERM);
    assert_eq!(refused(&mut supervision, decided(1, 3, 1)), [], "of an earlier term");
    assert_eq!(refused(&mut supervision, decided(1, 5, 0)), [Order::Reboot]);
}

#[test]
pub(in crate::dirnet) fn x14_a_session_that_begins_fences_what_the_last_one_admitted() {
    let mut supervision = running();
    let met = after(&mut supervision, |it| it.handle_met(PEER, 2));
    assert_eq!(met, [Order::Fence(PEER)]);
    assert_eq!(alive(&mut supervision, 2, begun(2)), connect(begun(2)));
}

/// The peer ignores what an isolated node has fenced, and this node is none.
#[test]
pub(in crate::dirnet) fn x14_a_node_that_contradicts_its_isolation_repeats_what_it_has_fenced() {
    let mut supervision = met();
    let released = |it: &mut Pair| it.handle_released_by(Incarnation(1));
    assert_eq!(after(&mut supervision, released), [Order::Reboot]);
    supervision.handle_started(begun(2));
    assert_eq!(after(&mut supervision, Pair::handle_ready), []);
    assert_eq!(alive(&mut supervision, 1, first(1)), connect(first(1)));
    after(&mut supervision, |it| it.handle_parted(PEER, 1));
    after(&mut supervision, |it| it.handle_met(PEER, 2));
    assert_eq!(alive(&mut supervision, 2, first(1)), [Order::Refuse(PEER, undecided(1))]);
    let contradicts = after(&mut supervision, |it| it.handle_isolated_by(PEER, Incarnation(1)));
    let refuses = Order::Refuse(PEER, undecided(1));
    assert_eq!(contradicts, [Order::Contradict(PEER, Incarnation(1)), refuses]);
}

/// It was isolated and released before any supervisor had learned of either: its peers have removed
/// the boot that runs.
#[test]
pub(in crate::dirnet) fn x11_a_release_ends_the_boot_that_an_unseen_isolation_has_ended() {
    for by_component in [true, false] {
        let released = |boot| {
            move |it: &mut Pair| match by_component {
                true => it.handle_released(Rank(0), Incarnation(boot)),
                false => it.handle_released_by(Incarnation(boot)),
            }
        };
        let mut supervision = met();
        assert_eq!(after(&mut supervision, released(1)), [Order::Reboot]);
        supervision.handle_started(begun(2));
        assert_eq!(after(&mut supervision, released(1)), [], "of the boot before");
        // Isolated again before it came back, it has come back in the boot that the release names.
        let mut supervision = met();
        assert_eq!(after(&mut supervision, released(2)), [Order::Reboot]);
        supervision.handle_started(begun(2));
        assert_eq!(after(&mut supervision, released(2)), [], "it is known");

        // One that was seen has ended it.
        let mut supervision = met();
        after(&mut supervision, |it| it.handle_isolated_by(PEER, Incarnation(1)));
        let over = [Order::Keep(None), Order::Resume];
        assert_eq!(after(&mut supervision, released(1)), over);
    }
}

/// In either order the later removal stands.
#[test]
pub(in crate::dirnet) fn x14_an_older_decision_changes_nothing() {
    let mut supervision = running();
    removed(&mut supervision, 2, TERM);
    removed(&mut supervision, 1, TERM);
    let standing = supervision.standing(NODE);
    assert_eq!((standing.level, standing.incarnation.boot), (Level::Down, Incarnation(2)));
}

/// Both removed each other, and one of them was isolated besides: the other may be the last node
/// that can release it.
#[test]
pub(in crate::dirnet) fn x5_what_an_isolated_peer_has_decided_ends_no_boot() {
    let mut supervision = running();
    isolated(&mut supervision, 1);
    assert_eq!(refused(&mut supervision, decided(1, 9, 1)), []);
    released(&mut supervision, 1);
    assert_eq!(refused(&mut supervision, decided(1, 9, 1)), [Order::Reboot]);
}

/// Where all others have lost their memory, its own note alone knows of it.
#[test]
pub(in crate::dirnet) fn x11_an_isolated_node_asks_each_node_that_it_meets_for_its_release() {
    let mut supervision = Pair::new(Rank(0));
    after(&mut supervision, |it| it.handle_isolated(Rank(0), Incarnation(3)));
    let asks = [Order::AskForRelease(PEER, Incarnation(3))];
    assert_eq!(after(&mut supervision, |it| it.handle_met(PEER, 1)), asks);

    let asked = |boot| move |it: &mut Pair| it.handle_asked_for_release(PEER, Incarnation(boot));
    let mut supervision = running();
    let learned = Order::LearnIsolation(NODE, Incarnation(3));
    let isolate = Order::Isolate(PEER, Incarnation(3));
    let known = [isolate, report(3, Level::Isolated), learned];
    assert_eq!(after(&mut supervision, asked(3)), known);
    assert!(supervision.standing(NODE).isolation().is_some());
    assert_eq!(after(&mut supervision, asked(3)), [learned]);
    released(&mut supervision, 3);
    assert_eq!(after(&mut supervision, asked(3)), [Order::Release(PEER, Incarnation(3))]);
}

/// It has restored an older database than its predecessor's last.
#[test]
pub(in crate::dirnet) fn x11_a_component_learns_which_nodes_are_isolated() {
    let mut supervision = running();
    assert_eq!(after(&mut supervision, Pair::handle_entered), []);
    isolated(&mut supervision, 1);
    let learned = [Order::LearnIsolation(NODE, Incarnation(1))];
    assert_eq!(after(&mut supervision, Pair::handle_entered), learned);
    released(&mut supervision, 1);
    assert_eq!(after(&mut supervision, Pair::handle_entered), []);
}

#[test]
#[should_panic(expected = "drain poll_order")]
fn a_caller_that_leaves_orders_is_stopped() {
    let mut supervision = met();
    supervision.handle_alive(PEER, 1, first(1));
    supervision.handle_alive(PEER, 1, first(2));
}

#[test]
fn a_rank_that_does_not_exist_changes_nothing() {
    let mut supervision = running();
    let before = supervision.clone();
    supervision.handle_alive(Peer(7), 0, first(1));
    supervision.handle_joined(Peer(7), Incarnation(1));
    supervision.handle_isolated(Rank(7), Incarnation(1));
    supervision.handle_removed(Instant(0), Peer(7), Incarnation(1), TERM);
    assert_eq!(supervision, before);
}

/// One input about the peer.
#[derive(Clone, Copy, Debug)]
enum Input {
    Met,
    Parted,
    Alive(u32),
    Dead,
    Removed(u32, u32),
    Isolated(u32),
    Released(u32),
    Free(u32),
    OwnEnd,
    Late,
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let one = (0..10u8, 1..4u32, 0..4u32).prop_map(|(what, boot, epoch)| match what {
        0 => Input::Met,
        1 => Input::Parted,
        2 => Input::Alive(boot),
        3 => Input::Dead,
        4 => Input::Removed(boot, epoch),
        5 => Input::Isolated(boot),
        6 => Input::Released(boot),
        7 => Input::Free(boot),
        8 => Input::OwnEnd,
        _ => Input::Late,
    });
    proptest::collection::vec(one, 0..40)
}

/// The peer's decisions and incarnations, as one node receives them.
struct Run {
    supervision: Pair,
    session: u64,
    /// The last incarnation that the peer has announced.
    latest: u32,
    now: Instant,
    /// What must hold, kept by its definition.
    removed: u32,
    isolated: u32,
    released: u32,
    fenced: u32,
    connected: Option<Announcement>,
}

impl Run {
    fn new() -> Self {
        Self {
            supervision: met(),
            session: 1,
            latest: 0,
            now: Instant(0),
            removed: 0,
            isolated: 0,
            released: 0,
            fenced: 0,
            connected: None,
        }
    }

    fn take(&mut self, input: Input) {
        self.now = self.now.after(Duration::from_millis(100));
        match input {
            Input::Met => {
                self.session += 1;
                self.supervision.handle_met(PEER, self.session);
            }
            Input::Parted => self.supervision.handle_parted(PEER, self.session),
            Input::Alive(boot) => {
                // Boots and incarnations of a node only grow.
                self.latest = self.latest.max(boot * 100) + 1;
                let boot = Incarnation(self.latest / 100);
                let announced = Announcement { incarnation: Incarnation(self.latest), boot };
                self.supervision.handle_alive(PEER, self.session, announced);
            }
            Input::Dead => {
                self.supervision.handle_dead(PEER, self.session, Incarnation(self.latest));
            }
            Input::Removed(boot, epoch) => {
                let term = Term { epoch, claimant: Rank(0) };
                self.removed = self.removed.max(boot);
                self.supervision.handle_removed(self.now, PEER, Incarnation(boot), term);
            }
            Input::Isolated(boot) => {
                self.isolated = self.isolated.max(boot);
                self.supervision.handle_isolated(NODE, Incarnation(boot));
            }
            Input::Released(boot) => {
                self.released = self.released.max(boot);
                self.supervision.handle_released(NODE, Incarnation(boot));
            }
            Input::Free(boot) => {
                self.released = self.released.max(boot);
                self.supervision.handle_free(PEER, Incarnation(boot));
            }
            Input::OwnEnd => {
                (self.fenced, self.connected) = (0, None);
                self.supervision.handle_ended();
                self.supervision.handle_started(first(1));
            }
            Input::Late => self.supervision.handle_time(Instant(u64::MAX)),
        }
        while let Some(order) = self.supervision.poll_order() {
            self.check(order);
        }
    }

    fn check(&mut self, order: Order) {
        match order {
            Order::Connect(_, it) => {
                assert!(self.removed < it.boot.0, "a removed boot is admitted");
                assert!(self.released <= it.boot.0, "a boot before the released one is admitted");
                assert!(self.isolated <= self.released, "an isolated node is admitted");
                assert!(self.fenced < it.incarnation.0, "a fenced incarnation is admitted");
                if let Some(before) = self.connected.replace(it) {
                    self.fenced = before.incarnation.0;
                }
            }
            Order::Fence(_) | Order::Acknowledge(..) => {
                if let Some(before) = self.connected.take() {
                    self.fenced = before.incarnation.0;
                }
            }
            Order::Report { .. } | Order::Release(..) | Order::Refuse(..) => {}
            Order::Isolate(..) | Order::LearnRelease(..) | Order::Parted(_) | Order::Reset(..) => {}
            Order::LearnIsolation(..) | Order::AskForRelease(..) => {}
            Order::Contradict(..) | Order::Keep(_) | Order::Halt | Order::Resume => {}
            Order::Reboot => panic!("no input concerns the own boot"),
        }
    }
}

proptest! {
    /// X-11, G-8: whatever the order of the messages, no incarnation is admitted that was fenced,
    /// whose boot was removed, or whose node is isolated; and a later one is.
    #[test]
    fn no_order_of_messages_admits_what_is_over(inputs in inputs()) {
        let mut run = Run::new();
        inputs.into_iter().for_each(|input| run.take(input));
        run.take(Input::Met);
        run.take(Input::Released(9));
        run.take(Input::Alive(9));
        prop_assert_eq!(run.supervision.running(), PeerSet::only(PEER));
    }

    /// What a node knows of a peer does not depend on the order in which it learns it.
    #[test]
    fn the_same_decisions_in_any_order_are_the_same_standing(
        all in inputs(), seed in any::<prop::sample::Index>(),
    ) {
        let is_decision = |it: &Input| {
            matches!(it, Input::Removed(..) | Input::Isolated(_) | Input::Released(_))
        };
        let mut decisions: Vec<_> = all.into_iter().filter(is_decision).collect();
        let (mut one, mut other) = (Run::new(), Run::new());
        decisions.iter().for_each(|input| one.take(*input));
        let len = decisions.len().max(1);
        decisions.rotate_left(seed.index(len));
        decisions.reverse();
        decisions.iter().for_each(|input| other.take(*input));
        prop_assert_eq!(one.supervision.standing(NODE), other.supervision.standing(NODE));
    }
}
