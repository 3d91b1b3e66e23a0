//! Declarations.

use weft_core::recovery::{Algorithm, Fallback, Kind, Role, TimeoutName};

use super::section::ACTIONS;
use super::{GivenUp, Parsed, Parser, meant};
use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::token::Sort;
use crate::tree::{Arm, At, EntityAt, EntityName, Guard, Section, Statement, TaskVersion};

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

/// A slot for a property that stands at most once.
type Once<T> = Option<At<T>>;

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
            "LOGICAL" => {
                self.logical(&span).map(Some).map_err(|wrong| self.skip_to_end(wrong, &word))
            }
            "ALPHACOUNT" => self.alpha(&span).map(Some),
            "WATCHDOG" => {
                self.watchdog(&span).map(Some).map_err(|wrong| self.skip_to_end(wrong, &word))
            }
            "N" if self.is(Sort::Minus) => {
                self.nversion(&span).map(Some).map_err(|wrong| self.skip_to_end(wrong, &word))
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

    /// To behind the END of the declaration that was given up, or to the next statement: its rest
    /// is no statements.
    fn skip_to_end(&mut self, wrong: GivenUp, what: &str) -> GivenUp {
        let mut section = None;
        if !self.begins_line() {
            self.skip_line();
        }
        loop {
            self.skip_lines();
            if self.is(Sort::End) {
                break;
            }
            if self.is_word("END") {
                self.skip_line();
                return wrong;
            }
            // IF may stand in a WATCHDOG; a declaration begins behind it.
            if self.is_word("IF") {
                section.get_or_insert(self.at);
            }
            if self.begins_declaration() || self.is_word("IF") && what != "WATCHDOG" {
                return wrong;
            }
            self.skip_line();
        }
        self.at = section.unwrap_or(self.at);
        wrong
    }

    /// Whether a statement begins with this line that is no section.
    pub(super) fn begins_declaration(&self) -> bool {
        let is_known = STATEMENTS.iter().any(|word| *word != "IF" && self.is_word(word))
            || TIMEOUTS.iter().any(|(word, _)| self.is_word(word))
            || self.is_word("N");
        is_known && self.begins_line()
    }

    fn define(&mut self) -> Parsed<Statement> {
        let mut nodes = Vec::new();
        loop {
            let At { it: first, span } = self.integer()?;
            let last = if self.take(Sort::Minus) { self.integer()?.it } else { first };
            if last < first {
                let span = span.start..self.before().end;
                let help = format!("write `{last}-{first}`");
                let message = "the range ends before it begins";
                return self.refuse(Diagnostic::new(Code::Limit, span, message, help));
            }
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
            let known: Vec<&str> = Fallback::ALL.iter().map(|it| it.as_str()).collect();
            let Some(meant) = meant(&word, &known).filter(|_| self.is(Sort::Word)) else {
                return self.expected("RESTART, KILL, NOTHING or BUILTIN");
            };
            let message = format!("no DEFAULT is called `{word}`");
            let help = format!("did you mean {meant}?");
            return self.refuse(Diagnostic::new(Code::Expected, self.here(), message, help));
        };
        self.advance();
        Ok(Statement::Default(fallback))
    }

    fn constant(&mut self) -> Parsed<Option<Statement>> {
        let name = self.name()?;
        self.need(Sort::Equal, "`=`")?;
        let value = self.integer()?.it;
        let key = name.it.to_ascii_uppercase();
        if self.script.constants.contains_key(&key) {
            let is_it = |known: &str| known.eq_ignore_ascii_case(&name.it);
            let first = self.script.statements.iter().find_map(|at| match &at.it {
                Statement::Const { name: known, .. } if is_it(known) => Some(at.span.clone()),
                _ => None,
            });
            let message = format!("CONST {} is declared twice", name.it);
            let wrong = Diagnostic::new(Code::Twice, name.span, message, "remove one of the two");
            return self.refuse(wrong.beside(first.unwrap_or(0..0), "the first"));
        }
        self.script.constants.insert(key, value);
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
            let name = self.quoted_name()?;
            self.need_word("ON")?;
            self.need_word("NODE")?;
            let node = self.number()?.it;
            return Ok(Statement::Task { numbers, name, node, index: None });
        }
        self.need(Sort::Equal, "`=` or IS")?;
        let name = self.quoted_name()?;
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
        let name = self.quoted_name()?;
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
            let wrong = Diagnostic::new(Code::Expected, entity.span, "this is not a task", help);
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
        let factor = self.thousandths()?;
        let ms = if self.take_word("EVERY") { self.duration()?.it / 1000 } else { 1_000 };
        if !(1..=u32::from(u16::MAX)).contains(&threshold.it) {
            let message = "the threshold is out of range";
            let help = "use a threshold above 0 and below 256, for example 3.0";
            let wrong = Diagnostic::new(Code::Limit, threshold.span, message, help);
            return self.refuse(wrong);
        }
        if factor.it > 1000 {
            let message = "FACTOR is at most 1";
            let help = "a success must not make the count grow; use a factor from 0 to 1";
            return self.refuse(Diagnostic::new(Code::Limit, factor.span, message, help));
        }
        self.end(begin, "ALPHACOUNT")?;
        let factor = u32::try_from((factor.it * 256 + 500) / 1000).unwrap_or(u32::MAX);
        Ok(Statement::Alpha { task, threshold: threshold.it, factor, ms })
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
            let message = "the period of the heartbeats is out of range";
            let help = "use a period from 1 MS to 1800 S";
            return self.refuse(Diagnostic::new(Code::Limit, period.span, message, help));
        }
        self.skip_lines();
        self.need_word("ON")?;
        self.need_word("ERROR")?;
        let fired = Guard::Atom(weft_core::recovery::Status::Fired, task.clone());
        let guard = Some(At { it: fired, span: task.span.clone() });
        let actions = self.actions();
        self.end(begin, "WATCHDOG")?;
        let actions = Section { arms: vec![Arm { guard, actions, begin: begin.clone() }] };
        Ok(Statement::Watchdog { number, task, us, actions })
    }

    fn nversion(&mut self, begin: &Span) -> Parsed<Statement> {
        self.need(Sort::Minus, "`-`")?;
        self.need_word("VERSION")?;
        self.take_word("TASK");
        let number = self.integer()?.it;
        let (mut versions, mut on_success, mut on_error) = (Vec::new(), None, None);
        let (mut algorithm, mut within) = (None, None);
        loop {
            self.skip_lines();
            if self.is_word("END") || self.is(Sort::End) {
                break;
            }
            let begin = self.here();
            if self.take_word("VERSION") {
                versions.push(self.version()?);
            } else if self.take_word("VOTING") {
                self.need_word("ALGORITHM")?;
                self.need_word("IS")?;
                let it = self.algorithm()?;
                self.once(&mut algorithm, it, &begin, "VOTING ALGORITHM");
            } else if self.take_word("METRIC") {
                let it = self.metric()?;
                self.once(&mut within, it, &begin, "METRIC");
            } else if self.take_word("ON") {
                let is_success = self.take_word("SUCCESS");
                if !is_success {
                    self.need_word("ERROR")?;
                }
                let task = self.task_name()?;
                match is_success {
                    true => self.once(&mut on_success, task, &begin, "ON SUCCESS"),
                    false => self.once(&mut on_error, task, &begin, "ON ERROR"),
                }
            } else if self.is_word("IF") || STATEMENTS.iter().any(|word| self.is_word(word)) {
                break;
            } else {
                let message = "this is not a property of an N-version task";
                let help = "write VERSION, VOTING ALGORITHM IS, METRIC WITHIN, ON SUCCESS, \
                            ON ERROR or END N-VERSION";
                return self.refuse(Diagnostic::new(Code::Statement, begin, message, help));
            }
        }
        self.end(begin, "N-VERSION")?;
        let (algorithm, within) = (algorithm.map(|at| at.it), within.map(|at| at.it));
        let (on_success, on_error) = (on_success.map(|at| at.it), on_error.map(|at| at.it));
        Ok(Statement::Nversion { number, versions, algorithm, within, on_success, on_error })
    }

    fn version(&mut self) -> Parsed<TaskVersion> {
        let number = self.integer()?;
        self.need_word("IS")?;
        let task = self.task_name()?;
        let us = if self.take_word("TIMEOUT") { self.duration()?.it } else { 1_000_000 };
        Ok(TaskVersion { number, task, us })
    }

    /// Fills `slot`; a second property of the same name is refused, and the rest goes on.
    fn once<T>(&mut self, slot: &mut Once<T>, it: T, begin: &Span, what: &str) {
        let span = begin.start..self.before().end;
        if let Some(first) = slot {
            let message = format!("{what} is given twice");
            let wrong = Diagnostic::new(Code::Twice, span, message, "remove one of them");
            self.script.diagnostics.push(wrong.beside(first.span.clone(), "the first"));
            return;
        }
        *slot = Some(At { it, span });
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
