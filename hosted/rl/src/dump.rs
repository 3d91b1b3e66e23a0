//! `weft rl dump`: the words of an image, one a line.
//!
//! ```text
//!   index  line  operation  what it is about
//!       5     4  ACT        RESTART @1
//! ```
//!
//! Sets are numbered here from 1, in the order in which the script uses them; in the script `@k`
//! numbers the atoms.

use std::fmt::Write as _;

use weft_core::recovery::{
    Depth, Entity, Fact, FactName, Instruction, Kind, Op, Program, Subject, Target,
};

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
        let operands = program.instruction(index).map(|it| operands(it, program));
        let row = format!("{index:>4} {line:>5}  {op:<8} {}", operands.unwrap_or_default());
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text
}

/// What a word is about.
fn operands(word: Instruction, program: &Program<'_>) -> String {
    let quoted = |offset| format!("\"{}\"", program.code().text(offset).unwrap_or_default());
    match word {
        Instruction::Role { node, role } => format!("N{node} {}", role.as_str()),
        Instruction::Fallback(fallback) => fallback.as_str().to_owned(),
        Instruction::Timeout { name, us } => format!("{} {us} US", name.as_str()),
        Instruction::Task { task, node, index, name } => {
            format!("T{task} {} NODE {node}, TASKID {index}", quoted(name))
        }
        Instruction::Group { group, name } => format!("G{group} {}", quoted(name)),
        Instruction::Member { group, task } => format!("G{group} T{task}"),
        Instruction::Alpha { task, threshold, factor } => format!(
            "T{task} THRESHOLD {}, FACTOR {}",
            decimal(u32::from(threshold)),
            decimal(u32::from(factor))
        ),
        Instruction::AlphaPeriod { task, ms } => format!("T{task} EVERY {ms} MS"),
        Instruction::Watchdog { number, task, us } => format!("{number} T{task} EVERY {us} US"),
        Instruction::Voting { number, algorithm } => format!("{number} {}", algorithm.as_str()),
        Instruction::Within { number, distance } => format!("{number} WITHIN {distance}"),
        Instruction::OnSuccess { number, task } => format!("{number} ON SUCCESS T{task}"),
        Instruction::OnError { number, task } => format!("{number} ON ERROR T{task}"),
        Instruction::Version { number, task, us } => format!("{number} T{task} TIMEOUT {us} US"),
        _ => code_operands(word, program),
    }
}

fn code_operands(word: Instruction, program: &Program<'_>) -> String {
    let text = |offset| program.code().text(offset).unwrap_or_default();
    match word {
        Instruction::Section { number, depth: Depth::Top, end } => format!("{number}, to {end}"),
        Instruction::Section { number, depth: Depth::Nested, .. } => format!("{number}, nested"),
        Instruction::Test { status, of, set } => {
            let kept =
                set.map_or_else(String::new, |set| format!(", kept as @{}", u16::from(set) + 1));
            format!("{} {}{kept}", status.as_str(), subject(of))
        }
        Instruction::Push(number) => number.to_string(),
        Instruction::Load(of) => fact(of),
        Instruction::Store(variable) => letter(variable).to_string(),
        Instruction::Compare(comparison) => comparison.as_str().to_owned(),
        Instruction::JumpIfFalse(to) | Instruction::Jump(to) => format!("to {to}"),
        Instruction::Act { verb, target } => format!("{} {}", verb.as_str(), aim(target)),
        Instruction::Purge(target) => format!("ANY {}", aim(target)),
        Instruction::WarnOf(target) => format!("ERR to {}", aim(target)),
        Instruction::ActWarn(target)
        | Instruction::Send(target)
        | Instruction::Warn(target)
        | Instruction::PurgeCount(target)
        | Instruction::Clear(target) => aim(target),
        Instruction::Call { name, args } => format!("{}, {args} arguments", text(name)),
        Instruction::Log { text: offset, values } => {
            format!("\"{}\", {values} values", text(offset))
        }
        Instruction::Pause { ms, end } => format!("{ms} MS, list to {end}"),
        _ => String::new(),
    }
}

pub(crate) fn entity(Entity { kind, id }: Entity) -> String {
    format!("{}{id}", kind.as_str())
}

pub(crate) fn subject(of: Subject) -> String {
    match of {
        Subject::One(one) => entity(one),
        Subject::Any(kind) => format!("{}*", kind.as_str()),
    }
}

pub(crate) fn fact(Fact { name, of }: Fact) -> String {
    match name {
        FactName::Variable => format!("VAL({})", letter(of.id)),
        _ => format!("{}({})", name.as_str(), entity(of)),
    }
}

pub(crate) fn letter(variable: u8) -> char {
    char::from(b'A'.saturating_add(variable.min(25)))
}

fn aim(target: Target) -> String {
    match target {
        Target::One(one) => entity(one),
        Target::Set(set) => format!("@{}", u16::from(set) + 1),
        Target::Rest(set) => format!("~{}", u16::from(set) + 1),
        Target::Groups(set) => format!("{}${}", Kind::Group.as_str(), u16::from(set) + 1),
        Target::Nodes(set) => format!("${}", u16::from(set) + 1),
    }
}

/// In the greatest unit that has no remainder.
pub(crate) fn duration(us: u64) -> String {
    match us {
        _ if us.is_multiple_of(1_000_000) => format!("{} S", us / 1_000_000),
        _ if us.is_multiple_of(1_000) => format!("{} MS", us / 1_000),
        _ => format!("{us} US"),
    }
}

/// 256ths as a decimal that is read as the same.
pub(crate) fn decimal(parts: u32) -> String {
    let thousandths = (u64::from(parts) * 1000 + 128) / 256;
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}
