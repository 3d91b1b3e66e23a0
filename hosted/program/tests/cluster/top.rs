//! `weft top` on a terminal: keys, sizes, what becomes of nodes and of the cluster meanwhile, and
//! every way that it ends.

mod terminal;

use weft::process::{Pid, Pidfd, Signal};

use crate::place::{Nodes, Place, Running, eventually};
use terminal::Terminal;

/// `weft top` on this terminal, once it has drawn what the nodes answer.
fn top(place: &Place, terminal: &mut Terminal, no_color: &str) -> Running {
    let top = place.start_changed("top --name t --every 0.1", "", |command| {
        let command = command.stdin(terminal.open()).stdout(terminal.open());
        command.env("TERM", "xterm").env("NO_COLOR", no_color)
    });
    await_shown(terminal, "manager");
    assert!(terminal.is_raw(), "keys come one by one, and are not echoed");
    top
}

#[track_caller]
fn await_shown(terminal: &mut Terminal, text: &str) {
    eventually(text, || terminal.shown().contains(text));
}

/// Presses keys, and waits until the screen shows what they ask for.
#[track_caller]
fn press(terminal: &mut Terminal, keys: &[u8], text: &str) {
    terminal.press(keys);
    await_shown(terminal, text);
}

/// Waits for an end without an error, and for the terminal as it was before.
fn assert_ends_well(top: Running, terminal: &mut Terminal) {
    let said = top.wait();
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    terminal.shown();
    assert!(terminal.is_restored(), "{:?}", terminal.written());
}

fn supervisor(nodes: &Nodes, rank: u16) -> Pidfd {
    let pid = nodes.client(rank).status().expect("a status").supervisor_pid;
    Pidfd::open(Pid::from_raw(pid).expect("a number")).expect("it was just alive")
}

#[test]
fn keys_lead_through_every_page_and_q_ends_it() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let mut terminal = Terminal::new((80, 24));
    let top = top(&place, &mut terminal, "");
    press(&mut terminal, b"?", "this help");
    press(&mut terminal, b"\x1b", "nodes by node, ascending");
    press(&mut terminal, b"s", "nodes by state, ascending");
    press(&mut terminal, b"r", "nodes by state, descending");
    press(&mut terminal, b"<", "nodes by node, descending");
    press(&mut terminal, b"\x1b[A", ">     1");
    press(&mut terminal, b"\r", "supervisor  process");
    assert!(terminal.shown().contains("node 1: running, backup"), "{}", terminal.shown());
    press(&mut terminal, b"2", "┌ tasks");
    press(&mut terminal, b"\t", "view 0x");
    press(&mut terminal, b"4", "admitted by rule joined");
    press(&mut terminal, b"1", ">     1");
    press(&mut terminal, b"+", "every 0.2 s");
    press(&mut terminal, b"-", "every 0.1 s");
    press(&mut terminal, b" ", "paused");
    terminal.press(b" ");
    eventually("it goes on", || !terminal.shown().contains("paused"));
    assert!(terminal.written().contains("\u{1b}[38;5;"), "it has colours");
    terminal.resize((40, 10));
    top.signal(Signal::WINCH);
    eventually("it fits", || {
        let shown = terminal.shown();
        shown.lines().nth(9).is_some_and(|line| line.starts_with("q quit"))
    });
    terminal.press(b"q");
    assert_ends_well(top, &mut terminal);
    nodes.assert_unharmed();
}

#[test]
fn signals_end_it_and_the_terminal_is_as_before() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut terminal = Terminal::new((80, 24));
        let top = top(&place, &mut terminal, "");
        top.signal(signal);
        assert_ends_well(top, &mut terminal);
    }
    nodes.assert_unharmed();
}

#[test]
fn a_node_that_hangs_holds_up_no_other_and_the_end_of_the_cluster_is_said() {
    let place = Place::new();
    let (up, nodes) = place.up_calm(2);
    let mut terminal = Terminal::new((80, 24));
    let top = top(&place, &mut terminal, "1");
    let hangs = supervisor(&nodes, 1);
    hangs.signal(Signal::STOP).expect("ours");
    await_shown(&mut terminal, "hangs");
    assert!(terminal.shown().contains("running      manager"), "{}", terminal.shown());
    // Keys are answered meanwhile.
    press(&mut terminal, b"?", "this help");
    press(&mut terminal, b"?", "nodes by node");
    hangs.signal(Signal::CONT).expect("ours");
    eventually("it is back", || !terminal.shown().contains("hangs"));
    place.weft("down --name t").done();
    up.wait();
    await_shown(&mut terminal, "the cluster has ended");
    await_shown(&mut terminal, "unreachable");
    // Another one of its name is shown in its place.
    let (_up, _nodes) = place.up("--nodes 3");
    await_shown(&mut terminal, "3 nodes");
    terminal.press(b"\x03");
    assert_ends_well(top, &mut terminal);
    assert!(!terminal.written().contains("\u{1b}[38;5;"), "NO_COLOR is honoured");
}

#[test]
fn it_ends_when_its_terminal_is_closed() {
    let place = Place::new();
    let (_up, nodes) = place.up_calm(2);
    let mut terminal = Terminal::new((80, 24));
    let top = top(&place, &mut terminal, "");
    terminal.close();
    let said = top.wait();
    assert!(said.status != Some(0) && said.err.contains("terminal"), "{}", said.err);
    nodes.assert_unharmed();
}

#[test]
fn a_terminal_that_can_only_print_is_refused_with_a_cure() {
    let place = Place::new();
    let terminal = Terminal::new((80, 24));
    let top = place.start_changed("top --name t", "", |command| {
        command.stdin(terminal.open()).stdout(terminal.open()).env("TERM", "dumb")
    });
    let said = top.wait();
    assert_eq!(said.status, Some(2));
    assert!(said.err.contains("dumb") && said.err.contains("`weft status`"), "{}", said.err);
}
