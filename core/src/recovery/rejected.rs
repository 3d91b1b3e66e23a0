//! Why the verifier refuses an image.

use core::fmt;

/// An image that was refused, and the word that shows it; 0 for the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rejected {
    /// The index of the word.
    pub word: u16,
    /// What is wrong with it.
    pub reason: Reason,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident $text:literal,)*) => {
        /// What is wrong with an image.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$name => $text,)* })
            }
        }
    };
}

reasons! {
    /// It is not as long as its header says, or longer than any image.
    Length "the length is not what the header says",
    /// It does not begin with the four bytes.
    Magic "this is no image of a recovery script",
    /// Another version of the format, or a flag that this one does not know.
    Version "the image is of another version",
    /// The checksum does not match.
    Checksum "the checksum does not match; the image is damaged",
    /// The number of nodes is another one.
    OtherCluster "the image was built for another number of nodes",
    /// A word that means nothing.
    UnknownWord "the word has no meaning",
    /// A declaration behind CODE, code before it, or no CODE.
    OutOfPlace "declarations stand before CODE, and code behind it",
    /// Not exactly one node is the manager (G-28), or a node has no role.
    Roles "every node has one role, and exactly one is the manager",
    /// A number that no declaration has.
    Undeclared "the number is not declared",
    /// Declared before.
    Twice "it is declared twice",
    /// Above its bound.
    Limit "the number is beyond its limit",
    /// The header counts otherwise.
    Counts "the header counts other declarations",
    /// An N-version task that lacks an algorithm or has fewer than two versions.
    Versions "an N-version task has an algorithm and at least two versions",
    /// The values break a rule of the DIR net (G-4).
    Timing "the timing breaks a rule of the DIR net",
    /// A section that does not end where it says, or code outside of one.
    Section "a section ends where it says, and code belongs to one",
    /// Backward, out of the section, or into a statement.
    Jump "a jump leads forward, to a statement of its section",
    /// More places ahead than are kept.
    Joins "too many jumps lead ahead at once",
    /// Two paths bring different depths.
    JoinDepth "the depth of the stack differs where two paths join",
    /// Below 0 or above the bound.
    Stack "the stack overflows or underflows",
    /// A statement that does not use up the stack.
    Statement "a statement leaves numbers on the stack, or lacks some",
    /// Not written on every path, of another section, or written twice.
    Set "the set is not written on every path to its use",
    /// A complement without a scope.
    Scope "only an atom with a wildcard or a group has a complement",
    /// The verb, status or number does not apply to the kind.
    WrongKind "it does not apply to this kind of entity",
    /// TRANSIENT or ALPHA without an alpha-count.
    NoAlpha "the task has no alpha-count",
    /// The offset leads outside, or to what is not UTF-8.
    Text "the text is outside of the pool, or is not UTF-8",
    /// Not one of A to Z.
    Variable "there is no such variable",
    /// Behind it stands what needs the picture.
    Pause "behind a PAUSE stand actions on constant targets alone",
    /// No path leads there.
    Unreachable "no path leads to the word",
    /// The last word is not END, or another one is.
    End "END is the last word, and only that",
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::Length
            | Reason::Magic
            | Reason::Version
            | Reason::Checksum
            | Reason::OtherCluster => self.reason.fmt(f),
            _ => write!(f, "word {}: {}", self.word, self.reason),
        }
    }
}

impl core::error::Error for Rejected {}
