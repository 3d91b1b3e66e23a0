//! What can be wrong with RDMA on a host, with cause and cure.

use std::fmt;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RdmaTrouble {
    /// No libibverbs.
    NoLibrary,
    /// The kernel knows no device.
    NoDevice {
        /// Whether soft-RoCE's module is there.
        can_make_one: bool,
    },
    /// No device has a port that could be used.
    NoPort,
    /// A port is not active.
    PortDown {
        /// Which.
        port: String,
    },
    /// A port has no address that peers could reach.
    NoAddress {
        /// Which.
        port: String,
    },
    /// This user may not open a device.
    NoAccess {
        /// Which.
        device: String,
    },
}

impl fmt::Display for RdmaTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLibrary => f.write_str("no program can reach an RDMA device without it"),
            Self::NoDevice { .. } => {
                f.write_str("nodes on different hosts cannot reach each other's memory")
            }
            Self::NoPort => f.write_str("no device has an active port"),
            Self::PortDown { port } => write!(f, "port {port} is down"),
            Self::NoAddress { port } => {
                write!(f, "port {port} has no RoCE v2 address")
            }
            Self::NoAccess { device } => write!(f, "this user has no access to {device}"),
        }
    }
}

impl RdmaTrouble {
    /// What mends it.
    pub(super) fn cure(&self) -> String {
        match self {
            Self::NoLibrary => {
                "run `apt-get install ibverbs-providers`; not needed on one host, where nodes \
                 share memory"
                    .to_owned()
            }
            Self::NoDevice { can_make_one: true } => {
                "run `modprobe rdma_rxe && rdma link add rxe0 type rxe netdev INTERFACE` to make a \
                 device of a network interface; not needed on one host, where nodes share memory"
                    .to_owned()
            }
            Self::NoDevice { can_make_one: false } => {
                "not needed on one host; to try RDMA without hardware, run `ci/rxe demo` in the \
                 source tree"
                    .to_owned()
            }
            Self::NoPort => "run `rdma link` to see the ports and their states".to_owned(),
            Self::PortDown { port } => {
                format!("bring the interface or the cable of {port} up; `rdma link` shows it")
            }
            Self::NoAddress { port } => {
                format!("give the network interface of {port} an IPv4 address: `ip address add`")
            }
            Self::NoAccess { .. } => {
                "give this user read and write access to /dev/infiniband/uverbs*, or load \
                 ib_uverbs if there is no such device"
                    .to_owned()
            }
        }
    }
}
