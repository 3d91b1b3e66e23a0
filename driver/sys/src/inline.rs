//! The functions that the header has inline, as far as they are used: they go to the provider by
//! the tables of a context, and cost what a call by pointer does.

// From infiniband/verbs.h of rdma-core, under the OpenIB.org BSD licence of its two:
//
// Copyright (c) 2004, 2005 Topspin Communications.  All rights reserved.
// Copyright (c) 2004, 2011-2012 Intel Corporation.  All rights reserved.
// Copyright (c) 2005, 2006, 2007 Cisco Systems, Inc.  All rights reserved.
// Copyright (c) 2005 PathScale, Inc.  All rights reserved.
// Copyright (c) 2020 Intel Corporation.  All rights reserved.
//
// The conditions and the disclaimer are in ../LICENSE-OPENIB.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::{null_mut, without_provenance_mut};

use crate::exported::{self, _ibv_query_gid_table};
use crate::types::*;

/// What a context says that is the end of a [`verbs_context`]: `__VERBS_ABI_IS_EXTENDED`.
const IS_EXTENDED: *mut c_void = without_provenance_mut(usize::MAX);

/// What surrounds the context, if its provider knows as much as this crate: `verbs_get_ctx_op`, of
/// the function at the front.
///
/// # Safety
/// The context is open.
unsafe fn surroundings(context: *mut ibv_context) -> Option<*mut verbs_context> {
    // SAFETY: a field of an open context.
    if unsafe { (*context).abi_compat } != IS_EXTENDED {
        return None;
    }
    // SAFETY: the context says that it lies in a larger structure, at its end.
    let end = unsafe { context.byte_sub(offset_of!(verbs_context, context)) };
    let whole = end.cast::<verbs_context>();
    // SAFETY: the length stands right before the context, in every release.
    let len = unsafe { (*whole).sz };
    (len >= size_of::<verbs_context>()).then_some(whole)
}

/// # Safety
/// What the manual page of this verb demands.
pub unsafe fn ibv_query_port(
    context: *mut ibv_context,
    port_num: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: the context is open, by the caller's word.
    let whole = unsafe { surroundings(context) };
    // SAFETY: what was found is as long as this crate knows it, and so has the field.
    let query = whole.and_then(|whole| unsafe { (*whole).query_port });
    if let Some(query) = query {
        // SAFETY: the caller keeps to the manual page, and the answer is as long as is said.
        return unsafe { query(context, port_num, attr, size_of::<ibv_port_attr>()) };
    }
    // SAFETY: a place for the answer, by the caller's word; integers may be zero.
    unsafe { attr.write_bytes(0, 1) };
    // SAFETY: the caller keeps to the manual page; what is filled in is the front of the answer.
    unsafe { exported::ibv_query_port(context, port_num, attr.cast()) }
}

/// # Safety
/// What the manual page of this verb demands.
pub unsafe fn ibv_query_gid_table(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max_entries: usize,
    flags: u32,
) -> isize {
    let len = size_of::<ibv_gid_entry>();
    // SAFETY: the caller keeps to the manual page, and an entry is as long as is said.
    unsafe { _ibv_query_gid_table(context, entries, max_entries, flags, len) }
}

/// # Safety
/// What the manual page of this verb demands.
pub unsafe fn ibv_alloc_mw(pd: *mut ibv_pd, kind: ibv_mw_type::Type) -> *mut ibv_mw {
    // SAFETY: the domain exists, by the caller's word.
    let context = unsafe { (*pd).context };
    // SAFETY: a context outlives what is made of it.
    let Some(alloc) = (unsafe { (*context).ops.alloc_mw }) else {
        // SAFETY: it only says where the thread's error number is.
        let errno = unsafe { libc::__errno_location() };
        // SAFETY: valid for as long as the thread runs, and written by no other.
        unsafe { *errno = libc::EOPNOTSUPP };
        return null_mut();
    };
    // SAFETY: the caller keeps to the manual page.
    unsafe { alloc(pd, kind) }
}

/// # Safety
/// What the manual page of this verb demands.
pub unsafe fn ibv_dealloc_mw(mw: *mut ibv_mw) -> c_int {
    // SAFETY: the window exists, by the caller's word.
    let context = unsafe { (*mw).context };
    // SAFETY: a context outlives what is made of it; a provider that allocates windows frees them.
    let dealloc = unsafe { (*context).ops.dealloc_mw };
    // SAFETY: the caller keeps to the manual page.
    unsafe { dealloc(mw) }
}

/// # Safety
/// What the manual page of this verb demands.
#[inline]
pub unsafe fn ibv_poll_cq(cq: *mut ibv_cq, num_entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: the queue exists, by the caller's word.
    let context = unsafe { (*cq).context };
    // SAFETY: a context outlives what is made of it; its library fills in every place that a
    // provider leaves empty, and the header calls this one without a look.
    let poll = unsafe { (*context).ops.poll_cq };
    // SAFETY: the caller keeps to the manual page.
    unsafe { poll(cq, num_entries, wc) }
}

/// # Safety
/// What the manual page of this verb demands.
#[inline]
pub unsafe fn ibv_post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the pair exists, by the caller's word.
    let context = unsafe { (*qp).context };
    // SAFETY: as for `ibv_poll_cq`.
    let post = unsafe { (*context).ops.post_send };
    // SAFETY: the caller keeps to the manual page.
    unsafe { post(qp, wr, bad_wr) }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use super::*;

    type Context = Box<MaybeUninit<verbs_context>>;

    unsafe extern "C" fn query(
        _: *mut ibv_context,
        port_num: u8,
        attr: *mut ibv_port_attr,
        len: usize,
    ) -> c_int {
        assert_eq!(len, size_of::<ibv_port_attr>());
        // SAFETY: a field of the caller's answer.
        unsafe { (*attr).lid = u16::from(port_num) };
        0
    }

    /// A context as a provider makes it, of `len` bytes, and what it lies in.
    fn context(abi_compat: *mut c_void, len: usize) -> (Context, *mut ibv_context) {
        let mut whole = Box::new(MaybeUninit::<verbs_context>::zeroed());
        let at = whole.as_mut_ptr();
        // SAFETY: a place in the box.
        unsafe { (*at).query_port = Some(query) };
        // SAFETY: as above.
        unsafe { (*at).sz = len };
        // SAFETY: as above.
        let inner = unsafe { &raw mut (*at).context };
        // SAFETY: as above.
        unsafe { (*inner).abi_compat = abi_compat };
        (whole, inner)
    }

    #[test]
    fn a_port_is_asked_about_by_the_table_around_the_context() {
        let (_whole, context) = context(IS_EXTENDED, size_of::<verbs_context>());
        let mut answer = MaybeUninit::<ibv_port_attr>::zeroed();
        // SAFETY: the context has what is read, and the answer is a place.
        assert_eq!(unsafe { ibv_query_port(context, 7, answer.as_mut_ptr()) }, 0);
        // SAFETY: integers, zeroed before.
        assert_eq!(unsafe { answer.assume_init() }.lid, 7);
    }

    #[test]
    fn a_table_that_is_not_there_or_too_short_is_not_read() {
        let len = size_of::<verbs_context>();
        for (mark, len) in [(null_mut(), len), (IS_EXTENDED, len - 8), (IS_EXTENDED, 0)] {
            let (_whole, context) = context(mark, len);
            // SAFETY: the context has what is read.
            assert!(unsafe { surroundings(context) }.is_none(), "{mark:?} {len}");
        }
        let (whole, context) = context(IS_EXTENDED, len + 64);
        // SAFETY: the context has what is read.
        assert_eq!(unsafe { surroundings(context) }, Some(whole.as_ptr().cast_mut()));
    }

    #[test]
    fn a_provider_without_windows_is_reported() {
        let (_whole, context) = context(IS_EXTENDED, size_of::<verbs_context>());
        let mut domain = ibv_pd { context };
        // SAFETY: the domain and its context have what is read.
        let window = unsafe { ibv_alloc_mw(&raw mut domain, ibv_mw_type::IBV_MW_TYPE_2) };
        let errno = std::io::Error::last_os_error().raw_os_error();
        assert!(window.is_null());
        assert_eq!(errno, Some(libc::EOPNOTSUPP));
    }

    #[test]
    fn the_fast_path_goes_to_the_provider() {
        unsafe extern "C" fn poll(_: *mut ibv_cq, num_entries: c_int, _: *mut ibv_wc) -> c_int {
            num_entries - 1
        }
        unsafe extern "C" fn post(
            _: *mut ibv_qp,
            wr: *mut ibv_send_wr,
            bad_wr: *mut *mut ibv_send_wr,
        ) -> c_int {
            // SAFETY: the caller's place.
            unsafe { *bad_wr = wr };
            libc::ENOMEM
        }
        let (_whole, context) = context(IS_EXTENDED, 0);
        // SAFETY: a place in the context.
        unsafe { (*context).ops.poll_cq = poll };
        // SAFETY: as above.
        unsafe { (*context).ops.post_send = post };
        let mut queue = ibv_cq { context };
        // SAFETY: the queue has what is read; the provider writes nothing.
        assert_eq!(unsafe { ibv_poll_cq(&raw mut queue, 5, null_mut()) }, 4);

        let mut pair = MaybeUninit::<ibv_qp>::zeroed();
        // SAFETY: a place in the pair.
        unsafe { (*pair.as_mut_ptr()).context = context };
        let mut request = MaybeUninit::<ibv_send_wr>::zeroed();
        let mut refused = null_mut();
        // SAFETY: the pair has what is read; the provider reads nothing of the request.
        let returned =
            unsafe { ibv_post_send(pair.as_mut_ptr(), request.as_mut_ptr(), &raw mut refused) };
        assert_eq!((returned, refused), (libc::ENOMEM, request.as_mut_ptr()));
    }
}
