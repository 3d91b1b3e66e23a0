//! Structures and constants of verbs.h, as far as they are used.
//!
//! Three departures from the header, none of which moves a byte:
//!
//! - An enumeration is a module of integers: a value that a later library sends is no undefined
//!   behaviour.
//! - A structure that only the library makes ends before its first field that is not used.
//! - A union of which one member is used is that member, and the bytes behind it.

// From infiniband/verbs.h of rdma-core, under the OpenIB.org BSD licence of its two:
//
// Copyright (c) 2004, 2005 Topspin Communications.  All rights reserved.
// Copyright (c) 2004, 2011-2012 Intel Corporation.  All rights reserved.
// Copyright (c) 2005, 2006, 2007 Cisco Systems, Inc.  All rights reserved.
// Copyright (c) 2005 PathScale, Inc.  All rights reserved.
// Copyright (c) 2020 Intel Corporation.  All rights reserved.
//
// The conditions and the disclaimer are in ../LICENSE-OPENIB.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::offset_of;

/// Declares enumerations, and lists their members for the test against the header.
macro_rules! enumerations {
    ($($(#[$doc:meta])* enum $name:ident { $($member:ident = $value:expr,)* })*) => {
        $(
            $(#[$doc])*
            pub mod $name {
                /// How the header's enumeration lies in memory.
                pub type Type = std::ffi::c_uint;
                $(pub const $member: Type = $value;)*
            }
        )*

        #[cfg(test)]
        pub(crate) const MEMBERS: &[(&str, c_uint)] =
            &[$($((stringify!($member), $name::$member),)*)*];
    };
}

/// A structure's layout, for the test against the header.
#[cfg(test)]
pub(crate) struct Shape {
    /// In C.
    pub(crate) name: &'static str,
    /// In bytes; none if the header's structure goes on.
    pub(crate) len: Option<usize>,
    pub(crate) fields: &'static [Field],
}

/// Where a field lies.
#[cfg(test)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) at: usize,
    pub(crate) len: usize,
    /// In Rust.
    pub(crate) kind: &'static str,
}

/// Declares structures and asserts their layout. In brackets stands the length, with dots if the
/// header's structure goes on; behind each field stands where it begins.
macro_rules! structures {
    ($(
        $(#[$attr:meta])*
        $keyword:ident $name:ident $(as $in_c:literal)? [$len:expr $(, $open:tt)?] {
            $($(#[$doc:meta])* $field:ident: $kind:ty = $at:expr,)*
        }
    )*) => {
        $(
            $(#[$attr])*
            #[derive(Clone, Copy)]
            #[repr(C)]
            pub $keyword $name {
                $($(#[$doc])* pub $field: $kind,)*
            }

            const _: () = {
                assert!(size_of::<$name>() == $len);
                $(assert!(offset_of!($name, $field) == $at);)*
            };
        )*

        #[cfg(test)]
        pub(crate) const SHAPES: &[Shape] = &[$(Shape {
            name: [$($in_c,)? concat!(stringify!($keyword), " ", stringify!($name))][0],
            len: [$({ let _ = stringify!($open); None },)? Some($len)][0],
            fields: &[$(Field {
                name: stringify!($field),
                at: $at,
                len: size_of::<$kind>(),
                kind: stringify!($kind),
            },)*],
        },)*];
    };
}

const _: () = assert!(size_of::<usize>() == 8, "the layout is that of 64-bit machines");

enumerations! {
    enum ibv_gid_type {
        IBV_GID_TYPE_IB = 0,
        IBV_GID_TYPE_ROCE_V1 = 1,
        IBV_GID_TYPE_ROCE_V2 = 2,
    }

    enum ibv_atomic_cap {
        IBV_ATOMIC_NONE = 0,
    }

    enum ibv_port_state {
        IBV_PORT_ACTIVE = 4,
    }

    /// Without a name in the header.
    enum ibv_link_layer {
        IBV_LINK_LAYER_ETHERNET = 2,
    }

    enum ibv_event_type {
        IBV_EVENT_CQ_ERR = 0,
        IBV_EVENT_QP_FATAL = 1,
        IBV_EVENT_QP_REQ_ERR = 2,
        IBV_EVENT_QP_ACCESS_ERR = 3,
        IBV_EVENT_DEVICE_FATAL = 8,
        IBV_EVENT_PORT_ACTIVE = 9,
        IBV_EVENT_PORT_ERR = 10,
    }

    enum ibv_wc_status {
        IBV_WC_SUCCESS = 0,
        IBV_WC_LOC_LEN_ERR = 1,
        IBV_WC_LOC_QP_OP_ERR = 2,
        IBV_WC_LOC_EEC_OP_ERR = 3,
        IBV_WC_LOC_PROT_ERR = 4,
        IBV_WC_WR_FLUSH_ERR = 5,
        IBV_WC_MW_BIND_ERR = 6,
        IBV_WC_BAD_RESP_ERR = 7,
        IBV_WC_LOC_ACCESS_ERR = 8,
        IBV_WC_REM_INV_REQ_ERR = 9,
        IBV_WC_REM_ACCESS_ERR = 10,
        IBV_WC_REM_OP_ERR = 11,
        IBV_WC_RETRY_EXC_ERR = 12,
        IBV_WC_RNR_RETRY_EXC_ERR = 13,
        IBV_WC_LOC_RDD_VIOL_ERR = 14,
        IBV_WC_REM_INV_RD_REQ_ERR = 15,
        IBV_WC_REM_ABORT_ERR = 16,
        IBV_WC_INV_EECN_ERR = 17,
        IBV_WC_INV_EEC_STATE_ERR = 18,
        IBV_WC_FATAL_ERR = 19,
        IBV_WC_RESP_TIMEOUT_ERR = 20,
        IBV_WC_GENERAL_ERR = 21,
        IBV_WC_TM_ERR = 22,
        IBV_WC_TM_RNDV_INCOMPLETE = 23,
    }

    /// Without those that a device may ignore, which the function for them takes:
    /// `ibv_reg_mr_iova2`.
    enum ibv_access_flags {
        IBV_ACCESS_LOCAL_WRITE = 1,
        IBV_ACCESS_REMOTE_WRITE = 1 << 1,
        IBV_ACCESS_REMOTE_READ = 1 << 2,
        IBV_ACCESS_REMOTE_ATOMIC = 1 << 3,
        IBV_ACCESS_MW_BIND = 1 << 4,
    }

    enum ibv_mw_type {
        IBV_MW_TYPE_2 = 2,
    }

    enum ibv_qp_type {
        IBV_QPT_RC = 2,
    }

    enum ibv_qp_attr_mask {
        IBV_QP_STATE = 1,
        IBV_QP_ACCESS_FLAGS = 1 << 3,
        IBV_QP_PKEY_INDEX = 1 << 4,
        IBV_QP_PORT = 1 << 5,
        IBV_QP_AV = 1 << 7,
        IBV_QP_PATH_MTU = 1 << 8,
        IBV_QP_TIMEOUT = 1 << 9,
        IBV_QP_RETRY_CNT = 1 << 10,
        IBV_QP_RNR_RETRY = 1 << 11,
        IBV_QP_RQ_PSN = 1 << 12,
        IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
        IBV_QP_MIN_RNR_TIMER = 1 << 15,
        IBV_QP_SQ_PSN = 1 << 16,
        IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
        IBV_QP_DEST_QPN = 1 << 20,
    }

    enum ibv_qp_state {
        IBV_QPS_INIT = 1,
        IBV_QPS_RTR = 2,
        IBV_QPS_RTS = 3,
        IBV_QPS_ERR = 6,
    }

    enum ibv_wr_opcode {
        IBV_WR_RDMA_WRITE = 0,
        IBV_WR_RDMA_READ = 4,
        IBV_WR_ATOMIC_CMP_AND_SWP = 5,
        IBV_WR_ATOMIC_FETCH_AND_ADD = 6,
        IBV_WR_LOCAL_INV = 7,
        IBV_WR_BIND_MW = 8,
    }

    enum ibv_send_flags {
        IBV_SEND_SIGNALED = 1 << 1,
        IBV_SEND_INLINE = 1 << 3,
    }
}

/// A structure of which only the address is used.
#[repr(C)]
pub struct ibv_device {
    _opaque: [u8; 0],
}

/// As above.
#[repr(C)]
pub struct ibv_srq {
    _opaque: [u8; 0],
}

/// As above.
#[repr(C)]
pub struct ibv_comp_channel {
    _opaque: [u8; 0],
}

/// What the first release answered for a port: the first 48 bytes of today's answer.
#[repr(C)]
pub struct _compat_ibv_port_attr {
    _opaque: [u8; 0],
}

structures! {
    union ibv_gid [16] {
        raw: [u8; 16] = 0,
        /// Two numbers in network order; they make the union as aligned as it is.
        global: [u64; 2] = 0,
    }

    struct ibv_gid_entry [32] {
        gid: ibv_gid = 0,
        gid_index: u32 = 16,
        port_num: u32 = 20,
        gid_type: u32 = 24,
        ndev_ifindex: u32 = 28,
    }

    struct ibv_device_attr [232] {
        fw_ver: [c_char; 64] = 0,
        node_guid: u64 = 64,
        sys_image_guid: u64 = 72,
        max_mr_size: u64 = 80,
        page_size_cap: u64 = 88,
        vendor_id: u32 = 96,
        vendor_part_id: u32 = 100,
        hw_ver: u32 = 104,
        max_qp: c_int = 108,
        max_qp_wr: c_int = 112,
        device_cap_flags: c_uint = 116,
        max_sge: c_int = 120,
        max_sge_rd: c_int = 124,
        max_cq: c_int = 128,
        max_cqe: c_int = 132,
        max_mr: c_int = 136,
        max_pd: c_int = 140,
        max_qp_rd_atom: c_int = 144,
        max_ee_rd_atom: c_int = 148,
        max_res_rd_atom: c_int = 152,
        max_qp_init_rd_atom: c_int = 156,
        max_ee_init_rd_atom: c_int = 160,
        atomic_cap: ibv_atomic_cap::Type = 164,
        max_ee: c_int = 168,
        max_rdd: c_int = 172,
        max_mw: c_int = 176,
        max_raw_ipv6_qp: c_int = 180,
        max_raw_ethy_qp: c_int = 184,
        max_mcast_grp: c_int = 188,
        max_mcast_qp_attach: c_int = 192,
        max_total_mcast_qp_attach: c_int = 196,
        max_ah: c_int = 200,
        max_fmr: c_int = 204,
        max_map_per_fmr: c_int = 208,
        max_srq: c_int = 212,
        max_srq_wr: c_int = 216,
        max_srq_sge: c_int = 220,
        max_pkeys: u16 = 224,
        local_ca_ack_delay: u8 = 226,
        phys_port_cnt: u8 = 227,
    }

    struct ibv_port_attr [52] {
        state: ibv_port_state::Type = 0,
        max_mtu: c_uint = 4,
        active_mtu: c_uint = 8,
        gid_tbl_len: c_int = 12,
        port_cap_flags: u32 = 16,
        max_msg_sz: u32 = 20,
        bad_pkey_cntr: u32 = 24,
        qkey_viol_cntr: u32 = 28,
        pkey_tbl_len: u16 = 32,
        lid: u16 = 34,
        sm_lid: u16 = 36,
        lmc: u8 = 38,
        max_vl_num: u8 = 39,
        sm_sl: u8 = 40,
        subnet_timeout: u8 = 41,
        init_type_reply: u8 = 42,
        active_width: u8 = 43,
        active_speed: u8 = 44,
        phys_state: u8 = 45,
        link_layer: u8 = 46,
        flags: u8 = 47,
        port_cap_flags2: u16 = 48,
    }

    struct ibv_async_event [16] {
        /// The address of what the event is about, or the number of a port in its first bytes.
        element: *mut c_void = 0,
        event_type: ibv_event_type::Type = 8,
    }

    struct ibv_wc [48] {
        wr_id: u64 = 0,
        status: ibv_wc_status::Type = 8,
        opcode: c_uint = 12,
        vendor_err: u32 = 16,
        byte_len: u32 = 20,
        imm_data: u32 = 24,
        qp_num: u32 = 28,
        src_qp: u32 = 32,
        wc_flags: c_uint = 36,
        pkey_index: u16 = 40,
        slid: u16 = 42,
        sl: u8 = 44,
        dlid_path_bits: u8 = 45,
    }

    struct ibv_pd [8, ..] {
        context: *mut ibv_context = 0,
    }

    struct ibv_mr [48] {
        context: *mut ibv_context = 0,
        pd: *mut ibv_pd = 8,
        addr: *mut c_void = 16,
        length: usize = 24,
        handle: u32 = 32,
        lkey: u32 = 36,
        rkey: u32 = 40,
    }

    struct ibv_mw [32] {
        context: *mut ibv_context = 0,
        pd: *mut ibv_pd = 8,
        rkey: u32 = 16,
        handle: u32 = 20,
        r#type: ibv_mw_type::Type = 24,
    }

    struct ibv_mw_bind_info [32] {
        mr: *mut ibv_mr = 0,
        addr: u64 = 8,
        length: u64 = 16,
        mw_access_flags: c_uint = 24,
    }

    struct ibv_cq [8, ..] {
        context: *mut ibv_context = 0,
    }

    struct ibv_global_route [24] {
        dgid: ibv_gid = 0,
        flow_label: u32 = 16,
        sgid_index: u8 = 20,
        hop_limit: u8 = 21,
        traffic_class: u8 = 22,
    }

    struct ibv_ah_attr [32] {
        grh: ibv_global_route = 0,
        dlid: u16 = 24,
        sl: u8 = 26,
        src_path_bits: u8 = 27,
        static_rate: u8 = 28,
        is_global: u8 = 29,
        port_num: u8 = 30,
    }

    struct ibv_qp_cap [20] {
        max_send_wr: u32 = 0,
        max_recv_wr: u32 = 4,
        max_send_sge: u32 = 8,
        max_recv_sge: u32 = 12,
        max_inline_data: u32 = 16,
    }

    struct ibv_qp_init_attr [64] {
        qp_context: *mut c_void = 0,
        send_cq: *mut ibv_cq = 8,
        recv_cq: *mut ibv_cq = 16,
        srq: *mut ibv_srq = 24,
        cap: ibv_qp_cap = 32,
        qp_type: ibv_qp_type::Type = 52,
        sq_sig_all: c_int = 56,
    }

    struct ibv_qp_attr [144] {
        qp_state: ibv_qp_state::Type = 0,
        cur_qp_state: ibv_qp_state::Type = 4,
        path_mtu: c_uint = 8,
        path_mig_state: c_uint = 12,
        qkey: u32 = 16,
        rq_psn: u32 = 20,
        sq_psn: u32 = 24,
        dest_qp_num: u32 = 28,
        qp_access_flags: c_uint = 32,
        cap: ibv_qp_cap = 36,
        ah_attr: ibv_ah_attr = 56,
        alt_ah_attr: ibv_ah_attr = 88,
        pkey_index: u16 = 120,
        alt_pkey_index: u16 = 122,
        en_sqd_async_notify: u8 = 124,
        sq_draining: u8 = 125,
        max_rd_atomic: u8 = 126,
        max_dest_rd_atomic: u8 = 127,
        min_rnr_timer: u8 = 128,
        port_num: u8 = 129,
        timeout: u8 = 130,
        retry_cnt: u8 = 131,
        rnr_retry: u8 = 132,
        alt_port_num: u8 = 133,
        alt_timeout: u8 = 134,
        rate_limit: u32 = 136,
    }

    struct ibv_qp [56, ..] {
        context: *mut ibv_context = 0,
        qp_context: *mut c_void = 8,
        pd: *mut ibv_pd = 16,
        send_cq: *mut ibv_cq = 24,
        recv_cq: *mut ibv_cq = 32,
        srq: *mut ibv_srq = 40,
        handle: u32 = 48,
        qp_num: u32 = 52,
    }

    struct ibv_sge [16] {
        addr: u64 = 0,
        length: u32 = 8,
        lkey: u32 = 12,
    }

    struct ibv_send_wr [128] {
        wr_id: u64 = 0,
        next: *mut ibv_send_wr = 8,
        sg_list: *mut ibv_sge = 16,
        num_sge: c_int = 24,
        opcode: ibv_wr_opcode::Type = 28,
        send_flags: c_uint = 32,
        /// In the union with it: immediate data, which is not used.
        invalidate_rkey: u32 = 36,
        wr: ibv_send_wr_target = 40,
        /// The receive queue of an extended connection, which is not used.
        qp_type: u32 = 72,
        /// In the union with it, and shorter: the header of segmented sends, which is not used.
        bind_mw: ibv_send_wr_bind_mw = 80,
    }

    /// In the union with them, and shorter: the target of a datagram, which is not used.
    union ibv_send_wr_target as "__typeof__(((struct ibv_send_wr *)0)->wr)" [32] {
        rdma: ibv_send_wr_rdma = 0,
        atomic: ibv_send_wr_atomic = 0,
    }

    struct ibv_send_wr_rdma as "__typeof__(((struct ibv_send_wr *)0)->wr.rdma)" [16] {
        remote_addr: u64 = 0,
        rkey: u32 = 8,
    }

    struct ibv_send_wr_atomic as "__typeof__(((struct ibv_send_wr *)0)->wr.atomic)" [32] {
        remote_addr: u64 = 0,
        compare_add: u64 = 8,
        swap: u64 = 16,
        rkey: u32 = 24,
    }

    struct ibv_send_wr_bind_mw as "__typeof__(((struct ibv_send_wr *)0)->bind_mw)" [48] {
        mw: *mut ibv_mw = 0,
        rkey: u32 = 8,
        bind_info: ibv_mw_bind_info = 16,
    }

    /// Without the fields that are not used: their places are `_1`, `_2` and so on.
    struct ibv_context_ops [256] {
        _1: [*const c_void; 7] = 0,
        alloc_mw: Option<unsafe extern "C" fn(*mut ibv_pd, ibv_mw_type::Type) -> *mut ibv_mw> = 56,
        _2: *const c_void = 64,
        dealloc_mw: unsafe extern "C" fn(*mut ibv_mw) -> c_int = 72,
        _3: *const c_void = 80,
        poll_cq: unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int = 88,
        _4: [*const c_void; 13] = 96,
        post_send:
            unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int
            = 200,
        _5: [*const c_void; 6] = 208,
    }

    struct ibv_context [288 + MUTEX_LEN] {
        device: *mut ibv_device = 0,
        ops: ibv_context_ops = 8,
        cmd_fd: c_int = 264,
        async_fd: c_int = 268,
        num_comp_vectors: c_int = 272,
        mutex: libc::pthread_mutex_t = 280,
        /// All bits set in a context that is the end of a [`verbs_context`].
        abi_compat: *mut c_void = 280 + MUTEX_LEN,
    }
}

/// 40 bytes on most machines, 48 on ARM.
const MUTEX_LEN: usize = size_of::<libc::pthread_mutex_t>();

/// What surrounds a context. It grows at its front, and so is reached from its end.
#[repr(C)]
pub struct verbs_context {
    pub query_port:
        Option<unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr, usize) -> c_int>,
    _1: [*const c_void; 38],
    /// How many bytes it has.
    pub sz: usize,
    pub context: ibv_context,
}

const _: () = {
    assert!(offset_of!(verbs_context, context) - offset_of!(verbs_context, query_port) == 320);
    assert!(offset_of!(verbs_context, context) - offset_of!(verbs_context, sz) == 8);
};
