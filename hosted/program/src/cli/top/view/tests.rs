//! Each page as it is drawn: the texts lie in `screens`, one file each.
//!
//! A test that fails shows what was drawn; where that is right, it is the file's new text.

use std::fs;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::{Buffer, Cell};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::cli::survey::NodeAnswer;
use crate::cli::survey::tests::{Seen, node_status};
use crate::cli::top::asking::{PollReply, Resident};
use crate::cli::top::columns::Column;
use crate::cli::top::screen::Wish;
use weft::cluster::Cluster;
use weft::node::chronicle::{Entry, VerdictNote, What};
use weft::node::control::{
    CounterStatus, GroupPart, GroupStatus, MemberStatus, NodeState, NodeStatus, PeerStatus,
    RootStatus, TaskError, TaskFault, TaskState, TaskStatus, ViewStatus,
};
use weft::node::evidence::Copied;

const S: u64 = 1_000_000_000;
const NOW: Now = Now { ns: 100 * S, unix_ms: 100_000 };

fn cluster(nodes: usize) -> Cluster {
    let mut cluster = Cluster { nodes, ..Cluster::default() };
    cluster.name = "t".parse().expect("a legal name");
    cluster.group.count = 1;
    cluster
}

/// A node that has put so many messages, and that is the manager if it is the first.
fn node(rank: u16, put: u64) -> NodeStatus {
    let counters =
        CounterStatus { since_unix_ms: 40_000, put, taken: put / 2, ..CounterStatus::default() };
    let mut node = node_status(rank, Seen::default());
    node.incarnation = 7;
    node.component_pid = Some(4_710 + i32::from(rank));
    node.counters = Some(counters);
    node.last_recovery_us = (rank == 0).then_some(12_300);
    let peer = |rank| PeerStatus { rank, incarnation: Some(7), joined: true };
    node.peers = (0..4).filter(|other| *other != rank).map(peer).collect();
    let standing = node.dirnet.as_mut().expect("it takes part");
    standing.role = if rank == 0 { "manager" } else { "agent" }.to_owned();
    let member = |rank| MemberStatus { rank, boot: 7, generation: 0 };
    let members = (0..4).map(member).collect();
    standing.view = ViewStatus { number: 0x2a, epoch: 1, manager: 0, members };
    let root = |root| RootStatus { root, held: 9, delivered: 8, by_all: None, window: None };
    node.groups = vec![GroupStatus {
        name: "all".to_owned(),
        members: (0..4).collect(),
        standing: GroupPart::Open,
        removed: Vec::new(),
        roots: vec![root(0), root(1)],
    }];
    node
}

fn task(name: &str, state: TaskState) -> TaskStatus {
    let error = TaskError { fault: TaskFault::Exited { status: 3 }, ago_ms: 2_500 };
    let is_failed = state == TaskState::Isolated;
    TaskStatus {
        name: name.to_owned(),
        state,
        pid: (!is_failed).then_some(5_001),
        restarts: 2,
        errors: if is_failed { 3 } else { 0 },
        unrecorded: 0,
        last_errors: if is_failed { vec![error] } else { Vec::new() },
    }
}

fn verdict(at_ns: u64, node: u16, words: &str) -> Copied {
    let what = What::Verdict(VerdictNote {
        verdict: words.to_owned(),
        rule: "alarm-in-window".to_owned(),
        incarnation: "7/0".to_owned(),
        term: "1.0".to_owned(),
        alarm: None,
        asked: vec![1, 2],
        met_component: vec![],
        met_task: vec![1],
        met_neither: vec![],
        silent_us: Some(261_000),
    });
    Copied { entry: Entry { at_ns, observer: 0, node, what }, noted_ns: at_ns }
}

fn answer(at_ns: u64, answer: NodeAnswer) -> PollReply {
    let resident = Resident { supervisor: Some(8_192), component: Some(12_595) };
    PollReply::Answer { at_ns, answer, resident }
}

fn answered(at_ns: u64, node: NodeStatus) -> PollReply {
    answer(at_ns, NodeAnswer::Answered(Box::new(node)))
}

/// A manager, a node that it suspects, one that starts, and one that hangs; two tasks.
fn troubled() -> Screen {
    let mut screen = Screen::new(cluster(4), Duration::from_secs(1));
    for at in 0..30 {
        for rank in 0..3 {
            let put = at * 500 * u64::from(rank + 1) + at * at * 10;
            let mut node = node(rank, put);
            match rank {
                0 => {
                    node.dirnet.as_mut().expect("it takes part").suspects = vec![1, 3];
                    node.peers[2].incarnation = None;
                    node.tasks = vec![task("worker", TaskState::Running)];
                }
                1 => node.tasks = vec![task("camera", TaskState::Isolated)],
                _ => node.state = NodeState::Joining,
            }
            screen.handle_reply(answered((70 + at) * S, node));
        }
        let hangs = NodeAnswer::Silent {
            rank: 3,
            state: "hangs",
            incarnation: None,
            supervisor_pid: Some(4_800),
        };
        screen.handle_reply(answer((70 + at) * S, hangs));
    }
    let notes = vec![
        verdict(40 * S, 3, "admitted"),
        verdict(95 * S + S / 2, 3, "component down"),
        // Another node keeps the same one.
        verdict(95 * S + S / 2, 3, "component down"),
    ];
    screen.handle_reply(PollReply::Notes(notes));
    screen
}

fn buffer(screen: &mut Screen, palette: Palette, (width, height): (u16, u16)) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, screen, palette, NOW)).expect("it cannot fail");
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> Vec<String> {
    let rows = buffer.content().chunks(usize::from(buffer.area().width).max(1));
    let line = |cells: &[Cell]| cells.iter().map(Cell::symbol).collect::<String>();
    rows.map(|cells| line(cells).trim_end().to_owned()).collect()
}

/// Compares with the file of that name, which says the size.
#[track_caller]
fn assert_drawn(screen: &mut Screen, name: &str) {
    let size = name.rsplit('-').next().and_then(|size| size.split_once('x')).expect("a size");
    let number = |text: &str| text.parse().expect("a number");
    let size = (number(size.0), number(size.1));
    let drawn = lines(&buffer(screen, Palette::Coloured, size)).join("\n") + "\n";
    let path = format!("{}/src/cli/top/view/screens/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(drawn == expected, "{name}, drawn:\n{drawn}\nexpected:\n{expected}");
}

fn press(screen: &mut Screen, codes: &[KeyCode]) -> Wish {
    let press = |code| screen.handle_key(&KeyEvent::new(code, KeyModifiers::NONE), NOW.ns);
    codes.iter().copied().map(press).last().expect("a key")
}

fn key(letter: char) -> KeyCode {
    KeyCode::Char(letter)
}

#[test]
fn the_page_of_all_has_what_there_is_room_for() {
    let mut screen = troubled();
    assert_drawn(&mut screen, "all-160x34");
    assert_drawn(&mut screen, "all-80x24");
    assert_drawn(&mut screen, "all-40x10");
}

#[test]
fn the_other_pages_are_lines() {
    let mut screen = troubled();
    for (page, name) in [('2', "tasks-80x12"), ('3', "groups-80x12"), ('4', "verdicts-80x12")] {
        press(&mut screen, &[key(page)]);
        assert_drawn(&mut screen, name);
    }
}

#[test]
fn a_node_is_shown_in_detail_also_one_that_hangs() {
    let mut screen = troubled();
    press(&mut screen, &[KeyCode::Enter]);
    assert_drawn(&mut screen, "node-100x50");
    press(&mut screen, &[KeyCode::End]);
    assert_drawn(&mut screen, "node-end-60x12");
    assert_eq!(press(&mut screen, &[KeyCode::Esc, KeyCode::End, KeyCode::Enter]), Wish::Nothing);
    assert_drawn(&mut screen, "node-hangs-80x16");
}

#[test]
fn help_covers_the_page_and_scrolls_where_it_is_longer() {
    let mut screen = troubled();
    press(&mut screen, &[key('?')]);
    assert_drawn(&mut screen, "help-80x24");
    press(&mut screen, &[KeyCode::End]);
    assert_drawn(&mut screen, "help-end-40x10");
    assert_eq!(press(&mut screen, &[KeyCode::Esc]), Wish::Nothing);
    assert!(screen.help.is_none() && screen.page == Page::All);
}

#[test]
fn before_the_first_answer_and_behind_the_end_it_says_so() {
    let mut screen = Screen::new(cluster(2), Duration::from_millis(500));
    assert_drawn(&mut screen, "asked-60x8");
    screen.handle_reply(PollReply::Ended("the cluster has ended".to_owned()));
    assert_drawn(&mut screen, "ended-60x8");
}

#[test]
fn a_cluster_that_is_started_again_begins_with_nothing_of_the_one_before() {
    let mut screen = troubled();
    press(&mut screen, &[key('>'), KeyCode::Down, KeyCode::Enter]);
    assert!(!screen.handle_reply(PollReply::Runs(Box::new(cluster(4)))), "it still runs");
    screen.handle_reply(PollReply::Ended("the cluster has ended".to_owned()));
    assert!(screen.handle_reply(PollReply::Runs(Box::new(cluster(4)))), "it runs again");
    assert_eq!(
        (screen.page, screen.sort, screen.verdicts().count()),
        (Page::All, Column::State, 0)
    );
    assert!(screen.handle_reply(PollReply::Runs(Box::new(cluster(6)))), "with another file");
    assert_eq!(screen.watched.len(), 6);
    // The last answer of the one before names a node that this one does not have.
    screen.handle_reply(answered(S, node(30, 1)));
    buffer(&mut screen, Palette::Coloured, (80, 24));
}

#[test]
fn a_wide_cluster_scrolls_with_the_choice_and_is_sorted() {
    let mut screen = Screen::new(cluster(32), Duration::from_secs(1));
    for at in 1..3 {
        for rank in 0..32 {
            let put = if rank == 17 { 0 } else { at * 100 * u64::from(rank) };
            screen.handle_reply(answered(at * S, node(rank, put)));
        }
    }
    let shown =
        |screen: &mut Screen| lines(&buffer(screen, Palette::Coloured, (80, 14))).join("\n");
    assert!(!shown(&mut screen).contains("   31 "));
    press(&mut screen, &[KeyCode::End]);
    assert!(shown(&mut screen).contains(">    31 "), "{}", shown(&mut screen));
    press(&mut screen, &[KeyCode::PageUp, key('k')]);
    assert!(shown(&mut screen).contains(">    20 "), "{}", shown(&mut screen));
    while screen.sort != Column::Put {
        press(&mut screen, &[key('s')]);
    }
    press(&mut screen, &[key('r'), KeyCode::Home]);
    assert_eq!(screen.selected, 31, "the most first");
    assert!(shown(&mut screen).contains("put/s▼"), "{}", shown(&mut screen));
    press(&mut screen, &[key('r'), KeyCode::Home, key('j')]);
    assert_eq!(screen.selected, 17, "equal ones by rank");
}

#[test]
fn keys_change_the_period_and_pause() {
    let mut screen = troubled();
    press(&mut screen, &[key('+'), key('+')]);
    assert_eq!(screen.every, Duration::from_secs(5));
    press(&mut screen, &[key('-')].repeat(20));
    assert_eq!(screen.every, Duration::from_millis(100));
    screen.every = Duration::from_secs(600);
    press(&mut screen, &[key('+')]);
    assert_eq!(screen.every, Duration::from_secs(600), "no longer one is known");
    press(&mut screen, &[key(' ')]);
    assert!(screen.is_paused);
    assert!(lines(&buffer(&mut screen, Palette::Plain, (80, 9)))[0].contains("paused"));
}

#[test]
fn what_ends_it() {
    let mut screen = troubled();
    let control = |letter| KeyEvent::new(key(letter), KeyModifiers::CONTROL);
    assert_eq!(screen.handle_key(&control('c'), 0), Wish::End);
    assert_eq!(screen.handle_key(&control('z'), 0), Wish::Suspend);
    assert_eq!(screen.handle_key(&control('q'), 0), Wish::Nothing);
    assert_eq!(press(&mut screen, &[key('2'), KeyCode::Esc]), Wish::Nothing);
    assert_eq!(press(&mut screen, &[KeyCode::Esc]), Wish::End);
    assert_eq!(press(&mut screen, &[key('?'), key('q')]), Wish::End);
}

#[test]
fn a_node_that_owes_its_answer_for_too_long_is_shown_as_silent() {
    let mut screen = troubled();
    screen.handle_round(NOW.ns - 3 * S);
    screen.handle_round(NOW.ns);
    let text = lines(&buffer(&mut screen, Palette::Plain, (80, 9))).join("\n");
    assert!(!text.contains("silent"), "{text}");
    let late = Now { ns: NOW.ns + 4 * S, ..NOW };
    let mut terminal = Terminal::new(TestBackend::new(80, 9)).expect("a terminal");
    terminal.draw(|frame| draw(frame, &mut screen, Palette::Plain, late)).expect("it can");
    let text = lines(terminal.backend().buffer()).join("\n");
    assert!(text.contains("silent 7 s") && text.contains("4 nodes, 4 down"), "{text}");
}

#[test]
fn colours_repeat_what_text_says_and_give_way_to_no_color() {
    let mut screen = troubled();
    let coloured = buffer(&mut screen, Palette::Coloured, (80, 24));
    let rows: Vec<_> = lines(&coloured);
    let style = |words: &str| {
        let y = rows.iter().position(|row| row.contains(words)).expect("it is drawn");
        let at = rows[y].find(words).expect("it is there");
        let x = rows[y][..at].chars().count();
        coloured[(u16::try_from(x).expect("short"), u16::try_from(y).expect("few"))].clone()
    };
    assert_eq!(style("hangs").fg, Color::Red);
    assert_eq!(style("running !").fg, Color::Yellow);
    assert_eq!(style("joining").fg, Color::Cyan);
    assert!(style("manager").modifier.contains(Modifier::BOLD));
    assert!(style(">     0").modifier.contains(Modifier::REVERSED));
    for page in ['1', '2', '3', '4'] {
        press(&mut screen, &[key(page)]);
        let plain = buffer(&mut screen, Palette::Plain, (80, 24));
        let is_plain = |cell: &Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
        assert!(plain.content().iter().all(is_plain), "page {page}");
    }
}

#[test]
fn every_size_can_be_drawn() {
    let mut screen = troubled();
    for page in [key('1'), key('2'), key('3'), key('4'), KeyCode::Enter] {
        if page == KeyCode::Enter {
            press(&mut screen, &[key('1')]);
        }
        press(&mut screen, &[page]);
        for help in [None, Some(0), Some(usize::MAX)] {
            for width in (1..30).chain([40, 80, 300]) {
                for height in (1..14).chain([24, 100]) {
                    (screen.help, screen.scroll) = (help, usize::MAX);
                    buffer(&mut screen, Palette::Coloured, (width, height));
                }
            }
        }
    }
}

#[test]
fn long_lines_go_on_indented_and_lose_nothing() {
    let line = |text: &str| vec![TextLine { text: text.to_owned(), level: Level::Plain }];
    let texts = |text: &str, width| -> Vec<String> {
        wrapped(line(text), width).into_iter().map(|line| line.text).collect()
    };
    assert_eq!(texts("one two three four five", 20), ["one two three four", "    five"]);
    assert_eq!(texts("  ääääääääääääääääääääääää", 20), ["  ääääääääääääääää", "    ääääääää"]);
    assert_eq!(texts("abc", 0), ["a", "b", "c"]);
    assert_eq!(texts("", 20), [""]);
}
