//! The binding: the one file that knows which crate stands behind `rdma_core_sys`.
//!
//! Everything that the driver uses of it is named here, so that another binding can take its
//! place. The binding opens libibverbs at run time; without it each verb fails with an errno.
//!
//! It is generated from a header, except for the types with unions, which were written by hand.
//! What the driver fills in or reads of either kind is asserted below against the C structures of
//! 64-bit machines, so that another binding or release of it cannot shift a field unnoticed.

use std::mem::offset_of;

pub(crate) use rdma_core_sys::{
    IBV_GID_TYPE_IB, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2, atomic_t, bind_mw_t,
    bind_mw_tso_union_t, imm_data_invalidated_rkey_union_t, qp_type_t, rdma_t, tso_t, wr_t, xrc_t,
};
pub(crate) use rdma_core_sys::{
    ibv_access_flags, ibv_ack_async_event, ibv_alloc_mw, ibv_alloc_pd, ibv_async_event,
    ibv_atomic_cap, ibv_close_device, ibv_context, ibv_cq, ibv_create_cq, ibv_create_qp,
    ibv_dealloc_mw, ibv_dealloc_pd, ibv_dereg_mr, ibv_destroy_cq, ibv_destroy_qp, ibv_device,
    ibv_device_attr, ibv_event_type, ibv_free_device_list, ibv_get_async_event,
    ibv_get_device_list, ibv_get_device_name, ibv_gid, ibv_gid_entry, ibv_modify_qp, ibv_mr,
    ibv_mw, ibv_mw_bind_info, ibv_mw_type, ibv_open_device, ibv_pd, ibv_poll_cq, ibv_port_attr,
    ibv_port_state, ibv_post_send, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask, ibv_qp_cap,
    ibv_qp_init_attr, ibv_qp_state, ibv_qp_type, ibv_query_device, ibv_query_gid_table,
    ibv_query_port, ibv_reg_mr, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wc, ibv_wr_opcode,
};

/// For the test of the table of statuses alone.
#[cfg(test)]
pub(crate) use rdma_core_sys::ibv_wc_status;

/// `IBV_LINK_LAYER_ETHERNET`, an anonymous enumeration's member that the binding leaves out.
pub(crate) const LINK_LAYER_ETHERNET: u8 = 2;

const _: () = {
    assert!(cfg!(target_endian = "little"), "results of atomics are taken as they lie in memory");
    assert!(size_of::<usize>() == size_of::<u64>(), "addresses are 64 bits wide");

    // Written by hand in the binding: every field.
    assert!(size_of::<ibv_async_event>() == 16);
    assert!(size_of::<ibv_gid>() == 16);
    assert!(size_of::<ibv_gid_entry>() == 32);
    assert!(offset_of!(ibv_gid_entry, gid) == 0);
    assert!(offset_of!(ibv_gid_entry, gid_index) == 16);
    assert!(offset_of!(ibv_gid_entry, port_num) == 20);
    assert!(offset_of!(ibv_gid_entry, gid_type) == 24);
    assert!(size_of::<ibv_send_wr>() == 128);
    assert!(offset_of!(ibv_send_wr, wr_id) == 0);
    assert!(offset_of!(ibv_send_wr, next) == 8);
    assert!(offset_of!(ibv_send_wr, sg_list) == 16);
    assert!(offset_of!(ibv_send_wr, num_sge) == 24);
    assert!(offset_of!(ibv_send_wr, opcode) == 28);
    assert!(offset_of!(ibv_send_wr, send_flags) == 32);
    assert!(offset_of!(ibv_send_wr, wr) == 40);
    assert!(offset_of!(rdma_t, remote_addr) == 0);
    assert!(offset_of!(rdma_t, rkey) == 8);
    assert!(offset_of!(atomic_t, remote_addr) == 0);
    assert!(offset_of!(atomic_t, compare_add) == 8);
    assert!(offset_of!(atomic_t, swap) == 16);
    assert!(offset_of!(atomic_t, rkey) == 24);
    assert!(offset_of!(ibv_send_wr, imm_data_invalidated_rkey_union) == 36);
    assert!(offset_of!(ibv_send_wr, bind_mw_tso_union) == 80);
    assert!(offset_of!(bind_mw_t, mw) == 0);
    assert!(offset_of!(bind_mw_t, rkey) == 8);
    assert!(offset_of!(bind_mw_t, bind_info) == 16);
    assert!(offset_of!(ibv_mw_bind_info, mr) == 0);
    assert!(offset_of!(ibv_mw_bind_info, addr) == 8);
    assert!(offset_of!(ibv_mw_bind_info, length) == 16);
    assert!(offset_of!(ibv_mw_bind_info, mw_access_flags) == 24);
    assert!(size_of::<ibv_wc>() == 48);
    assert!(offset_of!(ibv_wc, wr_id) == 0);
    assert!(offset_of!(ibv_wc, status) == 8);

    // Generated: what is read through a pointer that libibverbs gave.
    assert!(size_of::<ibv_sge>() == 16);
    assert!(offset_of!(ibv_mr, lkey) == 36);
    assert!(offset_of!(ibv_mr, rkey) == 40);
    assert!(offset_of!(ibv_mw, rkey) == 16);
    assert!(offset_of!(ibv_qp, qp_num) == 52);
    assert!(offset_of!(ibv_context, async_fd) == 268);
};

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

// SAFETY: integers and an array of them; enumerations are integers in this binding.
unsafe impl Zeroed for ibv_device_attr {}
// SAFETY: integers; enumerations are integers in this binding.
unsafe impl Zeroed for ibv_port_attr {}
// SAFETY: integers and a union of them.
unsafe impl Zeroed for ibv_gid_entry {}
// SAFETY: integers, structures and unions of them.
unsafe impl Zeroed for ibv_qp_attr {}
// SAFETY: integers, unions of them, and pointers that may be null.
unsafe impl Zeroed for ibv_send_wr {}

/// `ibv_query_qp_data_in_order` for writes of a whole message, which the binding leaves out;
/// `None` where the library is missing or older than the question.
///
/// # Safety
/// `pair` exists.
pub(crate) unsafe fn query_data_in_order(pair: *mut ibv_qp) -> Option<bool> {
    type Query = unsafe extern "C" fn(*mut ibv_qp, u32, u32) -> i32;
    // SAFETY: the library's initialisation is that of the one which is already loaded, for there
    // is a pair.
    let library = unsafe { libloading::Library::new("libibverbs.so.1") }.ok()?;
    // SAFETY: the symbol's type is that of verbs.h since release 41 of rdma-core.
    let query = unsafe { library.get::<Query>(b"ibv_query_qp_data_in_order\0") }.ok()?;
    // SAFETY: the pair exists by the caller's word; without flags the answer is 0 or 1.
    Some(unsafe { query(pair, ibv_wr_opcode::IBV_WR_RDMA_WRITE, 0) } == 1)
}
