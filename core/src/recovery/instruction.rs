//! One word of an image, and what it means.
//!
//! ```text
//!   0        1        2                 4                                   8
//!   ├────────┼────────┼─────────────────┼───────────────────────────────────┤
//!   │ op u8  │ kind u8│ a u16           │ b i32                             │   little-endian
//!   └────────┴────────┴─────────────────┴───────────────────────────────────┘
//!   target:            mode │ kind << 8   entity or set
//! ```
//!
//! A [`Word`] is bytes, an [`Instruction`] is meaning. Each meaning has one form: a word with
//! anything in a field that its op leaves empty does not decode.

use super::op::{
    Algorithm, Comparison, FactName, Fallback, Kind, Op, Role, Status, TimeoutName, Verb,
};

/// Eight bytes of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Word {
    /// The operation.
    pub op: u8,
    /// What of it.
    pub kind: u8,
    /// The first operand.
    pub a: u16,
    /// The second operand.
    pub b: i32,
}

impl Word {
    /// The length in bytes.
    pub const LEN: usize = 8;

    /// The word as bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        let ([a0, a1], [b0, b1, b2, b3]) = (self.a.to_le_bytes(), self.b.to_le_bytes());
        [self.op, self.kind, a0, a1, b0, b1, b2, b3]
    }

    /// The word that [`Self::to_bytes`] wrote.
    #[must_use]
    pub const fn from_bytes([op, kind, a0, a1, b0, b1, b2, b3]: [u8; Self::LEN]) -> Self {
        Self { op, kind, a: u16::from_le_bytes([a0, a1]), b: i32::from_le_bytes([b0, b1, b2, b3]) }
    }
}

/// A task, a group or a node, by its number in the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entity {
    /// What it is.
    pub kind: Kind,
    /// Its number.
    pub id: u8,
}

/// What a status is asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// One entity.
    One(Entity),
    /// Some entity of the kind.
    Any(Kind),
}

/// What an action is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// One entity.
    One(Entity),
    /// `@k`: the set that an atom kept.
    Set(u8),
    /// `~k`: what of the atom's own scope did not satisfy it.
    Rest(u8),
    /// `G$k`: the groups of what it kept.
    Groups(u8),
    /// `$k`, `N$k`: the nodes of what it kept.
    Nodes(u8),
}

impl Target {
    const fn operands(self) -> (u16, i32) {
        match self {
            Self::One(Entity { kind, id }) => ((kind as u16) << 8, id as i32),
            Self::Set(set) => (1, set as i32),
            Self::Rest(set) => (2, set as i32),
            Self::Groups(set) => (3, set as i32),
            Self::Nodes(set) => (4, set as i32),
        }
    }

    fn from_operands(a: u16, b: i32) -> Option<Self> {
        let [mode, kind] = a.to_le_bytes();
        let number = u8::try_from(b).ok()?;
        match mode {
            0 => Some(Self::One(Entity { kind: Kind::from_code(kind)?, id: number })),
            1 => Some(Self::Set(number)),
            2 => Some(Self::Rest(number)),
            3 => Some(Self::Groups(number)),
            4 => Some(Self::Nodes(number)),
            _ => None,
        }
    }
}

/// A number that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fact {
    /// Which number.
    pub name: FactName,
    /// Of which entity; the number of a variable is that of a task.
    pub of: Entity,
}

/// What a section stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Depth {
    /// In the script: it begins with empty sets.
    Top,
    /// In the arm of another section, whose sets stay.
    Nested,
}

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are named by what they hold; the layout is above")]
pub enum Instruction {
    Role { node: u8, role: Role },
    Fallback(Fallback),
    Timeout { name: TimeoutName, us: u32 },
    Task { task: u8, node: u8, index: u8, name: u16 },
    Group { group: u8, name: u16 },
    Member { group: u8, task: u8 },
    Alpha { task: u8, threshold: u16, factor: u16 },
    AlphaPeriod { task: u8, ms: u32 },
    Watchdog { number: u8, task: u8, us: u32 },
    Voting { number: u8, algorithm: Algorithm },
    Within { number: u8, distance: u32 },
    OnSuccess { number: u8, task: u8 },
    OnError { number: u8, task: u8 },
    Version { number: u8, task: u8, us: u32 },
    Code,
    Section { number: u16, depth: Depth, end: u16 },
    Test { status: Status, of: Subject, set: Option<u8> },
    Push(i32),
    Load(Fact),
    Store(u8),
    Add,
    Sub,
    Mul,
    Div,
    Neg,
    Compare(Comparison),
    And,
    Or,
    Not,
    JumpIfFalse(u16),
    Jump(u16),
    Act { verb: Verb, target: Target },
    ActWarn(Target),
    Send(Target),
    Warn(Target),
    WarnOf(Target),
    Purge(Target),
    PurgeCount(Target),
    Clear(Target),
    Call { name: u16, args: u8 },
    Log { text: u16, values: u8 },
    Pause { ms: u32, end: u16 },
    End,
}

/// In the place of a set: none is kept.
const NO_SET: u8 = 0xFF;
/// In the kind of a TEST: any entity of the kind.
const ANY: u8 = 0x80;

#[expect(clippy::cast_possible_wrap, reason = "bits of an unsigned operand, kept as they are")]
const fn bits(number: u32) -> i32 {
    number as i32
}

#[expect(clippy::cast_sign_loss, reason = "bits of an unsigned operand, kept as they are")]
const fn unsigned(bits: i32) -> u32 {
    bits as u32
}

const fn word(op: Op, kind: u8, a: u16, b: i32) -> Word {
    Word { op: op.code(), kind, a, b }
}

const fn aimed(op: Op, kind: u8, target: Target) -> Word {
    let (a, b) = target.operands();
    word(op, kind, a, b)
}

impl Instruction {
    /// Its only form.
    #[must_use]
    pub const fn encode(self) -> Word {
        match self {
            Self::Role { node, role } => word(Op::Role, role.code(), node as u16, 0),
            Self::Fallback(fallback) => word(Op::Fallback, fallback.code(), 0, 0),
            Self::Timeout { name, us } => word(Op::Timeout, name.code(), 0, bits(us)),
            Self::Task { task, node, index, name } => {
                word(Op::Task, node, task as u16, index as i32 | (name as i32) << 8)
            }
            Self::Group { group, name } => word(Op::Member, 1, group as u16, name as i32),
            Self::Member { group, task } => word(Op::Member, 0, group as u16, task as i32),
            Self::Alpha { task, threshold, factor } => {
                word(Op::Alpha, 0, task as u16, bits(threshold as u32 | (factor as u32) << 16))
            }
            Self::AlphaPeriod { task, ms } => word(Op::Alpha, 1, task as u16, bits(ms)),
            Self::Watchdog { number, task, us } => {
                word(Op::Watchdog, number, task as u16, bits(us))
            }
            Self::Voting { number, algorithm } => {
                word(Op::Nversion, number, 0, algorithm.code() as i32)
            }
            Self::Within { number, distance } => word(Op::Nversion, number, 1, bits(distance)),
            Self::OnSuccess { number, task } => word(Op::Nversion, number, 2, task as i32),
            Self::OnError { number, task } => word(Op::Nversion, number, 3, task as i32),
            Self::Version { number, task, us } => word(Op::Version, number, task as u16, bits(us)),
            Self::Code => word(Op::Code, 0, 0, 0),
            _ => self.encode_code(),
        }
    }

    const fn encode_code(self) -> Word {
        match self {
            Self::Section { number, depth, end } => {
                word(Op::Section, matches!(depth, Depth::Nested) as u8, number, end as i32)
            }
            Self::Test { status, of, set } => {
                let set = match set {
                    Some(set) => set,
                    None => NO_SET,
                };
                let (kind, id) = match of {
                    Subject::One(Entity { kind, id }) => (kind.code(), id as i32),
                    Subject::Any(kind) => (kind.code() | ANY, 0),
                };
                word(Op::Test, kind, status.code() as u16 | (set as u16) << 8, id)
            }
            Self::Push(number) => word(Op::Push, 0, 0, number),
            Self::Load(Fact { name, of: Entity { kind, id } }) => {
                word(Op::Load, name.code(), kind.code() as u16, id as i32)
            }
            Self::Store(variable) => word(Op::Store, 0, variable as u16, 0),
            Self::Compare(comparison) => word(Op::Compare, comparison.code(), 0, 0),
            Self::JumpIfFalse(to) => word(Op::JumpIfFalse, 0, 0, to as i32),
            Self::Jump(to) => word(Op::Jump, 0, 0, to as i32),
            Self::Act { verb, target } => aimed(Op::Act, verb.code(), target),
            Self::ActWarn(target) => aimed(Op::ActWarn, 0, target),
            Self::Send(target) => aimed(Op::Send, 0, target),
            Self::Warn(target) => aimed(Op::Notice, 0, target),
            Self::WarnOf(target) => aimed(Op::Notice, 1, target),
            Self::Purge(target) => aimed(Op::Purge, 0, target),
            Self::PurgeCount(target) => aimed(Op::Purge, 1, target),
            Self::Clear(target) => aimed(Op::Clear, 0, target),
            Self::Call { name, args } => word(Op::Call, args, name, 0),
            Self::Log { text, values } => word(Op::Log, values, text, 0),
            Self::Pause { ms, end } => word(Op::Pause, 0, end, bits(ms)),
            Self::Add => word(Op::Add, 0, 0, 0),
            Self::Sub => word(Op::Sub, 0, 0, 0),
            Self::Mul => word(Op::Mul, 0, 0, 0),
            Self::Div => word(Op::Div, 0, 0, 0),
            Self::Neg => word(Op::Neg, 0, 0, 0),
            Self::And => word(Op::And, 0, 0, 0),
            Self::Or => word(Op::Or, 0, 0, 0),
            Self::Not => word(Op::Not, 0, 0, 0),
            _ => word(Op::End, 0, 0, 0),
        }
    }

    /// What `word` means; none if it is not the form of anything.
    #[must_use]
    pub fn decode(word: Word) -> Option<Self> {
        Self::decode_known(word).filter(|meaning| meaning.encode() == word)
    }

    /// What a word means that [`Self::decode`] has accepted before.
    #[inline]
    pub(super) fn decode_known(word: Word) -> Option<Self> {
        let op = Op::from_code(word.op)?;
        if op <= Op::Code {
            Self::decode_declaration(op, word)
        } else {
            Self::decode_code(op, word)
        }
    }

    fn decode_declaration(op: Op, Word { kind, a, b, .. }: Word) -> Option<Self> {
        let low = || u8::try_from(a).ok();
        let id = || u8::try_from(b).ok();
        Some(match op {
            Op::Role => Self::Role { node: low()?, role: Role::from_code(kind)? },
            Op::Fallback => Self::Fallback(Fallback::from_code(kind)?),
            Op::Timeout => Self::Timeout { name: TimeoutName::from_code(kind)?, us: unsigned(b) },
            Op::Task => {
                let [index, name0, name1, _] = b.to_le_bytes();
                let name = u16::from_le_bytes([name0, name1]);
                Self::Task { task: low()?, node: kind, index, name }
            }
            Op::Member if kind == 0 => Self::Member { group: low()?, task: id()? },
            Op::Member => Self::Group { group: low()?, name: u16::try_from(b).ok()? },
            Op::Alpha if kind == 0 => {
                let [t0, t1, f0, f1] = b.to_le_bytes();
                let threshold = u16::from_le_bytes([t0, t1]);
                Self::Alpha { task: low()?, threshold, factor: u16::from_le_bytes([f0, f1]) }
            }
            Op::Alpha => Self::AlphaPeriod { task: low()?, ms: unsigned(b) },
            Op::Watchdog => Self::Watchdog { number: kind, task: low()?, us: unsigned(b) },
            Op::Nversion => match a {
                0 => Self::Voting { number: kind, algorithm: Algorithm::from_code(id()?)? },
                1 => Self::Within { number: kind, distance: unsigned(b) },
                2 => Self::OnSuccess { number: kind, task: id()? },
                _ => Self::OnError { number: kind, task: id()? },
            },
            Op::Version => Self::Version { number: kind, task: low()?, us: unsigned(b) },
            _ => Self::Code,
        })
    }

    #[inline]
    fn decode_code(op: Op, word: Word) -> Option<Self> {
        let Word { kind, a, b, .. } = word;
        let target = || Target::from_operands(a, b);
        let place = || u16::try_from(b).ok();
        Some(match op {
            Op::Section => {
                let depth = if kind == 0 { Depth::Top } else { Depth::Nested };
                Self::Section { number: a, depth, end: place()? }
            }
            Op::Test => Self::decode_test(word)?,
            Op::Push => Self::Push(b),
            Op::Load => {
                let name = FactName::from_code(kind)?;
                let kind = Kind::from_code(u8::try_from(a).ok()?)?;
                Self::Load(Fact { name, of: Entity { kind, id: u8::try_from(b).ok()? } })
            }
            Op::Store => Self::Store(u8::try_from(a).ok()?),
            Op::Add => Self::Add,
            Op::Sub => Self::Sub,
            Op::Mul => Self::Mul,
            Op::Div => Self::Div,
            Op::Neg => Self::Neg,
            Op::Compare => Self::Compare(Comparison::from_code(kind)?),
            Op::And => Self::And,
            Op::Or => Self::Or,
            Op::Not => Self::Not,
            Op::JumpIfFalse => Self::JumpIfFalse(place()?),
            Op::Jump => Self::Jump(place()?),
            Op::Act => Self::Act { verb: Verb::from_code(kind)?, target: target()? },
            Op::ActWarn => Self::ActWarn(target()?),
            Op::Send => Self::Send(target()?),
            Op::Notice if kind == 0 => Self::Warn(target()?),
            Op::Notice => Self::WarnOf(target()?),
            Op::Purge if kind == 0 => Self::Purge(target()?),
            Op::Purge => Self::PurgeCount(target()?),
            Op::Clear => Self::Clear(target()?),
            Op::Call => Self::Call { name: a, args: kind },
            Op::Log => Self::Log { text: a, values: kind },
            Op::Pause => Self::Pause { ms: unsigned(b), end: a },
            _ => Self::End,
        })
    }

    fn decode_test(Word { kind, a, b, .. }: Word) -> Option<Self> {
        let [status, set] = a.to_le_bytes();
        let of = match (Kind::from_code(kind & !ANY)?, kind & ANY) {
            (kind, 0) => Subject::One(Entity { kind, id: u8::try_from(b).ok()? }),
            (kind, _) => Subject::Any(kind),
        };
        let set = (set != NO_SET).then_some(set);
        Some(Self::Test { status: Status::from_code(status)?, of, set })
    }
}

/// An entity as a number on the stack: what `ERR n e WARN w` names.
impl Entity {
    /// The number.
    #[must_use]
    pub const fn to_number(self) -> i32 {
        (self.kind as i32) << 8 | self.id as i32
    }

    /// The entity of a number that [`Self::to_number`] made.
    #[must_use]
    pub fn from_number(number: i32) -> Option<Self> {
        let [id, kind] = u16::try_from(number).ok()?.to_le_bytes();
        Some(Self { kind: Kind::from_code(kind)?, id })
    }
}
