//! A task of the lab, as its node's supervisor guards it.

use weft_core::recovery::{
    AlphaCount, AlphaRule, Declared, DeclaredTask, Judgement, Mark, OrderId, Program, TaskState,
    Verb,
};
use weft_core::script::{SILENT, TaskStatus};
use weft_core::time::{Duration, Instant};

use crate::dirnet::strike::MS;

/// How long a process takes to start.
const START: Duration = Duration(30 * MS);
/// How long a node waits for an order, as in a cluster's file that does not say it.
const ANSWER: Duration = Duration(5_000 * MS);
/// The restart intensity, which stands above every script.
pub(super) const RESTARTS_MAX: usize = 5;
pub(super) const RESTARTS_WITHIN: Duration = Duration(20_000 * MS);

/// An error on its way to the component.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorInTransit {
    pub(super) kind: u16,
    /// When it happened, and when the task had the error before it.
    pub(super) at_us: u64,
    pub(super) last_us: Option<u64>,
}

/// One task.
#[derive(Debug)]
pub(super) struct GuardedTask {
    node: u8,
    place: u8,
    state: TaskState,
    has_started: bool,
    has_restarted: bool,
    phase: u8,
    errors: u32,
    last_error: Instant,
    /// Errors that no component was sent.
    owed: Vec<ErrorInTransit>,
    /// When the last error happened that one was sent.
    last_sent_us: Option<u64>,
    declared: DeclaredTask,
    rule: Option<AlphaRule>,
    alpha: AlphaCount,
    /// Within what a heartbeat must follow the last.
    every: Option<Duration>,
    beat_at: Instant,
    is_silent: bool,
    /// When it runs, if it is being started.
    starts_at: Option<Instant>,
    /// Whether it ran when its node went down.
    is_interrupted: bool,
    restarts: Vec<Instant>,
    /// The status and the phase that the component was sent.
    sent: (Option<u8>, u8),
}

impl GuardedTask {
    pub(super) fn new(program: &Program<'_>, number: u8, now: Instant, runs: bool) -> Self {
        let (node, place) = program.place_of(number).unwrap_or_default();
        let watchdog = program.watchdogs().find(|watchdog| watchdog.task == number);
        let declared = Declared { fallback: program.fallback(), answer: ANSWER };
        Self {
            node,
            place,
            state: if runs { TaskState::Running } else { TaskState::Waiting },
            has_started: runs,
            has_restarted: false,
            phase: 0,
            errors: 0,
            last_error: Instant(0),
            owed: Vec::new(),
            last_sent_us: None,
            declared: DeclaredTask::new(declared),
            rule: program.alpha_of(number),
            alpha: AlphaCount::default(),
            every: watchdog.map(|watchdog| watchdog.every),
            beat_at: now,
            is_silent: false,
            starts_at: None,
            is_interrupted: false,
            restarts: Vec::new(),
            sent: (None, 0),
        }
    }

    pub(super) fn node(&self) -> u8 {
        self.node
    }

    /// Which of its node's tasks it is.
    pub(super) fn place(&self) -> u8 {
        self.place
    }

    pub(super) fn state(&self) -> TaskState {
        self.state
    }

    /// The starts by order and by DEFAULT that count.
    pub(super) fn restarts(&self) -> &[Instant] {
        &self.restarts
    }

    /// Whether errors of it wait for an order.
    pub(super) fn waits(&self) -> bool {
        !self.owed.is_empty() || self.declared.answered().mark() < self.errors
    }

    /// Its alpha-count at the last error that a component was sent, if the script has a rule.
    pub(super) fn alpha(&self) -> Option<u16> {
        self.rule.map(|rule| self.alpha.at(Instant(0), &rule))
    }

    /// A component is sent an error of that time.
    pub(super) fn count_alpha(&mut self, at_us: u64) {
        self.rule.iter().for_each(|rule| self.alpha.handle_error(Instant(at_us * 1_000), rule));
    }

    /// A component is sent CLEAR.
    pub(super) fn forget_alpha(&mut self) {
        self.alpha = AlphaCount::new(0, Instant(self.last_error.0));
    }

    /// How many errors it has had.
    pub(super) fn errors(&self) -> u32 {
        self.errors
    }

    /// Another script declares it.
    pub(super) fn redeclare(&mut self, program: &Program<'_>) {
        self.declared.redeclare(Declared { fallback: program.fallback(), answer: ANSWER });
    }

    /// Judges an order, which answers the errors up to the second of `marks`.
    pub(super) fn judge(&mut self, id: OrderId, marks: (u32, u32)) -> Judgement {
        self.declared.judge(id, marks, self.errors)
    }

    pub(super) fn judge_notice(&mut self, id: OrderId) -> Judgement {
        self.declared.judge_notice(id)
    }

    pub(super) fn handle_error(&mut self, now: Instant, kind: u16) {
        self.errors += 1;
        // No two errors of a task have the same time.
        self.last_error = Instant(now.0.max(self.last_error.0 + 1_000));
        self.owed.push(ErrorInTransit { kind, at_us: self.last_error.0 / 1_000, last_us: None });
        self.declared.handle_error(now);
    }

    pub(super) fn silence(&mut self) {
        self.is_silent = true;
    }

    pub(super) fn set_phase(&mut self, phase: i32) {
        self.phase = u8::try_from(phase).unwrap_or(u8::MAX);
    }

    /// Returns whether it ran.
    pub(super) fn finish(&mut self) -> bool {
        let ran = self.state == TaskState::Running;
        if ran {
            self.state = TaskState::Finished;
        }
        ran
    }

    pub(super) fn clear(&mut self) {
        self.has_restarted = false;
        self.declared.clear();
        self.restarts.clear();
    }

    /// Starts it when it is time, judges its heartbeats, and answers errors for which no order has
    /// come. Returns whether it did the latter.
    pub(super) fn handle_time(&mut self, now: Instant) -> bool {
        if self.starts_at.take_if(|at| *at <= now).is_some() {
            self.phase = 0;
            (self.has_restarted, self.has_started) = (self.has_started, true);
            (self.state, self.is_silent, self.beat_at) = (TaskState::Running, false, now);
        }
        if let Some(every) = self.every.filter(|_| self.state == TaskState::Running) {
            if !self.is_silent {
                self.beat_at = now;
            } else if now.since(self.beat_at) > every {
                // One silence is one error; the next one needs a heartbeat, or this long once more.
                self.beat_at = Instant(u64::MAX);
                self.handle_error(now, SILENT);
            }
        }
        let is_unordered = self.declared.handle_time(now, self.errors);
        if is_unordered {
            let has_ended = matches!(self.state, TaskState::Killed | TaskState::Finished);
            let verb = self.declared.fallback(has_ended);
            verb.into_iter().for_each(|verb| _ = self.carry_out(now, verb));
        }
        is_unordered
    }

    /// What the supervisor has not sent yet is lost with it; so are the errors in it.
    pub(super) fn handle_node_down(&mut self) {
        let runs = self.state == TaskState::Running || self.starts_at.is_some();
        self.is_interrupted |= runs;
        self.starts_at = None;
        self.errors -= self.owed.len() as u32;
        self.owed.clear();
        if runs {
            self.state = TaskState::Waiting;
        }
    }

    pub(super) fn handle_node_up(&mut self, now: Instant) {
        self.phase = 0;
        if std::mem::take(&mut self.is_interrupted) {
            self.starts_at = Some(now.after(START));
        }
    }

    /// The component of its node is another one.
    pub(super) fn forget_sent(&mut self) {
        self.declared.forget_sent();
        self.sent.0 = None;
    }

    pub(super) fn take_errors(&mut self) -> Vec<ErrorInTransit> {
        let mut owed = std::mem::take(&mut self.owed);
        for error in &mut owed {
            error.last_us = self.last_sent_us.replace(error.at_us);
        }
        owed
    }

    pub(super) fn take_mark(&mut self) -> Option<Mark> {
        self.declared.take_mark()
    }

    /// Its status, if the component was not sent it.
    pub(super) fn take_status(&mut self) -> Option<u8> {
        let (has_started, has_restarted) = (self.has_started, self.has_restarted);
        let status = TaskStatus { state: self.state, has_started, has_restarted }.to_byte();
        (self.sent.0.replace(status) != Some(status)).then_some(status)
    }

    /// Its phase, if the component was not sent it.
    pub(super) fn take_phase(&mut self) -> Option<u8> {
        let phase = self.phase;
        (std::mem::replace(&mut self.sent.1, phase) != phase).then_some(phase)
    }

    /// Carries out `verb`; returns whether that has changed anything.
    pub(super) fn carry_out(&mut self, now: Instant, verb: Verb) -> bool {
        use TaskState::{Finished, Isolated, Killed, Running, Waiting};
        let state = self.state;
        let is_starting = self.starts_at.is_some();
        match verb {
            Verb::Restart if state != Isolated => self.restart(now),
            Verb::Start if matches!(state, Waiting | Killed | Finished) && !is_starting => {
                self.begin(now);
            }
            Verb::Stop if matches!(state, Waiting | Running | Finished) => self.end(Killed),
            Verb::Isolate if state != Isolated => self.end(Isolated),
            Verb::Release if state == Isolated => self.end(Waiting),
            Verb::Restart | Verb::Start | Verb::Stop | Verb::Isolate | Verb::Release => {
                return false;
            }
        }
        true
    }

    fn restart(&mut self, now: Instant) {
        let restarts = &mut self.restarts;
        restarts.retain(|at| now.since(*at) < RESTARTS_WITHIN);
        // No script restarts a task without end; it sees the isolation in its next picture.
        if !self.declared.may_restart(|| restarts.len() < RESTARTS_MAX) {
            return self.end(TaskState::Isolated);
        }
        self.restarts.push(now);
        self.begin(now);
    }

    fn begin(&mut self, now: Instant) {
        self.state = TaskState::Waiting;
        self.starts_at = Some(now.after(START));
    }

    fn end(&mut self, state: TaskState) {
        (self.state, self.starts_at) = (state, None);
    }
}
