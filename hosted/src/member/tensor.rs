//! Tensors as what they hold: elements of one type, in row-major order.

use weft_core::rendezvous::{BadShape, Dtype, Shape};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    shape: Shape,
    words: Vec<u64>,
}

impl Tensor {
    pub(super) const fn new(shape: Shape, words: Vec<u64>) -> Self {
        Self { shape, words }
    }

    /// Its shape, its bytes and its elements.
    #[must_use]
    pub fn view(&self) -> TensorView<'_> {
        let len = self.shape.bytes() as usize;
        TensorView { shape: self.shape, bytes: &self.words.as_bytes()[..len] }
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
}
