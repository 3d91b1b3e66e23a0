//! Sections and actions.

use weft_core::recovery::{Kind, Verb};

use super::{Parsed, Parser, SECTIONS_MAX, kind_of, meant};
use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::token::Sort;
use crate::tree::{Action, Aim, Arm, At, Section};

pub(super) const ACTIONS: &[&str] = &[
    "START", "ENABLE", "RESTART", "REBOOT", "STOP", "KILL", "ISOLATE", "RELEASE", "SEND", "WARN",
    "ERR", "REMOVE", "CLEAR", "LET", "LOG", "CALL", "PAUSE", "IF",
];

impl Parser<'_> {
    /// What stands behind IF.
    pub(super) fn section(&mut self) -> Parsed<Section> {
        let opened = self.before();
        if self.sections == SECTIONS_MAX {
            let message = "sections are nested more than 8 deep";
            let help = "put the inner one behind this one, with both guards";
            self.skip_section();
            return self.refuse(Diagnostic::new(Code::Nesting, opened, message, help));
        }
        self.sections += 1;
        let parsed = self.arms(&opened);
        self.sections -= 1;
        if parsed.is_err() {
            self.skip_section();
        }
        parsed
    }

    /// To behind the FI of the section that was given up, so that its rest is not taken for
    /// statements.
    fn skip_section(&mut self) {
        let mut depth = 1_usize;
        while depth > 0 && !self.is(Sort::End) && !self.begins_declaration() {
            depth += usize::from(self.is_word("IF"));
            depth -= usize::from(self.is_word("FI"));
            self.advance();
        }
    }

    fn arms(&mut self, opened: &crate::source::Span) -> Parsed<Section> {
        let mut arms = Vec::new();
        let mut begin = opened.clone();
        let mut guard = Some(self.bracketed()?);
        loop {
            if guard.is_some() {
                self.skip_lines();
                self.need_word("THEN")?;
            }
            let is_last = guard.is_none();
            let actions = self.actions();
            arms.push(Arm { guard, actions, begin: begin.clone() });
            if self.take_word("FI") {
                return Ok(Section { arms });
            }
            let last = std::mem::replace(&mut begin, self.here());
            guard = if !is_last && self.take_word("ELIF") {
                Some(self.bracketed()?)
            } else if !is_last && self.take_word("ELSE") {
                None
            } else if is_last && (self.is_word("ELSE") || self.is_word("ELIF")) {
                let message = format!("{} after ELSE", self.written().to_ascii_uppercase());
                let help = "ELSE is the last arm: remove one of them, or move it before ELSE";
                let wrong = Diagnostic::new(Code::Unclosed, self.here(), message, help);
                return self.refuse(wrong.beside(last, "ELSE stands here"));
            } else {
                let message = "the IF is not closed";
                let wrong = Diagnostic::new(Code::Unclosed, self.here(), message, "write FI here");
                return self.refuse(wrong.beside(opened.clone(), "opened here"));
            };
        }
    }

    /// Actions up to the word that ends them. A wrong one costs its line.
    pub(super) fn actions(&mut self) -> Vec<At<Action>> {
        let mut actions = Vec::new();
        loop {
            self.skip_lines();
            // A declaration is no action: the list was not closed before it.
            if self.is_end_of_list()
                || self.is(Sort::End)
                || self.begins_declaration()
                || self.script.diagnostics.len() >= super::STOP_AT
            {
                return actions;
            }
            let start = self.here().start;
            match self.action() {
                Ok(it) => {
                    actions.push(At { it, span: start..self.before().end });
                    if !self.is_end_of_list() && !self.is(Sort::Line) && !self.is(Sort::End) {
                        let _recorded = self.expected::<()>(super::LINE_END);
                        self.skip_line();
                    }
                }
                // The list ends there.
                Err(super::GivenUp) if self.begins_declaration() => {}
                Err(super::GivenUp) => self.skip_line(),
            }
        }
    }

    fn is_end_of_list(&self) -> bool {
        ["FI", "ELIF", "ELSE", "END"].iter().any(|end| self.is_word(end))
    }

    fn action(&mut self) -> Parsed<Action> {
        let (word, span) = (self.written().to_ascii_uppercase(), self.here());
        self.advance();
        match word.as_str() {
            "IF" => Ok(Action::Section(self.section()?)),
            "START" => self.change(Verb::Start),
            "ENABLE" => self.change(Verb::Release),
            "RESTART" => self.change(Verb::Restart),
            "STOP" | "KILL" => self.change(Verb::Stop),
            "ISOLATE" => self.change(Verb::Isolate),
            "RELEASE" => self.change(Verb::Release),
            "REBOOT" => self.reboot(span),
            "SEND" => Ok(Action::Send { value: self.sum()?, aim: self.aim()? }),
            "WARN" => Ok(Action::Warn(self.aim()?)),
            "ERR" => {
                let (error, about) = (self.sum()?, self.entity()?);
                self.need_word("WARN")?;
                Ok(Action::WarnOf { error, about, aim: self.aim()? })
            }
            "REMOVE" => {
                let count = if self.take_word("ANY") { None } else { Some(self.sum()?) };
                let aim = self.aim()?;
                self.need_word("FROM")?;
                self.need_word("ERRORLIST")?;
                Ok(Action::Purge { count, aim })
            }
            "CLEAR" => Ok(Action::Clear(self.aim()?)),
            "LET" => {
                let variable = self.variable()?.it;
                self.need(Sort::Equal, "`=`")?;
                Ok(Action::Let { variable, value: self.sum()? })
            }
            "LOG" => self.log(),
            "CALL" => self.call(),
            "PAUSE" => self.pause(),
            _ => {
                let help = match meant(&word, ACTIONS) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => format!("an action is one of {}", ACTIONS.join(", ")),
                };
                let message = format!("no action begins with `{word}`");
                self.refuse(Diagnostic::new(Code::Statement, span, message, help))
            }
        }
    }

    /// ENABLE is START for tasks and groups, and RELEASE for nodes; STOP of a node is ISOLATE.
    fn change(&mut self, verb: Verb) -> Parsed<Action> {
        let is_enable = self.text_of(&self.tokens[self.at - 1]).eq_ignore_ascii_case("ENABLE");
        let aim = self.aim()?;
        let is_node = match &aim.it {
            Aim::One(entity) => entity.kind == Kind::Node,
            Aim::Nodes(_) => true,
            Aim::Set(_) | Aim::Rest(_) | Aim::Groups(_) => false,
        };
        let verb = match verb {
            Verb::Release if is_enable && !is_node => Verb::Start,
            Verb::Stop if is_node => Verb::Isolate,
            other => other,
        };
        let warn = if self.take_word("AND") {
            self.need_word("WARN")?;
            Some(self.aim()?)
        } else {
            None
        };
        Ok(Action::Change { verb, aim, warn })
    }

    fn reboot(&mut self, span: crate::source::Span) -> Parsed<Action> {
        let aim = self.aim()?;
        let is_node = match &aim.it {
            Aim::One(entity) => entity.kind == Kind::Node,
            _ => true,
        };
        if is_node {
            return Ok(Action::Change { verb: Verb::Restart, aim, warn: None });
        }
        let message = "REBOOT is for nodes";
        let help = "write RESTART for a task or a group";
        self.refuse(Diagnostic::new(Code::VerbKind, span, message, help))
    }

    fn values(&mut self) -> Parsed<Vec<crate::tree::Sum>> {
        let mut values = Vec::new();
        while !self.is(Sort::Line) && !self.is(Sort::End) && !self.is(Sort::ParenClose) {
            if !values.is_empty() {
                self.take(Sort::Comma);
            }
            values.push(self.sum()?);
            if values.len() > 4 {
                let message = "more than 4 values";
                let help = "use a second LOG or CALL";
                return self.refuse(Diagnostic::new(Code::Limit, self.before(), message, help));
            }
        }
        Ok(values)
    }

    fn log(&mut self) -> Parsed<Action> {
        let text = self.text()?;
        Ok(Action::Log { text, values: self.values()? })
    }

    fn call(&mut self) -> Parsed<Action> {
        let name = self.name()?;
        let mut args = Vec::new();
        if self.take(Sort::ParenOpen) {
            args = self.values()?;
            self.need(Sort::ParenClose, "`)`")?;
        }
        Ok(Action::Call { name, args })
    }

    fn pause(&mut self) -> Parsed<Action> {
        let At { it, span } = self.duration()?;
        let ms = u32::try_from(it / 1000).ok();
        let limit = weft_core::recovery::PAUSE_MS_MAX;
        let Some(ms) = ms.filter(|ms| (1..=limit).contains(ms)) else {
            let message = "the PAUSE is out of range";
            let help = "use a PAUSE from 1 MS to 3600 S";
            return self.refuse(Diagnostic::new(Code::Limit, span, message, help));
        };
        Ok(Action::Pause { ms })
    }

    /// An entity, or a set of an atom.
    fn aim(&mut self) -> Parsed<At<Aim>> {
        let start = self.here().start;
        let it = match self.token().sort {
            Sort::At => self.numbered(Sort::At, Aim::Set)?,
            Sort::Tilde => self.numbered(Sort::Tilde, Aim::Rest)?,
            Sort::Dollar => self.numbered(Sort::Dollar, Aim::Nodes)?,
            _ => {
                let word = self.written();
                let next = self.tokens.get(self.at + 1).map(|token| token.sort);
                match kind_of(&word) {
                    Some((kind, "")) if next == Some(Sort::Dollar) => {
                        let span = self.here();
                        self.advance();
                        match kind {
                            Kind::Group => self.numbered(Sort::Dollar, Aim::Groups)?,
                            Kind::Node => self.numbered(Sort::Dollar, Aim::Nodes)?,
                            Kind::Task => {
                                let message = "no task is above an entity";
                                let help = "write `@k` for the tasks themselves";
                                let wrong = Diagnostic::new(Code::Above, span, message, help);
                                return self.refuse(wrong);
                            }
                        }
                    }
                    _ => {
                        let entity = self.entity()?;
                        if entity.it.number.is_none() {
                            let message = "an action on a wildcard";
                            let help = "name a group, or ask for it in the guard and use `@1`";
                            let wrong = Diagnostic::new(Code::Wildcard, entity.span, message, help);
                            return self.refuse(wrong);
                        }
                        Aim::One(entity.it)
                    }
                }
            }
        };
        Ok(At { it, span: start..self.before().end })
    }

    /// `@3`, `@@`, `@`: behind the sign a number, or the last atom.
    fn numbered(&mut self, sign: Sort, aim: fn(Option<u32>) -> Aim) -> Parsed<Aim> {
        self.advance();
        if self.take(sign) || !self.is(Sort::Integer) {
            return Ok(aim(None));
        }
        Ok(aim(Some(self.integer()?.it)))
    }
}
