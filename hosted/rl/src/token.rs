//! The words of a script.

use logos::Logos;

use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;

/// A sort of word.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r]+")]
#[logos(skip r"\\[ \t]*\r?\n")]
pub(crate) enum Sort {
    #[token("\n")]
    Line,
    #[regex(r"#[^\n]*", allow_greedy = true)]
    Comment,
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
    Word,
    #[regex(r"[0-9]+")]
    Integer,
    #[regex(r"[0-9]+\.[0-9]+")]
    Decimal,
    #[regex(r#""[^"\n]*""#)]
    Text,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token(",")]
    Comma,
    #[token("==")]
    #[token("=")]
    Equal,
    #[token("!=")]
    NotEqual,
    #[token("<=")]
    AtMost,
    #[token("<")]
    Less,
    #[token(">=")]
    AtLeast,
    #[token(">")]
    Greater,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("@")]
    At,
    #[token("~")]
    Tilde,
    #[token("$")]
    Dollar,
    /// Behind the last word.
    End,
}

/// A word and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is.
    pub(crate) sort: Sort,
    /// Where it stands.
    pub(crate) span: Span,
}

/// The words of `text`, which begins at offset `base`, and what is no word. Comments are left in.
#[must_use]
pub(crate) fn lex(text: &str, base: usize) -> (Vec<Token>, Vec<Diagnostic>) {
    let (mut tokens, mut wrong) = (Vec::new(), Vec::new());
    let start = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
    for (sort, within) in Sort::lexer(&text[start..]).spanned() {
        let span = base + start + within.start..base + start + within.end;
        match sort {
            Ok(sort) => tokens.push(Token { sort, span }),
            Err(()) => {
                let rest = &text[start + within.start..];
                if rest.starts_with('"') {
                    // What follows is not judged without it.
                    tokens.push(Token { sort: Sort::Text, span: span.clone() });
                }
                wrong.push(stranger(rest, span));
            }
        }
    }
    let end = base + text.len();
    tokens.push(Token { sort: Sort::Line, span: end..end });
    tokens.push(Token { sort: Sort::End, span: end..end });
    (tokens, wrong)
}

fn stranger(rest: &str, span: Span) -> Diagnostic {
    let first = rest.chars().next().unwrap_or(' ');
    if first == '"' {
        let help = "close it with `\"` on the same line";
        return Diagnostic::new(Code::Text, span, "the string is not closed", help);
    }
    if first == '\\' {
        let message = match rest.trim() {
            "\\" => "no line follows this `\\`",
            _ => "this `\\` is not at the end of its line",
        };
        let help = "a `\\` at the end of a line joins it with the next one; remove this one";
        return Diagnostic::new(Code::Character, span, message, help);
    }
    let message = format!("unexpected character {first:?}");
    Diagnostic::new(Code::Character, span, message, "remove it, or put it into a comment")
}
