//! What a member does for the tasks of its node.

use pyo3::prelude::*;
use pyo3::types::PyInt;
use weft::member::{TaskNotice, TaskNotices, Vote, VoteResult};

use crate::message::bytes_of;

/// What a recovery script, or the outcome of a vote, has for a task. What does not belong to its
/// kind is None.
#[derive(Default)]
#[pyclass(frozen, module = "weft")]
pub(crate) struct Notice {
    /// "number", "warning", "outcome" or "missed".
    #[pyo3(get)]
    kind: &'static str,
    /// The number that SEND sends; the error of a warning, 0 for a plain one; what the versions
    /// agree on, for bytes the first eight of their SHA-256; how many older ones were dropped.
    #[pyo3(get)]
    number: Option<i128>,
    /// What a warning is about, as the script names it: "T3".
    #[pyo3(get)]
    about: Option<String>,
    /// The round of a vote.
    #[pyo3(get)]
    round: Option<u32>,
    /// The versions that agree.
    #[pyo3(get)]
    agreed: Option<Vec<u16>>,
    /// The versions that have voted.
    #[pyo3(get)]
    voters: Option<Vec<u16>>,
}

impl Notice {
    /// All that has come, and first how many did not.
    pub(crate) fn of_all(come: TaskNotices) -> Vec<Self> {
        let missed = (come.dropped > 0).then(|| Self {
            kind: "missed",
            number: Some(come.dropped.into()),
            ..Self::default()
        });
        missed.into_iter().chain(come.notices.into_iter().map(Self::of)).collect()
    }

    fn of(notice: TaskNotice) -> Self {
        match notice {
            TaskNotice::Number { value, .. } => {
                Self { kind: "number", number: Some(value.into()), ..Self::default() }
            }
            TaskNotice::Warning { error, about, .. } => Self {
                kind: "warning",
                number: Some(error.into()),
                about: Some(about),
                ..Self::default()
            },
            TaskNotice::Outcome(VoteResult { round, value, agreed, voters, .. }) => Self {
                kind: "outcome",
                number: value.map(|value| match value {
                    Vote::Number(number) => number.into(),
                    Vote::Digest(digest) => digest.into(),
                }),
                round: Some(round),
                // As bytes they would be `bytes`.
                agreed: Some(agreed.into_iter().map(u16::from).collect()),
                voters: Some(voters.into_iter().map(u16::from).collect()),
                ..Self::default()
            },
        }
    }
}

#[pymethods]
impl Notice {
    fn __repr__(&self) -> String {
        let number = self.number.map_or_else(|| "None".to_owned(), |number| number.to_string());
        format!("Notice(kind={:?}, number={number})", self.kind)
    }
}

/// A vote as Python passes it: a number, or bytes.
pub(crate) fn vote_of(value: &Bound<'_, PyAny>) -> PyResult<Vote> {
    if value.is_instance_of::<PyInt>() {
        return Ok(Vote::Number(value.extract()?));
    }
    Ok(Vote::of_bytes(&bytes_of(value)?))
}
