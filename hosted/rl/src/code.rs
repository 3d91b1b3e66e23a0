//! The codes of diagnostics: stable, each with an explanation.
//!
//! RL01xx words, RL02xx syntax, RL03xx names, RL04xx meaning, RL05xx the cluster, RL06xx
//! scenarios, RL09xx lints.

macro_rules! diagnostic_codes {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        /// The code of a diagnostic.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each is explained by its text")]
        pub enum DiagnosticCode { $($name,)* }

        impl DiagnosticCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// As it is shown: `RL0207`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// What it means and what to do.
            #[must_use]
            pub const fn explanation(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

diagnostic_codes! {
    Character = "RL0101",
        "A character that no word of the language begins with. Outside of strings and \
         comments a script has letters, digits and the signs of its operators, in ASCII.";
    Text = "RL0102",
        "A string ends at its second quotation mark, on the same line, and has at most 64 \
         bytes and no control character.";
    Number = "RL0103",
        "Integers go to 2147483647; decimals have at most three places and are written \
         where a threshold, a factor or an alpha-count stands.";
    File = "RL0104",
        "A script is a text in UTF-8 of at most 64 KiB, without NUL. An empty one is \
         refused: it names no manager.";
    Name = "RL0105",
        "A name has 1 to 32 letters, digits and underscores, that of a task or a group hyphens, \
         too. `T{…}` names a task without a hyphen.";
    Expected = "RL0201",
        "The grammar asks for something else at this place. `weft rl reference` prints the \
         grammar.";
    Statement = "RL0202",
        "No statement and no action begins with this word.";
    Unclosed = "RL0203",
        "A bracket, an IF or a declaration is not closed: `[` by `]`, IF by FI, LOGICAL, \
         ALPHACOUNT, WATCHDOG and N-VERSION by END.";
    Nesting = "RL0206",
        "Sections are nested at most 8 deep, guards and sums at most 24, \
         with at most 64 terms in a row.";
    Mixed = "RL0207",
        "AND and OR need parentheses where they are mixed. The original language gives both \
         the same precedence, most others do not; so the script must say which is meant.";
    Duration = "RL0208",
        "A duration is an integer and a unit: `10 MS`, `2 S`, `500 US`.";
    Unknown = "RL0301",
        "No CONST and no task of the script has this name.";
    Undeclared = "RL0302",
        "A task, a group or a node of this number is not declared.";
    Twice = "RL0303",
        "What may stand once stands twice: a number, the name of a task or a group, what a number \
         stands for, or a property. Both places are shown.";
    Include = "RL0304",
        "An included script must be readable, must not include itself, and stands at most 4 \
         deep. A script has at most 64 files with all that it includes.";
    Ambiguous = "RL0305",
        "A name in `T{…}` that stands for several tasks: it is a CONST and a task, or that of a \
         range of tasks.";
    Limit = "RL0401",
        "The number is beyond its limit.";
    StatusKind = "RL0402",
        "This status or number does not exist for this kind of entity: a node has no \
         watchdog, a task is not rebooted.";
    VerbKind = "RL0403",
        "This action does not exist for this kind of entity. A node is restarted, isolated \
         and released; tasks and groups are started and stopped as well.";
    NoSet = "RL0404",
        "`@k`, `~k` and `$k` name the k-th status atom of the section, counted from 1 in \
         the order of the text. The atom must stand before the action, and the section must \
         have so many.";
    Negated = "RL0405",
        "An atom under NOT keeps no set: what satisfies it is what does not satisfy the \
         guard. Write the atom without NOT, and `~k` for the rest of its wildcard.";
    Complement = "RL0406",
        "`~k` is the complement within the atom's own wildcard or group. An atom about a \
         single task or node has none.";
    Above = "RL0407",
        "`$k` names the nodes of the tasks, `G$k` their groups. Nothing is above a node.";
    Wildcard = "RL0408",
        "A wildcard has a kind: `T*`, `G*` or `N*`.";
    Paused = "RL0409",
        "What stands behind a PAUSE runs later, when the sets are gone: only actions on \
         named entities stand there, and no section.";
    Managers = "RL0410",
        "Exactly one node is the manager, and each node has one role.";
    NoAlpha = "RL0411",
        "TRANSIENT and ALPHA need an ALPHACOUNT of the task.";
    Versions = "RL0413",
        "An N-version task has 2 to 8 versions, numbered from 1, and one voting algorithm. \
         MEDIAN and both averages are for numbers alone, so no version may vote by digest.";
    Deadlocked = "RL0414",
        "DEADLOCKED is a stub in the original: no fact says that two tasks wait for each \
         other. Let the tasks report an error instead.";
    TooLarge = "RL0415",
        "A script has at most 3000 words of code and declarations, 2 KiB of strings, 32 \
         sets that are used in a section, and 32 jumps ahead.";
    Variable = "RL0417",
        "There are 26 variables, A to Z.";
    Metric = "RL0418",
        "A metric is a distance: `METRIC WITHIN 5`. Functions of the application cannot be \
         named.";
    AlphaAlone = "RL0419",
        "An alpha-count has places after the point, all other numbers have none. So it is only \
         compared, alone on its side: `ALPHA(T3) >= 2`, `ALPHA(T3) >= 2.5`, `ALPHA(T3) > VAL(A)`.";
    Constant = "RL0420",
        "A constant expression that divides by zero, or goes beyond 2147483647. In a running \
         cluster it would end the section.";
    ClusterNode = "RL0501",
        "The cluster has another number of nodes. A cluster has 2 to 32 of them.";
    ClusterTask = "RL0502",
        "The cluster file gives this task to no such node, gives the node fewer tasks, or has \
         another task at this place.";
    ClusterRole = "RL0503",
        "The cluster file gives the nodes other roles. Both must agree, or only one of them \
         gives roles.";
    ClusterTiming = "RL0504",
        "The values of the timing must keep the rules of the DIR net (G-4), and agree with \
         `[dirnet.timing]`. The rule that is broken is named.";
    ClusterCall = "RL0505",
        "CALL runs a program that `[recovery.calls]` in the cluster file names.";
    ClusterBeat = "RL0506",
        "The task has `beat_ms` in the cluster file; its heartbeats are watched there.";
    ScenarioLine = "RL0601",
        "A line of a scenario is `nodes`, `task`, `at`, `expect` or `until`, in lower case, in \
         one of the forms that `weft rl reference` shows.";
    ScenarioName = "RL0602",
        "The script declares no such task, or the scenario has no such node.";
    ScenarioTime = "RL0603",
        "The events of a scenario stand in the order of their times, `until` is its last moment, \
         and it ends within 10 minutes.";
    ScenarioCluster = "RL0604",
        "Nodes and tasks of a scenario are those of the script: as many nodes as have a role, 2 \
         to 7, tasks on the nodes of their TASK, and heartbeats where a WATCHDOG is.";
    LintUnused = "RL0901",
        "A CONST, a LOGICAL or an ALPHACOUNT that nothing in the script uses.";
    LintUnreachable = "RL0902",
        "The guard compares constants, or an arm above has the same guard or always holds: what \
         stands in this arm is never done.";
    LintSuperseded = "RL0903",
        "In one evaluation the first order about an entity stands, and later ones are dropped. \
         Two orders for the same target in one list are one order, unless a PAUSE stands between.";
    LintThreshold = "RL0904",
        "One error adds 1 to the alpha-count, so below a threshold of at most 1 it never is \
         when the task is faulty.";
    LintUnanswered = "RL0905",
        "Neither a section nor a DEFAULT says what is done about errors of this task. Without a \
         DEFAULT the built-in strategy answers them; `DEFAULT = BUILTIN` says that this is meant.";
    LintRestartNode = "RL0906",
        "RESTART of a node fences it everywhere and resets it. An order about the manager's \
         own node is refused.";
    LintRole = "RL0907",
        "Some nodes have a role and others have none. Those are backups.";
    LintNever = "RL0908",
        "The guard asks for what never is, or always: FIRED of what no WATCHDOG watches, or a \
         number that the fact cannot be. ERRN is at least 0, ERRT 0 to 65535, PHASE 0 to 255.";
    LintEmpty = "RL0909",
        "An arm or a WATCHDOG without actions. It answers no error; DEFAULT does.";
    LintOwnNode = "RL0910",
        "The node begins as the manager, and a manager's order about its own node is refused and \
         counted. It stands once another node manages.";
}

impl DiagnosticCode {
    /// Whether it is a warning.
    #[must_use]
    pub const fn is_lint(self) -> bool {
        matches!(
            self,
            Self::LintUnused
                | Self::LintUnreachable
                | Self::LintSuperseded
                | Self::LintThreshold
                | Self::LintUnanswered
                | Self::LintRestartNode
                | Self::LintRole
                | Self::LintNever
                | Self::LintEmpty
                | Self::LintOwnNode
        )
    }

    /// The code that is written so, in any case.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str().eq_ignore_ascii_case(text))
    }
}
