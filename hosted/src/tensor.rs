//! Tensors as what they hold: elements of one type, in row-major order.

#[cfg(feature = "tensor-files")]
pub mod file;

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weft_core::rendezvous::{BadShape, Dtype, Shape};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::shm::{SealedBytes, SealedDraft, SegmentError};

/// A type of which a tensor's elements can be viewed. Bytes are in the order of the host.
pub trait Element: FromBytes + IntoBytes + Immutable + KnownLayout {
    /// What a tensor of it says.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($element:ty: $dtype:ident,)*) => {
        $(impl Element for $element {
            const DTYPE: Dtype = Dtype::$dtype;
        })*
    };
}

elements! {
    u8: U8, i8: I8, u16: U16, i16: I16, u32: U32, i32: I32, u64: U64, i64: I64, f32: F32, f64: F64,
}

/// What a tensor is sent and received under, beside its two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorName<'n> {
    /// What it is: 1 to 480 bytes without `;`.
    pub edge: &'n str,
    /// In which step. Of one edge and step there may be several; each is received once, in order.
    pub step: i64,
}

/// The shape of a tensor, and its bytes where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorView<'b> {
    shape: Shape,
    bytes: &'b [u8],
}

/// Why a tensor's elements cannot be viewed so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// They are of another type.
    #[error("the elements are {found:?}, not {asked:?}: view them as that, or take the bytes")]
    Dtype {
        /// Their type.
        found: Dtype,
        /// The one that was asked for.
        asked: Dtype,
    },
    /// The bytes do not begin where such an element may.
    #[error(
        "the bytes begin {past} past a multiple of {align}, where no element of this type may: \
         copy them to such an address, or take the bytes"
    )]
    Misaligned {
        /// Bytes past a multiple of `align`.
        past: usize,
        /// The alignment of an element.
        align: usize,
    },
}

impl<'b> TensorView<'b> {
    /// A tensor of `dims` with these elements; no dimension is a scalar.
    ///
    /// # Errors
    /// [`BadShape`]: more than eight dimensions, or another number of elements.
    pub fn of<T: Element>(dims: &[u64], elements: &'b [T]) -> Result<Self, BadShape> {
        Self::of_bytes(Shape::new(T::DTYPE, dims)?, elements.as_bytes())
    }

    /// A tensor of any type, by its bytes.
    ///
    /// # Errors
    /// [`BadShape`]: another number of bytes.
    pub fn of_bytes(shape: Shape, bytes: &'b [u8]) -> Result<Self, BadShape> {
        if shape.bytes() == bytes.len() as u64 { Ok(Self { shape, bytes }) } else { Err(BadShape) }
    }

    /// Type and dimensions.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Its bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'b [u8] {
        self.bytes
    }

    /// Its elements.
    ///
    /// # Errors
    /// [`ViewError`].
    pub fn elements<T: Element>(&self) -> Result<&'b [T], ViewError> {
        let (found, asked) = (self.shape.dtype(), T::DTYPE);
        if found != asked {
            return Err(ViewError::Dtype { found, asked });
        }
        let align = align_of::<T>();
        let past = self.bytes.as_ptr().addr() % align;
        <[T]>::ref_from_bytes(self.bytes).map_err(|_| ViewError::Misaligned { past, align })
    }
}

/// A tensor that was received. It begins where an element of any type may.
#[derive(Clone, Debug)]
pub struct Tensor {
    shape: Shape,
    bytes: TensorStorage,
}

/// Where its bytes are.
#[derive(Clone, Debug)]
enum TensorStorage {
    /// In words of its own, with up to seven behind them.
    Copied(Vec<u64>),
    /// In the memory that its sender made, which no process changes (RZ-18).
    HandedOver(Arc<SealedBytes>),
}

impl Tensor {
    pub(crate) const fn new(shape: Shape, words: Vec<u64>) -> Self {
        Self { shape, bytes: TensorStorage::Copied(words) }
    }

    pub(crate) fn handed_over(shape: Shape, memory: SealedBytes) -> Self {
        Self { shape, bytes: TensorStorage::HandedOver(Arc::new(memory)) }
    }

    /// Its shape, its bytes and its elements.
    #[must_use]
    pub fn view(&self) -> TensorView<'_> {
        let len = self.shape.bytes() as usize;
        let bytes = match &self.bytes {
            TensorStorage::Copied(words) => &words.as_bytes()[..len],
            TensorStorage::HandedOver(memory) => memory.bytes(),
        };
        TensorView { shape: self.shape, bytes }
    }

    /// Its shape, and the words that hold its bytes: for a program that lends them on. What was
    /// handed over is copied; to lend that on, keep the tensor and lend its view.
    #[must_use]
    pub fn into_parts(self) -> (Shape, Vec<u64>) {
        let words = match self.bytes {
            TensorStorage::Copied(words) => words,
            TensorStorage::HandedOver(memory) => {
                let bytes = memory.bytes();
                let mut words = vec![0_u64; bytes.len().div_ceil(8)];
                words.as_mut_bytes()[..bytes.len()].copy_from_slice(bytes);
                words
            }
        };
        (self.shape, words)
    }
}

impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}

impl Eq for Tensor {}

/// A tensor in memory that no process can change any more (RZ-17): its descriptor goes to other
/// processes of this host, and each views the same bytes.
#[derive(Debug)]
pub struct SealedTensor {
    shape: Shape,
    fd: OwnedFd,
    memory: SealedBytes,
}

impl SealedTensor {
    /// The tensor of `shape` whose bytes `fd` holds, whichever process made it.
    ///
    /// # Errors
    /// [`SegmentError`]: the memory can still change, or has another length.
    pub fn open(shape: Shape, fd: OwnedFd) -> Result<Self, SegmentError> {
        let memory = SealedBytes::open(fd.as_fd(), shape.bytes())?;
        Ok(Self { shape, fd, memory })
    }

    /// A copy of `tensor`.
    ///
    /// # Errors
    /// [`SegmentError`].
    pub fn copy_of(tensor: TensorView<'_>) -> Result<Self, SegmentError> {
        let mut draft = SealedDraft::create("weft-tensor", tensor.shape().bytes())?;
        let unwritten = |_| SegmentError::Os { call: "write", errno: rustix::io::Errno::NOSPC };
        draft.write_all(tensor.bytes()).map_err(unwritten)?;
        Self::open(tensor.shape(), draft.finish()?)
    }

    /// The same memory by another descriptor.
    ///
    /// # Errors
    /// [`SegmentError`]: this process has no more descriptors, or no address space.
    pub fn try_clone(&self) -> Result<Self, SegmentError> {
        let fd = rustix::io::fcntl_dupfd_cloexec(&self.fd, 0);
        let fd = fd.map_err(|errno| SegmentError::Os { call: "fcntl F_DUPFD_CLOEXEC", errno })?;
        Self::open(self.shape, fd)
    }

    /// Its shape, its bytes and its elements.
    #[must_use]
    pub fn view(&self) -> TensorView<'_> {
        TensorView { shape: self.shape, bytes: self.memory.bytes() }
    }
}

impl AsFd for SealedTensor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The names of the types of elements, as they are printed.
const DTYPE_NAMES: [(Dtype, &str); 17] = [
    (Dtype::Bool, "bool"),
    (Dtype::U8, "u8"),
    (Dtype::I8, "i8"),
    (Dtype::U16, "u16"),
    (Dtype::I16, "i16"),
    (Dtype::U32, "u32"),
    (Dtype::I32, "i32"),
    (Dtype::U64, "u64"),
    (Dtype::I64, "i64"),
    (Dtype::F16, "f16"),
    (Dtype::Bf16, "bf16"),
    (Dtype::F32, "f32"),
    (Dtype::F64, "f64"),
    (Dtype::F8E4m3, "f8_e4m3"),
    (Dtype::F8E5m2, "f8_e5m2"),
    (Dtype::C64, "c64"),
    (Dtype::C128, "c128"),
];

/// The name of a type of elements.
#[must_use]
pub fn dtype_name(dtype: Dtype) -> &'static str {
    let found = DTYPE_NAMES.iter().find(|(it, _)| *it == dtype);
    found.map_or("?", |(_, name)| name)
}

/// A [`Shape`] in messages that are text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShapeText {
    /// The name of the type of its elements.
    pub dtype: String,
    /// Its dimensions.
    pub dims: Vec<u64>,
}

impl From<Shape> for ShapeText {
    fn from(shape: Shape) -> Self {
        Self { dtype: dtype_name(shape.dtype()).to_owned(), dims: shape.dims().to_vec() }
    }
}

impl TryFrom<&ShapeText> for Shape {
    type Error = BadShape;

    fn try_from(text: &ShapeText) -> Result<Self, BadShape> {
        let found = DTYPE_NAMES.iter().find(|(_, name)| *name == text.dtype);
        Self::new(found.ok_or(BadShape)?.0, &text.dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rz6_elements_are_viewed_as_their_own_type_alone() {
        let halves = [0.5_f32, 1.5, -2.5, 3.5, 4.5, 5.5];
        let view = TensorView::of(&[2, 3], &halves).expect("six elements");
        assert_eq!(view.shape().dims(), [2, 3]);
        assert_eq!(view.elements::<f32>(), Ok(&halves[..]));
        let refused = ViewError::Dtype { found: Dtype::F32, asked: Dtype::U32 };
        assert_eq!(view.elements::<u32>(), Err(refused));
        assert_eq!(TensorView::of(&[7], &halves), Err(BadShape));
        assert_eq!(TensorView::of(&[1; 9], &[1_u8]), Err(BadShape));
        let (empty, scalar) = (TensorView::of::<f64>(&[0, 9], &[]), TensorView::of(&[], &[7_i64]));
        assert_eq!(empty.map(|it| it.elements::<f64>()), Ok(Ok(&[][..])));
        assert_eq!(scalar.map(|it| it.elements::<i64>()), Ok(Ok(&[7][..])));
    }

    #[test]
    fn a_view_that_is_not_aligned_says_by_how_much() {
        let words = [0_u64; 3];
        let shape = Shape::new(Dtype::F64, &[2]).expect("a shape");
        let shifted = TensorView::of_bytes(shape, &words.as_bytes()[4..20]).expect("16 bytes");
        let refused = ViewError::Misaligned { past: 4, align: 8 };
        assert_eq!(shifted.elements::<f64>(), Err(refused));
        assert!(refused.to_string().starts_with("the bytes begin 4 past a multiple of 8"));
    }

    #[test]
    fn what_was_received_is_aligned_for_every_type() {
        let shape = Shape::new(Dtype::U8, &[5]).expect("a shape");
        let tensor = Tensor::new(shape, vec![u64::from_le_bytes(*b"five!+++")]);
        assert_eq!(tensor.view().elements::<u8>(), Ok(&b"five!"[..]));
    }

    #[test]
    fn rz17_a_sealed_tensor_is_viewed_where_another_process_would_view_it() {
        let numbers: Vec<f32> = (0..1000_u16).map(f32::from).collect();
        let view = TensorView::of(&[10, 100], &numbers).expect("a thousand elements");
        let sealed = SealedTensor::copy_of(view).expect("memory");
        let fd = sealed.as_fd().try_clone_to_owned().expect("a descriptor");
        let other = SealedTensor::open(view.shape(), fd).expect("sealed");
        assert_eq!((sealed.view(), other.view()), (view, view));
        assert_eq!(other.view().elements::<f32>(), Ok(&numbers[..]));
        let empty = TensorView::of::<u64>(&[0], &[]).expect("no element");
        assert_eq!(SealedTensor::copy_of(empty).expect("memory").view(), empty);
    }

    #[test]
    fn every_type_has_a_name_and_is_found_by_it() {
        for dtype in Dtype::ALL {
            let shape = Shape::new(*dtype, &[2, 0]).expect("a shape");
            assert_eq!(Shape::try_from(&ShapeText::from(shape)), Ok(shape));
        }
        let unknown = ShapeText { dtype: "f4".to_owned(), dims: vec![] };
        assert_eq!(Shape::try_from(&unknown), Err(BadShape));
    }
}
