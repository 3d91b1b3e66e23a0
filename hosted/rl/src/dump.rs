//! `weft rl dump`: the words of an image, one a line.

use std::fmt::Write as _;

use weft_core::recovery::{Op, Program};

/// The words of `program`: index, line of the source, operation and operands.
#[must_use]
pub fn dump(program: &Program<'_>) -> String {
    let code = program.code();
    let mut text = String::new();
    for index in 0..code.header().words {
        let Some(word) = code.word(index) else { continue };
        let op = Op::from_code(word.op).map_or("?", Op::as_str);
        let line = code.line(index).filter(|line| *line > 0);
        let line = line.map_or_else(|| "-".to_owned(), |line| line.to_string());
        let meaning = program.instruction(index);
        // Writing to a string does not fail.
        let _ = match meaning {
            Some(meaning) => writeln!(text, "{index:>4} {line:>5}  {op:<8} {meaning:?}"),
            None => writeln!(text, "{index:>4} {line:>5}  {op:<8} {word:?}"),
        };
    }
    text
}
