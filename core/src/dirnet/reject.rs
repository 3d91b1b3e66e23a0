//! Why a word is refused, and how often each reason was.

use core::fmt;

macro_rules! rejects {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a word is refused. What it said was not looked at, unless the reason says so.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reject {
            $($(#[$doc])* $name,)*
        }

        impl Reject {
            /// Every reason, in the order in which they are counted.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its short name, for counters.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

rejects! {
    /// The sender is no other member.
    UnknownSender = "unknown-sender",
    /// The frame names a sender that did not write it.
    Forged = "forged",
    /// The term's claimant may not be manager.
    BadTerm = "bad-term",
    /// A higher term whose claimant was removed here and has not been admitted since.
    RemovedClaimant = "removed-claimant",
    /// A lower term; the sender was told of the current one.
    OldTerm = "old-term",
    /// The sender's life was removed.
    Fenced = "fenced",
    /// The node is isolated until an operator releases it.
    Isolated = "isolated",
    /// The sender's component was succeeded by a clone.
    OldLife = "old-life",
    /// A life that the manager has not admitted here yet.
    UnknownLife = "unknown-life",
    /// It was heard before.
    Duplicate = "duplicate",
    /// This component was removed and listens to nobody.
    Excluded = "excluded",
    /// This component is joining and has no opinion yet.
    Joining = "joining",
    /// A decision or an order by one who may not give it.
    NotManager = "not-manager",
    /// A question for the manager.
    NotForMe = "not-for-me",
    /// It is about a node that is no member, or is in the wrong life.
    BadSubject = "bad-subject",
    /// No such task.
    NoSuchTask = "no-such-task",
    /// The answer to a question that is no longer asked.
    Late = "late",
    /// A change of the database that was applied before.
    Repeated = "repeated",
    /// A change of the database before which another is missing; it is asked for.
    Gap = "gap",
    /// An image of the database whose checksum does not hold.
    ImageChecksum = "image-checksum",
    /// An image of the database with counts that cannot be.
    ImageCount = "image-count",
    /// An image of the database with a field that cannot be.
    ImageField = "image-field",
    /// A database that was saved in the format of another version of Weft.
    ImageFormat = "image-format",
    /// As many questions of others about suspects are under way as there are nodes; ask again.
    Busy = "busy",
    /// For the other endpoint of this node.
    WrongSeat = "wrong-seat",
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl core::error::Error for Reject {}

/// How often each reason refused a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rejects([u32; Reject::ALL.len()]);

impl Rejects {
    /// How often `reason` did.
    #[must_use]
    pub fn of(&self, reason: Reject) -> u32 {
        self.0[reason as usize]
    }

    /// Every reason that did, and how often.
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
