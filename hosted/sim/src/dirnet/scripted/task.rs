//! A task of the lab, as its node's supervisor guards it.

use weft_core::recovery::{AlphaCount, Answered, Program, TaskFact, TaskState, Verb};
use weft_core::recovery::{AlphaRule, Judgement, OrderId};
use weft_core::time::{Duration, Instant};

use crate::dirnet::strike::MS;

/// How long a process takes to start.
const START: Duration = Duration(30 * MS);
/// The restart intensity, which stands above every script.
const RESTARTS_MAX: usize = 5;
const RESTARTS_WITHIN: Duration = Duration(20_000 * MS);
/// The error of a task that owes heartbeats and sends none.
const SILENT: u16 = 0xFC00;

/// One task.
#[derive(Debug)]
pub(super) struct GuardedTask {
    node: u8,
    place: u8,
    fact: TaskFact,
    alpha: AlphaCount,
    rule: Option<AlphaRule>,
    /// Within what a heartbeat must follow the last.
    every: Option<Duration>,
    beat_at: Instant,
    is_silent: bool,
    /// When it runs, if it is being started.
    starts_at: Option<Instant>,
    /// Whether it ran when its node went down.
    is_interrupted: bool,
    restarts: Vec<Instant>,
    answered: Answered,
}

impl GuardedTask {
    pub(super) fn new(program: &Program<'_>, number: u8, now: Instant, runs: bool) -> Self {
        let (node, place) = program.place_of(number).unwrap_or_default();
        let watchdog = program.watchdogs().find(|watchdog| watchdog.task == number);
        let state = if runs { TaskState::Running } else { TaskState::Waiting };
        Self {
            node,
            place,
            fact: TaskFact { state, starts: runs.into(), ..TaskFact::default() },
            alpha: AlphaCount::default(),
            rule: program.alpha_of(number),
            every: watchdog.map(|watchdog| watchdog.every),
            beat_at: now,
            is_silent: false,
            starts_at: None,
            is_interrupted: false,
            restarts: Vec::new(),
            answered: Answered::default(),
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
        self.fact.state
    }

    /// Kind and time of the last error, the time in µs.
    pub(super) fn last_error(&self) -> (u16, u64) {
        (self.fact.error_kind, self.fact.error_at.0 / 1_000)
    }

    /// The last order that was judged.
    pub(super) fn judged(&self) -> OrderId {
        self.answered.judged()
    }

    /// What a manager's picture shows of it.
    pub(super) fn fact(&self, now: Instant) -> TaskFact {
        let alpha = self.rule.map_or(0, |rule| self.alpha.at(now, &rule));
        TaskFact { answered: self.answered.mark(), alpha, ..self.fact }
    }

    /// Judges an order; see [`Answered::judge`].
    pub(super) fn judge(&mut self, id: OrderId, seen: u32, mark: u32) -> Judgement {
        let judgement = self.answered.judge(id, seen, mark);
        // Silence is an error, so what answers all errors answers it.
        if self.answered.mark() >= self.fact.errors {
            self.fact.has_fired = false;
        }
        judgement
    }

    /// Judges a notice; see [`Answered::judge_notice`].
    pub(super) fn judge_notice(&mut self, id: OrderId) -> Judgement {
        self.answered.judge_notice(id)
    }

    pub(super) fn handle_error(&mut self, now: Instant, kind: u16) {
        self.fact.errors += 1;
        (self.fact.error_kind, self.fact.error_at) = (kind, now);
        if let Some(rule) = &self.rule {
            self.alpha.handle_error(now, rule);
        }
    }

    pub(super) fn silence(&mut self) {
        self.is_silent = true;
    }

    pub(super) fn set_phase(&mut self, phase: i32) {
        self.fact.phase = phase;
    }

    /// Returns whether it ran.
    pub(super) fn finish(&mut self) -> bool {
        let ran = self.fact.state == TaskState::Running;
        if ran {
            self.fact.state = TaskState::Finished;
        }
        ran
    }

    pub(super) fn clear(&mut self) {
        (self.fact.restarts, self.fact.has_fired) = (0, false);
        self.alpha = AlphaCount::default();
        self.restarts.clear();
    }

    /// Starts it when it is time, and judges its heartbeats. Returns whether it runs from now on.
    pub(super) fn handle_time(&mut self, now: Instant) -> bool {
        let starts = self.starts_at.is_some_and(|at| at <= now);
        if starts {
            self.starts_at = None;
            self.fact.phase = 0;
            self.fact.restarts += u32::from(self.fact.starts > 0);
            self.fact.starts += 1;
            (self.fact.state, self.is_silent, self.beat_at) = (TaskState::Running, false, now);
        }
        let Some(every) = self.every.filter(|_| self.fact.state == TaskState::Running) else {
            return starts;
        };
        if !self.is_silent {
            self.beat_at = now;
        } else if now.since(self.beat_at) > every && !self.fact.has_fired {
            // One silence is one error; the next one needs a heartbeat, or this long once more.
            (self.fact.has_fired, self.beat_at) = (true, now);
            self.handle_error(now, SILENT);
        }
        starts
    }

    pub(super) fn handle_node_down(&mut self) {
        let runs = self.fact.state == TaskState::Running || self.starts_at.is_some();
        self.is_interrupted |= runs;
        self.starts_at = None;
        if runs {
            self.fact.state = TaskState::Waiting;
        }
    }

    pub(super) fn handle_node_up(&mut self, now: Instant) {
        if std::mem::take(&mut self.is_interrupted) {
            self.starts_at = Some(now.after(START));
        }
    }

    /// Carries out `verb`; returns whether that has changed anything.
    pub(super) fn carry_out(&mut self, now: Instant, verb: Verb) -> bool {
        use TaskState::{Finished, Isolated, Killed, Running, Waiting};
        let state = self.fact.state;
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
        self.restarts.retain(|at| now.since(*at) < RESTARTS_WITHIN);
        // No script restarts a task without end; it sees the isolation in its next picture.
        if self.restarts.len() >= RESTARTS_MAX {
            return self.end(TaskState::Isolated);
        }
        self.restarts.push(now);
        self.begin(now);
    }

    fn begin(&mut self, now: Instant) {
        self.fact.state = TaskState::Waiting;
        self.starts_at = Some(now.after(START));
    }

    fn end(&mut self, state: TaskState) {
        (self.fact.state, self.starts_at) = (state, None);
    }
}
