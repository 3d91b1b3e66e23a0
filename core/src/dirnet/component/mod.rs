//! The generic component: the same code on every node, its role chosen at run time (D-1).
//!
//! Every input takes the same path: `accept` checks sender, incarnation and term, `hear` counts it
//! as evidence of liveness, and the message's own handler acts. Contents of the files:
//!
//! | file | holds |
//! |---|---|
//! | `accept` | admission of frames: terms, incarnations, fences |
//! | `watch` | what is observed of a peer, and the effect of hearing from it |
//! | `suspicion` | from silence to a conclusion, for both roles |
//! | `supervisor` | a supervisor that hangs, this node's or another's |
//! | `manager` | verdicts, fences, resets, admissions, recovery |
//! | `isolation` | isolations and releases, which hold in any term |
//! | `backup` | loss of the manager: succession, claims, adoption |
//! | `handover` | the manager makes another node the manager |
//! | `join` | WITM, NMI and the start |
//! | `witness` | the second observer |
//! | `echo` | which members show that they hear this node, and which are known to be down |
//! | `views` | the membership that this member shows, and its number |
//! | `restore` | the database that an earlier component saved |
//! | `script` | orders of a recovery script |
//! | `sync` | database: changes, gossip, REQUEST_DB |
//! | `clock` | deadlines |

mod accept;
mod backup;
mod clock;
mod echo;
mod handover;
mod isolation;
mod join;
mod manager;
mod restore;
mod script;
mod supervisor;
mod suspicion;
mod sync;
mod views;
mod watch;
mod witness;

use self::backup::Succession;
use self::echo::Echo;
use self::join::Joining;
use self::sync::Sync;
use self::views::Views;
use self::watch::Watch;
use self::witness::Errand;
use super::config::{Config, Part};
use super::explanation::{Evidence, Explanation, Explanations, News, Rule, Verdict};
use super::health::Health;
use super::intensity::Intensity;
use super::output::{Output, Outputs};
use super::replay::{BEFORE_FIRST, Replay};
use super::{
    Alarm, Assembly, Beat, ComponentIncarnation, Database, Frame, Kept, Level, Members, Message,
    Progress, Record,
};
use super::{Reject, Rejects, Seat, Standing, Term, Timing};
use crate::ids::{Incarnation, Rank};
use crate::time::Instant;

/// How many images may be in reassembly at once.
const ASSEMBLIES: usize = 4;

/// The role of a component in the DIR net.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Asks who the manager is.
    Joining,
    /// Decides for the network.
    Manager,
    /// Watches the manager.
    Backup,
    /// Was removed; takes no further part.
    Excluded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Joining(Joining),
    Manager,
    Backup(Succession),
    Excluded,
}

/// An alarm that came from a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Raised {
    incarnation: ComponentIncarnation,
    alarm: Alarm,
    at: Instant,
}

/// What this component knows of one other member, apart from the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Fellow {
    watch: Watch,
    /// When its component was last heard from.
    heard: Instant,
    /// The earliest time from which it can have answered this node: its admission, or the start of
    /// this term.
    since: Instant,
    /// The last alarm of its I'm-Alive Task (G-5).
    raised: Option<Raised>,
    /// Replay windows of its two endpoints, by [`Seat`].
    replay: [Replay; 2],
    /// The sequence number of its last heartbeat; zero for none.
    beat: u32,
    /// How it shows that it hears this node.
    echo: Echo,
    /// When the transport or its own task reported its end.
    lost: Option<Instant>,
    /// Its last incarnation that asked who the manager is.
    asked: Option<ComponentIncarnation>,
    /// Clones of its component that this manager has ordered.
    spawns: Intensity,
    /// The last boot whose fence was ordered here and is not carried out; zero for none.
    unfenced: Incarnation,
}

/// The component of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Component<const NODES: usize, const TASKS: usize> {
    config: Config<NODES>,
    incarnation: ComponentIncarnation,
    term: Term,
    state: State,
    fellows: [Fellow; NODES],
    /// Requests of other members that this component is serving as second observer.
    errands: [Option<Errand>; NODES],
    /// Since when this node has been manager, if it is.
    reigns_since: Instant,
    /// Until then it claims no term above another node's.
    outbids_after: Instant,
    /// Whether too few members heard it when its last heartbeat went out.
    is_unheard: bool,
    /// Whether it has reported that too few members hear it or answer it.
    is_unheard_told: bool,
    db: Database<NODES, TASKS>,
    /// The tasks of each node, one bit each, whose errors a recovery script answers.
    scripted: [u16; NODES],
    assemblies: [Assembly; ASSEMBLIES],
    sync: Sync,
    views: Views<NODES>,
    clear_due: Instant,
    beat_due: Instant,
    progress: Progress,
    sequence: u32,
    beats: u32,
    /// The last heartbeat before this node last stood still.
    beats_before_lag: u32,
    /// The receivers to which the last heartbeat is still to be handed out.
    owed: Members,
    round: u32,
    health: Health,
    explanations: Explanations,
    outputs: Outputs,
    rejects: Rejects,
}

/// A component for the largest cluster.
pub type LargestComponent = Component<64, 16>;

const _: () = assert!(size_of::<LargestComponent>() <= 64 * 1024);

impl<const NODES: usize, const TASKS: usize> Component<NODES, TASKS> {
    /// The component `incarnation` of node `config.me()`, with `task_count` tasks to guard.
    /// `kept` is what is left of any earlier incarnation of this node.
    #[must_use]
    pub fn new(
        now: Instant,
        config: Config<NODES>,
        incarnation: ComponentIncarnation,
        task_count: u8,
        kept: Kept<'_>,
    ) -> Self {
        let timing = config.profile().timing();
        let mut component = Self {
            config,
            incarnation,
            term: kept.term.unwrap_or_default(),
            state: State::Joining(Joining::new(now.after(timing.join))),
            fellows: [Fellow::default(); NODES],
            errands: [None; NODES],
            reigns_since: now,
            outbids_after: now,
            is_unheard: false,
            is_unheard_told: false,
            db: Database::default(),
            scripted: [0; NODES],
            assemblies: [const { Assembly::EMPTY }; ASSEMBLIES],
            sync: Sync::default(),
            views: Views::default(),
            clear_due: now.after(timing.clear),
            beat_due: now,
            progress: Progress { generation: incarnation.generation, ..Progress::default() },
            sequence: BEFORE_FIRST,
            beats: BEFORE_FIRST,
            beats_before_lag: BEFORE_FIRST,
            owed: Members::NONE,
            round: BEFORE_FIRST,
            health: Health::new(now),
            explanations: Explanations::default(),
            outputs: Outputs::default(),
            rejects: Rejects::default(),
        };
        let record = Record::new(incarnation, Part::Backup as u8, task_count);
        component.restore(now, kept.snapshots, &record);
        if kept.removed < incarnation.boot && kept.removed != Incarnation(0) {
            let removed = ComponentIncarnation { boot: kept.removed, generation: 0 };
            component.db.advance(config.me(), Standing::removed(removed, Level::Down));
        }
        if !component.is_outcast() {
            component.stand_up();
        }
        component.db.merge(config.me(), &record);
        component.start(now, kept.term);
        component
    }

    /// The node of this component.
    #[must_use]
    pub const fn me(&self) -> Rank {
        self.config.me()
    }

    /// The incarnation of this component: the boot of the node and the component's generation in
    /// it.
    #[must_use]
    pub const fn incarnation(&self) -> ComponentIncarnation {
        self.incarnation
    }

    /// The highest term that it has known.
    #[must_use]
    pub const fn term(&self) -> Term {
        self.term
    }

    /// Its present role.
    #[must_use]
    pub const fn role(&self) -> Role {
        match self.state {
            State::Joining(_) => Role::Joining,
            State::Manager => Role::Manager,
            State::Backup(_) => Role::Backup,
            State::Excluded => Role::Excluded,
        }
    }

    /// Everything that it knows of every node.
    #[must_use]
    pub const fn database(&self) -> &Database<NODES, TASKS> {
        &self.db
    }

    /// Whether `node` is suspected here.
    #[must_use]
    pub fn suspects(&self, node: Rank) -> bool {
        self.fellow(node).is_some_and(|fellow| matches!(fellow.watch, Watch::Suspect(_)))
    }

    /// Its progress counters, for its I'm-Alive Task to read.
    #[must_use]
    pub const fn progress(&self) -> Progress {
        self.progress
    }

    /// Why the latest verdicts were reached, oldest first.
    pub fn explanations(&self) -> impl Iterator<Item = &Explanation> {
        self.explanations.iter()
    }

    /// How often a frame was refused, by reason.
    #[must_use]
    pub const fn rejects(&self) -> &Rejects {
        &self.rejects
    }

    /// Handles a frame from `from`, the sender's rank as the transport knows it.
    ///
    /// # Errors
    /// [`Reject`]; counted. The sender may have been answered.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_message(
        &mut self,
        now: Instant,
        from: Rank,
        frame: &Frame,
    ) -> Result<(), Reject> {
        self.begin(now);
        self.note_heard(now);
        let handled = self.handle_report(now, from, frame).unwrap_or_else(|| {
            let handled = self.accept(now, from, frame).and_then(|()| self.dispatch(now, frame));
            handled.or_else(|reason| self.handle_refused_order(now, from, frame, reason))
        });
        self.progress.messages = self.progress.messages.wrapping_add(1);
        self.count(handled)
    }

    /// Handles `beat`, the content of `from`'s heartbeat cell. Call it when a poll finds the cell
    /// changed; a heartbeat that was handled before changes nothing.
    ///
    /// # Errors
    /// [`Reject`]; counted. The sender may have been answered.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_heartbeat(
        &mut self,
        now: Instant,
        from: Rank,
        beat: &Beat,
    ) -> Result<(), Reject> {
        self.begin(now);
        self.note_heard(now);
        let handled = self.accept_beat(now, from, beat);
        self.count(handled)
    }

    /// The endpoint of this component has fenced the incarnations of `node` up to `boot`, as
    /// [`Output::Fence`] asked: what [`Self::poll_output`] settles next may be a view without it.
    /// [`Self::handle_fenced`] follows once that holds for the whole node.
    pub fn handle_carried_out(&mut self, node: Rank, boot: Incarnation) {
        self.note_own_fence(node, boot);
    }

    /// This node has fenced the incarnations of `node` up to `boot`, as [`Output::Fence`] asked,
    /// and admits none of them any more: the manager is sent so.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_fenced(&mut self, now: Instant, node: Rank, boot: Incarnation) {
        self.begin(now);
        self.note_own_fence(node, boot);
        match self.state {
            State::Manager => self.note_fenced(now, self.me(), node, boot),
            State::Backup(_) => self.report_fence(now, node, boot),
            State::Joining(_) | State::Excluded => {}
        }
    }

    /// The transport has lost `node`. That is no verdict, but there is no reason to wait for R
    /// either.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_gone(&mut self, now: Instant, node: Rank) {
        self.begin(now);
        let Some(fellow) = self.fellow_mut(node) else { return };
        fellow.lost = Some(now);
        if let Watch::Up { due } = &mut fellow.watch
            && !crate::dirnet::LOSSES_CHANGE_NOTHING.is_planted()
        {
            *due = now.min(*due);
        }
    }

    /// The transport has lost all of `node`, including its I'm-Alive Task. That is no verdict, but
    /// there is no reason to wait for a later incarnation either. If only the link was lost, a
    /// second observer reaches the node's task, and the wait begins again.
    ///
    /// # Panics
    /// When [`Self::poll_output`] was not drained: a bug of the caller.
    pub fn handle_parted(&mut self, now: Instant, node: Rank) {
        self.handle_gone(now, node);
        self.doubt_expected(now, node);
    }

    /// Returns the next output, if any.
    pub fn poll_output(&mut self) -> Option<Output> {
        let next = self.outputs.pop().or_else(|| self.next_beat());
        if next.is_some() {
            return next;
        }
        self.settle_view();
        self.outputs.pop()
    }

    /// Runs at the start of every input.
    fn begin(&mut self, now: Instant) {
        let is_drained = self.outputs.is_empty() && self.owed.is_empty();
        assert!(is_drained, "drain poll_output before the next input");
        let due = self.poll_timeout();
        let tolerated = self.timing().send;
        if let Some(lag) = self.health.look(now, due, tolerated) {
            self.extend(lag);
            self.beats_before_lag = self.beats;
            self.tell(News::Lagged(lag));
        }
    }

    /// Whether the timers should have expired before now: they may have stopped (D-56).
    fn is_late(&self, now: Instant) -> bool {
        self.clear_due.after(self.timing().delay) < now
    }

    /// Another node was heard.
    fn note_heard(&mut self, now: Instant) {
        if self.is_late(now) {
            self.progress.heard_late = self.progress.heard_late.wrapping_add(1);
        }
    }

    /// Ends this incarnation, which was removed: it takes no further part. The next one remembers
    /// that.
    fn exclude(&mut self) {
        if self.role() != Role::Excluded {
            self.state = State::Excluded;
            self.db.advance(self.me(), Standing::removed(self.incarnation, Level::Down));
            self.tell(News::Excluded);
        }
    }

    fn count(&mut self, handled: Result<(), Reject>) -> Result<(), Reject> {
        if let Err(reason) = handled {
            debug!("refused: {}", reason as u8);
            self.rejects.note(reason);
        }
        handled
    }

    fn dispatch(&mut self, now: Instant, frame: &Frame) -> Result<(), Reject> {
        let from = frame.sender;
        match frame.message {
            Message::Teif { generation, alarm } => {
                // A later incarnation will be introduced; a component that only hung may go on.
                let is_end = matches!(alarm, Alarm::Ended | Alarm::SpawnFailed)
                    || super::ANY_ALARM_IS_A_LOSS.is_planted();
                if let Some(fellow) = self.fellow_mut(from).filter(|_| is_end) {
                    fellow.lost = Some(now);
                }
                let incarnation = ComponentIncarnation { boot: frame.incarnation.boot, generation };
                let raised = Raised { incarnation, alarm, at: now };
                match (alarm, frame.seat) {
                    (Alarm::SupervisorHung, Seat::Component) => self.handle_hung(now, from, raised),
                    (Alarm::SupervisorHung, Seat::ImAliveTask) => Err(Reject::WrongSeat),
                    _ => self.handle_teif(now, from, raised),
                }
            }
            Message::Enia => {
                self.rouse();
                Ok(())
            }
            Message::Witm => self.handle_witm(now, frame),
            Message::Nmi => {
                self.handle_nmi(now);
                Ok(())
            }
            Message::Niua { node, incarnation } => self.handle_niua(now, from, node, incarnation),
            Message::Anid { node, incarnation, level } => {
                self.handle_anid(now, from, node, incarnation, level)
            }
            Message::Db { seq, change } => self.handle_db(now, frame, seq, change),
            Message::RequestDb { node, have } => self.handle_request_db(now, from, node, have),
            Message::ReplyDb(part) => self.handle_reply_db(now, from, &part),
            Message::NothingNewer { node } => self.handle_nothing_newer(now, from, node),
            Message::Fenced { .. } => self.handle_fence_report(now, from, frame.message),
            Message::Witness { question, unheard } => {
                self.handle_witness(now, from, question, unheard)
            }
            Message::Testimony { question, witness, seen } if question.asker == self.me() => {
                self.handle_testimony(now, (from, witness), question, seen)
            }
            Message::Testimony { question, .. } => self.pass_back(from, question, frame.message),
            Message::Probe { round } => {
                self.answer_probe(frame, round);
                Ok(())
            }
            Message::Alive { round } => self.handle_alive(from, frame.seat, round),
            Message::Outbid { term } => self.handle_outbid(now, term),
            Message::HandOver { incarnation, echo } => {
                self.handle_hand_over(now, frame, incarnation, echo)
            }
            Message::Guard { task, action, order } => self.handle_guard(frame, task, action, order),
            Message::Vote(message) => self.handle_vote(frame, message),
            Message::Span { node, incarnation } => self.pass_on_span(from, node, incarnation),
            Message::Rouse => Err(Reject::WrongSeat),
        }
    }

    fn answer_probe(&mut self, probe: &Frame, round: u32) {
        let mut frame = self.frame(Message::Alive { round });
        if super::ANSWERS_IN_PLACE.is_planted() {
            // The original's behaviour: the answer overwrites the request (G-29).
            frame = Frame { message: frame.message, ..*probe };
        }
        let to = Members::only(probe.sender);
        self.outputs.push(Output::Send { to, seat: Seat::Component, frame });
    }

    /// Clears the flag and wakes this node's I'm-Alive Task (D-26, D-27).
    fn rouse(&mut self) {
        self.send(Members::only(self.me()), Seat::ImAliveTask, Message::Rouse);
    }

    fn timing(&self) -> &Timing {
        self.config.profile().timing()
    }

    fn fellow(&self, node: Rank) -> Option<&Fellow> {
        self.fellows.get(usize::from(node.0))
    }

    fn fellow_mut(&mut self, node: Rank) -> Option<&mut Fellow> {
        self.fellows.get_mut(usize::from(node.0))
    }

    fn watch(&self, node: Rank) -> Watch {
        self.fellow(node).map(|fellow| fellow.watch).unwrap_or_default()
    }

    fn set_watch(&mut self, node: Rank, watch: Watch) {
        if let Some(fellow) = self.fellow_mut(node) {
            fellow.watch = watch;
        }
    }

    /// The other members that are not removed.
    fn members(&self) -> Members {
        self.config.others().iter().filter(|node| self.db.standing(*node).is_up()).collect()
    }

    fn frame(&mut self, message: Message) -> Frame {
        self.sequence = self.sequence.wrapping_add(1);
        Frame {
            sender: self.me(),
            seat: Seat::Component,
            term: self.term,
            incarnation: self.incarnation,
            sequence: self.sequence,
            view: self.tag_of(&message),
            message,
        }
    }

    fn send(&mut self, to: Members, seat: Seat, message: Message) {
        if !to.is_empty() {
            let frame = self.frame(message);
            self.note_view_sent(to, seat, &message);
            self.outputs.push(Output::Send { to, seat, frame });
        }
    }

    fn tell(&mut self, news: News) {
        self.outputs.push(Output::Tell(news));
    }

    /// Records an explanation of a verdict.
    fn explain(
        &mut self,
        now: Instant,
        node: Rank,
        incarnation: ComponentIncarnation,
        verdict: Verdict,
        why: Why,
    ) {
        debug!("verdict on node {} by rule {}", node.0, why.rule as u8);
        let explanation = Explanation {
            observer: self.me(),
            node,
            incarnation,
            verdict,
            rule: why.rule,
            evidence: why.evidence,
            term: self.term,
            heard: self.fellow(node).map(|fellow| fellow.heard).unwrap_or_default(),
            decided: now,
        };
        self.explanations.push(explanation);
        self.outputs.push(Output::Verdict(explanation));
    }
}

/// A rule and the evidence that it was applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Why {
    rule: Rule,
    evidence: Evidence,
}

impl Why {
    /// Reported by the node's own `alarm`.
    fn of_alarm(rule: Rule, alarm: Alarm) -> Self {
        Self { rule, evidence: Evidence { alarm: Some(alarm), ..Evidence::default() } }
    }
}

impl From<Rule> for Why {
    fn from(rule: Rule) -> Self {
        Self { rule, evidence: Evidence::default() }
    }
}
