//! What a program does wrong that only a binding can see.

use pyo3::prelude::*;
use weft::explain::{Code, Explain};

use crate::error::{Raise, refused};

/// A wrong use of this module. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Misuse {
    #[error("this object belongs to process {process}, from which this one was forked")]
    Forked { process: u32 },
    #[error("the message was released")]
    Released,
    #[error("the payload of the message is in use: a view or an array of it is left")]
    PayloadInUse,
    #[error("a timeout is a number of seconds, of 0 or more")]
    Timeout,
    #[error("another thread is in a call of this object")]
    Busy,
    #[error("it was closed")]
    Closed,
    #[error("there is no type {name:?} of elements")]
    Dtype { name: String },
    #[error("a shape without a type is none")]
    ShapeAlone,
    #[error("no tensor has this shape")]
    Shape,
    #[error("NumPy has no type for {name}")]
    NoNumpy { name: &'static str },
    #[error("an object of type {name} is no array")]
    NoArray { name: String },
    #[error("elements of the format {format:?} cannot be sent")]
    Format { format: String },
    #[error("the elements do not lie one after the other, in row-major order")]
    Strided,
    #[error("the array is not in the memory of the processor")]
    Device,
}

impl Explain for Misuse {
    fn code(&self) -> Code {
        match self {
            Self::PayloadInUse | Self::Busy => Code::Busy,
            _ => Code::Usage,
        }
    }

    fn cure(&self) -> String {
        match self {
            Self::Forked { .. } => {
                "use it in that process; start others by `spawn`, not by `fork`, or before it is \
                 made"
            }
            Self::Released => "read the payload before you release it, or copy it: bytes(payload)",
            Self::PayloadInUse => "delete them first, or copy what you keep: bytes(payload)",
            Self::Timeout => "pass seconds, or math.inf",
            Self::Busy => "use it in one thread at a time",
            Self::Closed => "make another one",
            Self::Dtype { .. } => "name one as in `f32`, `i64`, `bf16`, `c128`",
            Self::ShapeAlone => "pass `dtype` as well",
            Self::Shape => "take at most 8 dimensions",
            Self::NoNumpy { .. } => "take it by DLPack, as torch.from_dlpack does",
            Self::NoArray { .. } => "pass what has the buffer protocol or `__dlpack__`",
            Self::Format { .. } => "convert them to numbers of 1 to 16 bytes of this host's order",
            Self::Strided => "copy it: numpy.ascontiguousarray(array)",
            Self::Device => "copy it there first: array.cpu()",
        }
        .to_owned()
    }
}

impl Raise for Misuse {
    fn raise(&self, py: Python<'_>) -> PyErr {
        refused(py, self)
    }
}
