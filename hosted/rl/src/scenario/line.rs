//! The words of one line, each with its place.

use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// What is left of a line.
pub(super) struct LineRest<'t> {
    /// Its number, from 1.
    pub(super) number: usize,
    /// The line without its comment.
    text: &'t str,
    start: usize,
    /// How much of it was read, in bytes.
    read: usize,
}

impl<'t> LineRest<'t> {
    /// The line that begins at offset `start` of its text.
    pub(super) fn new(line: &'t str, start: usize, number: usize) -> Self {
        // A sign within a string begins no comment.
        let mut is_quoted = false;
        let comment = line.find(|letter| {
            is_quoted ^= letter == '"';
            letter == '#' && !is_quoted
        });
        let text = line[..comment.unwrap_or(line.len())].trim_end();
        let mark =
            if start == 0 && text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
        Self { number, text, start, read: mark }
    }

    /// Whether nothing is left to be read.
    pub(super) fn is_over(&self) -> bool {
        self.text[self.read..].trim().is_empty()
    }

    /// The statement, as diagnostics and results show it.
    pub(super) fn as_written(&self) -> &'t str {
        self.text.trim_start_matches('\u{FEFF}').trim()
    }

    /// The next word, which stays to be read.
    pub(super) fn peek(&self) -> Option<&'t str> {
        self.text[self.read..].split_whitespace().next()
    }

    /// The place of the next word.
    pub(super) fn here(&self) -> Span {
        let rest = &self.text[self.read..];
        let begin = self.start + self.read + (rest.len() - rest.trim_start().len());
        begin..begin + self.peek().map_or(0, str::len)
    }

    fn refuse(&self, message: String, help: &str) -> Diagnostic {
        Diagnostic::new(Code::ScenarioLine, self.here(), message, help)
    }

    pub(super) fn word(&mut self, wanted: &str) -> Result<(&'t str, Span), Diagnostic> {
        let span = self.here();
        let Some(word) = self.peek() else {
            let help = "complete the line; `weft rl reference` shows each form";
            return Err(self.refuse(format!("expected {wanted}, found the end of the line"), help));
        };
        self.read = span.end - self.start;
        Ok((word, span))
    }

    /// One of `known`.
    pub(super) fn keyword(&mut self, known: &[&'static str]) -> Result<&'static str, Diagnostic> {
        let wanted = known.join(" or ");
        let found = self.peek().and_then(|word| known.iter().find(|known| **known == word));
        let Some(found) = found else {
            let wanted = if known.contains(&"ms") { "a unit: us, ms or s" } else { &wanted };
            let found = self.peek().map(|word| format!("`{word}`"));
            let found = found.unwrap_or_else(|| "the end of the line".to_owned());
            let message = format!("expected {wanted}, found {found}");
            return Err(
                self.refuse(message, "correct the line; `weft rl reference` shows each form")
            );
        };
        self.word(&wanted)?;
        Ok(found)
    }

    pub(super) fn number(&mut self) -> Result<(u64, Span), Diagnostic> {
        let begin = self.here();
        let (word, span) = self.word("a number")?;
        match word.parse::<u64>() {
            Ok(number) if word.starts_with(|letter: char| letter.is_ascii_digit()) => {
                Ok((number, span))
            }
            _ => {
                let message = format!("`{word}` is no number");
                Err(Diagnostic::new(Code::ScenarioLine, begin, message, "write an integer"))
            }
        }
    }

    /// A number that may be negative.
    pub(super) fn signed(&mut self) -> Result<i64, Diagnostic> {
        let (word, span) = self.word("a number")?;
        word.parse::<i64>().map_err(|_| {
            let message = format!("`{word}` is no number of 64 bits");
            Diagnostic::new(Code::ScenarioLine, span, message, "write an integer")
        })
    }

    /// A number that `T` has room for.
    pub(super) fn small_number<T: TryFrom<u64>>(&mut self) -> Result<T, Diagnostic> {
        let (number, span) = self.number()?;
        T::try_from(number).map_err(|_| {
            let message = format!("{number} is too large");
            Diagnostic::new(Code::ScenarioLine, span, message, "write a smaller number")
        })
    }

    /// A duration, in µs.
    pub(super) fn duration(&mut self) -> Result<u64, Diagnostic> {
        let (count, _) = self.number()?;
        let unit = match self.keyword(&["us", "ms", "s"])? {
            "us" => 1,
            "ms" => 1_000,
            _ => 1_000_000,
        };
        Ok(count.saturating_mul(unit))
    }

    /// A string in quotation marks.
    pub(super) fn text(&mut self) -> Result<&'t str, Diagnostic> {
        let begin = self.here().start - self.start;
        let inside = self.text[begin..].strip_prefix('"').and_then(|rest| rest.split_once('"'));
        let Some((inside, _)) = inside else {
            let message = "expected a string in quotation marks".to_owned();
            return Err(self.refuse(message, "write the text of the LOG: `log \"text\"`"));
        };
        self.read = begin + inside.len() + 2;
        Ok(inside)
    }

    /// The line must be over.
    pub(super) fn end(&self) -> Result<(), Diagnostic> {
        match self.peek() {
            None => Ok(()),
            Some(word) => {
                let message = format!("expected the end of the line, found `{word}`");
                Err(self.refuse(message, "write one statement a line"))
            }
        }
    }
}
