//! DLPack: the exchange of arrays between libraries, by a capsule with a struct of C.
//!
//! ```text
//!   export:  Tensor ◀── context ── [ managed tensor ] ◀── capsule ──▶ a consumer, which frees it
//!   borrow:  an array's capsule is read and not consumed: its own destructor frees it
//! ```
//!
//! The structs and the names are those of the specification, with and without a version. Those who
//! ask for a version share the tensor, and see that it is not to be written. Without a version none
//! of that can be said, so what is lent then is a copy.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::slice;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use weft::member::{Dtype, Shape};

use crate::error::{OrRaise, Raise};
use crate::misuse::Misuse;
use crate::tensor::Tensor;

/// The device of the processor's memory.
pub(crate) const CPU: (i32, i32) = (1, 0);
/// Memory of the processor that a device reaches as well.
const HOST_OF_DEVICE: [i32; 2] = [3, 11];

const PLAIN: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
/// The version that is spoken; what a later one of the same major number adds is not used.
const VERSION: Version = Version { major: 1, minor: 1 };
const RANK_MAX: usize = 8;
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

#[repr(C)]
struct ManagedVersioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// The codes and bits of the types, with one lane.
const TYPES: [(Dtype, u8, u8); 17] = [
    (Dtype::I8, 0, 8),
    (Dtype::I16, 0, 16),
    (Dtype::I32, 0, 32),
    (Dtype::I64, 0, 64),
    (Dtype::U8, 1, 8),
    (Dtype::U16, 1, 16),
    (Dtype::U32, 1, 32),
    (Dtype::U64, 1, 64),
    (Dtype::F16, 2, 16),
    (Dtype::F32, 2, 32),
    (Dtype::F64, 2, 64),
    (Dtype::Bf16, 4, 16),
    (Dtype::C64, 5, 64),
    (Dtype::C128, 5, 128),
    (Dtype::Bool, 6, 8),
    (Dtype::F8E4m3, 10, 8),
    (Dtype::F8E5m2, 12, 8),
];

impl DataType {
    fn of(dtype: Dtype) -> Self {
        let found = TYPES.iter().find(|(it, ..)| *it == dtype);
        let (code, bits) = found.map_or((3, 0), |(_, code, bits)| (*code, *bits));
        Self { code, bits, lanes: 1 }
    }

    fn dtype(self) -> Option<Dtype> {
        TYPES.iter().find(|(it, ..)| Self::of(*it) == self).map(|(dtype, ..)| *dtype)
    }
}

/// What a consumer holds beside the struct: what that points to.
struct LentTensor {
    dims: [i64; RANK_MAX],
    strides: [i64; RANK_MAX],
    _bytes: LentBytes,
}

enum LentBytes {
    Shared(#[expect(dead_code, reason = "held")] Py<Tensor>),
    Copied(#[expect(dead_code, reason = "held")] Vec<u64>),
}

impl LentTensor {
    /// The struct over `tensor`, and what it needs to live, which is to be freed with
    /// [`Self::free`].
    fn over(tensor: &Bound<'_, Tensor>) -> (DlTensor, *mut c_void) {
        let bytes = tensor.get().tensor().view().bytes();
        let keeper = LentBytes::Shared(tensor.clone().unbind());
        Self::of(tensor.get().dims(), bytes.as_ptr().cast_mut(), keeper)
    }

    /// As [`Self::over`], of a copy, which its consumer may write.
    fn copy_of(tensor: &Bound<'_, Tensor>) -> (DlTensor, *mut c_void) {
        let (shape, mut words) = tensor.get().tensor().clone().into_parts();
        // A vector's elements stay where they are when it is moved.
        let base = words.as_mut_ptr().cast();
        Self::of(shape, base, LentBytes::Copied(words))
    }

    fn of(shape: Shape, base: *mut u8, bytes: LentBytes) -> (DlTensor, *mut c_void) {
        let mut lent = Self { dims: [0; RANK_MAX], strides: [1; RANK_MAX], _bytes: bytes };
        for (to, dim) in lent.dims.iter_mut().zip(shape.dims()) {
            *to = dim.cast_signed();
        }
        for axis in (1..shape.dims().len()).rev() {
            lent.strides[axis - 1] = lent.strides[axis].wrapping_mul(lent.dims[axis]);
        }
        let lent = Box::leak(Box::new(lent));
        let dl = DlTensor {
            data: base.cast(),
            device: DlDevice { kind: CPU.0, id: CPU.1 },
            ndim: shape.dims().len() as i32,
            dtype: DataType::of(shape.dtype()),
            shape: lent.dims.as_mut_ptr(),
            strides: lent.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        (dl, (&raw mut *lent).cast())
    }

    /// # Safety
    /// `context` comes from [`Self::over`], and is used no more.
    unsafe fn free(context: *mut c_void) {
        // SAFETY: it was leaked from such a box. Without the interpreter's lock the reference to
        // the tensor is given back later.
        drop(unsafe { Box::from_raw(context.cast::<Self>()) });
    }
}

/// # Safety
/// A consumer calls it once, with what it was given.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: `export` leaked it from such a box, and the consumer is done with it.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: `export` took it from `LentTensor::over`.
    unsafe { LentTensor::free(managed.context) };
}

/// # Safety
/// As [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    let managed = unsafe { Box::from_raw(managed) };
    // SAFETY: as in `delete`.
    unsafe { LentTensor::free(managed.context) };
}

/// Frees what no consumer has taken: one that has renames the capsule.
///
/// # Safety
/// CPython calls it with the capsule, once.
unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule is alive during this call, and the names are strings of C.
    let is_plain = unsafe { ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) } == 1;
    // SAFETY: as above.
    let is_versioned = unsafe { ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) } == 1;
    if is_plain {
        // SAFETY: the name says that it holds what `export` has put there.
        let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()) };
        // SAFETY: no consumer has it.
        unsafe { delete(managed.cast()) };
    } else if is_versioned {
        // SAFETY: as above.
        let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()) };
        // SAFETY: as above.
        unsafe { delete_versioned(managed.cast()) };
    }
}

/// A capsule that lends `tensor`, in the latest form that its consumer knows. Whether it may or
/// must be a copy is the consumer's choice.
pub(crate) fn export<'py>(
    tensor: &Bound<'py, Tensor>,
    max_version: Option<(u32, u32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let version = max_version.filter(|(major, _)| *major >= VERSION.major);
    let is_f8 = DataType::of(tensor.get().dims().dtype()).code >= 10;
    if is_f8 && version.is_none_or(|(major, minor)| (major, minor) < (1, 1)) {
        return Err(PyBufferError::new_err("types of 8 bits need version 1.1 of DLPack"));
    }
    let is_copied = copy.unwrap_or(version.is_none());
    if !is_copied && version.is_none() {
        return Err(PyBufferError::new_err("it is not written, which version 1.0 of DLPack says"));
    }
    let (dl, context) =
        if is_copied { LentTensor::copy_of(tensor) } else { LentTensor::over(tensor) };
    let (pointer, name): (*mut c_void, _) = if version.is_some() {
        let deleter: unsafe extern "C" fn(_) = delete_versioned;
        let deleter = Some(deleter);
        let flags = if is_copied { IS_COPIED } else { READ_ONLY };
        let managed = ManagedVersioned { version: VERSION, context, deleter, flags, tensor: dl };
        (Box::into_raw(Box::new(managed)).cast(), VERSIONED)
    } else {
        let deleter: unsafe extern "C" fn(_) = delete;
        let managed = Managed { tensor: dl, context, deleter: Some(deleter) };
        (Box::into_raw(Box::new(managed)).cast(), PLAIN)
    };
    let pointer = NonNull::new(pointer).expect("a box has an address");
    // SAFETY: the pointer is valid until `destroy` or its consumer frees it, once.
    unsafe { PyCapsule::new_with_pointer_and_destructor(tensor.py(), pointer, name, Some(destroy)) }
}

/// An array of another library, read and not consumed.
pub(crate) struct Borrowed<'py> {
    shape: Shape,
    base: *const u8,
    /// Frees the array when it is dropped.
    _capsule: Bound<'py, PyCapsule>,
}

impl Borrowed<'_> {
    pub(crate) const fn shape(&self) -> Shape {
        self.shape
    }

    pub(crate) const fn base(&self) -> *const u8 {
        self.base
    }
}

/// Asks `array` for its memory.
pub(crate) fn borrow<'py>(array: &Bound<'py, PyAny>) -> PyResult<Borrowed<'py>> {
    let py = array.py();
    let (kind, _): (i32, i32) = array.call_method0("__dlpack_device__")?.extract()?;
    if kind != CPU.0 && !HOST_OF_DEVICE.contains(&kind) {
        return Err(Misuse::Device.raise(py));
    }
    let asked = PyDict::new(py);
    asked.set_item("max_version", (VERSION.major, VERSION.minor))?;
    let capsule = match array.call_method("__dlpack__", (), Some(&asked)) {
        // A library from before there were versions.
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => {
            array.call_method0("__dlpack__")?
        }
        capsule => capsule?,
    };
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let dl: *const DlTensor = if capsule.is_valid_checked(Some(VERSIONED)) {
        let managed = capsule.pointer_checked(Some(VERSIONED))?.cast::<ManagedVersioned>();
        // SAFETY: the name says what it points to, and the capsule keeps it.
        let version = unsafe { managed.as_ref() }.version;
        if version.major != VERSION.major {
            return Err(Misuse::Format { format: format!("DLPack {}", version.major) }.raise(py));
        }
        // SAFETY: as above, with the layout of this major version.
        &raw const unsafe { managed.as_ref() }.tensor
    } else {
        let managed = capsule.pointer_checked(Some(PLAIN))?.cast::<Managed>();
        // SAFETY: as above.
        &raw const unsafe { managed.as_ref() }.tensor
    };
    // SAFETY: it lies in what the capsule keeps.
    let (shape, base) = read(unsafe { &*dl }).or_raise(py)?;
    Ok(Borrowed { shape, base, _capsule: capsule })
}

/// The shape and the first byte of an array in row-major order.
fn read(dl: &DlTensor) -> Result<(Shape, *const u8), Misuse> {
    let DataType { code, bits, lanes } = dl.dtype;
    let unknown = || Misuse::Format { format: format!("DLPack type {code}, {bits} x {lanes}") };
    let dtype = dl.dtype.dtype().ok_or_else(unknown)?;
    let ndim = usize::try_from(dl.ndim).ok().filter(|ndim| *ndim <= RANK_MAX);
    let ndim = ndim.ok_or(Misuse::Shape)?;
    let list = |of: *mut i64| -> Vec<i64> {
        if ndim == 0 {
            return Vec::new();
        }
        // SAFETY: the exporter says that so many numbers lie there.
        unsafe { slice::from_raw_parts(of, ndim) }.to_vec()
    };
    let dims = list(dl.shape);
    let mut expected = 1_i64;
    // Without strides the order is row-major.
    let strides = if dl.strides.is_null() { None } else { Some(list(dl.strides)) };
    for axis in (0..ndim).rev().filter(|_| strides.is_some()) {
        let is_next = strides.as_ref().is_none_or(|strides| strides[axis] == expected);
        if dims[axis] > 1 && !is_next && !dims.contains(&0) {
            return Err(Misuse::Strided);
        }
        expected = expected.wrapping_mul(dims[axis]);
    }
    let dims: Result<Vec<u64>, _> = dims.into_iter().map(u64::try_from).collect();
    let dims = dims.map_err(|_| Misuse::Shape)?;
    let shape = Shape::new(dtype, &dims).map_err(|_| Misuse::Shape)?;
    let base = dl.data.cast::<u8>().cast_const().wrapping_add(dl.byte_offset as usize);
    Ok((shape, base))
}
