//! Which recovery script this component uses, and how the manager replaces it (RL-12).
//!
//! ```text
//!   client ─▶ manager: verified ─▶ offered ─▶ all entries say "held" ─▶ "used", in its term
//!                                                                          │ the database
//!   every node: the latest "used" of all entries ◀──────────────────────────┘
//! ```
//!
//! A node says which script it holds and which it uses in its own entry, so nothing else has to
//! be repeated when a frame is lost, and a manager that takes over knows as much as the one before.

use weft_core::recovery::IdSet;
use weft_core::script::{ReloadEnd, ReloadRefused, ScriptStep};
use weft_core::time::Instant;

use super::script::ClusterScript;
use super::{ComponentDirNet, Ground};
use crate::node::NodeError;
use crate::node::control::{Outcome, Refused, ScriptLoaded, ScriptRefused};
use crate::node::link::{FromComponent, Ticket};
use crate::node::scripts::{self, NotHeld};
use crate::payload::Payload;

/// What is under way besides the script in force.
#[derive(Default)]
pub(super) struct Reloading {
    /// The images that are held: of the next script, and of the one in force if it was lacking.
    pub(super) images: Vec<Vec<u8>>,
    /// The request that the manager's change answers.
    ticket: Option<Ticket>,
}

impl ComponentDirNet {
    /// Begins to replace the script in force, if this node manages. The answer comes later.
    pub(in super::super) fn begin_reload(
        &mut self,
        now_ns: u64,
        ticket: Ticket,
        image: Vec<u8>,
    ) -> Option<Outcome> {
        let refused = |why| Some(Outcome::Refused(Refused::Script(why)));
        let Some(script) = &mut self.script else { return refused(ScriptRefused::NoScript) };
        match script.member.may_reload(self.member.machine()) {
            Ok(()) => {}
            Err(ReloadRefused::NotManager) => return Some(Outcome::Refused(Refused::NotManager)),
            Err(ReloadRefused::UnderWay) => return refused(ScriptRefused::UnderWay),
        }
        match scripts::check(script.image(), &image) {
            Ok(()) => {}
            Err(NotHeld::NoScript) => return refused(ScriptRefused::NoScript),
            Err(NotHeld::Rejected(why)) => {
                return refused(ScriptRefused::Rejected(why.to_string()));
            }
            Err(NotHeld::Unlike(why)) => return refused(ScriptRefused::Unlike(why.to_string())),
        }
        let digest = scripts::digest_of(&image);
        if script.member.begin_reload(self.member.machine(), digest, Instant(now_ns)) != Ok(true) {
            return Some(loaded(digest, IdSet::EMPTY, false));
        }
        self.words.push(FromComponent::HoldScript { image: Payload(image.clone()) });
        script.reloading.ticket = Some(ticket);
        script.keep(image);
        None
    }

    /// The supervisor holds this script, which was verified there.
    pub(in super::super) fn hold_script(&mut self, image: Vec<u8>) {
        let Some(script) = &mut self.script else { return };
        script.member.hold(scripts::digest_of(&image));
        script.keep(image);
    }

    /// Says in the own entry which script is held and used, and uses the one in force.
    pub(super) fn agree_on_script(
        &mut self,
        now_ns: u64,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        let Some(script) = &mut self.script else { return Ok(()) };
        for step in script.member.agree(self.member.machine(), Instant(now_ns)) {
            self.carry_step(now_ns, step);
            self.drain(now_ns, ground)?;
        }
        Ok(())
    }

    fn carry_step(&mut self, now_ns: u64, step: ScriptStep) {
        let Some(script) = &mut self.script else { return };
        match step {
            ScriptStep::Offer { to, digest } => {
                self.words.push(FromComponent::OfferScript { to: nodes(to), digest });
            }
            ScriptStep::Use { digest } => {
                let is_it = |image: &Vec<u8>| scripts::digest_of(image) == digest;
                let Some(at) = script.reloading.images.iter().position(is_it) else {
                    return tracing::error!(digest, "the script in force has no image here");
                };
                let image = script.reloading.images.remove(at);
                script.replace(image, self.member.machine_mut());
                let next = script.member.next();
                self.words.push(FromComponent::UseScript { digest, next });
            }
            ScriptStep::Want { digest } => {
                self.words.push(FromComponent::WantScript { digest });
            }
            ScriptStep::Change(change) => {
                if let Err(reason) =
                    self.member.machine_mut().handle_change(Instant(now_ns), change)
                {
                    tracing::debug!(%reason, ?change, "a change of the script is refused");
                }
            }
            ScriptStep::Ended { digest, end } => {
                let Some(ticket) = script.reloading.ticket.take() else { return };
                let what = match end {
                    ReloadEnd::InForce(late) => loaded(digest, late, true),
                    ReloadEnd::Lacking(lacking) => {
                        let why = ScriptRefused::Lacking { nodes: nodes(lacking) };
                        Outcome::Refused(Refused::Script(why))
                    }
                    ReloadEnd::NotManager => Outcome::Refused(Refused::NotManager),
                };
                self.words.push(FromComponent::Reply { ticket, what });
            }
        }
    }
}

fn nodes(set: IdSet) -> Vec<u16> {
    set.iter().map(u16::from).collect()
}

fn loaded(digest: u64, late: IdSet, is_new: bool) -> Outcome {
    let (digest, late) = (ClusterScript::digest_text(digest), nodes(late));
    Outcome::ScriptLoaded(ScriptLoaded { digest, late, is_new })
}
