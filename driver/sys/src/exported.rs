//! The functions that libibverbs exports, as far as they are used.
//!
//! [`ibv_get_device_list`] needs a [`load`] before it, and panics without; all others
//! need something that it has led to.

// From infiniband/verbs.h of rdma-core, under the OpenIB.org BSD licence of its two:
//
// Copyright (c) 2004, 2005 Topspin Communications.  All rights reserved.
// Copyright (c) 2004, 2011-2012 Intel Corporation.  All rights reserved.
// Copyright (c) 2005, 2006, 2007 Cisco Systems, Inc.  All rights reserved.
// Copyright (c) 2005 PathScale, Inc.  All rights reserved.
// Copyright (c) 2020 Intel Corporation.  All rights reserved.
//
// The conditions and the disclaimer are in ../LICENSE-OPENIB.

use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr::NonNull;
use std::sync::OnceLock;

use crate::library::{FILE, Library, Missing};
use crate::types::*;

static LOADED: OnceLock<Result<Functions, Missing>> = OnceLock::new();

/// Opens the library, unless it is open.
///
/// # Errors
/// What is missing, and the same at every later call.
pub fn load() -> Result<(), Missing> {
    LOADED.get_or_init(open).as_ref().map(|_| ()).map_err(|missing| *missing)
}

fn open() -> Result<Functions, Missing> {
    let library = Library::open(FILE)?;
    // SAFETY: the library of this name is libibverbs.
    unsafe { Functions::of(library) }
}

/// What [`load`] has found.
///
/// # Panics
/// Without a [`load`] that has succeeded, so never where an object of the library is at hand.
fn loaded() -> &'static Functions {
    let loaded = LOADED.get().and_then(|loaded| loaded.as_ref().ok());
    loaded.expect("the library is loaded before anything is asked of it")
}

/// A function as C declares it, for the test against the header: its name, its version, the types
/// of its arguments, and what it returns.
#[cfg(test)]
pub(crate) type Prototype = (&'static str, &'static str, &'static [&'static str], &'static str);

/// Declares what the library exports, by the versions that the header's functions have.
macro_rules! exported {
    ($($version:literal {
        $($see:vis fn $name:ident($($arg:ident: $kind:ty),*) -> $answer:ty;)*
    })*) => {
        /// All of them, as they were found.
        pub(crate) struct Functions {
            $($($name: unsafe extern "C" fn($($kind),*) -> $answer,)*)*
            in_order: Option<InOrder>,
        }

        impl Functions {
            /// Finds them.
            ///
            /// # Safety
            /// The library is libibverbs, or has nothing of the same name and version.
            pub(crate) unsafe fn of(library: Library) -> Result<Self, Missing> {
                $($(
                    let missing =
                        Missing::Function { name: stringify!($name), version: $version };
                    let found = library.find(stringify!($name), $version).ok_or(missing)?;
                    type $name = unsafe extern "C" fn($($kind),*) -> $answer;
                    // SAFETY: a version is never given to another type; this is the header's.
                    let $name = unsafe { transmute::<NonNull<c_void>, $name>(found) };
                )*)*
                let in_order = library.find("ibv_query_qp_data_in_order", "IBVERBS_1.14");
                let in_order = in_order.map(|found| {
                    // SAFETY: as above.
                    unsafe { transmute::<NonNull<c_void>, InOrder>(found) }
                });
                Ok(Self { $($($name,)*)* in_order })
            }
        }

        $($(
            /// # Safety
            /// What the manual page of this verb demands.
            $see unsafe fn $name($($arg: $kind),*) -> $answer {
                // SAFETY: the caller keeps to the manual page.
                unsafe { (loaded().$name)($($arg),*) }
            }
        )*)*

        #[cfg(test)]
        pub(crate) const PROTOTYPES: &[Prototype] = &[$($(
            (stringify!($name), $version, &[$(stringify!($kind)),*], stringify!($answer)),
        )*)*];
    };
}

type InOrder = unsafe extern "C" fn(*mut ibv_qp, ibv_wr_opcode::Type, u32) -> c_int;

#[cfg(test)]
pub(crate) const IN_ORDER: Prototype = (
    "ibv_query_qp_data_in_order",
    "IBVERBS_1.14",
    &["*mut ibv_qp", "ibv_wr_opcode::Type", "u32"],
    "c_int",
);

exported! {
    "IBVERBS_1.1" {
        pub fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
        pub fn ibv_free_device_list(list: *mut *mut ibv_device) -> ();
        pub fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
        pub fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
        pub fn ibv_close_device(context: *mut ibv_context) -> c_int;
        pub fn ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
        pub fn ibv_ack_async_event(event: *mut ibv_async_event) -> ();
        pub fn ibv_query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int;
        pub(crate) fn ibv_query_port(
            context: *mut ibv_context,
            port_num: u8,
            attr: *mut _compat_ibv_port_attr
        ) -> c_int;
        pub fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
        pub fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int;
        pub fn ibv_reg_mr(
            pd: *mut ibv_pd,
            addr: *mut c_void,
            length: usize,
            access: c_int
        ) -> *mut ibv_mr;
        pub fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int;
        pub fn ibv_create_cq(
            context: *mut ibv_context,
            cqe: c_int,
            cq_context: *mut c_void,
            channel: *mut ibv_comp_channel,
            comp_vector: c_int
        ) -> *mut ibv_cq;
        pub fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int;
        pub fn ibv_create_qp(pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> *mut ibv_qp;
        pub fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int;
        pub fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int;
    }
    "IBVERBS_1.11" {
        pub(crate) fn _ibv_query_gid_table(
            context: *mut ibv_context,
            entries: *mut ibv_gid_entry,
            max_entries: usize,
            flags: u32,
            entry_size: usize
        ) -> isize;
    }
}

/// Whether the data of an operation arrives in order; `None` where the library is older than the
/// question, of release 36.
///
/// # Safety
/// What the manual page of this verb demands.
pub unsafe fn ibv_query_qp_data_in_order(
    qp: *mut ibv_qp,
    op: ibv_wr_opcode::Type,
    flags: u32,
) -> Option<c_int> {
    // SAFETY: the caller keeps to the manual page.
    loaded().in_order.map(|query| unsafe { query(qp, op, flags) })
}
