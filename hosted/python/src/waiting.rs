//! Waits without the interpreter's lock, in slices.

use std::time::Duration;

use pyo3::prelude::*;
use weft::clock::Deadline;

use crate::error::{OrRaise, Raise};
use crate::misuse::Misuse;

/// How long a signal waits for its handler.
const SLICE: Duration = Duration::from_millis(50);

/// A timeout as Python passes it.
pub(crate) fn seconds(py: Python<'_>, timeout: f64) -> PyResult<Duration> {
    if timeout.is_nan() || timeout < 0.0 {
        return Err(Misuse::Timeout.raise(py));
    }
    Ok(Duration::try_from_secs_f64(timeout).unwrap_or(Duration::MAX))
}

/// Attempts, each time for as long as it is passed, until one returns something; none by the end of
/// `timeout`. Other threads run meanwhile; a handler of a signal that raises ends it.
pub(crate) fn wait<T: Send, E: Raise + Send>(
    py: Python<'_>,
    timeout: Duration,
    mut attempt: impl FnMut(Duration) -> Result<Option<T>, E> + Send,
) -> PyResult<Option<T>> {
    let deadline = Deadline::after(timeout);
    loop {
        let slice = SLICE.min(deadline.remaining());
        let attempted = py.detach(|| attempt(slice)).or_raise(py)?;
        if attempted.is_some() || deadline.has_passed() {
            return Ok(attempted);
        }
        py.check_signals()?;
    }
}

/// As [`wait`], where the last refusal for lack of room is the failure.
pub(crate) fn wait_for_room<T: Send, E: Raise + Send>(
    py: Python<'_>,
    timeout: Duration,
    is_lack_of_room: impl Fn(&E) -> bool + Send + Sync,
    mut attempt: impl FnMut(Duration) -> Result<T, E> + Send,
) -> PyResult<T> {
    let mut lack = None;
    let done = wait(py, timeout, |slice| match attempt(slice) {
        Err(error) if is_lack_of_room(&error) => {
            lack = Some(error);
            Ok(None)
        }
        done => done.map(Some),
    })?;
    match (done, lack) {
        (Some(done), _) => Ok(done),
        (None, Some(lack)) => Err(lack.raise(py)),
        // Every attempt ends in one of the two.
        (None, None) => Err(Misuse::Timeout.raise(py)),
    }
}
