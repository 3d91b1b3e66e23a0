//! What a program stands on when there is no library below it: entry, exit, four functions that
//! the compiler itself calls, and the panic handler that must never be linked.

use core::ffi::c_int;
use core::panic::PanicInfo;

// The kernel jumps here with an aligned stack; a function expects it 8 off, as after a call.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
core::arch::global_asm!(".globl _start", "_start:", "call {main}", "ud2", main = sym start);

/// Elsewhere the program is linked but not run.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    start()
}

extern "C" fn start() -> ! {
    exit(crate::run())
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn exit(status: u8) -> ! {
    const EXIT_GROUP: usize = 231;
    // SAFETY: the call takes a number, touches no memory of ours and does not return.
    unsafe {
        core::arch::asm!(
            "syscall",
            in("rax") EXIT_GROUP,
            in("rdi") usize::from(status),
            options(noreturn, nostack),
        )
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn exit(status: u8) -> ! {
    loop {
        core::hint::black_box(status);
    }
}

#[cfg(not(any(feature = "name-panics", feature = "machines")))]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        /// Defined nowhere: its name in a linker's message is the gate's finding.
        fn weft_core_has_a_reachable_panic() -> !;
    }
    // SAFETY: never executed; a program that contains this call does not link.
    unsafe { weft_core_has_a_reachable_panic() }
}

#[cfg(any(feature = "name-panics", feature = "machines"))]
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(101)
}

/// The division of 128 bits that comes with the compiler, which an average of votes needs, was
/// built to unwind, and names this for a case that an abort leaves out.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() -> ! {
    exit(102)
}

// The compiler emits calls of the functions below. Their bytes go through volatile access, because
// a plain loop is recognised as what it implements and compiled into a call of itself.

/// # Safety
/// The byte `at` after `from` is readable.
unsafe fn load(from: *const u8, at: usize) -> u8 {
    // SAFETY: the caller vouches for this byte.
    unsafe { from.wrapping_add(at).read_volatile() }
}

/// # Safety
/// The byte `at` after `to` is writable.
unsafe fn store(to: *mut u8, at: usize, byte: u8) {
    // SAFETY: the caller vouches for this byte.
    unsafe { to.wrapping_add(at).write_volatile(byte) }
}

/// # Safety
/// C's contract of `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    for at in 0..len {
        // SAFETY: `at` is below `len`, up to which the caller vouches for `from`.
        let byte = unsafe { load(from, at) };
        // SAFETY: likewise for `to`.
        unsafe { store(to, at, byte) };
    }
    to
}

/// # Safety
/// C's contract of `memmove`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if to.addr() <= from.addr() {
        // SAFETY: the same contract, and going upwards overwrites only what was read already.
        return unsafe { memcpy(to, from, len) };
    }
    for at in (0..len).rev() {
        // SAFETY: `at` is below `len`, up to which the caller vouches for `from`.
        let byte = unsafe { load(from, at) };
        // SAFETY: likewise for `to`.
        unsafe { store(to, at, byte) };
    }
    to
}

/// # Safety
/// C's contract of `memset`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, value: c_int, len: usize) -> *mut u8 {
    for at in 0..len {
        // SAFETY: `at` is below `len`, up to which the caller vouches for `to`.
        unsafe { store(to, at, value as u8) };
    }
    to
}

/// # Safety
/// C's contract of `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, len: usize) -> c_int {
    for at in 0..len {
        // SAFETY: `at` is below `len`, up to which the caller vouches for `one`.
        let left = unsafe { load(one, at) };
        // SAFETY: likewise for `other`.
        let right = unsafe { load(other, at) };
        if left != right {
            return c_int::from(left) - c_int::from(right);
        }
    }
    0
}

/// # Safety
/// C's contract of `bcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, len: usize) -> c_int {
    // SAFETY: the contract of `memcmp` is the same.
    unsafe { memcmp(one, other, len) }
}
