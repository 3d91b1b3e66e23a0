//! The texts of a script: the file itself, and what it includes.
//!
//! All of them lie one behind the other in one space of offsets, so a span is two numbers.

use std::ops::Range;

/// Bytes of the sources, from and to.
pub type Span = Range<usize>;

/// One file.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name that diagnostics show.
    pub name: String,
    /// The text.
    pub text: String,
    base: usize,
}

/// The file that is translated, first, and the files that it includes.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<SourceFile>,
}

impl Sources {
    /// Adds a file and returns the offset at which it begins.
    pub fn add(&mut self, name: &str, text: &str) -> usize {
        // One apart, so that the end of one is not the begin of the next.
        let base = self.files.last().map_or(0, |last| last.base + last.text.len() + 1);
        self.files.push(SourceFile { name: name.into(), text: text.into(), base });
        base
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The file of a span, and the span within it.
    #[must_use]
    pub fn locate(&self, span: &Span) -> Option<(&SourceFile, Span)> {
        let file = self.files.iter().rev().find(|file| file.base <= span.start)?;
        let within = |at: usize| {
            let mut at = (at - file.base).min(file.text.len());
            while !file.text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        Some((file, within(span.start)..within(span.end.max(span.start))))
    }

    /// Line and column of a span, from 1; columns count characters.
    #[must_use]
    pub fn line_column(&self, span: &Span) -> (usize, usize) {
        let Some((file, within)) = self.locate(span) else { return (1, 1) };
        let before = &file.text[..within.start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}
