//! The story as a drawing: one panel for each act, one lane for each node, time to the right.
//!
//! ```text
//!   node 1: its component is killed (kill -9)
//!   alarm 0.4 ms, verdict 1.2 ms, …
//!   node 0  manager  ━━━━━━━━━━━━━━━━③━━━━━━━━━━━━━━━━━━━━━━━━━   the line on top: who reigns
//!   node 1           ▁▂▂▂│①②   gone    │ begins │▂▂▂▂▂▂▂▂▂▂▂▂▂   the area: what arrives of it
//!   node 2           ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂
//!                    0        10        20        30 ms
//!   1  0.4 ms  node 1: …                                          the moments, in words
//! ```
//!
//! The text is SVG 1.1 without scripts, styles from elsewhere, or fonts of its own.

mod axis;
mod panel;

use std::fmt::Write as _;

use super::Summary;
use super::traffic::ArrivalCounts;
use panel::Panel;

/// The width of the whole.
const WIDTH: u32 = 1240;
/// Where the titles begin.
const MARGIN: u32 = 24;
/// What stands above the first panel.
const HEAD: u32 = 92;

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#222}\
.h1{font-size:22px;font-weight:600}.h2{font-size:15px;font-weight:600}\
.dim{fill:#666}.tick{font-size:11px;fill:#666;text-anchor:middle}\
.number{font-size:10px;font-weight:600;fill:#fff;text-anchor:middle}\
.grid{stroke:#ddd;stroke-width:1}.flow{fill:#4a88b4;fill-opacity:.75}\
.runs{fill:#eef5f0}.gone{fill:#f6d4cf}.hangs{fill:#fbe3c0}.begins{fill:#fdf3c4}\
.term{stroke:#6b4fa0;stroke-width:3}.thread{stroke:#999;stroke-width:1;stroke-dasharray:2 2}\
.blow{fill:#b8271b}.sign{fill:#d2691e}.verdict{fill:#6b4fa0}.deed{fill:#556}.return{fill:#1e7a43}";

/// Legend of the colours: class, and what it means.
const LEGEND: [(&str, &str); 5] = [
    ("gone", "has no component"),
    ("hangs", "hangs"),
    ("begins", "restarts"),
    ("flow", "messages of this node that arrive"),
    ("verdict", "manager (line); verdict (number)"),
];

/// The drawing.
pub(super) fn draw(summary: &Summary, flow: &ArrivalCounts, began_ns: u64) -> String {
    let mut body = String::new();
    let mut top = HEAD;
    for recovery in &summary.recoveries {
        let panel = Panel::new(recovery, flow, began_ns);
        panel.draw(&mut body, top);
        top += panel.height();
    }
    let verdict = if summary.ok { "everything held" } else { "something did not hold" };
    let title = "Weft: a cluster that loses members and gets them back";
    let subtitle = format!(
        "{} messages of {} streams in {} ms: {} lost, {} twice; {verdict}",
        summary.received,
        summary.streams.len(),
        summary.elapsed_ms,
        summary.lost,
        summary.duplicated
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{top}\" \
         viewBox=\"0 0 {WIDTH} {top}\" role=\"img\">\n<title>{title}</title>\n\
         <desc>{subtitle}</desc>\n<style>{STYLE}</style>\n\
         <rect width=\"{WIDTH}\" height=\"{top}\" fill=\"#fff\"/>\n"
    );
    // Writing to a string does not fail.
    let _ = writeln!(svg, "<text class=\"h1\" x=\"{MARGIN}\" y=\"36\">{title}</text>");
    let _ = writeln!(svg, "<text x=\"{MARGIN}\" y=\"58\">{subtitle}</text>");
    draw_legend(&mut svg);
    svg.push_str(&body);
    svg.push_str("</svg>\n");
    svg
}

fn draw_legend(svg: &mut String) {
    let mut x = MARGIN;
    for (class, words) in LEGEND {
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{x}\" y=\"70\" width=\"14\" height=\"12\"/>\
             <text class=\"dim\" x=\"{}\" y=\"80\">{words}</text>",
            x + 20
        );
        x += 44 + 7 * u32::try_from(words.len()).unwrap_or(0);
    }
}

/// Text between tags.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests;
