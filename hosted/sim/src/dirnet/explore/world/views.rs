//! What members show in the explorer (M-6).

use super::{CopyOnWrite, NetWorld, Small, Violation};

impl NetWorld {
    /// Checks a view that was shown in the step to here: a number has one content, numbers rise,
    /// and what the view does not contain is fenced.
    pub(super) fn check_view(&self, before: &Small, after: &Small) -> Result<(), Violation> {
        let (me, last, view) = (after.me(), before.view(), after.view());
        if last == view || before.incarnation() != after.incarnation() {
            return Ok(());
        }
        let number = view.number();
        if number <= last.number() {
            let what = format!("node {me}: {number:?} after {:?}", last.number());
            return Err(Violation::new("view-monotone", what));
        }
        let is_another =
            |it: &&CopyOnWrite<Small>| it.view().number() == number && it.view() != view;
        if let Some(other) = self.nodes.iter().flatten().find(is_another) {
            let what = format!("nodes {me} and {} show two views {number:?}", other.me());
            return Err(Violation::new("view-agreement", what));
        }
        let left = last.members().iter().find(|node| {
            let was = last.incarnation(*node).map(|it| it.boot);
            let is_gone = view.incarnation(*node).map(|it| it.boot) != was;
            is_gone && self.fenced.get(&(me, *node)).copied() < was
        });
        left.map_or(Ok(()), |node| {
            let what = format!("node {me} shows {number:?} before it has fenced {node}");
            Err(Violation::new("view-fence", what))
        })
    }
}
