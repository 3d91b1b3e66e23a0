//! Drawing: nodes above, tasks below, a line of help at the bottom.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Row, Table};

use super::rates::Screen;
use crate::cli::status::{peers, pid, role, term};
use crate::cli::survey::{Answer, Survey};
use weft::node::control::{GroupPart, NodeState, NodeStatus, TaskState};

pub(super) fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let Some(survey) = &screen.survey else {
        return frame.render_widget(Line::from("asking the nodes …"), frame.area());
    };
    let tasks = u16::try_from(survey.tasks().count()).unwrap_or(u16::MAX);
    let below = if tasks == 0 { 0 } else { tasks.saturating_add(3) };
    let parts =
        Layout::vertical([Constraint::Min(4), Constraint::Max(below), Constraint::Length(1)]);
    let [top, middle, bottom] = parts.areas(frame.area());
    draw_nodes(frame, top, screen, survey);
    if tasks > 0 {
        draw_tasks(frame, middle, survey);
    }
    frame.render_widget(
        Line::from("q ends").style(Style::new().add_modifier(Modifier::DIM)),
        bottom,
    );
}

fn draw_nodes(frame: &mut Frame<'_>, area: Rect, screen: &Screen, survey: &Survey) {
    let header = [
        "node",
        "state",
        "role",
        "term",
        "incarnation",
        "restarts",
        "component",
        "put/s",
        "taken/s",
        "owed",
        "skipped",
        "groups",
        "peers",
    ];
    let rows = survey.nodes.iter().map(|entry| match entry {
        Answer::Answered(node) => node_row(node, screen),
        Answer::Silent { rank, state, .. } => {
            Row::new([rank.to_string(), (*state).to_owned()]).style(Style::new().fg(Color::Red))
        }
    });
    let widths = [4, 11, 14, 5, 11, 8, 9, 7, 7, 6, 7, 9].map(Constraint::Length);
    let widths = widths.into_iter().chain([Constraint::Min(8)]);
    let title = format!(" cluster {} ", survey.name);
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(Style::new().add_modifier(Modifier::BOLD)))
        .block(Block::bordered().title(title));
    frame.render_widget(table, area);
}

fn node_row(node: &NodeStatus, screen: &Screen) -> Row<'static> {
    let rates = screen.rates.get(&node.rank);
    let rate = |rate: Option<u64>| rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
    let counters = node.counters.unwrap_or_default();
    let cells = [
        node.rank.to_string(),
        node.state.words().to_owned(),
        role(node),
        term(node),
        node.incarnation.to_string(),
        node.restarts.to_string(),
        pid(node.component_pid),
        rate(rates.map(|rates| rates.put)),
        rate(rates.map(|rates| rates.taken)),
        counters.owed.to_string(),
        counters.skipped.to_string(),
        groups(node),
        peers(node),
    ];
    let colour = match node.state {
        NodeState::Running | NodeState::Finished => Style::new(),
        NodeState::Starting | NodeState::Joining => Style::new().fg(Color::Yellow),
        NodeState::GivenUp | NodeState::Isolated => Style::new().fg(Color::Red),
    };
    Row::new(cells.map(Cell::from)).style(colour)
}

/// How many of the node's groups are open, of how many it is a member of, and how many messages of
/// other members it has received in all of them.
fn groups(node: &NodeStatus) -> String {
    let own = node.groups.iter().filter(|group| group.standing != GroupPart::NotAMember);
    let (mut open, mut all, mut delivered) = (0, 0, 0);
    for group in own {
        all += 1;
        open += u64::from(group.standing == GroupPart::Open);
        let others = group.roots.iter().filter(|root| root.root != node.rank);
        delivered += others.map(|root| root.delivered).sum::<u64>();
    }
    if all == 0 { "-".to_owned() } else { format!("{open}/{all} {delivered}") }
}

fn draw_tasks(frame: &mut Frame<'_>, area: Rect, survey: &Survey) {
    let rows = survey.tasks().map(|(rank, task)| {
        let last = task.last_errors.last().map_or_else(String::new, |last| last.fault.to_string());
        let cells = [
            rank.to_string(),
            task.name.clone(),
            task.state.as_str().to_owned(),
            task.errors.to_string(),
            task.restarts.to_string(),
            pid(task.pid),
            last,
        ];
        let colour = match task.state {
            TaskState::Running | TaskState::Waiting | TaskState::Finished => Style::new(),
            TaskState::Killed => Style::new().fg(Color::Yellow),
            TaskState::Isolated | TaskState::Faulty => Style::new().fg(Color::Red),
        };
        Row::new(cells).style(colour)
    });
    let header = ["node", "task", "is", "errors", "restarts", "process", "last error"];
    let widths = [4, 16, 9, 7, 8, 9].map(Constraint::Length);
    let widths = widths.into_iter().chain([Constraint::Min(8)]);
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(Style::new().add_modifier(Modifier::BOLD)))
        .block(Block::bordered().title(" tasks "));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use weft::node::control::{
        CounterStatus, DirNetStatus, GroupStatus, Latency, PeerStatus, RootStatus, TaskError,
        TaskFault, TaskStatus, TimingStatus, ViewStatus,
    };

    /// A node that runs and has put so many messages, with one task that failed.
    fn node(put: u64) -> Answer {
        let fault = TaskFault::Exited { status: 3 };
        let task = TaskStatus {
            name: "worker".to_owned(),
            state: TaskState::Isolated,
            pid: None,
            restarts: 2,
            errors: 3,
            unrecorded: 0,
            last_errors: vec![TaskError { fault, ago_ms: 1 }],
        };
        Answer::Answered(Box::new(NodeStatus {
            rank: 0,
            state: NodeState::Running,
            incarnation: 7,
            restarts: 6,
            supervisor_pid: 1,
            since_unix_ms: 0,
            component_pid: Some(4711),
            last_recovery_us: None,
            recovery: Latency::default(),
            cut: Vec::new(),
            peers: vec![PeerStatus { rank: 1, incarnation: None, joined: false }],
            tasks: vec![task],
            hooks: None,
            dirnet: Some(DirNetStatus {
                role: "manager".to_owned(),
                epoch: 12,
                manager: 0,
                boot: 7,
                generation: 0,
                timing: TimingStatus::new("lan", &weft_core::dirnet::Timing::LAN),
                suspects: vec![1],
                removed: Vec::new(),
                isolated: Vec::new(),
                left_broadcasts: Vec::new(),
                view: ViewStatus::default(),
                stale: false,
                database: Vec::new(),
                script: None,
                refused: std::collections::BTreeMap::new(),
            }),
            counters: Some(CounterStatus { put, ..CounterStatus::default() }),
            holders: Vec::new(),
            form: weft::cluster::Form::Unsigned,
            broadcasts: Vec::new(),
            groups: [GroupPart::Open, GroupPart::Opening, GroupPart::NotAMember]
                .map(|standing| GroupStatus {
                    name: "g".to_owned(),
                    members: vec![0, 1],
                    standing,
                    removed: Vec::new(),
                    roots: [0, 1]
                        .map(|root| RootStatus {
                            root,
                            held: 9,
                            delivered: 4,
                            by_all: None,
                            window: None,
                        })
                        .to_vec(),
                })
                .to_vec(),
            proofs: Vec::new(),
            refused_by_supervisor: std::collections::BTreeMap::new(),
            refused_by_task: std::collections::BTreeMap::new(),
        }))
    }

    fn drawn(screen: &Screen) -> String {
        let mut terminal = Terminal::new(TestBackend::new(120, 14)).unwrap();
        terminal.draw(|frame| draw(frame, screen)).unwrap();
        let cells = terminal.backend().buffer().content().chunks(120);
        let line = |cells: &[ratatui::buffer::Cell]| -> String {
            cells.iter().map(ratatui::buffer::Cell::symbol).collect()
        };
        cells.map(|cells| line(cells) + "\n").collect()
    }

    fn survey(nodes: Vec<Answer>) -> Survey {
        let name = "t".parse().expect("a legal name");
        Survey::of(weft::cluster::Cluster { name, ..Default::default() }, nodes)
    }

    #[test]
    fn nodes_rates_and_tasks_are_drawn() {
        let mut screen = Screen::default();
        assert!(drawn(&screen).contains("asking"));
        screen.handle_survey(1_000_000_000, survey(vec![node(100)]));
        let silent = Answer::Silent {
            rank: 1,
            state: "unreachable",
            incarnation: None,
            supervisor_pid: None,
        };
        screen.handle_survey(2_000_000_000, survey(vec![node(600), silent]));
        let text = drawn(&screen);
        for word in [
            "cluster t",
            "running",
            "4711",
            "500",
            "1:-!",
            "manager",
            "12.0",
            "1/2 8",
            "unreachable",
            "q ends",
        ] {
            assert!(text.contains(word), "{word}\n{text}");
        }
        for word in ["worker", "isolated", "ended with status 3"] {
            assert!(text.contains(word), "{word}\n{text}");
        }
        assert!(!text.contains("stale"), "{text}");
        let Answer::Answered(mut stale) = node(600) else { unreachable!() };
        stale.dirnet.as_mut().expect("it takes part").stale = true;
        screen.handle_survey(3_000_000_000, survey(vec![Answer::Answered(stale)]));
        let text = drawn(&screen);
        assert!(text.contains("manager, stale"), "{text}");
    }
}
