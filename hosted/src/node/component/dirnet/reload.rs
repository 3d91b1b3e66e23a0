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

use weft_core::dirnet::{Change, Role, ScriptVersion};
use weft_core::ids::Rank;
use weft_core::recovery::{HeldScript, Reload, ReloadStep};
use weft_core::time::Instant;

use super::script::Script;
use super::{DirNet, Ground, Machine};
use crate::node::NodeError;
use crate::node::control::{Outcome, Refused, ScriptLoaded, ScriptRefused};
use crate::node::link::{FromComponent, Ticket};
use crate::node::scripts::{self, NotHeld};
use crate::payload::Payload;

/// How often a node asks for the script in force that it lacks.
const ASK_EVERY_NS: u64 = 1_000_000_000;

/// What is under way besides the script in force.
#[derive(Default)]
pub(super) struct Reloading {
    /// The script that is to replace it, and its digest.
    next: Option<(u64, Vec<u8>)>,
    /// The manager's change, and the request that it answers.
    reload: Option<(Ticket, Reload)>,
    /// Whether another one is in force than this node has, and when it asks for it again.
    is_lacking: bool,
    ask_at_ns: u64,
}

impl Reloading {
    /// Whether the script in force is not here, so this node must not evaluate.
    pub(super) const fn is_lacking(&self) -> bool {
        self.is_lacking
    }

    /// The digest of the script that is to replace the one in force.
    pub(super) fn next_digest(&self) -> Option<u64> {
        self.next.as_ref().map(|(digest, _)| *digest)
    }
}

impl DirNet {
    /// Begins to replace the script in force, if this node manages. The answer comes later.
    pub(in super::super) fn begin_reload(
        &mut self,
        now_ns: u64,
        ticket: Ticket,
        image: Vec<u8>,
    ) -> Option<Outcome> {
        let refused = |why| Some(Outcome::Refused(Refused::Script(why)));
        let is_manager = self.machine.role() == Role::Manager;
        let Some(script) = &mut self.script else { return refused(ScriptRefused::NoScript) };
        if !is_manager {
            return Some(Outcome::Refused(Refused::NotManager));
        }
        if script.reloading.reload.is_some() {
            return refused(ScriptRefused::UnderWay);
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
        if digest == script.image_digest() && !script.reloading.is_lacking {
            return Some(loaded(digest, Vec::new(), false));
        }
        self.words.push(FromComponent::HoldScript { image: Payload(image.clone()) });
        script.reloading.next = Some((digest, image));
        script.reloading.reload = Some((ticket, Reload::new(digest, Instant(now_ns))));
        None
    }

    /// The supervisor holds this script, which was verified there.
    pub(in super::super) fn hold_script(&mut self, image: Vec<u8>) {
        let Some(script) = &mut self.script else { return };
        // While it replaces the script itself, a manager holds no other.
        if script.reloading.reload.is_none() {
            script.reloading.next = Some((scripts::digest_of(&image), image));
        }
    }

    /// Says in the own entry which script is held and used, and uses the one in force.
    pub(super) fn agree_on_script(
        &mut self,
        now_ns: u64,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        self.step_reload(now_ns, ground)?;
        let Some(script) = &mut self.script else { return Ok(()) };
        let machine = &mut self.machine;
        let used = in_force(machine, self.seen.len());
        if used.number > 0 && used.digest != script.image_digest() {
            match script.reloading.next.take_if(|(digest, _)| *digest == used.digest) {
                Some((digest, image)) => {
                    script.replace(image);
                    script.declare(machine);
                    self.words.push(FromComponent::UseScript { digest });
                }
                None if script.reloading.ask_at_ns <= now_ns => {
                    script.reloading.ask_at_ns = now_ns + ASK_EVERY_NS;
                    self.words.push(FromComponent::WantScript { digest: used.digest });
                }
                None => {}
            }
        }
        let is_used = used.number == 0 || used.digest == script.image_digest();
        script.reloading.is_lacking = !is_used;
        let held = script.reloading.next_digest().unwrap_or(script.image_digest());
        let Some(own) = machine.database().record(machine.me()) else { return Ok(()) };
        let is_told = own.script_held == held;
        let is_known = !is_used || own.script_used >= used;
        let held = (!is_told).then_some(Change::ScriptHeld(held));
        let used = (!is_known).then_some(Change::ScriptUsed(used));
        for change in held.into_iter().chain(used) {
            self.change_script(now_ns, change, ground)?;
        }
        Ok(())
    }

    fn change_script(
        &mut self,
        now_ns: u64,
        change: Change,
        ground: &mut Ground<'_>,
    ) -> Result<(), NodeError> {
        if let Err(reason) = self.machine.handle_change(Instant(now_ns), change) {
            tracing::debug!(%reason, ?change, "a change of the script is refused");
        }
        self.drain(now_ns, ground)
    }

    fn step_reload(&mut self, now_ns: u64, ground: &mut Ground<'_>) -> Result<(), NodeError> {
        let is_manager = self.machine.role() == Role::Manager;
        let Some(script) = &mut self.script else { return Ok(()) };
        let Some((ticket, mut reload)) = script.reloading.reload else { return Ok(()) };
        let digest = reload.digest();
        let nodes = |set: weft_core::recovery::IdSet| set.iter().map(u16::from).collect::<Vec<_>>();
        let what = if is_manager {
            let members = members(&self.machine, self.seen.len());
            match reload.handle_members(Instant(now_ns), members.into_iter()) {
                ReloadStep::Wait => None,
                ReloadStep::Offer(to) => {
                    self.words.push(FromComponent::OfferScript { to: nodes(to), digest });
                    None
                }
                ReloadStep::Decide => {
                    script.reloading.reload = Some((ticket, reload));
                    let last = in_force(&self.machine, self.seen.len());
                    let term = self.machine.term();
                    let number = if last.term == term { last.number.saturating_add(1) } else { 1 };
                    let version = ScriptVersion { term, number, digest };
                    return self.change_script(now_ns, Change::ScriptUsed(version), ground);
                }
                ReloadStep::Over(late) => Some(loaded(digest, nodes(late), true)),
                ReloadStep::Failed(lacking) => {
                    // What they might still say they hold must not be decided any more.
                    script.reloading.next = None;
                    let nodes = nodes(lacking);
                    let why = ScriptRefused::Lacking { nodes };
                    Some(Outcome::Refused(Refused::Script(why)))
                }
            }
        } else {
            Some(Outcome::Refused(Refused::NotManager))
        };
        script.reloading.reload = what.is_none().then_some((ticket, reload));
        self.words.extend(what.map(|what| FromComponent::Reply { ticket, what }));
        Ok(())
    }

    /// When to look again if nothing changes before.
    pub(super) fn reload_next_ns(&self) -> u64 {
        let reload = self.script.as_ref().and_then(|script| script.reloading.reload.as_ref());
        reload.map_or(u64::MAX, |(_, reload)| reload.poll_timeout().0)
    }
}

fn loaded(digest: u64, late: Vec<u16>, is_new: bool) -> Outcome {
    Outcome::ScriptLoaded(ScriptLoaded { digest: Script::digest_text(digest), late, is_new })
}

/// The latest script that any node says was put in force.
pub(super) fn in_force(machine: &Machine, nodes: usize) -> ScriptVersion {
    let records = (0..).map(Rank).take(nodes).filter_map(|rank| machine.database().record(rank));
    records.map(|record| record.script_used).max().unwrap_or_default()
}

/// What the members hold and use. What an earlier incarnation said does not count.
fn members(machine: &Machine, nodes: usize) -> Vec<HeldScript> {
    let database = machine.database();
    let member = |node: u8| {
        let rank = Rank(node.into());
        let standing = database.standing(rank);
        let record = database.record(rank).filter(|it| it.incarnation == standing.incarnation);
        let says = record.map_or((0, 0), |it| (it.script_held, it.script_used.digest));
        standing.is_up().then_some(HeldScript { node, held: says.0, used: says.1 })
    };
    (0..=u8::MAX).take(nodes).filter_map(member).collect()
}
