//! Devices: which there are, and one that is open.
//!
//! A device is chosen by name and port, its address by kind ([`GidEntry::choose`]). What the
//! driver cannot do without is looked at here, once: an active port, an address and atomics.
//! Each fabric opens the device for itself, so that asynchronous events reach the fabric that they
//! are for.
//!
//! What is made of the device (domains, queues, pairs) shares its [`Context`], which is closed
//! when the last of them is gone.

use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::ffi::{self, Zeroed, ibv_gid_type as gid_type};
use crate::{Errno, Error, Gid, GidEntry, GidKind, LinkLayer, Verb};

/// The most addresses of a port that are looked at.
const GIDS_MAX: usize = 256;

/// Which device, port and address to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceChoice {
    /// The device's name; the first one when there is none.
    pub name: Option<String>,
    /// The port, counted from 1.
    pub port: u8,
}

impl Default for DeviceChoice {
    fn default() -> Self {
        Self { name: None, port: 1 }
    }
}

/// What a device can do at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Outstanding works of one queue pair.
    pub depth: u32,
    /// Completions in one queue.
    pub completions: u32,
    /// Registrations.
    pub registrations: u32,
    /// Reads and atomics on their way from one queue pair.
    pub reads_sent: u8,
    /// Reads and atomics to one queue pair that are answered at once.
    pub reads_answered: u8,
    /// Bytes of one message.
    pub message_len: u32,
}

/// An open device, seen through one of its ports.
#[derive(Debug)]
pub struct Device {
    context: Arc<Context>,
    name: String,
    port: u8,
    link: LinkLayer,
    local_id: u16,
    mtu: u8,
    address: GidEntry,
    limits: Limits,
}

/// `ibv_context`, closed when dropped.
#[derive(Debug)]
pub(crate) struct Context {
    raw: NonNull<ffi::ibv_context>,
}

// SAFETY: libibverbs allows every verb of a context from any thread; the context has no tie to
// the thread that opened it.
unsafe impl Send for Context {}
// SAFETY: as above; verbs on one context lock what they share.
unsafe impl Sync for Context {}

/// `ibv_get_device_list`, freed when dropped.
struct DeviceList {
    first: NonNull<*mut ffi::ibv_device>,
    count: usize,
}

impl DeviceList {
    fn get() -> Result<Self, Error> {
        ffi::load()?;
        let mut count = 0;
        // SAFETY: the argument is a place for the count.
        let first = unsafe { ffi::ibv_get_device_list(&raw mut count) };
        // Without the kernel's part and without devices the cure is one.
        let first = NonNull::new(first).ok_or(Error::NoRdma)?;
        let list = Self { first, count: usize::try_from(count).unwrap_or(0) };
        if list.count == 0 { Err(Error::NoRdma) } else { Ok(list) }
    }

    fn devices(&self) -> &[*mut ffi::ibv_device] {
        // SAFETY: the list has `count` entries, valid and unchanged until it is freed by `drop`.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: the list was got from `ibv_get_device_list` and is freed once; devices that
        // were opened stay valid.
        unsafe { ffi::ibv_free_device_list(self.first.as_ptr()) };
    }
}

/// The name of a device of a list that is still held.
fn name_of(device: *mut ffi::ibv_device) -> String {
    // SAFETY: the device is an entry of a list that was not freed.
    let name = unsafe { ffi::ibv_get_device_name(device) };
    if name.is_null() {
        return String::new();
    }
    // SAFETY: the name is a terminated string within the device, which is valid as above.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_string_lossy().into_owned()
}

impl Context {
    fn open(device: *mut ffi::ibv_device) -> Result<Self, Error> {
        // SAFETY: the device is an entry of a list that was not freed.
        let raw = unsafe { ffi::ibv_open_device(device) };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self { raw }),
            None => Err(Error::Verb(Verb::OpenDevice, Errno::last())),
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut ffi::ibv_context {
        self.raw.as_ptr()
    }

    fn query(&self) -> Result<ffi::ibv_device_attr, Error> {
        let mut attributes = ffi::ibv_device_attr::zeroed();
        // SAFETY: the context is open, and the attributes are a place for the answer.
        let returned = unsafe { ffi::ibv_query_device(self.as_ptr(), &raw mut attributes) };
        Errno::check(returned).map_err(|errno| Error::Verb(Verb::QueryDevice, errno))?;
        Ok(attributes)
    }

    fn query_port(&self, port: u8) -> Result<ffi::ibv_port_attr, Error> {
        let mut attributes = ffi::ibv_port_attr::zeroed();
        // SAFETY: the context is open, and the attributes are a place for the answer.
        let returned = unsafe { ffi::ibv_query_port(self.as_ptr(), port, &raw mut attributes) };
        Errno::check(returned).map_err(|errno| Error::Verb(Verb::QueryPort, errno))?;
        Ok(attributes)
    }

    fn query_gids(&self, port: u8) -> Result<Vec<GidEntry>, Error> {
        let mut table: Vec<_> = (0..GIDS_MAX).map(|_| ffi::ibv_gid_entry::zeroed()).collect();
        // SAFETY: the context is open, and the table is a place for as many entries as are said.
        let found =
            unsafe { ffi::ibv_query_gid_table(self.as_ptr(), table.as_mut_ptr(), table.len(), 0) };
        let found = usize::try_from(found).map_err(|_| {
            // The only verb that returns its errno negated.
            let errno = i32::try_from(found.unsigned_abs()).unwrap_or(0);
            Error::Verb(Verb::QueryGids, Errno(errno))
        })?;
        table.truncate(found);
        let of_port = table.iter().filter(|entry| entry.port_num == u32::from(port));
        Ok(of_port.filter_map(entry_of).collect())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was opened and is closed once: all that is made of it shares it by
        // `Arc`. A failure leaves a descriptor behind, which no caller could close.
        unsafe { ffi::ibv_close_device(self.as_ptr()) };
    }
}

fn entry_of(entry: &ffi::ibv_gid_entry) -> Option<GidEntry> {
    let kind = match entry.gid_type {
        gid_type::IBV_GID_TYPE_IB => GidKind::InfiniBand,
        gid_type::IBV_GID_TYPE_ROCE_V1 => GidKind::RoceV1,
        gid_type::IBV_GID_TYPE_ROCE_V2 => GidKind::RoceV2,
        _ => return None,
    };
    // SAFETY: both views of the union are 16 bytes of integers.
    let gid = Gid(unsafe { entry.gid.raw });
    // Addresses past what a queue pair can name are of no use.
    Some(GidEntry { index: u8::try_from(entry.gid_index).ok()?, kind, gid })
}

impl Device {
    /// The names of all devices.
    ///
    /// # Errors
    /// [`Error::NoRdma`].
    pub fn names() -> Result<Vec<String>, Error> {
        let list = DeviceList::get()?;
        Ok(list.devices().iter().map(|device| name_of(*device)).collect())
    }

    /// Opens the device that is chosen, and sees that it will do.
    ///
    /// # Errors
    /// [`Error`]; nothing is left open.
    pub fn open(choice: &DeviceChoice) -> Result<Self, Error> {
        let list = DeviceList::get()?;
        let is_chosen = |name: &str| choice.name.as_deref().is_none_or(|wanted| wanted == name);
        let mut named = list.devices().iter().map(|device| (*device, name_of(*device)));
        let (device, name) = named
            .find(|(_, name)| is_chosen(name))
            .ok_or_else(|| Error::NoSuchDevice(choice.name.clone().unwrap_or_default()))?;
        let context = Context::open(device)?;

        let attributes = context.query()?;
        if !(1..=attributes.phys_port_cnt).contains(&choice.port) {
            return Err(Error::NoSuchPort(choice.port));
        }
        if attributes.atomic_cap == ffi::ibv_atomic_cap::IBV_ATOMIC_NONE {
            return Err(Error::NoAtomics);
        }
        let port = context.query_port(choice.port)?;
        if port.state != ffi::ibv_port_state::IBV_PORT_ACTIVE {
            return Err(Error::PortDown(choice.port));
        }
        let ethernet = ffi::ibv_link_layer::IBV_LINK_LAYER_ETHERNET;
        let is_ethernet = u32::from(port.link_layer) == ethernet;
        let link = if is_ethernet { LinkLayer::Ethernet } else { LinkLayer::InfiniBand };
        let address = GidEntry::choose(link, &context.query_gids(choice.port)?)
            .ok_or(Error::NoGid(choice.port))?;
        Ok(Self {
            context: Arc::new(context),
            name,
            port: choice.port,
            link,
            local_id: port.lid,
            mtu: u8::try_from(port.active_mtu).unwrap_or(1),
            address,
            limits: limits_of(&attributes, &port),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The port in use.
    #[must_use]
    pub const fn port(&self) -> u8 {
        self.port
    }

    /// What carries its packets.
    #[must_use]
    pub const fn link(&self) -> LinkLayer {
        self.link
    }

    /// The address that is sent to peers.
    #[must_use]
    pub const fn address(&self) -> GidEntry {
        self.address
    }

    /// The local identifier in an InfiniBand subnet.
    #[must_use]
    pub const fn local_id(&self) -> u16 {
        self.local_id
    }

    /// The largest packet, as verbs number it.
    #[must_use]
    pub const fn mtu(&self) -> u8 {
        self.mtu
    }

    /// What it can do at most.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) const fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

fn limits_of(device: &ffi::ibv_device_attr, port: &ffi::ibv_port_attr) -> Limits {
    // Devices report signed counts; a negative one is nonsense and counts as none.
    let count = |value: i32| u32::try_from(value).unwrap_or(0);
    let small = |value: i32| u8::try_from(value.clamp(0, 255)).unwrap_or(0);
    Limits {
        depth: count(device.max_qp_wr),
        completions: count(device.max_cqe),
        registrations: count(device.max_mr),
        reads_sent: small(device.max_qp_init_rd_atom),
        reads_answered: small(device.max_qp_rd_atom),
        message_len: port.max_msg_sz,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_device_of_that_name_is_said_as_such() {
        let name = Some("weft-none".to_owned());
        let refused = Device::open(&DeviceChoice { name, ..DeviceChoice::default() }).map(drop);
        let expected = match Device::names() {
            Ok(_) => Error::NoSuchDevice("weft-none".to_owned()),
            Err(error) => error,
        };
        assert!(!expected.cure().is_empty());
        assert_eq!(refused, Err(expected));
    }
}
