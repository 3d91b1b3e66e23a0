//! Declarations as tables: numbers, names, roles, and whether they fit the cluster.

mod parts;
mod roles;
mod tasks;
mod timing;

use std::collections::{BTreeMap, HashMap};

use weft_core::recovery::{
    Algorithm, Fallback, GROUPS_MAX, Kind, Role, TASKS_MAX, TimeoutName, Timeouts,
};

use crate::Judgement;
use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::surroundings::Surroundings;
use crate::tree::{At, EntityAt, EntityName, Number, Statement};

#[derive(Clone, Debug)]
pub(crate) struct NamedTask {
    pub(crate) node: u8,
    pub(crate) index: u8,
    pub(crate) name: String,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct Voting {
    pub(crate) versions: Vec<(u8, u32)>,
    pub(crate) algorithm: Algorithm,
    pub(crate) within: Option<u32>,
    pub(crate) on_success: Option<u8>,
    pub(crate) on_error: Option<u8>,
}

/// What the declarations say.
#[derive(Debug)]
pub(crate) struct Names<'c> {
    pub(crate) constants: &'c HashMap<String, u32>,
    pub(crate) cluster: Option<&'c Surroundings>,
    pub(crate) nodes: u8,
    pub(crate) roles: Vec<Role>,
    pub(crate) fallback: Option<Fallback>,
    pub(crate) timeouts: Timeouts,
    pub(crate) timeout_places: Vec<(TimeoutName, Span)>,
    pub(crate) tasks: BTreeMap<u8, NamedTask>,
    pub(crate) groups: BTreeMap<u8, (String, Vec<u8>)>,
    pub(crate) alphas: BTreeMap<u8, (u16, u16, u32)>,
    pub(crate) watchdogs: BTreeMap<u8, (u8, u32)>,
    pub(crate) votings: BTreeMap<u8, Voting>,
}

impl Names<'_> {
    /// The value of a number; the names of tasks are numbers where a task is meant.
    pub(crate) fn value(&self, number: &Number, of: Option<Kind>) -> Option<u32> {
        match number {
            Number::Written(number) => Some(*number),
            Number::Named(name) => {
                let constant = self.constants.get(&name.to_ascii_uppercase()).copied();
                let is_task = of == Some(Kind::Task);
                let mut tasks = self.tasks.iter().filter(|_| is_task);
                constant.or_else(|| {
                    let task = tasks.find(|(_, task)| task.name.eq_ignore_ascii_case(name));
                    task.map(|(number, _)| u32::from(*number))
                })
            }
        }
    }

    /// What a name of a task could also mean, if it could.
    fn ambiguity(&self, entity: &EntityAt) -> Option<Diagnostic> {
        let EntityName { kind: Kind::Task, number: Some(Number::Named(name)) } = &entity.it else {
            return None;
        };
        let named = self.tasks.iter().filter(|(_, it)| it.name.eq_ignore_ascii_case(name));
        let mut meant: Vec<String> = named.map(|(number, _)| format!("T{number}")).collect();
        if let Some(value) = self.constants.get(&name.to_ascii_uppercase()) {
            meant.push(format!("the CONST, so T{value}"));
        }
        (meant.len() > 1).then(|| {
            let message = format!("`{name}` may be {}", meant.join(" or "));
            let help = "write the number of the task, or rename one of them";
            Diagnostic::new(Code::Ambiguous, entity.span.clone(), message, help)
        })
    }

    /// The number of an entity that is declared.
    pub(crate) fn entity(&self, entity: &EntityAt) -> Result<Option<u8>, Diagnostic> {
        let kind = entity.it.kind;
        let Some(number) = &entity.it.number else { return Ok(None) };
        if let Some(ambiguous) = self.ambiguity(entity) {
            return Err(ambiguous);
        }
        let Some(value) = self.value(number, Some(kind)) else {
            return Err(self.unknown(number, entity.span.clone()));
        };
        let id = u8::try_from(value).ok();
        let is_declared = |id: &u8| match kind {
            Kind::Task => self.tasks.contains_key(id),
            Kind::Group => self.groups.contains_key(id),
            Kind::Node => *id < self.nodes,
        };
        match id.filter(is_declared) {
            Some(id) => Ok(Some(id)),
            None => {
                let (message, help) = match kind {
                    Kind::Task if value >= TASKS_MAX as u32 => (
                        format!("no task has the number {value}"),
                        format!("use a number from 0 to {}", TASKS_MAX - 1),
                    ),
                    Kind::Group if value >= GROUPS_MAX as u32 => (
                        format!("no group has the number {value}"),
                        format!("use a number from 0 to {}", GROUPS_MAX - 1),
                    ),
                    Kind::Task => {
                        (format!("task {value} is not declared"), self.declaration_of(value))
                    }
                    Kind::Group => (
                        format!("group {value} is not declared"),
                        format!(
                            "declare it, as in `LOGICAL {value} = \"vision\" IS TASK 1, 2 \
                             END LOGICAL`"
                        ),
                    ),
                    Kind::Node => match self.nodes {
                        0 | 1 => (
                            format!("the cluster has no node {value}"),
                            "use node 0, or declare more: `DEFINE 1-2 = BACKUP`".to_owned(),
                        ),
                        nodes => (
                            format!("the cluster has no node {value}"),
                            format!("use a node from 0 to {}", nodes - 1),
                        ),
                    },
                };
                Err(Diagnostic::new(Code::Undeclared, entity.span.clone(), message, help))
            }
        }
    }

    pub(crate) fn unknown(&self, number: &Number, span: Span) -> Diagnostic {
        let Number::Named(name) = number else {
            return Diagnostic::new(Code::Limit, span, "the number is too large", "use another");
        };
        let tasks = self.tasks.values().map(|task| task.name.clone());
        let known = self.constants.keys().cloned().chain(tasks);
        let rated = known.map(|known| {
            let (one, other) = (known.to_ascii_uppercase(), name.to_ascii_uppercase());
            (strsim::damerau_levenshtein(&one, &other), known)
        });
        let help = match rated.filter(|(distance, _)| *distance <= 3).min() {
            Some((_, meant)) => format!("did you mean `{meant}`?"),
            None => format!("declare it: `CONST {name} = 1`, or a TASK of this name"),
        };
        Diagnostic::new(Code::Unknown, span, format!("`{name}` is not declared"), help)
    }

    /// How task `value` could be declared: as one that the cluster file has and the script not yet.
    fn declaration_of(&self, value: u32) -> String {
        let Some(cluster) = self.cluster else {
            return format!("declare it, as in `TASK {value} = \"camera\" IS NODE 1, TASKID 0`");
        };
        let is_declared = |node: u8, index: usize| {
            let mut declared = self.tasks.values();
            declared.any(|task| (task.node, usize::from(task.index)) == (node, index))
        };
        let free = (0..cluster.nodes).find_map(|node| {
            let own = cluster.tasks_of(node);
            let at = (0..own.len()).find(|index| !is_declared(node, *index))?;
            Some((node, own[at].to_owned()))
        });
        match free {
            Some((node, name)) => {
                format!("declare it: `TASK {value} IS \"{name}\" ON NODE {node}`")
            }
            None if self.tasks.is_empty() => {
                "give a node a `[[task]]` in the cluster file, then declare it".to_owned()
            }
            None => {
                let known: Vec<String> =
                    self.tasks.keys().map(|number| format!("T{number}")).collect();
                format!("all tasks of the cluster file are declared: {}", known.join(", "))
            }
        }
    }
}

/// The tables of a script, and what is wrong with its declarations.
pub(crate) fn resolve<'c>(
    statements: &[At<Statement>],
    constants: &'c HashMap<String, u32>,
    cluster: Option<&'c Surroundings>,
    judgement: Judgement,
) -> (Names<'c>, Vec<Diagnostic>) {
    let names = Names {
        constants,
        cluster,
        nodes: 0,
        roles: Vec::new(),
        fallback: None,
        timeouts: Timeouts::default(),
        timeout_places: Vec::new(),
        tasks: BTreeMap::new(),
        groups: BTreeMap::new(),
        alphas: BTreeMap::new(),
        watchdogs: BTreeMap::new(),
        votings: BTreeMap::new(),
    };
    let mut resolver = Resolver { names, places: HashMap::new(), wrong: Vec::new() };
    resolver.roles(statements);
    for statement in statements {
        if let Err(wrong) = resolver.declare(statement) {
            resolver.wrong.push(wrong);
        }
    }
    if judgement == Judgement::Whole {
        resolver.timing(statements);
    }
    (resolver.names, resolver.wrong)
}

struct Resolver<'c> {
    names: Names<'c>,
    /// Where what may stand once stood first.
    places: HashMap<String, Span>,
    wrong: Vec<Diagnostic>,
}

type Resolved = Result<(), Diagnostic>;

fn wrong(
    code: Code,
    span: &Span,
    message: impl Into<String>,
    help: impl Into<String>,
) -> Diagnostic {
    Diagnostic::new(code, span.clone(), message, help)
}

impl Resolver<'_> {
    fn number(
        &self,
        number: &Number,
        of: Option<Kind>,
        limit: usize,
        span: &Span,
    ) -> Result<u8, Diagnostic> {
        let value = self.names.value(number, of);
        let Some(value) = value else { return Err(self.names.unknown(number, span.clone())) };
        let id = u8::try_from(value).ok().filter(|id| usize::from(*id) < limit);
        id.ok_or_else(|| {
            let message = format!("{value} is beyond the limit");
            wrong(Code::Limit, span, message, format!("use a number from 0 to {}", limit - 1))
        })
    }

    fn task(&self, task: &EntityAt) -> Result<u8, Diagnostic> {
        let id = self.names.entity(task)?;
        id.ok_or_else(|| wrong(Code::Expected, &task.span, "a wildcard", "name one task"))
    }

    /// What may stand once: `what` says what stands twice, and is the same for both.
    fn once(&mut self, what: String, span: &Span) -> Resolved {
        self.once_or(what, span, "remove one of the two")
    }

    fn once_or(&mut self, what: String, span: &Span, help: &str) -> Resolved {
        let Some(first) = self.places.get(&what) else {
            self.places.insert(what, span.clone());
            return Ok(());
        };
        let found = wrong(Code::Twice, span, what, help);
        Err(found.beside(first.clone(), "the first"))
    }

    fn declare(&mut self, statement: &At<Statement>) -> Resolved {
        let span = &statement.span;
        match &statement.it {
            Statement::Default(fallback) => {
                self.once("DEFAULT is given twice".to_owned(), span)?;
                self.names.fallback = Some(*fallback);
                Ok(())
            }
            Statement::Numtasks { node, count } => self.numtasks(node, count, span),
            Statement::Timeout { name, us } => self.timeout(*name, *us, span),
            Statement::Task { numbers, name, node, index } => {
                self.tasks(*numbers, name, node, index.as_ref(), span)
            }
            Statement::Logical { group, name, tasks } => self.group(*group, name, tasks, span),
            Statement::Alpha { task, threshold, factor, ms } => {
                let id = self.task(task)?;
                let narrow = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
                let ms = u32::try_from(*ms).ok().filter(|ms| (1..=3_600_000).contains(ms));
                let Some(ms) = ms else {
                    let message = "the period of the alpha-count is out of range";
                    return Err(wrong(
                        Code::Limit,
                        span,
                        message,
                        "use a period from 1 MS to 3600 S",
                    ));
                };
                if *threshold <= 256 {
                    let message = "the threshold is met by the first error";
                    let help = "use a THRESHOLD above 1, or remove the ALPHACOUNT";
                    self.wrong.push(wrong(Code::LintThreshold, span, message, help));
                }
                self.once(format!("task {id} has two alpha-counts"), span)?;
                self.names.alphas.insert(id, (narrow(*threshold), narrow(*factor), ms));
                Ok(())
            }
            Statement::Watchdog { number, task, us, .. } => self.watchdog(*number, task, *us, span),
            Statement::Nversion { .. } => self.nversion(&statement.it, span),
            Statement::Define { .. }
            | Statement::Nprocs(_)
            | Statement::Const { .. }
            | Statement::Section(_) => Ok(()),
        }
    }

    fn group(
        &mut self,
        group: u32,
        name: &At<String>,
        tasks: &[At<Number>],
        span: &Span,
    ) -> Resolved {
        let group = self.number(&Number::Written(group), None, GROUPS_MAX, span)?;
        let mut members = Vec::new();
        for task in tasks {
            let it = EntityName { kind: Kind::Task, number: Some(task.it.clone()) };
            let member = self.task(&At { it, span: task.span.clone() })?;
            if members.contains(&member) {
                let message = format!("task {member} is in the group twice");
                return Err(wrong(Code::Twice, &task.span, message, "remove one of them"));
            }
            members.push(member);
        }
        // What names the group is looked up all the same.
        self.names.groups.insert(group, (name.it.clone(), members));
        self.once(format!("group {group} is declared twice"), span)?;
        let what = format!("two groups are called `{}`", name.it.to_lowercase());
        self.once_or(what, &name.span, "rename one of the two")
    }

    fn numtasks(&self, node: &Number, count: &Number, span: &Span) -> Resolved {
        let node = self.number(node, None, usize::from(self.names.nodes.max(1)), span)?;
        let count = self.number(count, None, TASKS_MAX, span)?;
        let Some(cluster) = self.names.cluster else { return Ok(()) };
        let found = cluster.tasks_of(node).len();
        if found == usize::from(count) {
            return Ok(());
        }
        let message =
            format!("the cluster file gives node {node} another number of tasks: {found}");
        let help = match found {
            0 => "remove the line, or give the node tasks in the cluster file".to_owned(),
            _ => format!("write `NUMTASKS {node} = {found}`"),
        };
        Err(wrong(Code::ClusterTask, span, message, help))
    }
}
