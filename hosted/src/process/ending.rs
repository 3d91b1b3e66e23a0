//! How a process has ended, in words.

use std::process::ExitStatus;

/// What the process did, as a verb: "exited with status 3", "was killed by signal 9 (SIGKILL)".
#[must_use]
pub fn how_ended(status: ExitStatus) -> String {
    match (status.code(), status.to_string()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, text) => format!("was killed by {}", text.replacen("signal: ", "signal ", 1)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn an_end_is_a_verb_with_the_signal_by_name() {
        assert_eq!(how_ended(ExitStatus::from_raw(3 << 8)), "exited with status 3");
        assert_eq!(how_ended(ExitStatus::from_raw(9)), "was killed by signal 9 (SIGKILL)");
    }
}
