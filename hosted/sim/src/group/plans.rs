//! The plans of a run, in lockstep: trees reach each member once, and the pipeline meets its bound.

use weft_core::group::{Pipeline, Sizes, Step};

use crate::protocol::Violation;

/// The most members of a plan: more than a run has, since plans cost no time.
const MEMBERS_MAX: u16 = 16;

/// Checks the plans of a run, also for more members.
pub(super) fn check(sizes: Sizes, blocks_max: u64) -> Result<(), Violation> {
    for members in 2..=MEMBERS_MAX {
        let mut reached = vec![0; usize::from(members)];
        let mut nodes: Vec<u16> = vec![0];
        while let Some(node) = nodes.pop() {
            let serves = if node == 0 { 1..members } else { sizes.tree.serves(members, node) };
            for part in sizes.tree.parts(serves) {
                reached[usize::from(part.start)] += 1;
                nodes.push(part.start);
            }
            if nodes.len() > usize::from(members) {
                break;
            }
        }
        if reached[1..].iter().any(|times| *times != 1) {
            let what = format!("{:?} reaches {members} members {reached:?} times", sizes.tree);
            return Err(Violation::new("once", what));
        }
        for blocks in [1, 2, 7, blocks_max] {
            check_pipeline(members, blocks)?;
        }
    }
    Ok(())
}

fn check_pipeline(members: u16, blocks: u64) -> Result<(), Violation> {
    let broken = |what: &str| {
        let what = format!("{members} members, {blocks} blocks: {what}");
        Err(Violation::new("steps", what))
    };
    let mut plans: Vec<_> =
        (0..members).map(|member| Pipeline::new(members, blocks, member)).collect();
    let bound = blocks + u64::from(members.next_power_of_two().ilog2()) - 1;
    let mut held = vec![vec![false; blocks as usize]; usize::from(members)];
    held[0].fill(true);
    for _ in 0..bound {
        let steps: Vec<Option<Step>> = plans.iter_mut().map(Iterator::next).collect();
        let before = held.clone();
        for (member, step) in steps.iter().enumerate() {
            let Some(transfer) = step.and_then(|step| step.incoming) else { continue };
            let (with, block) = (usize::from(transfer.with), transfer.block as usize);
            if !before[with][block] || held[member][block] {
                return broken("a block is lacking, or comes twice");
            }
            held[member][block] = true;
        }
    }
    match held.iter().flatten().all(|is_held| *is_held) {
        true => Ok(()),
        false => broken("not all is received within the bound"),
    }
}
