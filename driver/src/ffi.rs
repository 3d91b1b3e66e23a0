//! The binding: the one file that knows which crate stands behind `rdma_core_sys`.
//!
//! It opens libibverbs at run time, and asserts the layout of all that it declares.

pub(crate) use rdma_core_sys::*;

const _: () =
    assert!(cfg!(target_endian = "little"), "results of atomics are taken as they lie in memory");

/// A structure that verbs want zeroed before its fields are set.
///
/// # Safety
/// All bytes zero must be a valid value of the type.
pub(crate) unsafe trait Zeroed: Sized {
    /// All bytes zero.
    fn zeroed() -> Self {
        // SAFETY: the implementor says that this is a valid value.
        unsafe { std::mem::zeroed() }
    }
}

// SAFETY: integers and an array of them.
unsafe impl Zeroed for ibv_device_attr {}
// SAFETY: integers.
unsafe impl Zeroed for ibv_port_attr {}
// SAFETY: integers and a union of them.
unsafe impl Zeroed for ibv_gid_entry {}
// SAFETY: a pointer that may be null, and an integer.
unsafe impl Zeroed for ibv_async_event {}
// SAFETY: integers, and structures and unions of them.
unsafe impl Zeroed for ibv_qp_attr {}
// SAFETY: integers, structures and unions of them, and pointers that may be null.
unsafe impl Zeroed for ibv_send_wr {}
