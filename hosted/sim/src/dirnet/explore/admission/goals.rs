//! What every node must have come to once no fault is left to happen and nothing is under way.

use weft_core::dirnet::Standing;
use weft_core::ids::Rank;

use super::world::AdmissionWorld;
use crate::protocol::Violation;

impl AdmissionWorld {
    /// What is not as it must be where no move is left but faults.
    pub(super) fn check_rest(&self) -> Result<(), Violation> {
        let joined: Vec<_> = self.ranks().map(|of| self.joined(of)).collect();
        let is_held = |node: u16| joined[usize::from(node)].isolation().is_some();
        for at in self.ranks() {
            let node = self.at(at);
            let Some(supervisor) = &node.supervisor else { continue };
            if supervisor.decider.is_isolated() != is_held(at) {
                let what = format!("node {at} does not know whether it is isolated");
                return Err(Violation::new("standing", what));
            }
            if is_held(at) {
                continue;
            }
            let Some(member) = node.member() else {
                return Err(Violation::new("progress", format!("node {at} has no component")));
            };
            for of in self.ranks() {
                let (isolated, released) = self.decided[usize::from(of)];
                if is_held(of) != (isolated > released) && !self.has_forgotten {
                    let what = format!("node {at} does not know what was decided about node {of}");
                    return Err(Violation::new("standing", what));
                }
                let known = [
                    member.standings[usize::from(of)].isolation(),
                    supervisor.decider.standing(Rank(of)).isolation(),
                ];
                if of != at && known != [joined[usize::from(of)].isolation(); 2] {
                    let what = format!("node {at} does not know how node {of} stands");
                    return Err(Violation::new("standing", what));
                }
                let own = self.at(of).component.as_ref().map(|it| it.own);
                if of != at && !is_held(of) && node.connected(of) != own {
                    let what = format!("node {at} does not admit node {of}");
                    return Err(Violation::new("progress", what));
                }
            }
        }
        Ok(())
    }

    /// The isolations and releases of a node that any process which takes part knows; of those that
    /// are isolated, itself alone.
    fn joined(&self, of: u16) -> Standing {
        let mut joined = Standing::default();
        for at in self.ranks() {
            let node = self.at(at);
            let Some(supervisor) = &node.supervisor else { continue };
            if supervisor.decider.is_isolated() && at != of {
                continue;
            }
            joined = joined.merged(supervisor.decider.standing(Rank(of)));
            if let Some(member) = node.member() {
                joined = joined.merged(member.standings[usize::from(of)]);
            }
        }
        joined
    }
}
