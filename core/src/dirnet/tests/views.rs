//! Views: what members show, in which order, and when (M-6).

use std::collections::BTreeMap;
use std::vec::Vec;

use super::net::{Net, Part4};
use crate::dirnet::*;
use crate::ids::Rank;
use crate::time::Instant;

/// The views that the members have shown.
#[derive(Default)]
struct Shown {
    contents: BTreeMap<ViewNumber, View<8>>,
    /// The last one of each node.
    last: BTreeMap<u16, ViewNumber>,
}

impl Shown {
    /// Looks at what is shown now. The same number is the same view, and numbers rise.
    fn look(&mut self, net: &Net) {
        for component in net.nodes.iter().filter_map(|node| node.component.as_ref()) {
            let (view, me) = (*component.view(), component.me());
            let number = view.number();
            assert_eq!(*self.contents.entry(number).or_insert(view), view, "of node {me}");
            let before = self.last.insert(me.0, number).unwrap_or_default();
            assert!(before <= number || number == ViewNumber::default(), "{before:?} {number:?}");
            if number == ViewNumber::default() {
                // A component that has just started shows none yet.
                self.last.insert(me.0, before);
            }
        }
    }

    fn run(&mut self, net: &mut Net, ms: u64) {
        for _ in 0..ms {
            net.run(1);
            self.look(net);
        }
    }
}

fn is_current(net: &Net, component: &Part4) -> bool {
    !component.is_view_stale(Instant(net.now))
}

/// The one view that all running members show.
fn agreed(net: &Net) -> View<8> {
    let shown: Vec<_> = net.nodes.iter().flat_map(|node| &node.component).collect();
    let view = *shown[0].view();
    for component in shown {
        assert_eq!(*component.view(), view, "node {}", component.me());
        assert!(is_current(net, component), "node {}", component.me());
    }
    view
}

#[test]
pub(in crate::dirnet) fn m6_members_show_the_same_views_in_one_order() {
    let (mut net, mut shown) = (Net::new(4), Shown::default());
    net.boot_all();
    shown.run(&mut net, 1_000);
    let first = agreed(&net);
    assert_eq!(first.members().count(), 4);
    net.crash(2);
    shown.run(&mut net, 600);
    assert_eq!(agreed(&net).members(), [0, 1, 3].map(Rank).into_iter().collect());
    shown.run(&mut net, 3_000);
    net.crash(0);
    shown.run(&mut net, 9_000);
    let last = agreed(&net);
    assert_eq!((last.members().count(), last.manager()), (4, Rank(1)));
    assert!(first.number() < last.number() && net.is_whole());
    assert!(last.incarnation(Rank(2)) > first.incarnation(Rank(2)));
}

#[test]
pub(in crate::dirnet) fn m6_a_member_fences_what_a_view_removes_before_it_shows_it() {
    let mut net = Net::settled(4);
    net.crash(2);
    let shows = |net: &Net, node: u16| !net.component(node).view().members().contains(Rank(2));
    for node in [0, 1, 3] {
        net.run_while(1_000, |net| shows(net, node));
        assert!(shows(&net, node), "node {node}");
        assert_eq!(net.nodes[usize::from(node)].fenced.get(&2), Some(&1), "node {node}");
    }
}

#[test]
pub(in crate::dirnet) fn m6_a_view_of_a_manager_that_was_succeeded_is_not_shown() {
    let mut net = Net::settled(3);
    let old = net.component(0).view().number();
    net.cut_off(0);
    net.run_while(5_000, |net| net.component(2).view().manager() == Rank(1));
    let view = *net.component(2).view();
    assert!(old < view.number());
    // What the first manager may have decided before it was removed, and sent late.
    let said = net.frame(0, Message::Enia);
    let view = ViewTag { count: old.count + 9, digest: view::digest(&view.incarnations) };
    let before = *net.component(2).view();
    let _ = net.deliver(2, Frame { view, ..said });
    assert_eq!(*net.component(2).view(), before);
}

#[test]
pub(in crate::dirnet) fn m6_a_view_whose_announcement_is_lost_is_shown_later() {
    let mut net = Net::settled(4);
    net.lost.extend(["NIUA", "NMI"]);
    net.crash(2);
    net.run_while(9_000, Net::is_whole);
    net.run(1_000);
    assert_eq!(agreed(&net).incarnation(Rank(2)), Some(net.component(2).incarnation()));
}

#[test]
pub(in crate::dirnet) fn m6_a_member_that_hears_no_manager_keeps_its_view_and_says_so() {
    let mut net = Net::settled(4);
    let before = *net.component(2).view();
    assert!(is_current(&net, net.component(2)));
    net.resets_work = false;
    net.cut_off(2);
    net.run(2_000);
    assert_eq!(*net.component(2).view(), before);
    assert!(!is_current(&net, net.component(2)));
    assert!(is_current(&net, net.component(0)), "the others go on without it");
    assert!(before.number() < net.component(0).view().number());
}

/// Two that cut each other off, with `min_alive` 1: each goes on in a term of its own, so that no
/// number is given twice.
#[test]
pub(in crate::dirnet) fn m6_halves_of_a_partition_give_no_number_twice() {
    let (mut net, mut shown) = (Net::settled(4), Shown::default());
    net.resets_work = false;
    for (one, other) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        net.cuts.extend([(one, other), (other, one)]);
    }
    shown.run(&mut net, 3_000);
    let [one, other] = [0, 2].map(|node| *net.component(node).view());
    assert_eq!((one.members().count(), other.members().count()), (2, 2));
    assert_ne!(one.number().term, other.number().term);
    net.cuts.clear();
    shown.run(&mut net, 9_000);
    assert_eq!(agreed(&net).members().count(), 4);
}
