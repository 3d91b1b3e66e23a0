//! Tensors by name: sent at one member, received at another, in either order.

use std::ffi::c_char;

use weft::member::CallError;
use weft::member::{
    Dtype, Expect, OfferId, Rank, RequestId, Shape, TensorError, TensorName, TensorView,
    UnknownRequest,
};

use crate::border::{Buffer, Out, bytes, call, optional, text, timeout};
use crate::code::weft_code;
use crate::error::Refusal;
use crate::handle::{Form, until, with};
use crate::lifecycle::weft_member;

/// The type of the elements of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weft_dtype {
    /// One byte, 0 or 1.
    WEFT_BOOL = 1,
    /// Unsigned, 8 bits.
    WEFT_U8 = 2,
    /// Signed, 8 bits.
    WEFT_I8 = 3,
    /// Unsigned, 16 bits.
    WEFT_U16 = 4,
    /// Signed, 16 bits.
    WEFT_I16 = 5,
    /// Unsigned, 32 bits.
    WEFT_U32 = 6,
    /// Signed, 32 bits.
    WEFT_I32 = 7,
    /// Unsigned, 64 bits.
    WEFT_U64 = 8,
    /// Signed, 64 bits.
    WEFT_I64 = 9,
    /// IEEE 754 binary16.
    WEFT_F16 = 10,
    /// The upper half of a binary32.
    WEFT_BF16 = 11,
    /// IEEE 754 binary32: float.
    WEFT_F32 = 12,
    /// IEEE 754 binary64: double.
    WEFT_F64 = 13,
    /// 8 bits: 4 of exponent, 3 of mantissa.
    WEFT_F8_E4M3 = 14,
    /// 8 bits: 5 of exponent, 2 of mantissa.
    WEFT_F8_E5M2 = 15,
    /// Two binary32.
    WEFT_C64 = 16,
    /// Two binary64.
    WEFT_C128 = 17,
}

const _: () = assert!(weft_dtype::WEFT_BOOL as u8 == Dtype::Bool as u8);
const _: () = assert!(weft_dtype::WEFT_F32 as u8 == Dtype::F32 as u8);
const _: () = assert!(weft_dtype::WEFT_C128 as u8 == Dtype::C128 as u8);
const _: () = assert!(Dtype::ALL.len() == weft_dtype::WEFT_C128 as usize);

/// The shape of a tensor; its elements are in row-major order and in the byte order of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct weft_shape {
    /// The type of its elements: a weft_dtype.
    pub dtype: u8,
    /// How many dimensions it has, at most 8; 0 for a scalar.
    pub rank: u8,
    /// Its dimensions.
    pub dims: [u64; 8],
}

/// What a receive takes; what differs stays at its source.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct weft_expect {
    /// Elements of this type alone: a weft_dtype; 0 for any.
    pub dtype: u8,
    /// This shape alone; null for any.
    pub shape: *const weft_shape,
    /// At most so many bytes; 0 for any.
    pub bytes_max: u64,
}

impl weft_shape {
    pub(crate) const EMPTY: Self = Self { dtype: 0, rank: 0, dims: [0; 8] };

    pub(crate) fn of(shape: &Shape) -> Self {
        let mut dims = [0; 8];
        for (to, from) in dims.iter_mut().zip(shape.dims()) {
            *to = *from;
        }
        let rank = u8::try_from(shape.dims().len()).unwrap_or(u8::MAX);
        Self { dtype: shape.dtype() as u8, rank, dims }
    }

    fn read(&self) -> Result<Shape, Refusal> {
        let dims = self.dims.get(..usize::from(self.rank));
        let shape = dims.map(|dims| Shape::new(dtype(self.dtype)?, dims).map_err(|_| BAD_SHAPE));
        shape.unwrap_or(Err(BAD_SHAPE))
    }
}

const BAD_SHAPE: Refusal = Refusal::Argument(
    "the shape has more than 8 dimensions, or more bytes than 2^64 - 1",
    "pass one that has not",
);

fn dtype(number: u8) -> Result<Dtype, Refusal> {
    let unknown = Refusal::Argument("no elements have this dtype", "pass a number of weft_dtype");
    Dtype::of(number).ok_or(unknown)
}

impl weft_expect {
    /// # Safety
    /// The shape, if there is one, is readable.
    unsafe fn read(&self) -> Result<Expect, Refusal> {
        // SAFETY: the contract.
        let shape = unsafe { optional(self.shape, "expect.shape")? };
        Ok(Expect {
            dtype: if self.dtype == 0 { None } else { Some(dtype(self.dtype)?) },
            shape: shape.map(weft_shape::read).transpose()?,
            bytes_max: Some(self.bytes_max).filter(|most| *most > 0),
        })
    }
}

/// Asks until there is room, or `timeout` has passed.
fn room<T>(
    member: *const weft_member,
    timeout_us: u64,
    mut polled: impl FnMut(&mut weft::Member) -> Result<T, TensorError>,
    spawned: impl FnOnce(&weft::member::MemberHandle) -> Result<T, CallError<TensorError>>,
) -> Result<T, Refusal> {
    with(member, |form| match form {
        Form::Polled(member) => {
            let mut refused = TensorError::NoSpace;
            let done = until(member, timeout(timeout_us), |member| match polled(member) {
                Err(error @ (TensorError::Full { .. } | TensorError::NoSpace)) => {
                    refused = error;
                    Ok(None)
                }
                done => Ok(Some(done?)),
            })?;
            done.ok_or_else(|| refused.into())
        }
        Form::Spawned(handle) => Ok(spawned(handle)?),
    })
}

/// Sends the tensor of `shape` whose `len` bytes are at `elements` to the member `to`, which may be
/// this one, under a name: `edge`, 1 to 480 bytes without ';', and a step. It is copied, and waits
/// for its receiver. With a timeout the call waits for room. Writes the number to `request` that
/// WEFT_EVENT_CONSUMED will have.
///
/// A null `shape` sends a dead tensor: its receiver learns that there is none.
///
/// Errors: WEFT_NOT_CONFIGURED (set rendezvous.pool_mib), WEFT_FULL, WEFT_TOO_LONG, WEFT_RANK,
/// WEFT_ARGUMENT (name, shape, or a length that is not the shape's), WEFT_FINISHED,
/// WEFT_STEP_OVER, WEFT_ABORTED.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_send(
    member: *mut weft_member,
    to: u16,
    edge: *const c_char,
    step: i64,
    shape: *const weft_shape,
    elements: *const u8,
    len: usize,
    request: *mut u32,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let edge = unsafe { text(edge, "edge") };
    // SAFETY: the caller's promise.
    let shape = unsafe { optional(shape, "shape") };
    // SAFETY: the caller's promise.
    let elements = unsafe { bytes(elements, len, "elements") };
    // SAFETY: the caller's promise.
    let request = unsafe { Out::new(request, "request") };
    call(|| {
        let (name, to) = (TensorName { edge: edge?, step }, Rank(to));
        let (elements, request, limit) = (elements?, request?, timeout(timeout_us));
        let sent: OfferId = match shape? {
            None => room(
                member,
                timeout_us,
                |member| member.send_dead(to, name),
                |handle| handle.send_dead(to, name, limit),
            )?,
            Some(shape) => {
                let other = "the length is not that of the shape";
                let other = Refusal::Argument(other, "pass its elements, all of them");
                let tensor = TensorView::of_bytes(shape.read()?, elements);
                let tensor = tensor.map_err(|_| other)?;
                room(
                    member,
                    timeout_us,
                    |member| member.send(to, name, tensor),
                    |handle| handle.send(to, name, tensor, limit),
                )?
            }
        };
        request.set(sent.to_bits());
        Ok(weft_code::WEFT_OK)
    })
}

/// Asks the member `from` for the tensor of a name, which it may send earlier or later. Writes the
/// number to `request` that two events will have, each once: WEFT_EVENT_ENDED, after the timeout at
/// the latest, and WEFT_EVENT_RETURNED. The call of a polled member returns at once; that of a
/// spawned one may wait as long for room. A null `expect` takes any tensor.
///
/// Errors: as of weft_send, and WEFT_PEER_GONE.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_receive(
    member: *mut weft_member,
    from: u16,
    edge: *const c_char,
    step: i64,
    expect: *const weft_expect,
    request: *mut u32,
    timeout_us: u64,
) -> weft_code {
    // SAFETY: the caller's promise.
    let edge = unsafe { text(edge, "edge") };
    // SAFETY: the caller's promise.
    let expect = unsafe { optional(expect, "expect") };
    // SAFETY: the caller's promise; what it expects points to a shape, or nowhere.
    let expect = expect.and_then(|it| it.map(|it| unsafe { it.read() }).transpose());
    // SAFETY: the caller's promise.
    let request = unsafe { Out::new(request, "request") };
    call(|| {
        let (name, from) = (TensorName { edge: edge?, step }, Rank(from));
        let (expect, request) = (expect?.unwrap_or(Expect::any()), request?);
        let limit = timeout(timeout_us);
        let asked = with(member, |form| match form {
            Form::Polled(member) => Ok::<_, Refusal>(member.receive(from, name, expect, limit)?),
            Form::Spawned(handle) => Ok(handle.receive(from, name, expect, limit)?),
        })?;
        request.set(asked.to_bits());
        Ok(weft_code::WEFT_OK)
    })
}

impl From<UnknownRequest> for Refusal {
    fn from(UnknownRequest: UnknownRequest) -> Self {
        Self::Request
    }
}

/// Ends a receive by order, unless it has ended: its WEFT_EVENT_ENDED still comes.
///
/// Errors: WEFT_RECEIPT.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_cancel(member: *mut weft_member, request: u32) -> weft_code {
    call(|| {
        let request = RequestId::from_bits(request);
        with(member, |form| match form {
            Form::Polled(member) => Ok(member.cancel(request)?),
            Form::Spawned(handle) => match handle.cancel(request) {
                Err(CallError::Refused(unknown)) => Err(Refusal::from(unknown)),
                Err(CallError::Ended(ended)) => Err(ended.into()),
                Ok(()) => Ok(()),
            },
        })?;
        Ok(weft_code::WEFT_OK)
    })
}

/// Copies the tensor with which a receive has ended to `buffer`, its length to `len`, and what it
/// is to `shape`. Each is taken once, and keeps its memory until then.
///
/// Errors: WEFT_RECEIPT: no tensor of this request is there. WEFT_BUFFER: `len` is what it needs.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_take_tensor(
    member: *mut weft_member,
    request: u32,
    buffer: *mut u8,
    capacity: usize,
    len: *mut usize,
    shape: *mut weft_shape,
) -> weft_code {
    // SAFETY: the caller's promise.
    let buffer = unsafe { Buffer::new(buffer, capacity, len) };
    // SAFETY: the caller's promise.
    let shape = unsafe { Out::new(shape, "shape") };
    call(|| {
        let (buffer, shape, request) = (buffer?, shape?, RequestId::from_bits(request));
        let tensor = with(member, |mut form| {
            let found = match &mut form {
                Form::Polled(member) => member.tensor_shape(request),
                Form::Spawned(handle) => handle.tensor_shape(request)?,
            };
            let found = found.ok_or(Refusal::Request)?;
            // Before it is taken: a tensor that finds no room would be lost.
            buffer.admit(usize::try_from(found.bytes()).unwrap_or(usize::MAX))?;
            let taken = match form {
                Form::Polled(member) => member.take_tensor(request),
                Form::Spawned(handle) => handle.take_tensor(request)?,
            };
            taken.ok_or(Refusal::Request)
        })?;
        buffer.fill(tensor.view().bytes())?;
        shape.set(weft_shape::of(&tensor.view().shape()));
        Ok(weft_code::WEFT_OK)
    })
}

/// Drops the tensors of a step that were sent here, and ends its receives, here and at members that
/// wait for them, with WEFT_RECEIVED_STEP_OVER.
///
/// Errors: WEFT_NOT_CONFIGURED.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_clean_step(member: *mut weft_member, step: i64) -> weft_code {
    call(|| {
        with(member, |form| match form {
            Form::Polled(member) => Ok::<_, Refusal>(member.clean_step(step)?),
            Form::Spawned(handle) => Ok(handle.clean_step(step)?),
        })?;
        Ok(weft_code::WEFT_OK)
    })
}

/// As weft_clean_step, with WEFT_RECEIVED_ABORTED. The first end of a step stands.
///
/// # Safety
/// POINTERS above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_abort_step(member: *mut weft_member, step: i64) -> weft_code {
    call(|| {
        with(member, |form| match form {
            Form::Polled(member) => Ok::<_, Refusal>(member.abort_step(step)?),
            Form::Spawned(handle) => Ok(handle.abort_step(step)?),
        })?;
        Ok(weft_code::WEFT_OK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_as_it_was_written_and_what_is_none_is_refused() {
        let shape = Shape::new(Dtype::F32, &[2, 3]).expect("a shape");
        assert!(matches!(weft_shape::of(&shape).read(), Ok(read) if read == shape));
        let good = weft_shape::of(&shape);
        let bad = [
            weft_shape { dtype: 0, ..good },
            weft_shape { dtype: 18, ..good },
            weft_shape { rank: 9, ..good },
            weft_shape { dims: [u64::MAX; 8], rank: 8, ..good },
        ];
        for shape in bad {
            assert!(matches!(shape.read(), Err(Refusal::Argument(..))), "{shape:?}");
        }
    }

    #[test]
    fn what_is_expected_is_read() {
        let shape = weft_shape { dtype: 12, rank: 1, dims: [3, 0, 0, 0, 0, 0, 0, 0] };
        let expect = weft_expect { dtype: 12, shape: &raw const shape, bytes_max: 16 };
        // SAFETY: the shape is there.
        let read = unsafe { expect.read() }.expect("it is well-formed");
        assert_eq!((read.dtype, read.bytes_max), (Some(Dtype::F32), Some(16)));
        assert_eq!(read.shape.map(|it| it.dims().to_vec()), Some(vec![3]));
        let any = weft_expect { dtype: 0, shape: std::ptr::null(), bytes_max: 0 };
        // SAFETY: there is no shape.
        let read = unsafe { any.read() }.expect("it is well-formed");
        assert!(read.dtype.is_none() && read.shape.is_none() && read.bytes_max.is_none());
    }
}
