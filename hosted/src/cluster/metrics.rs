//! `[metrics]`: where the counters of nodes are read, beside the socket of each.

use std::net::{Ipv4Addr, SocketAddr};

use super::ClusterError;
use super::key;
use super::limit::LimitError;
use super::section::FileSection;

/// Where metrics are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// `port`: node R serves its metrics at 127.0.0.1, port `port` + R; 0, the default, for none.
    pub port: u16,
}

impl Metrics {
    pub(super) fn read(section: &FileSection<'_>) -> Result<Self, ClusterError> {
        let port = section.number(&key::METRICS_PORT)?.unwrap_or_default();
        Ok(Self { port: u16::try_from(port).unwrap_or(u16::MAX) })
    }

    pub(super) fn check(&self) -> Result<(), LimitError> {
        key::METRICS_PORT.limit.admit(key::METRICS_PORT.path, self.port.into())
    }

    /// Where node `rank` serves its metrics besides its socket, if it does.
    #[must_use]
    pub fn address(&self, rank: u16) -> Option<SocketAddr> {
        let port = self.port.checked_add(rank).filter(|_| self.port > 0)?;
        Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }
}
