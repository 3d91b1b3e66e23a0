//! `weft rl dump --source`: a script that is translated to the same words.
//!
//! ```text
//!   words ─▶ declarations ─┐
//!     └────▶ sections ─ guards ─ sums ─▶ text ─▶ format ─▶ translate ─▶ the same words?
//! ```
//!
//! What is not in an image is lost: comments, names of constants, what was included, and how a
//! script was laid out, so lines and the digest of the source are others. Words, strings and counts
//! are the same; an image for which that does not hold, as none of this translator's does, gives no
//! script.

mod expression;

use std::collections::BTreeMap;

use weft_core::recovery::{Depth, Entity, Instruction, Kind, Program, Target, TimeoutName, verify};

use crate::dump::{decimal, duration, entity, letter, subject};
use crate::{Judgement, format, translate_as};
use expression::{Expression, Stack};

/// A script of which `program` is the translation, but for its lines and the digest of its source.
#[must_use]
pub fn decompile(program: &Program<'_>) -> Option<String> {
    let mut script = Decompiler { program, at: 0, lines: Vec::new(), atoms: Vec::new() };
    let mut watchdogs = BTreeMap::new();
    script.declarations(&mut watchdogs)?;
    while script.next()? != Instruction::End {
        let arms = script.section()?;
        let watched = match &arms[..] {
            [ArmLines { guard: Some(guard), .. }] => {
                watchdogs.iter().find(|(task, _)| *guard == format!("FIRED T{task}"))
            }
            _ => None,
        };
        let watched = watched.map(|(task, (number, us))| (*task, *number, *us));
        let section = match watched {
            None => section_lines(arms),
            Some((task, number, us)) => {
                watchdogs.remove(&task);
                let head = [
                    format!("WATCHDOG {number} WATCHES T{task}"),
                    format!("HEARTBEATS EVERY {}", duration(u64::from(us))),
                    "ON ERROR".to_owned(),
                ];
                let actions = arms.into_iter().flat_map(|arm| arm.actions);
                head.into_iter().chain(actions).chain(["END WATCHDOG".to_owned()]).collect()
            }
        };
        script.lines.extend(section);
    }
    let plain = script.lines.join("\n") + "\n";
    // Its indentation may be what makes a script too long.
    let text = format(&plain).unwrap_or(plain);
    let image =
        translate_as("image.rl", &text, None, &mut |_, _| Err(String::new()), Judgement::Left);
    is_same(program, &image.image?).then_some(text)
}

/// Whether words, strings and counts are equal.
fn is_same(program: &Program<'_>, image: &[u8]) -> bool {
    let expected = weft_core::recovery::Expected { nodes: None, keeps_rules: |_| true };
    let Ok(other) = verify(image, &expected) else { return false };
    let (one, other) = (program.code(), other.code());
    let plain = |header: &weft_core::recovery::Header| weft_core::recovery::Header {
        lines: 0,
        source: 0,
        ..*header
    };
    let words = |code: &weft_core::recovery::Rcode<'_>| {
        (0..code.header().words).map(|index| code.word(index)).collect::<Vec<_>>()
    };
    plain(one.header()) == plain(other.header())
        && words(one) == words(other)
        && (0..one.header().pool_len).all(|offset| one.text(offset) == other.text(offset))
}

struct Decompiler<'p> {
    program: &'p Program<'p>,
    at: u16,
    lines: Vec<String>,
    /// The sets of the atoms of the sections around, innermost last.
    atoms: Vec<Vec<Option<u8>>>,
}

struct ArmLines {
    guard: Option<String>,
    actions: Vec<String>,
}

fn section_lines(arms: Vec<ArmLines>) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, ArmLines { guard, actions }) in arms.into_iter().enumerate() {
        lines.push(match (guard, number) {
            (Some(guard), 0) => format!("IF [ {guard} ] THEN"),
            (Some(guard), _) => format!("ELIF [ {guard} ] THEN"),
            (None, _) => "ELSE".to_owned(),
        });
        lines.extend(actions);
    }
    lines.push("FI".to_owned());
    lines
}

const fn timeout_word(name: TimeoutName) -> &'static str {
    match name {
        TimeoutName::Send => "MIA_SEND",
        TimeoutName::Receive => "MIA_RECV",
        TimeoutName::Clear => "IMALIVE_CLEAR",
        TimeoutName::Alarm => "IMALIVE_SET",
        TimeoutName::Window => "TEIF",
        TimeoutName::Candidate => "MID",
        TimeoutName::Join => "REQUEST_DB",
    }
}

impl Decompiler<'_> {
    fn next(&self) -> Option<Instruction> {
        self.program.instruction(self.at)
    }

    fn text(&self, offset: u16) -> Option<&str> {
        self.program.code().text(offset)
    }

    /// Up to behind CODE; the watchdogs are declared where their sections stand.
    fn declarations(&mut self, watchdogs: &mut BTreeMap<u8, (u8, u32)>) -> Option<()> {
        let mut versions = 0;
        // The line that closes an N-version task.
        let mut open = None;
        loop {
            let next = self.next()?;
            self.at += 1;
            let line = match next {
                Instruction::Code => break,
                Instruction::Role { node, role } => format!("DEFINE {node} = {}", role.as_str()),
                Instruction::Fallback(fallback) => format!("DEFAULT = {}", fallback.as_str()),
                Instruction::Timeout { name, us } => {
                    format!("{} = {}", timeout_word(name), duration(u64::from(us)))
                }
                Instruction::Task { task, node, index, name } => {
                    self.tasks(task, node, index, name)?
                }
                Instruction::Group { group, name } => self.group(group, name)?,
                Instruction::Alpha { task, threshold, factor } => {
                    let Some(Instruction::AlphaPeriod { ms, .. }) = self.next() else {
                        return None;
                    };
                    self.at += 1;
                    format!(
                        "ALPHACOUNT T{task} IS THRESHOLD = {}, FACTOR = {} EVERY {} END",
                        decimal(u32::from(threshold)),
                        decimal(u32::from(factor)),
                        duration(u64::from(ms) * 1_000),
                    )
                }
                Instruction::Watchdog { number, task, us } => {
                    watchdogs.insert(task, (number, us));
                    continue;
                }
                Instruction::Voting { number, algorithm } => {
                    self.lines.extend(open.replace("END N-VERSION".to_owned()));
                    versions = 0;
                    self.lines.push(format!("N-VERSION {number}"));
                    format!("VOTING ALGORITHM IS {}", algorithm.as_str())
                }
                Instruction::Within { distance, .. } => format!("METRIC WITHIN {distance}"),
                Instruction::OnSuccess { task, .. } => format!("ON SUCCESS T{task}"),
                Instruction::OnError { task, .. } => format!("ON ERROR T{task}"),
                Instruction::Version { task, us, .. } => {
                    versions += 1;
                    format!("VERSION {versions} IS T{task} TIMEOUT {}", duration(u64::from(us)))
                }
                _ => return None,
            };
            self.lines.push(line);
        }
        self.lines.extend(open);
        Some(())
    }

    /// A task, with those behind it that have its name: a range.
    fn tasks(&mut self, task: u8, node: u8, index: u8, name: u16) -> Option<String> {
        let mut last = task;
        while let Some(Instruction::Task { task: next, name: other, .. }) = self.next() {
            if other != name || Some(next) != last.checked_add(1) {
                break;
            }
            last = next;
            self.at += 1;
        }
        let numbers = if last == task { task.to_string() } else { format!("[{task},{last}]") };
        let name = self.text(name)?;
        Some(format!("TASK {numbers} = \"{name}\" IS NODE {node}, TASKID {index}"))
    }

    fn group(&mut self, group: u8, name: u16) -> Option<String> {
        let mut tasks = Vec::new();
        while let Some(Instruction::Member { task, .. }) = self.next() {
            tasks.push(task.to_string());
            self.at += 1;
        }
        let (name, tasks) = (self.text(name)?, tasks.join(", "));
        Some(format!("LOGICAL {group} = \"{name}\" IS TASK {tasks} END LOGICAL"))
    }

    /// The section that begins here, with its nested ones.
    fn section(&mut self) -> Option<Vec<ArmLines>> {
        let Instruction::Section { .. } = self.next()? else { return None };
        self.at += 1;
        self.atoms.push(Vec::new());
        let (mut arms, mut end) = (Vec::new(), None);
        while end != Some(self.at) {
            let is_else = !arms.is_empty() && !self.begins_guard();
            let (guard, to) = if is_else {
                (None, end?)
            } else {
                let guard = self.guard()?;
                let Instruction::JumpIfFalse(to) = self.next()? else { return None };
                self.at += 1;
                (Some(guard), to)
            };
            let actions = self.list(to)?;
            arms.push(ArmLines { guard, actions });
            // Behind all but the last arm, a jump leads to the end.
            let Some(Instruction::Jump(leave)) = self.next().filter(|_| self.at < to) else {
                break;
            };
            self.at += 1;
            end = Some(leave);
            if self.at == leave {
                arms.push(ArmLines { guard: None, actions: Vec::new() });
            }
        }
        self.atoms.pop();
        Some(arms)
    }

    /// Whether numbers follow, and then a jump that asks for them.
    fn begins_guard(&self) -> bool {
        let mut words = (self.at..).map_while(|index| self.program.instruction(index));
        matches!(words.find(|word| !expression::is_part(*word)), Some(Instruction::JumpIfFalse(_)))
    }

    /// The numbers that are pushed here.
    fn expressions(&mut self) -> Option<Vec<Expression>> {
        let mut stack = Stack::default();
        while let Some(word) = self.next().filter(|word| expression::is_part(*word)) {
            stack.push(word)?;
            self.at += 1;
        }
        Some(stack.expressions)
    }

    fn guard(&mut self) -> Option<String> {
        let stack = self.expressions()?;
        let [guard] = &stack[..] else { return None };
        let mut sets = Vec::new();
        let text = guard.guard(self.program, &mut sets)?;
        self.atoms.last_mut()?.extend(sets);
        Some(text)
    }

    fn aim(&self, target: Target) -> Option<String> {
        let atoms = self.atoms.last()?;
        let number = |set: u8| atoms.iter().position(|kept| *kept == Some(set)).map(|at| at + 1);
        Some(match target {
            Target::One(one) => entity(one),
            Target::Set(set) => format!("@{}", number(set)?),
            Target::Rest(set) => format!("~{}", number(set)?),
            Target::Groups(set) => format!("G${}", number(set)?),
            Target::Nodes(set) => format!("${}", number(set)?),
        })
    }

    /// The actions up to `to`, or up to the jump that leaves the arm.
    fn list(&mut self, to: u16) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        while self.at < to {
            match self.next()? {
                Instruction::Jump(_) => break,
                Instruction::Section { depth: Depth::Nested, .. } => {
                    let arms = self.section()?;
                    lines.extend(section_lines(arms));
                }
                _ => {
                    let action = self.action()?;
                    lines.push(action);
                }
            }
        }
        Some(lines)
    }

    fn action(&mut self) -> Option<String> {
        let stack = self.expressions()?;
        let word = self.next()?;
        self.at += 1;
        let values = || stack.iter().map(Expression::sum).collect::<Option<Vec<_>>>();
        let value = || match &stack[..] {
            [value] => value.sum(),
            _ => None,
        };
        Some(match word {
            Instruction::Act { verb, target } => {
                let action = format!("{} {}", verb.as_str(), self.aim(target)?);
                let Some(Instruction::ActWarn(warned)) = self.next() else { return Some(action) };
                self.at += 1;
                format!("{action} AND WARN {}", self.aim(warned)?)
            }
            Instruction::Send(target) => format!("SEND {} {}", value()?, self.aim(target)?),
            Instruction::Warn(target) => format!("WARN {}", self.aim(target)?),
            Instruction::WarnOf(target) => {
                let [error, Expression::Number(about)] = &stack[..] else { return None };
                let about = entity(Entity::from_number(*about)?);
                format!("ERR {} {about} WARN {}", error.sum()?, self.aim(target)?)
            }
            Instruction::Purge(target) => {
                format!("REMOVE ANY {} FROM ERRORLIST", self.aim(target)?)
            }
            Instruction::PurgeCount(target) => {
                format!("REMOVE {} {} FROM ERRORLIST", value()?, self.aim(target)?)
            }
            Instruction::Clear(target) => format!("CLEAR {}", self.aim(target)?),
            Instruction::Store(variable) => format!("LET {} = {}", letter(variable), value()?),
            Instruction::Log { text, .. } => {
                format!("LOG \"{}\" {}", self.text(text)?, values()?.join(", "))
            }
            Instruction::Call { name, .. } => {
                format!("CALL {}({})", self.text(name)?, values()?.join(", "))
            }
            Instruction::Pause { ms, .. } => format!("PAUSE {}", duration(u64::from(ms) * 1_000)),
            _ => return None,
        })
    }
}

/// All entities of a kind, in the order in which a wildcard is translated.
fn everything(program: &Program<'_>, kind: Kind) -> Vec<u8> {
    match kind {
        Kind::Task => program.tasks().iter().collect(),
        Kind::Group => program.groups().iter().collect(),
        Kind::Node => (0..program.code().header().nodes).collect(),
    }
}
