//! The component: its start, its messages, its end.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use weft_core::dirnet::{Announcement, Term};
use weft_core::ids::{Incarnation, Peer, Rank};
use weft_core::time::Instant;

use super::Supervisor;
use crate::bootstrap::{AnnouncedIncarnation, HandOver, Offer};
use crate::clock::now_ns;
use crate::cluster::FabricKind;
use crate::node::NodeError;
use crate::node::chronicle::What;
use crate::node::link::{FromComponent, Outgoing, SendError, ToComponent};
use crate::node::{PROGRAM_STOP_TIMEOUT, kept, saved};
use crate::packet::{PacketError, Socket};
use crate::process::{ProcessError, Spawned};
use crate::signing::SecretKey;

/// The most messages of the component that are handled in one pass.
const MESSAGES_A_PASS: usize = 256;
/// How long a component may take to shut down cleanly; a program has longer.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The component that was started last.
pub(super) struct StartedComponent {
    pub(super) incarnation: Incarnation,
    pub(super) spawned: Spawned,
    pub(super) link: Socket,
    /// Whether the link is open and has not been broken by nonsense.
    pub(super) speaks: bool,
    /// Whether it is the program of the cluster file.
    pub(super) is_program: bool,
    /// What waits for room on the link.
    pub(super) outgoing: Outgoing,
    pub(super) ready: bool,
    /// Whether it was sent `AllNamed`: all processes that may reach its memory were named.
    pub(super) named: bool,
    /// Whether it was sent `Enter`, to take part in the DIR net.
    pub(super) entered: bool,
    /// Why it ends, and what repairs that, if it has reported so.
    pub(super) failure: Option<(String, String)>,
}

impl StartedComponent {
    /// As [`Self::send`], for messages that an ending component need not receive.
    pub(super) fn tell(&mut self, word: &ToComponent, fds: &[BorrowedFd<'_>]) {
        if let Err(error) = self.send(word, fds) {
            tracing::debug!(%error, "the component does not listen");
        }
    }

    /// Sends `word`, now or when there is room. A component that leaves so much unread that no more
    /// is kept for it hangs, and is killed.
    fn send(&mut self, word: &ToComponent, fds: &[BorrowedFd<'_>]) -> Result<(), SendError> {
        let sent = self.outgoing.send(&self.link, word, fds);
        if matches!(sent, Err(SendError::Full)) {
            let pid = self.spawned.child.id();
            tracing::error!(pid, "the component does not read its link, and is killed");
            // It fails only for a process that is dead already.
            let _ = self.spawned.pidfd.kill();
        }
        sent
    }
}

impl Supervisor {
    /// Starts the next incarnation of the component.
    pub(super) fn start_component(&mut self) -> Result<(), NodeError> {
        // First what may fail before anything is started.
        let lives = self.incarnations.lives();
        let term = kept::open_term(&self.term_file, lives)?;
        let votes = kept::open_votes(&self.votes_file, lives)?;
        let database = saved::open(&self.database_file, self.cluster.nodes)?;
        let state = self.state_memory()?;
        let flag = self.flag.writable_fd().try_clone_to_owned().map_err(ProcessError::Spawn)?;
        let incarnation = self.incarnations.next()?;
        let boot = match self.boot() {
            Some(boot) => boot,
            None => {
                self.begin_life(incarnation)?;
                incarnation
            }
        };
        let (link, theirs) = Socket::pair()?;
        let spawned = self.spawn_component(incarnation, OwnedFd::from(theirs))?;
        let start = ToComponent::Start {
            process: spawned.child.id(),
            owned: self.cluster.component.is_some(),
            finished: self.program.finished,
            rank: self.rank,
            incarnation: incarnation.0,
            boot: boot.0,
            memory_since: self.memory_since.get_or_insert(boot).0,
            removed: self.supervision.removed().0,
            generation: self.generation,
            tasks: self.tasks.count(),
            cluster: self.cluster.to_toml(),
            places: self.broadcasts.places(&self.clients),
        };
        let mut grant = self.memory.grant_owner()?;
        grant.0.extend([flag, votes.into(), term.into(), database.into()]);
        let signing = self.signing.as_ref().map(SecretKey::grant).transpose();
        grant.0.extend(signing.map_err(NodeError::Signing)?);
        grant.0.extend(state);
        tracing::info!(rank = self.rank, incarnation = incarnation.0, "component started");
        self.note(self.rank, What::Started { incarnation: incarnation.0 });
        self.supervision.handle_started(Announcement { incarnation, boot });
        self.component = Some(StartedComponent {
            incarnation,
            spawned,
            link,
            speaks: true,
            is_program: self.runs_program(),
            outgoing: Outgoing::default(),
            ready: false,
            named: false,
            entered: false,
            failure: None,
        });
        self.starts.handle_started(Instant(now_ns()), self.progress.load());
        self.clients.handle_component_begins();
        // One that was killed before it could read is started again, like any other.
        self.tell(&start, &grant.borrow());
        Ok(())
    }

    pub(super) fn stop_component(&mut self) {
        self.tell(&ToComponent::Stop, &[]);
        let Some(mut component) = self.component.take() else { return };
        component.spawned.end(match component.is_program {
            true => PROGRAM_STOP_TIMEOUT,
            false => STOP_TIMEOUT,
        });
    }

    /// The component's process has ended: its memory stays, its end is reported to its peers, and
    /// its I'm-Alive Task raises the alarm, or the next one is started.
    fn handle_end(&mut self, incarnation: Incarnation) {
        if let Some(end) = self.bury_component(incarnation) {
            self.starts.handle_ended(Instant(now_ns()), end);
            self.take_steps();
        }
    }

    /// Handles what the component has sent, and sends it what waits. One that sends nonsense is
    /// killed: it is not the program that was started.
    pub(super) fn hear_component(&mut self) {
        for _ in 0..MESSAGES_A_PASS {
            let Some(component) = self.component.as_mut().filter(|it| it.speaks) else { return };
            match component.link.try_recv::<FromComponent>() {
                Ok(Some((word, fds))) => {
                    let incarnation = component.incarnation;
                    self.handle_word(incarnation, word, fds);
                }
                Ok(None) => return,
                Err(error) => {
                    component.speaks = false;
                    if !matches!(error, PacketError::Closed) {
                        tracing::error!(%error, "the component sends nonsense, and is killed");
                        // It fails only for a process that is dead already.
                        let _ = component.spawned.pidfd.kill();
                    }
                }
            }
        }
    }

    /// The process of the component has ended: what it has sent is handled first.
    pub(super) fn reap_component(&mut self) {
        let Some(incarnation) = self.component.as_ref().map(|it| it.incarnation) else { return };
        let is_it = |it: &StartedComponent| it.incarnation == incarnation && it.speaks;
        // A socket holds no more than a few hundred packets.
        for _ in 0..4 {
            if self.component.as_ref().is_some_and(is_it) {
                self.hear_component();
            }
        }
        self.handle_end(incarnation);
    }

    fn handle_word(&mut self, incarnation: Incarnation, word: FromComponent, fds: Vec<OwnedFd>) {
        match word {
            FromComponent::Ready => self.handle_ready(incarnation),
            FromComponent::Failed { cause, cure } => {
                if let Some(component) = &mut self.component {
                    component.failure = Some((cause, cure));
                }
            }
            FromComponent::Joined { peer, incarnation } => {
                self.supervision.handle_joined(Peer(peer), Incarnation(incarnation));
                self.note_recovery();
            }
            FromComponent::Reply { ticket, mut what } => {
                self.broadcasts.complete(&mut what);
                self.clients.finish(ticket, what);
            }
            FromComponent::Tensor { number, news } => self.handle_tensor_news(number, news),
            FromComponent::Received { ticket, key, shape } => {
                self.handle_received(ticket, key, shape, fds);
            }
            FromComponent::FetchTensor { fetch, ticket, peer, lent_by, number, bytes } => {
                let fetched_by = (incarnation.0, fetch);
                let which = HandOver { number, lent_by, fetched_by };
                self.fetch_tensor(Peer(peer), which, (ticket, bytes));
            }
            FromComponent::KeepTensor { number, to } => self.keep_own_tensor(number, to, fds),
            FromComponent::DropTensor { number } => drop(self.tensors.own.remove(&number)),
            FromComponent::Forgotten { client } => self.clients.handle_forgotten(client),
            FromComponent::Offer { peer, incarnation: theirs, end } => {
                let offer = Offer { from: incarnation, to: Incarnation(theirs), end };
                self.bootstrap.offer(Peer(peer), &offer);
            }
            FromComponent::Letters { to, bytes } => self.post_datagrams(&to, bytes),
            FromComponent::Removed { peer, boot, epoch, claimant } => {
                let term = Term { epoch, claimant: Rank(claimant) };
                self.supervision.handle_removed(
                    Instant(now_ns()),
                    Peer(peer),
                    Incarnation(boot),
                    term,
                );
                self.obey();
            }
            FromComponent::Isolated { node, boot } => {
                self.supervision.handle_isolated(Rank(node), Incarnation(boot));
                self.obey();
            }
            FromComponent::Released { node, boot } => {
                self.supervision.handle_released(Rank(node), Incarnation(boot));
                self.obey();
            }
            FromComponent::Reset { node, boot } => self.reset_node(node, boot),
            FromComponent::Guard { task, action, order } => {
                self.tasks.handle_guard(task, action, order, now_ns());
                // What it has obeyed is noted before the database has it.
                self.tasks.keep_note();
            }
            FromComponent::Round { nversion, round, faults, notices } => {
                self.tasks.handle_round((nversion, round), &faults, notices, now_ns());
                self.tasks.keep_note();
            }
            FromComponent::Phase { task, phase } => self.tasks.handle_own_phase(task, phase),
            FromComponent::AwaitNotices { task, seen } => {
                self.tasks.handle_await_notices(task, seen);
            }
            FromComponent::Call { name, args, epoch, evaluation } => {
                self.call(&name, &args, (epoch, evaluation));
            }
            FromComponent::HoldScript { image } => self.hold_script(image.0),
            FromComponent::OfferScript { to, digest } => self.offer_script(&to, digest),
            FromComponent::WantScript { digest } => self.fetch_script(digest),
            FromComponent::UseScript { digest, next } => self.use_script(digest, next),
            FromComponent::Past { tasks } => self.past = Some(tasks),
            FromComponent::View(view) => self.watch.handle_view(view),
            FromComponent::Recorded { number } => self.tasks.handle_recorded(number),
            FromComponent::Excluded => self.end_boot(),
            FromComponent::Note(entry) => self.keep_note(entry),
            FromComponent::Receiving(places) => self.broadcasts.note_places(places),
            FromComponent::Executed { number } => {
                self.broadcasts.abort_markers.handle_executed(number);
            }
            FromComponent::AllFinished => self.program.handle_all_finished(),
            FromComponent::Disputed(conflict) => self.note_dispute(conflict),
            FromComponent::Proven(proof) => self.note_proof(proof),
            FromComponent::Unreachable { peer, error } => {
                tracing::error!(peer, error, "a peer's memory cannot be reached");
            }
            FromComponent::Lost { peer, incarnation } => {
                let (now, incarnation) = (Instant(now_ns()), Incarnation(incarnation));
                self.supervision.handle_lost(now, Peer(peer), incarnation);
            }
        }
    }

    /// The component's endpoint is made: this incarnation is announced to peers, theirs are sent to
    /// it, and the requests that waited for it are handed over.
    fn handle_ready(&mut self, incarnation: Incarnation) {
        let boot = self.boot().unwrap_or(incarnation);
        let Some(component) = &mut self.component else { return };
        component.ready = true;
        self.starts.handle_ready(Instant(now_ns()));
        match component.spawned.pidfd.try_clone() {
            Ok(process) => {
                let key = self.signing.as_ref().map(SecretKey::public);
                let process = Some(process);
                let memory = self.memory_name;
                self.bootstrap.announce(AnnouncedIncarnation {
                    incarnation,
                    boot,
                    process,
                    memory,
                    key,
                });
            }
            Err(error) => {
                tracing::error!(%error, "this incarnation cannot be announced to the peers");
            }
        }
        // Those that are dead may have signed something before.
        self.tell_keys();
        self.supervision.handle_ready();
        self.obey();
        self.tell_cut();
        self.send_abort_markers();
        for (ticket, word, fds) in std::mem::take(&mut self.parked) {
            self.forward(ticket, word, fds);
        }
        self.hand_over_tensors();
        self.note_recovery();
    }

    /// Sends the component `AllNamed`, once every process that may write into its memory was named:
    /// those of running peers, while all others that ever could are dead.
    pub(super) fn tell_all_named(&mut self) {
        let waits = |component: &StartedComponent| component.ready && !component.named;
        if !self.component.as_ref().is_some_and(waits) {
            return;
        }
        // Over verbs the queue pairs to the component before this one ended with it.
        let admitted = |peer| self.supervision.admitted(peer).map(|it| it.incarnation);
        if self.cluster.fabric == FabricKind::Shm && !self.reach.end_stragglers(admitted) {
            return;
        }
        self.tell(&ToComponent::AllNamed, &[]);
        if let Some(component) = &mut self.component {
            component.named = true;
        }
    }

    /// Notes how long the node was unavailable, once it is back.
    pub(super) fn note_recovery(&mut self) {
        if self.is_greeted()
            && let Some(lost_at) = self.lost_at_ns.take()
        {
            let now_ns = now_ns();
            self.last_recovery_us = Some((now_ns - lost_at) / 1_000);
            self.recovery.record(lost_at, now_ns);
            let incarnation = self.component.as_ref().map_or(0, |own| own.incarnation.0);
            self.note(self.rank, What::Running { incarnation });
        }
    }

    pub(super) fn tell(&mut self, word: &ToComponent, fds: &[BorrowedFd<'_>]) {
        if let Some(component) = &mut self.component {
            component.tell(word, fds);
        }
    }

    pub(super) fn send(&mut self, word: &ToComponent, fds: &[OwnedFd]) -> Result<(), SendError> {
        let closed = || SendError::Packet(PacketError::Closed);
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        self.component.as_mut().ok_or_else(closed)?.send(word, &fds)
    }

    /// Sends what there is room for on the link.
    pub(super) fn flush_link(&mut self) {
        if let Some(component) = &mut self.component {
            // If the link is closed, its component is ending.
            let _ = component.outgoing.flush(&component.link);
        }
    }
}
