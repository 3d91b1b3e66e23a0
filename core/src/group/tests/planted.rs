//! Scenarios that runs of correct members show rarely or never: of planted bugs, each a check that
//! its guard makes hold, and of a removed epoch that speaks again.

use super::super::mutants::{
    EARLIER_COUNTED, EPOCHS_IGNORED, JOINED_EARLY, NOT_FROZEN, OLD_CURSOR, PLEDGE_FORGOTTEN,
    STALE_WELCOME,
};
use super::returns::{come_back, remove, replace_last};
use super::*;
use crate::checksum::fnv1a;
use crate::lane::{LaneReader, LaneWriter};
use crate::mutant::Mutant;
use crate::wire::group::{
    Agree, Blocks, ENTRY_LEN, Entry, EntryKind, FORWARD, Footing, Frame, HEAD_LEN, Head, Held,
    Report, Welcome,
};

/// A member that says what a scenario has it say, to one other.
struct Scripted<'net> {
    fabric: Loopback<'net, PEERS, WORDS>,
    lane: LaneWriter,
    heard: LaneReader,
    epoch: u32,
    agree: Agree,
}

impl<'net> Scripted<'net> {
    /// The incarnation of `me` that says it to that of `to`; each is an epoch of its own.
    fn new(
        (net, config, regions): (&'net Net<PEERS, WORDS>, Config, Regions),
        me: (u16, u32),
        to: (u16, u32),
    ) -> Self {
        let (to, mine) = ((Peer(to.0), Incarnation(to.1)), Incarnation(me.1));
        let mut fabric = net.endpoint(Peer(me.0), mine);
        let lane = LaneWriter::new(&fabric, config.lanes().unwrap(), regions.lanes, mine, to);
        let heard = LaneReader::new(&fabric, config.lanes().unwrap(), regions.lanes, mine, to);
        fabric.admit(to.0, to.1).unwrap();
        let agree = Agree {
            list: fnv1a([0, 0, 1, 2, 3]),
            sizes: config.digest(),
            heard: true,
            ..Agree::default()
        };
        Self { fabric, lane, heard, epoch: me.1, agree }
    }

    /// `frame` is about epoch `epoch` of `root`.
    fn say(&mut self, root: u16, epoch: u32, frame: Frame) {
        let (kind, bytes, len) = frame.encode(Head { group: 0, root, epoch });
        self.lane.send(&mut self.fabric, kind, &bytes[..len]).unwrap();
        self.fabric.poll(Instant(0), &mut [Completion::NONE; 8]);
    }

    /// Passes on the first message of member 3.
    fn forward(&mut self, entry: Entry) {
        let mut bytes = [0; HEAD_LEN + ENTRY_LEN];
        bytes[..HEAD_LEN].copy_from_slice(&Head { group: 0, root: 3, epoch: 1 }.encode());
        let entry = Entry { seq: 1, epoch: 1, ..entry };
        entry.seal(&mut bytes[HEAD_LEN..], |bytes| self.fabric.crc32c(bytes));
        self.lane.send(&mut self.fabric, FORWARD, &bytes).unwrap();
        self.fabric.poll(Instant(0), &mut [Completion::NONE; 8]);
    }

    /// Takes what it is sent, so that there is room for more.
    fn hear(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(message) = self.heard.take(&mut self.fabric) {
            let (_, rest) = Head::decode(message.payload).unwrap();
            frames.extend(Frame::decode(message.kind, rest));
        }
        self.heard.poll(&mut self.fabric);
        self.fabric.poll(Instant(0), &mut [Completion::NONE; 8]);
        frames
    }

    fn say_own(&mut self, frame: Frame) {
        self.say(self.fabric.me().0, self.epoch, frame);
    }

    /// That it counts these members in these epochs.
    fn count(&mut self, counted: &[(u64, u32)]) {
        let live = counted.iter().fold(0, |live, (grank, _)| live | 1 << grank);
        self.say_own(Frame::Agree(Agree { live, epochs: epochs(counted), ..self.agree }));
    }

    /// That it counts member 3 no more, of which it holds no message.
    fn close(&mut self) {
        self.count(&FIRST[..3]);
        let epochs = epochs(&FIRST[..3]);
        let report = Report { footing: Footing::Closed, epochs, ..Report::default() };
        self.say(3, 1, Frame::Report(report));
    }

    /// That its subtree has released these entries of member 0, under those members.
    fn acknowledge(&mut self, entries: u64, counted: &[(u64, u32)]) {
        self.say(0, 1, Frame::Ack { entries, blocks: 0, epochs: epochs(counted) });
    }

    fn welcome(&mut self, gathers: u64) {
        self.say_own(Frame::Welcome(Welcome { gathers, ..Welcome::default() }));
    }
}

fn epochs(counted: &[(u64, u32)]) -> u64 {
    let epoch_of = |epoch| u64::from(if EPOCHS_IGNORED.is_planted() { 0 } else { epoch });
    fnv1a(counted.iter().map(|(grank, epoch)| grank << 32 | epoch_of(*epoch)))
}

/// All in their first epochs.
const FIRST: [(u64, u32); 4] = [(0, 1), (1, 1), (2, 1), (3, 1)];

/// Member 0, which counts the others, in the tree of whose stream member 3 is below member 2.
fn root<'net>(
    at: (&'net Net<PEERS, WORDS>, Config, Regions),
) -> ([Member<'net>; 1], [Scripted<'net>; 3]) {
    let (net, config, regions) = at;
    let mut root = [start(net, (config, regions), 1, 0)];
    root[0].1.open(&root[0].0, WORLD, &[0, 1, 2, 3].map(Peer)).unwrap();
    let mut others = [1, 2, 3].map(|me| Scripted::new(at, (me, 1), (0, 1)));
    for member in &mut others {
        admit(&mut root[0], member.fabric.me(), 1);
        member.count(&FIRST);
    }
    run(&mut root);
    (root, others)
}

/// Member 3 as it comes back, and members 0 and 1, which it hears.
fn back<'net>(
    at: (&'net Net<PEERS, WORDS>, Config, Regions),
) -> ([Member<'net>; 1], [Scripted<'net>; 2]) {
    let (net, config, regions) = at;
    let mut back = [come_back((net, (config, regions)), &mut [], (3, 2, 1))];
    remove(&mut back[0], 2, 1);
    let others = [0, 1].map(|me| Scripted::new(at, (me, 1), (3, 2)));
    for member in &others {
        admit(&mut back[0], member.fabric.me(), 1);
    }
    (back, others)
}

/// G19: a member that comes back begins once each that it counts counts it, too.
fn a_member_does_not_begin_before_all_count_it() -> bool {
    let (net, config, regions) = net(Spread::Flat);
    let (mut back, [mut first, mut second]) = back((&net, config, regions));
    first.count(&[(0, 1), (1, 1), (3, 2)]);
    second.count(&[(0, 1), (1, 1)]);
    for member in [&mut first, &mut second] {
        member.welcome(0);
    }
    run(&mut back);
    let has_waited = back[0].1.is_fresh(WORLD);
    second.count(&[(0, 1), (1, 1), (3, 2)]);
    second.welcome(0);
    run(&mut back);
    assert!(!back[0].1.is_fresh(WORLD));
    has_waited
}

/// G8: an entry that comes after the report is not taken, for the end may be before it.
fn nothing_is_taken_after_the_report() -> bool {
    let (net, config, regions) = net(Spread::Flat);
    let (mut root, [mut one, mut two, _]) = root((&net, config, regions));
    remove(&mut root[0], 3, 1);
    run(&mut root);
    two.forward(Entry { members: 0b1111, ..Entry::default() });
    run(&mut root);
    for member in [&mut one, &mut two] {
        member.close();
    }
    run(&mut root);
    let lost = Delivery::RootLost { root: Grank(3), epoch: Incarnation(1), last: 0 };
    let standing = root[0].1.standing(WORLD, Grank(3)).unwrap();
    standing.held.entries == 0 && take(&mut root[0]) == (Vec::new(), Vec::from([lost]))
}

/// G35: one that asked for entries which have left the window since is sent those after them.
fn a_successor_is_sent_what_the_window_holds() -> bool {
    let (net, config, regions) = net(Spread::Flat);
    let (mut root, [mut one, mut two, mut three]) = root((&net, config, regions));
    three.say(0, 1, Frame::Need { next: 1 });
    for _ in 0..4 {
        send(&mut root[0], b"text");
    }
    for member in [&mut one, &mut two] {
        member.acknowledge(4, &FIRST);
    }
    run(&mut root);
    send(&mut root[0], b"fifth");
    for member in [1, 2] {
        remove(&mut root[0], member, 1);
    }
    for _ in 0..4 {
        three.hear();
        run(&mut root);
    }
    root[0].1.counters().forwards > 0
}

/// G27: what members have released that were live before a return frees nothing after it.
fn what_is_acknowledged_counts_under_the_same_epochs_alone() -> bool {
    let (net, config, regions) = net(Spread::Flat);
    let at = (&net, config, regions);
    let (mut root, [mut one, mut two, _]) = root(at);
    for _ in 0..4 {
        send(&mut root[0], b"text");
    }
    // Member 3 is below it in the tree.
    two.acknowledge(4, &FIRST);
    run(&mut root);
    remove(&mut root[0], 3, 1);
    for member in [&mut one, &mut two] {
        member.close();
    }
    run(&mut root);
    take(&mut root[0]);
    let mut three = Scripted::new(at, (3, 2), (0, 1));
    three.agree.fresh = true;
    admit(&mut root[0], Peer(3), 2);
    three.count(&[]);
    run(&mut root);
    assert_eq!(root[0].1.live(WORLD).count(), 4);
    one.acknowledge(4, &[(0, 1), (1, 1), (2, 1), (3, 2)]);
    run(&mut root);
    let (fabric, groups) = &mut root[0];
    matches!(groups.broadcast(fabric, WORLD, 0, b"fifth"), Err(SendError::WindowFull { .. }))
}

/// G29: of what a member holds of an earlier epoch nothing is read as if it were of the present
/// one.
fn blocks_of_an_earlier_epoch_are_not_read() -> bool {
    let (net, config, regions) = net(Spread::Pipeline);
    let mut members = members(&net, (config, regions));
    send(&mut members[3], &message(128));
    run(&mut members);
    for at in [0, 2] {
        take(&mut members[at]);
    }
    run(&mut members);
    replace_last((&net, (config, regions)), &mut members, 2);
    // Member 1 holds what the earlier epoch sent, for its consumer is not done with that.
    send(&mut members[3], &message(150));
    run(&mut members);
    take(&mut members[1]);
    run(&mut members);
    [0, 1, 2].iter().all(|at| take(&mut members[*at]).0 == [(1, message(150))])
}

/// G37: where none has stayed, those that may have begun together are not left out.
fn a_member_that_may_have_begun_is_waited_for() -> bool {
    let (net, config, regions) = net(Spread::Flat);
    let mut back = [come_back((&net, (config, regions)), &mut [], (3, 2, 1))];
    (0..3).for_each(|peer| remove(&mut back[0], peer, 1));
    let others = [0, 1].map(|me| Scripted::new((&net, config, regions), (me, 2), (3, 2)));
    let [mut first, mut second] = others;
    for member in [&mut first, &mut second] {
        let me = member.fabric.me();
        member.agree.fresh = true;
        admit(&mut back[0], me, 2);
        member.count(&[(u64::from(me.0), 2)]);
    }
    run(&mut back);
    assert_eq!(back[0].1.live(WORLD).count(), 3);
    // Member 0 may have heard that it is counted, and begins again.
    let (fabric, groups) = &mut back[0];
    fabric.fence(Peer(0)).unwrap();
    groups.handle_fenced(Peer(0));
    second.count(&[(1, 2), (3, 2)]);
    run(&mut back);
    back[0].1.is_fresh(WORLD)
}

/// G38: the value of a member that is removed while another comes back is not lost to one and kept
/// by another.
fn a_welcome_counts_under_the_same_members_alone() -> bool {
    let (net, config, regions) = net(Spread::Flat);
    let (mut back, [mut first, mut second]) = back((&net, config, regions));
    let counted = [(0, 1), (1, 1), (3, 2)];
    for member in [&mut first, &mut second] {
        member.count(&counted);
    }
    first.welcome(0);
    run(&mut back);
    // Its value of the first all-gather is with member 0.
    remove(&mut back[0], 1, 1);
    first.count(&[counted[0], counted[2]]);
    run(&mut back);
    first.welcome(1);
    run(&mut back);
    let (fabric, groups) = &mut back[0];
    assert!(!groups.is_fresh(WORLD));
    groups.all_gather(fabric, WORLD, b"d") == Ok(2)
}

type Scenario = fn() -> bool;

/// Each guard with the scenario that it makes hold.
const SCENARIOS: &[(Mutant, Scenario)] = &[
    (NOT_FROZEN, nothing_is_taken_after_the_report),
    (JOINED_EARLY, a_member_does_not_begin_before_all_count_it),
    (OLD_CURSOR, a_successor_is_sent_what_the_window_holds),
    (EPOCHS_IGNORED, what_is_acknowledged_counts_under_the_same_epochs_alone),
    (EARLIER_COUNTED, blocks_of_an_earlier_epoch_are_not_read),
    (PLEDGE_FORGOTTEN, a_member_that_may_have_begun_is_waited_for),
    (STALE_WELCOME, a_welcome_counts_under_the_same_members_alone),
];

/// Each scenario holds, and where bugs can be planted, fails once its guard is left out.
#[test]
fn every_scenario_holds_by_its_guard() {
    for (mutant, holds) in SCENARIOS {
        assert!(holds(), "{} without the bug", mutant.name);
        #[cfg(feature = "mutants")]
        {
            crate::mutant::plant(Some(mutant));
            let is_noticed = !holds();
            crate::mutant::plant(None);
            assert!(is_noticed, "{}", mutant.name);
            std::println!("{}: noticed", mutant.name);
        }
    }
}

/// A component that begins again in a boot that was removed is no member, whatever it says.
#[test]
fn an_epoch_that_was_removed_is_not_heard_again() {
    let (net, config, regions) = net(Spread::Flat);
    let at = (&net, config, regions);
    let (mut root, _) = root(at);
    remove(&mut root[0], 3, 1);
    run(&mut root);
    let mut three = Scripted::new(at, (3, 2), (0, 1));
    admit(&mut root[0], Peer(3), 2);
    for (epoch, refused) in [(1, 1), (2, 1)] {
        three.epoch = epoch;
        three.count(&FIRST);
        run(&mut root);
        assert_eq!(root[0].1.counters().foreign_epochs, refused, "epoch {epoch}");
    }
}

/// GT-16: a report covers all that is held, so it waits for reads under way. It is sent once.
#[test]
fn a_member_reports_once_its_reads_are_in_and_not_again() {
    let (net, config, regions) = net(Spread::Flat);
    let (mut root, [mut one, mut two, mut three]) = root((&net, config, regions));
    two.forward(Entry { kind: EntryKind::Long, len: 64, members: 0b1111, ..Entry::default() });
    three.say_own(Frame::Hold(Held { entries: 1, blocks: Blocks { base: 1, mask: 0 } }));
    let (fabric, groups) = &mut root[0];
    groups.poll(fabric);
    assert_eq!(groups.counters().reads, 1);
    remove(&mut root[0], 3, 1);
    for (is_read, due) in [(false, 0), (true, 1)] {
        let mut reports = 0;
        for _ in 0..6 {
            let (fabric, groups) = &mut root[0];
            groups.poll(fabric);
            let frames = one.hear();
            reports += frames.iter().filter(|it| matches!(it, Frame::Report(_))).count();
            if is_read {
                run(&mut root);
            }
        }
        assert_eq!(reports, due);
    }
}

/// GT-20: it learns which members were removed from those that have stayed, without a decision.
#[test]
fn a_member_that_comes_back_counts_the_members_that_the_others_count() {
    let (net, config, regions) = net(Spread::Flat);
    let at = (&net, config, regions);
    let mut back = [come_back((&net, (config, regions)), &mut [], (3, 2, 1))];
    for me in [0, 1] {
        let mut member = Scripted::new(at, (me, 1), (3, 2));
        admit(&mut back[0], Peer(me), 1);
        member.count(&[(0, 1), (1, 1), (3, 2)]);
        member.welcome(0);
    }
    run(&mut back);
    let (_, groups) = &back[0];
    assert_eq!((groups.is_fresh(WORLD), groups.live(WORLD).count()), (false, 3));
}

/// GT-20: before it is counted, the others send it how they opened the group, and nothing else.
#[test]
fn a_member_that_is_not_counted_yet_is_sent_no_state_of_the_streams() {
    let (net, config, regions) = net(Spread::Flat);
    let at = (&net, config, regions);
    let (mut root, _others) = root(at);
    remove(&mut root[0], 3, 1);
    let mut three = Scripted::new(at, (3, 2), (0, 1));
    three.agree.fresh = true;
    admit(&mut root[0], Peer(3), 2);
    three.count(&[]);
    let mut heard = Vec::new();
    for _ in 0..4 {
        run(&mut root);
        heard.extend(three.hear());
    }
    assert!(!heard.is_empty() && heard.iter().all(|it| matches!(it, Frame::Agree(_))), "{heard:?}");
}

/// A frame from a member before its first AGREE, one for a root that does not exist, and a damaged
/// one.
#[test]
fn a_frame_that_is_out_of_place_is_counted_and_changes_nothing() {
    let (net, config, regions) = net(Spread::Flat);
    let mut root = [start(&net, (config, regions), 1, 0)];
    root[0].1.open(&root[0].0, WORLD, &[0, 1, 2, 3].map(Peer)).unwrap();
    let mut one = Scripted::new((&net, config, regions), (1, 1), (0, 1));
    admit(&mut root[0], Peer(1), 1);
    let damaged = [&Head { group: 0, root: 3, epoch: 1 }.encode()[..], &[0; ENTRY_LEN]].concat();
    for bad in 1..=3 {
        match bad {
            1 => one.say(0, 1, Frame::Need { next: 1 }),
            2 => one.say(9, 1, Frame::Need { next: 1 }),
            _ => one.lane.send(&mut one.fabric, FORWARD, &damaged).unwrap(),
        }
        run(&mut root);
        assert_eq!(root[0].1.counters().bad_frames, bad);
        one.count(&FIRST);
        run(&mut root);
    }
}

/// GT-16: no tree of the present members was made for it, so any member that holds it may be read.
#[test]
fn a_message_that_was_sent_to_other_members_is_announced_to_all() {
    for (members, is_announced) in [(0b1111, false), (0b0111, true)] {
        let (net, config, regions) = net(Spread::Flat);
        let (mut root, [mut one, mut two, _]) = root((&net, config, regions));
        two.forward(Entry { members, ..Entry::default() });
        one.hear();
        run(&mut root);
        let holds = |it: &Frame| matches!(it, Frame::Hold(Held { entries: 1, .. }));
        assert_eq!(one.hear().iter().any(holds), is_announced);
    }
}

#[test]
fn an_entry_is_forwarded_to_successors_alone() {
    let (net, config, regions) = net(Spread::Flat);
    let (mut root, mut others) = root((&net, config, regions));
    for member in &mut others {
        member.hear();
        member.say(0, 1, Frame::Need { next: 1 });
    }
    send(&mut root[0], b"text");
    run(&mut root);
    // Member 2 has it from member 1.
    assert_eq!(root[0].1.counters().forwards, 2);
}
