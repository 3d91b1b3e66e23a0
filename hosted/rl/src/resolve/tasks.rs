//! The tasks of a script, and those of the cluster file that they stand for.

use weft_core::recovery::{NODES_MAX, TASKS_MAX};

use super::{NamedTask, Resolved, Resolver, wrong};
use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::surroundings::Surroundings;
use crate::tree::{At, Number};

impl Resolver<'_> {
    pub(super) fn tasks(
        &mut self,
        (first, last): (u32, u32),
        name: &At<String>,
        node: &Number,
        index: Option<&Number>,
        span: &Span,
    ) -> Resolved {
        let node = self.number(node, None, NODES_MAX, span)?;
        if last < first || last as usize >= TASKS_MAX {
            let help = format!("tasks have numbers from 0 to {}", TASKS_MAX - 1);
            return Err(wrong(Code::Limit, span, "the number of the task is out of range", help));
        }
        let count = u8::try_from(last - first).unwrap_or(u8::MAX);
        let placed = self.place(name, node, index, count, span);
        // A task in a wrong place is declared: what names it is not wrong, too.
        let begin = *placed.as_ref().unwrap_or(&0);
        for (number, index) in (first..=last).zip(begin..=u8::MAX) {
            let number = u8::try_from(number).unwrap_or(u8::MAX);
            let name = name.it.clone();
            let task = NamedTask { node, index, name, span: span.clone() };
            self.names.tasks.entry(number).or_insert(task);
            if placed.is_ok() {
                self.once(format!("task {number} is declared twice"), span)?;
                self.once(format!("two tasks are TASKID {index} of node {node}"), span)?;
            }
        }
        placed?;
        let what = format!("two tasks are called `{}`", name.it.to_lowercase());
        self.once_or(what, &name.span, "rename one of the two")
    }

    /// The TASKID of the first of `more` + 1 tasks, if they are there.
    fn place(
        &self,
        name: &At<String>,
        node: u8,
        index: Option<&Number>,
        more: u8,
        span: &Span,
    ) -> Result<u8, Diagnostic> {
        if node >= self.names.nodes {
            let message = format!("there is no node {node} in a cluster of {}", self.names.nodes);
            let help = "use a node of the cluster, the first is 0; or declare it: DEFINE, NPROCS";
            return Err(wrong(Code::ClusterNode, span, message, help));
        }
        let first = match index {
            Some(index) => self.number(index, None, TASKS_MAX, span)?,
            None => self.index_of(&name.it, node, span)?,
        };
        let Some(last) = first.checked_add(more) else {
            let message = format!("no node has TASKID {}", u32::from(first) + u32::from(more));
            return Err(wrong(Code::Limit, span, message, "use a smaller TASKID"));
        };
        let Some(cluster) = self.names.cluster else { return Ok(first) };
        let here = cluster.tasks_of(node);
        let found = here.len();
        if usize::from(last) >= found {
            let (message, help) = match found {
                0 => (
                    format!("the cluster file gives node {node} no task"),
                    "name another node, or give it a task in the cluster file".to_owned(),
                ),
                1 => (
                    format!("node {node} has one task, so no TASKID {last}"),
                    "use TASKID 0".to_owned(),
                ),
                _ => (
                    format!("node {node} has {found} tasks, so no TASKID {last}"),
                    format!("use a TASKID from 0 to {}", found - 1),
                ),
            };
            return Err(wrong(Code::ClusterTask, span, message, help));
        }
        // The name of a range is that of none of its tasks.
        let own = here.get(usize::from(first)).filter(|own| more == 0 && **own != name.it);
        match own {
            Some(own) => Err(other_name(cluster, name, own, (node, first))),
            None => Ok(first),
        }
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
}

/// A task of the cluster file has another name: which task, or which place, was probably meant.
fn other_name(
    cluster: &Surroundings,
    name: &At<String>,
    own: &str,
    (node, index): (u8, u8),
) -> Diagnostic {
    let message =
        format!("TASKID {index} of node {node} is `{own}` in the cluster file, not `{}`", name.it);
    let elsewhere = (0..cluster.nodes).find_map(|node| {
        let at = cluster.tasks_of(node).iter().position(|task| *task == name.it)?;
        Some(format!("`NODE {node}, TASKID {at}` is `{}`; or write \"{own}\"", name.it))
    });
    let help = elsewhere.unwrap_or_else(|| format!("write \"{own}\""));
    wrong(Code::ClusterTask, &name.span, message, help)
}
