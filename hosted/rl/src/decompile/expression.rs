//! Guards and sums, from the order in which they are computed.

use weft_core::recovery::{
    Comparison, Entity, Fact, FactName, Instruction, Kind, Program, Status, Subject,
};

use super::{everything, subject};
use crate::dump::{decimal, fact};

/// The operators of one chain that the parser takes; more stand in parentheses.
const CHAIN_MAX: usize = 63;

/// How deep expressions are, which are walked by recursion: no script of 3000 words is deeper.
const DEPTH_MAX: usize = 1_500;

/// What one number on the stack is computed from.
#[derive(Clone, PartialEq)]
pub(super) enum Expression {
    Number(i32),
    Fact(Fact),
    /// A fact of any entity of the kind.
    Any(FactName, Kind),
    Neg(Box<Self>),
    Both(char, Box<Self>, Box<Self>),
    Test(Status, Subject, Option<u8>),
    Compare(Comparison, Box<Self>, Box<Self>),
    Not(Box<Self>),
    Join(&'static str, Box<Self>, Box<Self>),
}

use Expression::{Any, Both, Compare, Join, Neg, Not, Number, Test};

/// Whether a word computes.
pub(super) const fn is_part(word: Instruction) -> bool {
    matches!(
        word,
        Instruction::Test { .. }
            | Instruction::Push(_)
            | Instruction::Load(_)
            | Instruction::Add
            | Instruction::Sub
            | Instruction::Mul
            | Instruction::Div
            | Instruction::Neg
            | Instruction::Compare(_)
            | Instruction::And
            | Instruction::Or
            | Instruction::Not
    )
}

/// A stack of expressions, with the depth of each.
#[derive(Default)]
pub(super) struct Stack {
    pub(super) expressions: Vec<Expression>,
    depths: Vec<usize>,
}

impl Stack {
    /// Does to the expressions what `word` does to numbers; none if they become too deep.
    pub(super) fn push(&mut self, word: Instruction) -> Option<()> {
        let operands = match word {
            Instruction::Test { .. } | Instruction::Push(_) | Instruction::Load(_) => 0,
            Instruction::Neg | Instruction::Not => 1,
            _ => 2,
        };
        let left = self.depths.len().checked_sub(operands)?;
        let depth = self.depths.split_off(left).into_iter().max().map_or(0, |depth| depth + 1);
        if depth > DEPTH_MAX {
            return None;
        }
        self.depths.push(depth);
        let mut pop = || self.expressions.pop().map(Box::new);
        let made = match word {
            Instruction::Test { status, of, set } => Test(status, of, set),
            Instruction::Push(number) => Number(number),
            Instruction::Load(of) => Expression::Fact(of),
            Instruction::Neg => Neg(pop()?),
            Instruction::Not => Not(pop()?),
            _ => {
                let (right, left) = (pop()?, pop()?);
                match word {
                    Instruction::Add => Both('+', left, right),
                    Instruction::Sub => Both('-', left, right),
                    Instruction::Mul => Both('*', left, right),
                    Instruction::Div => Both('/', left, right),
                    Instruction::Compare(comparison) => Compare(comparison, left, right),
                    Instruction::And => Join("AND", left, right),
                    Instruction::Or => Join("OR", left, right),
                    _ => return None,
                }
            }
        };
        self.expressions.push(made);
        Some(())
    }
}

impl Expression {
    /// As a guard; the sets of its atoms are added in the order of the text.
    pub(super) fn guard(
        &self,
        program: &Program<'_>,
        sets: &mut Vec<Option<u8>>,
    ) -> Option<String> {
        if let Some(Compare(comparison, left, right)) = self.wildcard(program) {
            return compared(comparison, &left, &right);
        }
        Some(match self {
            Test(status, of, set) => {
                sets.push(*set);
                format!("{} {}", status.as_str(), subject(*of))
            }
            Compare(comparison, left, right) => compared(*comparison, left, right)?,
            Self::Fact(of) if of.name == FactName::IsManager => fact(*of),
            Not(inner) => {
                let text = inner.guard(program, sets)?;
                let is_joined = matches!(**inner, Join(..)) && inner.wildcard(program).is_none();
                if is_joined { format!("NOT ({text})") } else { format!("NOT {text}") }
            }
            Join(operator, left, right) => {
                let mut side = |of: &Self, is_left: bool| {
                    let text = of.guard(program, sets)?;
                    let is_bare = match of {
                        Join(other, ..) => {
                            is_left && other == operator && !of.chain().is_multiple_of(CHAIN_MAX)
                        }
                        _ => true,
                    };
                    let is_bare = is_bare || of.wildcard(program).is_some();
                    Some(if is_bare { text } else { format!("({text})") })
                };
                format!("{} {operator} {}", side(left, true)?, side(right, false)?)
            }
            // A wildcard of a kind of which there is none.
            Number(0) => {
                let kinds = [Kind::Group, Kind::Task];
                let empty = kinds.iter().find(|kind| everything(program, **kind).is_empty())?;
                format!("ERRN({}*) > 0", empty.as_str())
            }
            _ => return None,
        })
    }

    /// As a sum.
    pub(super) fn sum(&self) -> Option<String> {
        self.sum_above(0)
    }

    /// In parentheses, if it binds less than `least`.
    fn sum_above(&self, least: u8) -> Option<String> {
        Some(match self {
            Number(number) if *number >= 0 => number.to_string(),
            Self::Fact(of) => fact(*of),
            Any(name, kind) => format!("{}({}*)", name.as_str(), kind.as_str()),
            Neg(inner) => format!("-{}", inner.sum_above(3)?),
            Both(operator, left, right) => {
                let own = binding(*operator);
                let is_long = left.chain() > 0 && left.chain().is_multiple_of(CHAIN_MAX);
                let left = left.sum_above(if is_long { 3 } else { own })?;
                let text = format!("{left} {operator} {}", right.sum_above(own + 1)?);
                if own < least { format!("({text})") } else { text }
            }
            _ => return None,
        })
    }

    /// How many operators of its own binding stand in a row, this one the last.
    fn chain(&self) -> usize {
        let (mut count, mut at) = (0, self);
        loop {
            let left = match at {
                Join(operator, left, _) => match self {
                    Join(own, ..) if own == operator => left,
                    _ => return count,
                },
                Both(operator, left, _) => match self {
                    Both(own, ..) if binding(*own) == binding(*operator) => left,
                    _ => return count,
                },
                _ => return count,
            };
            count += 1;
            at = left;
        }
    }

    /// The comparison with a wildcard that was translated to this: 0, and one comparison for each
    /// entity, joined by OR.
    fn wildcard(&self, program: &Program<'_>) -> Option<Self> {
        let (mut each, mut at) = (Vec::new(), self);
        while let Join("OR", left, right) = at {
            let Compare(..) = **right else { return None };
            each.push(&**right);
            at = left;
        }
        if *at != Number(0) || each.is_empty() {
            return None;
        }
        each.reverse();
        [Kind::Task, Kind::Group, Kind::Node].iter().find_map(|kind| {
            let all = everything(program, *kind);
            let merged = (all.len() == each.len()).then(|| merge(&each, &all, *kind))??;
            merged.has_wildcard().then_some(merged)
        })
    }

    fn has_wildcard(&self) -> bool {
        match self {
            Any(..) => true,
            Compare(_, left, right) | Both(_, left, right) => {
                left.has_wildcard() || right.has_wildcard()
            }
            Neg(inner) => inner.has_wildcard(),
            _ => false,
        }
    }
}

const fn binding(operator: char) -> u8 {
    if matches!(operator, '+' | '-') { 1 } else { 2 }
}

/// What is equal in all of `each`, with a wildcard where they go through `all`.
fn merge(each: &[&Expression], all: &[u8], kind: Kind) -> Option<Expression> {
    let inner = |of: &dyn Fn(&Expression) -> Option<Expression>| {
        let parts: Option<Vec<Expression>> = each.iter().map(|it| of(it)).collect();
        let parts = parts?;
        merge(&parts.iter().collect::<Vec<_>>(), all, kind).map(Box::new)
    };
    let left = |it: &Expression| match it {
        Compare(_, left, _) | Both(_, left, _) | Neg(left) => Some((**left).clone()),
        _ => None,
    };
    let right = |it: &Expression| match it {
        Compare(_, _, right) | Both(_, _, right) => Some((**right).clone()),
        _ => None,
    };
    let first = *each.first()?;
    let ids = each.iter().map(|it| match (it, first) {
        (Expression::Fact(of), Expression::Fact(one))
            if (of.name, of.of.kind) == (one.name, one.of.kind) =>
        {
            Some(of.of.id)
        }
        _ => None,
    });
    match first {
        Compare(comparison, ..) => Some(Compare(*comparison, inner(&left)?, inner(&right)?)),
        Both(operator, ..) => Some(Both(*operator, inner(&left)?, inner(&right)?)),
        Neg(_) => Some(Neg(inner(&left)?)),
        Expression::Fact(Fact { name, of: Entity { kind: own, .. } })
            if *own == kind
                && *name != FactName::Variable
                && ids.collect::<Option<Vec<u8>>>().as_deref() == Some(all) =>
        {
            Some(Any(*name, kind))
        }
        _ => each.iter().all(|it| *it == first).then(|| first.clone()),
    }
}

/// A comparison; beside an alpha-count numbers are 256ths.
fn compared(comparison: Comparison, left: &Expression, right: &Expression) -> Option<String> {
    let is_alpha = |side: &Expression| match side {
        Expression::Fact(Fact { name, .. }) | Any(name, _) => *name == FactName::Alpha,
        _ => false,
    };
    let has_alpha = is_alpha(left) || is_alpha(right);
    let side = |side: &Expression| match side {
        Number(parts) if has_alpha => u32::try_from(*parts).ok().map(decimal),
        Both('*', inner, scale) if has_alpha && **scale == Number(256) => inner.sum(),
        _ if has_alpha && !is_alpha(side) => None,
        _ => side.sum(),
    };
    Some(format!("{} {} {}", side(left)?, comparison.as_str(), side(right)?))
}
