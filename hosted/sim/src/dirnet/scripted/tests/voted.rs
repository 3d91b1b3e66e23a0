//! Votes over nodes that fail, the manager's among them, and ways that lose messages: no round has
//! two outcomes, and once faults are over no vote waits for one (RL-10).

use std::collections::BTreeMap;

use super::*;

const VOTING: &str = "N-VERSION 1\nVERSION 1 IS T0 TIMEOUT 200 MS\nVERSION 2 IS T1 TIMEOUT 200 MS\n\
                      VERSION 3 IS T2 TIMEOUT 200 MS\nVERSION 4 IS T3 TIMEOUT 200 MS\n\
                      VOTING ALGORITHM IS PLURALITY\nON SUCCESS T3\nON ERROR T3\nEND N-VERSION\n";

/// What came of each round, and how many nodes have learnt it.
type Rounds = BTreeMap<u32, (VoteOutcome, u32)>;

fn look(rounds: &mut Rounds, happening: &Happening) -> Result<(), String> {
    let Happening::Voted(node, outcome) = happening else { return Ok(()) };
    let (first, learnt) = rounds.entry(outcome.round).or_insert((*outcome, 0));
    *learnt += 1;
    let what = |it: &VoteOutcome| (it.voters, it.agreed, it.kind, it.value);
    if what(first) != what(outcome) {
        return Err(format!("vote: {first:?}, and at node {node} {outcome:?}"));
    }
    Ok(())
}

/// All nodes vote on what comes after the last round that they know.
fn vote(lab: &mut ScriptLab<'_>, draws: &mut Draws) {
    for version in 1..=4 {
        let votes = lab.votes.get(&u16::from(version - 1));
        let round = votes.map_or(1, |votes| votes.last_over(1) + 1);
        if draws.chance(2, 3) {
            lab.vote(1, version, round, draws.below(3) as i64);
        }
    }
}

/// Eight seconds of faults, and as long as it takes until all is well.
fn run(program: &Program<'_>, seed: u64) -> Result<(Rounds, usize), String> {
    let mut lab = ScriptLab::settled(program, Timing::LAN, &[], seed);
    let mut draws = Draws::new(seed, Purpose::Faults);
    let lost = draws.pick(&[0, 100, 500]);
    lab.rough = Some(Rough { draws: Draws::new(seed, Purpose::Schedule), late_max: MS, lost });
    let (mut checked, mut rounds, mut kills) = (Checked::default(), Rounds::new(), [0; 4]);
    while lab.now_us() < 25_000_000 {
        if lab.now_us() < 8_000_000 {
            if draws.chance(1, 40) {
                vote(&mut lab, &mut draws);
            }
            let whom = draws.below(4) as u8;
            match draws.below(2_000) {
                0 => kill(&mut lab, &mut kills, whom),
                // Within the few milliseconds that an outcome takes.
                1 => {
                    vote(&mut lab, &mut draws);
                    (0..draws.below(12)).for_each(|_| lab.step());
                    let manager = lab.acting.keys().next().map_or(whom, |node| *node as u8);
                    kill(&mut lab, &mut kills, manager);
                }
                2 => lab.crash(whom),
                _ => {}
            }
        }
        if lab.now_us() == 14_000_000 {
            start_what_is_down(&mut lab, &checked);
        }
        lab.step();
        for (_, happening) in lab.take_events() {
            checked.look(program.code().header().words, &happening)?;
            look(&mut rounds, &happening)?;
        }
    }
    match lab
        .votes
        .iter()
        .find(|(node, votes)| lab.boots[usize::from(**node)].is_some() && votes.waits())
    {
        Some((node, votes)) => Err(format!("vote: node {node} waits: {votes:?}")),
        None => Ok((rounds, checked.terms.len())),
    }
}

#[test]
fn rl10_no_round_has_two_outcomes_for_many_seeds() {
    let image = image(VOTING);
    let expected = Expected { nodes: None, keeps_rules: |_| true };
    let program = verify(&image, &expected).expect("it was translated");
    let (mut decided, mut none, mut terms, mut wrong) = (0, 0, 0, Vec::new());
    for seed in 0..10 {
        match run(&program, seed) {
            Ok((rounds, count)) => {
                decided += rounds.len();
                none += rounds.values().filter(|(it, _)| !it.is_reached()).count();
                terms += count - 1;
            }
            Err(what) => wrong.push(format!("seed {seed}: {what}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Otherwise nothing of it was put to the test.
    assert!(
        decided > 80 && none > 10 && terms > 10,
        "{decided} rounds, {none} none, {terms} terms"
    );
}
