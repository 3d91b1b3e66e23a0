//! `weft rl fmt`: keywords in upper case, four spaces a level, one blank line between sections,
//! comments where they are. Nothing but blanks and the case of words changes, so words and strings
//! of the image stay; its lines, and the digest of its source, may not.

use crate::diagnostic::Diagnostic;
use crate::parse::unfit;
use crate::token::{Sort, Token, lex};

/// Words that are not names; everything else keeps its case.
const KEYWORDS: &[&str] = &[
    "DEFINE",
    "MANAGER",
    "BACKUP",
    "ASSISTANT",
    "AGENT",
    "DEFAULT",
    "DA",
    "RESTART",
    "KILL",
    "STOP",
    "NOTHING",
    "BUILTIN",
    "NPROCS",
    "NUMTASKS",
    "CONST",
    "INCLUDE",
    "TASK",
    "IS",
    "ON",
    "NODE",
    "TASKID",
    "LOGICAL",
    "END",
    "ALPHACOUNT",
    "THRESHOLD",
    "FACTOR",
    "EVERY",
    "WATCHDOG",
    "WATCHES",
    "HEARTBEATS",
    "ERROR",
    "VERSION",
    "TIMEOUT",
    "VOTING",
    "ALGORITHM",
    "METRIC",
    "WITHIN",
    "SUCCESS",
    "IF",
    "THEN",
    "ELIF",
    "ELSE",
    "FI",
    "AND",
    "OR",
    "NOT",
    "FAULTY",
    "RUNNING",
    "WAITING",
    "KILLED",
    "DOWN",
    "ISOLATED",
    "FINISHED",
    "PRESENT",
    "STARTED",
    "RESTARTED",
    "REBOOTED",
    "REINTEGRATED",
    "TRANSIENT",
    "FIRED",
    "ERRN",
    "ERRT",
    "ALPHA",
    "PHASE",
    "VAL",
    "IS_MANAGER",
    "START",
    "ENABLE",
    "ISOLATE",
    "RELEASE",
    "REBOOT",
    "SEND",
    "WARN",
    "ERR",
    "REMOVE",
    "ANY",
    "FROM",
    "ERRORLIST",
    "CLEAR",
    "LET",
    "LOG",
    "CALL",
    "PAUSE",
    "MS",
    "US",
    "MAJORITY",
    "SIMPLE",
    "PLURALITY",
    "MEDIAN",
    "AVERAGE",
    "WEIGHTED",
    "MIA_SEND",
    "TAIA_SEND",
    "MIA_RECV",
    "TAIA_RECV",
    "IMALIVE_CLEAR",
    "IMALIVE_SET",
    "TEIF",
    "MID",
    "REQUEST_DB",
    "REPLY_DB",
];

/// The script in its one form.
///
/// # Errors
/// What is no word of the language; a text that is no script, or would be too long for one.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    if let Some(wrong) = unfit(text, 0) {
        return Err(vec![wrong]);
    }
    let (tokens, wrong) = lex(text, 0);
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut lines = Vec::new();
    let mut level = 0_usize;
    for line in tokens.split(|token| token.sort == Sort::Line) {
        let mut words: Vec<(Sort, String)> = line
            .iter()
            .filter(|token| token.sort != Sort::End)
            .map(|token| word(text, token))
            .collect();
        // The name of a program keeps its case.
        for at in 1..words.len() {
            if words[at - 1].1 == "CALL" {
                text[line[at].span.clone()].clone_into(&mut words[at].1);
            }
        }
        let is = |at: usize, word: &str| words.get(at).is_some_and(|(_, text)| text == word);
        let opens = words.iter().filter(|(sort, text)| *sort == Sort::Word && text == "IF").count()
            + usize::from(is(0, "WATCHDOG") || is(0, "N") && is(2, "VERSION"));
        let begins_end = is(0, "END") && (is(1, "WATCHDOG") || is(1, "N"));
        let closes =
            words.iter().filter(|(sort, text)| *sort == Sort::Word && text == "FI").count()
                + usize::from(begins_end);
        let steps_back = usize::from(
            ["FI", "ELIF", "ELSE", "END"].iter().any(|it| is(0, it))
                && (begins_end || !is(0, "END")),
        );
        let indent = level.saturating_sub(steps_back);
        lines.push((level, join(&words, indent), opens > 0));
        level = (level + opens).saturating_sub(closes);
    }
    let formatted = spaced(&lines);
    match unfit(&formatted, 0) {
        Some(wrong) => Err(vec![wrong]),
        None => Ok(formatted),
    }
}

fn word(text: &str, token: &Token) -> (Sort, String) {
    let written = &text[token.span.clone()];
    let upper = written.to_ascii_uppercase();
    let is_entity = ["T", "G", "N"].iter().any(|kind| {
        let digits = upper.strip_prefix(kind);
        digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
    });
    let is_upper = token.sort == Sort::Word
        && (is_entity || upper == "S" || KEYWORDS.contains(&upper.as_str()));
    let shown = if is_upper { upper } else { written.trim_end().to_owned() };
    (token.sort, shown)
}

fn join(words: &[(Sort, String)], level: usize) -> String {
    let mut line = String::new();
    for (at, (sort, text)) in words.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| words[before].0);
        if at > 0 && is_apart(before, *sort, &words[at - 1].1) && !is_tied(words, at) {
            line.push(' ');
        }
        line.push_str(text);
    }
    if line.is_empty() { line } else { format!("{}{line}", "    ".repeat(level)) }
}

/// Whether the word at `at` belongs to the one before it: ranges, N-VERSION, a negative number, the
/// arguments of a CALL.
fn is_tied(words: &[(Sort, String)], at: usize) -> bool {
    let is = |at: usize, sort: Sort| words[at].0 == sort;
    if words[0].1 == "DEFINE" && (is(at, Sort::Minus) || is(at - 1, Sort::Minus)) {
        return true;
    }
    // The range of a TASK; the brackets of a guard stand apart.
    if words[0].1 == "TASK" && (is(at - 1, Sort::BracketOpen) || is(at, Sort::BracketClose)) {
        return true;
    }
    if is(at, Sort::ParenOpen) && at >= 2 && words[at - 2].1 == "CALL" {
        return true;
    }
    if !is(at - 1, Sort::Minus) {
        return false;
    }
    let Some(left) = at.checked_sub(2) else { return true };
    let is_nversion = words[left].1 == "N" && words[at].1 == "VERSION";
    let is_operand = match words[left].0 {
        Sort::Integer | Sort::Decimal | Sort::ParenClose | Sort::BraceClose => true,
        Sort::Word => {
            !["SEND", "LET", "ERR", "REMOVE", "AND", "OR", "NOT"].contains(&words[left].1.as_str())
        }
        _ => false,
    };
    is_nversion || !is_operand
}

/// Whether a blank stands before `sort`.
fn is_apart(before: Option<Sort>, sort: Sort, text_before: &str) -> bool {
    use Sort::{
        At, BraceClose, BraceOpen, Comma, Dollar, Minus, ParenClose, ParenOpen, Star, Tilde,
    };
    let is_kind = before == Some(Sort::Word) && ["T", "G", "N"].contains(&text_before);
    let is_function = before == Some(Sort::Word)
        && ["ERRN", "ERRT", "ALPHA", "PHASE", "VAL", "IS_MANAGER"].contains(&text_before);
    match (before, sort) {
        (_, Comma | ParenClose | BraceClose) | (Some(ParenOpen | BraceOpen), _) => false,
        (Some(Sort::Word), BraceOpen | Star | Dollar | Minus) if is_kind => false,
        (Some(Sort::Word), ParenOpen) if is_function => false,
        (Some(At), At) | (Some(Tilde), Tilde) | (Some(Dollar), Dollar) => false,
        (Some(At | Tilde | Dollar), Sort::Integer) => false,
        _ => true,
    }
}

/// No blank lines at the ends, at most one in a row, and one around each section.
fn spaced(lines: &[(usize, String, bool)]) -> String {
    let mut text: Vec<&str> = Vec::new();
    let mut before_ends_section = false;
    for (level, line, opens) in lines {
        let is_comment = line.starts_with('#');
        let last_is_comment = text.last().is_some_and(|last| last.starts_with('#'));
        let begins = *level == 0 && *opens && !last_is_comment;
        let wants = !line.is_empty() && (begins || before_ends_section);
        let has = text.last().is_none_or(|last| last.is_empty());
        if wants && !has {
            text.push("");
        }
        if !(line.is_empty() && text.last().is_none_or(|last| last.is_empty())) {
            text.push(line);
        }
        before_ends_section = *level > 0
            && !line.starts_with(' ')
            && !is_comment
            && (line.starts_with("FI") || line.starts_with("END"));
    }
    while text.last().is_some_and(|last| last.is_empty()) {
        text.pop();
    }
    text.join("\n") + "\n"
}
