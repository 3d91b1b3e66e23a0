//! Memory of tensors that arrays share, and arrays whose memory is sent.
//!
//! ```text
//!   received ─▶ TensorBytes ── lend ──▶ Py_buffer, DLPack     each holds a reference to the object
//!   SentArray ◀── buffer protocol, or a capsule ── array         held while its bytes are read
//! ```

use std::ffi::{CStr, c_char, c_int};
use std::ptr;
use std::slice;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::ffi;
use pyo3::prelude::*;
use weft::member::{Dtype, Shape, Tensor};

use crate::dlpack;
use crate::error::{OrRaise, Raise};
use crate::misuse::Misuse;

/// The types of elements that a buffer names, and how.
const FORMATS: [(Dtype, &CStr); 14] = [
    (Dtype::Bool, c"?"),
    (Dtype::U8, c"B"),
    (Dtype::I8, c"b"),
    (Dtype::U16, c"H"),
    (Dtype::I16, c"h"),
    (Dtype::U32, c"I"),
    (Dtype::I32, c"i"),
    (Dtype::U64, c"Q"),
    (Dtype::I64, c"q"),
    (Dtype::F16, c"e"),
    (Dtype::F32, c"f"),
    (Dtype::F64, c"d"),
    (Dtype::C64, c"Zf"),
    (Dtype::C128, c"Zd"),
];

/// How a buffer names elements of this type, if it can.
pub(crate) fn format_of(dtype: Dtype) -> Option<&'static CStr> {
    FORMATS.iter().find(|(it, _)| *it == dtype).map(|(_, format)| *format)
}

/// The type of elements that a buffer of this format has, in the order of the host.
fn dtype_of(format: &str, size: usize) -> Option<Dtype> {
    let native = if cfg!(target_endian = "little") { ['@', '=', '<'] } else { ['@', '=', '>'] };
    let letters = format.strip_prefix(native).unwrap_or(format);
    // Of the platform's own lengths.
    let letters = match (letters, size) {
        ("l" | "n", 8) => "q",
        ("L" | "N", 8) => "Q",
        ("c", 1) => "B",
        (letters, _) => letters,
    };
    let found = FORMATS.iter().find(|(_, it)| it.to_bytes() == letters.as_bytes());
    found.map(|(dtype, _)| *dtype).filter(|dtype| dtype.size() == size as u64)
}

/// A tensor that was received, as arrays see it: they read it, and write none of it.
pub(crate) struct TensorBytes {
    tensor: Tensor,
    dims: Box<[isize]>,
    strides: Box<[isize]>,
}

impl TensorBytes {
    pub(crate) fn new(tensor: Tensor) -> Self {
        let shape = tensor.view().shape();
        let dims: Box<[isize]> = shape.dims().iter().map(|dim| *dim as isize).collect();
        let mut strides = vec![shape.dtype().size() as isize; dims.len()].into_boxed_slice();
        for axis in (1..dims.len()).rev() {
            strides[axis - 1] = strides[axis].wrapping_mul(dims[axis]);
        }
        Self { tensor, dims, strides }
    }

    pub(crate) const fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    /// Fills `view`, which keeps `owner`.
    ///
    /// # Safety
    /// `view` may be written, and `owner` is the object that holds `self`.
    pub(crate) unsafe fn lend(
        &self,
        owner: Bound<'_, PyAny>,
        view: *mut ffi::Py_buffer,
        (flags, format): (c_int, &'static CStr),
    ) {
        let asks = |flag: c_int| flags & flag == flag;
        let shown = |is_asked: bool, of: &[isize]| {
            if is_asked { of.as_ptr().cast_mut() } else { ptr::null_mut() }
        };
        let (lent, format) = (self.tensor.view(), format.as_ptr().cast_mut());
        let filled = ffi::Py_buffer {
            buf: lent.bytes().as_ptr().cast_mut().cast(),
            len: lent.bytes().len().cast_signed(),
            itemsize: lent.shape().dtype().size() as isize,
            readonly: 1,
            ndim: if asks(ffi::PyBUF_ND) { self.dims.len() as c_int } else { 1 },
            format: if asks(ffi::PyBUF_FORMAT) { format } else { ptr::null_mut::<c_char>() },
            shape: shown(asks(ffi::PyBUF_ND), &self.dims),
            strides: shown(asks(ffi::PyBUF_STRIDES), &self.strides),
            suboffsets: ptr::null_mut(),
            internal: ptr::null_mut(),
            // Released with the buffer, until which all pointers above are valid.
            obj: owner.into_ptr(),
        };
        // SAFETY: the caller lets us write it; what was in it is not dropped.
        unsafe { view.write(filled) };
    }
}

/// An array whose bytes are to be sent, held.
pub(crate) struct SentArray<'py> {
    shape: Shape,
    base: *const u8,
    /// What keeps the bytes where they are.
    _keeper: ArrayKeeper<'py>,
}

enum ArrayKeeper<'py> {
    Buffer(#[expect(dead_code, reason = "held")] PyUntypedBuffer),
    Capsule(#[expect(dead_code, reason = "held")] dlpack::Borrowed<'py>),
}

impl<'py> SentArray<'py> {
    /// By the buffer protocol, and else by DLPack.
    pub(crate) fn of(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = array.py();
        match PyUntypedBuffer::get(array) {
            Ok(buffer) => Self::of_buffer(buffer).or_raise(py),
            Err(_) if array.hasattr("__dlpack__")? => {
                let borrowed = dlpack::borrow(array)?;
                let (shape, base) = (borrowed.shape(), borrowed.base());
                Ok(Self { shape, base, _keeper: ArrayKeeper::Capsule(borrowed) })
            }
            Err(_) => {
                let name = array.get_type().name()?.to_string();
                Err(Misuse::NoArray { name }.raise(py))
            }
        }
    }

    fn of_buffer(buffer: PyUntypedBuffer) -> Result<Self, Misuse> {
        let format = buffer.format().to_string_lossy().into_owned();
        let dtype = dtype_of(&format, buffer.item_size()).ok_or(Misuse::Format { format })?;
        if !buffer.is_c_contiguous() {
            return Err(Misuse::Strided);
        }
        let dims: Vec<u64> = buffer.shape().iter().map(|dim| *dim as u64).collect();
        let shape = Shape::new(dtype, &dims).map_err(|_| Misuse::Shape)?;
        if shape.bytes() != buffer.len_bytes() as u64 {
            return Err(Misuse::Shape);
        }
        let base = buffer.buf_ptr().cast_const().cast();
        Ok(Self { shape, base, _keeper: ArrayKeeper::Buffer(buffer) })
    }

    pub(crate) const fn shape(&self) -> Shape {
        self.shape
    }

    /// Does `act` with the bytes, which it only copies.
    ///
    /// The caller has the interpreter's lock, so no Python code writes them meanwhile. A thread
    /// that writes without that lock sends a mixture, as with any other consumer of the array.
    pub(crate) fn with_bytes<T>(&self, act: impl FnOnce(&[u8]) -> T) -> T {
        let len = self.shape.bytes() as usize;
        if len == 0 {
            return act(&[]);
        }
        // SAFETY: the exporter says that so many bytes lie there, and keeps them while it is held.
        act(unsafe { slice::from_raw_parts(self.base, len) })
    }
}
