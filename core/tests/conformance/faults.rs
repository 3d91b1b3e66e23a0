//! One fault after another, and the cases that must catch it.

use weft_core::fabric::{Access, Layout};
use weft_core::ids::PeerSet;

/// What a [`crate::broken::Broken`] fabric does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    // Order.
    ReversesBatches,
    ReadsLate,
    ApartPassesAll,
    ApartLate,
    // Completions.
    LosesCompletions,
    DoublesCompletions,
    SwapsNames,
    NamesWrongPeer,
    AddsToOldValues,
    ValuesOnWrites,
    ReportsQuietSuccess,
    QuietAfterSignalled,
    HidesQuietFailure,
    NeedsTargetToPoll,
    // Answers.
    AnswersAhead,
    AnswersEarly,
    AnswersAndCompletes,
    AnswersDenialsAsDone,
    // Bytes.
    DropsLastByte,
    SpillsOneByte,
    OneStagingBuffer,
    CutsLongWrites,
    CutsLongCopies,
    // Placement.
    EndsFirst,
    TearsWords,
    TearsReads,
    // Atomics.
    OwnAtomicsInTwoSteps,
    // Rights.
    WidensWrite,
    WidensRead,
    WidensAtomic,
    WidensPeers,
    DeniesAtomics,
    DeniesAfterDoing,
    // Loss.
    HidesLoss,
    ForgetsOutstanding,
    AcceptsForTheLost,
    AdmitsByItself,
    SpreadsLoss,
    // Queues.
    NeverFull,
    FullTakesTheWork,
    InventsCompletions,
    EmptySliceDrops,
    ShortSliceDrops,
    // Fences.
    FenceDoesNothing,
    FencesOnPaper,
    FenceKeepsPosting,
    FencesOnce,
    AdmitsTheFenced,
    // Rejects.
    WrapsPeers,
    ClampsRegions,
    AcceptsOutOfBounds,
    AlignsAtomics,
    TruncatesTooLong,
    RefusesAfterDoing,
    // Memory.
    SwapsBytesOfWords,
    WrongChecksum,
}

/// Each fault with the cases that must catch it.
pub(crate) const FAULTS: &[(Fault, &[&str])] = &[
    (
        Fault::ReversesBatches,
        &["f1_work_takes_effect_in_posting_order", "f1_the_last_of_many_writes_stays"],
    ),
    (
        Fault::ReadsLate,
        &[
            "f1_a_read_comes_between_the_writes_around_it",
            "f1_a_write_apart_passes_only_reads_and_atomics",
        ],
    ),
    (Fault::ApartPassesAll, &["f1_a_write_apart_passes_only_reads_and_atomics"]),
    (Fault::ApartLate, &["f1_a_write_apart_passes_only_reads_and_atomics"]),
    (Fault::LosesCompletions, &["f2_each_work_completes_once_under_its_name"]),
    (Fault::DoublesCompletions, &["f2_each_work_completes_once_under_its_name"]),
    (Fault::SwapsNames, &["f2_each_work_completes_once_under_its_name"]),
    (Fault::NamesWrongPeer, &["f2_each_work_completes_once_under_its_name"]),
    (
        Fault::AddsToOldValues,
        &["f2_an_atomic_hands_back_the_old_value", "f1_work_takes_effect_in_posting_order"],
    ),
    (Fault::ValuesOnWrites, &["f2_each_work_completes_once_under_its_name"]),
    (Fault::ReportsQuietSuccess, &["f2_quiet_success_is_silent_and_implied_by_the_next"]),
    (Fault::QuietAfterSignalled, &["f2_quiet_success_is_silent_and_implied_by_the_next"]),
    (Fault::HidesQuietFailure, &["f2_a_quiet_failure_is_loud"]),
    (Fault::NeedsTargetToPoll, &["f13_a_peer_that_never_polls_is_reached"]),
    (Fault::AnswersAhead, &["f1_an_answer_comes_behind_what_was_posted"]),
    (Fault::AnswersEarly, &["f15_an_answer_is_the_completion"]),
    (Fault::AnswersAndCompletes, &["f15_an_answer_is_the_completion"]),
    (Fault::AnswersDenialsAsDone, &["f5_an_answer_needs_its_right"]),
    (Fault::EndsFirst, &["f14_a_write_appears_by_words_and_its_last_one_last"]),
    (Fault::TearsWords, &["f14_a_write_appears_by_words_and_its_last_one_last"]),
    (Fault::TearsReads, &["f14_a_read_takes_a_word_whole"]),
    (
        Fault::DropsLastByte,
        &[
            "f2_a_write_changes_exactly_its_bytes",
            "f2_a_write_from_a_region_changes_exactly_its_bytes",
            "f2_a_read_changes_exactly_its_bytes",
            "f2_the_longest_write_from_bytes_arrives",
        ],
    ),
    (
        Fault::SpillsOneByte,
        &[
            "f2_a_write_changes_exactly_its_bytes",
            "f2_a_write_from_a_region_changes_exactly_its_bytes",
            "f2_a_read_changes_exactly_its_bytes",
        ],
    ),
    (Fault::OneStagingBuffer, &["f10_bytes_are_free_as_soon_as_post_returns"]),
    (Fault::CutsLongWrites, &["f2_the_longest_write_from_bytes_arrives"]),
    (Fault::CutsLongCopies, &["f2_a_long_copy_between_regions_changes_exactly_its_bytes"]),
    (Fault::OwnAtomicsInTwoSteps, &["f4_no_add_is_lost", "f4_one_compare_swap_wins"]),
    (Fault::WidensWrite, &["f5_a_write_needs_its_right"]),
    (Fault::WidensRead, &["f5_a_read_needs_its_right"]),
    (Fault::WidensAtomic, &["f5_an_atomic_needs_its_right"]),
    (Fault::WidensPeers, &["f5_a_right_is_for_the_peers_named"]),
    (Fault::DeniesAtomics, &["f5_what_is_granted_is_done"]),
    (
        Fault::DeniesAfterDoing,
        &[
            "f5_a_write_needs_its_right",
            "f5_a_read_needs_its_right",
            "f5_an_atomic_needs_its_right",
            "f5_a_right_is_for_the_peers_named",
        ],
    ),
    (Fault::HidesLoss, &["f6_posts_to_a_lost_peer_fail_at_once"]),
    (Fault::ForgetsOutstanding, &["f6_outstanding_work_to_a_lost_peer_ends"]),
    (Fault::AcceptsForTheLost, &["f6_posts_to_a_lost_peer_fail_at_once"]),
    (
        Fault::AdmitsByItself,
        &["f6_a_new_life_is_reached_once_admitted", "f6_a_new_life_does_not_hide_the_loss"],
    ),
    (Fault::SpreadsLoss, &["f6_other_pairs_are_unharmed"]),
    (Fault::NeverFull, &["f7_a_full_queue_gives_the_work_back"]),
    (Fault::FullTakesTheWork, &["f7_a_full_queue_gives_the_work_back"]),
    (Fault::InventsCompletions, &["f8_polling_an_idle_fabric_returns_nothing"]),
    (Fault::EmptySliceDrops, &["f8_an_empty_slice_takes_nothing"]),
    (Fault::ShortSliceDrops, &["f8_a_short_slice_takes_its_length"]),
    (
        Fault::FenceDoesNothing,
        &["f9_nothing_of_a_fenced_peer_arrives", "f9_work_to_a_fenced_peer_ends"],
    ),
    (Fault::FencesOnPaper, &["f9_nothing_of_a_fenced_peer_arrives"]),
    (Fault::FenceKeepsPosting, &["f9_work_to_a_fenced_peer_ends"]),
    (Fault::FencesOnce, &["f9_fencing_again_changes_nothing"]),
    (Fault::AdmitsTheFenced, &["f9_only_a_later_life_is_admitted"]),
    (Fault::WrapsPeers, &["f11_an_unknown_peer_is_refused"]),
    (Fault::ClampsRegions, &["f11_an_unknown_region_is_refused"]),
    (Fault::AcceptsOutOfBounds, &["f11_a_range_that_leaves_its_region_is_refused"]),
    (Fault::AlignsAtomics, &["f11_a_misaligned_atomic_is_refused"]),
    (Fault::TruncatesTooLong, &["f11_a_write_that_is_too_long_is_refused"]),
    (Fault::RefusesAfterDoing, &["f11_a_misaligned_atomic_is_refused"]),
    (Fault::SwapsBytesOfWords, &["memory_words_and_bytes_agree"]),
    (Fault::WrongChecksum, &["checksum_is_crc32c"]),
];

impl Fault {
    /// The layout under which the net grants what it should not.
    pub(crate) fn widen(self, suite: &Layout) -> Layout {
        let mut wide = Layout::new(suite.peers());
        for &(mut spec) in suite.regions() {
            let everyone = PeerSet::first(usize::from(suite.peers()));
            match self {
                Self::WidensWrite => spec.access |= Access::REMOTE_WRITE,
                Self::WidensRead => spec.access |= Access::REMOTE_READ,
                Self::WidensAtomic => spec.access |= Access::REMOTE_ATOMIC,
                Self::WidensPeers => spec.peers = everyone,
                Self::DeniesAtomics => spec.access -= Access::REMOTE_ATOMIC,
                Self::DeniesAfterDoing => {
                    spec.access = Access::all();
                    spec.peers = everyone;
                }
                _ => {}
            }
            wide.add(spec).unwrap();
        }
        wide
    }
}
