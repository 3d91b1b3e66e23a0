//! The translator, the verifier and the interpreter against a direct evaluation of the syntax tree.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};

use weft_core::ids::Term;
use weft_core::recovery::{Expected, Outcome, Progress, Rint, verify};
use weft_core::time::Instant;

use super::drawn::{DECLARATIONS, facts, sections, world};
use super::oracle::{Facts, Oracle};
use super::translated;
use crate::code::DiagnosticCode as Code;
use crate::diagnostic::Diagnostic;
use crate::parse::parse;
use crate::source::Sources;
use crate::tree::Statement;

/// Both evaluate `text`, twice in a row so that variables count, and must agree.
fn compare(text: &str, facts: &Facts) -> Result<(), TestCaseError> {
    let text = format!("{DECLARATIONS}{text}");
    let translation = translated(&text);
    let drawing = translation.render();
    // What is drawn may divide by a constant zero, or compare an alpha-count with 300.
    let is_refused = |it: &Diagnostic| [Code::Constant, Code::Limit].contains(&it.code);
    if translation.diagnostics.iter().any(is_refused) {
        return Ok(());
    }
    let Some(image) = translation.image else {
        return Err(TestCaseError::fail(format!("{text}\n{drawing}")));
    };
    let expected = Expected { nodes: Some(3), keeps_rules: |_| true };
    let program = verify(&image, &expected).map_err(|it| TestCaseError::fail(it.to_string()))?;
    let script = parse("test.rl", &text, &mut Sources::default(), &mut |_, _| Err(String::new()));
    let sections: Vec<_> = script
        .statements
        .iter()
        .filter_map(|statement| match &statement.it {
            Statement::Section(section) => Some(section.clone()),
            _ => None,
        })
        .collect();
    let (world, mut rint) = (world(), Rint::<3, 8>::default());
    let mut variables = [0; 26];
    for _ in 0..2 {
        rint.evaluate(&program, facts, Term::of_epoch(1), Instant(0)).expect("it is idle");
        let progress = rint.step(&program, u16::MAX);
        let Ok(Progress::Done(trace)) = progress else {
            return Err(TestCaseError::fail(format!("{text}\n{progress:?}")));
        };
        let orders: Vec<_> = std::iter::from_fn(|| rint.poll_order()).map(|it| it.order).collect();
        let mut oracle = Oracle::new(&world, facts);
        oracle.variables = variables;
        let (wanted, after) = oracle.run(&sections);
        variables = after;
        if trace.outcome == Outcome::TooManyOrders {
            return Ok(());
        }
        prop_assert_eq!(orders, wanted, "{}", text);
        prop_assert_eq!((0..26).map(|it| rint.variable(it)).collect::<Vec<_>>(), after.to_vec());
    }
    Ok(())
}

fn noticed(cases: u32, max_shrink_iters: u32) -> Option<String> {
    let config = Config { cases, max_shrink_iters, failure_persistence: None, ..Config::default() };
    match TestRunner::new(config)
        .run(&(sections(), facts()), |(text, facts)| compare(&text, &facts))
    {
        Ok(()) => None,
        Err(TestError::Fail(why, _)) => Some(why.to_string()),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

/// How many scripts are compared; the promise is 10⁵, for which `RL_CASES` is set.
fn cases() -> u32 {
    std::env::var("RL_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

#[test]
fn the_interpreter_gives_the_orders_of_the_syntax_tree() {
    // No other test of this crate takes as long: with one thread, a processor would be idle.
    let half = || assert_eq!(noticed(cases().div_ceil(2), 4_000), None);
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(half))));
}

/// A process plants one bug at a time, so this runs alone: `ci/mutants recovery`.
#[cfg(feature = "mutants")]
#[test]
fn every_planted_bug_of_the_interpreter_is_noticed() {
    use weft_core::mutant::plant;
    use weft_core::recovery::MUTANTS;

    let names = [
        "branch-not-taken",
        "operands-swapped",
        "rest-is-the-set",
        "rest-of-everything",
        "default-for-answered",
        "div-by-zero-is-true",
    ];
    for mutant in MUTANTS.iter().filter(|mutant| names.contains(&mutant.name)) {
        plant(Some(mutant));
        let found = noticed(20_000, 0);
        plant(None);
        assert!(found.is_some(), "{} was not noticed", mutant.name);
        println!("{}: noticed ({})", mutant.name, mutant.breaks);
    }
}
