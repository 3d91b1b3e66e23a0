//! The parser: recursive descent by hand, one statement a line.
//!
//! It recovers at line ends, so one wrong line is one error; after 20 errors it stops.

mod declare;
mod guard;
mod section;

use std::collections::HashMap;

use weft_core::recovery::Kind;

use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::source::{Sources, Span};
use crate::token::{Sort, Token, lex};
use crate::tree::{At, EntityAt, EntityName, Number, Statement};

/// The errors that are shown.
pub const ERRORS_MAX: usize = 20;
/// The errors after which the parser stops: one more than are shown says that there are more.
const STOP_AT: usize = ERRORS_MAX + 1;
/// The longest source in bytes.
pub const SOURCE_MAX: usize = 64 << 10;
/// How deep INCLUDE goes.
const INCLUDES_MAX: usize = 4;
/// How many files a script has with all that it includes: four levels could be any number of them.
pub(crate) const FILES_MAX: usize = 64;
/// How deep guards and sums are nested.
const DEPTH_MAX: usize = 24;
/// How deep sections are nested.
const SECTIONS_MAX: usize = 8;

/// How long names are.
const NAME_MAX: usize = 32;

const LINE_END: &str = "the end of the line";

/// Reads an included file, by its path as it is written and the name of the file that includes it;
/// returns its name and its text, or why it cannot be read.
pub type Reader<'r> = dyn FnMut(&str, &str) -> Result<(String, String), String> + 'r;

/// A diagnostic was recorded; the statement is given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenUp;

pub(crate) type Parsed<T> = Result<T, GivenUp>;

/// The statements of a script, and what is wrong with it.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) statements: Vec<At<Statement>>,
    pub(crate) constants: HashMap<String, u32>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Parses `text` and what it includes.
pub(crate) fn parse(
    name: &str,
    text: &str,
    sources: &mut Sources,
    reader: &mut Reader<'_>,
) -> Script {
    let mut script = Script::default();
    let base = sources.add(name, text);
    if let Some(wrong) = unfit(text, base) {
        script.diagnostics.push(wrong);
        return script;
    }
    let (tokens, wrong) = lex(text, base);
    script.diagnostics.extend(wrong);
    let stack = vec![name.to_owned()];
    let _all_read = include(tokens, &mut script, sources, reader, &stack);
    script
}

/// Why a text is no script at all.
pub(crate) fn unfit(text: &str, base: usize) -> Option<Diagnostic> {
    let refuse = |message: &str, at: usize, help: &str| {
        Some(Diagnostic::new(Code::File, base + at..base + at, message, help))
    };
    if text.len() > SOURCE_MAX {
        let help = "split it with INCLUDE, or shorten it";
        return refuse("the script is longer than 64 KiB", 0, help);
    }
    if let Some(at) = text.find('\0') {
        return refuse("the script has a NUL", at, "translate the text, not an image of it");
    }
    if text.trim_start_matches('\u{FEFF}').trim().is_empty() {
        return refuse("the script is empty", 0, "declare a manager: `DEFINE 0 = MANAGER`");
    }
    None
}

/// Whether more may be read: one finding says that it may not, however many files lie above.
fn include(
    tokens: Vec<Token>,
    script: &mut Script,
    sources: &mut Sources,
    reader: &mut Reader<'_>,
    stack: &[String],
) -> bool {
    let texts = sources.clone();
    let tokens = tokens.into_iter().filter(|token| token.sort != Sort::Comment).collect();
    let mut parser = Parser { tokens, at: 0, texts: &texts, script, depth: 0, sections: 0 };
    while let Some((path, span)) = parser.statements() {
        let from = stack.last().cloned().unwrap_or_default();
        let refuse = |message: String, help: &str| {
            Diagnostic::new(Code::Include, span.clone(), message, help)
        };
        let wrong = if stack.len() > INCLUDES_MAX {
            Some(refuse(
                "INCLUDE is nested more than 4 deep".into(),
                "include it from the first script",
            ))
        } else if sources.files().len() == FILES_MAX {
            parser.script.diagnostics.push(refuse(
                format!("INCLUDE reads more than {} files", FILES_MAX - 1),
                "join files, or include each once, from the first script",
            ));
            return false;
        } else {
            match reader(&path, &from) {
                Err(why) => Some(refuse(
                    format!("{path:?} cannot be included: {why}"),
                    "correct the path, which is relative to this file, or that file",
                )),
                Ok((name, _)) if stack.contains(&name) => Some(refuse(
                    format!("{path:?} includes itself"),
                    "remove this line, or the one that leads here",
                )),
                Ok((name, text)) => {
                    let base = sources.add(&name, &text);
                    if let Some(wrong) = unfit(&text, base) {
                        Some(wrong)
                    } else {
                        let (tokens, wrong) = lex(&text, base);
                        parser.script.diagnostics.extend(wrong);
                        let deeper: Vec<String> = stack.iter().cloned().chain([name]).collect();
                        if !include(tokens, parser.script, sources, reader, &deeper) {
                            return false;
                        }
                        None
                    }
                }
            }
        };
        parser.script.diagnostics.extend(wrong);
    }
    true
}

pub(crate) struct Parser<'s> {
    tokens: Vec<Token>,
    at: usize,
    texts: &'s Sources,
    script: &'s mut Script,
    depth: usize,
    sections: usize,
}

impl Parser<'_> {
    /// Parses up to the next INCLUDE, which it returns, or to the end.
    fn statements(&mut self) -> Option<(String, Span)> {
        while !self.is(Sort::End) && self.script.diagnostics.len() < STOP_AT {
            if self.take(Sort::Line) {
                continue;
            }
            let begin = self.here();
            if self.take_word("INCLUDE") {
                if let Ok(path) = self.text() {
                    return Some((path.it, begin.start..path.span.end));
                }
                self.skip_line();
                continue;
            }
            match self.statement() {
                Ok(Some(it)) => {
                    let span = begin.start..self.before().end;
                    self.script.statements.push(At { it, span });
                    if !self.is(Sort::Line) && !self.is(Sort::End) {
                        let _recorded = self.expected::<()>(LINE_END);
                        self.skip_line();
                    }
                }
                Ok(None) => {}
                // What was given up may end where the next statement begins.
                Err(GivenUp) if self.here() != begin && self.begins_line() => {}
                Err(GivenUp) => self.skip_line(),
            }
        }
        None
    }

    /// Whether the word before this one ends a line.
    fn begins_line(&self) -> bool {
        self.at > 0 && self.tokens[self.at - 1].sort == Sort::Line
    }

    /// Whether the word before is a string that its line cuts off, which was reported.
    fn is_cut_off(&self) -> bool {
        let Some(before) = self.at.checked_sub(1).and_then(|at| self.tokens.get(at)) else {
            return false;
        };
        before.sort == Sort::Text && !is_closed(&self.text_of(before))
    }

    fn token(&self) -> &Token {
        &self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn here(&self) -> Span {
        self.token().span.clone()
    }

    /// The place of the word before.
    fn before(&self) -> Span {
        self.tokens[self.at.saturating_sub(1).min(self.tokens.len() - 1)].span.clone()
    }

    fn is(&self, sort: Sort) -> bool {
        self.token().sort == sort
    }

    fn text_of(&self, token: &Token) -> String {
        let located = self.texts.locate(&token.span);
        located.map_or_else(String::new, |(file, within)| file.text[within].to_owned())
    }

    fn written(&self) -> String {
        self.text_of(self.token())
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn take(&mut self, sort: Sort) -> bool {
        let is = self.is(sort);
        if is {
            self.advance();
        }
        is
    }

    /// Whether this word is `word`, in any case.
    fn is_word(&self, word: &str) -> bool {
        self.is(Sort::Word) && self.written().eq_ignore_ascii_case(word)
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.advance();
        }
        is
    }

    fn skip_line(&mut self) {
        while !self.is(Sort::Line) && !self.is(Sort::End) {
            self.advance();
        }
    }

    fn skip_lines(&mut self) {
        while self.take(Sort::Line) {}
    }

    fn refuse<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.script.diagnostics.push(diagnostic);
        Err(GivenUp)
    }

    fn expected<T>(&mut self, what: &str) -> Parsed<T> {
        if self.is_cut_off() {
            return Err(GivenUp);
        }
        let found = match self.token().sort {
            Sort::Line => LINE_END.to_owned(),
            Sort::End => "the end of the script".to_owned(),
            _ => format!("`{}`", self.written()),
        };
        let message = format!("expected {what}, found {found}");
        let help = match what {
            LINE_END => "begin a new line here".to_owned(),
            _ => format!("write {what} here"),
        };
        let mut span = self.here();
        if self.is(Sort::Line) {
            // The end of a line has no width, or the line behind it would be drawn, too.
            span.end = span.start;
        }
        self.refuse(Diagnostic::new(Code::Expected, span, message, help))
    }

    fn need(&mut self, sort: Sort, what: &str) -> Parsed<()> {
        if self.take(sort) { Ok(()) } else { self.expected(what) }
    }

    fn need_word(&mut self, word: &str) -> Parsed<()> {
        if self.take_word(word) { Ok(()) } else { self.expected(&format!("`{word}`")) }
    }

    /// An integer as it is written.
    fn integer(&mut self) -> Parsed<At<u32>> {
        let span = self.here();
        if !self.is(Sort::Integer) {
            return self.expected("a number");
        }
        let Some(it) = self.written().parse::<u32>().ok().filter(|it| *it <= i32::MAX as u32)
        else {
            let message = "the number is larger than 2147483647";
            return self.refuse(Diagnostic::new(Code::Number, span, message, "use a smaller one"));
        };
        self.advance();
        Ok(At { it, span })
    }

    /// An integer, or a name in braces.
    fn number(&mut self) -> Parsed<At<Number>> {
        let begin = self.here();
        if self.take(Sort::BraceOpen) {
            let name = self.name()?;
            self.need(Sort::BraceClose, "`}`")?;
            return Ok(At { it: Number::Named(name.it), span: begin.start..self.before().end });
        }
        let number = self.integer()?;
        Ok(At { it: Number::Written(number.it), span: number.span })
    }

    fn name(&mut self) -> Parsed<At<String>> {
        let span = self.here();
        if !self.is(Sort::Word) {
            return self.expected("a name");
        }
        let it = self.written();
        if it.len() > NAME_MAX {
            let message = format!("a name of {} letters", it.len());
            let help = "use at most 32 letters, digits and underscores";
            return self.refuse(Diagnostic::new(Code::Name, span, message, help));
        }
        self.advance();
        Ok(At { it, span })
    }

    fn text(&mut self) -> Parsed<At<String>> {
        let span = self.here();
        if !self.is(Sort::Text) {
            return self.expected("a string");
        }
        let it = self.written().trim_matches('"').to_owned();
        let is_closed = is_closed(&self.written());
        if is_closed && it.len() > 64 {
            let message = format!("a string of {} bytes", it.len());
            return self.refuse(Diagnostic::new(Code::Text, span, message, "use at most 64 bytes"));
        }
        if is_closed && let Some(control) = it.chars().find(|letter| letter.is_control()) {
            let message = format!("the string has the control character {control:?}");
            return self.refuse(Diagnostic::new(Code::Text, span, message, "remove it"));
        }
        self.advance();
        Ok(At { it, span })
    }

    /// The name of a task or a group: those of the cluster file have hyphens, too.
    fn quoted_name(&mut self) -> Parsed<At<String>> {
        let name = self.text()?;
        let is_legal = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        let message = match name.it.chars().find(|letter| !is_legal(*letter)) {
            _ if self.is_cut_off() => return Err(GivenUp),
            Some(letter) => format!("a name cannot have {letter:?}"),
            None if name.it.is_empty() => "the name is empty".to_owned(),
            None if name.it.len() > NAME_MAX => format!("a name of {} letters", name.it.len()),
            None => return Ok(name),
        };
        let help = "use 1 to 32 letters, digits, underscores and hyphens";
        self.refuse(Diagnostic::new(Code::Name, name.span, message, help))
    }

    /// A decimal, in 256ths.
    fn decimal(&mut self) -> Parsed<At<u32>> {
        let At { it, span } = self.thousandths()?;
        let parts = (it * 256 + 500) / 1000;
        Ok(At { it: u32::try_from(parts).unwrap_or(u32::MAX), span })
    }

    /// A decimal, in thousandths.
    fn thousandths(&mut self) -> Parsed<At<u64>> {
        let span = self.here();
        if !self.is(Sort::Decimal) {
            let At { it, span } = self.integer()?;
            return Ok(At { it: u64::from(it) * 1000, span });
        }
        let written = self.written();
        let (whole, places) = written.split_once('.').unwrap_or((&written, "0"));
        let thousandths = format!("{places:0<3}").parse::<u32>().ok();
        let parts = whole.parse::<u32>().ok().zip(thousandths.filter(|_| places.len() <= 3));
        let Some((whole, thousandths)) = parts else {
            let message = "a decimal has at most three places";
            return self.refuse(Diagnostic::new(Code::Number, span, message, "round it"));
        };
        self.advance();
        Ok(At { it: u64::from(whole) * 1000 + u64::from(thousandths), span })
    }

    /// A duration in µs.
    fn duration(&mut self) -> Parsed<At<u64>> {
        let count = self.integer()?;
        let factor = match self.written().to_ascii_uppercase().as_str() {
            "US" => 1,
            "MS" => 1_000,
            "S" => 1_000_000,
            _ => return self.no_unit(count.span),
        };
        self.advance();
        let span = count.span.start..self.before().end;
        Ok(At { it: u64::from(count.it) * factor, span })
    }

    fn no_unit<T>(&mut self, count: Span) -> Parsed<T> {
        let help = "write US, MS or S after the number";
        let wrong = match self.token().sort {
            Sort::Word => {
                let message = format!("`{}` is not a unit of time", self.written());
                Diagnostic::new(Code::Duration, self.here(), message, help)
            }
            _ => Diagnostic::new(Code::Duration, count, "the duration has no unit", help),
        };
        self.refuse(wrong)
    }

    /// `T3`, `T{camera}`, `T 3`, `T*`; none if no entity stands here.
    fn entity(&mut self) -> Parsed<EntityAt> {
        let span = self.here();
        let written = self.written();
        if self.is(Sort::Star) {
            let message = "a wildcard without a kind";
            let help = "write `T*`, `G*` or `N*`";
            return self.refuse(Diagnostic::new(Code::Wildcard, span, message, help));
        }
        let Some((kind, digits)) = kind_of(&written).filter(|_| self.is(Sort::Word)) else {
            return self.expected("an entity, as `T3`, `G1`, `N2` or `T*`");
        };
        let number = if digits.is_empty() {
            self.advance();
            if self.take(Sort::Star) { None } else { Some(self.number()?.it) }
        } else {
            let Ok(number) = digits.parse() else {
                let message = "the number of an entity is at most 255";
                return self.refuse(Diagnostic::new(Code::Limit, span, message, "use another"));
            };
            self.advance();
            Some(Number::Written(number))
        };
        let span = span.start..self.before().end;
        Ok(At { it: EntityName { kind, number }, span })
    }

    /// One level deeper in a guard or a sum.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEPTH_MAX {
            let message = "nested more than 24 deep";
            let help = "split the guard into nested sections, or the sum by LET";
            return self.refuse(Diagnostic::new(Code::Nesting, self.here(), message, help));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
}

fn is_closed(text: &str) -> bool {
    text.len() > 1 && text.ends_with('"')
}

/// The kind that `word` begins with, if nothing but digits follows it.
fn kind_of(word: &str) -> Option<(Kind, &str)> {
    let kind = match word.chars().next()?.to_ascii_uppercase() {
        'T' => Kind::Task,
        'G' => Kind::Group,
        'N' => Kind::Node,
        _ => return None,
    };
    let digits = &word[1..];
    digits.bytes().all(|digit| digit.is_ascii_digit()).then_some((kind, digits))
}

/// What was probably meant by `word`.
pub(crate) fn meant<'w>(word: &str, words: &[&'w str]) -> Option<&'w str> {
    let word = word.to_ascii_uppercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&word, &known.to_ascii_uppercase());
    let rated = words.iter().map(|known| (distance(known), *known));
    // Of a short word that much is another one.
    let is_near = |distance: usize| distance <= 2 && distance * 2 <= word.len();
    rated.filter(|(distance, _)| is_near(*distance)).min().map(|(_, known)| known)
}
