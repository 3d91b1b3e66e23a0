//! The table of nodes.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Row, Table};

use super::Palette;
use crate::cli::top::columns::{Column, Level, NodeRow, rows};
use crate::cli::top::rates::Rates;
use crate::cli::top::screen::{NodeHistory, Screen};

/// In front of the chosen node, so that it is seen without colours.
const CHOSEN: &str = "> ";

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    screen: &mut Screen,
    palette: Palette,
    now_ns: u64,
) {
    let columns = Column::fitting(area.width.saturating_sub(2 + 2));
    let (lines, chosen) = {
        let rows = rows(screen, now_ns);
        let line = |row: &NodeRow<'_>| line(row, &columns, screen, palette);
        let chosen = rows.iter().position(|row| row.rank == screen.selected);
        (rows.iter().map(line).collect::<Vec<_>>(), chosen)
    };
    let widths = columns.iter().map(|column| match column {
        Column::Peers => Constraint::Min(column.width()),
        column => Constraint::Length(column.width()),
    });
    let titles = columns.iter().map(|column| cell(*column, title(*column, screen)));
    let order = if screen.is_reversed { "descending" } else { "ascending" };
    let title = format!(" nodes by {}, {order} ", screen.sort.title());
    let table = Table::new(lines, widths)
        .header(Row::new(titles).style(palette.style(Level::Strong)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .highlight_symbol(CHOSEN)
        .block(Block::bordered().title(title));
    screen.table.select(chosen);
    frame.render_stateful_widget(table, area, &mut screen.table);
}

fn line(row: &NodeRow<'_>, columns: &[Column], screen: &Screen, palette: Palette) -> Row<'static> {
    let watched = &screen.watched[usize::from(row.rank)];
    let cells = columns.iter().map(|column| {
        let text = match column.drawn() {
            Some(of) => spark(watched, of, *column, screen),
            None => row.text(*column),
        };
        cell(*column, text)
    });
    let style = palette.style(row.level);
    let style = if row.is_manager { style.add_modifier(Modifier::BOLD) } else { style };
    Row::new(cells.collect::<Vec<_>>()).style(style)
}

fn cell(column: Column, text: String) -> Cell<'static> {
    let line = Line::from(text);
    Cell::from(if column.is_number() { line.right_aligned() } else { line })
}

/// The samples of a node, by the highest of all nodes.
fn spark(watched: &NodeHistory, of: fn(Rates) -> u64, column: Column, screen: &Screen) -> String {
    watched.history.spark(of, highest(of, column, screen), samples(column))
}

/// How many samples a column draws.
fn samples(column: Column) -> usize {
    usize::from(column.width())
}

fn highest(of: fn(Rates) -> u64, column: Column, screen: &Screen) -> u64 {
    let histories = screen.watched.iter().map(|watched| &watched.history);
    histories.map(|history| history.highest(of, samples(column))).max().unwrap_or(0)
}

/// The title of a column, with the order where it is sorted by it, and the scale where it draws.
fn title(column: Column, screen: &Screen) -> String {
    if let Some(of) = column.drawn() {
        let histories = screen.watched.iter().map(|watched| &watched.history);
        let spans = histories.map(|history| history.span_ns(samples(column)));
        let span_s = spans.max().unwrap_or(0) / 1_000_000_000;
        return format!("{span_s} s, to {}", highest(of, column, screen));
    }
    let mark = match (column == screen.sort, screen.is_reversed) {
        (false, _) => "",
        (true, false) => "▲",
        (true, true) => "▼",
    };
    format!("{}{mark}", column.title())
}
