//! What the files of a host say about RDMA.

use std::fmt;
use std::fs;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use weft_driver::{Gid, GidEntry, GidKind, LinkLayer};

/// Below these the distributions put libraries, some of them in a directory for the processor.
const LIBRARIES: [&str; 4] = ["usr/lib", "usr/lib64", "usr/local/lib", "lib"];
const LIBRARY: &str = "libibverbs.so.1";
/// The most places of a table of addresses that are looked at, as the driver does.
const GIDS_MAX: u8 = u8::MAX;

/// All of it.
#[derive(Debug)]
pub(super) struct RdmaHost {
    pub(super) library: Option<PathBuf>,
    pub(super) devices: Vec<Device>,
    /// Whether the kernel's modules include soft-RoCE.
    pub(super) has_soft_roce: bool,
}

/// A device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) ports: Vec<Port>,
    /// Whether this user may open it.
    pub(super) is_open_to_us: bool,
}

/// A port, written as `rxe0/1`.
#[derive(Debug)]
pub(super) struct Port {
    device: String,
    number: u8,
    /// In the kernel's word, lower case: `active`, `down`, `init`.
    pub(super) state: String,
    link: LinkLayer,
    gids: Vec<GidEntry>,
}

impl RdmaHost {
    /// The host whose root directory is `root`.
    pub(super) fn probe(root: &Path) -> Self {
        let devices = names(&root.join("sys/class/infiniband"));
        Self {
            library: find_library(root),
            devices: devices.into_iter().map(|name| Device::probe(root, name)).collect(),
            has_soft_roce: has_soft_roce(root),
        }
    }
}

impl Device {
    fn probe(root: &Path, name: String) -> Self {
        let path = root.join("sys/class/infiniband").join(&name).join("ports");
        let mut ports: Vec<_> =
            names(&path).iter().filter_map(|number| Port::probe(&path, &name, number)).collect();
        ports.sort_unstable_by_key(|port| port.number);
        let is_open_to_us = file_of(root, &name).is_some_and(|path| {
            rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK).is_ok()
        });
        Self { name, ports, is_open_to_us }
    }
}

impl Port {
    fn probe(ports: &Path, device: &str, number: &str) -> Option<Self> {
        let path = ports.join(number);
        let number = number.parse().ok()?;
        // `4: ACTIVE`
        let state = word(&path.join("state"));
        let state = state.split(": ").last().unwrap_or_default().to_lowercase();
        let is_ethernet = word(&path.join("link_layer")) == "Ethernet";
        let link = if is_ethernet { LinkLayer::Ethernet } else { LinkLayer::InfiniBand };
        let gids = (0..GIDS_MAX).filter_map(|index| gid(&path, index)).collect();
        Some(Self { device: device.to_owned(), number, state, link, gids })
    }

    pub(super) fn is_active(&self) -> bool {
        self.state == "active"
    }

    /// The address that peers would get: the driver's own choice.
    pub(super) fn address(&self) -> Option<GidEntry> {
        GidEntry::choose(self.link, &self.gids)
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.device, self.number)
    }
}

/// The address at a place of the table; an empty place has no kind.
fn gid(port: &Path, index: u8) -> Option<GidEntry> {
    let number = index.to_string();
    let kind = match word(&port.join("gid_attrs/types").join(&number)).as_str() {
        "RoCE v2" => GidKind::RoceV2,
        // The kernel has one word for two kinds, which the link layer distinguishes.
        "IB/RoCE v1" if word(&port.join("link_layer")) == "Ethernet" => GidKind::RoceV1,
        "IB/RoCE v1" => GidKind::InfiniBand,
        _ => return None,
    };
    let address: Ipv6Addr = word(&port.join("gids").join(&number)).parse().ok()?;
    Some(GidEntry { index, kind, gid: Gid(address.octets()) })
}

/// The device file of `device`: `uverbsN`, whose folder names the device.
fn file_of(root: &Path, device: &str) -> Option<PathBuf> {
    let folder = root.join("sys/class/infiniband_verbs");
    let is_its = |name: &String| word(&folder.join(name).join("ibdev")) == device;
    let name = names(&folder).into_iter().find(is_its)?;
    Some(root.join("dev/infiniband").join(name))
}

fn find_library(root: &Path) -> Option<PathBuf> {
    let places = LIBRARIES.iter().map(|place| root.join(place));
    // `x86_64-linux-gnu` and its like.
    let nested = |place: PathBuf| {
        let inner = names(&place).into_iter().filter(|name| name.contains("-linux-"));
        let inner: Vec<_> = inner.map(|name| place.join(name)).collect();
        std::iter::once(place).chain(inner)
    };
    places.flat_map(nested).map(|place| place.join(LIBRARY)).find(|path| path.exists())
}

fn has_soft_roce(root: &Path) -> bool {
    let release = word(&root.join("proc/sys/kernel/osrelease"));
    if release.is_empty() {
        return false;
    }
    let modules = root.join("lib/modules").join(release);
    let folder = modules.join("kernel/drivers/infiniband/sw/rxe");
    names(&folder).iter().any(|name| name.starts_with("rdma_rxe.ko"))
}

/// The names in a directory, sorted; none if there is no such directory.
fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// What a file of one line says; nothing if it cannot be read.
fn word(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
