//! What `weft status` shows of the DIR net.

use weft_core::dirnet::{Level, Role};
use weft_core::ids::Rank;

use super::ComponentDirNet;
use crate::node::control::{DirNetStatus, EntryStatus};

impl ComponentDirNet {
    /// The status for people, with the nodes that have left the broadcasts.
    pub(in super::super) fn status(&self, left_broadcasts: Vec<u16>) -> DirNetStatus {
        let machine = self.member.machine();
        let members = (0..).map(Rank).take(usize::from(self.nodes));
        let others = members.filter(|rank| *rank != machine.me());
        let is_removed = |rank: &Rank| {
            let standing = machine.database().standing(*rank);
            standing.is_known() && standing.level != Level::Up
        };
        let role = match machine.role() {
            Role::Joining => "joining",
            Role::Manager => "manager",
            Role::Backup if self.may_manage => "backup",
            Role::Backup => "agent",
            Role::Excluded => "excluded",
        };
        let entry = |rank: Rank| {
            let record = machine.database().record(rank).filter(|it| !it.tasks().is_empty())?;
            let task_errors = record.tasks().iter().map(|task| task.errors).collect();
            Some(EntryStatus { node: rank.0, errors: record.error_count, task_errors })
        };
        let rejects = machine.rejects().iter().map(|(reason, count)| (reason.name(), count));
        let unread = self.unread.iter().map(|(reason, count)| (*reason, *count));
        DirNetStatus {
            role: role.to_owned(),
            epoch: machine.term().epoch,
            manager: machine.term().claimant.0,
            boot: machine.incarnation().boot.0,
            generation: machine.incarnation().generation,
            timing: self.timing.clone(),
            suspects: others.clone().filter(|rank| machine.suspects(*rank)).map(|r| r.0).collect(),
            removed: others.clone().filter(is_removed).map(|rank| rank.0).collect(),
            isolated: others
                .filter(|rank| machine.database().standing(*rank).level == Level::Isolated)
                .map(|rank| rank.0)
                .collect(),
            left_broadcasts,
            view: machine.view().into(),
            stale: self.is_view_stale(crate::clock::now_ns()),
            database: (0..).map(Rank).take(usize::from(self.nodes)).filter_map(entry).collect(),
            script: self.script.as_ref().and_then(|script| script.status(&self.votes)),
            refused: rejects.chain(unread).map(|(name, n)| (name.to_owned(), n)).collect(),
        }
    }
}
