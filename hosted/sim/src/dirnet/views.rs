//! Views, checked against each other (M-6).
//!
//! ```text
//!  view-agreement   a number was shown with one content, by every member that showed it
//!  view-monotone    a node shows rising numbers, over all of its incarnations
//!  view-fence       what a component's view no longer contains, its node has fenced
//! ```
//!
//! A component that starts without a database knows of no member, and has admitted none: its views
//! are compared with its own only.

use std::collections::BTreeMap;

use weft_core::dirnet::{ComponentIncarnation, View, ViewNumber};
use weft_core::ids::{Incarnation, Rank};

type Shown = View<8>;

/// The views that the nodes of a run have shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views {
    /// The content of each number.
    contents: BTreeMap<ViewNumber, Shown>,
    /// The last view of each node, and the incarnation that showed it.
    last: BTreeMap<Rank, (ComponentIncarnation, Shown)>,
}

impl Views {
    /// Which checker objects to the view that the component `incarnation` of `me` shows, and why;
    /// `has_fenced` says which boots its node has fenced.
    pub(crate) fn judge(
        &mut self,
        (me, incarnation): (Rank, ComponentIncarnation),
        &view: &Shown,
        has_fenced: impl Fn(u16, Incarnation) -> bool,
    ) -> Option<(&'static str, String)> {
        let number = view.number();
        if number == ViewNumber::default() {
            return None;
        }
        let last = self.last.insert(me, (incarnation, view));
        if last.is_some_and(|(_, last)| last == view) {
            return None;
        }
        if *self.contents.entry(number).or_insert(view) != view {
            return Some(("view-agreement", format!("node {me} shows another view {number:?}")));
        }
        if view.incarnation(me) != Some(incarnation) {
            return Some(("view-agreement", format!("node {me} shows a view without itself")));
        }
        let (shown_in, last) = last?;
        if number <= last.number() {
            let before = last.number();
            return Some(("view-monotone", format!("node {me}: {number:?} after {before:?}")));
        }
        let mut shown = last.members().iter().filter(|_| shown_in == incarnation);
        let left = shown.find_map(|node| {
            let was = last.incarnation(node)?.boot;
            let is_gone = view.incarnation(node).is_none_or(|it| it.boot != was);
            (is_gone && !has_fenced(node.0, was)).then_some((node, was))
        });
        left.map(|(node, was)| {
            ("view-fence", format!("node {me} shows {number:?} before it fences {node} in {was}"))
        })
    }
}
