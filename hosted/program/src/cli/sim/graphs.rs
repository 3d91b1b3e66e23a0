//! `weft sim --protocol dirnet --graphs`: removals in every small graph of links.

use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::explain::Code;
use weft_sim::Subject;
use weft_sim::dirnet::NAME;
use weft_sim::dirnet::graphs::{Row, count, table};

/// Prints the table.
pub(super) fn run(subject: &Subject, output: Output) -> Result<(), Failure> {
    if subject.name != NAME {
        let cause = format!("{} has no table of graphs", subject.name);
        return Err(Failure::of(Code::Usage, cause, format!("give --protocol {NAME}")));
    }
    let bar = output.progress(count(), "cutting links");
    let rows = table(|more| bar.inc(more));
    bar.finish_and_clear();
    let mut text =
        String::from("nodes  graphs  removing  of a node that a majority meets  terms\n");
    for Row { nodes, graphs, removing, removing_falsely, terms } in &rows {
        text += &format!(
            "{nodes:>5}  {graphs:>6}  {removing:>8}  {removing_falsely:>31}  {terms:>5}\n"
        );
    }
    let object = |row: &Row| {
        json!({
            "nodes": row.nodes,
            "graphs": row.graphs,
            "removing": row.removing,
            // Counted for five nodes when a manager asked one witness after the other.
            "removing_before": (row.nodes == 5).then_some(41),
            "removing_falsely": row.removing_falsely,
            "terms_max": row.terms,
        })
    };
    let objects: Vec<_> = rows.iter().map(object).collect();
    output.finish(&json!({ "graphs": objects }), &text);
    let wrong: u32 = rows.iter().map(|row| row.removing_falsely).sum();
    if wrong == 0 {
        return Ok(());
    }
    let cause = format!("in {wrong} graphs a node is removed that a majority meets");
    Err(Failure::of(Code::Verification, cause, "correct how witnesses are asked"))
}
