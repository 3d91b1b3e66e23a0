//! Declarations.

use weft_core::recovery::{Algorithm, Fallback, Kind, Role, TimeoutName};

use super::section::ACTIONS;
use super::{GivenUp, Parsed, Parser, meant};
use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::token::Sort;
use crate::tree::{Arm, At, EntityAt, EntityName, Guard, Section, Statement};

const STATEMENTS: &[&str] = &[
    "DEFINE",
    "DEFAULT",
    "DA",
    "NPROCS",
    "NUMTASKS",
    "CONST",
    "INCLUDE",
    "TASK",
    "LOGICAL",
    "ALPHACOUNT",
    "WATCHDOG",
    "N-VERSION",
    "IF",
];

const TIMEOUTS: &[(&str, TimeoutName)] = &[
    ("MIA_SEND", TimeoutName::Send),
    ("TAIA_SEND", TimeoutName::Send),
    ("MIA_RECV", TimeoutName::Receive),
    ("TAIA_RECV", TimeoutName::Receive),
    ("IMALIVE_CLEAR", TimeoutName::Clear),
    ("IMALIVE_SET", TimeoutName::Alarm),
    ("TEIF", TimeoutName::Window),
    ("MID", TimeoutName::Candidate),
    ("REQUEST_DB", TimeoutName::Join),
    ("REPLY_DB", TimeoutName::Join),
];

impl Parser<'_> {
    /// A statement; none for one that leaves nothing behind.
    pub(super) fn statement(&mut self) -> Parsed<Option<Statement>> {
        let (word, span) = (self.written().to_ascii_uppercase(), self.here());
        self.advance();
        if let Some((_, name)) = TIMEOUTS.iter().find(|(text, _)| *text == word) {
            self.need(Sort::Equal, "`=`")?;
            let us = self.duration()?.it;
            return Ok(Some(Statement::Timeout { name: *name, us }));
        }
        match word.as_str() {
            "IF" => self.section().map(|section| Some(Statement::Section(section))),
            "DEFINE" => self.define().map(Some),
            "DEFAULT" | "DA" => self.default().map(Some),
            "NPROCS" => {
                self.need(Sort::Equal, "`=`")?;
                Ok(Some(Statement::Nprocs(self.number()?.it)))
            }
            "NUMTASKS" => {
                self.take_word("NODE");
                let node = self.number()?.it;
                self.need(Sort::Equal, "`=`")?;
                Ok(Some(Statement::Numtasks { node, count: self.number()?.it }))
            }
            "CONST" => self.constant(),
            "TASK" => self.task().map(Some),
            "LOGICAL" => self.logical(&span).map(Some).map_err(|wrong| self.skip_to_end(wrong)),
            "ALPHACOUNT" => self.alpha(&span).map(Some),
            "WATCHDOG" => self.watchdog(&span).map(Some).map_err(|wrong| self.skip_to_end(wrong)),
            "N" if self.is(Sort::Minus) => {
                self.nversion(&span).map(Some).map_err(|wrong| self.skip_to_end(wrong))
            }
            _ => {
                let timeouts = TIMEOUTS.iter().map(|(text, _)| *text);
                let known: Vec<&str> = STATEMENTS.iter().copied().chain(timeouts).collect();
                let help = match meant(&word, &known) {
                    _ if ["FI", "ELIF", "ELSE", "END"].contains(&word.as_str()) => {
                        "nothing is open here; remove it, or write what it closes before it".into()
                    }
                    _ if ACTIONS.contains(&word.as_str()) => {
                        format!("{word} is an action: write it between `IF [ guard ] THEN` and FI")
                    }
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("a statement begins with one of {}", STATEMENTS.join(", ")),
                };
                let message = format!("no statement begins with `{word}`");
                self.refuse(Diagnostic::new(Code::Statement, span, message, help))
            }
        }
    }

    /// To the END of the declaration that was given up, if it has one: its rest is no statements.
    fn skip_to_end(&mut self, wrong: GivenUp) -> GivenUp {
        let from = self.at;
        while !self.is(Sort::End) {
            self.skip_line();
            self.skip_lines();
            if self.is_word("END") {
                return wrong;
            }
            // IF and RESTART may stand in a WATCHDOG; a declaration begins behind it.
            let is_next = STATEMENTS.iter().any(|word| *word != "IF" && self.is_word(word));
            if is_next || self.is_word("N") {
                break;
            }
        }
        self.at = from;
        wrong
    }

    fn define(&mut self) -> Parsed<Statement> {
        let mut nodes = Vec::new();
        loop {
            let first = self.integer()?.it;
            let last = if self.take(Sort::Minus) { self.integer()?.it } else { first };
            nodes.push((first, last));
            if !self.take(Sort::Comma) {
                break;
            }
        }
        self.need(Sort::Equal, "`=`")?;
        let (word, span) = (self.written().to_ascii_uppercase(), self.here());
        let role = match word.as_str() {
            "ASSISTANT" => Some(Role::Backup),
            _ => Role::ALL.iter().copied().find(|role| role.as_str() == word),
        };
        let Some(role) = role else {
            let known = ["MANAGER", "BACKUP", "ASSISTANT", "AGENT"];
            let help = meant(&word, &known).map_or_else(
                || "a role is MANAGER, BACKUP (ASSISTANT) or AGENT".to_owned(),
                |meant| format!("did you mean {meant}?"),
            );
            let message = format!("no role is called `{word}`");
            return self.refuse(Diagnostic::new(Code::Statement, span, message, help));
        };
        self.advance();
        Ok(Statement::Define { nodes, role })
    }

    fn default(&mut self) -> Parsed<Statement> {
        self.need(Sort::Equal, "`=`")?;
        let word = self.written().to_ascii_uppercase();
        let fallback = Fallback::ALL.iter().copied().find(|fallback| fallback.as_str() == word);
        let fallback = if word == "STOP" { Some(Fallback::Kill) } else { fallback };
        let Some(fallback) = fallback else {
            return self.expected("RESTART, KILL, NOTHING or BUILTIN");
        };
        self.advance();
        Ok(Statement::Default(fallback))
    }

    fn constant(&mut self) -> Parsed<Option<Statement>> {
        let name = self.name()?;
        self.need(Sort::Equal, "`=`")?;
        let value = self.integer()?.it;
        let key = name.it.to_ascii_uppercase();
        if self.script.constants.insert(key, value).is_some() {
            let message = format!("CONST {} is declared twice", name.it);
            let wrong = Diagnostic::new(Code::Twice, name.span, message, "remove one of them");
            return self.refuse(wrong);
        }
        Ok(Some(Statement::Const { name: name.it, value }))
    }

    fn task(&mut self) -> Parsed<Statement> {
        let numbers = if self.take(Sort::BracketOpen) {
            let first = self.integer()?.it;
            self.need(Sort::Comma, "`,`")?;
            let last = self.integer()?.it;
            self.need(Sort::BracketClose, "`]`")?;
            (first, last)
        } else {
            let number = self.integer()?.it;
            (number, number)
        };
        if self.take_word("IS") {
            let name = self.text()?.it;
            self.need_word("ON")?;
            self.need_word("NODE")?;
            let node = self.number()?.it;
            return Ok(Statement::Task { numbers, name, node, index: None });
        }
        self.need(Sort::Equal, "`=` or IS")?;
        let name = self.text()?.it;
        self.need_word("IS")?;
        self.need_word("NODE")?;
        let node = self.number()?.it;
        self.need(Sort::Comma, "`,`")?;
        self.need_word("TASKID")?;
        let index = Some(self.number()?.it);
        Ok(Statement::Task { numbers, name, node, index })
    }

    fn logical(&mut self, begin: &Span) -> Parsed<Statement> {
        let group = self.integer()?.it;
        self.need(Sort::Equal, "`=`")?;
        let name = self.text()?.it;
        self.need_word("IS")?;
        self.need_word("TASK")?;
        let mut tasks = vec![self.number()?];
        while self.take(Sort::Comma) {
            self.skip_lines();
            tasks.push(self.number()?);
        }
        self.end(begin, "LOGICAL")?;
        Ok(Statement::Logical { group, name, tasks })
    }

    /// END, and the name of what ends where it may stand.
    fn end(&mut self, begin: &Span, what: &str) -> Parsed<()> {
        self.skip_lines();
        if !self.take_word("END") {
            let message = format!("{what} is not closed");
            let help = format!("write `END {what}` here");
            let wrong = Diagnostic::new(Code::Unclosed, self.here(), message, help);
            return self.refuse(wrong.beside(begin.clone(), "opened here"));
        }
        if what == "N-VERSION" {
            return self.nversion_word();
        }
        if what == "ALPHACOUNT" {
            self.take_word(what);
            return Ok(());
        }
        self.need_word(what)
    }

    fn nversion_word(&mut self) -> Parsed<()> {
        self.need_word("N")?;
        self.need(Sort::Minus, "`-`")?;
        self.need_word("VERSION")
    }

    /// `T3`, `TASK 3`, or a bare number.
    fn task_name(&mut self) -> Parsed<EntityAt> {
        let start = self.here().start;
        self.take_word("TASK");
        if self.is(Sort::Integer) || self.is(Sort::BraceOpen) {
            let number = Some(self.number()?.it);
            let it = EntityName { kind: Kind::Task, number };
            return Ok(At { it, span: start..self.before().end });
        }
        let entity = self.entity()?;
        if entity.it.kind != Kind::Task || entity.it.number.is_none() {
            let help = "name a task, as `T3`";
            let wrong = Diagnostic::new(Code::Expected, entity.span, "this is no task", help);
            return self.refuse(wrong);
        }
        Ok(entity)
    }

    fn alpha(&mut self, begin: &Span) -> Parsed<Statement> {
        let task = self.task_name()?;
        self.need_word("IS")?;
        self.need_word("THRESHOLD")?;
        self.need(Sort::Equal, "`=`")?;
        let threshold = self.decimal()?;
        self.need(Sort::Comma, "`,`")?;
        self.need_word("FACTOR")?;
        self.need(Sort::Equal, "`=`")?;
        let factor = self.decimal()?;
        let ms = if self.take_word("EVERY") { self.duration()?.it / 1000 } else { 1_000 };
        if !(1..=u32::from(u16::MAX)).contains(&threshold.it) {
            let message = "THRESHOLD is above 0 and below 256";
            let help = "write such a number, as 3.0";
            let wrong = Diagnostic::new(Code::Limit, threshold.span, message, help);
            return self.refuse(wrong);
        }
        if factor.it > 256 {
            let message = "FACTOR is at most 1";
            let help = "a success must not make the count grow; use a factor from 0 to 1";
            return self.refuse(Diagnostic::new(Code::Limit, factor.span, message, help));
        }
        self.end(begin, "ALPHACOUNT")?;
        Ok(Statement::Alpha { task, threshold: threshold.it, factor: factor.it, ms })
    }

    fn watchdog(&mut self, begin: &Span) -> Parsed<Statement> {
        self.take_word("TASK");
        let number = self.integer()?.it;
        self.need_word("WATCHES")?;
        let task = self.task_name()?;
        self.skip_lines();
        self.need_word("HEARTBEATS")?;
        self.need_word("EVERY")?;
        let period = self.duration()?;
        let us = period.it;
        if !u32::try_from(us).is_ok_and(|us| weft_core::recovery::BEAT_US.contains(&us)) {
            let message = "HEARTBEATS come every 1 ms to 30 minutes";
            let wrong =
                Diagnostic::new(Code::Limit, period.span, message, "write such a time, as `2 S`");
            return self.refuse(wrong);
        }
        self.skip_lines();
        self.need_word("ON")?;
        self.need_word("ERROR")?;
        let fired = Guard::Atom(weft_core::recovery::Status::Fired, task.clone());
        let guard = Some(At { it: fired, span: task.span.clone() });
        let actions = self.actions();
        self.end(begin, "WATCHDOG")?;
        let actions = Section { arms: vec![Arm { guard, actions }] };
        Ok(Statement::Watchdog { number, task, us, actions })
    }

    fn nversion(&mut self, begin: &Span) -> Parsed<Statement> {
        self.need(Sort::Minus, "`-`")?;
        self.need_word("VERSION")?;
        self.take_word("TASK");
        let number = self.integer()?.it;
        let (mut versions, mut algorithm, mut within) = (Vec::new(), None, None);
        let (mut on_success, mut on_error) = (None, None);
        loop {
            self.skip_lines();
            if self.is_word("END") || self.is(Sort::End) {
                break;
            }
            let begin = self.here();
            if self.take_word("VERSION") {
                self.integer()?;
                self.need_word("IS")?;
                let task = self.task_name()?;
                let us = if self.take_word("TIMEOUT") { self.duration()?.it } else { 1_000_000 };
                versions.push((task, us));
            } else if self.take_word("VOTING") {
                self.need_word("ALGORITHM")?;
                self.need_word("IS")?;
                algorithm = Some(self.algorithm()?);
            } else if self.take_word("METRIC") {
                within = Some(self.metric()?);
            } else if self.take_word("ON") {
                let slot = if self.take_word("SUCCESS") {
                    &mut on_success
                } else {
                    self.need_word("ERROR")?;
                    &mut on_error
                };
                *slot = Some(self.task_name()?);
            } else {
                let message = "this is no property of an N-version task";
                let help = "write VERSION, VOTING ALGORITHM IS, METRIC WITHIN, ON SUCCESS, \
                            ON ERROR or END N-VERSION";
                return self.refuse(Diagnostic::new(Code::Statement, begin, message, help));
            }
        }
        self.end(begin, "N-VERSION")?;
        Ok(Statement::Nversion { number, versions, algorithm, within, on_success, on_error })
    }

    fn algorithm(&mut self) -> Parsed<Algorithm> {
        let mut name = self.name()?.it.to_ascii_uppercase();
        if ["SIMPLE", "WEIGHTED"].contains(&name.as_str()) {
            name = format!("{name} {}", self.name()?.it.to_ascii_uppercase());
        }
        let is_it = |algorithm: &&Algorithm| algorithm.as_str() == name;
        match Algorithm::ALL.iter().find(is_it) {
            Some(algorithm) => Ok(*algorithm),
            None if name == "SIMPLE AVERAGE" => Ok(Algorithm::Average),
            None => {
                let known: Vec<&str> = Algorithm::ALL.iter().map(|it| it.as_str()).collect();
                let help = format!("use one of {}", known.join(", "));
                let message = format!("no voting algorithm is called {name}");
                self.refuse(Diagnostic::new(Code::Statement, self.before(), message, help))
            }
        }
    }

    fn metric(&mut self) -> Parsed<u32> {
        if self.take_word("WITHIN") {
            return Ok(self.integer()?.it);
        }
        let message = "a metric is a distance, not a function of the application";
        let help = "write `METRIC WITHIN 5`";
        let wrong = Diagnostic::new(Code::Metric, self.here(), message, help);
        self.script.diagnostics.push(wrong);
        Err(GivenUp)
    }
}
