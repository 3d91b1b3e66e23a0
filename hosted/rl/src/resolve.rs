//! Declarations as tables: numbers, names, roles, and whether they fit the cluster.

use std::collections::{BTreeMap, HashMap};

use weft_core::dirnet::Profile;
use weft_core::recovery::{
    Algorithm, Fallback, GROUPS_MAX, Kind, NODES_MAX, NVERSIONS_MAX, Role, TASKS_MAX, TimeoutName,
    Timeouts, WATCHDOGS_MAX,
};

use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::surroundings::{Surroundings, with_timeouts};
use crate::tree::{At, EntityAt, Number, Statement};

#[derive(Clone, Debug)]
pub(crate) struct TaskName {
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
    pub(crate) tasks: BTreeMap<u8, TaskName>,
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

    /// The number of an entity that is declared.
    pub(crate) fn entity(&self, entity: &EntityAt) -> Result<Option<u8>, Diagnostic> {
        let kind = entity.it.kind;
        let Some(number) = &entity.it.number else { return Ok(None) };
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
) -> (Names<'c>, Vec<Diagnostic>) {
    let names = Names {
        constants,
        cluster,
        nodes: 0,
        roles: Vec::new(),
        fallback: None,
        timeouts: Timeouts::default(),
        tasks: BTreeMap::new(),
        groups: BTreeMap::new(),
        alphas: BTreeMap::new(),
        watchdogs: BTreeMap::new(),
        votings: BTreeMap::new(),
    };
    let mut resolver = Resolver { names, wrong: Vec::new() };
    resolver.roles(statements);
    for statement in statements {
        if let Err(wrong) = resolver.declare(statement) {
            resolver.wrong.push(wrong);
        }
    }
    resolver.timing(statements);
    (resolver.names, resolver.wrong)
}

struct Resolver<'c> {
    names: Names<'c>,
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
    /// How many nodes there are, and the role of each.
    fn roles(&mut self, statements: &[At<Statement>]) {
        let mut given: BTreeMap<u32, (Role, Span)> = BTreeMap::new();
        let (mut nprocs, mut place) = (None, 0..0);
        for At { it, span } in statements {
            match it {
                Statement::Define { nodes, role } => {
                    place = span.clone();
                    for (first, last) in nodes {
                        let last = (*last).min(first.saturating_add(NODES_MAX as u32));
                        for node in *first..=last {
                            if let Some((_, before)) = given.insert(node, (*role, span.clone())) {
                                let message = format!("node {node} has two roles");
                                let found = wrong(Code::Twice, span, message, "remove one of them");
                                self.wrong.push(found.beside(before, "the first"));
                            }
                        }
                    }
                }
                Statement::Nprocs(number) => {
                    nprocs = self.names.value(number, None).zip(Some(span));
                }
                _ => {}
            }
        }
        let most = given.keys().last().map_or(1, |node| node + 1);
        let said = nprocs.map(|(count, _)| count);
        let known = self.names.cluster.map(|cluster| u32::from(cluster.nodes));
        let nodes = known.or(said).unwrap_or(most);
        if let Some((count, span)) = nprocs.filter(|(count, _)| *count != nodes) {
            let message = format!("NPROCS is {count}, but the cluster has {nodes} nodes");
            let help = format!("write `NPROCS = {nodes}`");
            self.wrong.push(wrong(Code::ClusterNode, span, message, help));
        }
        if nodes == 0 || nodes as usize > NODES_MAX || most > nodes {
            let message = format!("there is no node {} in a cluster of {nodes}", most - 1);
            let help = format!("a cluster has 1 to {NODES_MAX} nodes; the first is 0");
            self.wrong.push(wrong(Code::ClusterNode, &place, message, help));
            // What the other declarations name is looked up all the same.
            self.names.nodes = u8::try_from(most.min(NODES_MAX as u32)).unwrap_or(u8::MAX);
            return;
        }
        self.names.nodes = u8::try_from(nodes).unwrap_or(u8::MAX);
        let cluster = self.names.cluster.and_then(|cluster| cluster.roles.clone());
        self.names.roles = (0..nodes)
            .map(|node| match (given.get(&node), &cluster) {
                (Some((role, _)), _) => *role,
                (None, Some(roles)) => roles.get(node as usize).copied().unwrap_or(Role::Backup),
                // As in a cluster file without roles.
                (None, None) if node == 0 && known.is_some() && given.is_empty() => Role::Manager,
                (None, None) => Role::Backup,
            })
            .collect();
        if let Some(roles) = &cluster
            && *roles != self.names.roles
        {
            let message = "the cluster file gives the nodes other roles";
            let help = "correct one of them, or remove `dirnet.roles` or the DEFINE lines";
            self.wrong.push(wrong(Code::ClusterRole, &place, message, help));
        }
        if !self.wrong.is_empty() {
            return;
        }
        let managers = self.names.roles.iter().filter(|role| **role == Role::Manager).count();
        if managers != 1 {
            let message = format!("the script names {managers} managers");
            let help = "name exactly one: `DEFINE 0 = MANAGER`";
            self.wrong.push(wrong(Code::Managers, &place, message, help));
        }
    }

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

    fn declare(&mut self, statement: &At<Statement>) -> Resolved {
        let span = &statement.span;
        let twice = |what: &str| {
            wrong(Code::Twice, span, format!("{what} is declared twice"), "remove one of them")
        };
        match &statement.it {
            Statement::Default(fallback) => match self.names.fallback.replace(*fallback) {
                Some(_) => Err(twice("DEFAULT")),
                None => Ok(()),
            },
            Statement::Numtasks { node, count } => self.numtasks(node, count, span),
            Statement::Timeout { name, us } => self.timeout(*name, *us, span),
            Statement::Task { numbers, name, node, index } => {
                self.tasks(*numbers, name, node, index.as_ref(), span)
            }
            Statement::Logical { group, name, tasks } => {
                let group = self.number(&Number::Written(*group), None, GROUPS_MAX, span)?;
                let mut members = Vec::new();
                for task in tasks {
                    let it =
                        crate::tree::EntityName { kind: Kind::Task, number: Some(task.it.clone()) };
                    let member = self.task(&At { it, span: task.span.clone() })?;
                    if members.contains(&member) {
                        return Err(twice(&format!("task {member} of the group")));
                    }
                    members.push(member);
                }
                match self.names.groups.insert(group, (name.clone(), members)) {
                    Some(_) => Err(twice(&format!("group {group}"))),
                    None => Ok(()),
                }
            }
            Statement::Alpha { task, threshold, factor, ms } => {
                let id = self.task(task)?;
                let narrow = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
                let ms = u32::try_from(*ms).ok().filter(|ms| (1..=3_600_000).contains(ms));
                let Some(ms) = ms else {
                    let message = "the period is from 1 ms to an hour";
                    return Err(wrong(Code::Limit, span, message, "write such a time, as `1 S`"));
                };
                if *threshold <= 256 {
                    let message = "the threshold is met by the first error";
                    let help = "use a THRESHOLD above 1, or remove the ALPHACOUNT";
                    self.wrong.push(wrong(Code::LintThreshold, span, message, help));
                }
                let rule = (narrow(*threshold), narrow(*factor), ms);
                match self.names.alphas.insert(id, rule) {
                    Some(_) => Err(twice(&format!("the alpha-count of task {id}"))),
                    None => Ok(()),
                }
            }
            Statement::Watchdog { number, task, us, .. } => self.watchdog(*number, task, *us, span),
            Statement::Nversion { .. } => self.nversion(&statement.it, span),
            Statement::Define { .. }
            | Statement::Nprocs(_)
            | Statement::Const { .. }
            | Statement::Section(_) => Ok(()),
        }
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

    fn timeout(&mut self, name: TimeoutName, us: u64, span: &Span) -> Resolved {
        let Some(us) = u32::try_from(us).ok().filter(|us| *us > 0) else {
            let help = "write a time from 1 US to 4000 S";
            return Err(wrong(Code::Limit, span, "the time is 0, or too long", help));
        };
        let before = self.names.timeouts.set(name, us);
        if before.is_some_and(|before| before != us) {
            let message = format!("two values for `{}`", name.as_str());
            let help = "names that stand for one value must agree";
            return Err(wrong(Code::ClusterTiming, span, message, help));
        }
        let set = self.names.cluster.and_then(|cluster| cluster.set.us(name));
        if let Some(set) = set.filter(|set| *set != us) {
            let message = format!("[dirnet.timing] sets `{}` to {set} us", name.as_str());
            return Err(wrong(Code::ClusterTiming, span, message, "let both agree"));
        }
        Ok(())
    }

    fn tasks(
        &mut self,
        (first, last): (u32, u32),
        name: &str,
        node: &Number,
        index: Option<&Number>,
        span: &Span,
    ) -> Resolved {
        let node = self.number(node, None, NODES_MAX, span)?;
        if node >= self.names.nodes {
            let message = format!("there is no node {node} in a cluster of {}", self.names.nodes);
            let help = "use a node of the cluster, the first is 0; or declare it: DEFINE, NPROCS";
            return Err(wrong(Code::ClusterNode, span, message, help));
        }
        if last < first || last as usize >= TASKS_MAX {
            let help = format!("tasks have numbers from 0 to {}", TASKS_MAX - 1);
            return Err(wrong(Code::Limit, span, "the number of the task is out of range", help));
        }
        let mut index = match index {
            Some(index) => self.number(index, None, TASKS_MAX, span)?,
            None => self.index_of(name, node, span)?,
        };
        for number in first..=last {
            let here = self.names.cluster.map(|cluster| cluster.tasks_of(node).len());
            if let Some(here) = here.filter(|here| usize::from(index) >= *here) {
                let (message, help) = match here {
                    0 => (
                        format!("the cluster file gives node {node} no task"),
                        "name another node, or give it a task in the cluster file".to_owned(),
                    ),
                    1 => (
                        format!("node {node} has one task, so no TASKID {index}"),
                        "use TASKID 0".to_owned(),
                    ),
                    _ => (
                        format!("node {node} has {here} tasks, so no TASKID {index}"),
                        format!("use a TASKID from 0 to {}", here - 1),
                    ),
                };
                return Err(wrong(Code::ClusterTask, span, message, help));
            }
            let number = u8::try_from(number).unwrap_or(u8::MAX);
            let task = TaskName { node, index, name: name.to_owned(), span: span.clone() };
            let mut others = self.names.tasks.values();
            let same = others.find(|other| (other.node, other.index) == (node, index)).cloned();
            if let Some(before) = self.names.tasks.insert(number, task).or(same) {
                let message = format!("task {number}, or what it stands for, is declared twice");
                let help = "a number stands for one task of one node; remove one of them";
                let found = wrong(Code::Twice, span, message, help);
                return Err(found.beside(before.span, "the first"));
            }
            index = index.saturating_add(1);
        }
        Ok(())
    }

    /// Which of the node's tasks has this name.
    fn index_of(&self, name: &str, node: u8, span: &Span) -> Result<u8, Diagnostic> {
        let Some(cluster) = self.names.cluster else {
            let message = "without a cluster file, names of tasks cannot be looked up";
            let help = "name the cluster with --cluster, or write \
                        `TASK 3 = \"camera\" IS NODE 1, TASKID 0`";
            return Err(wrong(Code::ClusterTask, span, message, help));
        };
        let known = cluster.tasks_of(node);
        let index = known.iter().position(|known| *known == name);
        index.and_then(|index| u8::try_from(index).ok()).ok_or_else(|| {
            let message = format!("node {node} has no task {name:?}");
            let help = match known[..] {
                [] => "name another node; the cluster file gives this one no task".to_owned(),
                _ => format!("name a task that the cluster file gives it: {}", known.join(", ")),
            };
            wrong(Code::ClusterTask, span, message, help)
        })
    }

    fn watchdog(&mut self, number: u32, task: &EntityAt, us: u64, span: &Span) -> Resolved {
        let number = self.number(&Number::Written(number), None, WATCHDOGS_MAX, span)?;
        let task_id = self.task(task)?;
        let is_taken = self.names.watchdogs.values().any(|(other, _)| *other == task_id);
        if is_taken || self.names.watchdogs.contains_key(&number) {
            let message = format!("task {task_id} or watchdog {number} is declared twice");
            return Err(wrong(Code::Twice, span, message, "a task has one watchdog; remove one"));
        }
        let name = self.names.tasks.get(&task_id).map(|task| task.name.clone());
        let beats = self.names.cluster.into_iter().flat_map(|cluster| &cluster.tasks);
        if beats.clone().any(|task| task.has_beat && Some(&task.name) == name.as_ref()) {
            let message = "the cluster file watches the heartbeats of this task";
            let help = "remove `beat_ms` there, or the WATCHDOG here";
            return Err(wrong(Code::ClusterBeat, &task.span, message, help));
        }
        self.names.watchdogs.insert(number, (task_id, u32::try_from(us).unwrap_or(u32::MAX)));
        Ok(())
    }

    fn nversion(&mut self, statement: &Statement, span: &Span) -> Resolved {
        let Statement::Nversion { number, versions, algorithm, within, on_success, on_error } =
            statement
        else {
            return Ok(());
        };
        let number = self.number(&Number::Written(*number), None, NVERSIONS_MAX, span)?;
        let Some(algorithm) = algorithm.filter(|_| (2..=8).contains(&versions.len())) else {
            let message = "an N-version task needs 2 to 8 versions and a voting algorithm";
            let help = "add a VERSION line, or `VOTING ALGORITHM IS MAJORITY`";
            return Err(wrong(Code::Versions, span, message, help));
        };
        let mut resolved = Vec::new();
        for (task, us) in versions {
            let id = self.task(task)?;
            let mut others = self.names.votings.values().flat_map(|voting| &voting.versions);
            let is_taken = others.any(|(other, _)| *other == id);
            if is_taken || resolved.iter().any(|(other, _)| *other == id) {
                let message = format!("task {id} is a version twice");
                return Err(wrong(Code::Twice, &task.span, message, "remove one of them"));
            }
            let us = u32::try_from(*us).ok().filter(|us| *us > 0);
            let Some(us) = us else {
                let help = "write a TIMEOUT from 1 US to 4000 S";
                return Err(wrong(Code::Limit, &task.span, "the TIMEOUT is out of range", help));
            };
            resolved.push((id, us));
        }
        let on_success = on_success.as_ref().map(|task| self.task(task)).transpose()?;
        let on_error = on_error.as_ref().map(|task| self.task(task)).transpose()?;
        let voting =
            Voting { versions: resolved, algorithm, within: *within, on_success, on_error };
        match self.names.votings.insert(number, voting) {
            Some(_) => {
                let message = format!("N-version task {number} is declared twice");
                Err(wrong(Code::Twice, span, message, "remove one of them"))
            }
            None => Ok(()),
        }
    }

    /// The rules of the DIR net, for the values of the cluster with those of the script.
    fn timing(&mut self, statements: &[At<Statement>]) {
        let Some(cluster) = self.names.cluster else { return };
        let is_timeout = |at: &&At<Statement>| matches!(at.it, Statement::Timeout { .. });
        let Some(last) = statements.iter().rfind(is_timeout) else { return };
        let timing = with_timeouts(cluster.timing, &self.names.timeouts);
        if let Err(broken) = Profile::new(timing) {
            let message = format!("the timing breaks a rule of the DIR net: {broken}");
            let help = "change the value that the rule names";
            self.wrong.push(wrong(Code::ClusterTiming, &last.span, message, help));
        }
    }
}
