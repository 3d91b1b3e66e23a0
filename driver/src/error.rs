//! What goes wrong on the way to a working pair, and what to do about it.
//!
//! A verb that fails is named by its own [`Verb`] and carries its errno, also as the source.
//! Failures of the data path are not here: they are completions ([`crate::failure_of`]) and
//! [`weft_core::fabric::PostError`].

use std::fmt;

use weft_core::fabric::Region;
use weft_core::ids::Peer;

use crate::{ConfigError, EndError, Errno, Verb};

/// Why there is no device, no fabric or no pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No libibverbs, or no device that it knows.
    NoRdma,
    /// There are devices, but none of this name.
    NoSuchDevice(String),
    /// The device has no such port.
    NoSuchPort(u8),
    /// The port is not active.
    PortDown(u8),
    /// The port has no address that peers could reach.
    NoGid(u8),
    /// The device has no remote atomics.
    NoAtomics,
    /// A configuration that is refused.
    Config(ConfigError),
    /// An end that this endpoint cannot be paired with.
    End(EndError),
    /// There is no such peer, or it is this endpoint itself.
    UnknownPeer(Peer),
    /// Nothing was prepared for the peer, or its end was not connected.
    NotPrepared(Peer),
    /// The incarnation that was prepared is not later than one that was fenced.
    StaleIncarnation(Peer),
    /// A region's words are not as many as the layout says.
    MemoryLength {
        /// Which region.
        region: Region,
        /// Its length in the layout, in bytes.
        expected: usize,
        /// The bytes of its words.
        found: usize,
    },
    /// The region takes more pieces to be moved at once than the queue has places.
    RegionTooLong(Region),
    /// A verb failed.
    Verb(Verb, Errno),
}

impl Error {
    /// What to type or change: one sentence, lower case.
    #[must_use]
    pub const fn cure(&self) -> &'static str {
        match self {
            Self::NoRdma => {
                "install ibverbs-providers and load the device's driver; without hardware, \
                 `rdma link add rxe0 type rxe netdev INTERFACE` makes a device of an interface; \
                 on one host the fabric over shared memory needs none of this"
            }
            Self::NoSuchDevice(_) => "choose one that `rdma link` lists",
            Self::NoSuchPort(_) => "ports are counted from 1; `rdma link` lists them",
            Self::PortDown(_) => "bring the interface or the cable up; `rdma link` shows its state",
            Self::NoGid(_) => "give the network interface an IPv4 address",
            Self::NoAtomics => "use a device with remote atomics; mailboxes need them",
            Self::Config(_) => "set the value within its bounds",
            Self::End(_) => "start both nodes from one configuration and one version of Weft",
            Self::UnknownPeer(_) | Self::NotPrepared(_) | Self::MemoryLength { .. } => {
                "this is a bug in the caller; please report it"
            }
            Self::StaleIncarnation(_) => "start the peer again, as a later incarnation",
            Self::RegionTooLong(_) => "raise depth, or make the region shorter",
            // A limit of zero is reported as a missing right.
            Self::Verb(
                Verb::RegisterMemory | Verb::CreateQueuePair,
                Errno::NOMEM | Errno::PERM,
            ) => {
                "raise the limit of locked memory (`ulimit -l`, or LimitMEMLOCK= of a service); \
                 the regions count once for every peer"
            }
            Self::Verb(Verb::OpenDevice, Errno::ACCES) => {
                "let this user open the device files below /dev/infiniband"
            }
            Self::Verb(Verb::ModifyToReadyToReceive, _) => {
                "see that both nodes' addresses reach each other and that both ports are up"
            }
            Self::Verb(_, _) => {
                "look into the kernel's log for the device; when it is gone, start the node again"
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRdma => f.write_str("there is no RDMA device here"),
            Self::NoSuchDevice(name) => write!(f, "there is no RDMA device called {name:?}"),
            Self::NoSuchPort(port) => write!(f, "the device has no port {port}"),
            Self::PortDown(port) => write!(f, "port {port} of the device is not active"),
            Self::NoGid(port) => write!(f, "port {port} has no address that peers could reach"),
            Self::NoAtomics => f.write_str("the device has no remote atomics"),
            Self::Config(error) => error.fmt(f),
            Self::End(error) => error.fmt(f),
            Self::UnknownPeer(peer) => write!(f, "peer {peer} is none to pair with"),
            Self::NotPrepared(peer) => {
                write!(f, "no pair is prepared and connected for peer {peer}")
            }
            Self::StaleIncarnation(peer) => {
                write!(f, "peer {peer} was fenced in this or a later incarnation")
            }
            Self::MemoryLength { region, expected, found } => {
                let number = region.0;
                write!(f, "region {number} is {found} bytes of memory, not {expected}")
            }
            Self::RegionTooLong(region) => {
                write!(f, "region {} cannot be moved in one queue's worth of pieces", region.0)
            }
            Self::Verb(verb, errno) => write!(f, "{verb} failed: {errno}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Verb(_, errno) => Some(errno),
            Self::NoRdma
            | Self::NoSuchDevice(_)
            | Self::NoSuchPort(_)
            | Self::PortDown(_)
            | Self::NoGid(_)
            | Self::NoAtomics
            // Part of this error's own sentence.
            | Self::Config(_)
            | Self::End(_)
            | Self::UnknownPeer(_)
            | Self::NotPrepared(_)
            | Self::StaleIncarnation(_)
            | Self::MemoryLength { .. }
            | Self::RegionTooLong(_) => None,
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<EndError> for Error {
    fn from(error: EndError) -> Self {
        Self::End(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn a_verb_names_itself_and_keeps_its_errno_as_the_source() {
        let error = Error::Verb(Verb::RegisterMemory, Errno::NOMEM);
        assert!(error.to_string().starts_with("ibv_reg_mr failed: "), "{error}");
        assert_eq!(error.source().unwrap().downcast_ref(), Some(&Errno::NOMEM));
    }

    #[test]
    fn the_limit_of_locked_memory_is_cured_by_its_own_name() {
        let cure = |verb, errno| Error::Verb(verb, errno).cure();
        assert!(cure(Verb::RegisterMemory, Errno::NOMEM).contains("ulimit -l"));
        assert!(cure(Verb::RegisterMemory, Errno::PERM).contains("ulimit -l"));
        assert!(!cure(Verb::RegisterMemory, Errno::INVAL).contains("ulimit -l"));
        assert!(cure(Verb::OpenDevice, Errno::ACCES).contains("/dev/infiniband"));
    }
}
