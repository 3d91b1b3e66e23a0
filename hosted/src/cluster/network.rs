//! `[network]`: where nodes on several hosts meet.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::key;
use super::limit::{Limit, LimitError};

/// How nodes on several hosts meet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// `addresses`: where each node is met, as HOST:PORT, in the order of ranks; empty when all
    /// nodes run on one host.
    pub addresses: Vec<String>,
    /// `discovery`: the etcd with which each node registers its own address, instead of
    /// `addresses`.
    pub discovery: Option<String>,
    /// `key`: the file with the key that all nodes share.
    pub key: Option<PathBuf>,
}

impl Network {
    /// Whether nodes run on several hosts.
    #[must_use]
    pub const fn is_across_hosts(&self) -> bool {
        !self.addresses.is_empty() || self.discovery.is_some()
    }

    /// Where the etcd of `discovery` is reached: HOST:PORT each.
    #[must_use]
    pub fn etcd(&self) -> Option<Vec<String>> {
        let endpoints = self.discovery.as_deref()?.strip_prefix(ETCD)?;
        Some(endpoints.split(',').map(str::to_owned).collect())
    }

    /// Either no address, or one of each node and of no two the same; none with `discovery`.
    pub(super) fn check(&self, nodes: usize) -> Result<(), LimitError> {
        let path = key::NETWORK_ADDRESSES;
        let found = self.addresses.len();
        if let Some(discovery) = &self.discovery {
            let is_met = |endpoint: &String| is_address(endpoint);
            if !self.etcd().is_some_and(|endpoints| endpoints.iter().all(is_met)) {
                let written: String = discovery.chars().take(80).collect();
                return Err(Limit::Etcd.refuse(key::NETWORK_DISCOVERY, format!("{written:?}")));
            }
            let what = "addresses while network.discovery is set";
            let wanted = Limit::Exactly { count: 0, what };
            return match found {
                0 => Ok(()),
                _ => Err(wanted.refuse(path, found.to_string())),
            };
        }
        if found != 0 && found != nodes {
            let wanted = Limit::Exactly { count: nodes as u64, what: "addresses" };
            let noun = if found == 1 { "address" } else { "addresses" };
            return Err(wanted.refuse(path, format!("{found} {noun}")));
        }
        let mut known = BTreeSet::new();
        for address in &self.addresses {
            let written = || address.chars().take(80).collect::<String>();
            let Some(place) = place(address) else {
                return Err(Limit::Address.refuse(path, format!("{:?}", written())));
            };
            if !known.insert(place) {
                return Err(Limit::Once.refuse(path, format!("{:?}", written())));
            }
        }
        Ok(())
    }
}

/// The scheme of `discovery`.
const ETCD: &str = "etcd://";

/// Whether a node can be met there: HOST:PORT.
#[must_use]
pub fn is_address(address: &str) -> bool {
    place(address).is_some()
}

/// One form for each way to write the same HOST:PORT; names are not looked up.
fn place(address: &str) -> Option<(String, u16)> {
    if let Ok(address) = address.parse::<SocketAddr>() {
        return (address.port() > 0)
            .then(|| (address.ip().to_canonical().to_string(), address.port()));
    }
    let (host, port) = address.rsplit_once(':')?;
    let is_host = |it: char| !it.is_whitespace() && !it.is_control() && !"[]:/".contains(it);
    if host.is_empty() || !host.chars().all(is_host) {
        return None;
    }
    let port = port.parse().ok().filter(|port| *port > 0)?;
    Some((host.trim_end_matches('.').to_ascii_lowercase(), port))
}
