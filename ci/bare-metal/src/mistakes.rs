//! The planted mistakes. None is compiled unless its feature is on, and then the build must fail.
//!
//! | feature | mistake | refused by |
//! |---|---|---|
//! | `must-fail-index` | an index that the input chooses | the linker: the panic handler's symbol |
//! | `must-fail-unwrap` | `unwrap` of what may be `None` | the linker: the panic handler's symbol |
//! | `must-fail-alloc` | a boxed value | the compiler: no global allocator |
//! | `must-fail-std` | std itself | the compiler: two panic handlers |

#[cfg(any(feature = "must-fail-index", feature = "must-fail-unwrap"))]
use core::hint::black_box as opaque;

#[cfg(feature = "must-fail-alloc")]
extern crate alloc;
#[cfg(feature = "must-fail-std")]
extern crate std;

/// Makes the mistake that the features ask for; without one, nothing.
pub(crate) fn make() {
    #[cfg(feature = "must-fail-index")]
    opaque([1_u8, 2, 3][opaque(7_usize)]);

    #[cfg(feature = "must-fail-unwrap")]
    opaque(opaque(None::<u8>).unwrap());

    #[cfg(feature = "must-fail-alloc")]
    core::hint::black_box(alloc::boxed::Box::new(7_u8));
}
