//! Messages at transitions and rejects: through defmt, through log, or nowhere.
//!
//! The macro takes the same format string on all three routes, so a machine is written once;
//! its arguments are plain numbers, which every route can print. It is never used on the data
//! path. `defmt` wins when both features are on, so that `--all-features` builds.

macro_rules! debug {
    ($text:literal $(, $arg:expr)* $(,)?) => {{
        #[cfg(feature = "defmt")]
        ::defmt::debug!($text $(, $arg)*);
        #[cfg(all(feature = "log", not(feature = "defmt")))]
        ::log::debug!($text $(, $arg)*);
        #[cfg(not(any(feature = "log", feature = "defmt")))]
        {
            let _ = ($text, $(&$arg),*);
        }
    }};
}
