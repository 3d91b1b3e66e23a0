//! The same models with one fence left out: the checker must find what goes wrong.

use std::panic::catch_unwind;

use weft_core::fabric::{arm, memory};
use weft_core::mutant::{Mutant, plant};
use weft_core::neb;

use crate::alone;
use crate::exposure::agreement;
use crate::publication::{
    atomic_after_write, end_of_a_write, store_after_write, write_after_write,
};
use crate::wake_up::no_wake_up_is_lost;

/// Those of `weakened` whose failure the model does not find.
fn unnoticed(weakened: &'static [Mutant], model: fn()) -> Vec<&'static str> {
    let survives = |mutant: &&Mutant| {
        plant(Some(mutant));
        let checked = catch_unwind(model);
        plant(None);
        checked.is_ok()
    };
    weakened.iter().filter(survives).map(|mutant| mutant.name).collect()
}

#[test]
fn every_fence_of_the_words_is_needed() {
    let _alone = alone();
    let unnoticed = unnoticed(memory::WEAKENED, || loom::model(write_after_write));
    assert_eq!(unnoticed, [""; 0]);
}

/// Not of a write that ends within a word: loom orders exchanges more than they need to be.
#[test]
fn the_fence_before_the_last_word_of_a_write_is_needed() {
    let _alone = alone();
    assert_eq!(unnoticed(memory::UNORDERED, || loom::model(end_of_a_write)), [""; 0]);
}

#[test]
fn the_orders_of_words_that_publish_are_needed() {
    let _alone = alone();
    assert_eq!(unnoticed(memory::RELAXED, || loom::model(store_after_write)), [""; 0]);
    assert_eq!(unnoticed(memory::RELAXED_ATOMICS, || loom::model(atomic_after_write)), [""; 0]);
}

#[test]
fn every_fence_of_the_armed_word_is_needed() {
    let _alone = alone();
    assert_eq!(unnoticed(arm::WEAKENED, || no_wake_up_is_lost(1)), [""; 0]);
}

#[test]
fn the_fence_between_exposing_and_reading_is_needed() {
    let _alone = alone();
    assert_eq!(unnoticed(neb::mutants::WEAKENED, agreement), [""; 0]);
}
