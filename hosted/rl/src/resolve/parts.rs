//! Watchdogs and N-version tasks.

use weft_core::recovery::{NVERSIONS_MAX, WATCHDOGS_MAX};

use super::{Resolved, Resolver, Voting, wrong};
use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::tree::{EntityAt, Number, Statement, TaskVersion};

impl Resolver<'_> {
    pub(super) fn watchdog(
        &mut self,
        number: u32,
        task: &EntityAt,
        us: u64,
        span: &Span,
    ) -> Resolved {
        let number = self.number(&Number::Written(number), None, WATCHDOGS_MAX, span)?;
        let task_id = self.task(task)?;
        self.once(format!("watchdog {number} is declared twice"), span)?;
        self.once(format!("task {task_id} has two watchdogs"), span)?;
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

    pub(super) fn nversion(&mut self, statement: &Statement, span: &Span) -> Resolved {
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
        for version in numbered(versions)? {
            let TaskVersion { task, us, .. } = version;
            let id = self.task(task)?;
            self.once(format!("task {id} is a version twice"), &task.span)?;
            let us = u32::try_from(*us).ok().filter(|us| *us > 0);
            let Some(us) = us else {
                let help = "write a TIMEOUT from 1 US to 4000 S";
                return Err(wrong(Code::Limit, &task.span, "the TIMEOUT is out of range", help));
            };
            resolved.push((id, us));
        }
        let on_success = on_success.as_ref().map(|task| self.task(task)).transpose()?;
        let on_error = on_error.as_ref().map(|task| self.task(task)).transpose()?;
        self.once(format!("N-version task {number} is declared twice"), span)?;
        let voting =
            Voting { versions: resolved, algorithm, within: *within, on_success, on_error };
        self.names.votings.insert(number, voting);
        Ok(())
    }
}

/// The versions by their numbers, which must be 1 and the next ones.
fn numbered(versions: &[TaskVersion]) -> Result<Vec<&TaskVersion>, Diagnostic> {
    let mut sorted: Vec<&TaskVersion> = versions.iter().collect();
    sorted.sort_by_key(|version| version.number.it);
    for (version, wanted) in sorted.iter().zip(1..) {
        let number = &version.number;
        if number.it == wanted {
            continue;
        }
        let first = sorted.iter().find(|it| it.number.it == number.it);
        if let Some(first) = first.filter(|first| first.number.span != number.span) {
            let message = format!("version {} is declared twice", number.it);
            let help = format!("number the versions from 1 to {}", versions.len());
            let found = wrong(Code::Twice, &number.span, message, help);
            return Err(found.beside(first.number.span.clone(), "the first"));
        }
        let message = format!("this is version {}, but there is no version {wanted}", number.it);
        let help = format!("number the versions from 1 to {}", versions.len());
        return Err(wrong(Code::Versions, &number.span, message, help));
    }
    Ok(sorted)
}
