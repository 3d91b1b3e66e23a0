//! The sizes of a broadcast, and the relations between them.

use core::fmt;

use super::Membership;
use crate::fabric::Layout;
use crate::ids::{Peer, PeerSet};
use crate::time::Duration;
use crate::wire::CELL_LEN;
use crate::wire::broadcast::{Form, HEADER_LEN};

/// The longest message in bytes.
pub const MESSAGE_LEN_MAX: u16 = 4096;

/// The longest slot in bytes, of any configuration.
pub const SLOT_LEN_MAX: usize = slot_len(MESSAGE_LEN_MAX, Form::Signed);

/// Header, payload and signature, in whole cache lines.
const fn slot_len(message_len: u16, form: Form) -> usize {
    (HEADER_LEN + message_len as usize + form.trailer_len()).next_multiple_of(64)
}

/// The largest number of slots of a ring: an index fits into 16 bits of a work's name.
pub const SLOTS_MAX: u32 = 1 << 16;

/// The largest number of slots of one origin that are voted on at a time.
pub const DEPTH_MAX: u16 = 1 << 10;

/// At least one write in this many reports its success (N-11).
pub const SIGNAL_EVERY: u32 = 16;

/// When a torn or failed read, or a read of a peer's progress, is repeated: after `after`, then
/// after twice as long each time, but at most after `after_max`.
///
/// There is no last attempt: a replayer that stalls while it exposes a slot is slow, not faulty.
/// Only the rate is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Retry {
    /// The first pause.
    pub after: Duration,
    /// The longest pause.
    pub after_max: Duration,
}

impl Retry {
    /// The pause after `attempts` attempts.
    pub(super) fn pause(self, attempts: u8) -> Duration {
        let doubled = self.after.0.saturating_mul(1 << u32::from(attempts).min(32));
        Duration(doubled.min(self.after_max.0))
    }
}

/// The parameters of a configuration. All members of a cluster have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// How many members, each of which may broadcast: 1 to 64.
    pub peers: u16,
    /// W, the slots of a ring: a power of two to [`SLOTS_MAX`].
    pub slots: u32,
    /// How many slots of one origin a member votes on at a time: a power of two to
    /// [`DEPTH_MAX`], at most `slots`.
    pub depth: u16,
    /// The longest message in bytes, 1 to [`MESSAGE_LEN_MAX`].
    pub message_len: u16,
    /// Whether slots carry signatures.
    pub form: Form,
    /// Whether members can be removed.
    pub membership: Membership,
    /// When failed reads are repeated.
    pub retry: Retry,
}

/// Checked [`Sizes`], and the bytes from one slot to the next: each poll needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config(Sizes, u32);

/// Why a configuration is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// Peers must be 1 to [`PeerSet::CAPACITY`].
    Peers(u16),
    /// Slots must be a power of two to [`SLOTS_MAX`].
    Slots(u32),
    /// Depth must be a power of two to [`DEPTH_MAX`], and not more than the slots.
    Depth(u16),
    /// A message must be 1 to [`MESSAGE_LEN_MAX`] bytes.
    MessageLen(u16),
    /// The signed form needs the feature `signed`.
    Form,
    /// The first pause must be positive and at most the longest.
    Retry,
    /// No region may reach 4 GiB.
    TooLarge,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peers(n) => write!(f, "{n} peers; a broadcast has 1 to {}", PeerSet::CAPACITY),
            Self::Slots(n) => write!(f, "{n} slots; want a power of two to {SLOTS_MAX}"),
            Self::Depth(n) => {
                write!(f, "depth {n}; want a power of two to {DEPTH_MAX}, at most the slots")
            }
            Self::MessageLen(n) => write!(f, "messages of {n} bytes; want 1 to {MESSAGE_LEN_MAX}"),
            Self::Form => f.write_str("the signed form is not compiled in: feature `signed`"),
            Self::Retry => f.write_str("the first pause is zero or longer than the longest"),
            Self::TooLarge => f.write_str("a region needs 4 GiB or more"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Checks `sizes`.
    ///
    /// # Errors
    /// [`ConfigError`] names the value and its limit.
    pub const fn new(sizes: Sizes) -> Result<Self, ConfigError> {
        if sizes.peers == 0 || sizes.peers as usize > PeerSet::CAPACITY {
            return Err(ConfigError::Peers(sizes.peers));
        }
        if !sizes.slots.is_power_of_two() || sizes.slots > SLOTS_MAX {
            return Err(ConfigError::Slots(sizes.slots));
        }
        let depth = sizes.depth;
        if !depth.is_power_of_two() || depth > DEPTH_MAX || depth as u32 > sizes.slots {
            return Err(ConfigError::Depth(depth));
        }
        if sizes.message_len == 0 || sizes.message_len > MESSAGE_LEN_MAX {
            return Err(ConfigError::MessageLen(sizes.message_len));
        }
        if sizes.retry.after.0 == 0 || sizes.retry.after.0 > sizes.retry.after_max.0 {
            return Err(ConfigError::Retry);
        }
        if matches!(sizes.form, Form::Signed) && !cfg!(feature = "signed") {
            return Err(ConfigError::Form);
        }
        let config = Self(sizes, slot_len(sizes.message_len, sizes.form) as u32);
        let largest = if config.replay_len() > config.landing_len() {
            config.replay_len()
        } else {
            config.landing_len()
        };
        if largest > u32::MAX as u64 { Err(ConfigError::TooLarge) } else { Ok(config) }
    }

    /// How many members.
    #[must_use]
    pub const fn peers(&self) -> u16 {
        self.0.peers
    }

    /// W, the slots of a ring.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.0.slots
    }

    /// How many slots of one origin a member votes on at a time.
    #[must_use]
    pub const fn depth(&self) -> u16 {
        self.0.depth
    }

    /// The longest message in bytes.
    #[must_use]
    pub const fn message_len(&self) -> u16 {
        self.0.message_len
    }

    /// Whether slots carry signatures.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.0.form
    }

    /// Whether members can be removed.
    #[must_use]
    pub const fn membership(&self) -> Membership {
        self.0.membership
    }

    /// When failed reads are repeated.
    #[must_use]
    pub const fn retry(&self) -> Retry {
        self.0.retry
    }

    /// Bytes from one slot to the next: whole cache lines.
    #[must_use]
    pub const fn stride(&self) -> u32 {
        self.1
    }

    /// Bytes of one member's registered memory.
    #[must_use]
    pub fn registered_len(&self) -> u64 {
        let mut layout = Layout::new(self.peers());
        // None where a layout cannot hold them: no such memory exists.
        self.add_regions(&mut layout).map_or(0, |_| layout.total_len())
    }

    /// One write in this many reports its success; at least one per ring.
    pub(super) const fn signal_every(&self) -> u32 {
        if self.0.slots < SIGNAL_EVERY { self.0.slots } else { SIGNAL_EVERY }
    }

    /// A member that is this many slots behind is asked for its progress.
    pub(super) const fn lag(&self) -> u64 {
        if self.0.slots < 2 { 1 } else { self.0.slots as u64 / 2 }
    }

    pub(super) const fn ring_len(&self) -> u64 {
        self.0.slots as u64 * self.stride() as u64
    }

    pub(super) const fn replay_len(&self) -> u64 {
        self.0.peers as u64 * self.ring_len()
    }

    /// Bytes of the landings of reads of replays.
    pub(super) const fn votes_len(&self) -> u64 {
        let peers = self.0.peers as u64;
        peers * peers * self.0.depth as u64 * self.stride() as u64
    }

    pub(super) const fn landing_len(&self) -> u64 {
        self.votes_len() + self.0.peers as u64 * self.progress_len() as u64
    }

    /// Bytes of one member's progress: two cells for each of its numbers, written alternately, so
    /// that one of them is whole at any time.
    pub(super) const fn progress_len(&self) -> u32 {
        (Shown::Open.place(self.0.peers).0 as u32 + 1) * 2 * CELL_LEN as u32
    }
}

/// One number that a member shows to all others, in two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The last message of that origin which it delivered.
    Delivered(Peer),
    /// The epoch of that member which it counts (N-16); of itself, its own.
    Counted(Peer),
    /// The last message of that origin before those that it hands out.
    Behind(Peer),
    /// Its own epoch, once that is open (N-17).
    Open,
}

impl Shown {
    /// Its place among the numbers of one of `peers` members, which its cells carry as well.
    pub(super) const fn place(self, peers: u16) -> Peer {
        match self {
            Self::Delivered(origin) => origin,
            Self::Counted(member) => Peer(peers + member.0),
            Self::Behind(origin) => Peer(2 * peers + origin.0),
            Self::Open => Peer(3 * peers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes {
        peers: 4,
        slots: 1024,
        depth: 32,
        message_len: 96,
        form: Form::Unsigned,
        membership: Membership::Fixed,
        retry: Retry { after: Duration::from_micros(2), after_max: Duration::from_millis(1) },
    };

    #[test]
    fn a_value_outside_its_limit_is_named() {
        let refused = |sizes| Config::new(sizes).unwrap_err();
        assert_eq!(refused(Sizes { peers: 0, ..SIZES }), ConfigError::Peers(0));
        assert_eq!(refused(Sizes { peers: 65, ..SIZES }), ConfigError::Peers(65));
        assert_eq!(refused(Sizes { slots: 1000, ..SIZES }), ConfigError::Slots(1000));
        assert_eq!(refused(Sizes { slots: 1 << 17, ..SIZES }), ConfigError::Slots(1 << 17));
        assert_eq!(refused(Sizes { depth: 0, ..SIZES }), ConfigError::Depth(0));
        assert_eq!(refused(Sizes { slots: 16, ..SIZES }), ConfigError::Depth(32));
        assert_eq!(refused(Sizes { message_len: 4097, ..SIZES }), ConfigError::MessageLen(4097));
        let never = Retry { after: Duration(0), after_max: Duration(1) };
        assert_eq!(refused(Sizes { retry: never, ..SIZES }), ConfigError::Retry);
        let large = Sizes { peers: 64, slots: SLOTS_MAX, message_len: 4096, ..SIZES };
        assert_eq!(refused(large), ConfigError::TooLarge);
    }

    #[test]
    fn four_members_with_slots_of_128_bytes_register_less_than_4_mib() {
        let config = Config::new(SIZES).unwrap();
        assert_eq!(config.stride(), 128);
        assert_eq!(config.registered_len(), 1_116_192);
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pause = |attempts| SIZES.retry.pause(attempts).as_micros();
        assert_eq!([0, 1, 2, 8, 9, 255].map(pause), [2, 4, 8, 512, 1000, 1000]);
    }
}
