//! Lints: what is right, and probably not meant.
//!
//! They look at scripts that were translated, and are warnings. A lint says nothing where it cannot
//! be sure: RL0902 compares guards as they are written, RL0905 takes a set for all that it may
//! hold.

use std::collections::{BTreeMap, BTreeSet};

use weft_core::recovery::{Comparison, FactName, Kind, Status};

use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::resolve::Names;
use crate::source::Span;
use crate::tree::{Action, Aim, Arm, At, EntityAt, EntityName, Guard, Number, Section};
use crate::tree::{Statement, Sum};

/// What a script uses of its declarations.
#[derive(Default)]
struct Used {
    /// CONSTs, in upper case.
    constants: BTreeSet<String>,
    groups: BTreeSet<u8>,
    /// Tasks whose alpha-count is read.
    alphas: BTreeSet<u8>,
    /// Tasks about which something may be ordered.
    answered: BTreeSet<u8>,
}

struct Linter<'n> {
    names: &'n Names<'n>,
    used: Used,
    found: Vec<Diagnostic>,
}

/// All lints of a script.
pub(crate) fn lint(statements: &[At<Statement>], names: &Names<'_>) -> Vec<Diagnostic> {
    let mut linter = Linter { names, used: Used::default(), found: Vec::new() };
    for statement in statements {
        linter.statement(&statement.it);
    }
    // A declaration may stand behind its use.
    for statement in statements {
        linter.declaration(statement);
    }
    // With a DEFAULT, the script says what is done about the others.
    if names.fallback.is_none() {
        linter.unanswered();
    }
    linter.found
}

impl Linter<'_> {
    fn warn(&mut self, code: Code, span: &Span, message: String, help: &str) {
        self.found.push(Diagnostic::new(code, span.clone(), message, help));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Section(section) => self.section(section, &BTreeMap::new()),
            Statement::Watchdog { task, actions, .. } => {
                self.entity(&task.it);
                self.section(actions, &BTreeMap::new());
            }
            Statement::Nprocs(number) => self.number(number),
            Statement::Numtasks { node, count } => {
                self.number(node);
                self.number(count);
            }
            Statement::Task { node, index, .. } => {
                self.number(node);
                index.iter().for_each(|index| self.number(index));
            }
            Statement::Logical { tasks, .. } => {
                tasks.iter().for_each(|task| self.number(&task.it));
            }
            Statement::Alpha { task, .. } => self.entity(&task.it),
            Statement::Nversion { versions, on_success, on_error, .. } => {
                let versions = versions.iter().map(|version| &version.task);
                let all = versions.chain(on_success).chain(on_error);
                all.for_each(|task| self.entity(&task.it));
            }
            Statement::Define { .. }
            | Statement::Default(_)
            | Statement::Timeout { .. }
            | Statement::Const { .. } => {}
        }
    }

    fn declaration(&mut self, statement: &At<Statement>) {
        let (what, help) = match &statement.it {
            Statement::Const { name, .. }
                if !self.used.constants.contains(&name.to_ascii_uppercase()) =>
            {
                (format!("the constant {name} is never used"), "use it, or remove it")
            }
            Statement::Logical { group, name, .. }
                if !u8::try_from(*group).is_ok_and(|group| self.used.groups.contains(&group)) =>
            {
                (format!("no section uses the group {}", name.it), "use it, or remove it")
            }
            Statement::Alpha { task, .. }
                if self.id(&task.it).is_some_and(|task| !self.used.alphas.contains(&task)) =>
            {
                let help = "ask for TRANSIENT or ALPHA of the task, or remove it";
                ("no guard reads this alpha-count".to_owned(), help)
            }
            _ => return,
        };
        self.warn(Code::LintUnused, &statement.span, what, help);
    }

    /// Errors that neither a section nor a DEFAULT of the script answers.
    fn unanswered(&mut self) {
        for (number, task) in &self.names.tasks {
            if !self.used.answered.contains(number) {
                let message = format!("no section answers errors of {}", task.name);
                let help = "answer them, or say what is done: `DEFAULT = BUILTIN`";
                let span = task.span.clone();
                self.found.push(Diagnostic::new(Code::LintUnanswered, span, message, help));
            }
        }
    }

    fn id(&self, entity: &EntityName) -> Option<u8> {
        let value = self.names.value(entity.number.as_ref()?, Some(entity.kind))?;
        u8::try_from(value).ok()
    }

    fn number(&mut self, number: &Number) {
        if let Number::Named(name) = number {
            self.used.constants.insert(name.to_ascii_uppercase());
        }
    }

    fn entity(&mut self, entity: &EntityName) {
        entity.number.iter().for_each(|number| self.number(number));
        if entity.kind == Kind::Group {
            match self.id(entity) {
                Some(group) => _ = self.used.groups.insert(group),
                None => self.used.groups.extend(self.names.groups.keys()),
            }
        }
    }

    /// The tasks that an entity is, or has; all of them for a wildcard.
    fn tasks(&self, entity: &EntityName) -> Vec<u8> {
        let is_in = |(task, it): &(&u8, &crate::resolve::NamedTask)| match self.id(entity) {
            None => true,
            Some(id) => match entity.kind {
                Kind::Task => **task == id,
                Kind::Node => it.node == id,
                Kind::Group => self.names.groups.get(&id).is_some_and(|(_, of)| of.contains(task)),
            },
        };
        self.names.tasks.iter().filter(is_in).map(|(task, _)| *task).collect()
    }

    /// `ordered`: the named entities of which something is ordered before this section.
    fn section(&mut self, section: &Section, ordered: &BTreeMap<String, Span>) {
        let mut scope = Vec::new();
        // The guards of the arms above, and whether one of them always holds.
        let (mut above, mut is_decided) = (BTreeMap::<String, Span>::new(), false);
        for Arm { guard, actions, begin } in &section.arms {
            if let Some(At { it, span }) = guard {
                let key = self.guard(it, &mut scope);
                let known = constant(it, self.names);
                let help = "correct the guard, or remove this arm";
                if let Some(first) = above.get(&key) {
                    let message = "an arm above has the same guard, so this one is never reached";
                    let wrong = Diagnostic::new(Code::LintUnreachable, span.clone(), message, help);
                    self.found.push(wrong.beside(first.clone(), "it holds here first"));
                } else if is_decided || known == Some(false) {
                    let message = "this arm is never reached".to_owned();
                    self.warn(Code::LintUnreachable, span, message, help);
                }
                above.insert(key, span.clone());
                is_decided |= known == Some(true);
            } else if is_decided && let Some(first) = actions.first() {
                let message = "an arm above always holds, so ELSE is never reached".to_owned();
                self.warn(Code::LintUnreachable, &first.span, message, "remove one of them");
            }
            if actions.is_empty() {
                let message = "nothing is done here".to_owned();
                let help = "write an action, or remove it: what is not answered gets DEFAULT";
                self.warn(Code::LintEmpty, begin, message, help);
            }
            self.actions(actions, &scope, ordered);
        }
    }

    fn actions(
        &mut self,
        actions: &[At<Action>],
        scope: &[EntityName],
        ordered: &BTreeMap<String, Span>,
    ) {
        let mut ordered = ordered.clone();
        for action in actions {
            match &action.it {
                Action::Change { aim, warn, .. } => {
                    self.aim(&aim.it, scope);
                    self.answer(&aim.it, scope);
                    warn.iter().for_each(|warn| self.aim(&warn.it, scope));
                    self.change(aim, &mut ordered);
                }
                Action::Purge { count, aim } => {
                    count.iter().for_each(|count| _ = self.sum(count));
                    self.aim(&aim.it, scope);
                    self.answer(&aim.it, scope);
                }
                Action::Clear(aim) => {
                    self.aim(&aim.it, scope);
                    self.answer(&aim.it, scope);
                }
                Action::Send { value, aim } => {
                    self.sum(value);
                    self.aim(&aim.it, scope);
                }
                Action::Warn(aim) => self.aim(&aim.it, scope),
                Action::WarnOf { error, about, aim } => {
                    self.sum(error);
                    self.entity(&about.it);
                    self.aim(&aim.it, scope);
                }
                Action::Let { value, .. } => _ = self.sum(value),
                Action::Log { values, .. } => values.iter().for_each(|it| _ = self.sum(it)),
                Action::Call { args, .. } => args.iter().for_each(|it| _ = self.sum(it)),
                // What stands behind it is an evaluation of its own.
                Action::Pause { .. } => ordered.clear(),
                Action::Section(section) => {
                    // A set means another one there.
                    let named = ordered.iter().filter(|(key, _)| !key.contains("Set"));
                    let named = named.map(|(key, span)| (key.clone(), span.clone())).collect();
                    self.section(section, &named);
                }
            }
        }
    }

    /// The first order about an entity stands (RL-4), so an equal target is never reached.
    fn change(&mut self, aim: &At<Aim>, ordered: &mut BTreeMap<String, Span>) {
        let key = match &aim.it {
            Aim::One(entity) => format!("{:?} {:?}", entity.kind, self.id(entity)),
            set => format!("Set {set:?}"),
        };
        // Not recorded again: a third order points to the first as well.
        if let Some(first) = ordered.get(&key) {
            let message = "this order has no effect: an order above is about the same entity";
            let help = "remove one of the two: in one evaluation the first order stands";
            let wrong = Diagnostic::new(Code::LintSuperseded, aim.span.clone(), message, help);
            self.found.push(wrong.beside(first.clone(), "the first"));
        } else {
            ordered.insert(key, aim.span.clone());
        }
    }

    fn aim(&mut self, aim: &Aim, scope: &[EntityName]) {
        match aim {
            Aim::One(entity) => self.entity(entity),
            Aim::Groups(_) => self.used.groups.extend(self.names.groups.keys()),
            Aim::Set(_) | Aim::Rest(_) | Aim::Nodes(_) => {
                scope.iter().for_each(|entity| self.entity(entity));
            }
        }
    }

    fn answer(&mut self, aim: &Aim, scope: &[EntityName]) {
        let tasks: Vec<u8> = match aim {
            Aim::One(entity) => self.tasks(entity),
            Aim::Set(_) | Aim::Rest(_) => {
                scope.iter().flat_map(|entity| self.tasks(entity)).collect()
            }
            Aim::Groups(_) | Aim::Nodes(_) => self.names.tasks.keys().copied().collect(),
        };
        self.used.answered.extend(tasks);
    }

    /// The guard without its places: equal for two that mean the same as they are written.
    fn guard(&mut self, guard: &Guard, scope: &mut Vec<EntityName>) -> String {
        match guard {
            Guard::Atom(status, EntityAt { it, span }) => {
                self.entity(it);
                scope.push(it.clone());
                match status {
                    Status::Transient => self.used.alphas.extend(self.tasks(it)),
                    Status::Fired if !self.is_watched(it) => {
                        let message = "no WATCHDOG watches this, so it is never FIRED".to_owned();
                        let help = "declare a WATCHDOG, or ask for FAULTY";
                        self.warn(Code::LintNever, span, message, help);
                    }
                    _ => {}
                }
                format!("{status:?} {:?} {:?}", it.kind, self.id(it))
            }
            Guard::Compare(comparison, left, right) => {
                self.compare(*comparison, left, right);
                let (left, right) = (self.sum(left), self.sum(right));
                format!("({left} {comparison:?} {right})")
            }
            Guard::IsManager(node) => {
                self.entity(&node.it);
                format!("manager {:?}", self.id(&node.it))
            }
            Guard::Not(inner) => format!("not ({})", self.guard(inner, scope)),
            Guard::And(left, right) => {
                format!("({} and {})", self.guard(left, scope), self.guard(right, scope))
            }
            Guard::Or(left, right) => {
                format!("({} or {})", self.guard(left, scope), self.guard(right, scope))
            }
        }
    }

    /// Whether a watchdog, or the cluster file, watches some task of `entity`.
    fn is_watched(&self, entity: &EntityName) -> bool {
        let of = self.tasks(entity);
        let beats = self.names.cluster.into_iter().flat_map(|cluster| &cluster.tasks);
        beats.clone().any(|task| task.has_beat)
            || self.names.watchdogs.values().any(|(task, _)| of.contains(task))
    }

    /// A fact that is compared with a number that it cannot be.
    fn compare(&mut self, comparison: Comparison, left: &Sum, right: &Sum) {
        let number = |sum: &Sum| self.names.constant(sum).ok().flatten();
        let (name, at) = match (left, right) {
            (Sum::Fact(name, _), sum) | (sum, Sum::Fact(name, _)) => (*name, sum),
            _ => return,
        };
        let (Some(value), Some(last)) = (number(at), last_of(name)) else { return };
        let holds = |fact| match std::ptr::eq(at, right) {
            true => comparison.holds(fact, value),
            false => comparison.holds(value, fact),
        };
        let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let is_within = (0..=last).contains(&value);
        // All other comparisons are monotonous, so the ends tell.
        if is_equality && is_within || !is_equality && holds(0) != holds(last) {
            return;
        }
        let how = if holds(0) { "always" } else { "never" };
        let message = format!("this comparison {how} holds");
        let help = match last {
            i32::MAX => format!("{} is at least 0", name.as_str()),
            _ => format!("{} is from 0 to {last}", name.as_str()),
        };
        self.warn(Code::LintNever, &at.span(), message, &help);
    }

    /// The same of a sum.
    fn sum(&mut self, sum: &Sum) -> String {
        match sum {
            Sum::Number(number) => {
                self.number(&number.it);
                format!("{:?}", self.names.value(&number.it, None))
            }
            Sum::Decimal(number) => format!("{}/256", number.it),
            Sum::Variable(variable) => format!("variable {}", variable.it),
            Sum::Fact(name, entity) => {
                self.entity(&entity.it);
                if *name == FactName::Alpha {
                    self.used.alphas.extend(self.tasks(&entity.it));
                }
                format!("{name:?} {:?} {:?}", entity.it.kind, self.id(&entity.it))
            }
            Sum::Neg(inner, _) => format!("-({})", self.sum(inner)),
            Sum::Both(sign, left, right, _) => {
                format!("({} {sign} {})", self.sum(left), self.sum(right))
            }
        }
    }
}

/// The greatest that a fact can be; none where it is not looked at.
const fn last_of(name: FactName) -> Option<i32> {
    match name {
        FactName::ErrorCount => Some(i32::MAX),
        FactName::ErrorKind => Some(65_535),
        FactName::Phase => Some(255),
        FactName::Alpha | FactName::Variable | FactName::IsManager => None,
    }
}

/// What a comparison of two constants is; none for any other guard.
fn constant(guard: &Guard, names: &Names<'_>) -> Option<bool> {
    let Guard::Compare(comparison, left, right) = guard else { return None };
    let number = |sum: &Sum| names.constant(sum).ok().flatten();
    Some(comparison.holds(number(left)?, number(right)?))
}
