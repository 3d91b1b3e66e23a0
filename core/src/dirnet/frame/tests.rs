//! Frames: every message round-trips; every corruption is refused or decodes to another frame.

use super::*;
use crate::dirnet::Standing;
use crate::vote::{Ballot, BallotKind, VoteOutcome};
use proptest::prelude::*;
use std::vec;

fn incarnation() -> impl Strategy<Value = ComponentIncarnation> {
    any::<[u32; 2]>()
        .prop_map(|[boot, generation]| ComponentIncarnation { boot: Incarnation(boot), generation })
}

fn rank() -> impl Strategy<Value = Rank> {
    any::<u16>().prop_map(Rank)
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<u8>().prop_map(Change::Status),
        any::<u8>().prop_map(Change::Role),
        any::<u32>().prop_map(Change::Reboots),
        any::<(u8, u8)>().prop_map(|(task, status)| Change::TaskStatus { task, status }),
        any::<(u8, u16, u64, Option<u16>)>().prop_map(|(task, kind, at_us, alpha)| {
            Change::TaskError { task, kind, at_us, alpha }
        }),
        (any::<(u8, u16, u32, u32, u16, bool)>(), rank()).prop_map(
            |((task, mark, epoch, evaluation, index, is_cleared), claimant)| {
                let judged = OrderId { term: Term { epoch, claimant }, evaluation, index };
                Change::TaskAnswered { task, mark, judged, is_cleared }
            }
        ),
        any::<(u8, u8)>().prop_map(|(task, phase)| Change::TaskPhase { task, phase }),
        any::<u64>().prop_map(Change::ScriptHeld),
        (any::<(u32, u16, u64)>(), rank()).prop_map(|((epoch, number, digest), claimant)| {
            let term = Term { epoch, claimant };
            Change::ScriptUsed(ScriptVersion { term, number, digest })
        }),
    ]
}

fn version() -> impl Strategy<Value = Version> {
    (incarnation(), any::<u32>(), incarnation()).prop_map(|(incarnation, seq, stands)| Version {
        incarnation,
        seq,
        standing: Standing::removed(stands, Level::Isolated),
    })
}

fn part() -> impl Strategy<Value = ImagePart> {
    (rank(), 0..9u8, any::<u32>(), any::<[u8; 32]>()).prop_map(|(node, index, checksum, bytes)| {
        ImagePart { node, index, count: 9, checksum, bytes }
    })
}

fn question() -> impl Strategy<Value = Question> {
    (rank(), rank(), any::<u32>()).prop_map(|(node, asker, round)| Question { node, asker, round })
}

fn vote() -> impl Strategy<Value = VoteMessage> {
    let kind =
        any::<bool>().prop_map(|it| if it { BallotKind::Digest } else { BallotKind::Number });
    let ballot = (any::<(u8, u8, u32, i64)>(), kind.clone()).prop_map(
        |((nversion, version, round, value), kind)| {
            VoteMessage::Vote(Ballot { nversion, version, round, kind, value })
        },
    );
    let outcome = (any::<(u32, u16, u16, u8, u32, u8, u8, i64, bool)>(), kind).prop_map(
        |((epoch, claimant, number, nversion, round, voters, agreed, value, is_final), kind)| {
            let term = Term { epoch, claimant: Rank(claimant) };
            VoteOutcome { term, number, nversion, round, voters, agreed, kind, value, is_final }
        },
    );
    prop_oneof![
        ballot,
        outcome.clone().prop_map(VoteMessage::Outcome),
        (outcome, any::<bool>())
            .prop_map(|(outcome, is_over)| VoteMessage::Voted { outcome, is_over }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    use Message as M;
    let seen = any::<(bool, bool)>().prop_map(|(component, task)| Seen { component, task });
    prop_oneof![
        any::<u32>().prop_map(|generation| M::Teif { generation, alarm: Alarm::Ended }),
        Just(M::Enia),
        Just(M::Rouse),
        Just(M::Witm),
        Just(M::Nmi),
        (rank(), incarnation()).prop_map(|(node, incarnation)| M::Niua { node, incarnation }),
        (rank(), incarnation()).prop_map(|(node, incarnation)| M::Anid {
            node,
            incarnation,
            level: Level::Down
        }),
        (rank(), incarnation()).prop_map(|(node, incarnation)| M::Span { node, incarnation }),
        (any::<u32>(), change()).prop_map(|(seq, change)| M::Db { seq, change }),
        (rank(), version()).prop_map(|(node, have)| M::RequestDb { node, have }),
        part().prop_map(M::ReplyDb),
        rank().prop_map(|node| M::NothingNewer { node }),
        (any::<u32>(), rank())
            .prop_map(|(epoch, claimant)| M::Outbid { term: Term { epoch, claimant } }),
        (incarnation(), any::<u32>())
            .prop_map(|(incarnation, echo)| M::HandOver { incarnation, echo }),
        (rank(), any::<u32>(), rank(), incarnation()).prop_map(|(node, boot, by, incarnation)| {
            M::Fenced { node, boot: Incarnation(boot), by, incarnation }
        }),
        (question(), any::<u64>())
            .prop_map(|(question, bits)| M::Witness { question, unheard: Members::of_bits(bits) }),
        (question(), rank(), seen).prop_map(|(question, witness, seen)| M::Testimony {
            question,
            witness,
            seen
        }),
        vote().prop_map(M::Vote),
        any::<u32>().prop_map(|round| M::Probe { round }),
        any::<u32>().prop_map(|round| M::Alive { round }),
        any::<(u8, Option<(u32, u16, u32, u32)>)>().prop_map(|(task, order)| {
            let order = order.map(|(evaluation, index, seen, mark)| ScriptOrder {
                evaluation,
                index,
                seen,
                mark,
            });
            M::Guard { task, action: TaskAction::Isolate, order }
        }),
    ]
}

fn tag() -> impl Strategy<Value = ViewTag> {
    (1..1_u32 << 24, any::<u64>()).prop_map(|(count, digest)| ViewTag { count, digest })
}

fn frame() -> impl Strategy<Value = Frame> {
    (rank(), any::<bool>(), any::<[u32; 2]>(), rank(), incarnation(), tag(), message()).prop_map(
        |(sender, is_task, [epoch, sequence], claimant, incarnation, view, message)| Frame {
            sender,
            seat: if is_task { Seat::ImAliveTask } else { Seat::Component },
            term: Term { epoch, claimant },
            incarnation,
            sequence,
            view: if message.has_room_for_view() { view } else { ViewTag::default() },
            message,
        },
    )
}

proptest! {
    #[test]
    fn a_frame_comes_back(frame in frame()) {
        prop_assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
    }

    #[test]
    fn another_length_is_refused(frame in frame(), len in 0..2 * FRAME_LEN) {
        prop_assume!(len != FRAME_LEN);
        let mut bytes = [0; 2 * FRAME_LEN];
        bytes[..FRAME_LEN].copy_from_slice(&frame.encode());
        prop_assert_eq!(Frame::decode(&bytes[..len]), Err(FrameError::Length));
    }

    #[test]
    fn what_decodes_is_what_was_encoded(frame in frame(), at in 0..FRAME_LEN, flip in 1u8..) {
        let mut bytes = frame.encode();
        bytes[at] ^= flip;
        if let Ok(other) = Frame::decode(&bytes) {
            prop_assert_eq!(other.encode(), bytes);
        }
    }

    #[test]
    fn garbage_never_panics(bytes in any::<[u8; FRAME_LEN]>()) {
        let _ = Frame::decode(&bytes);
    }
}

/// G-29: the original's timer ids shared the number space of messages; they have no meaning on the
/// wire.
#[test]
fn g29_a_timer_cannot_be_posted_from_outside() {
    for id in [0, 20, 30, 40, 45, 50, 55, 60, 70, 255] {
        let mut bytes = [0; FRAME_LEN];
        bytes[0] = id;
        assert_eq!(Frame::decode(&bytes), Err(FrameError::Kind(id)));
    }
}
