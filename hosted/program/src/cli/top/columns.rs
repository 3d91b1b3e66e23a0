//! The nodes as rows: what each column shows, by which it can be sorted, and how a row stands out.

use std::cmp::Ordering;

use super::rates::Rates;
use super::screen::{NodeHistory, Screen};
use crate::cli::status::{peers, pid, role, term};
use crate::cli::survey::{NodeAnswer, Survey};
use weft::node::control::{GroupPart, NodeState, NodeStatus};

/// How a line stands out. Its text says the same, so that colour alone means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Plain,
    /// A heading, and the manager.
    Strong,
    /// What is old, or a hint.
    Faint,
    /// It starts, or joins.
    Changing,
    /// It is suspected, or wants attention.
    Doubtful,
    /// It is down.
    Bad,
}

/// A column of the table of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Node,
    State,
    Role,
    Term,
    Incarnation,
    Restarts,
    Pid,
    Put,
    PutSpark,
    Taken,
    TakenSpark,
    Delivered,
    Owed,
    Full,
    Skipped,
    SuspectedBy,
    Groups,
    Peers,
}

impl Column {
    /// All of them, from left to right.
    pub(super) const ALL: [Self; 18] = [
        Self::Node,
        Self::State,
        Self::Role,
        Self::SuspectedBy,
        Self::Put,
        Self::PutSpark,
        Self::Taken,
        Self::TakenSpark,
        Self::Delivered,
        Self::Owed,
        Self::Restarts,
        Self::Incarnation,
        Self::Term,
        Self::Pid,
        Self::Full,
        Self::Skipped,
        Self::Groups,
        Self::Peers,
    ];

    /// Those that give way on a narrow screen, the first to go first; the others stay.
    const YIELDING: [Self; 16] = [
        Self::Peers,
        Self::Groups,
        Self::Skipped,
        Self::Full,
        Self::Pid,
        Self::Term,
        Self::Incarnation,
        Self::Restarts,
        Self::Owed,
        Self::Delivered,
        Self::TakenSpark,
        Self::SuspectedBy,
        Self::PutSpark,
        Self::Role,
        Self::Taken,
        Self::Put,
    ];

    /// Those that fit into a line of so many cells, one between each.
    pub(super) fn fitting(cells: u16) -> Vec<Self> {
        let mut columns = Self::ALL.to_vec();
        for gives_way in Self::YIELDING {
            let wanted: u16 = columns.iter().map(|column| column.width() + 1).sum();
            if wanted <= cells.saturating_add(1) {
                break;
            }
            columns.retain(|column| *column != gives_way);
        }
        columns
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::State => "state",
            Self::Role => "role",
            Self::Term => "term",
            Self::Incarnation => "incarnation",
            Self::Restarts => "restarts",
            Self::Pid => "pid",
            Self::Put => "put/s",
            Self::PutSpark | Self::TakenSpark => "",
            Self::Taken => "taken/s",
            Self::Delivered => "delivered/s",
            Self::Owed => "owed",
            Self::Full => "full",
            Self::Skipped => "skipped",
            Self::SuspectedBy => "suspected by",
            Self::Groups => "groups",
            Self::Peers => "peers",
        }
    }

    /// Room for the title, the mark of the order, and what is usual.
    pub(super) const fn width(self) -> u16 {
        match self {
            Self::Node => 5,
            Self::Put | Self::Taken | Self::Owed | Self::Term => 8,
            Self::Pid | Self::Full | Self::Skipped | Self::Restarts => 9,
            Self::State | Self::Incarnation | Self::Delivered => 12,
            Self::SuspectedBy => 13,
            Self::Role => 14,
            Self::Groups => 10,
            Self::PutSpark | Self::TakenSpark => 20,
            Self::Peers => 16,
        }
    }

    /// Numbers stand at the right.
    pub(super) const fn is_number(self) -> bool {
        !matches!(
            self,
            Self::State
                | Self::Role
                | Self::SuspectedBy
                | Self::PutSpark
                | Self::TakenSpark
                | Self::Groups
                | Self::Peers
        )
    }

    /// The rate whose samples it draws.
    pub(super) fn drawn(self) -> Option<fn(Rates) -> u64> {
        match self {
            Self::PutSpark => Some(|rates| rates.put),
            Self::TakenSpark => Some(|rates| rates.taken),
            _ => None,
        }
    }

    /// The next column by which rows can be sorted, on the right or on the left.
    pub(super) fn next(self, is_right: bool) -> Self {
        let sorts: Vec<Self> =
            Self::ALL.into_iter().filter(|it| it.drawn().is_none() && *it != Self::Peers).collect();
        let at = sorts.iter().position(|it| *it == self).unwrap_or(0);
        let step = if is_right { 1 } else { sorts.len() - 1 };
        sorts[(at + step) % sorts.len()]
    }
}

/// What a row is sorted by: numbers before texts, both ascending.
type Key = (u64, String);

/// A node as a row.
#[derive(Debug)]
pub(super) struct NodeRow<'a> {
    pub(super) rank: u16,
    pub(super) state: String,
    pub(super) level: Level,
    pub(super) is_manager: bool,
    status: Option<&'a NodeStatus>,
    rates: Option<Rates>,
    suspected_by: String,
}

impl<'a> NodeRow<'a> {
    fn new(entry: &'a NodeAnswer, watched: &NodeHistory, survey: &Survey, now_ns: u64) -> Self {
        let (rank, status) = match entry {
            NodeAnswer::Answered(node) => (node.rank, Some(&**node)),
            NodeAnswer::Silent { rank, .. } => (*rank, None),
        };
        let suspected_by = suspected_by(survey, rank);
        let is_suspected = !suspected_by.is_empty();
        let (state, level) = match (entry, watched.late_s(now_ns)) {
            (NodeAnswer::Silent { state, .. }, _) if *state == NOT_ASKED => {
                ((*state).to_owned(), Level::Faint)
            }
            (NodeAnswer::Silent { state, .. }, _) => ((*state).to_owned(), Level::Bad),
            (NodeAnswer::Answered(_), Some(s)) => (format!("silent {s} s"), Level::Bad),
            (NodeAnswer::Answered(node), None) => state(node, is_suspected),
        };
        let is_manager = status.is_some_and(is_manager);
        let rates = watched.history.now();
        Self { rank, state, level, is_manager, status, rates, suspected_by }
    }

    /// The text of a column; nothing where it is drawn otherwise.
    pub(super) fn text(&self, column: Column) -> String {
        let of = |of: fn(&NodeStatus) -> String| self.status.map_or_else(dash, of);
        let counted = |of: fn(&NodeStatus) -> Option<u64>| {
            self.status.and_then(of).map_or_else(dash, |count| count.to_string())
        };
        let rate =
            |of: fn(Rates) -> u64| self.rates.map_or_else(dash, |rates| of(rates).to_string());
        match column {
            Column::Node => self.rank.to_string(),
            Column::State => self.state.clone(),
            Column::Role => of(role),
            Column::Term => of(term),
            Column::Incarnation => of(|node| node.incarnation.to_string()),
            Column::Restarts => of(|node| node.restarts.to_string()),
            Column::Pid => of(|node| pid(node.component_pid)),
            Column::Put => rate(|rates| rates.put),
            Column::Taken => rate(|rates| rates.taken),
            Column::Delivered => rate(|rates| rates.delivered),
            Column::Owed => counted(|node| Some(node.counters?.owed.into())),
            Column::Full => counted(|node| Some(node.counters?.full)),
            Column::Skipped => counted(|node| Some(node.counters?.skipped)),
            Column::SuspectedBy => self.suspected_by.clone(),
            Column::Groups => of(groups),
            Column::Peers => of(peers),
            Column::PutSpark | Column::TakenSpark => String::new(),
        }
    }

    fn key(&self, column: Column) -> Key {
        let text = self.text(column);
        match (column.is_number() && column != Column::Term, text.parse()) {
            (true, Ok(number)) => (number, String::new()),
            // What is not known sorts below zero's successors, and as zero among them.
            (true, Err(_)) => (0, String::new()),
            (false, _) => (0, text),
        }
    }
}

/// What stands for a node before its first reply.
pub(super) const NOT_ASKED: &str = "asked";

/// The rows in the order that the operator has chosen; equal ones by rank.
pub(super) fn rows(screen: &Screen, now_ns: u64) -> Vec<NodeRow<'_>> {
    let entries = screen.survey.nodes.iter().zip(&screen.watched);
    let row = |(entry, watched)| NodeRow::new(entry, watched, &screen.survey, now_ns);
    let mut rows: Vec<_> = entries.map(row).collect();
    rows.sort_by(|a, b| {
        let order = a.key(screen.sort).cmp(&b.key(screen.sort));
        let order = if screen.is_reversed { order.reverse() } else { order };
        if order == Ordering::Equal { a.rank.cmp(&b.rank) } else { order }
    });
    rows
}

/// The state of a node that answers. One that others suspect is marked as everywhere.
fn state(node: &NodeStatus, is_suspected: bool) -> (String, Level) {
    let level = match node.state {
        NodeState::GivenUp | NodeState::Isolated => Level::Bad,
        _ if is_suspected => Level::Doubtful,
        NodeState::Starting | NodeState::Joining => Level::Changing,
        NodeState::Running | NodeState::Finished => Level::Plain,
    };
    (format!("{}{}", node.state.words(), if is_suspected { " !" } else { "" }), level)
}

pub(super) fn is_manager(node: &NodeStatus) -> bool {
    node.dirnet.as_ref().is_some_and(|standing| standing.role == "manager")
}

/// The nodes that suspect `rank`.
pub(super) fn suspected_by(survey: &Survey, rank: u16) -> String {
    let suspects = |node: &&NodeStatus| {
        node.dirnet.as_ref().is_some_and(|standing| standing.suspects.contains(&rank))
    };
    let nodes = survey.answered().filter(suspects).map(|node| node.rank.to_string());
    nodes.collect::<Vec<_>>().join(" ")
}

/// How many of the node's groups are open, of how many it is a member of.
fn groups(node: &NodeStatus) -> String {
    let own = || node.groups.iter().filter(|group| group.standing != GroupPart::NotAMember);
    let open = own().filter(|group| group.standing == GroupPart::Open).count();
    match own().count() {
        0 => dash(),
        all => format!("{open}/{all} open"),
    }
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_has_the_columns_that_fit_and_never_none() {
        for cells in 0..400 {
            let columns = Column::fitting(cells);
            let wanted: u16 = columns.iter().map(|it| it.width() + 1).sum::<u16>() - 1;
            assert!(wanted <= cells || columns == [Column::Node, Column::State], "{cells}");
            assert!(columns.starts_with(&[Column::Node, Column::State]), "{columns:?}");
        }
        assert_eq!(Column::fitting(400), Column::ALL);
    }

    #[test]
    fn sorting_goes_through_all_columns_that_have_an_order_and_back() {
        let mut column = Column::Node;
        let mut seen = Vec::new();
        loop {
            assert_eq!(column.next(true).next(false), column);
            seen.push(column);
            column = column.next(true);
            if column == Column::Node {
                break;
            }
        }
        assert_eq!(seen.len(), Column::ALL.len() - 3, "two are drawn, and peers are a list");
    }
}
