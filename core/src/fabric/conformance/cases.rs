//! The list of the cases, written once: for [`cases`] and for `fabric_conformance!`.

use super::Harness;

/// A case: its name, and what runs it. It panics where the rule that it is named for is broken.
pub type Case<H> = (&'static str, fn(&mut H));

/// Calls a macro, whose path stands in brackets, with the tokens behind it and every case.
#[doc(hidden)]
#[macro_export]
macro_rules! __for_each_conformance_case {
    ([$($macro:tt)+] $($arguments:tt)*) => {
        $($macro)+ { $($arguments)*;
            f1_work_takes_effect_in_posting_order
            f1_the_last_of_many_writes_stays
            f1_a_read_comes_between_the_writes_around_it
            f1_an_answer_comes_behind_what_was_posted
            f1_a_write_apart_passes_only_reads_and_atomics
            f2_each_work_completes_once_under_its_name
            f15_an_answer_is_the_completion
            f2_an_atomic_hands_back_the_old_value
            f2_quiet_success_is_silent_and_implied_by_the_next
            f2_a_quiet_failure_is_loud
            f2_a_write_changes_exactly_its_bytes
            f2_a_write_from_a_region_changes_exactly_its_bytes
            f2_a_read_changes_exactly_its_bytes
            f2_the_longest_write_from_bytes_arrives
            f2_a_long_copy_between_regions_changes_exactly_its_bytes
            f4_no_add_is_lost
            f4_one_compare_swap_wins
            f5_a_write_needs_its_right
            f5_a_read_needs_its_right
            f5_an_atomic_needs_its_right
            f5_a_right_is_for_the_peers_named
            f5_an_answer_needs_its_right
            f5_what_is_granted_is_done
            f6_outstanding_work_to_a_lost_peer_ends
            f6_posts_to_a_lost_peer_fail_at_once
            f6_a_new_life_is_reached_once_admitted
            f6_a_new_life_does_not_hide_the_loss
            f6_other_pairs_are_unharmed
            f7_a_full_queue_gives_the_work_back
            f8_polling_an_idle_fabric_returns_nothing
            f8_an_empty_slice_takes_nothing
            f8_a_short_slice_takes_its_length
            f9_nothing_of_a_fenced_peer_arrives
            f9_work_to_a_fenced_peer_ends
            f9_fencing_again_changes_nothing
            f9_only_a_later_life_is_admitted
            f10_bytes_are_free_as_soon_as_post_returns
            f11_an_unknown_peer_is_refused
            f11_an_unknown_region_is_refused
            f11_a_range_that_leaves_its_region_is_refused
            f11_a_misaligned_atomic_is_refused
            f11_a_write_that_is_too_long_is_refused
            f13_a_peer_that_never_polls_is_reached
            f14_a_write_appears_by_words_and_its_last_one_last
            f14_a_read_takes_a_word_whole
            memory_words_and_bytes_agree
            checksum_is_crc32c
        }
    };
}

macro_rules! count {
    (; $($case:ident)*) => { [$(stringify!($case)),*].len() };
}

macro_rules! list {
    (; $($case:ident)*) => { [$((stringify!($case), super::$case::<H>)),*] };
}

const CASES: usize = __for_each_conformance_case!([count!]);

/// All cases by name, for a program that runs them itself. Each wants a new harness.
#[must_use]
pub fn cases<H: Harness>() -> [Case<H>; CASES] {
    __for_each_conformance_case!([list!])
}

/// The conformance suite over the harness that the expression makes, as a module `conformance`
/// with one `#[test]` a case. The expression sees the names around the macro, and is evaluated
/// again in each test. Two fabrics in one file need a module around each.
#[macro_export]
macro_rules! fabric_conformance {
    ($harness:expr) => {
        $crate::__for_each_conformance_case!([$crate::__conformance_tests!] $harness);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    ($harness:expr; $($case:ident)*) => {
        mod conformance {
            #[allow(unused_imports, reason = "the expression may name everything by its path")]
            use super::*;

            $(
                #[test]
                fn $case() {
                    $crate::fabric::conformance::$case(&mut $harness);
                }
            )*
        }
    };
}
