//! The simulator on its first subject: seeds pass, and a seed means the same twice.

mod conformance;

use super::mailbox::Mailboxes;
use super::{Plan, Trace, run};

#[test]
fn some_seeds_of_the_mailbox_pass() {
    for seed in 0..40 {
        let outcome = run::<Mailboxes>(&Plan::of(seed));
        assert_eq!(outcome.violation, None, "weft sim --protocol mailbox --seed {seed}");
    }
}

#[test]
fn a_seed_is_the_same_twice() {
    let plan = Plan { trace: Trace::on(), ..Plan::of(5) };
    let [one, other] = [(); 2].map(|()| run::<Mailboxes>(&plan));
    assert!(one.trace.lines().count() > 100);
    assert_eq!(one.trace, other.trace);
}
