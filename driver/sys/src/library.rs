//! libibverbs.so.1, opened for as long as the process lives.
//!
//! Each function is looked up in the version that verbs.h of today would link against, not in the
//! newest that the library has: a later version may take its arguments otherwise.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

/// The library's name to the dynamic linker: its number changes when old programs would break.
pub(crate) const FILE: &CStr = c"libibverbs.so.1";

/// What is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No library of this name, or one that cannot be opened.
    #[error("there is no {FILE:?}")]
    Library,
    /// The library is there, without a function that is needed.
    #[error("{FILE:?} has no {name} of version {version}")]
    Function {
        /// Its symbol.
        name: &'static str,
        /// Its version.
        version: &'static str,
    },
}

/// An open library. It is never closed: its providers start threads of their own.
#[derive(Clone, Copy)]
pub(crate) struct Library(NonNull<c_void>);

impl Library {
    pub(crate) fn open(file: &CStr) -> Result<Self, Missing> {
        // SAFETY: the name is terminated; the library's initialisation, which runs here, makes no
        // demands on the program that opens it.
        let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        NonNull::new(handle).map(Self).ok_or(Missing::Library)
    }

    /// The address of a function.
    pub(crate) fn find(self, name: &str, version: &str) -> Option<NonNull<c_void>> {
        let handle = self.0.as_ptr();
        let (name, version) = (CString::new(name).ok()?, CString::new(version).ok()?);
        #[cfg(target_env = "gnu")]
        // SAFETY: the library is open, and both names are terminated.
        let found = unsafe { libc::dlvsym(handle, name.as_ptr(), version.as_ptr()) };
        // Without versions to ask for: the lookup passes over those that are kept for old programs.
        #[cfg(not(target_env = "gnu"))]
        // SAFETY: the library is open, and the name is terminated.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        #[cfg(not(target_env = "gnu"))]
        drop(version);
        NonNull::new(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exported::{Functions, load};
    use crate::header::must_run;

    fn missing(file: &CStr) -> Missing {
        // SAFETY: nothing of libibverbs is in the libraries that are opened here.
        let find = |library| unsafe { Functions::of(library) };
        match Library::open(file).and_then(find) {
            Ok(_) => panic!("{file:?} is no libibverbs"),
            Err(missing) => missing,
        }
    }

    #[test]
    fn a_library_that_is_not_there_is_missing() {
        assert_eq!(missing(c"libibverbs-of-weft.so.1"), Missing::Library);
    }

    #[test]
    fn a_library_without_the_functions_is_named_with_the_first_of_them() {
        let (name, version) = ("ibv_get_device_list", "IBVERBS_1.1");
        let found = missing(c"libc.so.6");
        assert_eq!(found, Missing::Function { name, version });
        let text = found.to_string();
        assert!(text.ends_with("has no ibv_get_device_list of version IBVERBS_1.1"), "{text}");
    }

    #[test]
    #[cfg(target_env = "gnu")]
    fn a_function_is_found_in_its_own_version_alone() {
        let library = Library::open(c"libc.so.6").unwrap();
        assert!(library.find("dlvsym", "GLIBC_2.34").is_some());
        assert!(library.find("dlvsym", "GLIBC_0.1").is_none());
    }

    #[test]
    fn the_library_of_the_system_has_every_function() {
        let found = load();
        assert_eq!(load(), found, "once and for all");
        if found == Err(Missing::Library) && !must_run() {
            eprintln!("skipped, there is no libibverbs");
            return;
        }
        assert_eq!(found, Ok(()));
    }
}
