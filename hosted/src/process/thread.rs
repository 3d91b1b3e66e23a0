//! Threads that a user's limit may refuse.

use std::thread::{Builder, JoinHandle};

use super::ProcessError;

/// Starts a thread under a name, which the system cuts at 15 bytes.
///
/// # Errors
/// [`ProcessError::Thread`], where the standard library's own way panics.
pub fn start_thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, ProcessError> {
    Builder::new().name(name.to_owned()).spawn(run).map_err(ProcessError::Thread)
}
