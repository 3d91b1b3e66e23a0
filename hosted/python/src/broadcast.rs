//! One writer and many readers on one host, without a cluster: `weft::shm::FanWriter`.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weft::shm::{FanError, FanPlan, FanReader, FanWriter};

use crate::error::{OrRaise, Raise};
use crate::home::Home;
use crate::message::bytes_of;
use crate::misuse::Misuse;
use crate::waiting::{seconds, wait, wait_for_room};

/// What a call refuses, here or below.
enum BroadcastRefusal {
    Fan(FanError),
    Misuse(Misuse),
}

impl Raise for BroadcastRefusal {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Fan(error) => error.raise(py),
            Self::Misuse(error) => error.raise(py),
        }
    }
}

impl From<FanError> for BroadcastRefusal {
    fn from(error: FanError) -> Self {
        Self::Fan(error)
    }
}

impl From<Misuse> for BroadcastRefusal {
    fn from(error: Misuse) -> Self {
        Self::Misuse(error)
    }
}

/// One end of a ring, for one thread at a time, until it is closed.
struct RingEnd<T>(Home<Mutex<Option<T>>>);

impl<T> RingEnd<T> {
    fn new(end: T) -> Self {
        Self(Home::new(Mutex::new(Some(end))))
    }

    fn lock(&self) -> Result<MutexGuard<'_, Option<T>>, Misuse> {
        match self.0.get()?.try_lock() {
            Ok(end) => Ok(end),
            Err(TryLockError::WouldBlock) => Err(Misuse::Busy),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
        }
    }

    fn with<R>(
        &self,
        act: impl FnOnce(&mut T) -> Result<R, FanError>,
    ) -> Result<R, BroadcastRefusal> {
        let mut end = self.lock()?;
        Ok(act(end.as_mut().ok_or(Misuse::Closed)?)?)
    }

    fn close(&self) -> Result<(), Misuse> {
        self.lock()?.take();
        Ok(())
    }
}

/// The writer of a ring, which listens for its readers at the path of a Unix socket.
#[pyclass(frozen, module = "weft")]
pub(crate) struct Broadcast(RingEnd<FanWriter>);

#[pymethods]
impl Broadcast {
    #[new]
    #[pyo3(signature = (path, *, slots=64, message_len=65536))]
    fn new(py: Python<'_>, path: PathBuf, slots: usize, message_len: usize) -> PyResult<Self> {
        let plan = FanPlan { slots, message_len };
        let writer = py.detach(move || FanWriter::bind(&path, plan)).or_raise(py)?;
        Ok(Self(RingEnd::new(writer)))
    }

    /// Joins the writer at `path`, under a name that no other living reader of it has.
    #[staticmethod]
    #[pyo3(signature = (path, name, timeout=5.0))]
    fn join(py: Python<'_>, path: PathBuf, name: &str, timeout: f64) -> PyResult<BroadcastReader> {
        let timeout = seconds(py, timeout)?;
        let reader = py.detach(move || FanReader::join(&path, name, timeout)).or_raise(py)?;
        Ok(BroadcastReader(RingEnd::new(reader)))
    }

    /// Waits until there are so many readers; whether there are by the end of the timeout.
    #[pyo3(signature = (count, timeout=5.0))]
    fn admit(&self, py: Python<'_>, count: usize, timeout: f64) -> PyResult<bool> {
        let admit = |slice| {
            let admitted = self.0.with(|writer| writer.admit(count, slice));
            admitted.map(|admitted| admitted.then_some(()))
        };
        Ok(wait(py, seconds(py, timeout)?, admit)?.is_some())
    }

    /// The names of the readers, in the order in which they have joined.
    #[getter]
    fn readers(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let names = self.0.with(|writer| Ok(writer.readers().map(str::to_owned).collect()));
        names.or_raise(py)
    }

    /// Sends to all readers, and returns the names of those that have died since the last call.
    /// Waits while a living reader is a whole ring behind.
    #[pyo3(signature = (payload, timeout=5.0))]
    fn send(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        timeout: f64,
    ) -> PyResult<Vec<String>> {
        let (bytes, timeout) = (bytes_of(payload)?, seconds(py, timeout)?);
        let is_lack = |error: &BroadcastRefusal| {
            matches!(error, BroadcastRefusal::Fan(FanError::Full { .. }))
        };
        let send = |slice| self.0.with(|writer| writer.send(&bytes, slice));
        wait_for_room(py, timeout, is_lack, send)
    }

    /// Closes the ring: its readers read what is in it, and end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close().or_raise(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.close(py).map(|()| false)
    }
}

/// A reader of a ring.
#[pyclass(frozen, module = "weft")]
pub(crate) struct BroadcastReader(RingEnd<FanReader>);

#[pymethods]
impl BroadcastReader {
    /// The next message; None by the end of the timeout. `weft.Ended` once the writer has ended or
    /// has closed the ring, and no message is left.
    #[pyo3(signature = (timeout=5.0))]
    fn receive<'py>(&self, py: Python<'py>, timeout: f64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let receive = |slice| self.0.with(|reader| reader.receive(slice));
        let received = wait(py, seconds(py, timeout)?, receive)?;
        Ok(received.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// The writer waits for this reader no more.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close().or_raise(py)
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.close(py).map(|()| false)
    }
}
