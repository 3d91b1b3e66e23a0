//! The broadcast against the faults of its members and its fabric.
//!
//! The scenarios of `SPEC.md` and the tests of each; the test `tables` checks that every test in
//! this table exists. For the guard of each trap, and the scenario that detects its removal, see
//! [`mutants`](super::mutants).
//!
//! | scenario | tests |
//! |---|---|
//! | all correct, n = 2 to 7, random schedules | `schedules::two_correct_members` `schedules::three_correct_members` `schedules::four_correct_members` `schedules::five_to_seven_correct_members` |
//! | m to one half, m' to the other, every interleaving, n <= 4 | `faces::every_interleaving_of_two_faces_among_three` `faces::every_interleaving_of_two_faces_among_four` |
//! | equivocate, then die | `traps::equivocate_then_die` |
//! | the origin rewrites after the replay | `traps::rewritten_after_replay` |
//! | a replayer that lies | `replayers::a_replayer_that_lies_vetoes_and_is_named` `signed::a_replayer_that_lies_or_is_silent_cannot_veto` |
//! | that flaps | `replayers::a_replayer_that_flaps_vetoes_at_most` `replayers::a_replayer_that_flaps_makes_no_two_faces_one` `replayers::a_replayer_that_flaps_vetoes_nothing_that_is_signed` `replayers::a_replayer_that_flaps_makes_no_two_signed_faces_one` `traps::conflict_then_silence` |
//! | that stays empty | `replayers::a_replayer_that_stays_empty_delays_nothing` `signed::a_replayer_that_lies_or_is_silent_cannot_veto` |
//! | that tears | `traps::a_torn_replay_is_read_again_until_it_is_whole` `traps::a_replayer_that_stays_torn_is_read_ever_more_rarely` `signed::a_replayer_that_stays_newer_or_torn_cannot_veto` |
//! | a peer dies with reads outstanding | `restarts::a_peer_that_dies_with_reads_outstanding_is_waited_for` `traps::slow_is_not_dead` |
//! | ten wraps of the window with a slow reader | `traps::wraps_with_a_slow_reader` `restarts::members_restart_during_ten_wraps` |
//! | queue depths 1 and 2 | `windows::a_queue_that_takes_one_work_at_a_time_is_enough` |
//! | completions reordered across peers | `schedules::completions_reordered_across_peers` |
//! | a member returns | `epochs::a_member_that_returned_takes_part` `epochs::members_return_one_after_the_other` `epochs::windows_wrap_across_returns` |

mod cluster;
mod costs;
mod damage;
mod epochs;
mod faces;
mod held;
#[cfg(feature = "mutants")]
mod planted;
mod replayers;
mod restarts;
mod schedules;
#[cfg(feature = "signed")]
mod signed;
mod tables;
mod traps;
mod windows;

/// The depth that machines in tests are made for, and have.
const DEPTH: usize = 2;
/// Slots of a ring in tests.
const NET_SLOTS: u32 = 4;
/// Words of memory of an endpoint, enough for seven members, and for two with the longest slots.
const WORDS: usize = 8192;
