//! `weft sim --protocol dirnet --graphs`: removals in every small graph of links.

use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::output::Output;
use weft::explain::Code;
use weft_sim::Subject;
use weft_sim::dirnet::NAME;
use weft_sim::dirnet::graphs::{FALSE_REMOVALS_BEFORE, GraphRow, count, table};

const HEADER: &str = "\
Each connected graph of 3 to 6 nodes with one to three links cut for good (min_alive = 1):
  failure   beside the cut: none, or each node in turn stalls for 1.5 s or is killed
  runs      graphs, times the nodes that fail
  removing  runs in which a node is removed that did not fail
  false     of these, runs in which a quorum of running nodes reaches the removed node
  before    the same, where the first witness that does not reach a suspect removes it
  terms     the most terms claimed in one run
  decided   the longest time in ms from a kill to the removal of the killed node
  open      kills without a decision, although the running nodes are connected

nodes  failure  runs  removing  false  before  terms  decided  open
";

/// Prints the table.
pub(super) fn run(subject: &Subject, output: Output) -> Result<(), Failure> {
    if subject.name != NAME {
        let cause = format!("{} has no table of graphs", subject.name);
        return Err(Failure::of(Code::Usage, cause, format!("give --protocol {NAME}")));
    }
    let bar = output.progress(count(), "cutting links");
    let rows = table(|| bar.inc(1));
    bar.finish_and_clear();
    let mut text = String::from(HEADER);
    for (row, before) in rows.iter().zip(FALSE_REMOVALS_BEFORE) {
        let GraphRow { nodes, runs, removing, removing_falsely, terms, .. } = row;
        let GraphRow { undecided, decided_ms_max, failure, .. } = row;
        let name = failure.name();
        text += &format!(
            "{nodes:>5}  {name:<7}  {runs:>4}  {removing:>8}  {removing_falsely:>5}  \
             {before:>6}  {terms:>5}  {decided_ms_max:>7}  {undecided:>4}\n"
        );
    }
    let object = |(row, before): (&GraphRow, u32)| {
        json!({
            "nodes": row.nodes,
            "failure": row.failure.name(),
            "runs": row.runs,
            "removing": row.removing,
            "removing_falsely": row.removing_falsely,
            "removing_falsely_before": before,
            "terms_max": row.terms,
            "decided_ms_max": row.decided_ms_max,
            "undecided": row.undecided,
        })
    };
    let objects: Vec<_> = rows.iter().zip(FALSE_REMOVALS_BEFORE).map(object).collect();
    output.finish(&json!({ "graphs": objects }), &text);
    let wrong: u32 = rows.iter().map(|row| row.removing_falsely).sum();
    let open: u32 = rows.iter().map(|row| row.undecided).sum();
    if wrong + open == 0 {
        return Ok(());
    }
    let cause = format!("{wrong} runs remove a node that a quorum reaches, {open} decide nothing");
    Err(Failure::of(Code::Verification, cause, "correct how witnesses are asked"))
}
