//! The view that the machine shows, for the program and the supervisor (M-6).

use weft_core::dirnet::View;
use weft_core::time::Instant;

use super::ComponentDirNet;
use crate::node::PEERS;
use crate::node::link::FromComponent;

impl ComponentDirNet {
    /// Reports the view that the machine shows, if it is a later one.
    pub(super) fn report_view(&mut self) {
        let number = self.member.machine().view().number();
        if std::mem::replace(&mut self.reported_view, number) != number {
            self.words.push(FromComponent::View(self.member.machine().view().into()));
        }
    }

    /// The view that this member shows.
    pub(in crate::node::component) fn view(&self) -> &View<PEERS> {
        self.member.machine().view()
    }

    /// Whether that view may be out of date.
    pub(in crate::node::component) fn is_view_stale(&self, now_ns: u64) -> bool {
        self.member.machine().is_view_stale(Instant(now_ns))
    }
}
