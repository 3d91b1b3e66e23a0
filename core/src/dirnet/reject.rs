//! Why a frame or an operation is refused, and how often each reason occurred.

use core::fmt;

macro_rules! rejects {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why an input was refused. Its content had no effect, unless the reason says otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reject {
            $($(#[$doc])* $name,)*
        }

        impl Reject {
            /// Every reason, in the order in which they are counted.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The reason's short name, for counters.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

rejects! {
    /// The sender is not another member.
    UnknownSender = "unknown-sender",
    /// The frame names a sender that did not write it.
    Forged = "forged",
    /// The term's claimant may not be manager.
    BadTerm = "bad-term",
    /// A higher term whose claimant was removed here and has not been admitted since.
    RemovedClaimant = "removed-claimant",
    /// The term is lower than the current one, which was sent to the sender.
    OldTerm = "old-term",
    /// The sender's incarnation was removed.
    Fenced = "fenced",
    /// The node is isolated until an operator releases it.
    Isolated = "isolated",
    /// The sender's component was replaced by a clone.
    OldLife = "old-incarnation",
    /// An incarnation that the manager has not admitted here yet.
    UnknownLife = "unknown-incarnation",
    /// The message was received before.
    Duplicate = "duplicate",
    /// This component was removed and accepts no messages.
    Excluded = "excluded",
    /// This component is joining and takes no decision yet.
    Joining = "joining",
    /// A decision or an order from a node that may not give it.
    NotManager = "not-manager",
    /// A request that only the manager handles.
    NotForMe = "not-for-me",
    /// The node that it is about is not a member, or is in the wrong incarnation.
    BadSubject = "bad-subject",
    /// There is no such task.
    NoSuchTask = "no-such-task",
    /// An answer to a question that is no longer open, or an order that took too long.
    Late = "late",
    /// A change of the database that was applied before.
    Repeated = "repeated",
    /// A change of the database that follows a missing one; the missing one is requested.
    Gap = "gap",
    /// An image of the database with a wrong checksum.
    ImageChecksum = "image-checksum",
    /// An image of the database with invalid counts.
    ImageCount = "image-count",
    /// An image of the database with an invalid field.
    ImageField = "image-field",
    /// A database that was saved in the format of another version of Weft.
    ImageFormat = "image-format",
    /// As many requests about suspects are in progress as there are nodes; ask again.
    Busy = "busy",
    /// The frame is for the other endpoint of this node.
    WrongSeat = "wrong-seat",
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Reject {}

/// How often each reason occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rejects([u32; Reject::ALL.len()]);

impl Rejects {
    /// How often `reason` occurred.
    #[must_use]
    pub fn of(&self, reason: Reject) -> u32 {
        self.0[reason as usize]
    }

    /// Every reason that occurred, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (Reject, u32)> {
        Reject::ALL.iter().copied().zip(self.0).filter(|(_, count)| *count > 0)
    }

    pub(super) fn note(&mut self, reason: Reject) {
        let count = &mut self.0[reason as usize];
        *count = count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_for_itself() {
        let mut rejects = Rejects::default();
        for reason in Reject::ALL {
            rejects.note(*reason);
        }
        rejects.note(Reject::Gap);
        assert!(rejects.iter().all(|(reason, n)| n == if reason == Reject::Gap { 2 } else { 1 }));
        assert_eq!(rejects.iter().count(), Reject::ALL.len());
    }
}
