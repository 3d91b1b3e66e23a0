//! What a member's program learns of its cluster.

use pyo3::prelude::*;
use weft::member::{self, Rank, Verdict};

use crate::tensor::Offer;

/// Something that a program learns of its cluster, under the names of `weft::member::Event`; what
/// does not belong to its kind is None.
#[pyclass(frozen, module = "weft")]
#[derive(Clone, Default)]
pub(crate) struct Event {
    /// "view", "joined", "finished", "removed", "suspected", "trusted", "isolated", "released",
    /// "conflict", "consumed", "excluded", "stop" or "missed".
    #[pyo3(get)]
    kind: &'static str,
    /// The member that it is about.
    #[pyo3(get)]
    rank: Option<u16>,
    /// Its incarnation.
    #[pyo3(get)]
    incarnation: Option<u32>,
    /// The number of a view.
    #[pyo3(get)]
    view: Option<u64>,
    /// The members of a view.
    #[pyo3(get)]
    members: Option<Vec<u16>>,
    /// How a removal is known: "ended" or "node_removed".
    #[pyo3(get)]
    verdict: Option<&'static str>,
    /// The number of the broadcast that is in conflict.
    #[pyo3(get)]
    seq: Option<u64>,
    /// The member that shows another message.
    #[pyo3(get)]
    replayer: Option<u16>,
    /// The tensor that its receiver has.
    #[pyo3(get)]
    offer: Option<Offer>,
    /// How many events were not drained, and are lost.
    #[pyo3(get)]
    count: Option<u64>,
}

impl Event {
    /// The event; none for what [`crate::inbox`] keeps for receives.
    pub(crate) fn of(event: member::Event) -> Option<Self> {
        use member::Event as It;
        let about = |kind, Rank(rank)| Self { kind, rank: Some(rank), ..Self::default() };
        Some(match event {
            It::View { number, members } => Self {
                kind: "view",
                view: Some(number.to_bits()),
                members: Some(members.iter().map(|rank| rank.0).collect()),
                ..Self::default()
            },
            It::Joined { rank, incarnation } => {
                Self { incarnation: Some(incarnation.0), ..about("joined", rank) }
            }
            It::Finished { rank } => about("finished", rank),
            It::Removed { rank, incarnation, verdict } => {
                let verdict = match verdict {
                    Verdict::NodeRemoved { .. } => "node_removed",
                    _ => "ended",
                };
                let (incarnation, verdict) = (Some(incarnation.0), Some(verdict));
                Self { incarnation, verdict, ..about("removed", rank) }
            }
            It::Suspected { rank } => about("suspected", rank),
            It::Trusted { rank } => about("trusted", rank),
            It::Isolated { rank } => about("isolated", rank),
            It::Released { rank } => about("released", rank),
            It::Conflict { origin, seq, replayer } => {
                Self { seq: Some(seq), replayer: Some(replayer.0), ..about("conflict", origin) }
            }
            It::Consumed { offer } => {
                Self { kind: "consumed", offer: Some(Offer(offer)), ..Self::default() }
            }
            It::Excluded => Self { kind: "excluded", ..Self::default() },
            It::Stop => Self { kind: "stop", ..Self::default() },
            It::Missed { count } => Self::missed(count),
            _ => return None,
        })
    }

    pub(crate) fn missed(count: u64) -> Self {
        Self { kind: "missed", count: Some(count), ..Self::default() }
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        let mut shown = format!("Event(kind={:?}", self.kind);
        let mut show = |name, value: Option<String>| {
            shown.extend(value.map(|value| format!(", {name}={value}")));
        };
        show("rank", self.rank.map(|it| it.to_string()));
        show("incarnation", self.incarnation.map(|it| it.to_string()));
        show("view", self.view.map(|it| it.to_string()));
        show("members", self.members.as_ref().map(|it| format!("{it:?}")));
        show("verdict", self.verdict.map(|it| format!("{it:?}")));
        show("seq", self.seq.map(|it| it.to_string()));
        show("replayer", self.replayer.map(|it| it.to_string()));
        show("count", self.count.map(|it| it.to_string()));
        shown + ")"
    }
}

/// A membership on which all members that show its number agree.
#[pyclass(frozen, module = "weft")]
pub(crate) struct View(pub(crate) member::View);

#[pymethods]
impl View {
    /// Its number: of two views the later one has the higher number.
    #[getter]
    fn number(&self) -> u64 {
        self.0.number().to_bits()
    }

    /// The manager that decided it.
    #[getter]
    fn manager(&self) -> u16 {
        self.0.manager().0
    }

    /// The ranks of the members.
    #[getter]
    fn members(&self) -> Vec<u16> {
        self.0.members().iter().map(|rank| rank.0).collect()
    }

    /// Boot and generation of a member; None of another rank.
    fn incarnation(&self, rank: u16) -> Option<(u32, u32)> {
        self.0.incarnation(Rank(rank)).map(|it| (it.boot.0, it.generation))
    }

    fn __repr__(&self) -> String {
        format!("View(number={}, members={:?})", self.number(), self.members())
    }
}
