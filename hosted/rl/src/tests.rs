//! Scripts that are translated and run, and scripts that are wrong.

mod differential;
mod drawn;
mod lints;
mod oracle;
mod right;
mod scenario;
mod wrong;

use super::*;

/// Translates a script that includes nothing.
pub(crate) fn translated(text: &str) -> Translation {
    translate("test.rl", text, None, &mut |_, _| Err("there is none".into()))
}
