//! Guards and sums.

use weft_core::recovery::{Comparison, FactName, Status};

use super::{Parsed, Parser, meant};
use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::token::Sort;
use crate::tree::{At, Guard, Sum};

const FACTS: &[FactName] =
    &[FactName::ErrorCount, FactName::ErrorKind, FactName::Alpha, FactName::Phase];

/// The terms that are chained by one operator.
const CHAIN_MAX: usize = 64;

/// The status of a word; some have two names.
fn status_of(word: &str) -> Option<Status> {
    match word {
        "DOWN" => Some(Status::Killed),
        "REINTEGRATED" => Some(Status::Rebooted),
        _ => Status::ALL.iter().copied().find(|status| status.as_str() == word),
    }
}

impl Parser<'_> {
    /// `[ guard ]`.
    pub(super) fn bracketed(&mut self) -> Parsed<At<Guard>> {
        let open = self.here();
        self.need(Sort::BracketOpen, "`[`")?;
        let it = self.guard()?;
        if !self.take(Sort::BracketClose) {
            let message = "the `[` is not closed";
            let wrong = Diagnostic::new(Code::Unclosed, self.here(), message, "write `]` here");
            return self.refuse(wrong.beside(open, "opened here"));
        }
        Ok(At { it, span: open.start..self.before().end })
    }

    fn guard(&mut self) -> Parsed<Guard> {
        self.deeper(Self::either)
    }

    fn either(&mut self) -> Parsed<Guard> {
        let start = self.here().start;
        let mut left = self.negated()?;
        let mut first: Option<(String, crate::source::Span)> = None;
        for _ in 0..CHAIN_MAX {
            let span = self.here();
            let operator = self.written().to_ascii_uppercase();
            if !self.is(Sort::Word) || !["AND", "OR"].contains(&operator.as_str()) {
                return Ok(left);
            }
            if let Some((before, place)) = &first
                && *before != operator
            {
                let place = place.clone();
                return self.mixed(start, &place, span);
            }
            first.get_or_insert_with(|| (operator.clone(), span));
            self.advance();
            let right = Box::new(self.negated()?);
            left = match operator.as_str() {
                "AND" => Guard::And(Box::new(left), right),
                _ => Guard::Or(Box::new(left), right),
            };
        }
        self.too_long()
    }

    /// What is chained is walked by recursion, so chains are as bounded as what is nested.
    fn too_long<T>(&mut self) -> Parsed<T> {
        let message = "more than 64 terms in a row";
        let help = "split the guard into nested sections, or the sum by LET";
        self.refuse(Diagnostic::new(Code::Nesting, self.here(), message, help))
    }

    /// Both readings of a mixture.
    fn mixed<T>(
        &mut self,
        start: usize,
        first: &crate::source::Span,
        second: crate::source::Span,
    ) -> Parsed<T> {
        self.advance();
        // What is wrong with the rest is of less interest.
        let known = self.script.diagnostics.len();
        let _reported = self.negated();
        self.script.diagnostics.truncate(known);
        let end = self.before().end;
        let cut = |span: crate::source::Span| {
            let located = self.texts.locate(&span);
            located.map_or_else(String::new, |(file, at)| file.text[at].trim().to_owned())
        };
        let (left, middle) = (cut(start..first.start), cut(first.end..second.start));
        let (one, other, right) = (cut(first.clone()), cut(second.clone()), cut(second.end..end));
        let help = format!(
            "write `({left} {one} {middle}) {other} {right}`, or the other reading: \
             `{left} {one} ({middle} {other} {right})`"
        );
        let message = "AND and OR need parentheses";
        let wrong = Diagnostic::new(Code::Mixed, second, message, help);
        let wrong = wrong.labelled("second operator").beside(first.clone(), "first operator");
        self.refuse(wrong)
    }

    fn negated(&mut self) -> Parsed<Guard> {
        if self.take_word("NOT") {
            return Ok(Guard::Not(Box::new(self.deeper(Self::negated)?)));
        }
        // `(` begins a guard or a sum: it is a sum if what is closed is compared or computed with.
        if self.is(Sort::ParenOpen) && !self.opens_sum() {
            self.advance();
            let inner = self.guard()?;
            self.need(Sort::ParenClose, "`)`")?;
            return Ok(inner);
        }
        self.atom()
    }

    fn opens_sum(&self) -> bool {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            match token.sort {
                Sort::ParenOpen => depth += 1,
                Sort::ParenClose => {
                    depth -= 1;
                    if depth == 0 {
                        let next = self.tokens.get(at + 1).map(|next| next.sort);
                        return next.is_some_and(|next| {
                            comparison_of(next).is_some()
                                || matches!(
                                    next,
                                    Sort::Plus | Sort::Minus | Sort::Star | Sort::Slash
                                )
                        });
                    }
                }
                Sort::Line | Sort::End => return false,
                _ => {}
            }
        }
        false
    }

    fn atom(&mut self) -> Parsed<Guard> {
        let word = self.written().to_ascii_uppercase();
        if self.is(Sort::Word) {
            if word == "IS_MANAGER" {
                self.advance();
                self.need(Sort::ParenOpen, "`(`")?;
                let node = self.entity()?;
                self.need(Sort::ParenClose, "`)`")?;
                return Ok(Guard::IsManager(node));
            }
            if word == "DEADLOCKED" {
                let message = "no fact says that tasks are deadlocked";
                let help = "let the tasks report an error, and ask for FAULTY";
                let wrong = Diagnostic::new(Code::Deadlocked, self.here(), message, help);
                return self.refuse(wrong);
            }
            if let Some(status) = status_of(&word) {
                self.advance();
                return Ok(Guard::Atom(status, self.entity()?));
            }
            let is_fact = word == "VAL" || FACTS.iter().any(|fact| fact.as_str() == word);
            if !is_fact && word.len() > 1 {
                return self.unknown_status(&word);
            }
        }
        if matches!(self.token().sort, Sort::BracketClose | Sort::Line | Sort::End) {
            return self.expected("a status, as `FAULTY T3`, or a comparison, as `ERRN(T3) > 2`");
        }
        let left = self.sum()?;
        let Some(comparison) = comparison_of(self.token().sort) else {
            return self.expected("a comparison: `==`, `!=`, `<`, `<=`, `>` or `>=`");
        };
        self.advance();
        Ok(Guard::Compare(comparison, left, self.sum()?))
    }

    fn unknown_status<T>(&mut self, word: &str) -> Parsed<T> {
        let all = Status::ALL.iter().map(|status| status.as_str());
        let known: Vec<&str> = all.chain(["DOWN", "REINTEGRATED"]).collect();
        let help = match meant(word, &known) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("a guard is one of {}", known.join(", ")),
        };
        let message = format!("no status is called {word}");
        self.refuse(Diagnostic::new(Code::Statement, self.here(), message, help))
    }

    pub(super) fn sum(&mut self) -> Parsed<Sum> {
        self.deeper(|parser| {
            let start = parser.here().start;
            let mut left = parser.product()?;
            for _ in 0..CHAIN_MAX {
                let operator = match parser.token().sort {
                    Sort::Plus => '+',
                    Sort::Minus => '-',
                    _ => return Ok(left),
                };
                parser.advance();
                let right = Box::new(parser.product()?);
                let span = start..parser.before().end;
                left = Sum::Both(operator, Box::new(left), right, span);
            }
            parser.too_long()
        })
    }

    fn product(&mut self) -> Parsed<Sum> {
        let start = self.here().start;
        let mut left = self.factor()?;
        for _ in 0..CHAIN_MAX {
            let operator = match self.token().sort {
                Sort::Star => '*',
                Sort::Slash => '/',
                _ => return Ok(left),
            };
            self.advance();
            let right = Box::new(self.factor()?);
            left = Sum::Both(operator, Box::new(left), right, start..self.before().end);
        }
        self.too_long()
    }

    fn factor(&mut self) -> Parsed<Sum> {
        match self.token().sort {
            Sort::Minus => {
                let start = self.here().start;
                self.advance();
                let inner = Box::new(self.deeper(Self::factor)?);
                Ok(Sum::Neg(inner, start..self.before().end))
            }
            Sort::ParenOpen => {
                self.advance();
                let inner = self.sum()?;
                self.need(Sort::ParenClose, "`)`")?;
                Ok(inner)
            }
            Sort::Decimal => Ok(Sum::Decimal(self.decimal()?)),
            Sort::Word => self.named(),
            _ => Ok(Sum::Number(self.number()?)),
        }
    }

    fn named(&mut self) -> Parsed<Sum> {
        let word = self.written().to_ascii_uppercase();
        if word == "VAL" {
            self.advance();
            self.need(Sort::ParenOpen, "`(`")?;
            let variable = self.variable()?;
            self.need(Sort::ParenClose, "`)`")?;
            return Ok(Sum::Variable(variable));
        }
        let Some(fact) = FACTS.iter().copied().find(|fact| fact.as_str() == word) else {
            if super::kind_of(&word).is_some_and(|(_, digits)| !digits.is_empty()) {
                return self.expected("a number before the entity");
            }
            return Ok(Sum::Variable(self.variable()?));
        };
        self.advance();
        self.need(Sort::ParenOpen, "`(`")?;
        let entity = self.entity()?;
        self.need(Sort::ParenClose, "`)`")?;
        if !fact.is_of(entity.it.kind) {
            let message = format!("{} is for tasks", fact.as_str());
            let help = format!("write {}(T3)", fact.as_str());
            return self.refuse(Diagnostic::new(Code::StatusKind, entity.span, message, help));
        }
        Ok(Sum::Fact(fact, entity))
    }

    /// A letter, as the number of the variable.
    pub(super) fn variable(&mut self) -> Parsed<At<u8>> {
        if matches!(self.token().sort, Sort::Line | Sort::End) {
            return self.expected("a variable (A to Z)");
        }
        let (word, span) = (self.written(), self.here());
        match word.as_bytes() {
            [letter] if letter.is_ascii_alphabetic() && self.is(Sort::Word) => {
                self.advance();
                Ok(At { it: letter.to_ascii_uppercase() - b'A', span })
            }
            _ => {
                let message = format!("`{word}` is not a variable");
                let help = "use one letter, A to Z";
                self.refuse(Diagnostic::new(Code::Variable, span, message, help))
            }
        }
    }
}

const fn comparison_of(sort: Sort) -> Option<Comparison> {
    Some(match sort {
        Sort::Equal => Comparison::Equal,
        Sort::NotEqual => Comparison::NotEqual,
        Sort::Less => Comparison::Less,
        Sort::AtMost => Comparison::AtMost,
        Sort::Greater => Comparison::Greater,
        Sort::AtLeast => Comparison::AtLeast,
        _ => return None,
    })
}
