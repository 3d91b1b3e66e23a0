//! Each planted bug, and the first scenario that detects it.
//!
//! A planted bug affects the whole process, so this test runs alone: `ci/mutants dirnet`.

use std::panic::catch_unwind;
use std::vec::Vec;
use std::{eprintln, println};

use super::{
    cut, detect, handover, heard, heirs, isolation, join, limits, refuse, restore, rivals, stale,
    succeed, supervisor, views, witness,
};
use crate::dirnet::MUTANTS;
use crate::dirnet::im_alive::tests as im_alive;
use crate::dirnet::profile::tests as profile;
use crate::dirnet::record::tests as record;
use crate::dirnet::supervision::tests as supervision;
use crate::mutant::{Mutant, plant};

macro_rules! scenarios {
    ($($module:ident: $($name:ident)*;)*) => {
        const SCENARIOS: &[(&str, fn())] = &[$($((stringify!($name), $module::$name),)*)*];
    };
}

scenarios! {
    detect:
        everybody_started_at_once_agrees
        a_quiet_cluster_sends_heartbeats_only
        a_crashed_node_is_removed_fenced_reset_and_rejoins
        a_hung_component_is_told_from_a_dead_node_and_cloned
        g2_one_suspect_that_returns_does_not_save_another
        g3_the_second_suspicion_begins_anew
        g5_an_alarm_before_the_suspicion_is_used_by_it
        g7_an_alarm_that_is_lost_is_repeated
        g11_a_reset_needs_a_second_observer
        g11_a_node_is_fenced_everywhere_before_it_is_reset
        g11_a_member_that_is_known_by_hearsay_fences_before_the_reset
        g11_a_member_that_came_after_a_reset_fences_before_the_next
        g11_too_few_remove_nobody
        g11_a_manager_that_is_cut_off_removes_nobody
        g11_halves_that_are_too_small_remove_nobody
        g33_a_reset_survives_the_managers_next_term
        x1_a_one_way_partition_removes_nobody
        g12_g14_every_removal_is_known_and_fenced_everywhere
        g16_any_current_frame_ends_a_suspicion
        g18_a_clone_that_never_joins_is_a_node_that_is_down
        g6_a_spawn_that_fails_is_a_node_that_is_reset
        x12_a_node_whose_task_asks_for_a_reset_needs_no_witness
        g30_nodes_that_die_together_are_each_removed
        g31_a_component_with_dead_timers_is_replaced
        g31_two_with_dead_timers_do_not_quiet_each_others_alarms
        g33_a_reset_is_asked_for_once_and_by_life
        x3_stalls_of_160_ms_remove_nobody
        x3_an_observer_that_slept_gives_the_others_their_time
        x6_a_component_that_keeps_dying_escalates_to_the_operator
        g27_an_error_of_a_task_triggers_recovery_once
        x5_an_isolated_node_stays_out_until_it_is_released;
    stale:
        g10_a_suspicion_outlives_the_managers_next_term
        g11_the_fence_of_a_component_that_has_ended_is_none
        g11_a_fence_ends_with_the_component_that_made_it
        g11_the_fence_of_an_earlier_boot_is_not_that_of_the_next
        g18_a_successor_waits_for_the_fences_of_its_own_term
        g5_an_old_alarm_says_nothing_about_a_new_silence
        g8_an_alarm_about_a_component_that_was_replaced_is_late
        x8_a_testimony_of_another_round_is_none
        x8_a_member_that_has_yet_to_follow_a_new_manager_is_waited_for
        d43_a_node_that_the_transport_has_lost_is_a_suspect_at_once
        x9_the_end_of_an_earlier_boot_was_not_that_of_the_next
        x9_a_frame_from_before_the_end_of_its_sender_disproves_no_report
        x9_an_alarm_that_reports_no_end_is_no_loss
        x8_an_answer_to_another_probe_is_none
        x9_an_echo_from_an_earlier_term_is_none
        x9_a_manager_that_claims_again_is_not_deaf_as_before
        g5_an_alarm_about_another_incarnation_is_none;
    succeed:
        g1_the_managers_death_is_noticed_and_it_is_followed
        g9_dead_candidates_are_passed_over
        g9_a_successor_that_is_known_to_be_down_is_not_waited_for
        g8_one_backup_succeeds_and_the_others_wait
        g8_a_repeated_span_does_nothing
        g10_two_halves_that_meet_again_have_one_manager
        g10_the_higher_term_wins_and_a_lower_one_is_told
        g10_a_backup_does_not_go_back_to_a_lower_term
        g10_a_removed_nodes_claim_is_refused_until_it_is_admitted
        g15_the_watch_follows_the_manager
        g15_a_manager_by_hearsay_is_watched
        g17_another_nodes_alarms_do_not_mask_the_manager
        g22_the_winner_is_manager_without_a_restart
        g28_an_agent_never_succeeds
        a_managers_component_is_cloned_and_comes_back_as_a_backup
        the_last_one_is_manager
        the_last_component_is_cloned_by_its_own_task
        a_component_that_the_new_manager_never_met_is_cloned
        a_node_that_the_new_manager_knows_by_hearsay_is_watched;
    witness:
        x8_one_negative_testimony_removes_no_node_that_others_meet
        x8_the_nodes_of_a_path_meet_each_other
        x8_a_link_is_reported_after_a_doubt_was
        x8_a_witness_answers_two_askers
        x8_a_witness_that_does_not_hear_the_asker_is_asked_through_others
        x8_a_new_manager_asks_through_others_at_once
        x8_a_probe_of_another_term_or_incarnation_is_answered
        x8_testimonies_expire_and_are_asked_for_again
        x8_testimonies_from_before_a_stall_are_asked_for_again
        x8_an_explanation_names_who_was_asked_and_what_each_answered;
    heard:
        x9_a_deaf_backup_deposes_no_manager
        x8_a_backup_that_has_met_no_node_asks_all
        x9_a_deaf_manager_is_followed
        x9_a_manager_that_too_few_members_hear_is_followed
        x9_a_manager_that_only_the_last_candidate_hears_is_followed
        x9_a_manager_that_is_not_heard_isolates_no_node
        x9_a_lone_survivor_brings_the_others_back
        x9_a_member_that_does_not_hear_the_manager_does_not_count
        x9_a_node_that_starts_and_hears_none_claims_no_term
        x9_a_node_that_dies_where_two_links_are_cut_one_way_is_removed
        x9_the_last_one_claims_when_the_end_of_all_others_is_reported
        x9_a_manager_that_too_few_hear_knows_it
        x9_a_candidate_that_stood_still_asks_again
        x9_a_candidate_that_stood_still_doubts_the_loss_again
        x9_a_claim_that_is_refused_is_an_answer
        x9_a_joiner_of_a_later_term_is_an_answer
        x9_a_node_that_its_manager_does_not_hear_is_introduced_by_any_that_does
        g11_a_node_whose_own_task_speaks_counts_as_alive;
    supervisor:
        x13_a_hung_supervisor_is_a_node_failure
        x13_a_manager_whose_supervisor_hangs_is_followed_and_removed;
    heirs:
        g18_a_reset_that_a_manager_owed_is_its_successors
        g18_a_manager_resets_a_node_of_whose_removal_it_learns
        g8_a_reset_that_was_done_hits_no_later_life
        d58_a_node_that_died_before_all_components_did_is_missed
        g24_an_absent_node_is_told_of_by_the_next_manager;
    cut:
        g11_a_fence_is_reported_through_two_members
        g11_a_member_that_is_not_heard_meets_who_has_come_back
        g11_the_ends_of_a_link_that_stays_cut_do_not_outbid_each_other
        g11_a_manager_that_others_meet_is_followed_when_it_dies
        g11_a_life_that_its_manager_does_not_hear_is_introduced
        x9_a_member_that_its_manager_does_not_reach_learns_of_a_removal
        g11_a_fence_is_reported_through_a_member_that_reaches_the_manager
        g10_terms_do_not_race_where_links_are_not_transitive
        g10_a_manager_waits_before_it_goes_above_a_term_again
        g11_a_joiner_that_knows_a_higher_term_is_asked_for
        g11_a_backup_learns_the_term_of_a_manager_that_it_held_removed
        x11_a_backup_learns_the_term_of_a_manager_that_it_held_released
        g11_no_claimant_is_readmitted_against_the_manager
        g11_the_last_of_a_half_gives_way_to_the_other
        g11_a_joiner_is_not_taken_for_the_manager_that_it_was
        x8_a_witness_that_is_replaced_is_waited_for
        x8_a_clone_is_ordered_through_a_member_that_reaches_the_task
        g31_a_manager_with_dead_timers_is_missed_though_it_answers
        g31_a_witness_with_dead_timers_is_missed_though_it_testifies;
    rivals:
        g10_managers_that_removed_each_others_earlier_lives_meet
        g10_rivals_meet_if_either_is_heard_first
        g10_who_is_shut_out_by_a_life_that_it_has_not_removed_begins_anew
        g10_a_claimant_that_claims_again_is_followed
        g10_a_claimant_that_dies_is_removed_again
        d43_a_member_whose_earlier_boot_is_still_fenced_is_watched
        d43_a_node_that_is_met_in_an_earlier_term_is_watched
        g10_a_claimant_is_not_admitted_by_hearsay
        g10_a_claimant_that_a_member_hears_is_admitted;
    supervision:
        x11_a_release_ends_the_boots_before_it_that_are_not_known
        g10_what_was_sent_to_an_earlier_session_or_incarnation_counts_no_more
        x14_a_removed_incarnation_that_runs_on_is_refused_after_a_while
        x14_a_boot_that_is_over_is_refused_once_its_isolation_ends
        x14_of_two_that_removed_each_other_one_ends_in_any_order
        x14_the_next_component_admits_who_only_the_last_one_has_fenced
        x14_a_boot_begins_without_the_removals_of_the_one_before
        x14_a_node_without_a_component_refuses_none
        x14_a_component_that_is_not_ready_refuses_none
        x5_what_an_isolated_peer_has_decided_ends_no_boot
        x11_an_isolated_node_asks_each_node_that_it_meets_for_its_release
        x11_a_component_learns_which_nodes_are_isolated
        x11_a_node_that_learns_of_its_isolation_asks_those_that_it_has_met
        x14_a_boot_that_is_over_refuses_no_peer
        x14_a_removal_that_is_reported_after_its_boot_has_ended_is_over
        x14_the_decision_of_the_later_term_stands
        x14_a_session_that_begins_fences_what_the_last_one_admitted
        x14_a_node_that_contradicts_its_isolation_repeats_what_it_has_fenced
        x11_a_release_ends_the_boot_that_an_unseen_isolation_has_ended
        x14_an_older_decision_changes_nothing
        g19_a_removal_by_decision_is_remembered_and_a_loss_is_not;
    isolation:
        x11_no_later_incarnation_ends_an_isolation
        x11_a_release_that_is_late_ends_no_later_isolation
        x11_a_release_is_the_first_that_a_member_learns_of_an_isolation
        x11_an_isolated_node_remembers_it_where_all_others_forgot
        x11_an_isolation_is_believed_whichever_node_reports_it
        x11_a_removed_node_does_not_wait_for_an_isolated_one
        x11_a_released_node_brings_its_release_along
        x11_a_removal_that_a_release_followed_is_not_restored
        x11_an_isolation_is_restored_without_the_boot_that_it_ended
        x11_a_manager_learns_an_isolation_from_its_supervisor;
    join:
        g11_a_node_that_asks_for_the_manager_counts_as_alive
        g13_a_return_is_known_to_the_backups_at_once
        g19_a_joiner_takes_the_highest_term
        g19_after_a_blackout_the_terms_go_on
        g19_who_was_removed_asks_until_it_is_answered
        g19_where_all_were_removed_the_static_role_stands
        g19_where_all_others_were_removed_none_waits_for_an_isolated_node
        g19_a_removed_node_that_never_took_part_asks
        g20_a_joiner_can_be_reached
        g21_a_clone_joins_and_does_not_start
        g23_the_next_member_is_asked_and_failure_is_said
        g24_a_node_that_is_absent_at_the_start_is_told_of
        g25_a_lost_change_is_repaired
        all_but_one_join_at_once
        a_joiner_that_dies_while_joining_is_noticed
        g18_a_node_that_is_lost_as_it_joins_is_not_waited_for
        g18_a_clone_is_awaited_where_only_the_link_was_lost
        a_joiner_in_mid_succession_finds_the_new_manager
        a_manager_that_restarts_before_it_is_missed_goes_on_in_a_new_term
        a_component_that_dies_before_its_node_is_admitted_is_cloned;
    restore:
        all_components_end_at_once_and_nothing_is_lost
        the_one_before_a_torn_snapshot_is_used
        an_error_that_is_told_again_is_counted_once
        what_cannot_be_restored_is_asked_for
        the_own_entry_is_had_back_where_it_cannot_be_restored
        a_snapshot_of_another_is_refused
        halves_that_removed_each_other_meet_again_in_their_next_lives;
    limits:
        x6_a_node_that_keeps_failing_is_isolated
        x6_a_node_that_never_comes_back_is_isolated
        x6_a_node_that_fails_now_and_then_is_reset_each_time
        x6_the_count_outlives_the_managers_that_it_brings_down
        x6_the_heir_goes_on_with_a_node_that_never_comes_back
        x6_the_count_outlives_all_components
        x6_a_node_that_is_released_begins_anew;
    refuse:
        words_of_strangers_and_of_old_are_refused
        a_frame_in_another_name_is_refused
        a_repeated_frame_is_refused
        only_the_manager_decides
        what_is_about_nobody_is_refused
        x5_a_removed_life_is_not_heard
        x5_a_removed_boot_that_runs_on_is_notified_by_any_member
        x5_no_member_believes_a_node_that_it_holds_removed
        x5_a_removal_is_not_answered_with_a_removal
        x5_a_removal_in_an_old_term_is_not_answered
        g29_an_answer_carries_the_answerers_name
        a_removed_component_is_silent;
    views:
        m6_members_show_the_same_views_in_one_order
        m6_a_member_fences_what_a_view_removes_before_it_shows_it
        m6_a_view_of_a_manager_that_was_succeeded_is_not_shown
        m6_a_view_whose_announcement_is_lost_is_shown_later
        m6_a_member_that_hears_no_manager_keeps_its_view_and_says_so
        m6_halves_of_a_partition_give_no_number_twice;
    handover:
        x17_the_next_one_claims_and_the_manager_is_a_backup_in_place
        x17_a_handover_that_is_lost_changes_nothing_and_may_be_repeated
        x17_only_the_manager_of_the_term_hands_over
        x17_a_handover_of_an_earlier_term_does_nothing
        x17_a_handover_that_took_long_does_nothing;
    im_alive:
        g6_only_its_own_component_rouses_it
        d56_the_alarm_tells_a_hang_from_stopped_timers
        progress_keeps_it_quiet
        g31_a_component_that_only_answers_is_reported
        g7_an_alarm_is_repeated_with_back_off
        g8_a_span_spawns_once_and_an_old_term_never
        g8_a_span_for_an_earlier_boot_hits_no_component_of_this_one
        g6_a_spawn_that_fails_is_an_alarm
        a_process_that_ends_is_reported_at_once
        a_task_that_nobody_answers_helps_itself
        x3_a_late_task_raises_no_alarm
        a_probe_is_answered_by_name;
    profile:
        x4_both_profiles_keep_the_rules
        g4_the_values_of_the_original_are_refused
        g4_each_rule_is_checked_to_the_nanosecond
        spans_at_the_end_of_time_are_judged_without_overflow;
    record:
        g25_a_repeated_change_changes_nothing
        g25_a_change_of_a_task_that_does_not_exist_is_refused
        g26_an_error_is_appended_and_the_status_stays
        g26_the_alpha_count_forgets
        x10_changes_go_on_past_the_end_of_the_numbers
        only_the_last_errors_are_kept;
}

/// Returns how many scenarios ran until one detected `mutant`, or all of them, and that scenario.
fn judge(mutant: &Mutant) -> (usize, Option<&'static str>) {
    plant(Some(mutant));
    let caught = SCENARIOS.iter().position(|(_, scenario)| catch_unwind(scenario).is_err());
    plant(None);
    match caught {
        Some(index) => (index + 1, Some(SCENARIOS[index].0)),
        None => (SCENARIOS.len(), None),
    }
}

/// Takes minutes and silences all panics, so only ci/mutants runs it, with
/// WEFT_PLANT_DIRNET=part/parts: every so many of the bugs. It prints each bug and its scenario for
/// the table of seeds.
#[test]
fn every_planted_bug_is_caught() {
    let Ok(share) = std::env::var("WEFT_PLANT_DIRNET") else { return };
    let share = share.split_once('/').map(|(part, parts)| (part.parse(), parts.parse()));
    let Some((Ok(part), Ok(parts @ 1_usize..))) = share else {
        panic!("WEFT_PLANT_DIRNET is a part of the bugs, like 0/2");
    };
    std::panic::set_hook(std::boxed::Box::new(|_| {}));
    for (name, scenario) in SCENARIOS {
        assert!(catch_unwind(scenario).is_ok(), "{name} fails without a bug");
    }
    let (mut unnoticed, mut planted) = (Vec::new(), 0);
    println!();
    for mutant in MUTANTS.iter().skip(part).step_by(parts) {
        planted += 1;
        let (played, caught) = judge(mutant);
        let by = caught.unwrap_or("NONE");
        eprintln!("{:28} {played:>3} {by:<52} {}", mutant.name, mutant.breaks);
        println!("scenario dirnet/{} {by}", mutant.name);
        unnoticed.extend(caught.is_none().then_some(mutant.name));
    }
    drop(std::panic::take_hook());
    eprintln!("dirnet: {} of {planted} caught", planted - unnoticed.len());
    assert!(unnoticed.is_empty() && planted > 0, "{unnoticed:?} of {planted}");
}
