//! The words of the bytecode: every code that stands in an image, with the name that the language
//! gives it.
//!
//! A code that is not listed here does not decode; the verifier refuses the image that has it.

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $code:literal $text:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$variant_doc])* $variant = $code,)* }

        impl $name {
            /// Every one, in the order of the codes.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The one that `code` stands for.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            /// The code in an image.
            #[must_use]
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The name in the language.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    /// The first byte of a word. Up to [`Op::Code`] a word declares; behind it, it is executed.
    Op {
        /// The role of a node.
        Role = 1 "ROLE",
        /// What answers an error that no section answered.
        Fallback = 2 "DEFACT",
        /// A value of the DIR net's timing.
        Timeout = 3 "TIMEOUT",
        /// A task.
        Task = 4 "TASK",
        /// A group, or a member of it.
        Member = 5 "MEMBER",
        /// The alpha-count of a task.
        Alpha = 6 "ALPHA",
        /// The watchdog of a task.
        Watchdog = 7 "WDOG",
        /// A property of an N-version task.
        Nversion = 8 "NVP",
        /// One version of an N-version task.
        Version = 9 "VERSION",
        /// The rest is executed.
        Code = 10 "CODE",
        /// A section begins; one at the top level clears the sets.
        Section = 16 "SECTION",
        /// Pushes whether a status holds, and keeps the set that satisfies it.
        Test = 17 "TEST",
        /// Pushes a number.
        Push = 18 "PUSH",
        /// Pushes a fact.
        Load = 19 "LD",
        /// Pops a variable's value.
        Store = 20 "ST",
        /// Checked addition.
        Add = 21 "ADD",
        /// Checked subtraction.
        Sub = 22 "SUB",
        /// Checked multiplication.
        Mul = 23 "MUL",
        /// Checked division.
        Div = 24 "DIV",
        /// Checked negation.
        Neg = 25 "NEG",
        /// Compares the two numbers on top.
        Compare = 26 "CMP",
        /// Both are true.
        And = 27 "AND",
        /// One is true.
        Or = 28 "OR",
        /// The top is false.
        Not = 29 "NOT",
        /// Jumps forward if the top is false.
        JumpIfFalse = 30 "JF",
        /// Jumps forward.
        Jump = 31 "JMP",
        /// Orders a change of state.
        Act = 32 "ACT",
        /// Notifies of the `ACT` before it.
        ActWarn = 33 "ACTWARN",
        /// Sends an integer.
        Send = 34 "SEND",
        /// Sends a notice.
        Notice = 35 "NOTICE",
        /// Answers errors without an action.
        Purge = 36 "PURGE",
        /// Resets the counts of a task.
        Clear = 37 "CLEAR",
        /// Runs a program.
        Call = 38 "CALL",
        /// Writes to the chronicle.
        Log = 39 "LOG",
        /// The rest of the list runs later.
        Pause = 40 "PAUSE",
        /// The evaluation ends.
        End = 41 "END",
    }
}

codes! {
    /// A kind of entity.
    Kind {
        /// A task.
        Task = 0 "T",
        /// A group of tasks.
        Group = 1 "G",
        /// A node.
        Node = 2 "N",
    }
}

codes! {
    /// The role that a script gives a node.
    Role {
        /// Decides.
        Manager = 0 "MANAGER",
        /// May succeed the manager.
        Backup = 1 "BACKUP",
        /// Never succeeds.
        Agent = 2 "AGENT",
    }
}

codes! {
    /// What answers an error that no section answered.
    Fallback {
        /// The strategy of the house.
        Builtin = 0 "BUILTIN",
        /// The task is restarted.
        Restart = 1 "RESTART",
        /// The task is stopped.
        Kill = 2 "KILL",
        /// The error counts as answered.
        Nothing = 3 "NOTHING",
    }
}

codes! {
    /// A value of the DIR net's timing that a script may set.
    TimeoutName {
        /// S.
        Send = 0 "send",
        /// R.
        Receive = 1 "receive",
        /// C.
        Clear = 2 "clear",
        /// A.
        Alarm = 3 "alarm",
        /// W.
        Window = 4 "window",
        /// MID.
        Candidate = 5 "candidate",
        /// JOIN.
        Join = 6 "join",
    }
}

codes! {
    /// A status that a guard asks for.
    Status {
        /// It has unanswered errors.
        Faulty = 0 "FAULTY",
        /// It runs; of a node: it is a member.
        Running = 1 "RUNNING",
        /// It waits to be started again.
        Waiting = 2 "WAITING",
        /// It was stopped; of a node: it was removed.
        Killed = 3 "KILLED",
        /// It is isolated.
        Isolated = 4 "ISOLATED",
        /// It has ended by itself, with success.
        Finished = 5 "FINISHED",
        /// It runs or waits; of a node: it is a member.
        Present = 6 "PRESENT",
        /// It was started at all.
        Started = 7 "STARTED",
        /// It was started again since it was cleared.
        Restarted = 8 "RESTARTED",
        /// The node is a member in a later boot.
        Rebooted = 9 "REBOOTED",
        /// It is faulty, and its alpha-count is below the threshold.
        Transient = 10 "TRANSIENT",
        /// Its watchdog fired, and no order has answered that.
        Fired = 11 "FIRED",
    }
}

impl Status {
    /// Whether `kind` can have it.
    #[must_use]
    pub const fn is_of(self, kind: Kind) -> bool {
        match self {
            Self::Faulty | Self::Running | Self::Killed | Self::Isolated | Self::Present => true,
            Self::Rebooted => matches!(kind, Kind::Node),
            Self::Waiting
            | Self::Finished
            | Self::Started
            | Self::Restarted
            | Self::Transient
            | Self::Fired => !matches!(kind, Kind::Node),
        }
    }

    /// Whether one task of a group is enough; otherwise all must have it.
    #[must_use]
    pub const fn needs_one(self) -> bool {
        matches!(self, Self::Faulty | Self::Started | Self::Restarted | Self::Fired)
    }
}

codes! {
    /// A relation between two numbers.
    Comparison {
        /// Equal.
        Equal = 0 "==",
        /// Not equal.
        NotEqual = 1 "!=",
        /// Less.
        Less = 2 "<",
        /// At most.
        AtMost = 3 "<=",
        /// Greater.
        Greater = 4 ">",
        /// At least.
        AtLeast = 5 ">=",
    }
}

impl Comparison {
    /// Whether `left` stands in this relation to `right`.
    #[must_use]
    pub const fn holds(self, left: i32, right: i32) -> bool {
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
        }
    }
}

codes! {
    /// An order that changes the state of an entity.
    Verb {
        /// Starts a task that waits, was stopped or has finished.
        Start = 0 "START",
        /// Restarts a task; fences a node everywhere and resets it.
        Restart = 1 "RESTART",
        /// Ends a task and leaves it.
        Stop = 2 "STOP",
        /// Isolates a task or a node.
        Isolate = 3 "ISOLATE",
        /// Ends an isolation.
        Release = 4 "RELEASE",
    }
}

impl Verb {
    /// Whether it can be ordered of `kind`.
    #[must_use]
    pub const fn is_of(self, kind: Kind) -> bool {
        match self {
            Self::Start | Self::Stop => !matches!(kind, Kind::Node),
            Self::Restart | Self::Isolate | Self::Release => true,
        }
    }
}

codes! {
    /// How the votes of the versions become one outcome.
    Algorithm {
        /// More than half of all versions agree.
        Majority = 0 "MAJORITY",
        /// More than half of those that voted agree.
        SimpleMajority = 1 "SIMPLE MAJORITY",
        /// Most agree, without a tie.
        Plurality = 2 "PLURALITY",
        /// The middle number.
        Median = 3 "MEDIAN",
        /// The mean of the numbers.
        Average = 4 "AVERAGE",
        /// The mean, weighted by inverse distance.
        WeightedAverage = 5 "WEIGHTED AVERAGE",
    }
}

codes! {
    /// A number that a guard or an assignment reads.
    FactName {
        /// How many errors it has had.
        ErrorCount = 0 "ERRN",
        /// The kind of its last error.
        ErrorKind = 1 "ERRT",
        /// Its alpha-count, in 256ths.
        Alpha = 2 "ALPHA",
        /// The phase that the task reported.
        Phase = 3 "PHASE",
        /// A variable.
        Variable = 4 "VAL",
        /// 1 for the node that manages, else 0.
        IsManager = 5 "IS_MANAGER",
    }
}

impl Algorithm {
    /// Whether it has no outcome for digests.
    #[must_use]
    pub const fn is_for_numbers(self) -> bool {
        matches!(self, Self::Median | Self::Average | Self::WeightedAverage)
    }
}

impl FactName {
    /// Whether it is a number of `kind`. A variable belongs to none and is written as a task's.
    #[must_use]
    pub const fn is_of(self, kind: Kind) -> bool {
        match self {
            Self::ErrorCount | Self::ErrorKind => true,
            Self::Alpha | Self::Phase | Self::Variable => matches!(kind, Kind::Task),
            Self::IsManager => matches!(kind, Kind::Node),
        }
    }
}
