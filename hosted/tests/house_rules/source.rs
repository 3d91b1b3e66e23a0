//! One source file, with code, comments and strings distinguished.
//!
//! Each line exists three times: as written, as code alone and as comment alone. The latter two
//! have the length of the first, with blanks in place of the rest, so that columns agree.

use crate::finding::Finding;

/// One line of a source file.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) text: String,
    /// The code, with empty strings and characters.
    pub(crate) code: String,
    /// The comment, `//` included.
    pub(crate) comment: String,
    /// Whether it is compiled for tests only.
    pub(crate) is_test: bool,
}

/// One source file.
#[derive(Debug)]
pub(crate) struct Source {
    /// The path from the root of the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) lines: Vec<Line>,
}

impl Source {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let (code, comment) = separate(text);
        let mut lines: Vec<Line> = text
            .lines()
            .zip(code.lines().zip(comment.lines()))
            .map(|(text, (code, comment))| Line {
                text: text.into(),
                code: code.into(),
                comment: comment.into(),
                is_test: is_test_path(path),
            })
            .collect();
        mark_test_items(&mut lines);
        Self { path: path.into(), lines }
    }

    /// Lines with their numbers, from 1.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Line)> {
        (1..).zip(&self.lines)
    }

    /// The code of all lines, for patterns that may span several of them.
    pub(crate) fn code(&self) -> String {
        let code: Vec<&str> = self.lines.iter().map(|line| line.code.as_str()).collect();
        code.join("\n")
    }

    /// Whether the whole file is compiled for tests only.
    pub(crate) fn is_test(&self) -> bool {
        self.lines.iter().all(|line| line.is_test)
    }

    pub(crate) fn mark_as_test(&mut self) {
        for line in &mut self.lines {
            line.is_test = true;
        }
    }

    pub(crate) fn finding(&self, line: usize, what: String, cure: &'static str) -> Finding {
        Finding { path: self.path.clone(), line, what, cure }
    }
}

/// The line, from 1, of a byte of [`Source::code`].
pub(crate) fn line_of(code: &str, at: usize) -> usize {
    1 + code[..at].matches('\n').count()
}

/// The positions of `word` in `code` as a word of its own; `word` may hold `::` and the like.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        let starts = !word.starts_with(is_ident) || !before.is_some_and(is_ident);
        let ends = !word.ends_with(is_ident) || !after.is_some_and(is_ident);
        starts && ends
    })
}

/// The identifier that `code` begins with; empty when it begins with something else.
pub(crate) fn leading_ident(code: &str) -> &str {
    let end = code.find(|letter| !is_ident(letter)).unwrap_or(code.len());
    &code[..end]
}

pub(crate) fn is_ident(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn is_test_path(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.split('/').any(|part| part == "tests" || part == "benches")
}

/// Marks the items after `#[cfg(test)]`, up to the brace that closes them or to their semicolon.
fn mark_test_items(lines: &mut [Line]) {
    let mut depth = 0_usize;
    // The depth at which a test item began, and whether its own braces have opened.
    let mut item: Option<(usize, bool)> = None;
    for line in lines {
        if item.is_none() && (line.code.contains("cfg(test)") || line.code.contains("cfg(all(test"))
        {
            item = Some((depth, false));
        }
        line.is_test |= item.is_some();
        for letter in line.code.chars() {
            depth = match letter {
                '{' | '(' | '[' => depth + 1,
                '}' | ')' | ']' => depth.saturating_sub(1),
                _ => depth,
            };
            item = match (item, letter) {
                (Some((began, false)), '{') if depth == began + 1 => Some((began, true)),
                (Some((began, true)), '}') if depth == began => None,
                (Some((began, false)), ';') if depth == began => None,
                (unchanged, _) => unchanged,
            };
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

/// The code of a text and its comments, each with blanks in place of the other.
fn separate(text: &str) -> (String, String) {
    let letters: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut comment = String::with_capacity(text.len());
    let mut inside = Inside::Code;
    let mut at = 0;
    while at < letters.len() {
        let (next, len) = step(inside, &letters, at);
        for &letter in &letters[at..at + len] {
            let is_comment =
                |state| matches!(state, Inside::LineComment | Inside::BlockComment { .. });
            let (to_code, to_comment) = match letter {
                '\n' => ('\n', '\n'),
                _ if is_comment(inside) || is_comment(next) => (' ', letter),
                _ if inside == Inside::Code && next == Inside::Code && len == 1 => (letter, ' '),
                '"' | '\'' => (letter, ' '),
                _ => (' ', ' '),
            };
            code.push(to_code);
            comment.push(to_comment);
        }
        inside = next;
        at += len;
    }
    (code, comment)
}

/// The state after the characters at `at`, and how many of them belong together.
fn step(inside: Inside, letters: &[char], at: usize) -> (Inside, usize) {
    let is = |offset: usize, letter: char| letters.get(at + offset) == Some(&letter);
    match inside {
        Inside::Code if is(0, '/') && is(1, '/') => (Inside::LineComment, 2),
        Inside::Code if is(0, '/') && is(1, '*') => (Inside::BlockComment { depth: 1 }, 2),
        Inside::Code if is(0, '"') => (Inside::Text, 1),
        Inside::Code if is(0, 'r') && !follows_ident(letters, at) => match raw_opening(letters, at)
        {
            Some(hashes) => (Inside::RawText { hashes }, hashes + 2),
            None => (Inside::Code, 1),
        },
        Inside::Code if is(0, '\'') => (Inside::Code, character_len(letters, at)),
        Inside::LineComment if is(0, '\n') => (Inside::Code, 1),
        Inside::BlockComment { depth } if is(0, '/') && is(1, '*') => {
            (Inside::BlockComment { depth: depth + 1 }, 2)
        }
        Inside::BlockComment { depth } if is(0, '*') && is(1, '/') => match depth {
            1 => (Inside::Code, 2),
            _ => (Inside::BlockComment { depth: depth - 1 }, 2),
        },
        Inside::Text if is(0, '\\') && at + 1 < letters.len() => (Inside::Text, 2),
        Inside::Text if is(0, '"') => (Inside::Code, 1),
        Inside::RawText { hashes } if is(0, '"') && (1..=hashes).all(|offset| is(offset, '#')) => {
            (Inside::Code, hashes + 1)
        }
        unchanged => (unchanged, 1),
    }
}

/// Whether the character at `at` continues an identifier; `b` and `c` may precede a raw string.
fn follows_ident(letters: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|place| letters[place]);
    match before(1) {
        Some('b' | 'c') => before(2).is_some_and(is_ident),
        letter => letter.is_some_and(is_ident),
    }
}

/// The number of hashes of the raw string that begins with the `r` at `at`.
fn raw_opening(letters: &[char], at: usize) -> Option<usize> {
    let hashes = letters[at + 1..].iter().take_while(|&&letter| letter == '#').count();
    (letters.get(at + 1 + hashes) == Some(&'"')).then_some(hashes)
}

/// The length of the character literal at `at`; 1 when the quote begins a lifetime.
fn character_len(letters: &[char], at: usize) -> usize {
    match letters.get(at + 1) {
        Some('\\') => {
            let rest = letters.iter().skip(at + 3);
            rest.take(12).position(|&letter| letter == '\'').map_or(1, |end| end + 4)
        }
        Some(_) if letters.get(at + 2) == Some(&'\'') => 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_of(text: &str) -> String {
        Source::parse("core/src/x.rs", text).lines[0].code.clone()
    }

    #[test]
    fn strings_and_comments_are_not_code() {
        for text in [
            r#"let a = "unsafe"; // unsafe"#,
            r##"let a = r#"unsafe " unsafe"#;"##,
            r#"let a = b"\"unsafe";"#,
            "let a = 1; /* unsafe /* unsafe */ unsafe */ let b = 2;",
            r#"let a = ('"', '\'', '\u{7f}', "unsafe");"#,
        ] {
            let code = code_of(text);
            assert!(!code.contains("unsafe"), "{code}");
            assert!(code.contains("let a"), "{code}");
            assert_eq!(code.len(), text.len());
        }
    }

    #[test]
    fn code_behind_a_lifetime_or_a_raw_identifier_is_code() {
        assert!(code_of("fn f<'a>(r: &'a u8, r#in: u8) { unsafe {} }").contains("unsafe"));
    }

    #[test]
    fn a_comment_keeps_its_column() {
        let source = Source::parse("x.rs", "ab(); // why");
        assert_eq!(source.lines[0].comment.find("// why"), Some(6));
    }

    #[test]
    fn only_the_item_behind_cfg_test_is_a_test() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n\
                    #[cfg(test)]\nfn d(_: [u8; 2]) {\n}\nfn e() {}\n";
        let source = Source::parse("core/src/x.rs", text);
        let tests: Vec<usize> =
            source.numbered().filter(|(_, line)| line.is_test).map(|(at, _)| at).collect();
        assert_eq!(tests, [2, 3, 4, 5, 7, 8, 9]);
    }

    #[test]
    fn words_are_whole() {
        let found: Vec<usize> = words("unsafe_code unsafe {}", "unsafe").collect();
        assert_eq!(found, [12]);
    }
}
