//! Scenarios: what happens to a cluster while a script is in force, and what is expected of it.
//!
//! ```text
//!   nodes 3                             # first, and as many as the script has
//!   task spare on 2 waiting             # every task that is not named here runs
//!   at 1 s error camera 7
//!   expect restart camera within 500 ms
//!   expect no isolate camera until 5 s
//!   until 10 s
//! ```
//!
//! One statement a line; `#` begins a comment. An expectation is about the time from the last `at`
//! above it. The simulator runs a scenario in virtual time; a scenario that has an error is drawn
//! as a script is, and does not run.

mod line;

use weft_core::recovery::{Program, Verb, VotingRule};

use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::parse::{ERRORS_MAX, SOURCE_MAX, meant};
use crate::source::Sources;
use line::LineRest;

/// The most nodes of a scenario.
pub const SCENARIO_NODES_MAX: u8 = 7;
/// The end of the longest scenario: 10 minutes.
pub const SCENARIO_US_MAX: u64 = 600_000_000;
/// How long a scenario goes on behind its last moment if it does not say until when.
const REST_US: u64 = 1_000_000;

/// A task or a node, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// A task.
    Task(u8),
    /// A node.
    Node(u8),
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// The task reports an error of this kind.
    Error(u8, u16),
    /// The task sends no more heartbeats until it is started again.
    Silence(u8),
    /// The task reports a phase.
    Phase(u8, i32),
    /// The task ends by itself, with success.
    Finish(u8),
    /// The node fails, with all that runs on it.
    Kill(u8),
    /// The component of the node ends.
    Crash(u8),
    /// A version of an N-version task votes for a number.
    Vote {
        /// The N-version task.
        nversion: u8,
        /// The version, from 1.
        version: u8,
        /// The round, from 1.
        round: u32,
        /// The number.
        number: i64,
    },
}

/// What is expected of the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// An order that was obeyed.
    Order(Verb, Whom),
    /// A notice to the task.
    Warn(u8),
    /// A line of the chronicle with this text.
    Log(String),
    /// The outcome of a round of an N-version task; none if its versions do not agree.
    Vote(u8, u32, Option<i64>),
}

/// Something that is expected to happen within a span, or not to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Its line, from 1.
    pub line: usize,
    /// The line as it is written.
    pub text: String,
    /// What is expected.
    pub wanted: Wanted,
    /// Whether it must not happen.
    pub is_absent: bool,
    /// The begin of the span, in µs.
    pub from_us: u64,
    /// Its end, in µs.
    pub to_us: u64,
}

/// A scenario without errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenario {
    /// The number of nodes.
    pub nodes: u8,
    /// The tasks that wait at first.
    pub waiting: Vec<u8>,
    /// What happens, with its time in µs and its line, in order.
    pub deeds: Vec<(u64, usize, Deed)>,
    /// What is expected, in the order of the lines.
    pub expectations: Vec<Expectation>,
    /// When it ends, in µs.
    pub until_us: u64,
}

/// What became of the text of a scenario.
#[derive(Debug)]
pub struct ScenarioReading {
    /// The scenario, unless there is an error.
    pub scenario: Option<Scenario>,
    /// The errors, by their place.
    pub diagnostics: Vec<Diagnostic>,
    /// The text that they are about.
    pub sources: Sources,
}

/// Reads the scenario `text` of the file `name` for the script `program`.
#[must_use]
pub fn read_scenario(name: &str, text: &str, program: &Program<'_>) -> ScenarioReading {
    let mut sources = Sources::default();
    sources.add(name, text);
    let mut reader = ScenarioReader { program, scenario: Scenario::default(), until: None };
    let mut diagnostics = Vec::new();
    if let Some(wrong) = unfit(text) {
        diagnostics.push(wrong);
    } else {
        let mut start = 0;
        for (line, number) in text.split_inclusive('\n').zip(1..) {
            diagnostics.extend(reader.statement(LineRest::new(line, start, number)).err());
            start += line.len();
            if diagnostics.len() == ERRORS_MAX {
                break;
            }
        }
        if diagnostics.is_empty() {
            diagnostics.extend(reader.finish(text.len()));
        }
    }
    let scenario = diagnostics.is_empty().then_some(reader.scenario);
    ScenarioReading { scenario, diagnostics, sources }
}

impl ScenarioReading {
    /// All drawings, one behind the other.
    #[must_use]
    pub fn render(&self) -> String {
        let drawings = self.diagnostics.iter().map(|it| it.render(&self.sources));
        drawings.map(|drawing| drawing + "\n\n").collect()
    }
}

fn unfit(text: &str) -> Option<Diagnostic> {
    let refuse = |what: &str, help: &str| Some(Diagnostic::new(Code::File, 0..0, what, help));
    if text.len() > SOURCE_MAX {
        return refuse("the scenario is longer than 64 KiB", "split it into several");
    }
    if text.contains('\0') {
        return refuse("the scenario has a NUL", "name a text, not an image");
    }
    None
}

const STATEMENTS: &[&str] = &["nodes", "task", "at", "expect", "until"];
const DEEDS: &[&str] = &["error", "silence", "phase", "finish", "kill", "crash", "vote"];
const WANTED: &[&str] = &["restart", "start", "stop", "isolate", "release", "warn", "log", "vote"];

/// The statements so far.
struct ScenarioReader<'p> {
    program: &'p Program<'p>,
    scenario: Scenario,
    until: Option<u64>,
}

impl ScenarioReader<'_> {
    fn statement(&mut self, mut line: LineRest<'_>) -> Result<(), Diagnostic> {
        if line.is_over() {
            return Ok(());
        }
        let (word, span) = line.word("a statement")?;
        if self.scenario.nodes == 0 && word != "nodes" && STATEMENTS.contains(&word) {
            let help = "begin with the number of nodes: `nodes 3`";
            let message = "the number of nodes is not known here";
            return Err(Diagnostic::new(Code::ScenarioLine, span, message, help));
        }
        match word {
            "nodes" => self.nodes(&mut line)?,
            "task" => self.task(&mut line)?,
            "at" => self.at(&mut line)?,
            "expect" => self.expect(&mut line)?,
            "until" if self.until.is_some() => {
                let message = "the end is given twice";
                return Err(Diagnostic::new(Code::ScenarioLine, span, message, "remove one"));
            }
            "until" => self.until = Some(self.moment(&mut line)?),
            _ => return Err(unknown("statement", word, span, STATEMENTS)),
        }
        line.end()
    }

    fn nodes(&mut self, line: &mut LineRest<'_>) -> Result<(), Diagnostic> {
        let (count, span) = line.number()?;
        let declared = self.program.code().header().nodes;
        let misfit = |message: String, help: String| {
            Err(Diagnostic::new(Code::ScenarioCluster, span, message, help))
        };
        if self.scenario.nodes != 0 {
            return misfit("the number of nodes is given twice".into(), "remove one".into());
        }
        if count != u64::from(declared) {
            let message = format!("the script gives roles to {declared} nodes");
            return misfit(message, format!("write `nodes {declared}`, or correct DEFINE"));
        }
        if !(2..=SCENARIO_NODES_MAX).contains(&declared) {
            let message = format!("a scenario has 2 to {SCENARIO_NODES_MAX} nodes");
            return misfit(message, "try the script with another number of nodes".into());
        }
        self.scenario.nodes = declared;
        Ok(())
    }

    fn task(&mut self, line: &mut LineRest<'_>) -> Result<(), Diagnostic> {
        let task = self.named_task(line)?;
        line.keyword(&["on"])?;
        let (node, span) = line.number()?;
        // The line repeats what the script says, so that a scenario is read without it.
        let place = self.program.place_of(task).map(|(node, _)| node);
        if place.map(u64::from) != Some(node) {
            let at = place.unwrap_or_default();
            let message = format!("the script has this task on node {at}");
            let help = format!("write `on {at}`, or correct the TASK of the script");
            return Err(Diagnostic::new(Code::ScenarioCluster, span, message, help));
        }
        if !line.is_over() {
            line.keyword(&["waiting"])?;
            self.scenario.waiting.push(task);
        }
        Ok(())
    }

    fn at(&mut self, line: &mut LineRest<'_>) -> Result<(), Diagnostic> {
        let begin = line.here();
        let at_us = self.moment(line)?;
        let (word, span) = line.word("what happens")?;
        let deed = match word {
            "error" => {
                let task = self.named_task(line)?;
                Deed::Error(task, line.small_number()?)
            }
            "silence" => {
                let task = self.named_task(line)?;
                // Without a WATCHDOG no guard could ever see it.
                if !self.program.watchdogs().any(|watchdog| watchdog.task == task) {
                    let message = "no WATCHDOG of the script watches this task";
                    let help = "silence a task that owes heartbeats";
                    return Err(Diagnostic::new(Code::ScenarioCluster, span, message, help));
                }
                Deed::Silence(task)
            }
            "phase" => {
                let task = self.named_task(line)?;
                Deed::Phase(task, line.small_number()?)
            }
            "finish" => Deed::Finish(self.named_task(line)?),
            "kill" => {
                line.keyword(&["node"])?;
                Deed::Kill(self.node(line)?)
            }
            "crash" => {
                line.keyword(&["component"])?;
                Deed::Crash(self.node(line)?)
            }
            "vote" => self.vote(line)?,
            _ => return Err(unknown("event", word, span, DEEDS)),
        };
        // Of one moment, the events happen in the order of the lines.
        if at_us < self.last_us() {
            let message = "this is before the event above it";
            let help = "write the events in the order of their times";
            return Err(Diagnostic::new(Code::ScenarioTime, begin, message, help));
        }
        self.scenario.deeds.push((at_us, line.number, deed));
        Ok(())
    }

    fn expect(&mut self, line: &mut LineRest<'_>) -> Result<(), Diagnostic> {
        let is_absent = line.peek() == Some("no");
        if is_absent {
            line.keyword(&["no"])?;
        }
        let (word, span) = line.word("an order")?;
        let verb = Verb::ALL.iter().find(|verb| verb.as_str().eq_ignore_ascii_case(word));
        let wanted = match (word, verb) {
            ("warn", _) => Wanted::Warn(self.named_task(line)?),
            ("log", _) => Wanted::Log(line.text()?.to_owned()),
            ("vote", _) => self.outcome(line)?,
            (_, Some(verb)) if WANTED.contains(&word) => Wanted::Order(*verb, self.whom(line)?),
            _ => return Err(unknown("order", word, span, WANTED)),
        };
        // What has happened is written above, so expectations need no times of their own.
        let from_us = self.last_us();
        let begin = line.here();
        let to_us = match line.keyword(&["within", "until"])? {
            "within" => from_us.saturating_add(line.duration()?),
            _ => self.moment(line)?,
        };
        if to_us <= from_us || to_us > SCENARIO_US_MAX {
            let message = "this span is empty, or ends after 10 minutes";
            let help = "write a span behind the last `at`: `within 500 ms`, `until 5 s`";
            return Err(Diagnostic::new(Code::ScenarioTime, begin, message, help));
        }
        let text = line.as_written().to_owned();
        let line = line.number;
        let expectation = Expectation { line, text, wanted, is_absent, from_us, to_us };
        self.scenario.expectations.push(expectation);
        Ok(())
    }

    /// `1 version 2 round 5 number 41`.
    fn vote(&self, line: &mut LineRest<'_>) -> Result<Deed, Diagnostic> {
        let rule = self.voting(line)?;
        line.keyword(&["version"])?;
        let (version, span) = line.number()?;
        let count = rule.versions.len();
        let version =
            u8::try_from(version).ok().filter(|it| (1..=count).contains(&usize::from(*it)));
        let Some(version) = version else {
            let message = format!("N-version task {} has versions 1 to {count}", rule.number);
            let help = "name one of them, in the order of the script";
            return Err(Diagnostic::new(Code::ScenarioName, span, message, help));
        };
        let round = self.round(line)?;
        line.keyword(&["number"])?;
        let number = line.signed()?;
        Ok(Deed::Vote { nversion: rule.number, version, round, number })
    }

    /// `1 round 5 number 41`, or `1 round 5 none`.
    fn outcome(&self, line: &mut LineRest<'_>) -> Result<Wanted, Diagnostic> {
        let rule = self.voting(line)?;
        let round = self.round(line)?;
        let number = match line.keyword(&["number", "none"])? {
            "number" => Some(line.signed()?),
            _ => None,
        };
        Ok(Wanted::Vote(rule.number, round, number))
    }

    fn voting(&self, line: &mut LineRest<'_>) -> Result<VotingRule, Diagnostic> {
        let (number, span) = line.number()?;
        let found = u8::try_from(number).ok().and_then(|number| self.program.voting(number));
        found.ok_or_else(|| {
            let message = format!("the script declares no N-version task {number}");
            let help = "declare it with `N-VERSION`, or name another";
            Diagnostic::new(Code::ScenarioName, span, message, help)
        })
    }

    fn round(&self, line: &mut LineRest<'_>) -> Result<u32, Diagnostic> {
        line.keyword(&["round"])?;
        let (round, span) = line.number()?;
        match u32::try_from(round) {
            Ok(round) if round > 0 => Ok(round),
            _ => {
                let message = "rounds are numbered from 1 to 4294967295";
                Err(Diagnostic::new(Code::ScenarioLine, span, message, "number the round from 1"))
            }
        }
    }

    fn whom(&self, line: &mut LineRest<'_>) -> Result<Whom, Diagnostic> {
        if line.peek() == Some("node") {
            line.keyword(&["node"])?;
            return self.node(line).map(Whom::Node);
        }
        self.named_task(line).map(Whom::Task)
    }

    fn named_task(&self, line: &mut LineRest<'_>) -> Result<u8, Diagnostic> {
        let (name, span) = line.word("the name of a task")?;
        let names =
            || self.program.tasks().iter().filter_map(|it| Some((it, self.program.name_of(it)?)));
        if let Some((task, _)) = names().find(|(_, known)| *known == name) {
            return Ok(task);
        }
        let known: Vec<&str> = names().map(|(_, name)| name).collect();
        let help = match meant(name, &known) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("the script declares {}", known.join(", ")),
        };
        let message = format!("the script declares no task `{name}`");
        Err(Diagnostic::new(Code::ScenarioName, span, message, help))
    }

    fn node(&self, line: &mut LineRest<'_>) -> Result<u8, Diagnostic> {
        let (node, span) = line.number()?;
        let count = self.scenario.nodes;
        match u8::try_from(node) {
            Ok(node) if node < count => Ok(node),
            _ => {
                let message = format!("there is no node {node}");
                let help = format!("name one of 0 to {}", count.saturating_sub(1));
                Err(Diagnostic::new(Code::ScenarioName, span, message, help))
            }
        }
    }

    /// A time since the begin.
    fn moment(&self, line: &mut LineRest<'_>) -> Result<u64, Diagnostic> {
        let begin = line.here();
        match line.duration()? {
            us if us <= SCENARIO_US_MAX => Ok(us),
            _ => {
                let message = "a scenario ends within 10 minutes";
                Err(Diagnostic::new(Code::ScenarioTime, begin, message, "name an earlier time"))
            }
        }
    }

    fn last_us(&self) -> u64 {
        self.scenario.deeds.last().map_or(0, |(at, ..)| *at)
    }

    /// Sets the end, which must lie behind all else.
    fn finish(&mut self, at: usize) -> Option<Diagnostic> {
        let refuse =
            |code, message: &str, help: &str| Some(Diagnostic::new(code, at..at, message, help));
        if self.scenario.nodes == 0 {
            let help = "begin with the number of nodes: `nodes 3`";
            return refuse(Code::ScenarioLine, "the scenario is empty", help);
        }
        let spans = self.scenario.expectations.iter().map(|it| it.to_us);
        let last = spans.chain([self.last_us()]).max().unwrap_or_default();
        self.scenario.until_us = self.until.unwrap_or(last + REST_US);
        if self.scenario.until_us < last {
            let help = "let `until` be the last moment";
            return refuse(Code::ScenarioTime, "it ends before what happens or is expected", help);
        }
        None
    }
}

fn unknown(what: &str, word: &str, span: crate::source::Span, known: &[&str]) -> Diagnostic {
    let help = match meant(word, known) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("write one of {}", known.join(", ")),
    };
    Diagnostic::new(Code::ScenarioLine, span, format!("no {what} is called `{word}`"), help)
}
