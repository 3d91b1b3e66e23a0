//! What is shown, and what keys change about it.
//!
//! Replies and keys come in with the time; nothing here draws, asks or waits.

use std::collections::BTreeMap;
use std::time::Duration;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::widgets::TableState;

use super::asking::{PollReply, Resident};
use super::columns::{Column, NOT_ASKED, rows};
use super::rates::History;
use crate::cli::survey::{NodeAnswer, Survey};
use weft::cluster::Cluster;
use weft::node::chronicle::{Entry, What};
use weft::node::evidence::Copied;

/// The most notes that are kept, the last of all nodes.
const NOTES_MAX: usize = 1024;

/// How long a node that has answered before may be waited for until it counts as silent.
const LATE_NS: u64 = 3_000_000_000;

/// The periods that keys choose from, in milliseconds.
const PERIODS_MS: [u64; 9] = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

/// Rows or lines that a page key moves by.
const PAGE: usize = 10;

/// What fills the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    All,
    Tasks,
    Groups,
    Verdicts,
    Node(u16),
}

/// What a key asks for beyond another picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    Nothing,
    End,
    /// To the shell, and back when it continues the program.
    Suspend,
}

/// A node over time.
#[derive(Debug, Default)]
pub(super) struct NodeHistory {
    pub(super) history: History,
    pub(super) resident: Resident,
    /// When the round began whose answer is due.
    awaited_since_ns: Option<u64>,
}

impl NodeHistory {
    /// For how many seconds its answer is due, if that is too long.
    pub(super) fn late_s(&self, now_ns: u64) -> Option<u64> {
        let late_ns = now_ns.saturating_sub(self.awaited_since_ns?);
        (late_ns > LATE_NS).then_some(late_ns / 1_000_000_000)
    }
}

/// What is shown.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) survey: Survey,
    /// By rank.
    pub(super) watched: Vec<NodeHistory>,
    /// By time and observer, which name a note.
    notes: BTreeMap<(u64, u16), Entry>,
    /// Why there is no cluster any more.
    pub(super) ended: Option<String>,
    pub(super) page: Page,
    pub(super) selected: u16,
    pub(super) sort: Column,
    pub(super) is_reversed: bool,
    /// The first line of the help, where it is shown.
    pub(super) help: Option<usize>,
    pub(super) is_paused: bool,
    pub(super) every: Duration,
    /// The first line of a page of lines.
    pub(super) scroll: usize,
    /// Where the table of nodes begins.
    pub(super) table: TableState,
}

impl Screen {
    /// Of a cluster that has not answered yet.
    pub(super) fn new(cluster: Cluster, every: Duration) -> Self {
        let (survey, watched) = unasked(cluster);
        Self {
            survey,
            watched,
            notes: BTreeMap::new(),
            ended: None,
            page: Page::All,
            selected: 0,
            sort: Column::Node,
            is_reversed: false,
            help: None,
            is_paused: false,
            every,
            scroll: 0,
            table: TableState::default(),
        }
    }

    /// Takes a reply; returns whether the cluster has become another one, whose nodes must be asked
    /// instead.
    pub(super) fn handle_reply(&mut self, reply: PollReply) -> bool {
        match reply {
            PollReply::Runs(cluster) => {
                let is_another = self.ended.take().is_some() || *cluster != self.survey.cluster;
                if is_another {
                    let (every, sort) = (self.every, self.sort);
                    *self = Self { sort, ..Self::new(*cluster, every) };
                }
                return is_another;
            }
            PollReply::Ended(why) => self.ended = Some(why),
            PollReply::Answer { at_ns, answer, resident } => {
                self.handle_answer(at_ns, answer, resident);
            }
            PollReply::Notes(copies) => self.handle_notes(copies),
        }
        false
    }

    fn handle_answer(&mut self, at_ns: u64, answer: NodeAnswer, resident: Resident) {
        let (rank, node) = match &answer {
            NodeAnswer::Answered(node) => (node.rank, Some(&**node)),
            NodeAnswer::Silent { rank, .. } => (*rank, None),
        };
        let Some(watched) = self.watched.get_mut(usize::from(rank)) else { return };
        watched.history.handle_answer(at_ns, node);
        watched.resident = resident;
        watched.awaited_since_ns = None;
        self.survey.nodes[usize::from(rank)] = answer;
    }

    fn handle_notes(&mut self, copies: Vec<Copied>) {
        for Copied { entry, noted_ns } in copies {
            self.notes.entry((noted_ns, entry.observer)).or_insert(entry);
            if self.notes.len() > NOTES_MAX {
                self.notes.pop_first();
            }
        }
    }

    /// Notes that a round has begun: each node owes an answer.
    pub(super) fn handle_round(&mut self, now_ns: u64) {
        for watched in &mut self.watched {
            watched.awaited_since_ns.get_or_insert(now_ns);
        }
    }

    /// The verdicts, the last first.
    pub(super) fn verdicts(&self) -> impl Iterator<Item = &Entry> {
        let notes = self.notes.values().rev();
        notes.filter(|entry| matches!(entry.what, What::Verdict(_)))
    }

    /// What was noted about a node, the last first.
    pub(super) fn notes_about(&self, rank: u16) -> impl Iterator<Item = &Entry> {
        self.notes.values().rev().filter(move |entry| entry.node == rank)
    }

    /// Takes a key.
    pub(super) fn handle_key(&mut self, key: &KeyEvent, now_ns: u64) -> Wish {
        if key.kind == KeyEventKind::Release {
            return Wish::Nothing;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Wish::End,
                KeyCode::Char('z') => Wish::Suspend,
                _ => Wish::Nothing,
            };
        }
        match key.code {
            KeyCode::Char('q') => return Wish::End,
            KeyCode::Char('?' | 'h') => {
                self.help = if self.help.is_some() { None } else { Some(0) }
            }
            // What covers the nodes goes first.
            KeyCode::Esc if self.help.is_some() => self.help = None,
            KeyCode::Esc if self.page != Page::All => self.show(Page::All),
            KeyCode::Esc => return Wish::End,
            KeyCode::Char('s' | '>') => self.sort = self.sort.next(true),
            KeyCode::Char('S' | '<') => self.sort = self.sort.next(false),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('+' | '=') => self.every = next_period(self.every, true),
            KeyCode::Char('-') => self.every = next_period(self.every, false),
            KeyCode::Char('1') => self.show(Page::All),
            KeyCode::Char('2') => self.show(Page::Tasks),
            KeyCode::Char('3') => self.show(Page::Groups),
            KeyCode::Char('4') => self.show(Page::Verdicts),
            KeyCode::Tab => self.show(beside(self.page, true)),
            KeyCode::BackTab => self.show(beside(self.page, false)),
            KeyCode::Enter if self.page == Page::All => self.show(Page::Node(self.selected)),
            code => self.go(code, now_ns),
        }
        Wish::Nothing
    }

    fn show(&mut self, page: Page) {
        self.page = page;
        self.scroll = 0;
    }

    /// Moves among the nodes, or the lines of a page, whose end drawing knows.
    fn go(&mut self, code: KeyCode, now_ns: u64) {
        if let Some(from) = &mut self.help {
            *from = moved(*from, code);
            return;
        }
        if self.page != Page::All {
            self.scroll = moved(self.scroll, code);
            return;
        }
        let rows = rows(self, now_ns);
        let at = rows.iter().position(|row| row.rank == self.selected).unwrap_or(0);
        let to = moved(at, code).min(rows.len().saturating_sub(1));
        self.selected = rows.get(to).map_or(self.selected, |row| row.rank);
    }
}

/// Where a key leads from line `at`.
const fn moved(at: usize, code: KeyCode) -> usize {
    match code {
        KeyCode::Down | KeyCode::Char('j') => at.saturating_add(1),
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::PageDown => at.saturating_add(PAGE),
        KeyCode::PageUp => at.saturating_sub(PAGE),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => at,
    }
}

/// A survey of a cluster that was not asked yet, and its nodes.
fn unasked(cluster: Cluster) -> (Survey, Vec<NodeHistory>) {
    let ranks = 0..u16::try_from(cluster.nodes).unwrap_or(u16::MAX);
    let silent = |rank| NodeAnswer::Silent {
        rank,
        state: NOT_ASKED,
        incarnation: None,
        supervisor_pid: None,
    };
    let watched = ranks.clone().map(|_| NodeHistory::default()).collect();
    (Survey::of(cluster, ranks.map(silent).collect()), watched)
}

/// The next longer or shorter period.
fn next_period(every: Duration, is_longer: bool) -> Duration {
    let mut periods = PERIODS_MS.map(Duration::from_millis).into_iter();
    let next = match is_longer {
        true => periods.find(|period| *period > every),
        false => periods.rfind(|period| *period < every),
    };
    next.unwrap_or(every)
}

/// The page beside this one; that of a node is among those of all.
fn beside(page: Page, is_right: bool) -> Page {
    let pages = [Page::All, Page::Tasks, Page::Groups, Page::Verdicts];
    let at = pages.iter().position(|it| *it == page).unwrap_or(0);
    pages[(at + if is_right { 1 } else { pages.len() - 1 }) % pages.len()]
}
