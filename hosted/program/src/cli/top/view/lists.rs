//! Tasks, groups, verdicts and what wants attention, as lines.

use super::TextLine;
use crate::cli::group;
use crate::cli::status::{pid, standings};
use crate::cli::survey::Survey;
use crate::cli::top::columns::Level;
use crate::cli::top::screen::Screen;
use weft::node::chronicle::Entry;
use weft::node::control::{TaskState, TaskStatus};

/// A line of titles, and one for each task; nothing if there are no tasks.
pub(super) fn tasks(survey: &Survey) -> Vec<TextLine> {
    let mut lines: Vec<_> = survey.tasks().map(|(rank, task)| task_line(rank, task)).collect();
    if !lines.is_empty() {
        let titles = ["node", "task", "is", "errors", "restarts", "pid"];
        let [node, task, is, errors, restarts, pid] = titles;
        let text =
            format!("{node:>4}  {task:<16} {is:<9} {errors:>6} {restarts:>8} {pid:>8}  last error");
        lines.insert(0, TextLine { text, level: Level::Strong });
    }
    lines
}

pub(super) fn task_line(rank: u16, task: &TaskStatus) -> TextLine {
    let TaskStatus { name, state, errors, restarts, .. } = task;
    let last = task.last_errors.last();
    let last = last.map(|last| format!("{}, {} ago", last.fault, age(last.ago_ms)));
    let text = format!(
        "{rank:>4}  {name:<16} {:<9} {errors:>6} {restarts:>8} {:>8}  {}",
        state.as_str(),
        pid(task.pid),
        last.unwrap_or_default()
    );
    let level = match state {
        TaskState::Running | TaskState::Waiting | TaskState::Finished => Level::Plain,
        TaskState::Killed => Level::Doubtful,
        TaskState::Isolated | TaskState::Faulty => Level::Bad,
    };
    TextLine { text, level }
}

/// The view that each node shows, and the groups; no view where no node takes part yet.
pub(super) fn groups(survey: &Survey) -> Vec<TextLine> {
    let mut views: Vec<(u64, Vec<u16>, Vec<u16>)> = Vec::new();
    for node in survey.answered() {
        let Some(view) = node.dirnet.as_ref().map(|it| &it.view).filter(|it| it.number > 0) else {
            continue;
        };
        match views.iter_mut().find(|(number, ..)| *number == view.number) {
            Some((_, _, shown_at)) => shown_at.push(node.rank),
            None => {
                let members = view.members.iter().map(|member| member.rank).collect();
                views.push((view.number, members, vec![node.rank]));
            }
        }
    }
    views.sort_by_key(|(number, ..)| *number);
    let is_one = views.len() == 1;
    let line = |(number, members, shown_at): (u64, Vec<u16>, Vec<u16>)| {
        let (members, at) = (listed(&members), listed(&shown_at));
        let text = format!("view {number:#x} of nodes {members}; shown at {at}");
        TextLine { text, level: if is_one { Level::Plain } else { Level::Doubtful } }
    };
    let mut lines: Vec<_> = views.into_iter().map(line).collect();
    if survey.answered().next().is_none() {
        return lines;
    }
    let groups = group::table(survey);
    let line = |text: &str| {
        let is_title = text.starts_with("group ") || text.starts_with("node ");
        let level = if is_title { Level::Strong } else { Level::Plain };
        TextLine { text: text.to_owned(), level }
    };
    lines.extend(groups.lines().filter(|text| !text.is_empty()).map(line));
    lines
}

/// The verdicts, the last first.
pub(super) fn verdicts(screen: &Screen, now_ns: u64) -> Vec<TextLine> {
    let about = |entry: &Entry| format!("node {} about node {}: ", entry.observer, entry.node);
    screen.verdicts().map(|entry| note(entry, &about(entry), now_ns)).collect()
}

/// A note with its age, and `who` in front.
pub(super) fn note(entry: &Entry, who: &str, now_ns: u64) -> TextLine {
    let ago = age(now_ns.saturating_sub(entry.at_ns) / 1_000_000);
    TextLine { text: format!("{ago:>7} ago  {who}{}", entry.what), level: Level::Plain }
}

/// What wants attention, with its cure.
pub(super) fn attention(survey: &Survey) -> Vec<TextLine> {
    let line = |text: &str| TextLine { text: text.to_owned(), level: Level::Doubtful };
    standings(survey).lines().filter(|text| !text.is_empty()).map(line).collect()
}

/// Ranks, with a space between.
pub(super) fn listed(ranks: &[u16]) -> String {
    ranks.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}

/// A length of time as people say it, to the tenth where it is short.
pub(super) fn age(ms: u64) -> String {
    match ms / 1_000 {
        s if s < 10 => format!("{s}.{} s", ms % 1_000 / 100),
        _ => crate::cli::status::age(ms),
    }
}
