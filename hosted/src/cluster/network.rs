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
    /// `key`: the file with the key that all nodes share.
    pub key: Option<PathBuf>,
}

impl Network {
    /// Either no address, or one of each node and of no two the same.
    pub(super) fn check(&self, nodes: usize) -> Result<(), LimitError> {
        let path = key::NETWORK_ADDRESSES;
        let found = self.addresses.len();
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
