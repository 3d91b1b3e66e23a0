//! Tensors by name, as arrays of NumPy and by DLPack.

use std::time::Duration;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use weft::clock::Deadline;
use weft::explain::{Code, Explain};
use weft::member::{
    CallError, Dtype, Expect, MemberHandle, OfferId, Rank, Received, RequestId, Shape, TensorError,
    TensorName, TensorView,
};
use weft::tensor::{Tensor as Owned, dtype_name};

use crate::dlpack;
use crate::error::{OrRaise, Raise, refused};
use crate::member::Member;
use crate::misuse::Misuse;
use crate::tensor_bytes::{SentArray, TensorBytes, format_of};
use crate::waiting::wait;

/// How long a receive that is cancelled may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// How soon room is looked for again.
const AGAIN: Duration = Duration::from_millis(1);

/// A tensor that was sent, until it is consumed.
#[pyclass(frozen, eq, hash, module = "weft")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Offer(pub(crate) OfferId);

impl<'py> IntoPyObject<'py> for &Offer {
    type Target = Offer;
    type Output = Bound<'py, Offer>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, Offer>> {
        Bound::new(py, *self)
    }
}

/// A tensor that was received. Arrays over it, by the buffer protocol or DLPack, share its memory,
/// keep it, and only read it: its sender may have handed over its own.
#[pyclass(frozen, module = "weft")]
pub(crate) struct Tensor(TensorBytes);

impl Tensor {
    pub(crate) const fn tensor(&self) -> &Owned {
        self.0.tensor()
    }

    pub(crate) fn dims(&self) -> Shape {
        self.0.tensor().view().shape()
    }
}

#[pymethods]
impl Tensor {
    /// The type of its elements, as in "f32".
    #[getter]
    fn dtype(&self) -> &'static str {
        dtype_name(self.dims().dtype())
    }

    /// Its dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.dims().dims())
    }

    /// How many bytes its elements have.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.dims().bytes()
    }

    /// An array of NumPy over the same memory.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, dtype) = (slf.py(), slf.get().dims().dtype());
        if format_of(dtype).is_none() {
            return Err(Misuse::NoNumpy { name: dtype_name(dtype) }.raise(py));
        }
        py.import("numpy")?.call_method1("asarray", (slf,))
    }

    /// # Safety
    /// As CPython calls it: `view` is there to be filled.
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        let dtype = slf.get().dims().dtype();
        let format = format_of(dtype).ok_or_else(|| {
            PyBufferError::new_err(format!("no buffer holds {}: use DLPack", dtype_name(dtype)))
        })?;
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err(
                "a tensor that was received is not written: copy it",
            ));
        }
        // SAFETY: the caller passes a view to be filled, and the bytes are those of this object.
        unsafe { slf.get().0.lend(slf.clone().into_any(), view, (flags, format)) };
        Ok(())
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let is_cpu = dl_device.is_none_or(|device| device == dlpack::CPU);
        if stream.is_some() || !is_cpu {
            return Err(PyBufferError::new_err("it lies in the processor's memory"));
        }
        dlpack::export(slf, max_version, copy)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    fn __repr__(&self) -> String {
        format!("Tensor(dtype={:?}, shape={:?})", self.dtype(), self.dims().dims())
    }
}

/// What a receive takes alone.
pub(crate) fn expect(name: Option<&str>, dims: Option<Vec<u64>>) -> Result<Expect, Misuse> {
    let found = |name: &str| {
        let dtype = Dtype::ALL.iter().find(|dtype| dtype_name(**dtype) == name).copied();
        dtype.ok_or_else(|| Misuse::Dtype { name: name.to_owned() })
    };
    let dtype = name.map(found).transpose()?;
    let shape = match (dtype, dims) {
        (_, None) => None,
        (None, Some(_)) => return Err(Misuse::ShapeAlone),
        (Some(dtype), Some(dims)) => Some(Shape::new(dtype, &dims).map_err(|_| Misuse::Shape)?),
    };
    Ok(Expect { dtype, shape, bytes_max: None })
}

type To<'n> = (Rank, TensorName<'n>);

/// Whether a later attempt may find room.
const fn is_lack_of_room(error: &CallError<TensorError>) -> bool {
    matches!(error, CallError::Refused(TensorError::Full { .. } | TensorError::NoSpace))
}

/// Each attempt copies with the interpreter's lock, so that no Python thread writes the array
/// meanwhile, and waits without it.
pub(crate) fn send(
    handle: &MemberHandle,
    (to, name): To<'_>,
    array: &Bound<'_, PyAny>,
    timeout: Duration,
) -> PyResult<Offer> {
    let (py, deadline) = (array.py(), Deadline::after(timeout));
    let source = SentArray::of(array)?;
    loop {
        let attempted = source.with_bytes(|bytes| {
            let view = TensorView::of_bytes(source.shape(), bytes).map_err(|_| Misuse::Shape)?;
            Ok::<_, Misuse>(handle.send(to, name, view, Duration::ZERO))
        });
        match attempted.or_raise(py)? {
            Err(lack) if is_lack_of_room(&lack) && !deadline.has_passed() => {
                py.detach(|| std::thread::park_timeout(AGAIN));
                py.check_signals()?;
            }
            sent => return sent.map(Offer).or_raise(py),
        }
    }
}

pub(crate) fn send_dead(
    py: Python<'_>,
    handle: &MemberHandle,
    (to, name): To<'_>,
    timeout: Duration,
) -> PyResult<Offer> {
    let send = |slice| handle.send_dead(to, name, slice);
    crate::waiting::wait_for_room(py, timeout, is_lack_of_room, send).map(Offer)
}

pub(crate) fn receive(
    py: Python<'_>,
    member: &Member,
    (from, name): To<'_>,
    (expect, timeout): (Expect, Duration),
) -> PyResult<Option<Tensor>> {
    let (handle, inbox) = (member.handle(py)?, &member.inbox);
    // An end finds no room among events that no call has drained.
    py.detach(|| inbox.wait(handle, Duration::ZERO, |_| None::<()>)).or_raise(py)?;
    let begun = py.detach(|| handle.receive(from, name, expect, timeout));
    let request = begun.or_raise(py)?;
    let end = |slice| inbox.wait(handle, slice, |it| it.end_of(request));
    let ended = wait(py, timeout.saturating_add(CANCEL_TIMEOUT), end);
    let outcome = match ended {
        Ok(Some(outcome)) => outcome,
        Ok(None) => Received::TimedOut,
        Err(error) => {
            py.detach(|| give_up(member, handle, request));
            return Err(error);
        }
    };
    match outcome {
        Received::Value => {
            let taken = py.detach(|| handle.take_tensor(request)).or_raise(py)?;
            Ok(taken.map(|tensor| Tensor(TensorBytes::new(tensor))))
        }
        Received::Dead => Ok(None),
        outcome => Err(refused(py, &NotReceived(outcome))),
    }
}

/// Ends a receive whose caller a signal has called away, and drops what it has received.
fn give_up(member: &Member, handle: &MemberHandle, request: RequestId) {
    // One that has ended is not cancelled, and a member that is over ends its receives.
    let _ = handle.cancel(request);
    let ended = member.inbox.wait(handle, CANCEL_TIMEOUT, |it| it.end_of(request));
    if matches!(ended, Ok(Some(Received::Value))) {
        let _ = handle.take_tensor(request);
    }
}

/// A receive that has ended without a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", why(.0))]
struct NotReceived(Received);

fn why(outcome: &Received) -> String {
    match outcome {
        Received::Value | Received::Dead => "it was received",
        Received::TimedOut => "it was not sent in time",
        Received::Cancelled => "the receive was cancelled",
        Received::Aborted => "its step was aborted",
        Received::StepOver => "its step was cleaned up",
        Received::PeerGone => "the incarnation that sends it has ended",
        Received::SourceReborn => "another boot of its source runs",
        Received::Mismatch(found) => {
            let (dtype, dims) = (dtype_name(found.dtype()), found.dims());
            return format!("it is another tensor: {dtype} {dims:?}");
        }
        Received::Corrupt => "its bytes were damaged on the way",
        Received::TooLarge => "it is longer than the pool of this member",
        Received::NoSpace => "its source has no room for one more receive",
        Received::NotHandedOver => "its memory was not handed over",
    }
    .to_owned()
}

impl Explain for NotReceived {
    fn code(&self) -> Code {
        match self.0 {
            Received::TimedOut => Code::Timeout,
            Received::Aborted | Received::StepOver => Code::StepOver,
            Received::PeerGone | Received::SourceReborn => Code::ComponentLost,
            Received::Corrupt => Code::TensorCorrupt,
            Received::TooLarge => Code::MessageTooLong,
            Received::NoSpace => Code::StoreFull,
            Received::NotHandedOver => Code::Memory,
            Received::Cancelled => Code::Interrupted,
            Received::Value | Received::Dead | Received::Mismatch(_) => Code::Usage,
        }
    }

    fn cure(&self) -> String {
        match self.0 {
            Received::TimedOut => "receive it again; `weft status` shows which members run",
            Received::Aborted | Received::StepOver => "name a later step",
            Received::PeerGone | Received::SourceReborn => {
                "receive it again: the next incarnation sends it"
            }
            Received::Mismatch(_) => "receive it as that, or with another name",
            Received::TooLarge => "split it, or raise rendezvous.pool_mib",
            Received::NoSpace => "receive it again once others have ended",
            Received::NotHandedOver => "receive it again; `ulimit -n` shows the descriptors left",
            Received::Value | Received::Dead | Received::Cancelled | Received::Corrupt => {
                "receive it again"
            }
        }
        .to_owned()
    }
}
