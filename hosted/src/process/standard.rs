//! Whether the process was started with a standard output.
//!
//! One that is closed is opened as /dev/null by the standard library before `main`, so that no
//! other file comes to lie there; whatever is written then seems to have been. What runs before
//! that, an entry of the section `.init_array`, still sees the difference.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, before there is any other thread.
static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds pointers to functions, as this one is, that are called once each;
// `look` takes less than it is given, and needs nothing that is set up later.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asks for the flags of a descriptor, and changes nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Ordering::Relaxed);
}

/// Whether standard output was open when the process was started.
#[must_use]
pub fn has_stdout() -> bool {
    !CLOSED.load(Ordering::Relaxed)
}
