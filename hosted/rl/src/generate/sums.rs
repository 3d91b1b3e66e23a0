//! Numbers: constants, which are computed here, what is read, and alpha-counts.
//!
//! ```text
//!   ERRN(T3) + 1 > 2      whole numbers: as they are written
//!   ALPHA(T3) >= 2        an alpha-count has 256ths: the other side is pushed as 512
//!   ALPHA(T3) >= VAL(A)   or multiplied by 256 when it is read
//! ```
//!
//! An alpha-count stands alone on a side of a comparison, and a decimal alone beside it, so no
//! number of 256ths is ever taken for a whole one.

use weft_core::recovery::{Comparison, Entity, Fact, FactName, Instruction, Kind};

use super::{Generator, kind_name};
use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::resolve::Names;
use crate::source::Span;
use crate::tree::{EntityAt, Sum};

/// The alpha-count that 256ths have no room for.
const ALPHA_END: i32 = 256;

impl Names<'_> {
    /// The value of a sum of constants; none if it reads something.
    ///
    /// A division by a constant zero is refused whatever is divided: it can only fail.
    pub(crate) fn constant(&self, sum: &Sum) -> Result<Option<i32>, Diagnostic> {
        let refuse = |span: &Span, message: &str, help: &str| {
            Err(Diagnostic::new(Code::Constant, span.clone(), message, help))
        };
        let beyond = "this overflows: integers go to 2147483647";
        match sum {
            Sum::Number(number) => {
                let value = self.value(&number.it, None);
                Ok(value.and_then(|value| i32::try_from(value).ok()))
            }
            Sum::Decimal(_) | Sum::Variable(_) | Sum::Fact(..) => Ok(None),
            Sum::Neg(inner, span) => match self.constant(inner)? {
                Some(i32::MIN) => refuse(span, beyond, "use a smaller number"),
                value => Ok(value.map(|value| -value)),
            },
            Sum::Both(operator, left, right, span) => {
                let (left, right) = (self.constant(left)?, self.constant(right)?);
                if *operator == '/' && right == Some(0) {
                    return refuse(span, "this divides by zero", "divide by another number");
                }
                let Some((left, right)) = left.zip(right) else { return Ok(None) };
                let value = match operator {
                    '+' => left.checked_add(right),
                    '-' => left.checked_sub(right),
                    '*' => left.checked_mul(right),
                    _ => left.checked_div(right),
                };
                if value.is_none() {
                    return refuse(span, beyond, "use smaller numbers");
                }
                Ok(value)
            }
        }
    }
}

/// What one unit of a number on the stack is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    One,
    Part256,
}

impl Generator<'_> {
    pub(super) fn compare(&mut self, comparison: Comparison, left: &Sum, right: &Sum) {
        let is_alpha = |sum: &Sum| matches!(sum, Sum::Fact(FactName::Alpha, _));
        let unit = if is_alpha(left) || is_alpha(right) { Unit::Part256 } else { Unit::One };
        let kinds = [wildcard_of(left), wildcard_of(right)];
        let Some(wildcard) = kinds[0].or(kinds[1]) else {
            self.operand(left, None, unit);
            self.operand(right, None, unit);
            self.emit(Instruction::Compare(comparison));
            return;
        };
        if let [Some(kind), Some(other)] = kinds
            && kind != other
        {
            let message = "two wildcards of different kinds in one comparison";
            self.refuse(Code::Wildcard, &right.span(), message, "name one of the two");
            return;
        }
        // Some entity of the kind satisfies it.
        self.emit(Instruction::Push(0));
        let known = self.wrong.len();
        for id in self.everything(wildcard) {
            self.operand(left, Some(id), unit);
            self.operand(right, Some(id), unit);
            self.emit(Instruction::Compare(comparison));
            self.emit(Instruction::Or);
            if self.wrong.len() > known {
                return;
            }
        }
    }

    /// A side of a comparison onto the stack; a wildcard stands for `any`.
    fn operand(&mut self, sum: &Sum, any: Option<u8>, unit: Unit) {
        match sum {
            _ if unit == Unit::One => self.sum(sum, any),
            Sum::Fact(FactName::Alpha, entity) => self.fact(FactName::Alpha, entity, any),
            Sum::Decimal(parts) => self.alpha_parts(i64::from(parts.it), &parts.span),
            _ => match self.names.constant(sum) {
                Err(wrong) => self.wrong.push(wrong),
                Ok(Some(whole)) => self.alpha_parts(i64::from(whole) * 256, &sum.span()),
                Ok(None) => {
                    self.sum(sum, any);
                    self.emit(Instruction::Push(ALPHA_END));
                    self.emit(Instruction::Mul);
                }
            },
        }
    }

    /// What an alpha-count is compared with, in 256ths.
    fn alpha_parts(&mut self, parts: i64, span: &Span) {
        let is_within = (0..i64::from(ALPHA_END) * 256).contains(&parts);
        let Some(parts) = i32::try_from(parts).ok().filter(|_| is_within) else {
            let message = "an alpha-count is at least 0 and below 256";
            self.refuse(Code::Limit, span, message, "use a value such as 2.5");
            return;
        };
        self.emit(Instruction::Push(parts));
    }

    /// A whole number onto the stack; a wildcard stands for `any`.
    pub(super) fn sum(&mut self, sum: &Sum, any: Option<u8>) {
        if let Err(wrong) = self.names.constant(sum) {
            self.wrong.push(wrong);
            return;
        }
        self.term(sum, any);
    }

    fn term(&mut self, sum: &Sum, any: Option<u8>) {
        match sum {
            Sum::Number(number) => match self.names.value(&number.it, None) {
                Some(value) => self.emit(Instruction::Push(i32::try_from(value).unwrap_or(0))),
                None => self.wrong.push(self.names.unknown(&number.it, number.span.clone())),
            },
            Sum::Decimal(parts) => {
                let message = "only an alpha-count is compared with a decimal";
                self.refuse(Code::Number, &parts.span, message, "write an integer");
            }
            Sum::Variable(variable) => {
                let of = Entity { kind: Kind::Task, id: variable.it };
                self.emit(Instruction::Load(Fact { name: FactName::Variable, of }));
            }
            Sum::Fact(FactName::Alpha, entity) => {
                let message = "an alpha-count can only be compared, alone on its side";
                let help = "ask for it in a guard, as in `ALPHA(T3) >= 2.5`";
                self.refuse(Code::AlphaAlone, &entity.span, message, help);
            }
            Sum::Fact(name, entity) => self.fact(*name, entity, any),
            Sum::Neg(inner, _) => {
                self.term(inner, any);
                self.emit(Instruction::Neg);
            }
            Sum::Both(operator, left, right, _) => {
                self.term(left, any);
                self.term(right, any);
                self.emit(match operator {
                    '+' => Instruction::Add,
                    '-' => Instruction::Sub,
                    '*' => Instruction::Mul,
                    _ => Instruction::Div,
                });
            }
        }
    }

    /// A whole number that is at least `from` and at most `to` if it is a constant.
    pub(super) fn sum_within(&mut self, sum: &Sum, from: i32, to: i32, what: &str) {
        if let Ok(Some(value)) = self.names.constant(sum)
            && !(from..=to).contains(&value)
        {
            let help = match to {
                i32::MAX => format!("use a number of at least {from}"),
                _ => format!("use a number from {from} to {to}"),
            };
            let wrong = Diagnostic::new(Code::Limit, sum.span(), format!("{what} {value}"), help);
            self.wrong.push(wrong);
            return;
        }
        self.sum(sum, None);
    }

    pub(super) fn fact(&mut self, name: FactName, entity: &EntityAt, any: Option<u8>) {
        if self.is_paused {
            self.paused(&entity.span);
            return;
        }
        let kind = entity.it.kind;
        if !name.is_of(kind) {
            let of = if name == FactName::IsManager { "nodes" } else { "tasks" };
            let message =
                format!("{} is for {of}, and this is a {}", name.as_str(), kind_name(kind));
            let help = if name == FactName::IsManager { "name a node" } else { "name a task" };
            self.refuse(Code::StatusKind, &entity.span, message, help);
            return;
        }
        let Some(id) = self.entity(entity) else { return };
        let Some(id) = id.or(any) else {
            let message = "a wildcard stands for no single number here";
            self.refuse(Code::Wildcard, &entity.span, message, "name one entity");
            return;
        };
        if name == FactName::Alpha && !self.names.alphas.contains_key(&id) {
            self.no_alpha(&entity.span);
            return;
        }
        self.emit(Instruction::Load(Fact { name, of: Entity { kind, id } }));
    }
}

/// The kind of the first wildcard of a sum.
fn wildcard_of(sum: &Sum) -> Option<Kind> {
    match sum {
        Sum::Fact(_, entity) if entity.it.number.is_none() => Some(entity.it.kind),
        Sum::Both(_, left, right, _) => wildcard_of(left).or_else(|| wildcard_of(right)),
        Sum::Neg(inner, _) => wildcard_of(inner),
        Sum::Number(_) | Sum::Decimal(_) | Sum::Variable(_) | Sum::Fact(..) => None,
    }
}
