//! Drawing: a line about the cluster, a page, and a line of keys.
//!
//! ```text
//!   cluster t   4 nodes, 1 down   every 1 s
//!   ┌ nodes ─────┐   the page of all: nodes above, below them what there is room for, the most
//!   └────────────┘   urgent first; on a narrow screen columns give way
//!   ┌ verdicts ──┐
//!   └────────────┘   every other page is lines that can be scrolled
//!   q quit  ? help
//! ```

mod detail;
mod lists;
mod nodes;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::columns::{Level, rows};
use super::screen::{Page, Screen};
pub(super) use detail::Now;

/// Whether levels have colours; what they mean is text in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Palette {
    Coloured,
    /// As `NO_COLOR` wants it.
    Plain,
}

impl Palette {
    fn style(self, level: Level) -> Style {
        let style = match level {
            Level::Strong => Style::new().add_modifier(Modifier::BOLD),
            Level::Faint => Style::new().add_modifier(Modifier::DIM),
            Level::Plain | Level::Changing | Level::Doubtful | Level::Bad => Style::new(),
        };
        match (self, level) {
            (Self::Coloured, Level::Changing) => style.fg(Color::Cyan),
            (Self::Coloured, Level::Doubtful) => style.fg(Color::Yellow),
            (Self::Coloured, Level::Bad) => style.fg(Color::Red),
            (Self::Coloured | Self::Plain, _) => style,
        }
    }
}

/// A line of text, and how it stands out.
#[derive(Clone, Debug)]
struct TextLine {
    text: String,
    level: Level,
}

/// Keys, and what they do.
const HELP: &[(&str, &str)] = &[
    ("q, Ctrl-C", "quit"),
    ("Esc", "back; from the nodes, quit"),
    ("?, h", "this help"),
    ("up, down, k, j", "choose a node, or scroll"),
    ("PgUp, PgDn, g, G", "the same by ten, to the first, to the last"),
    ("Enter", "the chosen node in detail"),
    ("s or >, S or <", "sort by the next column, the one before"),
    ("r", "sort the other way round"),
    ("Tab, 1 2 3 4", "nodes, tasks, groups, verdicts"),
    ("+, -", "ask the nodes less often, more often"),
    ("Space", "pause, go on"),
    ("Ctrl-Z", "to the shell; fg comes back"),
    ("", ""),
    ("bold", "the manager"),
    ("red", "down: unreachable, hangs, given up, isolated"),
    ("yellow, !", "suspected by another node, or wants attention"),
    ("cyan", "starting or joining"),
    ("2:1 2:1? 2:- !x", "a peer: incarnation, not greeted, down, suspected, cut"),
    ("·", "a sample without a rate: another component, or no answer"),
];

/// The width of the keys in the help.
const KEYS: usize = 18;

/// The lines that a panel below the nodes may take, its border included.
const PANEL_MAX: u16 = 10;

/// The lines that the nodes keep on any screen: their border, the titles, and four.
const NODES_MIN: u16 = 7;

/// The lines below which a panel shows nothing: its border, and one.
const PANEL_MIN: u16 = 3;

pub(super) fn draw(frame: &mut Frame<'_>, screen: &mut Screen, palette: Palette, now: Now) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(head_line(screen, palette, now), head);
    let width = usize::from(body.width.saturating_sub(2));
    match screen.page {
        Page::All => draw_all(frame, body, screen, palette, now),
        Page::Tasks => {
            let lines = lists::tasks(&screen.survey);
            draw_page(frame, body, screen, palette, ("tasks", lines));
        }
        Page::Groups => {
            let lines = lists::groups(&screen.survey);
            draw_page(frame, body, screen, palette, ("views and groups", lines));
        }
        Page::Verdicts => {
            let lines = lists::verdicts(screen, now.ns);
            draw_page(frame, body, screen, palette, ("verdicts, the last first", lines));
        }
        Page::Node(rank) => {
            let lines = detail::lines(screen, rank, now, width);
            draw_page(frame, body, screen, palette, (&format!("node {rank}"), lines));
        }
    }
    let keys = match screen.page {
        Page::All => {
            "q quit  ? help  Enter detail  Tab pages  s sort  r reverse  Space pause  +- period"
        }
        _ => "q quit  ? help  Esc back  up down scroll  Tab pages  Space pause  +- period",
    };
    frame.render_widget(Line::from(keys).style(palette.style(Level::Faint)), foot);
    draw_help(frame, body, screen, palette);
}

/// The cluster in a line, what is wrong before the rest.
fn head_line(screen: &Screen, palette: Palette, now: Now) -> Line<'static> {
    let span = |text: String, level| Span::styled(text, palette.style(level));
    let mut spans = vec![span(format!("cluster {}  ", screen.survey.name), Level::Strong)];
    if let Some(why) = &screen.ended {
        spans.push(span(format!("{why}; q quits"), Level::Bad));
        return Line::from(spans);
    }
    if screen.is_paused {
        spans.push(span("paused  ".to_owned(), Level::Doubtful));
    }
    let rows = rows(screen, now.ns);
    let nodes = |level| rows.iter().filter(|row| row.level == level).count();
    spans.push(span(format!("{} nodes", rows.len()), Level::Plain));
    for (level, words) in
        [(Level::Bad, "down"), (Level::Doubtful, "suspected"), (Level::Changing, "starting")]
    {
        if nodes(level) > 0 {
            spans.push(span(format!(", {} {words}", nodes(level)), level));
        }
    }
    spans.push(span(format!("  every {} s", screen.every.as_secs_f64()), Level::Plain));
    Line::from(spans)
}

fn draw_all(frame: &mut Frame<'_>, area: Rect, screen: &mut Screen, palette: Palette, now: Now) {
    let panels = [
        ("attention".to_owned(), None, lists::attention(&screen.survey)),
        ("last verdicts".to_owned(), Some('4'), lists::verdicts(screen, now.ns)),
        ("tasks".to_owned(), Some('2'), lists::tasks(&screen.survey)),
        ("views and groups".to_owned(), Some('3'), lists::groups(&screen.survey)),
    ];
    let panels = panels.map(|(title, key, lines)| (title, key, wrapped(lines, area.width)));
    // Border, titles and rows; where there are many, they share the screen with the rest.
    let all_nodes = u16::try_from(screen.watched.len() + 3).unwrap_or(u16::MAX);
    let nodes = all_nodes.min(area.height.div_ceil(2).max(NODES_MIN)).min(area.height);
    let mut left = area.height - nodes;
    let mut heights = [0; 4];
    // Each panel has its share before any has more.
    for most in [PANEL_MAX, u16::MAX] {
        for (height, (_, _, lines)) in heights.iter_mut().zip(&panels) {
            let wanted = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(most);
            let more = wanted.saturating_sub(*height).min(left);
            if !lines.is_empty() && *height + more >= PANEL_MIN {
                (*height, left) = (*height + more, left - more);
            }
        }
    }
    let [one, two, three, four] = heights.map(Constraint::Length);
    let nodes = Constraint::Length(all_nodes.min(nodes + left));
    let parts = Layout::vertical([nodes, one, two, three, four, Constraint::Min(0)]);
    let [top, below @ .., _]: [Rect; 6] = parts.areas(area);
    nodes::draw(frame, top, screen, palette, now.ns);
    for ((title, key, lines), area) in panels.into_iter().zip(below) {
        draw_panel(frame, area, (&title, key), lines, palette);
    }
}

/// Lines in a frame; if there is no room for all, the last of it says how to see them.
fn draw_panel(
    frame: &mut Frame<'_>,
    area: Rect,
    (title, key): (&str, Option<char>),
    mut lines: Vec<TextLine>,
    palette: Palette,
) {
    if area.height < PANEL_MIN {
        return;
    }
    let room = usize::from(area.height - 2);
    if lines.len() > room {
        let hidden = lines.len() - room + 1;
        lines.truncate(room - 1);
        let all = key.map_or_else(String::new, |key| format!("; press {key}"));
        lines.push(TextLine { text: format!("… {hidden} more lines{all}"), level: Level::Faint });
    }
    let block = Block::bordered().title(format!(" {title} "));
    frame.render_widget(Paragraph::new(painted(lines, palette)).block(block), area);
}

/// A page of lines, scrolled no further than to the last.
fn draw_page(
    frame: &mut Frame<'_>,
    area: Rect,
    screen: &mut Screen,
    palette: Palette,
    (title, mut lines): (&str, Vec<TextLine>),
) {
    if lines.is_empty() {
        lines.push(TextLine { text: "none".to_owned(), level: Level::Faint });
    }
    screen.scroll = draw_scrolled(frame, area, screen.scroll, palette, (title, lines));
}

/// Draws lines from the one with this number on, or as far down as they go; returns from where.
fn draw_scrolled(
    frame: &mut Frame<'_>,
    area: Rect,
    from: usize,
    palette: Palette,
    (title, lines): (&str, Vec<TextLine>),
) -> usize {
    let lines = wrapped(lines, area.width);
    let room = usize::from(area.height.saturating_sub(2));
    let all = lines.len();
    let from = from.min(all.saturating_sub(room));
    let shown = match all > room {
        true => format!(" {title}, lines {} to {} of {all} ", from + 1, from + room),
        false => format!(" {title} "),
    };
    let lines = painted(lines.into_iter().skip(from).take(room).collect(), palette);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(shown)), area);
    from
}

fn draw_help(frame: &mut Frame<'_>, body: Rect, screen: &mut Screen, palette: Palette) {
    let Some(from) = screen.help else { return };
    let line = |(keys, what): &(&str, &str)| TextLine {
        text: format!(" {keys:<KEYS$}{what}"),
        level: Level::Plain,
    };
    let lines: Vec<_> = HELP.iter().map(line).collect();
    let width = lines.iter().map(|line| line.text.chars().count()).max().unwrap_or(0) + 3;
    let width = u16::try_from(width).unwrap_or(u16::MAX).min(body.width);
    let height = u16::try_from(wrapped(lines.clone(), width).len() + 2).unwrap_or(u16::MAX);
    let area =
        body.centered(Constraint::Length(width), Constraint::Length(height.min(body.height)));
    frame.render_widget(Clear, area);
    screen.help = Some(draw_scrolled(frame, area, from, palette, ("help", lines)));
}

fn painted(lines: Vec<TextLine>, palette: Palette) -> Vec<Line<'static>> {
    lines.into_iter().map(|line| Line::styled(line.text, palette.style(line.level))).collect()
}

/// Lines of what fits into a frame of this width: a longer one goes on in the next, indented.
fn wrapped(lines: Vec<TextLine>, width: u16) -> Vec<TextLine> {
    let cells = usize::from(width.saturating_sub(2)).max(1);
    let mut fitting = Vec::new();
    for TextLine { text, level } in lines {
        let mut text = text.trim_end().to_owned();
        while let Some((end, last)) = text.char_indices().nth(cells) {
            let indent = text.len() - text.trim_start().len();
            // At a space behind the indentation, or else within a word.
            let space = text[..end + last.len_utf8()].rfind(' ').filter(|space| *space > indent);
            let rest = text.split_off(space.unwrap_or(end));
            fitting.push(TextLine { text, level });
            let indent = if cells > INDENT_OVER { "    " } else { "" };
            text = format!("{indent}{}", rest.trim_start());
        }
        fitting.push(TextLine { text, level });
    }
    fitting
}

/// The cells from which on what goes on is indented.
const INDENT_OVER: usize = 16;

#[cfg(test)]
mod tests;
