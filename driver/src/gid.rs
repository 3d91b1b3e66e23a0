//! Which of a port's addresses is sent to peers.
//!
//! A port of an Ethernet device has several addresses (GIDs) for each of its interface's, and
//! only those of kind RoCE v2 are routed. Taken is, in this order:
//!
//! ```text
//!   InfiniBand    the first
//!   Ethernet      RoCE v2, IPv4-mapped (::ffff:a.b.c.d)
//!                 RoCE v2, another address that is not link-local
//!                 RoCE v2, link-local
//! ```
//!
//! The number of an address in the port's table is this host's own affair; what travels is the
//! address. RoCE v1 is never chosen: every device that has it has v2 as well.

use std::fmt;

/// An address of a port, as the device writes it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    const IPV4_MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

    /// Whether nothing is there: an empty place of the table.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    fn is_ipv4(self) -> bool {
        self.0.starts_with(&Self::IPV4_MAPPED)
    }

    fn is_link_local(self) -> bool {
        self.0[0] == 0xfe && self.0[1] & 0xc0 == 0x80
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::Ipv6Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an address is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidKind {
    /// Within an InfiniBand subnet.
    InfiniBand,
    /// Within an Ethernet segment.
    RoceV1,
    /// Wherever UDP goes.
    RoceV2,
}

/// A place of a port's table of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// Its number in the table.
    pub index: u8,
    /// Its kind.
    pub kind: GidKind,
    /// The address.
    pub gid: Gid,
}

/// What carries the port's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// A subnet with local identifiers.
    InfiniBand,
    /// RoCE.
    Ethernet,
}

impl GidEntry {
    /// The address of `table` to send to peers, if there is one.
    #[must_use]
    pub fn choose(link: LinkLayer, table: &[Self]) -> Option<Self> {
        let wanted = match link {
            LinkLayer::InfiniBand => GidKind::InfiniBand,
            LinkLayer::Ethernet => GidKind::RoceV2,
        };
        let usable = table.iter().filter(|entry| entry.kind == wanted && !entry.gid.is_empty());
        let rank = |entry: &&Self| match (link, entry.gid) {
            (LinkLayer::InfiniBand, _) => 0,
            (LinkLayer::Ethernet, gid) if gid.is_ipv4() => 0,
            (LinkLayer::Ethernet, gid) if !gid.is_link_local() => 1,
            (LinkLayer::Ethernet, _) => 2,
        };
        usable.min_by_key(rank).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u8, kind: GidKind, address: &str) -> GidEntry {
        let address: std::net::Ipv6Addr = address.parse().unwrap();
        GidEntry { index, kind, gid: Gid(address.octets()) }
    }

    fn chosen(link: LinkLayer, table: &[GidEntry]) -> Option<u8> {
        GidEntry::choose(link, table).map(|entry| entry.index)
    }

    #[test]
    fn ethernet_prefers_an_ipv4_address_of_roce_v2() {
        let table = [
            entry(0, GidKind::RoceV1, "::ffff:10.0.0.1"),
            entry(1, GidKind::RoceV2, "fe80::1"),
            entry(2, GidKind::RoceV2, "2001:db8::1"),
            entry(3, GidKind::RoceV2, "::ffff:10.0.0.1"),
            entry(4, GidKind::RoceV2, "::ffff:10.0.0.2"),
        ];
        assert_eq!(chosen(LinkLayer::Ethernet, &table), Some(3));
        assert_eq!(chosen(LinkLayer::Ethernet, &table[..3]), Some(2));
        assert_eq!(chosen(LinkLayer::Ethernet, &table[..2]), Some(1));
        assert_eq!(chosen(LinkLayer::Ethernet, &table[..1]), None);
    }

    #[test]
    fn infiniband_takes_its_first_address() {
        let table = [
            entry(0, GidKind::InfiniBand, "::"),
            entry(1, GidKind::InfiniBand, "fe80::1"),
            entry(2, GidKind::InfiniBand, "2001:db8::1"),
        ];
        assert_eq!(chosen(LinkLayer::InfiniBand, &table), Some(1));
        assert_eq!(chosen(LinkLayer::Ethernet, &table), None);
    }
}
