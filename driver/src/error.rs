//! What goes wrong on the way to a working pair, and what to do about it.
//!
//! A verb that fails is named by its own [`Verb`] and carries its errno, also as the source.
//! Failures of the data path are not here: they are completions ([`crate::failure_of`]) and
//! [`weft_core::fabric::PostError`].

use weft_core::fabric::Region;
use weft_core::ids::Peer;

use crate::{ConfigError, EndError, Errno, Verb};

/// Why there is no device, no fabric or no pair.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No libibverbs, or no device that it knows.
    #[error("there is no RDMA device here")]
    NoRdma,
    /// The system's libibverbs lacks a function.
    #[error("libibverbs has no {name} of version {version}")]
    OldLibrary {
        /// Its symbol.
        name: &'static str,
        /// Its version.
        version: &'static str,
    },
    /// There are devices, but none of this name.
    #[error("there is no RDMA device called {0:?}")]
    NoSuchDevice(String),
    /// The device has no such port.
    #[error("the device has no port {0}")]
    NoSuchPort(u8),
    /// The port is not active.
    #[error("port {0} of the device is not active")]
    PortDown(u8),
    /// The port has no address that peers could reach.
    #[error("port {0} has no address that peers could reach")]
    NoGid(u8),
    /// The device has no remote atomics.
    #[error("the device has no remote atomics")]
    NoAtomics,
    /// A configuration that is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An end that this endpoint cannot be paired with.
    #[error(transparent)]
    End(#[from] EndError),
    /// There is no such peer, or it is this endpoint itself.
    #[error("peer {0} is none to pair with")]
    UnknownPeer(Peer),
    /// Nothing was prepared for the peer, or its end was not connected.
    #[error("no pair is prepared and connected for peer {0}")]
    NotPrepared(Peer),
    /// The incarnation that was prepared is not later than one that was fenced.
    #[error("peer {0} was fenced in this or a later incarnation")]
    StaleIncarnation(Peer),
    /// A region's words are not as many as the layout says.
    #[error("region {} is {found} bytes of memory, not {expected}", .region.0)]
    MemoryLength {
        /// Which region.
        region: Region,
        /// Its length in the layout, in bytes.
        expected: usize,
        /// The bytes of its words.
        found: usize,
    },
    /// The region takes more pieces to be moved at once than the queue has places.
    #[error("region {} cannot be moved in one queue's worth of pieces", .0.0)]
    RegionTooLong(Region),
    /// A verb failed.
    #[error("{0} failed: {1}")]
    Verb(Verb, #[source] Errno),
}

#[cfg(feature = "verbs")]
impl From<crate::ffi::Missing> for Error {
    fn from(missing: crate::ffi::Missing) -> Self {
        match missing {
            crate::ffi::Missing::Library => Self::NoRdma,
            crate::ffi::Missing::Function { name, version } => Self::OldLibrary { name, version },
        }
    }
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
            Self::OldLibrary { .. } => "install libibverbs of rdma-core 32 or later",
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

    #[cfg(feature = "verbs")]
    #[test]
    fn a_library_that_is_missing_or_old_is_an_error_with_a_cure() {
        use crate::ffi::Missing;
        assert_eq!(Error::from(Missing::Library), Error::NoRdma);
        let (name, version) = ("_ibv_query_gid_table", "IBVERBS_1.11");
        let error = Error::from(Missing::Function { name, version });
        assert_eq!(
            error.to_string(),
            "libibverbs has no _ibv_query_gid_table of version IBVERBS_1.11"
        );
        assert!(error.cure().contains("rdma-core 32"), "{}", error.cure());
    }
}
