//! The syntax tree: what a script says, before names are resolved.

use weft_core::recovery::{Algorithm, Comparison, Fallback, Kind, Role, Status, TimeoutName, Verb};

use crate::source::Span;

/// A value and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At<T> {
    /// The value.
    pub(crate) it: T,
    /// Where it stands.
    pub(crate) span: Span,
}

/// A number of the script: written, or the name of a CONST or of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// Written.
    Written(u32),
    /// `{NAME}`.
    Named(String),
}

/// A task, a group or a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntityName {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its number; none for a wildcard.
    pub(crate) number: Option<Number>,
}

/// The place of an entity.
pub(crate) type EntityAt = At<EntityName>;

/// What an action is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// A named entity.
    One(EntityName),
    /// `@k`; none for `@@`.
    Set(Option<u32>),
    /// `~k`.
    Rest(Option<u32>),
    /// `G$k`.
    Groups(Option<u32>),
    /// `$k`, `N$k`.
    Nodes(Option<u32>),
}

/// A number to compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    /// A constant.
    Number(At<Number>),
    /// A decimal, in 256ths.
    Decimal(At<u32>),
    /// A variable.
    Variable(At<u8>),
    /// A number of an entity.
    Fact(weft_core::recovery::FactName, EntityAt),
    /// Negated.
    Neg(Box<Self>, Span),
    /// Two of them.
    Both(char, Box<Self>, Box<Self>, Span),
}

impl Sum {
    /// Where it stands; of a fact, where its entity does.
    pub(crate) fn span(&self) -> Span {
        match self {
            Self::Number(At { span, .. })
            | Self::Decimal(At { span, .. })
            | Self::Variable(At { span, .. })
            | Self::Fact(_, At { span, .. })
            | Self::Neg(_, span)
            | Self::Both(.., span) => span.clone(),
        }
    }
}

/// A guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// `status entity`.
    Atom(Status, EntityAt),
    /// Two numbers.
    Compare(Comparison, Sum, Sum),
    /// `IS_MANAGER(N)`.
    IsManager(EntityAt),
    /// Not.
    Not(Box<Self>),
    /// Both.
    And(Box<Self>, Box<Self>),
    /// One of them.
    Or(Box<Self>, Box<Self>),
}

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Change { verb: Verb, aim: At<Aim>, warn: Option<At<Aim>> },
    Send { value: Sum, aim: At<Aim> },
    Warn(At<Aim>),
    WarnOf { error: Sum, about: EntityAt, aim: At<Aim> },
    Purge { count: Option<Sum>, aim: At<Aim> },
    Clear(At<Aim>),
    Let { variable: u8, value: Sum },
    Log { text: At<String>, values: Vec<Sum> },
    Call { name: At<String>, args: Vec<Sum> },
    Pause { ms: u32 },
    Section(Section),
}

/// A guard and what is done when it holds; ELSE has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arm {
    /// The guard.
    pub(crate) guard: Option<At<Guard>>,
    /// The actions.
    pub(crate) actions: Vec<At<Action>>,
    /// The word that begins it: IF, ELIF, ELSE, or WATCHDOG.
    pub(crate) begin: Span,
}

/// IF … FI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The arms in their order.
    pub(crate) arms: Vec<Arm>,
}

/// A version of an N-version task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskVersion {
    /// Which version, from 1.
    pub(crate) number: At<u32>,
    /// The task that votes.
    pub(crate) task: EntityAt,
    /// How long a round waits for it, in µs.
    pub(crate) us: u64,
}

/// A statement of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    Define {
        nodes: Vec<(u32, u32)>,
        role: Role,
    },
    Default(Fallback),
    Nprocs(Number),
    Numtasks {
        node: Number,
        count: Number,
    },
    Timeout {
        name: TimeoutName,
        us: u64,
    },
    Const {
        name: String,
        value: u32,
    },
    Task {
        numbers: (u32, u32),
        name: At<String>,
        node: Number,
        index: Option<Number>,
    },
    Logical {
        group: u32,
        name: At<String>,
        tasks: Vec<At<Number>>,
    },
    Alpha {
        task: EntityAt,
        threshold: u32,
        factor: u32,
        ms: u64,
    },
    Watchdog {
        number: u32,
        task: EntityAt,
        us: u64,
        actions: Section,
    },
    Nversion {
        number: u32,
        versions: Vec<TaskVersion>,
        algorithm: Option<Algorithm>,
        within: Option<u32>,
        on_success: Option<EntityAt>,
        on_error: Option<EntityAt>,
    },
    Section(Section),
}
