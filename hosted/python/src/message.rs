//! Messages and broadcasts as Python has them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView};
use weft::member::{Delivered, MemberHandle, Receipt, Taken};

use crate::error::{OrRaise, Raise};
use crate::home::Home;
use crate::misuse::Misuse;

/// The bytes of a message, lent to any number of views.
#[pyclass(frozen, module = "weft")]
pub(crate) struct MessageBytes {
    bytes: Box<[u8]>,
    /// How many buffers of them are lent.
    lent: AtomicUsize,
}

#[pymethods]
impl MessageBytes {
    /// # Safety
    /// As CPython calls it: `view` is there to be filled.
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        let bytes = &slf.get().bytes;
        let (base, len) = (bytes.as_ptr().cast_mut().cast(), bytes.len().cast_signed());
        // SAFETY: the caller passes a view to be filled. The bytes never change and live as long as
        // the object, of which the view holds a reference from here on; it is read-only.
        let status = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), base, len, 1, flags) };
        if status != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        slf.get().lent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// # Safety
    /// As CPython calls it: once for each buffer that was lent.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.lent.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A copy of the bytes of what has the buffer protocol, whatever its elements are.
pub(crate) fn bytes_of(payload: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(bytes) = payload.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().to_vec());
    }
    let bytes = PyMemoryView::from(payload)?.call_method0("tobytes")?;
    Ok(bytes.cast_into::<PyBytes>()?.as_bytes().to_vec())
}

/// The place of a message in the mailbox, until it is released.
struct HeldMessage {
    receipt: Receipt,
    payload: Py<MessageBytes>,
    /// The view that `payload` returns, once it was asked for.
    view: Option<Py<PyMemoryView>>,
}

impl HeldMessage {
    /// Ends the view of the payload; its receipt, once no view of it is left.
    fn give_up(&mut self, py: Python<'_>) -> PyResult<Receipt> {
        if let Some(view) = self.view.take()
            && view.call_method0(py, "release").is_err()
        {
            self.view = Some(view);
            return Err(Misuse::PayloadInUse.raise(py));
        }
        // A slice of that view, or an array over it, is left.
        if self.payload.get().lent.load(Ordering::Relaxed) > 0 {
            return Err(Misuse::PayloadInUse.raise(py));
        }
        Ok(self.receipt)
    }
}

/// A message that was taken. It comes again, to the next incarnation of this member, unless it is
/// released: by `release`, or at the end of a `with` block that raises nothing.
#[pyclass(frozen, module = "weft")]
pub(crate) struct Message {
    handle: Home<MemberHandle>,
    /// The sender's rank.
    #[pyo3(get)]
    sender: u16,
    /// The sender's number for it.
    #[pyo3(get)]
    sequence: u32,
    /// None once it was released.
    held: Mutex<Option<HeldMessage>>,
}

impl Message {
    pub(crate) fn new(py: Python<'_>, handle: MemberHandle, taken: Taken) -> PyResult<Self> {
        let bytes = taken.payload.into_boxed_slice();
        let payload = Py::new(py, MessageBytes { bytes, lent: AtomicUsize::new(0) })?;
        let held = HeldMessage { receipt: taken.receipt, payload, view: None };
        let (sender, sequence) = (taken.sender.0, taken.sequence);
        Ok(Self { handle: Home::new(handle), sender, sequence, held: Mutex::new(Some(held)) })
    }

    /// Does `act` on what is held.
    fn with_held<T>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Option<HeldMessage>) -> PyResult<T>,
    ) -> PyResult<T> {
        // A thread that waited for it with the interpreter's lock would hold up its owner.
        let mut held = self.held.try_lock().map_err(|_| Misuse::Busy.raise(py))?;
        act(&mut held)
    }
}

/// Releases all of `messages` in one call of the member, or none of them.
pub(crate) fn release_all(
    py: Python<'_>,
    handle: &MemberHandle,
    messages: &[Py<Message>],
) -> PyResult<()> {
    let mut places = Vec::with_capacity(messages.len());
    let mut receipts = Vec::with_capacity(messages.len());
    for message in messages {
        // One that is in the list twice is busy the second time.
        let place = message.get().held.try_lock();
        let mut place = place.map_err(|_| Misuse::Busy.raise(py))?;
        let held = place.as_mut().ok_or_else(|| Misuse::Released.raise(py))?;
        receipts.push(held.give_up(py)?);
        places.push(place);
    }
    py.detach(|| handle.release_all(receipts)).or_raise(py)?;
    places.iter_mut().for_each(|place| **place = None);
    Ok(())
}

#[pymethods]
impl Message {
    /// Its bytes, as a read-only memoryview until it is released.
    #[getter]
    fn payload(&self, py: Python<'_>) -> PyResult<Py<PyMemoryView>> {
        self.with_held(py, |held| {
            let held = held.as_mut().ok_or_else(|| Misuse::Released.raise(py))?;
            if held.view.is_none() {
                held.view = Some(PyMemoryView::from(held.payload.bind(py))?.unbind());
            }
            let view = held.view.as_ref().map(|view| view.clone_ref(py));
            view.ok_or_else(|| Misuse::Released.raise(py))
        })
    }

    /// It was processed: its slot is free, and its views are invalid.
    fn release(&self, py: Python<'_>) -> PyResult<()> {
        let handle = self.handle.get().or_raise(py)?;
        self.with_held(py, |held| {
            let there = held.as_mut().ok_or_else(|| Misuse::Released.raise(py))?;
            let receipt = there.give_up(py)?;
            py.detach(|| handle.release(receipt)).or_raise(py)?;
            *held = None;
            Ok(())
        })
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    /// Releases it, unless the block has raised, or has released it.
    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let is_held = self.with_held(py, |held| Ok(held.is_some()))?;
        if kind.is_none() && is_held {
            self.release(py)?;
        }
        Ok(false)
    }

    fn __repr__(&self) -> String {
        format!("Message(sender={}, sequence={})", self.sender, self.sequence)
    }
}

/// A broadcast that was delivered.
#[pyclass(frozen, module = "weft")]
pub(crate) struct Delivery {
    /// The member that broadcast it.
    #[pyo3(get)]
    origin: u16,
    /// Its number among those of its origin, from 1.
    #[pyo3(get)]
    seq: u64,
    /// Its bytes.
    #[pyo3(get)]
    payload: Py<PyBytes>,
}

impl Delivery {
    pub(crate) fn of(py: Python<'_>, delivered: &Delivered) -> Self {
        let payload = PyBytes::new(py, &delivered.payload).unbind();
        Self { origin: delivered.origin.0, seq: delivered.seq, payload }
    }
}

#[pymethods]
impl Delivery {
    fn __repr__(&self) -> String {
        format!("Delivery(origin={}, seq={})", self.origin, self.seq)
    }
}
